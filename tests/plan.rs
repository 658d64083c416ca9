//! Plan files as people write them: what they become, and what every mistake gets.

use std::path::{Path, PathBuf};
use std::time::Duration;

use subdeck::plan::{
    self, Control, Input, Limit, LoadOptions, Loaded, LogicalStep, NotifyOn, PiTransport, Problem, Problems, Rule,
    Runner, Severity, Source, Step, SystemPromptMode,
};
use subdeck::run::{CostUsd, Family, NamedRunner, RunMode, Thresholds, ToolBlock, TurnLimit};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/plans")
}

fn options() -> LoadOptions {
    LoadOptions { current_dir: fixtures(), ..LoadOptions::default() }
}

fn load(name: &str) -> Result<Loaded, Problems> {
    plan::load(Input::Path(Path::new(name)), &options())
}

fn load_text(name: &str, text: &str) -> Result<Loaded, Problems> {
    plan::load_source(&Source::new(name, text), &fixtures(), &options())
}

fn steps(loaded: &Loaded) -> Vec<&Step> {
    loaded.plan.flat().collect()
}

#[test]
fn a_full_plan_is_resolved() {
    let loaded = load("full.toml").unwrap();
    let plan = &loaded.plan;
    assert_eq!(plan.name.as_deref(), Some("fix-flaky-tests"));
    assert_eq!(plan.task.as_deref(), Some("the tests under tests/"));
    assert_eq!(plan.cwd, fixtures());
    assert_eq!(plan.mode(), RunMode::Chain);
    assert_eq!(plan.budget.time, Some(Duration::from_secs(1800)));
    assert_eq!(plan.budget.idle, Some(Duration::from_secs(300)));
    assert_eq!(plan.budget.tokens.unwrap().soft, Some(200_000));
    assert_eq!(plan.budget.cost.unwrap().hard, Some(CostUsd(2.5)));

    let all = steps(&loaded);
    let keys: Vec<_> = all.iter().map(|s| s.key.as_str()).collect();
    assert_eq!(keys, ["scout", "worker", "sh", "show", "reviewer"]);
    let [scout, worker, lint, show, reviewer] = all[..] else { panic!() };

    assert_eq!(scout.models, ["small", "medium"]);
    assert_eq!(scout.thinking.as_deref(), Some("high"));
    assert_eq!(scout.tools.as_deref().unwrap(), ["read", "grep", "find", "ls"]);
    assert_eq!(scout.system_prompt.as_deref(), Some("You look and report. You change nothing."));
    assert_eq!(scout.system_prompt_mode, SystemPromptMode::Append);
    assert_eq!(scout.task, "Find what is flaky in {task}");
    assert_eq!(scout.tool_timeout, Some(Duration::from_secs(1200)));
    assert_eq!(scout.output.as_deref(), Some(Path::new("findings.md")));
    assert_eq!(scout.session_file, Some(fixtures().join("sessions/scout.jsonl")));
    assert_eq!(scout.env, [("CI".to_owned(), "1".to_owned())]);
    assert_eq!(scout.runner, Runner::Pi { transport: PiTransport::Rpc, command: None, args: vec![] });

    assert_eq!(worker.system_prompt_mode, SystemPromptMode::Replace);
    assert_eq!(worker.budget.turns, Some(TurnLimit { max: 40, grace: 2 }));
    assert_eq!(worker.tool_timeout, Some(Duration::from_secs(600)));
    assert_eq!(worker.phase.as_deref(), Some("work"));

    let args = vec!["-c".to_owned(), "true".to_owned()];
    assert_eq!(lint.runner, Runner::ExternalCli { command: "sh".to_owned(), args });
    assert_eq!((lint.label.as_deref(), lint.agent.as_str(), lint.task.as_str()), (Some("lint"), "sh", ""));
    assert_eq!(lint.env, [("CI".to_owned(), "1".to_owned()), ("QUIET".to_owned(), "1".to_owned())]);
    assert_eq!(show.runner, Runner::Demo { script: "default".to_owned() });
    assert_eq!((show.extensions.as_deref(), show.inherit_skills), (Some(&[][..]), false));

    assert_eq!(reviewer.models, ["large"]);
    assert_eq!(reviewer.env, [("CI".to_owned(), "0".to_owned()), ("DEPTH".to_owned(), "2".to_owned())]);
    assert_eq!(reviewer.budget.tool_calls.unwrap().soft, Some(20));
    assert_eq!(reviewer.budget.tool_block, Some(ToolBlock::Names(vec!["read".to_owned(), "grep".to_owned()])));
    assert_eq!((scout.budget.tool_block.as_ref(), &scout.tool_exempt[..]), (None, &["ask".to_owned()][..]));
    let of_plan = Thresholds {
        idle_ms: Some(120_000),
        tool_open_ms: Some(600_000),
        tool_open_of: [("bash".to_owned(), 1_200_000), ("web".to_owned(), 0)].into(),
        exempt: vec!["ask".to_owned()],
        long_ms: Some(3_600_000),
        failures: Some(2),
        first_event_ms: None,
        ..Thresholds::default()
    };
    assert_eq!(lint.attention, of_plan);
    let of_step = Thresholds {
        idle_ms: None,
        tool_open_of: [("bash".to_owned(), 1_200_000), ("web".to_owned(), 300_000)].into(),
        long_turns: Some(30),
        long_tokens: Some(100_000),
        repeats: Some(7),
        ..of_plan
    };
    assert_eq!(reviewer.attention, of_step);
    let LogicalStep::Group { concurrency, fail_fast, .. } = &plan.steps[1] else { panic!() };
    assert_eq!((*concurrency, *fail_fast), (2, true));
}

#[test]
fn a_plan_in_json_means_the_same() {
    let loaded = load("small.json").unwrap();
    assert_eq!(steps(&loaded).len(), 2);
    assert_eq!(steps(&loaded)[0].budget.time, Some(Duration::from_secs(300)));
    assert_eq!(loaded.warnings, []);
}

#[test]
fn ten_mistakes_are_ten_errors_with_positions() {
    let problems = load("mistakes.toml").unwrap_err();
    let errors: Vec<&Problem> = problems.0.iter().filter(|p| p.severity == Severity::Error).collect();
    let shown: Vec<String> = errors.iter().map(|p| format!("{} {}: {}", p.location(), p.key, p.message)).collect();
    let folder = fixtures().join("no/such/folder");
    assert_eq!(
        shown,
        [
            "mistakes.toml:1:1 nmae: unknown key `nmae`".to_owned(),
            format!("mistakes.toml:2:7 cwd: the folder `{}` does not exist", folder.display()),
            "mistakes.toml:5:8 budget.time: a time needs its unit".to_owned(),
            "mistakes.toml:6:19 budget.tokens.soft: the soft limit lies above the hard one and could never be reached"
                .to_owned(),
            "mistakes.toml:10:9 step[1].agent: there is no agent `scuot`".to_owned(),
            "mistakes.toml:14:6 step[2].id: the id `scout` is taken already on line 9".to_owned(),
            "mistakes.toml:15:10 step[2].runner: there is no runner `cluade`".to_owned(),
            "mistakes.toml:16:13 step[2].task: `{outputs.scuot}` names no earlier step".to_owned(),
            "mistakes.toml:19:15 step[3].concurrency: a whole number of at least 1 is needed here".to_owned(),
            "mistakes.toml:21:14 step[3].parallel[1].runner: the runner has no `command`".to_owned(),
        ]
    );
}

