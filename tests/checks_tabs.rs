//! The checks of live tabs (runner-behaviour 13, 36 to 41), each by its number: the real deck on a terminal, with its bar
//! of tabs, over runs of scripted agents and plain commands.

// Each test file uses a part of them.
#[allow(dead_code)]
#[path = "support/pty.rs"]
mod pty;
#[allow(dead_code)]
#[path = "support/scripted.rs"]
mod scripted;
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use portable_pty::CommandBuilder;
use pty::Pty;
use rustix::process::{Pid, Signal, kill_process};
use scripted::{Scene, step};
use serde_json::json;
use support::Run;

/// The deck on the newest run of a scene, with the bar of tabs on top.
fn tabs(scene: &Scene) -> Pty {
    let pty = deck(scene, &["attach", "@last"]);
    pty.wait_text("╭─›steps");
    pty.keys("vv");
    pty.wait_gone("╭─›steps");
    pty
}

fn deck(scene: &Scene, arguments: &[&str]) -> Pty {
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_subdeck"));
    command.args(arguments);
    command.cwd(scene.world.project());
    let plain = scene.world.subdeck(&[]);
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        }
    }
    Pty::spawn(command, 120, 36)
}

/// The row of the screen that holds the bar: the one below the line about the run.
fn bar(pty: &Pty) -> String {
    pty.text().lines().nth(1).unwrap_or_default().to_owned()
}

fn shell(script: &str) -> String {
    let script = serde_json::Value::from(script);
    format!("[[step]]\nrunner = {{ type = \"external-cli\", command = \"sh\", args = [\"-c\", {script}] }}\n")
}

/// The child of the only step, and how it ended.
fn exit(run: &Run) -> (String, i64) {
    let status = run.wait_end();
    let step = &status["steps"][0];
    (step["status"].as_str().unwrap().to_owned(), step["exitCode"].as_i64().unwrap())
}

#[test]
fn check_36_there_is_one_tab_a_child_before_it_starts_and_retries_reuse_it() {
    let failed = concat!(
        r#"{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"error","#,
        r#""errorMessage":"429 rate limit reached"}}"#,
        "\n{\"type\":\"agent_end\",\"messages\":[],\"willRetry\":false}\n{\"type\":\"agent_settled\"}"
    );
    let scene = Scene::new(&["out second try\nuntil on\nsay fine", "say more", "say last"]);
    scene.script("0.1", &format!("out first try\n{failed}"));
    let first = step(json!({ "agent": "scout", "modelCandidates": ["a/one", "b/two"] }));
    let (second, third) = (step(json!({ "agent": "planner" })), step(json!({ "agent": "worker" })));
    let run = scene.detach(&scene.config(&[first, second, third], json!({})));
    let pty = tabs(&scene);
    // The tabs of those that wait are there, in the order of the steps.
    pty.wait_for("all tabs", |s| s.contents().contains("1 scout ● │ 2 planner ○ │ 3 worker ○"));
    // One tab holds both attempts, and says where the second began.
    pty.wait_text("second try");
    let text = pty.text();
    let row = |part: &str| text.lines().position(|l| l.contains(part)).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(row("first try") < row("── attempt 2") && row("── attempt 2") < row("second try"), "{text}");
    pty.keys("2");
    pty.wait_text("waits for step 1");
    scene.touch("on");
    assert_eq!(run.wait_end()["state"], "complete");
    pty.wait_for("all done", |s| s.contents().contains("1 scout ✓"));
    assert_eq!(bar(&pty).matches("scout").count(), 1, "{}", bar(&pty));
    assert_eq!(bar(&pty).matches('│').count(), 3, "{}", bar(&pty));
}

#[test]
fn check_37_a_tab_shows_what_the_log_holds_while_it_is_written() {
    let agent = "open A bash {\"command\":\"make\"}\nout a line that is no record\nerr a warning\nuntil on\n\
                 close A bash\nsay all done";
    let scene = Scene::new(&[agent]);
    let cli = shell("echo from the command; echo from its errors >&2; until [ -e scripts/off ]; do sleep 0.05; done");
    let plan = format!("[[step]]\nid = \"agent\"\ntask = \"Do it.\"\n\n{cli}");
    let run = scene.detach(&scene.plan(&plan));
    let pty = tabs(&scene);
    pty.wait_text("a line that is no record");
    pty.wait_text("err│ a warning");
    pty.wait_text("bash: ");
    scene.touch("on");
    pty.wait_text("all done");
    // What another tab prints meanwhile is counted on its tab, and shown once one looks.
    pty.wait_for("a count of unread lines", |s| s.contents().contains("● +2"));
    pty.keys("2");
    pty.wait_text("from the command");
    pty.wait_text("err│ from its errors");
    pty.wait_gone("+2");
    let log = std::fs::read_to_string(run.dir.join("output-0.log")).unwrap();
    pty.keys("1");
    pty.wait_text("all done");
    let shown = pty.text();
    for line in log.lines().filter(|l| !l.trim().is_empty()) {
        assert!(shown.contains(line.trim_end()), "{line:?} is not in\n{shown}");
    }
    scene.touch("off");
    assert_eq!(run.wait_end()["state"], "complete");
}

