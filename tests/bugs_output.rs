//! Hostile and odd bytes in what children print and in what files say, on a terminal. The numbers are those of reports
//! about other programs.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

#[path = "support/terminal_bytes.rs"]
mod terminal_bytes;

#[allow(dead_code)]
#[path = "support/measure.rs"]
mod measure;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::pty::{PATIENCE, Pty};
use support::{ESCAPE, Home, PROGRAM};
use terminal_bytes::foreign;

/// Keys that show everything there is: each view, each tab, each dialog that asks nothing of a run.
const EVERYTHING: &str = "vvvz1234567EEjz2456Ekw?E:EW/xEEzEEggG!";

fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Presses keys, one a write; E is Escape.
fn press(pty: &Pty, keys: &str) {
    for key in keys.chars() {
        match key {
            'E' => pty.keys(ESCAPE),
            key => pty.keys(&key.to_string()),
        }
        pty.wait_frame();
    }
}

/// A run whose child prints these bytes and goes on.
fn prints(home: &Home, text: &[u8]) -> Pty {
    prints_with(home, text, &[])
}

fn prints_with(home: &Home, text: &[u8], variables: &[(&str, &str)]) -> Pty {
    fs::write(home.path().join("text"), text).unwrap();
    let words = ["run", "--name", "odd", "--", "sh", "-c", "cat text; exec sleep 1000"];
    let pty = home.deck_with(&words, variables, 100, 30);
    pty.wait_text("last line");
    pty
}

/// Whether every row that begins with the left edge of a frame ends with its right edge.
fn frames_are_whole(screen: &vt100::Screen) -> bool {
    let edge = ['│', '|'];
    let rows: Vec<String> = screen.rows(0, screen.size().1.get()).filter(|r| r.starts_with(edge)).collect();
    rows.len() > 10 && rows.iter().all(|r| r.ends_with(edge))
}

#[test]
fn b1_a_sequence_without_an_end_hides_nothing_that_comes_after_its_line() {
    let home = Home::new();
    let mut text = b"first line\n\x1b]0;never ended".to_vec();
    text.extend_from_slice(&b"x".repeat(8 << 20));
    text.extend_from_slice(b"\n\x1bPnor this\nlast line\n");
    let pty = prints(&home, &text);
    pty.keys("z");
    pty.wait_text("[1 output]");
    assert!(pty.bytes().len() < 1 << 20, "a screen or two was drawn: {}", pty.bytes().len());
    assert!(measure::most_memory(pty.pid()) < 96 << 20, "{}", measure::most_memory(pty.pid()));
}

