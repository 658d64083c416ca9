//! The commands about plans, agents and configuration, as they are typed.

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/plans")
}

struct World {
    temp: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self { temp: tempfile::tempdir().unwrap() }
    }

    fn home(&self) -> &Path {
        self.temp.path()
    }

    /// The program with a home of its own and nothing else of this machine.
    fn subdeck(&self, cwd: &Path, args: &[&str]) -> Output {
        let mut command = Command::cargo_bin("subdeck").unwrap();
        command.env_clear().env("HOME", self.home()).env("PATH", "/usr/bin:/bin").current_dir(cwd);
        command.args(args).write_stdin("").output().unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|e| panic!("{e}\n{}", text(bytes)))
}

#[test]
fn ten_mistakes_are_ten_errors_exit_2_and_no_run_directory() {
    let world = World::new();
    let root = world.home().join("runs");
    let root_arg = root.to_str().unwrap();
    for args in [&["check", "mistakes.toml"][..], &["run", "--no-tui", "--root", root_arg, "mistakes.toml"]] {
        let output = world.subdeck(&fixtures(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(text(&output.stdout), "", "{args:?}");
        let errors = text(&output.stderr);
        let found = errors.lines().filter(|l| l.starts_with("error: ")).count();
        assert_eq!(found, 10, "{errors}");
        for line in [1, 2, 5, 6, 10, 14, 15, 16, 19, 21] {
            assert!(errors.contains(&format!("--> mistakes.toml:{line}:")), "{line}\n{errors}");
        }
        assert!(errors.ends_with("10 errors, nothing was started\n"), "{errors}");
    }
    assert!(!root.exists());
    assert!(!world.home().join(".local").exists());
}

#[test]
fn check_prints_what_would_run() {
    let world = World::new();
    let output = world.subdeck(&fixtures(), &["check", "small.json"]);
    assert_eq!(output.status.code(), Some(0));
    let cwd = fixtures().canonicalize().unwrap();
    let expected = format!(
        "small: 2 steps in {}\n\n1. scout\n   runner   pi, can be steered\n   model    small  thinking low\n   \
         task     Look around\n   tools    read, grep, find, ls\n   limits   time 5m\n\n\
         group of 1, all at once\n  2. sh\n     runner   command: sh -c true\n",
        cwd.display()
    );
    assert_eq!(text(&output.stdout), expected);

    let output = world.subdeck(&fixtures(), &["check", "--json", "small.json"]);
    let report = json(&output.stdout);
    assert_eq!((&report["ok"], &report["plan"]["steps"][0]["id"]), (&Value::Bool(true), &"scout".into()));
    let output = world.subdeck(&fixtures(), &["check", "--json", "mistakes.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let report = json(&output.stdout);
    assert_eq!(report["ok"], Value::Bool(false));
    let first = &report["problems"][0];
    assert_eq!((&first["line"], &first["column"], &first["key"]), (&1.into(), &1.into(), &"nmae".into()));
}

#[test]
fn check_reads_standard_input_and_never_prints_values_of_variables() {
    let world = World::new();
    let mut command = Command::cargo_bin("subdeck").unwrap();
    let plan = "env = { TOKEN = \"s3cret\" }\n[[step]]\nrunner = { command = \"sh\" }\nlabel = \"\\u001b[31mred\"\n";
    command.env_clear().env("HOME", world.home()).env("PATH", "/usr/bin:/bin").current_dir(fixtures());
    for args in [&["check", "-"][..], &["check", "-", "--json"]] {
        let output = command.args(args).write_stdin(plan).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let all = text(&output.stdout) + &text(&output.stderr);
        assert!(all.contains("TOKEN") && !all.contains("s3cret") && !all.contains('\u{1b}'), "{all}");
        command = Command::cargo_bin("subdeck").unwrap();
        command.env_clear().env("HOME", world.home()).env("PATH", "/usr/bin:/bin").current_dir(fixtures());
    }
}

#[test]
fn agents_are_listed_with_what_is_wrong() {
    let world = World::new();
    let folder = world.home().join("project/.pi/agents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.md"), "---\nname: helper\ndescription: Helps\ntools: read\n---\nYou help.\n")
        .unwrap();
    std::fs::write(folder.join("b.md"), "no front matter\n").unwrap();
    let cwd = world.home().join("project");
    let output = world.subdeck(&cwd, &["agents"]);
    assert_eq!(
        text(&output.stdout),
        "AGENT   MODEL  TOOLS  FILE             FOR\nhelper  own    read   .pi/agents/a.md  Helps\n\
         skipped: .pi/agents/b.md: there is no front matter between `---` lines at the top\n"
    );
    let report = json(&world.subdeck(&cwd, &["agents", "--json"]).stdout);
    assert_eq!(report["agents"][0]["name"], "helper");
    assert_eq!(report["skipped"].as_array().unwrap().len(), 1);
}

#[test]
fn config_explains_and_trusts() {
    let world = World::new();
    let project = world.home().join("project");
    std::fs::create_dir_all(project.join(".subdeck")).unwrap();
    let file = project.join(".subdeck/config.toml");
    std::fs::write(&file, "[executables]\npi = \"my-pi\"\n[env]\nTOKEN = \"s3cret\"\n[ui]\nascii = true\n").unwrap();
    let explain = || world.subdeck(&project, &["config", "explain"]);
    let row = |output: &Output, key: &str| {
        let stdout = text(&output.stdout);
        assert!(!stdout.contains("s3cret"), "{stdout}");
        stdout.lines().find(|l| l.starts_with(key)).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let output = explain();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(row(&output, "executables.pi"), "executables.pi pi built in");
    let file = file.canonicalize().unwrap();
    assert!(row(&output, "ui.ascii").ends_with(".subdeck/config.toml:6"), "{}", row(&output, "ui.ascii"));
    assert!(text(&output.stderr).contains("subdeck config trust"), "{}", text(&output.stderr));

    let output = world.subdeck(&project, &["config", "trust"]);
    let expected = format!("trusted {}\nnames   executables.pi = my-pi\nsets    TOKEN\nsha256  ", file.display());
    assert!(text(&output.stdout).starts_with(&expected), "{}", text(&output.stdout));
    let output = explain();
    assert!(row(&output, "executables.pi").starts_with("executables.pi my-pi "), "{}", row(&output, "executables.pi"));
    assert!(row(&output, "env.TOKEN").starts_with("env.TOKEN set "));
    assert_eq!(text(&output.stderr), "");
    let listed = world.subdeck(&project, &["config", "trust", "--list"]);
    assert_eq!(text(&listed.stdout), format!("{}\n", file.display()));
    world.subdeck(&project, &["config", "trust", "--remove"]);
    assert_eq!(row(&explain(), "executables.pi"), "executables.pi pi built in");

    std::fs::write(&file, "[ui]\nthem = \"mono\"\n").unwrap();
    let output = explain();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("did you mean `theme`?"), "{}", text(&output.stderr));
    let report = json(&world.subdeck(&project, &["config", "explain", "--json"]).stdout);
    assert_eq!(report["problems"][0]["line"], 2);
}

#[test]
fn schemas_pages_and_completions_are_printed() {
    let world = World::new();
    let schema = world.subdeck(&fixtures(), &["schema", "plan"]);
    assert_eq!(json(&schema.stdout)["title"], "Subdeck plan");
    for (args, part) in [
        (&["man"][..], ".TH subdeck 1"),
        (&["man", "check"], "subdeck\\-check"),
        (&["completions", "bash"], "_subdeck()"),
        (&["completions", "zsh"], "#compdef subdeck"),
        (&["completions", "fish"], "complete -c subdeck"),
        (&["help", "exit-codes"], "8  `wait` ran out of time"),
    ] {
        let output = world.subdeck(&fixtures(), args);
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(text(&output.stdout).contains(part), "{args:?}\n{}", text(&output.stdout));
    }
    let output = world.subdeck(&fixtures(), &["man", "nothing"]);
    assert_eq!(
        (output.status.code(), text(&output.stderr).as_str()),
        (Some(2), "subdeck: there is no command `nothing`\n")
    );
}