/// A step that is right, so that a row of the table holds one mistake.
const STEP: &str = "[[step]]\nagent = \"scout\"\ntask = \"t\"\n";

#[test]
fn every_mistake_has_its_place_its_words_and_its_advice() {
    // What stands before or after a good step, the key, line and column, a part of the message, a part of the advice.
    let table: &[(&str, &str, usize, usize, &str, &str)] = &[
        // Tops.
        ("", "step", 1, 1, "no steps", "[[step]]"),
        ("step = []", "step", 1, 8, "no steps", "[[step]]"),
        ("[step]\nagent = \"scout\"", "step", 1, 1, "a list of steps is needed here, not a table", "two brackets"),
        ("step = [5]", "step[1]", 1, 9, "a table of step keys is needed here, not a number", ""),
        ("steps = 1\nS", "steps", 1, 1, "unknown key `steps`", "[[step]]"),
        ("taks = 1\nS", "taks", 1, 1, "unknown key `taks`", "did you mean `task`?"),
        ("zzzz = 1\nS", "zzzz", 1, 1, "unknown key `zzzz`", "known here: name, task, cwd"),
        ("name = 5\nS", "name", 1, 8, "a text is needed here, not a number", "\"5\" in quotes"),
        ("name = \"\"\nS", "name", 1, 8, "`name` is empty", "leave the key out"),
        ("name = [1]\nS", "name", 1, 8, "a text is needed here, not a list", ""),
        ("name = 2020-01-01\nS", "name", 1, 8, "a text is needed here, not a date", ""),
        ("task = \"a\\u0000b\"\nS", "task", 1, 8, "NUL", ""),
        ("cwd = \"nowhere\"\nS", "cwd", 1, 7, "does not exist", "create it"),
        ("cwd = \"full.toml\"\nS", "cwd", 1, 7, "is not a folder", ""),
        ("concurrency = 0\nS", "concurrency", 1, 15, "a whole number of at least 1", ""),
        ("concurrency = 1.5\nS", "concurrency", 1, 15, "a whole number of at least 1", ""),
        ("concurrency = \"2\"\nS", "concurrency", 1, 15, "a whole number is needed here, not a text", ""),
        ("tool_timeout = 600\nS", "tool_timeout", 1, 16, "a time needs its unit", "\"600s\""),
        ("tool_timeout = \"600\"\nS", "tool_timeout", 1, 16, "unit", ""),
        ("tool_timeout = \"6 parsecs\"\nS", "tool_timeout", 1, 16, "parsecs", ""),
        ("tool_timeout = \"0s\"\nS", "tool_timeout", 1, 16, "a time of zero", "no limit"),
        ("tool_timeout = 1.5\nS", "tool_timeout", 1, 16, "a time needs its unit", "\"90s\""),
        ("tool_timeout = true\nS", "tool_timeout", 1, 16, "a time like", ""),
        ("tool_timeout = \"0.4ms\"\nS", "tool_timeout", 1, 16, "a time of zero", ""),
        ("tool_timeout = \"2147483648ms\"\nS", "tool_timeout", 1, 16, "1ms to 2147483647ms", "no limit"),
        ("S\ntool_timeout = \"25d\"", "step[1].tool_timeout", 5, 16, "1ms to 2147483647ms", ""),
        ("tool_timeout_exempt = \"ask, x\"\nS", "tool_timeout_exempt", 1, 23, "a list of texts", "[\"ask\", \"x\"]"),
        ("S\ntool_timeout_exempt = [\"\"]", "step[1].tool_timeout_exempt", 5, 23, "has no name", ""),
        ("S\nidle = \"2m\"", "step[1].idle", 5, 1, "unknown key `idle`", "attention = { idle"),
        ("tokens = 5\nS", "tokens", 1, 1, "unknown key `tokens`", "budget = { tokens"),
        ("budget = { tool_timeout = \"5m\" }\nS", "budget.tool_timeout", 1, 12, "unknown key", "beside `budget`"),
        // Attention.
        ("attention = false\nS", "attention", 1, 13, "an attention table like", ""),
        ("attention = { idel = \"1m\" }\nS", "attention.idel", 1, 15, "unknown key `idel`", "`idle`"),
        ("attention = { idle = 5 }\nS", "attention.idle", 1, 22, "a time needs its unit", "\"5s\""),
        ("attention = { idle = \"0s\" }\nS", "attention.idle", 1, 22, "a time of zero", "write false"),
        ("attention = { idle = true }\nS", "attention.idle", 1, 22, "or false is needed here, not true", "built-in"),
        ("attention = { enabled = 1 }\nS", "attention.enabled", 1, 25, "true or false", ""),
        ("attention = { tools = [\"bash\"] }\nS", "attention.tools", 1, 23, "a table of tools like", ""),
        ("attention = { tools = { bash = 5 } }\nS", "attention.tools.bash", 1, 32, "a time needs its unit", ""),
        ("attention = { exempt = \"bash\" }\nS", "attention.exempt", 1, 24, "a list of texts", "[\"bash\"]"),
        ("attention = { tool_failures = 0 }\nS", "attention.tool_failures", 1, 31, "at least 1", ""),
        ("attention = { tool_failures = true }\nS", "attention.tool_failures", 1, 31, "or false", ""),
        ("S\nattention = { repeated_calls = \"5\" }", "step[1].attention.repeated_calls", 5, 32, "a whole number", ""),
        (
            "[[step]]\nattention = {}\nparallel = [{ agent = \"scout\", task = \"t\" }]",
            "step[1].attention",
            2,
            1,
            "a group with `parallel` cannot have `attention`",
            "members",
        ),
        ("env = [\"A=1\"]\nS", "env", 1, 7, "a table of variables", ""),
        ("env = { A = 1 }\nS", "env.A", 1, 13, "a text is needed here", "\"1\" in quotes"),
        ("env = { \"A=B\" = \"1\" }\nS", "env.\"A=B\"", 1, 9, "cannot be the name of a variable", ""),
        ("env = { A = \"\\u0000\" }\nS", "env.A", 1, 13, "NUL", ""),
        // Syntax.
        ("name = \nS", "", 1, 8, "not valid TOML", ""),
        ("name = \"a\"\nname = \"b\"\nS", "", 2, 1, "not valid TOML: duplicate key", ""),
        // Budgets.
        ("budget = 5\nS", "budget", 1, 10, "a budget table", ""),
        ("budget = { tim = \"1m\" }\nS", "budget.tim", 1, 12, "unknown key `tim`", "`time`"),
        ("budget = { cost = 1 }\nS", "budget.cost", 1, 12, "unknown key `cost`", "`cost_usd`"),
        ("budget = { time = 5 }\nS", "budget.time", 1, 19, "a time needs its unit", "\"5s\""),
        ("budget = { turns = 0 }\nS", "budget.turns", 1, 20, "at least 1", ""),
        ("budget = { turns = { grace = 1 } }\nS", "budget.turns", 1, 20, "no `max`", "{ max = 40"),
        ("budget = { turns = { hard = 1, max = 2 } }\nS", "budget.turns.hard", 1, 22, "unknown key `hard`", "`max`"),
        ("budget = { turns = { max = 2, grace = -1 } }\nS", "budget.turns.grace", 1, 39, "at least 0", ""),
        ("budget = { tokens = -1 }\nS", "budget.tokens", 1, 21, "at least 1", ""),
        ("budget = { tokens = {} }\nS", "budget.tokens", 1, 21, "neither `soft` nor `hard`", ""),
        ("budget = { tokens = { max = 2 } }\nS", "budget.tokens.max", 1, 23, "unknown key `max`", "`hard`"),
        (
            "budget = { tool_calls = { soft = 3, hard = 2 } }\nS",
            "budget.tool_calls.soft",
            1,
            34,
            "above the hard one",
            "smaller",
        ),
        (
            "budget = { tokens = { hard = 2, block = \"*\" } }\nS",
            "budget.tokens.block",
            1,
            33,
            "unknown key `block`",
            "",
        ),
        ("budget = { tool_calls = { block = \"*\" } }\nS", "budget.tool_calls", 1, 25, "neither `soft` nor `hard`", ""),
        (
            "budget = { tool_calls = { soft = 2, block = \"*\" } }\nS",
            "budget.tool_calls.block",
            1,
            45,
            "at the hard limit, and there is none",
            "add `hard`",
        ),
        (
            "budget = { tool_calls = { hard = 2, block = \"read\" } }\nS",
            "budget.tool_calls.block",
            1,
            45,
            "\"*\" for all",
            "[\"read\"]",
        ),
        ("budget = { tool_calls = { hard = 2, block = [] } }\nS", "budget.tool_calls.block", 1, 45, "does nothing", ""),
        (
            "budget = { tool_calls = { hard = 2, block = 5 } }\nS",
            "budget.tool_calls.block",
            1,
            45,
            "a list of texts",
            "",
        ),
        ("budget = { cost_usd = 0 }\nS", "budget.cost_usd", 1, 23, "above zero", ""),
        ("budget = { cost_usd = nan }\nS", "budget.cost_usd", 1, 23, "above zero", ""),
        ("budget = { cost_usd = \"2\" }\nS", "budget.cost_usd", 1, 23, "a limit like", ""),
        ("budget = { cost_usd = { hard = \"2\" } }\nS", "budget.cost_usd.hard", 1, 32, "US dollars", ""),
        // Steps.
        ("[[step]]\nagent = \"scout\"", "step[1]", 1, 1, "the step has no `task`", "task = "),
        (
            "[[step]]\nagent = \"scot\"\ntask = \"t\"",
            "step[1].agent",
            2,
            9,
            "there is no agent `scot`",
            "did you mean `scout`?; searched .subdeck/agents, .claude/agents and .pi/agents in ",
        ),
        (
            "[[step]]\nagent = \"zzz\"\ntask = \"t\"",
            "step[1].agent",
            2,
            9,
            "there is no agent `zzz`",
            "there are reviewer, scout; searched",
        ),
        ("S\nprompt = \"x\"", "step[1].prompt", 5, 1, "unknown key `prompt`", "`task`"),
        ("S\ncommand = \"x\"", "step[1].command", 5, 1, "unknown key `command`", "external-cli"),
        ("S\nfailFast = true", "step[1].failFast", 5, 1, "unknown key `failFast`", "`fail_fast`"),
        ("S\nfail_fast = true", "step[1].fail_fast", 5, 1, "`fail_fast` belongs to a group", "`parallel`"),
        ("S\nconcurrency = 2", "step[1].concurrency", 5, 1, "`concurrency` belongs to a group", "`parallel`"),
        ("S\nid = \"a b\"", "step[1].id", 5, 6, "`a b` cannot be an id", "letters"),
        ("S\nid = \"2\"", "step[1].id", 5, 6, "taken for the step's number", "\"s2\""),
        ("S\nmodel = \"a\"\nmodels = [\"b\"]", "step[1].models", 6, 1, "beside each other", "keep `models`"),
        ("S\nmodels = []", "step[1].models", 5, 10, "needs names", ""),
        ("S\nmodels = \"a, b\"", "step[1].models", 5, 10, "a list of texts is needed here", "[\"a\", \"b\"]"),
        ("S\ntools = [1]", "step[1].tools[1]", 5, 10, "a text is needed here, not a number", ""),
        ("S\nthinking = \"hgih\"", "step[1].thinking", 5, 12, "no thinking level `hgih`", "`high`"),
        ("S\nsystem_prompt_mode = \"mix\"", "step[1].system_prompt_mode", 5, 22, "`mix`", "`append` or `replace`"),
        (
            "S\ninherit_skills = \"yes\"",
            "step[1].inherit_skills",
            5,
            18,
            "true or false is needed here, not a text",
            "",
        ),
        ("S\ncwd = \"nowhere\"", "step[1].cwd", 5, 7, "does not exist", "create it"),
        ("S\nworktree = true", "step[1].worktree", 5, 1, "not supported yet", "leave it out"),
        ("S\nafter = [\"a\"]", "step[1].after", 5, 1, "not supported yet", "leave it out"),
        // Runners.
        (
            "S\nrunner = \"cursor-agent\"",
            "step[1].runner",
            5,
            10,
            "there is no runner `cursor-agent`",
            "`copilot`, `amp`, `acp`, `demo` or `external-cli`",
        ),
        (
            "S\nrunner = { type = \"claude\", transport = \"rpc\" }",
            "step[1].runner.transport",
            5,
            41,
            "Claude Code has no transport `rpc`",
            "use `steerable` or `oneshot`",
        ),
        (
            "S\nrunner = { type = \"claude\", permission = \"alow\" }",
            "step[1].runner.permission",
            5,
            42,
            "there is no permission `alow`",
            "did you mean `allow`?",
        ),
        (
            "S\nrunner = { type = \"pi\", resume = \"x\" }",
            "step[1].runner.resume",
            5,
            25,
            "does not belong to the runner `pi`",
            "leave it out",
        ),
        (
            "S\nrunner = \"claude\"\nsession = \"s.jsonl\"",
            "step[1].session",
            6,
            11,
            "`session` names a file of pi",
            "resume = \"ID\"",
        ),
        ("S\nrunner = \"dmeo\"", "step[1].runner", 5, 10, "there is no runner `dmeo`", "did you mean `demo`?"),
        ("S\nrunner = \"external-cli\"", "step[1].runner", 5, 10, "needs to be named", "command ="),
        ("S\nrunner = 5", "step[1].runner", 5, 10, "a runner like", ""),
        (
            "S\nrunner = {}",
            "step[1].runner",
            5,
            10,
            "the runner has no `type`",
            "`copilot`, `amp`, `acp`, `demo` or `external-cli`",
        ),
        ("S\nrunner = { type = \"codx\" }", "step[1].runner.type", 5, 19, "no runner `codx`", "did you mean `codex`?"),
        ("S\nrunner = \"acp\"", "step[1].runner", 5, 10, "the runner `acp` has no `command`", "name the program"),
        (
            "S\nrunner = { type = \"acp\", args = [\"--acp\"] }",
            "step[1].runner",
            5,
            10,
            "the runner `acp` has no `command`",
            "name the program",
        ),
        (
            "S\nrunner = { type = \"acp\", command = \"sh\", transport = \"oneshot\" }",
            "step[1].runner.transport",
            5,
            54,
            "the ACP agent has no transport `oneshot`",
            "use `steerable`",
        ),
        ("S\nrunner = { type = \"external-cli\" }", "step[1].runner", 5, 10, "the runner has no `command`", "cargo"),
        (
            "S\nrunner = { type = \"pi\", transport = \"rcp\" }",
            "step[1].runner.transport",
            5,
            37,
            "no transport `rcp`",
            "`rpc`",
        ),
        (
            "S\nrunner = { type = \"pi\", script = \"x\" }",
            "step[1].runner.script",
            5,
            25,
            "does not belong to the runner `pi`",
            "",
        ),
        (
            "S\nrunner = { type = \"demo\", command = \"x\" }",
            "step[1].runner.command",
            5,
            27,
            "does not belong to the runner `demo`",
            "",
        ),
        (
            "S\nrunner = { command = \"x\", args = [\"{task}\"], prompt = \"stdin\" }",
            "step[1].runner.args",
            5,
            34,
            "is to go to standard input",
            "",
        ),
        (
            "S\nrunner = { command = \"x\", prompt = \"tty\" }",
            "step[1].runner.prompt",
            5,
            36,
            "`tty` is no way",
            "`stdin` or `arg`",
        ),
        (
            "[[step]]\nrunner = { command = \"x\", args = [\"{task}\"] }",
            "step[1].runner",
            2,
            10,
            "the step has no `task`",
            "take `{task}` out",
        ),
        // Placeholders.
        ("[[step]]\nagent = \"scout\"\ntask = \"a {task}\"", "step[1].task", 3, 11, "the plan has none", "set `task`"),
        (
            "[[step]]\nagent = \"scout\"\ntask = \"a {outputs.x}\"",
            "step[1].task",
            3,
            11,
            "names no earlier step",
            "no step runs before",
        ),
        (
            "S\n[[step]]\nagent = \"scout\"\ntask = \"{outputs.scuot}\"",
            "step[2].task",
            7,
            9,
            "names no earlier step",
            "{outputs.scout}",
        ),
        (
            "[[step]]\nagent = \"scout\"\ntask = \"{outputs.scout}\"",
            "step[1].task",
            3,
            9,
            "names no earlier step",
            "does not run before this one",
        ),
        // Groups.
        ("[[step]]\nparallel = []", "step[1].parallel", 2, 12, "the group has no members", ""),
        ("[[step]]\nparallel = 1", "step[1].parallel", 2, 12, "a list of steps is needed here", ""),
        (
            "[[step]]\nparallel = [{ parallel = [] }]",
            "step[1].parallel[1].parallel",
            2,
            26,
            "a group cannot stand in a group",
            "",
        ),
        (
            "[[step]]\nagent = \"scout\"\nparallel = [{ agent = \"scout\", task = \"t\" }]",
            "step[1].agent",
            2,
            1,
            "a group with `parallel` cannot have `agent`",
            "members",
        ),
        (
            "[[step]]\nworktree = true\nparallel = [{ agent = \"scout\", task = \"t\" }]",
            "step[1].worktree",
            2,
            1,
            "not supported yet",
            "",
        ),
        (
            "[[step]]\nparallel = [{ id = \"a\", agent = \"scout\", task = \"t\" }, { agent = \"scout\", task = \"{outputs.a}\" }]",
            "step[1].parallel[2].task",
            2,
            83,
            "names no earlier step",
            "does not run before this one",
        ),
        (
            "[[step]]\nparallel = [{ agent = \"scout\", task = \"t\", output = \"o\" }, { agent = \"scout\", task = \"t\", output = \"./o\" }]",
            "step[1].parallel[2].output",
            2,
            100,
            "write the same file",
            "of its own",
        ),
        (
            "S\nid = \"a\"\n[[step]]\nid = \"a\"\nagent = \"scout\"\ntask = \"t\"",
            "step[2].id",
            7,
            6,
            "the id `a` is taken already on line 5",
            "",
        ),
    ];
    for (text, key, line, column, message, suggestion) in table {
        let text = text.replace("S\n", STEP_AND_BLANK).replace("\nS", &format!("\n{STEP}"));
        let problems = load_text("p.toml", &text).expect_err(&text);
        let errors: Vec<_> = problems.0.iter().filter(|p| p.severity == Severity::Error).collect();
        let [error] = errors[..] else { panic!("{text}\n{errors:#?}") };
        let at = error.position.unwrap();
        assert_eq!((error.key.as_str(), at.line, at.column), (*key, *line, *column), "{text}\n{error:#?}");
        assert!(error.message.contains(message), "{text}\n{error:#?}");
        let advice = error.suggestion.as_deref().unwrap_or_default();
        assert!(advice.contains(suggestion), "{text}\n{error:#?}");
    }
}

