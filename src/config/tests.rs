//! Layers, problems and trust, on real files below a temporary folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::{Config, Env, Key, Origin, Setting, Trust, Value};
use super::KEYS;
use crate::run::Permission;

struct World {
    temp: tempfile::TempDir,
    env: Env,
}

impl World {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let cwd = root.join("repo/deep");
        std::fs::create_dir_all(&cwd).unwrap();
        std::fs::create_dir_all(root.join("repo/.git")).unwrap();
        let mut env = Env { current_dir: cwd, ..Env::default() };
        env.vars.insert("HOME".into(), root.join("home").to_str().unwrap().into());
        Self { temp, env }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.temp.path().canonicalize().unwrap().join(path)
    }

    fn put(&self, path: &str, text: &str) -> PathBuf {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn user(&self, text: &str) -> PathBuf {
        self.put("home/.config/subdeck/config.toml", text)
    }

    fn project(&self, text: &str) -> PathBuf {
        self.put("repo/.subdeck/config.toml", text)
    }

    fn set(&mut self, name: &str, value: &str) {
        self.env.vars.insert(name.into(), value.into());
    }

    /// The configuration; nothing may be wrong with it.
    fn config(&self) -> Config {
        let (config, problems) = Config::load(&self.env);
        assert_eq!(problems, []);
        config
    }

    /// What is wrong: file name, line, key, message.
    fn problems(&self) -> Vec<(String, usize, String, String)> {
        let (_, problems) = Config::load(&self.env);
        let name = |file: &str| Path::new(file).file_name().unwrap().to_str().unwrap().to_owned();
        problems.into_iter().map(|p| (name(&p.file), p.position.map_or(0, |p| p.line), p.key, p.message)).collect()
    }
}

#[test]
fn without_anything_the_built_in_values_hold() {
    let world = World::new();
    let config = world.config();
    assert_eq!((config.root(), config.roots(), config.pi_program()), (None, &[][..], None));
    assert_eq!((config.capture_step(), config.capture_run()), (2 << 30, 8 << 30));
    assert_eq!((config.theme(), config.output(), config.ascii(), config.mouse()), ("auto", "text", None, false));
    assert_eq!(config.user_file(), Some(world.path("home/.config/subdeck/config.toml").as_path()));
    assert_eq!(config.project_file(), None);
    // The built-in words are values of their keys.
    for key in KEYS.iter().filter(|k| !k.built_in.is_empty()) {
        assert!(key.kind.parse(key.built_in, Path::new("/"), &world.env).is_ok(), "{}", key.name);
    }
}

#[test]
fn every_layer_goes_before_the_one_below() {
    let mut world = World::new();
    world.set("PI_SUBAGENT_TOOL_TIMEOUT_MS", "1500");
    let timeout = |world: &World| world.config().defaults().tool_timeout.map(|d| d.as_millis());
    assert_eq!(timeout(&world), Some(1500));
    let user = world.user("[defaults]\ntool_timeout = \"2s\"\nmodel = \"u\"\n");
    assert_eq!(timeout(&world), Some(2000));
    let project = world.project("[defaults]\ntool_timeout = \"3s\"\n");
    assert_eq!(timeout(&world), Some(3000));
    world.set("SUBDECK_TOOL_TIMEOUT", "4s");
    assert_eq!(timeout(&world), Some(4000));
    let config = world.config();
    assert_eq!(config.defaults().model.as_deref(), Some("u"));
    let origins: Vec<Origin> = config.settings("defaults.tool_timeout").iter().map(|s| s.origin.clone()).collect();
    assert_eq!(
        origins,
        [
            Origin::Fallback("PI_SUBAGENT_TOOL_TIMEOUT_MS".into()),
            Origin::User(user, 2),
            Origin::Project(project, 2),
            Origin::Environment("SUBDECK_TOOL_TIMEOUT".into()),
        ]
    );
}