#[test]
fn b2_no_control_of_any_kind_reaches_the_terminal_and_a_mark_stands_for_each() {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    for body in
        ["52;c;ZXZpbA==", "0;evil title", "8;;http://evil\x1b\\x\x1b]8;;", "9;evil", "104", "1337;Copy=:ZXZpbA=="]
    {
        for (begin, end) in [
            (&b"\x1b]"[..], &b"\x07"[..]),
            (b"\x1b]", b"\x1b\\"),
            (b"\x9d", b"\x9c"),
            ("\u{9d}".as_bytes(), "\u{9c}".as_bytes()),
        ] {
            lines.push([begin, body.as_bytes(), end].concat());
        }
    }
    for body in ["6n", "2J", "?1049h", "?1000h", "3;1H", "31;1r", ">c", "5i", "20t", "!p"] {
        for begin in [&b"\x1b["[..], b"\x9b", "\u{9b}".as_bytes()] {
            lines.push([begin, body.as_bytes()].concat());
        }
    }
    for begin in [&b"\x1bP"[..], b"\x90", "\u{90}".as_bytes(), b"\x1b_", b"\x9f", b"\x1b^", b"\x1bX"] {
        lines.push([begin, b"+q544e", b"\x1b\\"].concat());
    }
    lines.extend(
        [&b"\x1bc"[..], b"\x1b7", b"\x1b(0", b"\x1b#8", b"\x1bM", b"\x05", b"\x0e", b"\x07", b"\x7f", b"\x84", b"\x8d"]
            .map(<[u8]>::to_vec),
    );
    let count = lines.len();
    let mut text = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        text.extend([format!("begin {n} ").as_bytes(), line.as_slice(), b" end\n"].concat());
    }
    text.extend_from_slice(b"last line\n");
    let home = Home::new();
    // The terminal of the tests shows no U+FFFD, so the mark is the one of ASCII.
    let pty = prints_with(&home, &text, &[("SUBDECK_ASCII", "true")]);
    pty.keys("z");
    pty.wait_text("[1 output]");
    pty.keys("g");
    // Each line is where it belongs, with its mark, and no sequence swallowed what comes after it.
    let mut next = 0;
    while next < count {
        pty.wait_text(&format!("begin {next} "));
        pty.wait_for("whole frames", frames_are_whole);
        let text = pty.text();
        for row in text.lines().filter(|row| row.contains("begin ")) {
            let what = row.split("begin ").nth(1).unwrap();
            let n: usize = what.split(' ').next().unwrap().parse().unwrap();
            assert!(what.contains("end"), "{row}");
            // A link is its text, which is x. What would have acted has a mark, which is a question mark here.
            let text = String::from_utf8_lossy(&lines[n]).into_owned();
            let is = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
            assert_eq!(what.contains('x'), is(&["8;;h"]), "{row} {text:?}");
            let acts = is(&["52;c", "]104", "\u{fffd}104", "1337", "6n", ">c", "5i", "20t", "+q544e", "\x1bc"]);
            assert!(what.contains('?') || !acts, "{row} {text:?}");
            next = next.max(n + 1);
        }
        pty.keys("\x1b[6~");
    }
    press(&pty, EVERYTHING);
    assert_eq!(foreign(&pty.bytes()), None);
}

/// What stands in every text of a hostile run.
const HOSTILE: &str =
    "\x1b]52;c;ZXZpbA==\x07\x1b]0;evil\x1b\\\x1b[2J\u{9b}6n\u{9d}0;evil\u{9c}\x1bPq\x1b\\\x1bc\0\u{8}\u{202e}\r\nz";

/// Puts the hostile text into every text but those that are words of the format.
fn poison(value: &mut Value, key: &str) {
    const WORDS: &[&str] = &[
        "type",
        "state",
        "status",
        "mode",
        "kind",
        "outcome",
        "activityState",
        "activityReason",
        "role",
        "from",
        "to",
        "reason",
        "stopReason",
        "source",
        "deliveryStatus",
        "subagentSource",
        "id",
        "nodeIds",
        "currentNodeId",
    ];
    match value {
        Value::String(text) if !WORDS.contains(&key) => text.push_str(HOSTILE),
        Value::Array(items) => items.iter_mut().for_each(|item| poison(item, key)),
        Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| poison(value, key)),
        _ => {}
    }
}

/// A copy of a run of another program with the hostile text in everything that it says, in a folder with a hostile name.
fn hostile_run(home: &Home, name: &str) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/runs").join(name);
    let dir = home.path().join("root/async-subagent-runs").join(format!("{name}\x07\x1b]0;evil\x07"));
    fs::create_dir_all(&dir).unwrap();
    let mut status: Value = serde_json::from_slice(&fs::read(from.join("status.json")).unwrap()).unwrap();
    poison(&mut status, "");
    fs::write(dir.join("status.json"), serde_json::to_vec(&status).unwrap()).unwrap();
    let events = fs::read_to_string(from.join("events.jsonl")).unwrap_or_default();
    let events: String = events
        .lines()
        .map(|line| {
            let mut event: Value = serde_json::from_str(line).unwrap();
            poison(&mut event, "");
            format!("{event}\n")
        })
        .collect();
    fs::write(dir.join("events.jsonl"), events).unwrap();
    fs::write(dir.join("output-0.log"), format!("begin {HOSTILE} end\n")).unwrap();
    dir
}

const RUNS: [&str; 5] = ["running-parallel", "failed-chain", "steered", "workflow", "interrupted"];