/// A step that is right, and one more line, so that the mistake stands on the fifth.
const STEP_AND_BLANK: &str = "[[step]]\nagent = \"scout\"\ntask = \"t\"\n\n";

#[test]
fn odd_things_are_warnings() {
    let table: &[(&str, &str, &str)] = &[
        ("[[step]]\nagent = \"scout\"\ntask = \"{previous}\"", "step[1].task", "empty in the first step"),
        ("[[step]]\nagent = \"scout\"\ntask = \"{prevoius}\"", "step[1].task", "is no placeholder"),
        ("[[step]]\nagent = \"scout\"\ntask = \"{output.scout}\"", "step[1].task", "is no placeholder"),
        (
            "[[step]]\nrunner = { command = \"x\", args = [\"{task}\"] }\ntask = \"t\"",
            "step[1].runner",
            "list of processes",
        ),
        (
            "[[step]]\nrunner = { command = \"x\", args = [\"-c\", \"say {outputs.b}\"] }",
            "step[1].runner",
            "`{outputs.b}` is not filled in in the arguments",
        ),
        (
            "[[step]]\nrunner = { command = \"x\", args = [\"{previous}\"] }\ntask = \"t\"",
            "step[1].runner",
            "`{previous}` is not filled in in the arguments",
        ),
        (
            "[[step]]\nrunner = { command = \"x\", prompt = \"arg\" }\ntask = \"t\"",
            "step[1].runner",
            "list of processes",
        ),
        (
            "[[step]]\nagent = \"scout\"\ntask = \"t\"\ntool_timeout = \"6m\"\nbudget = { time = \"5m\" }",
            "step[1].tool_timeout",
            "longer than the whole step's",
        ),
        (
            "tool_timeout = \"6m\"\nbudget = { time = \"5m\" }\n[[step]]\nagent = \"scout\"\ntask = \"t\"",
            "tool_timeout",
            "longer than the whole run's",
        ),
        (
            "[[step]]\nagent = \"scout\"\ntask = \"t\"\nbudget = { idle = \"6m\", time = \"5m\" }",
            "step[1].budget.idle",
            "longer than the whole time",
        ),
        (
            "budget = { time = \"1m\" }\n[[step]]\nagent = \"scout\"\ntask = \"t\"\nbudget = { time = \"2m\" }",
            "step[1]",
            "longer than the whole run's",
        ),
    ];
    for (text, key, message) in table {
        let loaded = load_text("p.toml", text).unwrap();
        let [warning] = &loaded.warnings[..] else { panic!("{text}\n{:#?}", loaded.warnings) };
        assert_eq!((warning.severity, warning.key.as_str()), (Severity::Warning, *key), "{text}");
        assert!(warning.message.contains(message), "{text}\n{warning:#?}");
    }
}

