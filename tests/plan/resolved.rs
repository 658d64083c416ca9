//! What plans become: their own words, those of agents, of the command line and of the configuration.

use super::*;

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
