//! What is printed of a run, and what is kept of its output.

use super::*;

#[test]
fn a_command_runs_prints_and_ends_with_its_cause() {
    let world = World::new();
    let done = world.output(&["run", "--no-tui", "--", "sh", "-c", "echo hello; echo trouble >&2"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.contains("│ hello"), "{done:?}");
    assert!(done.stdout.contains("err│ trouble"), "{done:?}");
    assert!(done.stdout.contains(": complete  (1 of 1 steps"), "{done:?}");
    let status = world.only_run().status();
    assert_eq!((&status["state"], &status["steps"][0]["status"]), (&"complete".into(), &"complete".into()));
    let failed = world.output(&["run", "--no-tui", "--", "sh", "-c", "echo why >&2; exit 3"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.stdout.contains("why"), "{failed:?}");
    world.wait_until_empty();
}

#[test]
fn logs_of_a_run_are_those_of_every_step_in_order_and_of_a_step_its_own() {
    let world = World::new();
    let step = |id: &str, script: &str| {
        format!(
            "[[step]]\nid = \"{id}\"\nlabel = \"the {id}\"\nrunner = {{ type = \"external-cli\", command = \"sh\", args = [\"-c\", \"{script}\"] }}\n"
        )
    };
    let plan =
        [step("one", "echo a1; echo a2"), step("mute", "true"), step("two", "echo b1 >&2; echo b2 >&2")].concat();
    let plan = world.file("plan.toml", &plan);
    let done = world.output(&["run", "--no-tui", plan.to_str().unwrap()]);
    assert_eq!(done.code, 0, "{done:?}");
    let logs = |args: &[&str]| world.output(&[&["logs"], args].concat()).stdout;
    assert_eq!(logs(&[]), "==> 1 the one <==\na1\na2\n\n==> 3 the two <==\nb1\nb2\n");
    assert_eq!(logs(&["-f"]), logs(&[]));
    assert_eq!(logs(&["-n", "1"]), "==> 1 the one <==\na2\n\n==> 3 the two <==\nb2\n");
    assert_eq!(logs(&["--stderr"]), "==> 3 the two <==\nb1\nb2\n");
    assert_eq!(logs(&["--raw"]), "a1\na2\nb1\nb2\n");
    assert_eq!(logs(&["@last:2"]), "");
    assert_eq!(logs(&["@last:two"]), "b1\nb2\n");
}

#[test]
fn a_line_without_end_is_bounded_for_people_and_whole_for_programs() {
    let world = World::new();
    let script = "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo after";
    let done = world.output(&["run", "--no-tui", "--", "sh", "-c", script]);
    assert_eq!(done.code, 0, "{done:?}");
    for shown in [&done.stdout, &world.output(&["attach", "--no-tui"]).stdout] {
        assert!(shown.len() < 140_000, "{}", shown.len());
        assert!(shown.contains("more of this line") && shown.contains("after"));
    }
    let logs = world.output(&["logs"]);
    let (long, after) = logs.stdout.split_once('\n').unwrap();
    assert!(long.len() >= 65_536 && long.len() < 140_000 && long.bytes().all(|b| b == b'x'), "{}", long.len());
    assert_eq!(after, "after\n");
    let told = format!("… {} more of this line", subdeck::text::bytes(3_000_001 - long.len() as u64));
    assert!(logs.stderr.contains(&told), "{told}: {}", logs.stderr);
    let errors = world.output(&["logs", "--stderr"]);
    assert_eq!((errors.stdout.as_str(), errors.stderr.as_str()), ("", ""));
    assert_eq!(world.output(&["logs", "-n", "1"]).stdout, "after\n");
    assert_eq!(world.output(&["logs", "--raw"]).stdout.len(), 3_000_007);
}

#[test]
fn the_demo_completes_headless_with_a_summary() {
    let world = World::new();
    let done = world.output(&["demo", "--no-tui", "--speed", "20"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.contains("complete  (7 of 7 steps"), "{done:?}");
    assert!(!done.stdout.contains('\u{1b}'), "no escape sequence reaches a pipe");
    world.wait_until_empty();
}

#[test]
fn jsonl_and_json_are_data_alone_on_stdout() {
    let world = World::new();
    let done = world.output(&["demo", "--no-tui", "--speed", "20", "--output", "jsonl"]);
    assert_eq!(done.code, 0, "{done:?}");
    let mut kinds = std::collections::BTreeSet::new();
    for line in done.stdout.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["v"], 1);
        kinds.insert(value["type"].as_str().unwrap().to_owned());
    }
    for kind in ["run_started", "step_started", "tool_started", "tool_ended", "message", "step_ended", "run_ended"] {
        assert!(kinds.contains(kind), "{kind} is missing in {kinds:?}");
    }
    assert!(done.stderr.contains("complete  (7 of 7 steps"), "{done:?}");
    let done = world.output(&["run", "--no-tui", "--output", "json", "--", "true"]);
    let value: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&value["state"], &value["exit_code"]), (&"complete".into(), &0.into()));
}