#[test]
fn what_stands_in_no_file_goes_before_the_plan() {
    let mut options = options();
    options.name = Some("mine".to_owned());
    options.task = Some("this".to_owned());
    options.cwd = Some(".subdeck".into());
    options.budget.time = Some(Duration::from_secs(5));
    options.agent_folders = Some(vec![(fixtures().join(".subdeck/agents"), plan::agents::Flavor::Subdeck)]);
    options.defaults.time = Some(Duration::from_secs(99));
    options.defaults.model = Some("usual".to_owned());
    options.defaults.concurrency = Some(7);
    options.pi_program = Some("/opt/pi".to_owned());
    let text = "name = \"n\"\ntask = \"that\"\ncwd = \"nowhere\"\nbudget = { time = \"1h\" }\n\
                [[step]]\nparallel = [{ agent = \"scout\" }, { agent = \"reviewer\" }]\n";
    let loaded = plan::load_source(&Source::new("p.toml", text), &fixtures(), &options).unwrap();
    assert_eq!(loaded.plan.name.as_deref(), Some("mine"));
    assert_eq!(loaded.plan.task.as_deref(), Some("this"));
    assert_eq!(loaded.plan.cwd, fixtures().join(".subdeck"));
    assert_eq!(loaded.plan.budget.time, Some(Duration::from_secs(5)));
    let [scout, reviewer] = steps(&loaded)[..] else { panic!() };
    assert_eq!(
        (scout.task.as_str(), &scout.models[..], &reviewer.models[..]),
        ("{task}", &["small".to_owned()][..], &["usual".to_owned()][..])
    );
    assert!(matches!(&scout.runner, Runner::Pi { command: Some(program), .. } if program == "/opt/pi"));
    assert!(matches!(loaded.plan.steps[0], LogicalStep::Group { concurrency: 7, .. }));
}

