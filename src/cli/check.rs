//! `subdeck check PLAN`: prints what would run, or everything that is wrong. Starts nothing.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;

use super::lines;
use crate::agents::families::{self, Start};
use crate::config::{Config, Env};
use crate::plan::{
    self, Budget, Input, Limit, Loaded, LogicalStep, PiTransport, Plan, Problem, Problems, Runner, Severity, Step,
};
use crate::run::{Permission, Thresholds, ToolBlock, Transport};
use crate::text::{self, SafeText, written};

/// Validate a plan and print what would run
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// The plan file, a runner config, or - for standard input
    pub plan: PathBuf,
    /// Work in this folder instead of the plan's
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
    /// What {task} stands for, instead of the plan's own task
    #[arg(long, value_name = "TEXT")]
    pub task: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The exit code for a plan that cannot run.
const INVALID: u8 = 2;

/// Checks a plan: 0 when it can run, 2 when it cannot.
///
/// # Errors
/// When the current folder is gone or the output cannot be written.
pub fn run(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let env = Env::of_process().context("the current folder cannot be used")?;
    let (config, mut problems) = Config::load(&env);
    let mut options = env.load_options(&config);
    options.cwd.clone_from(&args.cwd);
    options.task.clone_from(&args.task);
    options.check_script = Some(super::load::check_script);
    let loaded = if args.plan.as_os_str() == "-" {
        plan::load(Input::Reader(&mut std::io::stdin().lock()), &options)
    } else {
        plan::load(Input::Path(&args.plan), &options)
    };
    // What `run` would refuse is refused here.
    let loaded = match loaded {
        Ok(loaded) if problems.iter().any(|p| p.severity == Severity::Error) => Err(Problems(loaded.warnings)),
        other => other,
    };
    match loaded {
        Ok(Loaded { plan, warnings }) => {
            problems.extend(warnings);
            if args.json {
                let document: serde_json::Value = serde_json::from_slice(&plan::stored::encode(&plan))?;
                let report = json!({ "ok": true, "plan": document, "problems": problems.iter().map(problem_json).collect::<Vec<_>>() });
                super::out::json(&report)?;
            } else {
                print_problems(&problems)?;
                lines::out(|to| show(to, &plan))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(Problems(found)) => {
            problems.extend(found);
            let problems = Problems(problems);
            if args.json {
                let report =
                    json!({ "ok": false, "problems": problems.0.iter().map(problem_json).collect::<Vec<_>>() });
                super::out::json(&report)?;
            } else {
                lines::err(|to| problems.lines().iter().try_for_each(|line| writeln!(to, "{line}")))?;
            }
            Ok(ExitCode::from(INVALID))
        }
    }
}

/// Prints problems on standard error, with an empty line after each.
///
/// # Errors
/// When standard error cannot be written.
pub fn print_problems(problems: &[Problem]) -> anyhow::Result<()> {
    lines::err(|to| {
        for problem in problems {
            problem.lines().iter().try_for_each(|line| writeln!(to, "{line}"))?;
            writeln!(to)?;
        }
        Ok(())
    })
}

/// A problem as `--json` prints it.
pub(super) fn problem_json(problem: &Problem) -> serde_json::Value {
    json!({
        "severity": match problem.severity { Severity::Error => "error", Severity::Warning => "warning" },
        "file": problem.file,
        "line": problem.position.map(|p| p.line),
        "column": problem.position.map(|p| p.column),
        "key": problem.key,
        "message": problem.message,
        "suggestion": problem.suggestion,
    })
}

/// What would run.
fn show(to: &mut dyn Write, plan: &Plan) -> std::io::Result<()> {
    let count = plan.flat().count();
    let steps = if count == 1 { "1 step".to_owned() } else { format!("{count} steps") };
    let name = plan.name.as_deref().map(|n| format!("{n}: ")).unwrap_or_default();
    lines::line(to, &format!("{name}{steps} in {}", plan.cwd.display()))?;
    if let Some(task) = &plan.task {
        lines::line(to, &format!("task       {}", brief(task)))?;
    }
    // Only a runner config names these, and it may name any place.
    if let Some(folder) = &plan.run_dir {
        lines::line(to, &format!("run dir {}", folder.display()))?;
    }
    if let Some(file) = &plan.result_path {
        lines::line(to, &format!("result  {}", file.display()))?;
    }
    if let Some(kept) = &plan.extras.artifacts {
        lines::line(to, &format!("kept in {}", kept.folder))?;
    }
    if let Some(limits) = limits(&plan.budget) {
        lines::line(to, &format!("limits     {limits}"))?;
    }
    // What holds for every step is said once.
    let mut thresholds = plan.flat().map(|s| &s.attention);
    let common = thresholds.next().filter(|first| thresholds.all(|t| t == *first));
    if let Some(looks) = common.and_then(attention) {
        lines::line(to, &format!("attention  {looks}"))?;
    }
    let mut times = plan.flat().map(|s| s.question_timeout);
    let one = times.next().filter(|first| times.all(|t| t == *first));
    if let Some(time) = one.flatten() {
        lines::line(to, &format!("questions  {}", unanswered(time)))?;
    }
    let common = Common { attention: common.is_some(), questions: one.is_some() };
    let mut number = 0;
    for logical in &plan.steps {
        writeln!(to)?;
        match logical {
            LogicalStep::Single(step) => {
                number += 1;
                show_step(to, plan, step, number, common, "")?;
            }
            LogicalStep::Group { steps, concurrency, fail_fast } => {
                // Said as it will be, not as it was asked for.
                let most = (*concurrency).min(LogicalStep::AT_ONCE_MOST);
                let at_once = if most >= steps.len() { "all".to_owned() } else { most.to_string() };
                let fail_fast = if *fail_fast { ", none starts after a failure" } else { "" };
                lines::line(to, &format!("group of {}, {at_once} at once{fail_fast}", steps.len()))?;
                for step in steps {
                    number += 1;
                    show_step(to, plan, step, number, common, "  ")?;
                }
            }
        }
    }
    Ok(())
}

/// What holds for every step and was said of all of them.
#[derive(Clone, Copy)]
struct Common {
    attention: bool,
    questions: bool,
}

fn unanswered(time: Duration) -> String {
    format!("refused when nobody answers for {}", written(time))
}

/// One step.
fn show_step(
    to: &mut dyn Write,
    plan: &Plan,
    step: &Step,
    number: usize,
    common: Common,
    indent: &str,
) -> std::io::Result<()> {
    let mut title = format!("{indent}{number}. {}", step.key);
    if step.agent != step.key {
        title.push_str(&format!("  agent {}", step.agent));
    }
    if let Some(label) = &step.label {
        title.push_str(&format!("  \"{label}\""));
    }
    lines::line(to, &title)?;
    let mut row = |name: &str, value: String| lines::line(to, &format!("{indent}   {name:<9} {value}"));
    row("runner", runner(&step.runner))?;
    if !step.models.is_empty() || step.thinking.is_some() {
        let mut models =
            if step.models.is_empty() { "the agent's own".to_owned() } else { step.models.join(", then ") };
        if let Some(thinking) = &step.thinking {
            models.push_str(&format!("  thinking {thinking}"));
        }
        row("model", models)?;
    }
    if !step.task.is_empty() {
        row("task", brief(&step.task))?;
    }
    if let Some(tools) = &step.tools {
        row("tools", if tools.is_empty() { "none".to_owned() } else { tools.join(", ") })?;
    }
    if step.cwd != plan.cwd {
        row("cwd", step.cwd.display().to_string())?;
    }
    if !step.env.is_empty() {
        // Values may be secrets.
        row("env", step.env.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", "))?;
    }
    if let Some(output) = &step.output {
        row("output", output.display().to_string())?;
    }
    if let Some(session) = &step.session_file {
        row("session", session.display().to_string())?;
    }
    let mut all: Vec<String> = limits(&step.budget).into_iter().collect();
    all.extend(step.tool_timeout.map(|t| format!("a tool call {}", written(t))));
    if !step.tool_exempt.is_empty() {
        all.push(format!("no time limit for calls of {}", step.tool_exempt.join(", ")));
    }
    if !all.is_empty() {
        row("limits", all.join(", "))?;
    }
    if let Some(looks) = attention(&step.attention).filter(|_| !common.attention) {
        row("attention", looks)?;
    }
    if let Some(time) = step.question_timeout.filter(|_| !common.questions) {
        row("questions", unanswered(time))?;
    }
    if step.completion_guard {
        row("guard", "fails when its task demands changes of files and it began none".to_owned())?;
    }
    Ok(())
}

/// The first line of a text, cut to a row.
fn brief(text: &str) -> String {
    let mut lines = text.trim().lines();
    let first = SafeText::line(lines.next().unwrap_or_default()).truncate(90).to_string();
    match lines.count() {
        0 => first,
        1 => format!("{first} (and 1 line more)"),
        n => format!("{first} (and {n} lines more)"),
    }
}

fn runner(runner: &Runner) -> String {
    match runner {
        Runner::Pi { transport, command, args } => {
            let how = match transport {
                PiTransport::Rpc => "pi, can be steered",
                PiTransport::Json => "pi, cannot be steered",
            };
            match command {
                None if args.is_empty() => how.to_owned(),
                _ => format!("{how}: {}", command_line(command.as_deref().unwrap_or("pi"), args)),
            }
        }
        Runner::Agent(agent) => {
            let how = match agent.kind.transport {
                Transport::Steerable => "can be steered",
                Transport::OneShot => "cannot be steered",
            };
            let family = agent.kind.family;
            let may = match agent.kind.permission {
                Permission::Allow => "may do everything without being asked",
                Permission::Ask if agent.kind.transport == Transport::OneShot => {
                    "what needs a permission is refused, because one prompt cannot ask"
                }
                Permission::Ask if !agent.rules.is_empty() => "asks for permission, as its rules say",
                Permission::Ask => "asks a person for permission",
                Permission::Deny => "what needs a permission is refused",
            };
            let said =
                families::of(family).arguments(&Start { resume: agent.resume.as_deref(), ..Start::new(agent.kind) });
            let args: Vec<String> = agent.args.iter().cloned().chain(said).collect();
            let line = command_line(agent.command.as_deref().unwrap_or(family.program()), &args);
            format!("{}, {how}, {may}: {line}", family.name())
        }
        Runner::ExternalCli { command, args } => format!("command: {}", command_line(command, args)),
        Runner::Demo { script } => format!("demo, script {script}"),
    }
}

/// A command as a shell would take it.
pub(super) fn command_line(command: &str, args: &[String]) -> String {
    std::iter::once(command).chain(args.iter().map(String::as_str)).map(text::quoted).collect::<Vec<_>>().join(" ")
}

fn limits(budget: &Budget) -> Option<String> {
    let count = |name: &str, limit: Option<Limit<u64>>| {
        limit.map(|l| both(name, l.soft.map(text::count), l.hard.map(text::count)))
    };
    let money = budget.cost.map(|l| both("cost", l.soft.map(|c| text::cost(c.0)), l.hard.map(|c| text::cost(c.0))));
    let all = [
        budget.time.map(|t| format!("time {}", written(t))),
        budget.idle.map(|t| format!("idle {}", written(t))),
        budget.turns.map(|t| format!("turns {} and {} to finish", t.max, t.grace)),
        count("tool calls", budget.tool_calls).map(|calls| match &budget.tool_block {
            Some(ToolBlock::Names(names)) => format!("{calls}, then none of {}", names.join(" ")),
            Some(ToolBlock::All) | None => calls,
        }),
        count("tokens", budget.tokens),
        money,
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// The thresholds that differ from the built-in ones, by the names that they have in a plan.
fn attention(own: &Thresholds) -> Option<String> {
    let built_in = Thresholds::default();
    if !own.enabled {
        return Some("off".to_owned());
    }
    let ms = |ms: u64| written(Duration::from_millis(ms));
    let say = |name: &str, own: Option<u64>, built_in: Option<u64>, value: &dyn Fn(u64) -> String| {
        (own != built_in).then(|| format!("{name} {}", own.map_or_else(|| "off".to_owned(), value)))
    };
    let mut all = Vec::new();
    all.extend(say("idle", own.idle_ms, built_in.idle_ms, &ms));
    all.extend(say("tool_open", own.tool_open_ms, built_in.tool_open_ms, &ms));
    all.extend(own.tool_open_of.iter().filter_map(|(t, at)| say(t, Some(*at).filter(|at| *at > 0), Some(0), &ms)));
    all.extend((!own.exempt.is_empty()).then(|| format!("exempt {}", own.exempt.join(" "))));
    all.extend(say("long_running", own.long_ms, built_in.long_ms, &ms));
    all.extend(say("long_running_turns", own.long_turns, built_in.long_turns, &text::count));
    all.extend(say("long_running_tokens", own.long_tokens, built_in.long_tokens, &text::count));
    all.extend(say("tool_failures", own.failures, built_in.failures, &text::count));
    all.extend(say("no_first_event", own.first_event_ms, built_in.first_event_ms, &ms));
    all.extend(say("repeated_calls", own.repeats, built_in.repeats, &text::count));
    (!all.is_empty()).then(|| all.join(", "))
}

fn both(name: &str, soft: Option<String>, hard: Option<String>) -> String {
    match (soft, hard) {
        (Some(soft), Some(hard)) => format!("{name} {hard} with a warning at {soft}"),
        (Some(soft), None) => format!("{name} with a warning at {soft}"),
        (None, Some(hard)) => format!("{name} {hard}"),
        (None, None) => name.to_owned(),
    }
}
