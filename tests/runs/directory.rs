//! The directory of a run: whose it is, what is in it, and that it is run once.

use super::*;

#[test]
fn what_cannot_be_started_says_so() {
    let world = World::new();
    let done = world.output(&["run", "--no-tui", "--", "no-such-program-here"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains("`no-such-program-here` of step `no-such-program-here` was not found"), "{done:?}");
    assert!(!world.root().exists());
    // One that a step before could have made is tried.
    let done = world.output(&["run", "--no-tui", "--", "./no-such-program-here"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stdout.contains("no such program; check the name and PATH"), "{done:?}");
    let none = world.output(&["run", "--no-tui"]);
    assert_eq!(none.code, 2, "{none:?}");
    assert!(none.stderr.contains("name a plan file"), "{none:?}");
}

#[test]
fn a_second_runner_is_refused() {
    let world = World::new();
    let run = world.detach(&["--", "sh", "-c", "echo up; sleep 60"]);
    run.wait_output(0, "up");
    let done = world.output(&["__runner", run.dir.to_str().unwrap()]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stdout.contains("error") && done.stdout.contains("runner"), "{done:?}");
    run.control("stop.json", "");
    run.wait_end();
}

#[test]
fn twenty_runs_at_the_same_root_keep_out_of_each_others_way() {
    let world = World::new();
    let plan = world.file(
        "plan.toml",
        r#"
        [[step]]
        id = "one"
        runner = { type = "external-cli", command = "sh", args = ["-c", "echo first"] }
        [[step]]
        parallel = [
          { id = "two", runner = { type = "external-cli", command = "sh", args = ["-c", "cat; echo second"] }, task = "{outputs.one}" },
          { id = "three", runner = { type = "external-cli", command = "sh", args = ["-c", "sleep 0.1 & echo third"] } },
        ]
        "#,
    );
    let children: Vec<_> = (0..20)
        .map(|_| {
            world
                .subdeck(&["run", plan.to_str().unwrap(), "--no-tui"])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let done = Done::of(child.wait_with_output().unwrap());
        assert_eq!(done.code, 0, "{done:?}");
        assert!(done.stdout.contains("two   │ first"), "{done:?}");
    }
    world.wait_until_empty();
    let runs = world.root().join("async-subagent-runs");
    let names: Vec<String> =
        std::fs::read_dir(&runs).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    let ids: Vec<&String> = names.iter().filter(|n| !n.starts_with('.')).collect();
    assert_eq!(ids.len(), 20);
    assert_eq!(std::fs::read_dir(runs.join(".active-runs")).unwrap().count(), 0, "no run is active any more");
    assert_eq!(files_below(&runs.join(".terminal-runs")).len(), 20);
    for id in ids {
        assert_eq!(world.run(id).status()["state"], "complete");
        assert!(world.root().join(format!("async-subagent-results/{id}.json")).exists());
    }
    let left: Vec<_> =
        files_below(&world.root()).into_iter().filter(|p| p.extension().is_some_and(|e| e == "tmp")).collect();
    assert!(left.is_empty(), "{left:?}");
    let pending = files_below(&world.root().join("async-subagent-results/result-pending"));
    assert!(pending.is_empty(), "{pending:?}");
}

#[test]
fn values_of_variables_are_nowhere_on_disk() {
    let world = World::new();
    let plan = world.file(
        "plan.toml",
        r#"
        [[step]]
        runner = { type = "external-cli", command = "sh", args = ["-c", "test \"$TOKEN\" = very-s3cret && echo right"], env = { TOKEN = "very-s3cret" } }
        "#,
    );
    let done = world.output(&["run", plan.to_str().unwrap(), "--no-tui"]);
    assert_eq!(done.code, 0, "{done:?}");
    for path in files_below(&world.root()) {
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let in_arguments = text.replace("= very-s3cret &&", "");
        assert!(!in_arguments.contains("very-s3cret"), "{}", path.display());
    }
}

#[test]
fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    assert_eq!(world.output(&["demo", "--no-tui", "--speed", "50"]).code, 0);
    let mut folders = vec![world.root()];
    while let Some(folder) = folders.pop() {
        let mode = std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o700, "{}", folder.display());
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
                assert_eq!(mode, 0o600, "{}", path.display());
            }
        }
    }
}

#[test]
fn a_root_that_others_may_write_is_only_read() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let run = world.detach(&["--", "sh", "-c", "echo up; sleep 60"]);
    run.wait_output(0, "up");
    let open = |mode| std::fs::set_permissions(world.root(), std::fs::Permissions::from_mode(mode)).unwrap();
    open(0o777);
    let refused = world.output(&["stop", run.id()]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("others may write into it"), "{refused:?}");
    let refused = world.output(&["run", "--no-tui", "--", "true"]);
    assert_eq!(refused.code, 7, "{refused:?}");
    assert_eq!(world.output(&["status", run.id()]).code, 0, "looking is allowed");
    open(0o700);
    assert_eq!(world.output(&["stop", run.id(), "--wait"]).code, 0);
}

#[test]
fn a_session_is_gone_on_with_by_one_run_at_a_time() {
    let world = World::new();
    let session = world.file("session.jsonl", "{\"type\":\"session\"}\n");
    let plan = format!(
        "[[step]]\nid = \"one\"\nrunner = {{ type = \"pi\", transport = \"json\", command = \"sh\", args = [\"-c\", \
         \"touch here; while [ ! -e go ]; do sleep 0.02; done\"] }}\ntask = \"t\"\nsession = \"{}\"\n",
        session.display()
    );
    let plan = world.file("plan.toml", &plan);
    let first = world.detach(&[plan.to_str().unwrap()]);
    wait_for("the first child", || world.project().join("here").exists().then_some(()));
    let done = world.output(&["run", "--no-tui", plan.to_str().unwrap()]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stdout.contains("another run goes on with the session"), "{done:?}");
    world.file("go", "");
    first.wait_end();
    world.wait_until_empty();
}

#[test]
fn a_directory_is_run_once() {
    let world = World::new();
    let run = world.detach(&["--", "sh", "-c", "echo up; while [ ! -e go ]; do sleep 0.02; done"]);
    run.wait_output(0, "up");
    wait_for("the identity", || run.dir.join("subdeck/runner.json").exists().then_some(()));
    let again = |word| world.output(&[word, run.dir.to_str().unwrap()]);
    for word in ["__keeper", "__runner"] {
        let done = again(word);
        assert!(done.code != 0 && done.stdout.contains("error"), "{word}: {done:?}");
    }
    assert_eq!(run.status()["state"], "running", "it goes on");
    world.file("go", "");
    assert_eq!(run.wait_end()["state"], "complete");
    let before = std::fs::read(run.dir.join("status.json")).unwrap();
    for word in ["__keeper", "__runner"] {
        assert_ne!(again(word).code, 0, "{word}");
    }
    assert_eq!(std::fs::read(run.dir.join("status.json")).unwrap(), before);
    world.wait_until_empty();
}