#[test]
fn the_usual_runner_is_that_of_steps_that_name_none() {
    let mut options = options();
    options.defaults.runner = Some(NamedRunner::Agent(Family::Claude));
    let text = "[[step]]\nagent = \"scout\"\ntask = \"t\"\n[[step]]\nrunner = \"pi\"\nagent = \"scout\"\ntask = \"t\"\n\
                [[step]]\nparallel = [{ task = \"t\" }, { runner = \"demo\", task = \"t\" }]\n";
    let loaded = plan::load_source(&Source::new("p.toml", text), &fixtures(), &options).unwrap();
    let runners: Vec<&str> = loaded
        .plan
        .flat()
        .map(|step| match &step.runner {
            Runner::Pi { .. } => "pi",
            Runner::Demo { .. } => "demo",
            Runner::Agent(agent) => agent.kind.family.word(),
            Runner::ExternalCli { .. } => "external-cli",
        })
        .collect();
    assert_eq!(runners, ["claude", "pi", "claude", "demo"]);
    let loaded = plan::from_agent(Some("scout"), Some("opus"), "look", &options).unwrap();
    let [step] = steps(&loaded)[..] else { panic!() };
    assert!(matches!(&step.runner, Runner::Agent(agent) if agent.kind.family == Family::Claude));
    assert_eq!((&step.models[..], step.system_prompt.is_some()), (&["opus".to_owned()][..], true));
}

#[test]
fn a_definition_may_name_what_runs_its_agent() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join(".subdeck/agents");
    std::fs::create_dir_all(&folder).unwrap();
    let define = |name: &str, more: &str| {
        let text = format!("---\nname: {name}\n{more}---\nYou help.\n");
        std::fs::write(folder.join(format!("{name}.md")), text).unwrap();
    };
    define("helper", "runner: codex\n");
    define("plain", "");
    define("peer", "runner: pi\n");
    define("odd", "runner: cluade\n");
    let mut options = LoadOptions { current_dir: temp.path().to_owned(), ..LoadOptions::default() };
    let runner = |agent: Option<&str>, options: &LoadOptions| {
        let loaded = plan::from_agent(agent, None, "look", options).unwrap();
        let [step] = steps(&loaded)[..] else { panic!() };
        let word = match &step.runner {
            Runner::Pi { .. } => "pi",
            Runner::Agent(agent) => agent.kind.family.word(),
            other => panic!("{other:?}"),
        };
        (word, step.agent.clone(), step.system_prompt.is_some())
    };
    let told = |word: &'static str, agent: &str, prompt: bool| (word, agent.to_owned(), prompt);
    assert_eq!(runner(Some("helper"), &options), told("codex", "helper", true));
    assert_eq!(runner(Some("plain"), &options), told("pi", "plain", true));
    // It stands between the usual runner and that of the command line.
    options.defaults.runner = Some(NamedRunner::Agent(Family::Claude));
    assert_eq!(runner(Some("helper"), &options), told("codex", "helper", true));
    assert_eq!(runner(Some("plain"), &options), told("claude", "plain", true));
    assert_eq!(runner(Some("peer"), &options), told("pi", "peer", true));
    assert_eq!(runner(None, &options), told("claude", "claude", false));
    options.defaults.agent = Some("helper".to_owned());
    assert_eq!(runner(None, &options), told("codex", "helper", true));
    options.runner = Some(NamedRunner::Agent(Family::Gemini));
    assert_eq!(runner(Some("helper"), &options), told("gemini", "helper", true));
    options.runner = Some(NamedRunner::Pi);
    assert_eq!(runner(Some("plain"), &options), told("pi", "plain", true));
    let wrong = plan::from_agent(Some("odd"), None, "look", &options).unwrap_err();
    let advice = wrong.0[0].suggestion.clone().unwrap_or_default();
    assert!(advice.contains("`runner` is `cluade`, not `pi`, `claude`"), "{advice}");
}

