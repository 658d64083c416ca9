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
        let temp = tempfile::tempdir().unwrap();
        // The agent that plans mean when they name none.
        std::fs::create_dir(temp.path().join("bin")).unwrap();
        let pi = temp.path().join("bin/pi");
        std::fs::write(&pi, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&pi, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        Self { temp }
    }

    fn home(&self) -> &Path {
        self.temp.path()
    }

    /// The program with a home of its own and nothing else of this machine.
    fn subdeck(&self, cwd: &Path, args: &[&str]) -> Output {
        let mut command = Command::cargo_bin("subdeck").unwrap();
        let path = format!("{}:/usr/bin:/bin", self.home().join("bin").display());
        command.env_clear().env("HOME", self.home()).env("PATH", path).current_dir(cwd);
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
        "small: 2 steps in {}\n\n1. scout\n   runner    pi, can be steered\n   model     small  thinking low\n   \
         task      Look around\n   tools     read, grep, find, ls\n   limits    time 5m\n\n\
         group of 1, all at once\n  2. sh\n     runner    command: sh -c true\n",
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
fn check_prints_limits_and_the_thresholds_that_are_set() {
    let world = World::new();
    let plan = "attention = { idle = \"2m\", tools = { web = false }, exempt = [\"ask\"], tool_failures = false }\n\
                [[step]]\nrunner = { command = \"sh\" }\ntool_timeout = \"5m\"\ntool_timeout_exempt = [\"bash\"]\n\
                budget = { tool_calls = { soft = 2, hard = 3, block = [\"read\", \"ls\"] } }\n";
    let check = |plan: &str| {
        let mut command = Command::cargo_bin("subdeck").unwrap();
        command.env_clear().env("HOME", world.home()).env("PATH", "/usr/bin:/bin").current_dir(fixtures());
        let output = command.args(["check", "-"]).write_stdin(plan).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
        text(&output.stdout)
    };
    let shown = check(plan);
    let lines: Vec<&str> = shown.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "attention  idle 2m, web off, exempt ask, tool_failures off",
            "",
            "1. sh",
            "   runner    command: sh",
            "   limits    tool calls 3 with a warning at 2, then none of read ls, a tool call 5m, \
             no time limit for calls of bash",
        ]
    );
    // How long a question waits, of all steps or of one.
    let asks = |plan: &str| -> Vec<String> {
        check(plan).lines().filter(|l| l.contains("questions")).map(|l| l.trim().to_owned()).collect()
    };
    assert_eq!(asks(plan), Vec::<String>::new());
    let waits = format!("question_timeout = \"30m\"\n{plan}");
    assert_eq!(asks(&waits), ["questions  refused when nobody answers for 30m"]);
    let own = format!("{waits}[[step]]\nrunner = {{ command = \"sh\" }}\nquestion_timeout = \"2h\"\n");
    let each = ["30m", "2h"].map(|time| format!("questions refused when nobody answers for {time}"));
    assert_eq!(asks(&own), each);
    let two = format!("{plan}[[step]]\nrunner = {{ command = \"sh\" }}\nattention = {{ enabled = false }}\n");
    let shown = check(&two);
    let looks: Vec<&str> = shown.lines().filter(|l| l.contains("attention")).map(str::trim).collect();
    assert_eq!(looks, ["attention idle 2m, web off, exempt ask, tool_failures off", "attention off"]);
}