#[test]
fn every_key_can_be_set_in_a_file_and_by_its_variable() {
    let mut world = World::new();
    let examples = |key: &Key| match key.name {
        "root" => ("\"~/runs\"", "/runs"),
        "roots" => ("[\"a\", \"/b\"]", "a:/b"),
        "defaults.concurrency" => ("3", "3"),
        "defaults.output" => ("\"jsonl\"", "jsonl"),
        "defaults.permission" => ("\"deny\"", "deny"),
        "defaults.runner" => ("\"claude\"", "claude"),
        "defaults.permission_tools" => {
            ("{ Write = \"deny\", \"Bash(git *)\" = \"allow\" }", "Write=deny,Bash(git *)=allow")
        }
        "ui.theme" => ("\"mono\"", "mono"),
        "ui.notify" => ("\"bell\"", "osc9"),
        "ui.notify_hook" => ("[\"tell\", \"-q\"]", "tell,-q"),
        "read_only" | "ui.ascii" | "ui.mouse" | "defaults.attention.enabled" => ("true", "1"),
        "defaults.attention.tools" => ("{ bash = \"20m\", web = false }", "bash=20m, web=off"),
        "defaults.attention.exempt" | "defaults.tool_timeout_exempt" => ("[\"ask\", \"wait\"]", "ask,wait"),
        "defaults.attention.long_running_turns" | "defaults.attention.long_running_tokens" => ("40", "40"),
        "defaults.attention.tool_failures" | "defaults.attention.repeated_calls" => ("false", "off"),
        name if name.starts_with("defaults.attention.") => ("\"90s\"", "90s"),
        "defaults.time" | "defaults.tool_timeout" | "defaults.question_timeout" => ("\"90s\"", "90s"),
        "capture.step" | "capture.run" => ("\"5MiB\"", "5MiB"),
        _ => ("\"word\"", "word"),
    };
    let mut text = String::new();
    for key in KEYS {
        let dotted = format!("{} = {}\n", key.name, examples(key).0);
        text.push_str(&dotted);
    }
    world.user(&text);
    let config = world.config();
    for key in KEYS {
        assert!(matches!(config.settings(key.name), [Setting { origin: Origin::User(..), .. }]), "{}", key.name);
    }
    assert_eq!(config.root(), Some(world.path("home/runs").as_path()));
    assert_eq!(config.roots(), [world.path("home/.config/subdeck/a"), PathBuf::from("/b")]);
    assert_eq!((config.capture_step(), config.theme(), config.ascii()), (5 << 20, "mono", Some(true)));
    let of_file = config.defaults();
    let thresholds = of_file.attention.thresholds();
    assert_eq!((thresholds.idle_ms, thresholds.long_turns, thresholds.repeats), (Some(90_000), Some(40), None));
    assert_eq!((thresholds.tool_open("bash"), thresholds.tool_open("web")), (Some(1_200_000), None));
    let rules: Vec<_> = of_file.permission.tools.iter().map(|r| (r.pattern.as_str(), r.permission)).collect();
    assert_eq!(rules, [("Write", Permission::Deny), ("Bash(git *)", Permission::Allow)]);
    assert_eq!(
        (of_file.permission.otherwise, of_file.question_timeout),
        (Permission::Deny, Some(Duration::from_secs(90)))
    );
    assert_eq!(of_file.tool_exempt, Some(vec!["ask".to_owned(), "wait".to_owned()]));
    for key in KEYS {
        world.set(key.variables[0], examples(key).1);
    }
    let config = world.config();
    for key in KEYS {
        let last = config.settings(key.name).last().unwrap();
        assert_eq!(last.origin, Origin::Environment(key.variables[0].into()), "{}", key.name);
    }
    assert_eq!(config.roots(), [world.path("repo/deep/a"), PathBuf::from("/b")]);
    assert_eq!(config.defaults(), of_file);
}