#[test]
fn b3_b5_no_name_path_argument_error_or_title_of_a_hostile_run_acts_on_the_terminal() {
    for name in RUNS {
        let home = Home::new();
        let dir = hostile_run(&home, name);
        let mut pty = home.deck(&["attach", dir.to_str().unwrap()], 120, 36);
        pty.wait_text("╭─›steps");
        press(&pty, EVERYTHING);
        press(&pty, "EEE");
        pty.keys("q");
        pty.wait_exit();
        assert!(pty.is_sane(), "{name}");
        let bytes = pty.bytes();
        assert_eq!(foreign(&bytes), None, "{name}");
        // The window has a name while the deck is there, and its own again afterwards.
        let count = |part: &[u8]| bytes.windows(part.len()).filter(|w| *w == part).count();
        assert!(count(b"\x1b]0;") > 0, "{name}");
        assert_eq!((count(b"\x1b[22;2t"), count(b"\x1b[23;2t")), (1, 1), "{name}");
    }
}

#[test]
fn b3_the_fleet_shows_hostile_runs_without_harm() {
    let home = Home::new();
    for name in RUNS {
        hostile_run(&home, name);
    }
    let mut pty = home.deck(&[], 120, 36);
    pty.wait_text("5 runs");
    press(&pty, "jjjj?E:E/evilE");
    pty.keys("\x1b[27u\x1b[27uq");
    pty.wait_exit();
    assert_eq!(foreign(&pty.bytes()), None);
}

#[test]
fn b6_what_is_printed_is_as_clean_as_what_is_drawn() {
    let home = Home::new();
    fs::write(home.path().join("text"), format!("begin {HOSTILE} end\nlast line\n")).unwrap();
    let mut pty = home.deck(
        &[
            "run",
            "--no-tui",
            "--name",
            HOSTILE.trim_matches('\0').replace('\0', "").as_str(),
            "--",
            "sh",
            "-c",
            "cat text; cat text >&2",
        ],
        100,
        30,
    );
    assert!(pty.wait_exit().success());
    pty.wait_text("last line");
    assert_eq!(foreign(&pty.bytes()), None);
    let hostile: Vec<PathBuf> = RUNS.iter().map(|name| hostile_run(&home, name)).collect();
    let mut commands: Vec<Vec<&str>> =
        vec![vec!["ls"], vec!["ls", "--all"], vec!["logs", "@last"], vec!["status", "@last"], vec!["events", "@last"]];
    for dir in &hostile {
        let dir = dir.to_str().unwrap();
        commands.extend(["status", "logs", "events"].map(|verb| vec![verb, dir]));
        commands.push(vec!["attach", "--no-tui", dir]);
    }
    for words in commands {
        let mut pty = home.deck(&words, 200, 60);
        pty.wait_exit();
        pty.wait_closed();
        assert_eq!(foreign(&pty.bytes()), None, "{words:?}: {}", String::from_utf8_lossy(&pty.bytes()));
    }
    // For programs there is the byte as it was, when it is asked for, and JSON that is escaped.
    let output = |words: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(words).current_dir(home.path()).env("HOME", home.path());
        command.env("SUBDECK_ROOT", home.path().join("root")).env("TMPDIR", home.path());
        command.output().unwrap().stdout
    };
    let run = home.subdeck(&["ls", "--json"]);
    let id = run.lines().find(|l| l.contains("\"complete\"") && l.contains("sh")).map(str::to_owned).unwrap_or(run);
    let id: Value = serde_json::from_str(&id).unwrap();
    let id = id["id"].as_str().or(id["runId"].as_str()).unwrap_or("@last").to_owned();
    assert!(output(&["logs", "--raw", &id]).windows(HOSTILE.len()).any(|w| w == HOSTILE.as_bytes()));
    for words in [&["logs", "--json", &id][..], &["ls", "--json"], &["events", "--json", &id]] {
        let text = String::from_utf8(output(words)).unwrap();
        assert!(!text.is_empty(), "{words:?}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{words:?}: {text:?}");
    }
}