#[test]
fn check_38_a_tab_says_how_its_child_ended_and_stays() {
    let cases = [
        ("echo printed", "1 sh ✓", "── done · exit 0"),
        ("echo printed; exit 3", "1 sh ✗", "── failed · exit 3"),
        ("echo printed; kill -TERM $$", "1 sh ✗", "── failed · signal 15"),
    ];
    for (script, badge, footer) in cases {
        let scene = Scene::new(&[]);
        let run = scene.detach(&scene.plan(&shell(script)));
        run.wait_end();
        let pty = tabs(&scene);
        pty.wait_text("printed");
        pty.wait_text(footer);
        assert!(bar(&pty).contains(badge), "{script}: {}", bar(&pty));
    }
    // A stop is told apart from a failure, and a program that cannot be started has its tab too.
    let scene = Scene::new(&[]);
    let run = scene.detach(&scene.plan(&shell("echo printed; exec sleep 1000")));
    let pty = tabs(&scene);
    pty.wait_text("printed");
    pty.keys("X");
    pty.wait_text("Stop the whole run?");
    pty.keys("y");
    run.wait_end();
    pty.wait_text("── stopped");
    assert!(bar(&pty).contains("1 sh ■"), "{}", bar(&pty));
    // The session that one can go on with is named by `the_end_of_a_step_names_its_session` of the deck's own tests.
}

/// The resident memory of a process in bytes.
#[cfg(target_os = "linux")]
fn memory(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find(|l| l.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[cfg(target_os = "linux")]
#[test]
fn check_39_a_tab_holds_what_is_visible_and_the_file_all() {
    let scene = Scene::new(&[]);
    // 32 MiB in lines of 64 bytes, and their numbers; the reference keeps 1 MiB of 2 and says so.
    let script = "echo first byte; yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa \
                  | head -c 33554432 | cat -n; echo last byte; until [ -e scripts/on ]; do sleep 0.05; done";
    // In a file of its own, because the tab shows the command that is run.
    scene.script("long", script);
    let run = scene.detach(&scene.plan(&shell(". scripts/long")));
    let pty = tabs(&scene);
    pty.wait_text("last byte");
    let small = memory(pty.pid());
    // Every part of it is there: nothing had to be left out of the file, and the tab reads the file.
    pty.keys("\tg");
    pty.wait_text("first byte");
    pty.keys("/400000\r");
    pty.wait_text(" 1/1 ");
    pty.keys("G");
    pty.wait_text("last byte");
    let grown = memory(pty.pid()).saturating_sub(small);
    assert!(grown < 16 << 20, "the deck grew by {grown} bytes over a log of 32 MiB and more");
    assert!(small < 96 << 20, "the deck takes {small} bytes");
    scene.touch("on");
    assert_eq!(exit(&run), ("complete".to_owned(), 0));
    pty.wait_text("── done · exit 0");
}

#[test]
fn check_40_sequences_that_come_in_pieces_never_reach_the_terminal() {
    let scene = Scene::new(&[]);
    // Each write of the child is a read of its own for the runner; the deck sees the log in whatever pieces come.
    let pieces = [
        "\\033",
        "]52;c;",
        "ZXZpbA==",
        "\\007",
        "one\\n",
        "\\033",
        "[",
        "2",
        "J",
        "two\\n",
        "\\302",
        "\\2335n",
        "three\\n",
        "\\033P+q",
        "544e\\033",
        "\\\\",
        "four\\n",
        "\\033]0;evil ti",
        "tle\\033",
        "\\\\five\\n",
        "\\r",
        "\\010",
        "six\\n",
        "\\033[?10",
        "00h",
        "seven\\n",
        "\\342\\200",
        "\\256eight\\n",
    ];
    let script: String = pieces.iter().map(|p| format!("printf '{p}'; sleep 0.02; ")).collect();
    // In a file of its own, because the tab shows the command that is run.
    scene.script("pieces", &format!("{script} until [ -e scripts/on ]; do sleep 0.05; done"));
    let run = scene.detach(&scene.plan(&shell(". scripts/pieces")));
    let pty = tabs(&scene);
    for word in ["one", "two", "three", "four", "five", "six", "seven", "eight"] {
        pty.wait_text(word);
    }
    pty.wait_frame();
    let bytes = pty.bytes();
    for forbidden in
        [&b"52;c;"[..], b"ZXZpbA", b"evil ti", b"\x1b[2Jtwo", b"?1000h", b"+q544e", b"\xc2\x9b5n", b"\xe2\x80\xae"]
    {
        let found = bytes.windows(forbidden.len()).any(|w| w == forbidden);
        assert!(!found, "{:?}", String::from_utf8_lossy(forbidden));
    }
    scene.touch("on");
    run.wait_end();
}

#[test]
fn check_41_a_broken_or_hung_tab_never_touches_its_child() {
    for how in [Signal::STOP, Signal::KILL] {
        let scene = Scene::new(&[]);
        let script =
            "echo begun; until [ -e scripts/on ]; do sleep 0.05; done; yes | head -c 4194304; echo done; exit 4";
        let run = scene.detach(&scene.plan(&shell(script)));
        let pty = tabs(&scene);
        pty.wait_text("begun");
        let pid = Pid::from_raw(i32::try_from(pty.pid()).unwrap()).unwrap();
        kill_process(pid, how).unwrap();
        scene.touch("on");
        // Nobody reads what it prints, and it ends all the same, as it would have.
        assert_eq!(exit(&run), ("failed".to_owned(), 4), "{how:?}");
        let log = std::fs::read(run.dir.join("external-0.stdout.log"));
        assert!(log.is_ok_and(|log| log.ends_with(b"done\n") && log.len() > 4_194_304), "{how:?}");
        if how == Signal::STOP {
            kill_process(pid, Signal::CONT).unwrap();
            pty.wait_text("── failed · exit 4");
        }
        // Another tab shows all of it.
        tabs(&scene).wait_text("── failed · exit 4");
    }
}