/// What an agent may leave where its output goes neither holds the runner nor leads the text elsewhere, and is told.
#[test]
fn an_output_that_cannot_be_written_is_told_and_holds_nothing() {
    let world = World::new();
    world.file("victim.txt", "as it was");
    let odd = r#"mkfifo fifo; ln -s victim.txt link; mkdir folder; echo done"#;
    let say = |id: &str, output: &str| {
        format!(
            "[[step]]\nid = \"{id}\"\noutput = \"{output}\"\n\
             runner = {{ type = \"external-cli\", command = \"sh\", args = [\"-c\", \"echo of {id}\"] }}\n"
        )
    };
    let plan = format!(
        "[[step]]\nid = \"odd\"\nrunner = {{ type = \"external-cli\", command = \"sh\", args = [\"-c\", \"{odd}\"] }}\n{}{}{}{}",
        say("a", "fifo"),
        say("b", "link"),
        say("c", "folder"),
        say("d", "fine.md")
    );
    let plan = world.file("plan.toml", &plan);
    let done = world.output(&["run", "--no-tui", plan.to_str().unwrap()]);
    assert_eq!(done.code, 0, "{done:?}");
    let run = world.only_run();
    for (step, why) in [(1, "not a regular file"), (2, "a symbolic link"), (3, "not a regular file")] {
        let told = run.status()["steps"][step]["subdeck"]["fileError"].to_string();
        assert!(told.contains("could not be saved") && told.contains(why), "{step}: {told}");
    }
    assert_eq!(
        done.stdout.matches("the output could not be saved to ").count(),
        6,
        "when it happens and at the end: {done:?}"
    );
    assert_eq!(run.events_of("subdeck.artifact.failed").len(), 3);
    assert_eq!(std::fs::read_to_string(world.project().join("victim.txt")).unwrap(), "as it was");
    assert_eq!(std::fs::read_to_string(world.project().join("fine.md")).unwrap().trim_end(), "of d");
    let status = world.output(&["status", run.id()]);
    assert!(status.stdout.contains("the output could not be saved to "), "{status:?}");
}

#[test]
fn output_that_a_grandchild_holds_open_does_not_hold_the_run() {
    let world = World::new();
    let done = world.output(&["run", "--no-tui", "--", "sh", "-c", "sleep 60 & echo $! > pid; echo done"]);
    assert_eq!(done.code, 0, "{done:?}");
    let pid = std::fs::read_to_string(world.project().join("pid")).unwrap();
    assert!(done.stdout.contains(&format!("pid {} holds its output open", pid.trim())), "{done:?}");
    let run = world.only_run();
    assert_eq!(run.events_of("subdeck.output.held").len(), 1);
    world.wait_until_empty();
}

#[test]
fn a_reader_that_goes_away_does_not_end_the_run() {
    let world = World::new();
    let mut child = world
        .subdeck(&[
            "run",
            "--no-tui",
            "--",
            "sh",
            "-c",
            "echo up; while [ ! -e go ]; do sleep 0.02; done; echo more; echo end > ended",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    world.only_run().wait_output(0, "up");
    drop(child.stdout.take());
    world.file("go", "");
    assert_eq!(code(wait_child(&mut child)), 0);
    assert!(world.project().join("ended").exists());
}

#[test]
fn doubled_braces_are_the_text_itself_and_what_a_person_says_is_not_filled_in() {
    let world = World::new();
    let scenes = world.file(
        "scenes.toml",
        "[scene.echo]\n[[scene.echo.turn]]\nsay = \"I heard: {task}\"\n[[scene.echo.turn]]\nsay = \"Done.\"\n",
    );
    let plan = format!(
        "task = \"T\"\n[[step]]\nid = \"a\"\nrunner = {{ type = \"external-cli\", command = \"printf\", args = [\"%s|\", \"{{task}}\", \"{{{{task}}}}\"] }}\ntask = \"{{task}} {{{{previous}}}} {{{{outputs.none}}}}\"\n\
         [[step]]\nid = \"b\"\nagent = \"b\"\nrunner = {{ type = \"demo\", script = \"{}#echo\" }}\ntask = \"{{task}} {{{{task}}}}\"\n",
        scenes.display()
    );
    let plan = world.file("plan.toml", &plan);
    let checked = world.output(&["check", plan.to_str().unwrap()]);
    assert!(checked.code == 0 && !checked.stderr.contains("placeholder"), "{checked:?}");
    let done = world.output(&["run", "--no-tui", plan.to_str().unwrap()]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(world.output(&["logs", "@last:a"]).stdout, "T {previous} {outputs.none}|{task}|\n");
    assert!(world.output(&["logs", "@last:b"]).stdout.contains("I heard: T {task}"));
    let resumed = world.output(&["resume", "@last:b", "what is {task} and {previous}", "--no-tui"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    let id = resumed.stdout.trim_start().strip_prefix("run ").unwrap().lines().next().unwrap();
    let heard = std::fs::read_to_string(world.run(id).dir.join("raw-0.stdout")).unwrap();
    assert!(heard.contains("what is {task} and {previous}"), "{heard}");
}