#[test]
fn b8_b9_b10_control_characters_tabs_and_clusters_break_no_frame() {
    let home = Home::new();
    let mut text = "a\0b\tc\u{1}d\r\nx\u{200b}y\n".as_bytes().to_vec();
    for cells in 0..100 {
        text.extend_from_slice(format!("{}👩‍🔬♻️🇩🇪e\u{301}日\n", "·".repeat(cells)).as_bytes());
    }
    text.extend_from_slice(b"last line\n");
    let pty = prints(&home, &text);
    pty.keys("z");
    pty.wait_text("[1 output]");
    pty.keys("W");
    pty.wait_text("not wrapped");
    for _ in 0..5 {
        pty.keys("\x1b[5~");
        pty.wait_frame();
        pty.wait_for("whole frames", frames_are_whole);
    }
}

#[test]
fn b12_a_line_that_is_written_over_is_one_row() {
    let home = Home::new();
    let mut text = b"first line\n".to_vec();
    (0..100_000).for_each(|n| text.extend_from_slice(format!("\r{}%", n / 1000).as_bytes()));
    text.extend_from_slice(b"\nlast line\n");
    let pty = prints(&home, &text);
    pty.keys("z");
    let one_row = |s: &vt100::Screen| {
        let rows: Vec<String> = s.rows(0, 100).collect();
        let at = rows.iter().position(|r| r.contains("first line")).unwrap_or(0);
        s.contents().contains("[1 output]") && rows[at + 1].contains("99%") && rows[at + 2].contains("last line")
    };
    pty.wait_for("one row of progress", one_row);
    // Also for who comes from above, or without wrapped lines.
    for keys in ["g", "W", "\x1b[6~", "G"] {
        pty.keys(keys);
        pty.wait_for("one row of progress", one_row);
    }
    // What was written over is nowhere any more; what is there now is.
    pty.keys("/42%\r");
    pty.wait_text("\"42%\" is nowhere in this output");
    pty.keys("/99%\r");
    pty.wait_text(" 1/1 ");
    // The file has all of it.
    assert_eq!(home.subdeck(&["logs", "--raw", "@last:1"]).as_bytes(), text);
}

#[test]
fn b14_text_that_comes_byte_by_byte_or_in_long_lines_is_whole() {
    let home = Home::new();
    // One byte a write, with a look at the screen between them.
    let bytes: Vec<String> = "🔬 日本é".bytes().map(|b| format!("printf '\\{b:03o}'; sleep 0.02")).collect();
    let script = format!("echo begin; {}; echo ' last line'; exec sleep 1000", bytes.join("; "));
    let pty = home.deck(&["run", "--name", "odd", "--", "sh", "-c", &script], 100, 30);
    pty.wait_text("last line");
    pty.keys("z");
    pty.wait_for("the whole text", |s| {
        let text = s.contents();
        text.contains("[1 output]") && text.contains("🔬 日本é last line")
    });

    // A record of 70 KiB of wide text, in the middle of whose characters pipes cut.
    let words = "日本語のとても長い行。".repeat(70 * 1024 / 33);
    let message = serde_json::json!({ "type": "message_end", "message": { "role": "assistant", "stopReason": "stop",
        "content": [{ "type": "text", "text": format!("{words} the end of it") }] } });
    let pty = agent(&home, &[&message.to_string(), "say done"]);
    pty.wait_text("the run is over");
    pty.keys("z3");
    pty.wait_text("[3 transcript]");
    pty.wait_text("日本語のとても長い行。");
    // A character that pipes cut in two would have left its mark somewhere. Of a frame that is still being written the last
    // one may be there in part.
    let mut bytes = pty.bytes();
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    assert!(!String::from_utf8_lossy(&bytes).contains('\u{fffd}'), "{}", pty.text());
    let shown = home.subdeck(&["status", "@last"]);
    assert!(shown.contains("complete"), "{shown}");
}

