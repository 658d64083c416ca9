//! `subdeck doctor`: what it finds and tells, what it never runs, and that it leaves nothing behind.

#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::{Done, World};

/// A program that answers with this script.
fn program(folder: &Path, name: &str, script: &str) -> PathBuf {
    std::fs::create_dir_all(folder).unwrap();
    let file = folder.join(name);
    std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    file
}

/// A folder of programs outside of the project.
fn bin(world: &World) -> PathBuf {
    world.project().parent().unwrap().join("bin")
}

fn doctor(world: &World, folders: &[&Path], args: &[&str]) -> Done {
    let path = std::env::join_paths(folders.iter().copied().chain([Path::new("/usr/bin"), Path::new("/bin")])).unwrap();
    let all: Vec<&str> = ["doctor"].iter().chain(args).copied().collect();
    let mut command = world.subdeck(&all);
    command.env("PATH", path).env_remove("GEMINI_API_KEY").env_remove("PI_SUBAGENT_PI_BINARY");
    Done::of(command.output().unwrap())
}

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:?}"))
}

fn agent<'a>(found: &'a Value, word: &str) -> &'a Value {
    found["agents"].as_array().unwrap().iter().find(|agent| agent["agent"] == word).unwrap_or(&Value::Null)
}

#[test]
fn what_is_there_is_told_with_its_version_and_how_it_would_be_started() {
    let world = World::new();
    let bin = bin(&world);
    program(&bin, "claude", "echo '2.1.332 (Claude Code)'");
    program(&bin, "codex", "echo 'codex-cli 0.172.0'");
    program(&bin, "gemini", "echo 0.9.1");
    program(&bin, "qwen", "printf '\\033]0;title\\007no node\\n' >&2; exit 127");
    program(&bin, "copilot", "echo hello");
    program(&bin, "amp", "echo 1.0");
    let done = doctor(&world, &[&bin], &[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(!done.stdout.contains('\u{1b}') && !done.stdout.contains('\u{7}'), "{done:?}");
    for line in [
        "codex: newer than what it was tried with; what is new in it is counted as unknown",
        "gemini: older than what it was tried with; it may lack what a step needs, and is given one prompt where it cannot be steered",
        "gemini: GEMINI_API_KEY is not set",
        "qwen: `--version` failed (exit status: 127): ",
        "copilot: it tells no version",
        "amp: it was never tried; how it is started is what its own documents say",
        "opencode: the program `opencode` was not found",
        "  codex app-server",
        "  gemini --acp --approval-mode default",
        "standard input is no terminal, so runs are printed here",
    ] {
        assert!(done.stdout.contains(line), "{line}: {}", done.stdout);
    }
    assert!(!done.stdout.contains("  opencode acp"), "{}", done.stdout);
    assert!(!world.root().exists(), "nothing is made");
    let found = json(&doctor(&world, &[&bin], &["--json"]));
    assert_eq!((&found["v"], &found["ok"], &found["root"]["exists"]), (&1.into(), &true.into(), &false.into()));
    for (word, version, known) in [
        ("claude", Value::from("2.1.332"), "same"),
        ("codex", "0.172.0".into(), "newer"),
        ("gemini", "0.9.1".into(), "older"),
        ("copilot", Value::Null, "unknown"),
        ("opencode", Value::Null, "unknown"),
    ] {
        let agent = agent(&found, word);
        assert_eq!((&agent["version"], &agent["known"]), (&version, &known.into()), "{agent:#}");
    }
    assert_eq!(agent(&found, "codex")["started_as"], serde_json::json!(["codex", "app-server"]));
    assert_eq!(found["agents"].as_array().unwrap().len(), 8);
    assert_eq!((&agent(&found, "amp")["version"], &agent(&found, "amp")["known"]), (&"1.0".into(), &"unknown".into()));
}

#[test]
fn the_exit_code_says_whether_a_run_can_begin() {
    let world = World::new();
    let bin = bin(&world);
    let none = doctor(&world, &[&bin], &[]);
    assert_eq!(none.code, 1, "no agent at all: {none:?}");
    program(&bin, "codex", "echo 0.171.0");
    for (args, code) in [(&["codex"][..], 0), (&["codex", "claude"], 1), (&["claude"], 1), (&["codx"], 2)] {
        let done = doctor(&world, &[&bin], args);
        assert_eq!(done.code, code, "{args:?}: {done:?}");
    }
    let wrong = doctor(&world, &[&bin], &["codx"]);
    assert!(wrong.stderr.contains("there is no agent `codx`; did you mean `codex`?"), "{wrong:?}");
    std::fs::create_dir(world.root()).unwrap();
    std::fs::set_permissions(world.root(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let open = doctor(&world, &[&bin], &["codex"]);
    assert!(open.code == 1 && open.stdout.contains("others may write into it (mode 777)"), "{open:?}");
    std::fs::set_permissions(world.root(), std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(doctor(&world, &[&bin], &["codex"]).code, 0);
    world.file(".subdeck/config.toml", "capture = 7\n");
    let broken = doctor(&world, &[&bin], &["codex"]);
    assert!(broken.code == 1 && broken.stdout.contains("something in it cannot be used"), "{broken:?}");
}

#[test]
fn a_program_of_a_project_is_run_only_when_the_project_is_trusted() {
    let world = World::new();
    let folder = world.project().join("node_modules/.bin");
    let mark = world.project().join("it-ran");
    program(&folder, "codex", &format!("touch '{}'; echo 0.171.0", mark.display()));
    // The same program by a link from outside.
    let linked = bin(&world);
    std::fs::create_dir(&linked).unwrap();
    std::os::unix::fs::symlink(folder.join("codex"), linked.join("codex")).unwrap();
    let relative = Path::new("node_modules/.bin");
    for path in [folder.as_path(), &linked, relative] {
        let done = doctor(&world, &[path], &["codex"]);
        let told = "codex: it lies in a project that is not trusted, so it was not asked for its version";
        assert!(done.stdout.contains(told), "{}: {done:?}", path.display());
        assert!(!mark.exists(), "{}", path.display());
    }
    world.file(".subdeck/config.toml", "");
    let done = world.output(&["config", "trust"]);
    assert_eq!(done.code, 0, "{done:?}");
    let found = json(&doctor(&world, &[&folder], &["codex", "--json"]));
    assert_eq!(agent(&found, "codex")["version"], "0.171.0", "{found:#}");
    assert!(mark.exists());
}
