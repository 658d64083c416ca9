//! The README agrees with the program: its plans are good, its tables are those of the code, its files exist.
//!
//! After a change of a table, `SUBDECK_WRITE_README=1 cargo test --test readme` writes the tables anew.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use std::fmt::Write;
use std::path::Path;
use std::sync::Mutex;

use subdeck::config::{KEYS, Key, Kind};
use subdeck::deck::actions::TABLE;
use subdeck::deck::keymap::key_name;
use subdeck::run::ExitCause;
use support::{Done, World};

/// The tests that write take turns.
static WRITING: Mutex<()> = Mutex::new(());

fn path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")
}

fn readme() -> String {
    std::fs::read_to_string(path()).unwrap()
}

/// The text of the fenced blocks with this word after the fence.
fn blocks(kind: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<(bool, String)> = None;
    for line in readme().lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(word)) => open = Some((word == kind, String::new())),
            (Some(_), Some(_)) => found.extend(open.take().filter(|(wanted, _)| *wanted).map(|(_, text)| text)),
            (Some((_, text)), None) => writeln!(text, "{line}").unwrap(),
            (None, None) => {}
        }
    }
    assert!(!found.is_empty(), "the README has no {kind}");
    found
}

/// The part between the two comments of this name is `table`; written anew when that is asked for.
fn check_table(name: &str, table: &str) {
    let _turn = WRITING.lock().unwrap();
    let text = readme();
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let from = text.find(&begin).unwrap_or_else(|| panic!("no {begin}")) + begin.len();
    let to = from + text[from..].find(&end).unwrap_or_else(|| panic!("no {end}"));
    if std::env::var_os("SUBDECK_WRITE_README").is_some() {
        std::fs::write(path(), format!("{}{table}{}", &text[..from], &text[to..])).unwrap();
        return;
    }
    assert_eq!(&text[from..to], table, "{name}: write the table anew with SUBDECK_WRITE_README=1");
}

#[test]
fn the_keys_are_those_of_the_deck() {
    let mut table = String::from("| key | action | what it does |\n|---|---|---|\n");
    for row in TABLE {
        let keys: Vec<String> = row.keys.iter().map(|key| format!("`{}`", key_name(*key))).collect();
        let asks = if row.confirms { " *" } else { "" };
        writeln!(table, "| {}{asks} | {} | {} |", keys.join(" "), row.name, row.help).unwrap();
    }
    check_table("keys", &table);
}

#[test]
fn the_exit_codes_are_those_of_the_program() {
    let printed = World::new().output(&["help", "exit-codes"]).stdout;
    let mut table = String::from("| code | meaning |\n|---|---|\n");
    for cause in ExitCause::ALL {
        assert!(printed.contains(&format!("  {}  {}\n", cause.code(), cause.meaning())), "{printed}");
        writeln!(table, "| {} | {} |", cause.code(), cause.meaning()).unwrap();
    }
    check_table("exit codes", &table);
}

#[test]
fn the_configuration_is_that_of_the_program() {
    let mut table = String::from("| key | built in | variable | in a project |\n|---|---|---|---|\n");
    for key @ Key { name, built_in, variables, needs_trust, .. } in KEYS {
        let built_in = if built_in.is_empty() { key.built_in_words() } else { format!("`{built_in}`") };
        let variables: Vec<String> = variables.iter().map(|v| format!("`{v}`")).collect();
        let project = if *needs_trust { "needs trust" } else { "yes" };
        writeln!(table, "| `{name}` | {built_in} | {} | {project} |", variables.join(" ")).unwrap();
    }
    check_table("configuration", &table);
}

#[test]
fn every_word_that_a_key_of_the_configuration_takes_is_there() {
    let text = readme();
    let said: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '-').collect();
    for key in KEYS {
        let Kind::Word(words) = key.kind else { continue };
        for word in words {
            assert!(said.contains(word), "{} takes {word}, of which the README says nothing", key.name);
        }
    }
}

#[test]
fn every_command_has_its_line() {
    let help = World::new().output(&["--help"]).stdout;
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let commands: Vec<&str> =
        list.lines().filter_map(|l| l.split_whitespace().next()).filter(|c| *c != "help").collect();
    assert!(commands.len() > 10, "{help}");
    let text = readme();
    let section = text.split("\n## Commands\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let named: Vec<&str> =
        section.lines().filter_map(|line| line.strip_prefix("| `")?.split(['`', ' ']).next()).collect();
    assert_eq!(named, commands);
}

#[test]
fn the_plans_are_good() {
    let plans = blocks("toml");
    assert!(plans.len() >= 2);
    for (text, number) in plans.iter().zip(0..) {
        let world = World::new();
        let plan = world.file("plan.toml", text);
        // What this machine has not installed is no fault of the plan.
        for program in ["pi", "cargo", "claude", "opencode", "my-agent"] {
            let path = world.file(&format!("bin/{program}"), "#!/bin/sh\n");
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        }
        let path = format!("{}:/usr/bin:/bin", world.project().join("bin").display());
        let done = world.subdeck(&["check", plan.to_str().unwrap()]).env("PATH", path).output().unwrap();
        let done = Done::of(done);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done:?}");
        if number == 0 {
            let done = world.output(&["run", "--no-tui", plan.to_str().unwrap()]);
            assert_eq!(done.code, 0, "{done:?}");
        }
    }
}

#[test]
fn the_commands_of_its_scripts_exist_with_their_options() {
    let world = World::new();
    let mut seen = 0;
    for line in blocks("sh").iter().flat_map(|b| b.lines()) {
        let line = line.split(" #").next().unwrap().replace("cargo run --release -- ", "subdeck ");
        for part in line.split(['|', ';', '(', ')', '\'']).filter_map(|p| p.trim().strip_prefix("subdeck ")) {
            let words: Vec<&str> = part.split_whitespace().collect();
            let help = world.output(&[words[0], "--help"]);
            assert_eq!(help.code, 0, "{part}: {help:?}");
            for option in words.iter().filter(|w| w.starts_with("--")) {
                assert!(help.stdout.contains(option), "{part}: no {option}");
            }
            seen += 1;
        }
    }
    assert!(seen > 8, "{seen}");
}

#[test]
fn the_screen_is_one_of_the_deck() {
    let screens = blocks("text");
    let lines: Vec<&str> = screens[0].lines().collect();
    assert!(lines.len() <= 36 && lines.iter().all(|l| l.chars().count() <= 120));
    for part in ["╭─›steps ─", "── the run ─", " left ", "╭─ happening ─", "3 mend the test", "q quit"]
    {
        assert!(lines.iter().any(|l| l.contains(part)), "{part}");
    }
}

#[test]
fn the_files_and_benches_it_names_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = readme();
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let mut fenced = false;
    let prose = text.lines().filter(|line| {
        let fence = line.starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    });
    let mut files = 0;
    for part in prose.flat_map(|line| line.split('`').skip(1).step_by(2)) {
        let file = part.trim_end_matches('/');
        if part.starts_with("tests/") || part.starts_with("assets/") || part.starts_with(".ci/") {
            assert!(root.join(file).exists(), "{part}");
            files += 1;
        }
    }
    assert!(files >= 2, "{files}");
    for name in text.split("cargo bench --bench ").skip(1) {
        let name = name.split_whitespace().next().unwrap();
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
        assert!(root.join(format!("tests/bench/{name}.rs")).exists(), "{name}");
    }
}