/// A run of one scripted agent that says these things.
fn agent(home: &Home, script: &[&str]) -> Pty {
    let scripts = home.path().join("scripts");
    fs::create_dir_all(&scripts).unwrap();
    fs::write(scripts.join("0"), format!("{}\n", script.join("\n"))).unwrap();
    fs::write(
        home.path().join("plan.toml"),
        "[[step]]\nid = \"odd\"\ntask = \"Be odd.\"\nrunner = { type = \"pi\" }\n",
    )
    .unwrap();
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/scripted.sh");
    let variables = [("PI_SUBAGENT_PI_BINARY", program), ("AGENT_SCRIPTS", scripts.to_str().unwrap())];
    home.deck_with(&["run", "plan.toml"], &variables, 120, 36)
}

#[test]
fn b16_a_mark_of_byte_order_and_carriage_returns_are_no_fault() {
    const BOM: &str = "\u{feff}";
    // The first record of an agent, and every one of its lines.
    let home = Home::new();
    home.configure(&format!("{BOM}[ui]\r\nascii = true\r\n"));
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/agent.sh");
    let script = format!("printf '\\357\\273\\277'; sh {program} crlf");
    let runner = format!("{{ type = \"pi\", transport = \"json\", command = \"sh\", args = [\"-c\", {script:?}] }}");
    let plan = format!("{BOM}[[step]]\r\nid = \"odd\"\r\ntask = \"Be odd.\"\r\nrunner = {runner}\r\n");
    fs::write(home.path().join("plan.toml"), plan).unwrap();
    let pty = home.deck(&["run", "plan.toml"], 120, 36);
    pty.wait_text("the run is over");
    pty.wait_text("v done");
    pty.wait_text("fine");
    assert!(!pty.text().contains('╭'), "the configuration counts: {}", pty.text());
    assert!(!pty.text().contains("agent_start"), "the first record is one: {}", pty.text());
    // The documents of a run of another program.
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/runs/failed-chain");
    let dir = home.path().join("marked");
    fs::create_dir(&dir).unwrap();
    for file in ["status.json", "events.jsonl"] {
        let text = fs::read_to_string(from.join(file)).unwrap();
        fs::write(dir.join(file), format!("{BOM}{}", text.replace('\n', "\r\n"))).unwrap();
    }
    let pty = home.deck(&["attach", dir.to_str().unwrap()], 120, 36);
    pty.wait_text("task 2");
    // It begins at the step that failed; the first record belongs to the one before.
    pty.keys("kz6");
    pty.wait_text("[6 events");
    pty.wait_text("I will list files.");
    assert!(!pty.text().contains("cannot be read"), "{}", pty.text());
}

#[cfg(target_os = "linux")]
#[test]
fn b18_what_something_in_the_deck_says_on_standard_error_is_told_after_it() {
    let home = Home::new();
    let mut pty = home.run(100, 30);
    // What a library in the process would write to: the file that its descriptor 2 stands for.
    let stderr = format!("/proc/{}/fd/2", pty.pid());
    let target = fs::read_link(&stderr).unwrap();
    assert!(!target.starts_with("/dev/pts"), "{}", target.display());
    let mut file = fs::OpenOptions::new().append(true).open(&stderr).unwrap();
    std::io::Write::write_all(&mut file, b"a library \x1bcwarns\n").unwrap();
    drop(file);
    pty.keys("?");
    pty.wait_text("╭─ keys");
    pty.keys(ESCAPE);
    pty.wait_gone("╭─ keys");
    pty.wait_text("hello from the child");
    assert!(!pty.text().contains("a library"), "{}", pty.text());
    // A program that has the terminal meanwhile has its own.
    pty.keys("q");
    pty.wait_text("1 child is alive");
    pty.keys("l");
    assert!(pty.wait_exit().success());
    assert!(pty.is_sane());
    // On a terminal that shows it there is a mark for what was taken out.
    wait_until("it is told", || String::from_utf8_lossy(&pty.bytes()).contains("a library \u{fffd}warns"));
    assert_eq!(foreign(&pty.bytes()), None);
}