#[test]
fn a_limit_of_the_environment_that_cannot_be_had_starts_nothing() {
    let world = World::new();
    let root = world.home().join("runs");
    for args in [&["check", "small.toml"][..], &["run", "--no-tui", "--root", root.to_str().unwrap(), "small.toml"]] {
        let mut command = Command::cargo_bin("subdeck").unwrap();
        command.env_clear().env("HOME", world.home()).env("PATH", "/usr/bin:/bin").current_dir(fixtures());
        let output = command.env("PI_SUBAGENT_TOOL_TIMEOUT_MS", "soon").args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains("environment PI_SUBAGENT_TOOL_TIMEOUT_MS"), "{}", text(&output.stderr));
    }
    assert!(!root.exists());
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
    std::fs::write(
        folder.join("a.md"),
        "---\nname: helper\ndescription: Helps\nrunner: claude\ntools: read\n---\nYou help.\n",
    )
    .unwrap();
    std::fs::write(folder.join("b.md"), "no front matter\n").unwrap();
    let cwd = world.home().join("project");
    let output = world.subdeck(&cwd, &["agents"]);
    assert_eq!(
        text(&output.stdout),
        "AGENT   RUNNER  MODEL  TOOLS  FILE             FOR\nhelper  claude  own    read   .pi/agents/a.md  Helps\n\
         skipped: .pi/agents/b.md: there is no front matter between `---` lines at the top\n"
    );
    let report = json(&world.subdeck(&cwd, &["agents", "--json"]).stdout);
    assert_eq!((&report["agents"][0]["name"], &report["agents"][0]["runner"]), (&"helper".into(), &"claude".into()));
    assert_eq!(report["skipped"].as_array().unwrap().len(), 1);
}

#[test]
fn a_definition_that_stands_in_for_a_nearer_one_is_told_wherever_it_counts() {
    let world = World::new();
    let project = world.home().join("project");
    let put = |folder: &Path, text: &str| {
        std::fs::create_dir_all(folder.join(".subdeck/agents")).unwrap();
        std::fs::write(folder.join(".subdeck/agents/helper.md"), text).unwrap();
    };
    put(&project, "---\nname: helper\nrunner: clod\n---\nThe near one.\n");
    put(world.home(), "---\nname: helper\nrunner: demo\n---\nThe far one.\n");
    std::fs::write(project.join("plan.toml"), "[[step]]\nagent = \"helper\"\ntask = \"Help.\"\nrunner = \"pi\"\n")
        .unwrap();
    let checked = world.subdeck(&project, &["check", "plan.toml"]);
    let told = text(&checked.stderr);
    assert_eq!(checked.status.code(), Some(0), "{told}");
    assert!(told.contains("a nearer definition cannot be used") && told.contains("plan.toml:2:"), "{told}");
    assert!(told.contains("`runner` is `clod`, not `pi`"), "{told}");
    let listed = text(&world.subdeck(&project, &["agents"]).stdout);
    let near = ".subdeck/agents/helper.md";
    assert!(listed.contains(&format!("note: ~/{near} stands in for {near}, which cannot be used\n")), "{listed}");
    assert!(listed.contains(&format!("skipped: {near}: ")), "{listed}");
    let report = json(&world.subdeck(&project, &["agents", "--json"]).stdout);
    let instead = report["agents"][0]["instead_of"].as_str().unwrap();
    assert!(instead.ends_with("project/.subdeck/agents/helper.md"), "{report}");
}

/// It is named by a plan, a definition, the configuration and the command line alike.
#[test]
fn the_scripted_agent_runs_by_its_word_alone() {
    let world = World::new();
    let project = world.home().join("project");
    std::fs::create_dir_all(project.join(".subdeck/agents")).unwrap();
    std::fs::write(project.join(".subdeck/agents/played.md"), "---\nname: played\nrunner: demo\n---\nPlay.\n").unwrap();
    for (args, usual) in [
        (&["--runner", "demo", "Look around"][..], None),
        (&["--agent", "played", "Look around"], None),
        (&["--agent", "scout", "Look around"], Some("demo")),
    ] {
        let mut command = Command::cargo_bin("subdeck").unwrap();
        command.env_clear().env("HOME", world.home()).env("PATH", "/usr/bin:/bin").current_dir(&project);
        command.env("SUBDECK_DEMO_SPEED", "1000").envs(usual.map(|word| ("SUBDECK_RUNNER", word)));
        let done = command.args(["run", "--no-tui", "--output", "json"]).args(args).write_stdin("").output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{args:?}: {}", text(&done.stderr));
        assert_eq!(json(&done.stdout)["steps"][0]["runner"], "demo", "{args:?}");
    }
}