#[test]
fn ids_are_made_from_agents_and_stay_unique() {
    let text = "[[step]]\nparallel = [\n{ agent = \"scout\", task = \"t\" },\n{ agent = \"scout\", task = \"t\", id = \"scout-2\" },\n\
                { agent = \"scout\", task = \"t\" },\n{ runner = { command = \"/bin/ä b\" } },\n{ runner = { command = \"7\" } },\n\
                { task = \"t\" },\n{ runner = \"demo\", task = \"t\" },\n]\n";
    let loaded = load_text("p.toml", text).unwrap();
    let keys: Vec<_> = loaded.plan.flat().map(|s| s.key.as_str()).collect();
    assert_eq!(keys, ["scout", "scout-2", "scout-3", "b", "s7", "pi", "demo"]);
}

#[test]
fn a_command_or_an_agent_needs_no_file() {
    let args = ["clippy".to_owned(), "{task}".to_owned()];
    let loaded = plan::from_command("/usr/bin/cargo", &args, &options()).unwrap();
    let [step] = steps(&loaded)[..] else { panic!() };
    assert_eq!((step.key.as_str(), step.agent.as_str(), step.task.as_str()), ("cargo", "cargo", ""));
    assert_eq!(step.runner, Runner::ExternalCli { command: "/usr/bin/cargo".to_owned(), args: args.to_vec() });
    assert_eq!((loaded.plan.mode(), loaded.plan.cwd.clone()), (RunMode::Single, fixtures()));
    // Without a task the arguments are what they are.
    assert_eq!(plan::template::fill_args(&args, plan::template::Filling::Template, None).0, args);

    let loaded = plan::from_agent(Some("scout"), None, "look at {previous}", &options()).unwrap();
    let [step] = steps(&loaded)[..] else { panic!() };
    assert_eq!((step.task.as_str(), loaded.plan.task.as_deref()), ("{task}", Some("look at {previous}")));
    assert_eq!(step.models, ["small"]);
    assert_eq!(loaded.warnings, []);

    let problems = plan::from_agent(Some("scuot"), None, "look", &options()).unwrap_err();
    let [error] = &problems.0[..] else { panic!("{problems:#?}") };
    assert_eq!((error.file.as_str(), error.position), ("command line", None));
    assert!(error.suggestion.as_deref().unwrap().starts_with("did you mean `scout`?"), "{error:#?}");
}

#[test]
fn files_that_are_none_say_so() {
    for (name, message) in [("nothing.toml", "no such file"), (".subdeck", "this is a folder, not a file")] {
        let problems = load(name).unwrap_err();
        assert_eq!((problems.0[0].file.as_str(), problems.0[0].message.as_str()), (name, message));
    }
    let mut bytes: &[u8] = b"name = \"\xff\"\n";
    let problems = plan::load(Input::Reader(&mut bytes), &options()).unwrap_err();
    assert_eq!(
        (problems.0[0].location().as_str(), problems.0[0].message.as_str()),
        ("<stdin>:1:9", "the file is not UTF-8 text")
    );
    let mut text: &[u8] = STEP.as_bytes();
    assert_eq!(steps(&plan::load(Input::Reader(&mut text), &options()).unwrap()).len(), 1);
}

#[test]
fn a_program_that_cannot_come_any_more_is_an_error_with_its_place_and_others_are_warnings() {
    let mut options = options();
    options.path = Some("/nowhere".into());
    let args: [String; 0] = [];
    let problems = plan::from_command("no-such-program", &args, &options).unwrap_err().0;
    assert_eq!(problems[0].message, "the program `no-such-program` of step `no-such-program` was not found");
    let loaded = plan::from_command("./made-later", &args, &options).unwrap();
    assert_eq!(loaded.warnings[0].message, "the program `./made-later` of step `made-later` was not found");
    let text = "[[step]]\nrunner = { type = \"external-cli\", command = \"gone\" }\n\
                [[step]]\nrunner = { type = \"external-cli\", command = \"gone\" }\n\
                [[step]]\nagent = \"a\"\nsystem_prompt = \"p\"\ntask = \"t\"\n";
    let problems = plan::load(Input::Reader(&mut text.as_bytes()), &options).unwrap_err().0;
    let said: Vec<_> = problems.iter().map(|p| (p.location(), p.message.as_str())).collect();
    let gone = "the program `gone` of step `gone` was not found";
    let pi = "the program `pi` of step `a` was not found";
    assert_eq!(said, [("<stdin>:2:10".to_owned(), gone), ("<stdin>:5:1".to_owned(), pi)], "each once");
    let loaded = plan::from_command("/bin/sh", &args, &options).unwrap();
    assert_eq!(loaded.warnings, []);
}

fn config(change: &dyn Fn(&mut serde_json::Value)) -> Result<Loaded, Problems> {
    let mut config: serde_json::Value =
        serde_json::from_slice(&std::fs::read(fixtures().join("configs/chain.json")).unwrap()).unwrap();
    config["cwd"] = fixtures().to_str().unwrap().into();
    change(&mut config);
    load_text("cfg.json", &serde_json::to_string_pretty(&config).unwrap())
}