#[test]
fn the_built_in_limits_of_single_tools_are_shown_as_they_are() {
    use crate::run::Limits;
    let note = Key::named("defaults.tool_timeout").unwrap().note;
    let (time, tools) = note.split_once(" for ").unwrap();
    assert_eq!(crate::text::parse_duration(time).unwrap().as_millis(), u128::from(Limits::TOOL_FAST_MS));
    let tools: Vec<&str> = tools.split([',', ' ']).filter(|word| !matches!(*word, "" | "and")).collect();
    assert_eq!(tools, Limits::TOOLS_FAST);
}

#[test]
fn built_in_thresholds_are_shown_as_they_are() {
    let world = World::new();
    let text: String = KEYS
        .iter()
        .filter(|key| key.name.starts_with("defaults.attention.") && !key.built_in.is_empty())
        .map(|key| match key.kind {
            super::Kind::TimeRule => format!("{} = \"{}\"\n", key.name, key.built_in),
            _ => format!("{} = {}\n", key.name, key.built_in),
        })
        .collect();
    world.user(&text);
    assert_eq!(world.config().defaults().attention.thresholds(), crate::run::Thresholds::default());
}

#[test]
fn a_limit_on_tool_calls_that_cannot_be_had_names_its_source() {
    let mut world = World::new();
    let sources = |world: &World| world.problems().into_iter().map(|p| (p.0, p.1)).collect::<Vec<_>>();
    world.set("PI_SUBAGENT_TOOL_TIMEOUT_MS", "  ");
    assert_eq!(sources(&world), []);
    for text in ["0", "1.5", "2147483648", "5m", "-1"] {
        world.set("PI_SUBAGENT_TOOL_TIMEOUT_MS", text);
        assert_eq!(sources(&world), [("environment PI_SUBAGENT_TOOL_TIMEOUT_MS".to_owned(), 0)], "{text}");
    }
    world.set("PI_SUBAGENT_TOOL_TIMEOUT_MS", "2147483647");
    assert_eq!(sources(&world), []);
    world.user("[defaults]\ntool_timeout = \"25d\"\n");
    assert_eq!(sources(&world), [("config.toml".to_owned(), 2)]);
}

#[test]
fn what_is_wrong_is_named_with_its_place_and_the_rest_holds() {
    let mut world = World::new();
    world.user(
        "rooot = \"x\"\nroots = \"x\"\n[defaults]\ntime = 5\nmodel = \"m\"\nconcurrency = 0\n\
         attention = { idle = true, idel = 5, tools = { bash = 5 } }\n[capture]\nstep = 5\nrun = \"5 parsecs\"\n[ui]\ntheme = \"pink\"\nascii = \"yes\"\nmuose = true\n",
    );
    world.set("SUBDECK_CONCURRENCY", "many");
    let user = "config.toml";
    let expected = [
        (user, 1, "rooot", "unknown key `rooot`"),
        (user, 2, "roots", "a list of folders is needed here, not a text"),
        (user, 4, "defaults.time", "a time needs its unit"),
        (user, 6, "defaults.concurrency", "a whole number of at least 1 is needed here"),
        (user, 7, "defaults.attention.idle", "a time like \"2m\" or false is needed here, not true"),
        (user, 7, "defaults.attention.idel", "unknown key `idel`"),
        (user, 7, "defaults.attention.tools.bash", "a time needs its unit"),
        (user, 9, "capture.step", "a size needs its unit"),
        (user, 10, "capture.run", "unknown unit"),
        (user, 12, "ui.theme", "`16` or `mono` is needed"),
        (user, 13, "ui.ascii", "true or false is needed here, not a text"),
        (user, 14, "ui.muose", "unknown key `muose`"),
        ("environment SUBDECK_CONCURRENCY", 0, "defaults.concurrency", "`many`: a whole number"),
    ];
    let problems = world.problems();
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    for (found, wanted) in problems.iter().zip(expected) {
        assert_eq!((found.0.as_str(), found.1, found.2.as_str()), (wanted.0, wanted.1, wanted.2), "{found:?}");
        assert!(found.3.contains(wanted.3), "{found:?}");
    }
    assert_eq!(Config::load(&world.env).0.defaults().model.as_deref(), Some("m"));
    for problem in Config::load(&world.env).1 {
        // A key of a newer version makes nothing useless; a wrong value is not guessed.
        let unknown = problem.message.starts_with("unknown key");
        assert_eq!(problem.severity == crate::plan::Severity::Warning, unknown, "{problem:?}");
    }
    world.user("a = = b");
    assert!(world.problems()[0].3.starts_with("not valid TOML"), "{:?}", world.problems());
}