#[test]
fn config_explains_and_trusts() {
    let world = World::new();
    let project = world.home().join("project");
    std::fs::create_dir_all(project.join(".subdeck")).unwrap();
    let file = project.join(".subdeck/config.toml");
    std::fs::write(&file, "[executables]\npi = \"my-pi\"\n[env]\nTOKEN = \"s3cret\"\n[ui]\nascii = true\n").unwrap();
    let explain = || world.subdeck(&project, &["config", "explain"]);
    let bare = world.subdeck(&project, &["config"]);
    assert_eq!((bare.status.code(), bare.stdout), (Some(0), explain().stdout), "alone it explains");
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
    let told = text(&output.stderr);
    assert!(told.contains("subdeck config trust"), "{told}");
    assert!(told.contains("config.toml:4:1  env.TOKEN"), "the variable, not its table: {told}");

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

    std::fs::write(&file, "[ui]\nthem = \"mono\"\nascii = 3\n").unwrap();
    let output = explain();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("did you mean `theme`?"), "{}", text(&output.stderr));
    let report = json(&world.subdeck(&project, &["config", "explain", "--json"]).stdout);
    assert_eq!(report["problems"][0]["line"], 2);

    // Keys that the deck does not use are told as such, not as what is in force.
    let user = world.home().join(".config/subdeck/config.toml");
    std::fs::create_dir_all(user.parent().unwrap()).unwrap();
    std::fs::write(&user, "[keys]\nstop_step = \"F99\"\nhelp = \"h\"\n").unwrap();
    let output = explain();
    let ends = |key: &str, end: &str| row(&output, key).ends_with(end);
    assert!(ends("keys.stop_step", "config.toml:2 (not used)"), "{}", row(&output, "keys.stop_step"));
    assert!(ends("keys.help", "config.toml:3"), "{}", row(&output, "keys.help"));
    let report = json(&world.subdeck(&project, &["config", "explain", "--json"]).stdout);
    let used: Vec<_> = report["keys"].as_array().unwrap().iter().map(|k| (&k["action"], &k["used"])).collect();
    assert_eq!(used, [(&"help".into(), &true.into()), (&"stop_step".into(), &false.into())]);
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