#[test]
fn a_runner_config_is_a_plan() {
    let loaded = config(&|_| ()).unwrap();
    let plan = &loaded.plan;
    assert_eq!(plan.run_id.as_deref(), Some("36d641b6-121e-4fa1-8793-b458bc09ae63"));
    assert_eq!(plan.run_dir.as_deref(), Some(Path::new("/t/async-subagent-runs/36d641b6-121e-4fa1-8793-b458bc09ae63")));
    assert_eq!(plan.result_path.as_deref(), Some(Path::new("/t/async-subagent-results/36d641b6.json")));
    assert_eq!((plan.session_id.as_deref(), plan.owner_id.as_deref()), (Some("/s/parent.jsonl"), Some("owner-1")));
    assert_eq!(plan.session_dir.as_deref(), Some(Path::new("/t/sessions/36d641b6")));
    assert_eq!((plan.mode(), plan.deadline_at_ms), (RunMode::Chain, Some(1_764_000_000_500)));
    assert_eq!(plan.budget.time, Some(Duration::from_secs(60)));
    assert_eq!((plan.budget.tokens.unwrap().hard, plan.usage_spares_children), (Some(9000), true));
    // Turns are granted to each step, not to all of them together.
    assert_eq!(plan.budget.turns, None);
    assert!(steps(&loaded).iter().all(|s| s.budget.turns == Some(TurnLimit { max: 10, grace: 1 })));
    assert_eq!((plan.control.clone(), loaded.warnings.len()), (Control::default(), 0));
    let [first, native, external] = steps(&loaded)[..] else { panic!() };
    assert_eq!((first.key.as_str(), first.agent.as_str(), first.task.as_str()), ("found", "worker", "Look"));
    assert_eq!(first.models, ["fake/fake-1:high", "fake/fake-2"]);
    assert_eq!((first.system_prompt_mode, first.inherit_skills), (SystemPromptMode::Replace, false));
    assert_eq!(first.tool_timeout, Some(Duration::from_secs(7)));
    assert_eq!(first.budget.time, Some(Duration::from_secs(1800)));
    assert_eq!(first.session_file.as_deref(), Some(Path::new("/s/child.jsonl")));
    assert_eq!((native.key.as_str(), native.tool_timeout), ("worker", Some(Duration::from_secs(5))));
    assert_eq!((native.tools.as_deref(), native.inherit_project_context), (Some(&["read".to_owned()][..]), true));
    assert_eq!(
        external.runner,
        Runner::ExternalCli { command: "sh".to_owned(), args: vec!["-c".to_owned(), "cat".to_owned()] }
    );
    assert!(matches!(plan.steps[1], LogicalStep::Group { concurrency: 2, fail_fast: true, .. }));
}

#[test]
fn a_runner_config_has_its_limits_and_thresholds() {
    let loaded = config(&|c| {
        c["toolBudget"] = serde_json::json!({ "hard": 8, "soft": 5 });
        c["steps"][0]["toolBudget"] = serde_json::json!({ "hard": 3, "block": "*" });
        c["steps"][1]["parallel"][0]["toolBudget"] = serde_json::json!({ "hard": 4, "block": ["bash"] });
        c["usageBudget"]["costUsd"] = serde_json::json!({ "soft": 0.5, "hard": 1 });
        c["controlConfig"] = serde_json::json!({
            "enabled": false, "needsAttentionAfterMs": 1500.5, "activeNoticeAfterMs": 9000, "activeNoticeAfterTurns": 7,
            "activeNoticeAfterTokens": 8, "failedToolAttemptsBeforeAttention": 2, "notifyOn": ["needs_attention", "new"],
            "notifyChannels": [],
        });
        c["controlIntercomTarget"] = "parent".into();
        c["childIntercomTargets"] = serde_json::json!(["one", null, "three"]);
    })
    .unwrap();
    let names = |names: &[&str]| Some(ToolBlock::Names(names.iter().map(|n| (*n).to_owned()).collect()));
    let calls: Vec<_> =
        steps(&loaded).iter().map(|s| (s.budget.tool_calls.unwrap(), s.budget.tool_block.clone())).collect();
    let limit = |soft, hard| Limit { soft, hard: Some(hard) };
    assert_eq!(
        calls,
        [
            (limit(None, 3), Some(ToolBlock::All)),
            (limit(None, 4), names(&["bash"])),
            (limit(Some(5), 8), names(&["read", "grep", "find", "ls"])),
        ]
    );
    assert_eq!((loaded.plan.budget.tool_calls, loaded.plan.run_limits().usage_spares_children), (None, true));
    assert_eq!(loaded.plan.budget.cost, Some(Limit { soft: Some(CostUsd(0.5)), hard: Some(CostUsd(1.0)) }));
    let expected = Thresholds {
        enabled: false,
        idle_ms: Some(1500),
        tool_open_ms: Some(9000),
        long_ms: Some(9000),
        long_turns: Some(7),
        long_tokens: Some(8),
        failures: Some(2),
        ..Thresholds::default()
    };
    assert!(steps(&loaded).iter().all(|s| s.attention == expected));
    let control = Control {
        notify_on: NotifyOn { needs_attention: true, active_long_running: false },
        channels: vec![],
        intercom_to: Some("parent".to_owned()),
        child_targets: vec![Some("one".to_owned()), None, Some("three".to_owned())],
        workflow_key: None,
    };
    assert_eq!(loaded.plan.control, control);
}

#[test]
fn thresholds_of_a_runner_config_that_can_be_none_leave_the_built_in_ones() {
    for bad in [serde_json::json!(0), (-5).into(), 0.5.into(), "60000".into(), serde_json::Value::Null, true.into()] {
        let loaded = config(&|c| {
            c["controlConfig"] = serde_json::json!({
                "enabled": "yes", "needsAttentionAfterMs": bad, "activeNoticeAfterMs": bad, "activeNoticeAfterTurns": bad,
                "activeNoticeAfterTokens": bad, "failedToolAttemptsBeforeAttention": bad, "notifyOn": bad,
                "notifyChannels": bad,
            });
        })
        .unwrap();
        assert!(steps(&loaded).iter().all(|s| s.attention == Thresholds::default()), "{bad}");
        assert_eq!(loaded.plan.control, Control::default(), "{bad}");
    }
    let loaded = config(&|c| c["controlConfig"] = 5.into()).unwrap();
    assert_eq!(steps(&loaded)[0].attention, Thresholds::default());
}

#[test]
fn what_a_runner_config_leaves_open_the_configuration_does_not_fill_in() {
    let text = std::fs::read_to_string(fixtures().join("configs/chain.json")).unwrap();
    let mut options = options();
    options.defaults.tool_timeout = Some(Duration::from_secs(1));
    options.defaults.attention.idle = Some(Rule::Off);
    let text = text.replace("\"/w\"", &format!("{:?}", fixtures().display().to_string())).replace("toolTimeoutMs", "x");
    let loaded = plan::load_source(&Source::new("c.json", text), &fixtures(), &options).unwrap();
    assert!(steps(&loaded).iter().all(|s| s.tool_timeout.is_none() && s.attention == Thresholds::default()));
}

#[test]
fn the_time_of_a_tool_call_comes_from_the_nearest_place() {
    let agents = tempfile::tempdir().unwrap();
    std::fs::write(agents.path().join("a.md"), "---\nname: a\ntoolTimeoutMs: 3000\n---\nYou.\n").unwrap();
    let mut options = options();
    options.agent_folders = Some(vec![(agents.path().to_owned(), plan::agents::Flavor::Subdeck)]);
    options.defaults.tool_timeout = Some(Duration::from_secs(1));
    options.defaults.tool_exempt = Some(vec!["d".to_owned()]);
    options.defaults.attention.idle = Some(Rule::At(7));
    options.defaults.attention.repeated_calls = Some(Rule::Off);
    let limits = |text: &str| {
        let loaded = plan::load_source(&Source::new("p.toml", text), &fixtures(), &options).unwrap();
        let step = steps(&loaded)[0];
        (
            step.tool_timeout.unwrap().as_secs(),
            step.tool_exempt.concat(),
            step.attention.idle_ms,
            step.attention.repeats,
        )
    };
    let with = |plan: &str, agent: &str, step: &str| {
        limits(&format!("{plan}\n[[step]]\nagent = \"{agent}\"\nsystem_prompt = \"You.\"\ntask = \"t\"\n{step}\n"))
    };
    let said = "tool_timeout = \"2s\"\ntool_timeout_exempt = [\"p\"]\nattention = { idle = \"5s\" }";
    let own = "tool_timeout = \"4s\"\ntool_timeout_exempt = []\nattention = { idle = false, repeated_calls = 2 }";
    assert_eq!(with("", "b", ""), (1, "d".to_owned(), Some(7), None));
    assert_eq!(with(said, "b", ""), (2, "p".to_owned(), Some(5000), None));
    assert_eq!(with(said, "a", ""), (3, "p".to_owned(), Some(5000), None));
    assert_eq!(with(said, "a", own), (4, String::new(), None, Some(2)));
}

