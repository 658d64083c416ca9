//! Everything that a step called, said and went through is listed, as far as its event log goes back: on the real program,
//! with many more entries than it keeps.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

use std::fmt::Write as _;
use std::time::Instant;

use support::pty::{PATIENCE, Pty};
use support::{ESCAPE, Home};

/// So many calls one agent makes.
const CALLS: usize = 3_000;
/// So many are more than are kept.
const SOME: usize = 1_000;
/// This one fails.
const FAILED: usize = 40;

fn call(n: usize) -> String {
    let (failed, gave) = (n == FAILED, if n == FAILED { "no such job" } else { "done with it" });
    format!(
        "{{\"type\":\"assistant\",\"message\":{{\"id\":\"m-{n}\",\"role\":\"assistant\",\"model\":\"x\",\"content\":[\
         {{\"type\":\"tool_use\",\"id\":\"c-{n}\",\"name\":\"Bash\",\"input\":{{\"command\":\"job {n}\",\"note\":\"note of {n}\"}}}}]}}}}\n\
         {{\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":[\
         {{\"type\":\"tool_result\",\"tool_use_id\":\"c-{n}\",\"content\":\"{gave}\\nall of {n}.\",\"is_error\":{failed}}}]}}}}\n"
    )
}

/// The deck on a run whose one step makes all the calls in two attempts, and one more when a file is there. The file.
fn long(home: &Home) -> (Pty, std::path::PathBuf) {
    run_of(home, CALLS)
}

/// The same with so many calls.
fn run_of(home: &Home, calls: usize) -> (Pty, std::path::PathBuf) {
    let init = "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s-1\",\"model\":\"x\"}\n";
    let mut first = init.to_owned();
    (1..=calls / 2).for_each(|n| first.push_str(&call(n)));
    let refused = "API Error: 529 overloaded_error: the model is overloaded";
    writeln!(
        first,
        "{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"result\":\"{refused}\",\"api_error_status\":529}}"
    )
    .unwrap();
    let mut second = init.to_owned();
    (calls / 2 + 1..=calls).for_each(|n| second.push_str(&call(n)));
    let end = "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"fine\",\
               \"terminal_reason\":\"completed\"}\n";
    let last = format!("{}{end}", call(calls + 1));
    let files = [("first", first), ("second", second), ("last", last)].map(|(name, text)| home.file(name, &text));
    let [first, second, last] = files;
    let (begun, go) = (home.path().join("begun"), home.path().join("go"));
    let claude = home.file(
        "claude",
        &format!(
            "#!/bin/sh\nif [ ! -e {begun:?} ]; then touch {begun:?}; cat {first}; exit 1; fi\n\
             cat {second}\nwhile [ ! -e {go:?} ]; do sleep 0.05; done\ncat {last}\n"
        ),
    );
    home.file(
        "plan.toml",
        &format!(
            "[[step]]\nid = \"jobs\"\ntask = \"Do what is to be done.\"\nmodels = [\"one\", \"two\"]\n\
             runner = {{ type = \"claude\", transport = \"oneshot\", command = {claude:?} }}\n\
             [[step]]\nid = \"after\"\nrunner = {{ type = \"external-cli\", command = \"true\" }}\n"
        ),
    );
    let pty = home.deck(&["run", "plan.toml"], 100, 30);
    pty.keys("z2");
    pty.wait_text(&format!("[2 tools {},{:03}]", calls / 1_000, calls % 1_000));
    (pty, go)
}

/// Looks at the oldest part of each tab.
fn look_at_the_oldest(pty: &Pty, calls: usize) {
    // The first call, with its arguments and its result.
    pty.keys("2");
    pty.wait_text("[2 tools");
    pty.keys("g");
    pty.wait_text(&format!("1 of {},{:03}", calls / 1_000, calls % 1_000));
    pty.wait_text("job 1");
    pty.keys("\r");
    pty.wait_text("note: note of 1");
    pty.wait_text("all of 1");
    pty.keys(ESCAPE);
    pty.wait_gone("note: note of 1");
    // One after the other, and by pages.
    pty.keys("jj\r");
    pty.wait_text("note: note of 3");
    pty.keys(ESCAPE);
    pty.wait_gone("note: note of 3");
    // Found in the oldest part, by what its row has no room for.
    pty.keys("f/all of 77.\r");
    pty.wait_text("1/1  77 of 3,00");
    pty.keys("\r");
    pty.wait_text("note: note of 77");
    pty.keys(ESCAPE);
    pty.wait_gone("note: note of 77");
    // What went wrong, wherever.
    pty.keys("f&");
    pty.wait_text("no such job");
    // What was counted among all says nothing of these.
    pty.wait_gone("match 1/1");
    pty.keys("g\r");
    pty.wait_text("note: note of 40");
    pty.keys(ESCAPE);
    pty.wait_gone("note: note of 40");
    pty.keys("&");
    pty.wait_gone("errors only");
    // What was said begins with the task.
    pty.keys("3");
    pty.wait_text("[3 transcript");
    pty.keys("g");
    pty.wait_text("Do what is to be done.");
    pty.wait_text("● Bash");
    pty.keys("j");
    pty.wait_text("2 of ");
    pty.keys("f/all of 33.\r");
    pty.wait_text("1/");
    pty.keys("\r");
    pty.wait_text("result of Bash at");
    pty.wait_text("all of 33");
    pty.keys(ESCAPE);
    pty.wait_gone("result of Bash at");
    pty.keys("f");
    // So does what happened.
    pty.keys("6");
    pty.wait_text("[6 events 3,0");
    pty.keys("g");
    pty.wait_text("1 of 3,0");
    pty.wait_text("started");
    pty.wait_text("● Bash");
    pty.keys("f&");
    pty.wait_text("failed no such job");
    pty.keys("&");
    pty.wait_gone("errors only");
}

/// Presses the left button in the row of the screen that has a text.
fn click(pty: &Pty, part: &str) {
    pty.wait_text(part);
    let row = pty.text().lines().position(|row| row.contains(part)).unwrap() + 1;
    pty.keys(&format!("\x1b[<0;20;{row}M\x1b[<0;20;{row}m"));
}

/// Waits until so many texts were given to the clipboard.
fn wait_copies(pty: &Pty, many: usize) {
    let deadline = Instant::now() + PATIENCE;
    while pty.count(b"\x1b]52;c;") < many {
        assert!(Instant::now() < deadline, "{many} copies: {}", pty.text());
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
}

/// What was given to the clipboard last.
fn copied(pty: &Pty) -> String {
    let bytes = pty.bytes();
    let from = memchr::memmem::rfind(&bytes, b"\x1b]52;c;").unwrap() + 7;
    let sent = bytes[from..].split(|byte| *byte == 7).next().unwrap();
    let text = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, sent).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn old_entries_are_clicked_and_copied_as_new_ones_are_and_attempts_part_them() {
    let home = Home::new();
    let (pty, go) = run_of(&home, SOME);
    pty.keys("2g");
    pty.wait_text("1 of 1,000");
    pty.keys("m");
    pty.wait_text("the mouse is the deck's");
    click(&pty, "Bash job 7 ");
    pty.wait_text("7 of 1,000");
    pty.keys("y");
    pty.wait_text("lines sent to the terminal's clipboard");
    let text = copied(&pty);
    assert!(text.contains("note: note of 7") && text.contains("all of 7."), "{text}");
    // A second click opens it, and what is read is copied.
    click(&pty, "Bash job 7 ");
    pty.wait_text("╭─ call of Bash");
    pty.keys("y");
    wait_copies(&pty, 2);
    assert_eq!(copied(&pty), text);
    pty.keys(ESCAPE);
    pty.wait_gone("╭─ call of Bash");
    // Where the second attempt began there is a line, which is no entry.
    pty.keys("f/job 501\r");
    pty.wait_text("501 of 1,000");
    pty.wait_text("── attempt 2, after: ");
    click(&pty, "── attempt 2");
    pty.wait_text("╭─ call of Bash");
    pty.wait_text("note: note of 501");
    pty.keys(ESCAPE);
    pty.wait_gone("╭─ call of Bash");
    click(&pty, "Bash job 500 ");
    pty.wait_text("500 of 1,000");
    // In what happened too.
    pty.keys("6g");
    pty.wait_text(" 1 of 1,0");
    click(&pty, "● Bash job 9");
    pty.wait_gone(" 1 of 1,0");
    pty.keys("y");
    wait_copies(&pty, 3);
    assert!(copied(&pty).contains("job 9"), "{}", copied(&pty));
    std::fs::write(&go, "").unwrap();
    home.wait_state("complete");
}

#[test]
fn a_search_that_is_not_done_moves_nobody_who_has_gone_elsewhere() {
    let home = Home::new();
    let (mut pty, go) = run_of(&home, SOME);
    // The calls before those that are kept are not read yet, and are waited for. The keys come before anything is found.
    pty.send("/all of 77.\r6");
    pty.wait_text("found: 1 of \"all of 77.\" in the tools of step 1");
    pty.wait_text("[6 events");
    pty.keys("2");
    pty.wait_text("1 found");
    pty.keys("n");
    pty.wait_text("match 1/1  77 of 1,000");
    pty.keys("q");
    pty.wait_text("1 child is alive");
    pty.keys("l");
    pty.wait_exit();
    // Who only moves his keys is not taken from where they are, and the search is not ended.
    let pty = home.deck(&["attach", "@last"], 100, 30);
    pty.wait_text("jobs");
    pty.keys("z2");
    pty.wait_text("[2 tools 1,000]");
    pty.send("/all of 77.\rk");
    pty.wait_text("found: 1 of \"all of 77.\"; n goes there");
    pty.wait_text("999 of 1,000");
    pty.keys("n");
    pty.wait_text("match 1/1  77 of 1,000");
    // A log that is cut while it is read ends in the first entry that there is then, with one key.
    pty.keys("f");
    pty.wait_text("following");
    let log = event_log(&home);
    let file = std::fs::OpenOptions::new().write(true).open(&log).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    pty.send("g");
    pty.wait_text("its event log was cut");
    pty.wait_for("the first of what there is", |screen| {
        let text = screen.contents();
        text.contains(" 1 of ") && !text.contains(" of 1,000") && text.contains("Bash job 1 ")
    });
    std::fs::write(&go, "").unwrap();
    home.wait_state("complete");
}

/// The event log of the newest run.
fn event_log(home: &Home) -> std::path::PathBuf {
    let dir = home.subdeck(&["status", "@last", "--json"]);
    let dir: serde_json::Value = serde_json::from_str(&dir).unwrap();
    std::path::Path::new(dir["directory"].as_str().unwrap()).join("events.jsonl")
}

#[test]
fn everything_is_listed_while_the_run_goes_on_when_it_is_over_and_when_it_plays_again() {
    let home = Home::new();
    let (pty, go) = long(&home);
    look_at_the_oldest(&pty, CALLS);
    // All of them are counted, and the next one is beside the one that is shown.
    pty.keys("2f/job\r");
    pty.wait_text("match 3,000/3,000");
    pty.keys("nn");
    pty.wait_text("match 2,998/3,000  2,998 of 3,000");
    pty.keys("N");
    pty.wait_text("match 2,999/3,000  2,999 of 3,000");
    // The keys stay where they are while more is called, and a picture that stands still knows nothing of it.
    pty.keys("2g");
    pty.wait_text("1 of 3,000");
    pty.keys(" ");
    pty.wait_text("FROZEN");
    std::fs::write(&go, "").unwrap();
    home.wait_state("complete");
    pty.keys("jjk");
    pty.wait_text("2 of 3,000");
    pty.keys(" ");
    pty.wait_text("2 of 3,001");
    look_at_the_oldest(&pty, CALLS + 1);
    // From another step, in all of them.
    pty.keys("]2");
    pty.wait_text("a plain command uses no tools");
    pty.keys("/all of 55.\t");
    pty.wait_text("in all steps");
    pty.keys("\r");
    pty.wait_text("in step 1 jobs");
    pty.wait_text("match 1/1  55 of 3,001");
    // A deck that comes later has read of the first ones only that they were there.
    let mut pty = pty;
    pty.keys("q");
    pty.wait_exit();
    let mut pty = home.deck(&["attach", "@last"], 100, 30);
    pty.wait_text("the run is over");
    pty.keys("z2");
    pty.wait_text("[2 tools 3,001]");
    look_at_the_oldest(&pty, CALLS + 1);
    pty.keys("q");
    pty.wait_exit();
    // When it plays again, what came later is not there yet.
    let pty = home.deck(&["replay", "@last"], 100, 30);
    pty.wait_text("REPLAY");
    pty.wait_text(" event ");
    pty.keys("E");
    pty.wait_text("this is the end");
    pty.keys("z2");
    pty.wait_text("[2 tools 3,001]");
    look_at_the_oldest(&pty, CALLS + 1);
    pty.keys("2g");
    pty.wait_text("1 of 3,001");
    // Before the ends of the run and of its steps there are the last calls.
    pty.keys("{{{{{{{{{{");
    pty.wait_for("the first of fewer calls", |screen| {
        let text = screen.contents();
        let count = text.split("[2 tools ").nth(1).and_then(|rest| rest.split(']').next()).unwrap_or_default();
        count.starts_with("2,99") && text.contains(&format!("1 of {count} "))
    });
    pty.wait_text("job 1");
}

#[test]
fn what_cannot_be_read_any_more_says_so() {
    let home = Home::new();
    let (pty, go) = long(&home);
    pty.keys("2g");
    pty.wait_text("1 of 3,000");
    pty.wait_text("job 1");
    // Somebody writes over some records, as long as they were.
    let log = event_log(&home);
    let mut text = std::fs::read(&log).unwrap();
    let find = |text: &[u8], part: &str| memchr::memmem::find(text, part.as_bytes()).unwrap();
    let (from, to) = (find(&text, "note of 1000\""), find(&text, "note of 1010\""));
    text[from..to].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b'x');
    let file = std::fs::OpenOptions::new().write(true).open(&log).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &text[from..to], from as u64).unwrap();
    pty.keys("f/job 995\r");
    pty.wait_text("995 of 3,000");
    pty.keys("jjjjjjjjjj");
    pty.wait_text("1,005 of 3,000");
    pty.wait_text("its record cannot be read");
    pty.keys("\r");
    pty.wait_text("not to be read");
    pty.keys(ESCAPE);
    pty.wait_gone("not to be read");
    // One of which the end alone is gone is not told as something else.
    pty.keys("jjjjjjjjjjjj");
    pty.wait_text("1,017 of 3,000");
    pty.wait_text("job 1017");
    // It was cut: what is there now is another log.
    pty.keys("g");
    pty.wait_text("1 of 3,000");
    file.set_len(from as u64 / 2).unwrap();
    pty.wait_text("its event log was cut");
    // Everything that it has now is listed, and nothing of what it had.
    let listed = |screen: &str, tab: &str| {
        let of = screen.split(tab).nth(1)?.split(']').next()?.trim().replace(',', "").parse::<usize>().ok()?;
        (screen.contains(&format!(" 1 of {of} ")) && of < 700).then_some(of)
    };
    pty.keys("6g");
    pty.wait_for("the events of half of it", |screen| listed(&screen.contents(), "[6 events").is_some());
    pty.keys("3g");
    pty.wait_text("Do what is to be done.");
    pty.wait_gone("in the files only");
    std::fs::remove_file(&log).unwrap();
    pty.wait_text("its event log is gone");
    pty.keys("6g");
    pty.wait_for("the events that were kept", |screen| {
        listed(&screen.contents(), "[6 events").is_some_and(|many| many <= 500)
    });
    std::fs::write(&go, "").unwrap();
    home.wait_state("complete");
}

#[test]
fn pages_of_a_transcript_pass_over_nothing() {
    const TURNS: usize = 63;
    let home = Home::new();
    let said = |n: usize| {
        // One to five lines.
        let text = (0..=n % 5).map(|line| format!("turn {n} line {line}.")).collect::<Vec<_>>().join("\\n");
        format!(
            "{{\"type\":\"assistant\",\"message\":{{\"id\":\"m-{n}\",\"role\":\"assistant\",\"model\":\"x\",\"content\":[\
             {{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n"
        )
    };
    let pty = over(&home, (1..=TURNS).map(said));
    pty.keys("z3");
    pty.wait_text("[3 transcript");
    let whole = |text: &str, n: usize| (0..=n % 5).all(|line| text.contains(&format!("turn {n} line {line}.")));
    for (first, page) in [("g", "\x1b[6~"), ("G", "\x1b[5~")] {
        pty.keys(first);
        pty.wait_text(if first == "g" { "1 of 64" } else { "turn 63 line 3." });
        let mut seen = std::collections::BTreeSet::new();
        let mut pages = 0;
        loop {
            let text = pty.text();
            seen.extend((1..=TURNS).filter(|n| whole(&text, *n)));
            if whole(&text, if first == "g" { TURNS } else { 1 }) {
                break;
            }
            pages += 1;
            assert!(pages < TURNS, "it gets nowhere: {text}");
            pty.keys(page);
            pty.wait_for("another page", |screen| screen.contents() != text);
            pty.wait_frame();
        }
        assert_eq!(seen.len(), TURNS, "{first}: {seen:?}");
        assert!(pages < TURNS / 3, "{pages} pages of 30 rows");
    }
}

#[test]
fn a_file_tells_of_all_calls_that_named_it() {
    const EDITS: usize = 600;
    let home = Home::new();
    let edit = |n: usize| {
        let file = ["a", "b"][n % 2];
        call(n)
            .replace("\"Bash\"", "\"Edit\"")
            .replace("\"command\":", &format!("\"file_path\":\"src/{file}.rs\",\"x\":"))
    };
    let pty = over(&home, (1..=EDITS).map(edit));
    pty.keys("z5");
    pty.wait_text("src/a.rs  Edit ×300");
    pty.wait_text("src/b.rs  Edit ×300");
    pty.wait_gone("newest 200 calls");
    pty.keys("j");
    pty.wait_text("›   src/a.rs");
    pty.keys("\r");
    pty.wait_text("╭─ src/a.rs");
    pty.keys("y");
    // A line for each, a blank one, and what git says.
    pty.wait_text("302 lines sent to the terminal's clipboard");
    assert!(!pty.text().contains("its record cannot be read"), "{}", pty.text());
}

/// The deck on a run that is over, of one agent that said these lines and then that it is done.
fn over(home: &Home, lines: impl Iterator<Item = String>) -> Pty {
    let end = "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"fine\"}\n";
    let said = home.file("said", &lines.chain([end.to_owned()]).collect::<String>());
    let claude = home.file("claude", &format!("#!/bin/sh\ncat {said}\n"));
    let plan = format!(
        "[[step]]\ntask = \"Say it.\"\nrunner = {{ type = \"claude\", transport = \"oneshot\", command = {claude:?} }}\n"
    );
    home.file("plan.toml", &plan);
    let pty = home.deck(&["run", "plan.toml"], 100, 30);
    pty.wait_text("the run is over");
    pty
}