#[test]
fn a_project_names_programs_only_while_it_is_trusted_as_it_is() {
    let world = World::new();
    let text = "[executables]\npi = \"./evil\"\n[env]\nTOKEN = \"x\"\n[defaults]\nmodel = \"m\"\n";
    let file = world.project(text);
    let untrusted = || {
        let (config, problems) = Config::load(&world.env);
        assert_eq!((config.pi_program(), config.defaults().env), (None, vec![]));
        assert_eq!(config.defaults().model.as_deref(), Some("m"));
        assert_eq!(config.project_trusted(), Some(false));
        problems.into_iter().map(|p| p.message).collect::<Vec<_>>()
    };
    let refused = |why: &str| {
        [format!("`executables.pi` is not used because {why}"), format!("`env.TOKEN` is not used because {why}")]
    };
    assert_eq!(untrusted(), refused("the project is not trusted"));

    Trust::open(&world.env).add(&file).unwrap();
    let config = world.config();
    assert_eq!(config.pi_program(), Some(world.path("repo/./evil").to_str().unwrap()));
    assert_eq!(config.defaults().env, [("TOKEN".to_owned(), "x".to_owned())]);
    assert_eq!(config.project_trusted(), Some(true));

    world.project(&text.replace("evil", "worse"));
    assert_eq!(untrusted(), refused("the file changed since it was trusted"));

    Trust::open(&world.env).add(&file).unwrap();
    assert_eq!(Trust::open(&world.env).trusted().len(), 1);
    assert_eq!(Trust::open(&world.env).remove(&world.path("repo")).unwrap(), 1);
    assert_eq!(untrusted(), refused("the project is not trusted"));

    // The user's own file needs no trust.
    world.user("[executables]\npi = \"mine\"\n");
    assert_eq!(Config::load(&world.env).0.pi_program(), Some("mine"));
}

#[test]
fn the_list_of_trusted_projects_is_for_its_owner_alone_and_a_broken_one_trusts_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let file = world.project("[executables]\npi = \"p\"\n");
    Trust::open(&world.env).add(&file).unwrap();
    let list = world.path("home/.local/state/subdeck/trusted.json");
    assert_eq!(std::fs::metadata(&list).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(list.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    std::fs::write(&list, "{").unwrap();
    assert_eq!(Config::load(&world.env).0.pi_program(), None);
}

#[test]
fn a_project_ends_at_the_root_of_its_repository() {
    let world = World::new();
    world.put(".subdeck/config.toml", "[defaults]\nmodel = \"outside\"\n");
    assert_eq!(world.config().project_file(), None);
    let near = world.put("repo/deep/.subdeck/config.toml", "[defaults]\nmodel = \"near\"\n");
    world.project("[defaults]\nmodel = \"far\"\n");
    let config = world.config();
    assert_eq!((config.project_file(), config.defaults().model.as_deref()), (Some(near.as_path()), Some("near")));
    let value = &config.settings("defaults.model")[0].value;
    assert_eq!(*value, Value::Text("near".into()));
}

#[test]
fn what_is_no_file_is_not_opened() {
    let world = World::new();
    let pipe = world.path("repo/.subdeck/config.toml");
    std::fs::create_dir_all(pipe.parent().unwrap()).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert_eq!(world.problems()[0].3, "not a regular file");
}