#[test]
fn a_runner_config_is_checked_too() {
    type Change = fn(&mut serde_json::Value);
    let table: &[(Change, &str, &str)] = &[
        (|c| c["id"] = serde_json::Value::Null, "id", "the field `id` is missing"),
        (|c| c["id"] = "a/b".into(), "id", "name of a folder"),
        (|c| c["asyncDir"] = "rel".into(), "asyncDir", "not an absolute path"),
        (|c| c["cwd"] = "/no/such/folder".into(), "cwd", "does not exist"),
        (|c| c["placeholder"] = "{prev}".into(), "placeholder", "not supported yet"),
        (|c| c["steps"] = serde_json::json!([]), "steps", "no steps"),
        (|c| c["steps"] = serde_json::json!({}), "steps", "a list of steps"),
        (|c| c["steps"][0]["task"] = serde_json::Value::Null, "steps[1]", "has no `task`"),
        (|c| c["steps"][0]["agent"] = 5.into(), "steps[1].agent", "a text is needed here"),
        (|c| c["steps"][0]["task"] = "{outputs.nobody}".into(), "steps[1].task", "names no earlier step"),
        (|c| c["steps"][0]["worktree"] = true.into(), "steps[1].worktree", "not supported yet"),
        (|c| c["steps"][0]["importAsyncRoot"] = serde_json::json!({}), "steps[1].importAsyncRoot", "not supported yet"),
        (
            |c| c["steps"][0]["runner"] = serde_json::json!({"type": "external-job"}),
            "steps[1].runner.type",
            "not supported yet",
        ),
        (|c| c["steps"][0]["runner"] = serde_json::json!({"type": "x"}), "steps[1].runner.type", "no runner `x`"),
        (
            |c| {
                c["steps"][1] =
                    serde_json::json!({"expand": {}, "parallel": {}, "collect": {}, "agent": "a", "task": ""})
            },
            "steps[2].expand",
            "not supported yet",
        ),
        (|c| c["toolTimeoutMs"] = 0.into(), "toolTimeoutMs", "1 to 2147483647"),
        (|c| c["steps"][0]["toolTimeoutMs"] = 2_147_483_648_u64.into(), "steps[1].toolTimeoutMs", "1 to 2147483647"),
        (|c| c["toolBudget"] = serde_json::json!({"hard": 1, "soft": 2}), "toolBudget.soft", "lies above the hard one"),
        (|c| c["toolBudget"] = serde_json::json!({"hard": 0}), "toolBudget.hard", "at least 1"),
        (|c| c["steps"][0]["toolBudget"] = serde_json::json!({"hard": 0.5}), "steps[1].toolBudget.hard", "at least 1"),
        (|c| c["turnBudget"] = serde_json::json!({"maxTurns": 0}), "turnBudget.maxTurns", "at least 1"),
        (|c| c["timeoutMs"] = (-5).into(), "timeoutMs", "not negative"),
        (|c| c["permissionRules"] = serde_json::json!([1]), "", ""),
        (|c| c["capabilityCeiling"] = serde_json::json!({}), "capabilityCeiling", "not supported yet"),
    ];
    for (change, key, message) in table {
        let result = config(&|c| change(c));
        if key.is_empty() {
            assert!(result.is_ok(), "unknown fields are left alone");
            continue;
        }
        let problems = result.expect_err(key);
        let errors: Vec<_> = problems.0.iter().filter(|p| p.severity == Severity::Error).collect();
        let [error] = errors[..] else { panic!("{key}\n{errors:#?}") };
        assert_eq!(error.key, *key, "{error:#?}");
        assert!(error.message.contains(message), "{error:#?}");
    }
}

#[test]
fn a_single_step_of_a_config_keeps_text_that_looks_like_an_output() {
    let loaded = config(&|c| {
        let mut only = c["steps"][0].clone();
        only["task"] = "{outputs.nobody}".into();
        c["steps"] = serde_json::json!([only]);
    });
    assert_eq!(steps(&loaded.unwrap())[0].task, "{outputs.nobody}");
    // The launcher has filled in the task, so what looks like its placeholder is text in every mode.
    let loaded = config(&|c| c["steps"][0]["task"] = "{task} {prevoius} {previous}".into()).unwrap();
    assert_eq!(steps(&loaded)[0].task, "{task} {prevoius} {previous}");
    assert!(loaded.warnings.iter().all(|w| w.key != "steps[1].task"), "{:#?}", loaded.warnings);
}

/// A text with some of its pieces dropped, doubled or replaced.
fn torn(text: &str, cuts: &[(usize, u8, String)]) -> String {
    let mut pieces: Vec<&str> = text.split_inclusive(|c: char| " \n=[]{}\",".contains(c)).collect();
    for (at, what, with) in cuts {
        let at = at % pieces.len();
        match what % 3 {
            0 if pieces.len() > 1 => drop(pieces.remove(at)),
            1 => pieces.insert(at, pieces[at]),
            _ => pieces[at] = with,
        }
    }
    pieces.concat()
}

proptest::proptest! {
    #[test]
    fn no_torn_plan_or_config_is_too_strange(
        cuts in proptest::collection::vec((0_usize..10_000, 0_u8..3, "[\\[\\]{}=\",.0-9a-zé\n-]{0,4}"), 1..6),
    ) {
        for name in ["full.toml", "small.json", "mistakes.toml", "configs/chain.json"] {
            let text = std::fs::read_to_string(fixtures().join(name)).unwrap();
            match load_text(name, &torn(&text, &cuts)) {
                Ok(loaded) => {
                    let values = plan::stored::Secrets::of(&loaded.plan);
                    let stored = plan::stored::decode(&plan::stored::encode(&loaded.plan), &|step, name| values.get(step, name));
                    proptest::prop_assert_eq!(stored.unwrap().plan, loaded.plan);
                }
                Err(problems) => {
                    proptest::prop_assert!(problems.errors() > 0);
                    proptest::prop_assert!(problems.lines().iter().all(|l| !l.as_str().chars().any(char::is_control)));
                }
            }
        }
    }
}