/// What a shell would wait for without end: the command has to say so at once.
fn fifo(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn what_is_no_regular_file_is_refused_wherever_a_person_names_one() {
    let world = World::new();
    let cwd = world.home().join("work");
    std::fs::create_dir(&cwd).unwrap();
    fifo(&cwd.join("pipe.toml"));
    for args in [&["check", "pipe.toml"][..], &["run", "--no-tui", "pipe.toml"]] {
        let output = world.subdeck(&cwd, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = text(&output.stderr);
        assert!(said.contains("pipe.toml") && said.contains("not a regular file") && said.contains("`-`"), "{said}");
    }
    let plan =
        |runner: &str| format!("[[step]]\ntask = \"t\"\nrunner = {{ type = \"demo\", script = \"{runner}\" }}\n");
    std::fs::write(cwd.join("script.toml"), plan("./pipe.toml")).unwrap();
    let output = world.subdeck(&cwd, &["check", "script.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("it is not a regular file"), "{}", text(&output.stderr));
    // A device that never ends, in the place of the user's configuration and of an agent.
    std::os::unix::fs::symlink("/dev/zero", cwd.join("zero.toml")).unwrap();
    assert!(text(&world.subdeck(&cwd, &["check", "zero.toml"]).stderr).contains("not a regular file"));
    fifo(&cwd.join(".subdeck/agents/a.md"));
    fifo(&cwd.join(".subdeck/config.toml"));
    let output = world.subdeck(&cwd, &["agents"]);
    assert!(text(&output.stdout).contains("a.md: not a regular file"), "{output:?}");
    assert_eq!(world.subdeck(&cwd, &["config", "trust"]).status.code(), Some(2));
}

#[test]
fn a_scene_that_does_not_exist_is_an_error_with_its_place_and_the_nearest_one() {
    let world = World::new();
    let plan = "[[step]]\ntask = \"t\"\nrunner = { type = \"demo\", script = \"defualt\" }\n";
    std::fs::write(world.home().join("plan.toml"), plan).unwrap();
    let root = world.home().join("runs");
    let run = ["run", "--no-tui", "--root", root.to_str().unwrap(), "plan.toml"];
    for args in [&["check", "plan.toml"][..], &run] {
        let output = world.subdeck(world.home(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = text(&output.stderr);
        assert!(said.contains("there is no scene `defualt`") && said.contains("did you mean `default`?"), "{said}");
        assert!(said.contains("plan.toml:3:36"), "{said}");
    }
    assert!(!root.exists());
    std::fs::write(world.home().join("own.toml"), "[[scene.a.turn]]\nsay = \"x\"\n[[scene.b.turn]]\nsay = \"y\"\n")
        .unwrap();
    for (script, code, said) in
        [("own.toml#a", 0, ""), ("own.toml#c", 2, "use `a` or `b`"), ("later.toml", 0, "cannot be read")]
    {
        std::fs::write(world.home().join("plan.toml"), plan.replace("defualt", script)).unwrap();
        let output = world.subdeck(world.home(), &["check", "plan.toml"]);
        assert_eq!(output.status.code(), Some(code), "{script} {output:?}");
        assert!(text(&output.stderr).contains(said), "{script} {output:?}");
    }
}

#[test]
fn a_program_that_is_missing_is_told_before_anything_starts() {
    let world = World::new();
    let root = world.home().join("runs");
    let root = root.to_str().unwrap();
    for args in [
        &["run", "--no-tui", "--root", root, "--", "no-such-program"][..],
        &["run", "--no-tui", "--root", root, "--", "/no/such"],
    ] {
        let output = world.subdeck(world.home(), args);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains("was not found"), "{output:?}");
    }
    assert!(!Path::new(root).exists());
    // What a step before it makes is not missed.
    let plan = r#"
        [[step]]
        runner = { type = "external-cli", command = "sh", args = ["-c", "printf '#!/bin/sh\necho made' > tool; chmod +x tool"] }
        [[step]]
        runner = { type = "external-cli", command = "./tool" }
    "#;
    std::fs::write(world.home().join("plan.toml"), plan).unwrap();
    let output = world.subdeck(world.home(), &["run", "--no-tui", "--root", root, "plan.toml"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stderr).contains("warning: the program `./tool`"), "{output:?}");
    // Gone again, it is missed by a retry of what needed it.
    let output = world.subdeck(world.home(), &["run", "--no-tui", "--root", root, "--", "sh", "-c", "exit 1"]);
    assert_eq!(output.status.code(), Some(1));
    let mut retry = Command::cargo_bin("subdeck").unwrap();
    retry.env_clear().env("HOME", world.home()).env("PATH", "/nowhere").current_dir(world.home());
    let output = retry.args(["retry", "--no-tui", "--root", root]).write_stdin("").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("the program `sh` of step `sh` was not found"), "{output:?}");
}

#[test]
fn a_wrong_value_of_the_configuration_keeps_a_run_from_starting_and_an_unknown_key_does_not() {
    let world = World::new();
    let root = world.home().join("runs");
    let file = world.home().join(".config/subdeck/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let run = ["run", "--no-tui", "--root", root.to_str().unwrap(), "--", "true"];
    std::fs::write(&file, "[defaults]\ntime = 5\n").unwrap();
    std::fs::write(
        world.home().join("plan.toml"),
        "[[step]]\nrunner = { type = \"external-cli\", command = \"true\" }\n",
    )
    .unwrap();
    for args in [&run[..], &["demo", "--no-tui"], &["check", "plan.toml"], &["config", "explain"]] {
        let output = world.subdeck(world.home(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?} {output:?}");
        assert!(text(&output.stderr).contains("config.toml:2:8"), "{args:?} {output:?}");
    }
    assert!(!root.exists());
    // Looking goes on.
    assert_eq!(world.subdeck(world.home(), &["ls"]).status.code(), Some(0));
    std::fs::write(&file, "[defaults]\ntiem = \"5m\"\n").unwrap();
    for args in [&run[..], &["config", "explain"]] {
        let output = world.subdeck(world.home(), args);
        assert_eq!(output.status.code(), Some(0), "{args:?} {output:?}");
        let said = text(&output.stderr);
        assert!(said.contains("warning: unknown key `tiem`") && said.contains("did you mean `time`?"), "{said}");
    }
}

#[test]
fn places_that_a_runner_config_names_are_shown() {
    let world = World::new();
    let far = world.home().join("far");
    let config = serde_json::json!({
        "id": "r1", "cwd": world.home(), "placeholder": "{previous}", "asyncDir": far.join("r1"),
        "resultPath": far.join("r1.json"), "resultMode": "single",
        "steps": [{ "agent": "a", "runner": { "type": "external-cli", "command": "true" } }],
    });
    std::fs::write(world.home().join("config.json"), config.to_string()).unwrap();
    let shown = text(&world.subdeck(world.home(), &["check", "config.json"]).stdout);
    let (dir, result) = (far.join("r1"), far.join("r1.json"));
    assert!(shown.contains(&format!("run dir {}\n", dir.display())), "{shown}");
    assert!(shown.contains(&format!("result  {}\n", result.display())), "{shown}");
    let root = world.home().join("runs");
    let output = world.subdeck(world.home(), &["run", "--no-tui", "--root", root.to_str().unwrap(), "config.json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = text(&output.stderr);
    for (what, path) in [("the run directory", &dir), ("the result", &result)] {
        let line = format!("{what} is {}, outside of the root {}", path.display(), root.display());
        assert!(said.contains(&line), "{said}");
    }
    assert!(dir.join("status.json").exists());
    // Nor is anything written where others may write.
    let open = world.home().join("open/async-subagent-runs");
    std::fs::create_dir_all(&open).unwrap();
    std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let text_of = config.to_string().replace(far.to_str().unwrap(), open.to_str().unwrap());
    std::fs::write(world.home().join("config.json"), text_of).unwrap();
    let output = world.subdeck(world.home(), &["run", "--no-tui", "--root", root.to_str().unwrap(), "config.json"]);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert!(text(&output.stderr).contains("others may write into it"), "{output:?}");
    assert_eq!(std::fs::read_dir(&open).unwrap().count(), 0);
}

#[test]
fn what_is_printed_without_a_deck_is_set_by_the_configuration_and_a_flag_goes_before_it() {
    let world = World::new();
    let file = world.home().join(".config/subdeck/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "[defaults]\noutput = \"jsonl\"\n").unwrap();
    let root = world.home().join("runs");
    let root = root.to_str().unwrap();
    for (args, is_json) in [
        (&["run", "--root", root, "--", "echo", "x"][..], true),
        (&["run", "--root", root, "--output", "text", "--", "echo", "x"], false),
        (&["attach", "--root", root], true),
    ] {
        let output = world.subdeck(world.home(), args);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(text(&output.stdout).starts_with('{'), is_json, "{output:?}");
    }
}

#[test]
fn names_and_times_that_say_nothing_are_refused_where_they_are_typed() {
    let world = World::new();
    let project = world.home().to_path_buf();
    for (args, words) in
        [(["--name", " "], "a name has to have something in it"), (["--time", "0s"], "a time of zero allows nothing")]
    {
        let output = world.subdeck(&project, &["run", "--no-tui", args[0], args[1], "--", "true"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(words), "{}", text(&output.stderr));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_whose_name_is_no_text_is_refused_before_anything_starts() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    let folder = world.home().join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    std::fs::create_dir_all(&folder).unwrap();
    let output = world.subdeck(&folder, &["run", "--no-tui", "--", "true"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("is no UTF-8 text"), "{}", text(&output.stderr));
}
