//! A draft becomes a plan that is ready to run: agents looked up, defaults filled in, paths absolute.

mod notes;

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::agents::{self, AgentDef, Agents, Flavor};
use super::draft::{DraftLogical, DraftPlan, DraftRunner, DraftStep};
use super::ids::{self, members};
use super::nearest::nearest;
use super::reader::{Reader, Spanned};
use super::template::{Filling, stays, takes_prompt};
use super::{Budget, Defaults, Limit, LoadOptions, LogicalStep, Plan, Runner, Step, SystemPromptMode, read_agent};
use crate::run::{Family, NamedRunner};
use notes::{need_folder, need_text};

/// How many children of a group run at once when nothing else is said (runner-behaviour 2.3).
const CONCURRENCY: usize = 4;

/// Fills in everything. `base` is what paths of the plan are relative to.
pub(super) fn resolve(reader: &mut Reader<'_>, mut draft: DraftPlan, base: &Path, options: &LoadOptions) -> Plan {
    let cwd = match (&options.cwd, &draft.cwd) {
        (Some(cwd), _) => {
            let at = Spanned::nowhere((), "--cwd");
            let is_text = need_text(reader, &options.current_dir.join(cwd), &at);
            let cwd = absolute(&options.current_dir, &cwd.to_string_lossy(), options);
            if is_text {
                need_folder(reader, &cwd, &at);
            }
            cwd
        }
        (None, Some(written)) => {
            let cwd = absolute(base, &written.value, options);
            need_folder(reader, &cwd, &written.clone().map(|_| ()));
            cwd
        }
        (None, None) => {
            need_text(reader, &options.current_dir, &Spanned::nowhere((), "cwd"));
            options.current_dir.clone()
        }
    };
    if let Some(task) = &options.task {
        draft.task = Some(Spanned::nowhere(task.clone(), "--task"));
    }
    let foreign = draft.fixed.is_some();
    let folders = options.agent_folders.clone().unwrap_or_else(|| agents::folders(&cwd, options.home.as_deref()));
    let agents = if foreign { Agents::default() } else { agents::find(&folders) };
    if !foreign {
        let steps = draft.steps.iter_mut().flat_map(|logical| match logical {
            DraftLogical::Single(step) => std::slice::from_mut(&mut **step),
            DraftLogical::Group { steps, .. } => steps.as_mut_slice(),
        });
        for step in steps.filter(|step| step.runner.is_none() && !step.broken.runner) {
            name_runner(step, &agents, options);
        }
    }
    let mut resolver =
        Resolver { reader, options, agents: &agents, cwd: &cwd, foreign, draft: &draft, missing: Vec::new() };
    let names = |step: &DraftStep| agent_name(step, options);
    let ids = ids::assign(resolver.reader, &draft, &names);
    let outputs_are_filled =
        !foreign || draft.steps.len() > 1 || !matches!(draft.steps.first(), Some(DraftLogical::Single(_)));
    if outputs_are_filled {
        ids::check_tasks(resolver.reader, &draft, &ids);
    }
    let mut flat = ids.into_iter();
    let mut steps = Vec::with_capacity(draft.steps.len());
    for logical in &draft.steps {
        let ids = flat.by_ref();
        let mut children: Vec<Step> = members(logical).iter().zip(ids).map(|(s, id)| resolver.step(s, id)).collect();
        resolver.shared_outputs(logical, &children);
        match logical {
            DraftLogical::Single(_) => steps.extend(children.pop().map(|s| LogicalStep::Single(Box::new(s)))),
            DraftLogical::Group { concurrency, fail_fast, phase, .. } => {
                for child in &mut children {
                    child.phase = child.phase.take().or_else(|| phase.clone());
                }
                let concurrency =
                    concurrency.or(draft.concurrency).or(options.defaults.concurrency).unwrap_or(CONCURRENCY);
                steps.push(LogicalStep::Group {
                    steps: children,
                    concurrency: concurrency.max(1),
                    fail_fast: *fail_fast,
                });
            }
        }
    }
    if let (Some(tool), Some(run), false) = (&draft.tool_timeout, draft.budget.time, foreign)
        && tool.value > run
    {
        reader
            .warn_at(tool, "the time of a tool call is longer than the whole run's")
            .suggest("the run's time ends it first");
    }
    let mut budget = over(&options.budget, &draft.budget);
    if !foreign {
        budget.time = budget.time.or(options.defaults.time);
    }
    let fixed = draft.fixed.unwrap_or_default();
    Plan {
        name: options.name.clone().or(draft.name),
        task: draft.task.map(|t| t.value),
        cwd,
        budget,
        steps,
        run_id: foreign.then_some(fixed.run_id),
        run_dir: foreign.then_some(fixed.run_dir),
        result_path: foreign.then_some(fixed.result_path),
        session_id: fixed.session_id,
        session_dir: fixed.session_dir,
        owner_id: fixed.owner_id,
        mode: fixed.mode,
        deadline_at_ms: fixed.deadline_at_ms,
        resumed_from: None,
        usage_spares_children: foreign,
        control: fixed.control,
        extras: fixed.extras,
    }
}

/// The limits of `upper`, and those of `lower` where it has none.
fn over(upper: &Budget, lower: &Budget) -> Budget {
    Budget {
        time: upper.time.or(lower.time),
        idle: upper.idle.or(lower.idle),
        turns: upper.turns.or(lower.turns),
        tool_calls: both(upper.tool_calls, lower.tool_calls),
        tokens: both(upper.tokens, lower.tokens),
        cost: both(upper.cost, lower.cost),
        tool_block: upper.tool_block.clone().or_else(|| lower.tool_block.clone()),
    }
}

/// Each end of a limit by itself: a warning that is set does not take the end away. A warning of the lower one that would
/// lie above the end of the upper one is left out.
fn both<T: Copy + PartialOrd>(upper: Option<Limit<T>>, lower: Option<Limit<T>>) -> Option<Limit<T>> {
    let (Some(upper), Some(lower)) = (upper, lower) else { return upper.or(lower) };
    let hard = upper.hard.or(lower.hard.filter(|end| upper.soft.is_none_or(|warning| warning <= *end)));
    let soft = upper.soft.or(lower.soft.filter(|warning| hard.is_none_or(|end| *warning <= end)));
    Some(Limit { soft, hard })
}

/// Gives a step that names no runner the one of the command line, of its agent's definition, or the usual one.
fn name_runner(step: &mut DraftStep, agents: &Agents, options: &LoadOptions) {
    let usual = || options.defaults.agent.clone().map(|agent| Spanned::nowhere(agent, "defaults.agent"));
    let agent = step.agent.clone().or_else(usual);
    let own = agent.as_ref().and_then(|agent| agents.found.get(&agent.value)?.runner);
    let (runner, place) = match (options.runner, own, options.defaults.runner) {
        (Some(runner), ..) => (runner, "--runner"),
        (None, Some(runner), _) => {
            // The definition counts for what it says of the agent, too.
            step.agent = agent;
            (runner, "runner")
        }
        (None, None, Some(runner)) => (runner, "defaults.runner"),
        (None, None, None) => return,
    };
    let runner = match runner {
        // What steps run that say nothing.
        NamedRunner::Pi => return,
        NamedRunner::Agent(family) => read_agent::plain(family),
        NamedRunner::Demo => DraftRunner::Demo { script: None, env: Vec::new() },
    };
    step.runner = Some(Spanned::nowhere(runner, place));
}

/// The name that files show for the agent of a step.
fn agent_name(step: &DraftStep, options: &LoadOptions) -> String {
    if let Some(agent) = &step.agent {
        return agent.value.clone();
    }
    match step.runner.as_ref().map(|r| &r.value) {
        Some(DraftRunner::ExternalCli { command, .. }) => {
            Path::new(command).file_name().map_or_else(|| command.clone(), |n| n.to_string_lossy().into_owned())
        }
        Some(DraftRunner::Demo { script, .. }) => {
            let stem =
                script.as_deref().and_then(|s| Path::new(s).file_stem()).map(|s| s.to_string_lossy().into_owned());
            stem.unwrap_or_else(|| "demo".to_owned())
        }
        Some(DraftRunner::Agent { runner, .. }) => runner.kind.family.word().to_owned(),
        Some(DraftRunner::Pi { .. }) | None => options.defaults.agent.clone().unwrap_or_else(|| "pi".to_owned()),
    }
}

/// A path made absolute, `~/` and all, without `.` and without `..` where that is certain.
pub(super) fn absolute(base: &Path, path: &str, options: &LoadOptions) -> PathBuf {
    let path =
        match (path.strip_prefix("~/").or_else(|| path.strip_prefix('~').filter(|p| p.is_empty())), &options.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => base.join(path),
        };
    let path = options.current_dir.join(path);
    path.components().filter(|c| !matches!(c, Component::CurDir)).collect()
}

struct Resolver<'r, 's> {
    reader: &'r mut Reader<'s>,
    options: &'r LoadOptions,
    agents: &'r Agents,
    cwd: &'r Path,
    foreign: bool,
    draft: &'r DraftPlan,
    /// Programs that were missed already.
    missing: Vec<String>,
}

impl Resolver<'_, '_> {
    fn step(&mut self, draft: &DraftStep, id: String) -> Step {
        let agent = agent_name(draft, self.options);
        let runner = draft.runner.clone().map_or_else(DraftRunner::pi, |r| r.value);
        let definition = self.definition(draft, &agent, &runner);
        let base = definition.as_ref();
        let cwd = match &draft.cwd {
            Some(written) => {
                let cwd = absolute(self.cwd, &written.value, self.options);
                // A wrong folder of the run is said once.
                if cwd != self.cwd {
                    need_folder(self.reader, &cwd, &written.clone().map(|_| ()));
                }
                cwd
            }
            None => self.cwd.to_owned(),
        };
        let task = self.task(draft, &runner);
        // Whoever wrote a runner config has filled in what it knows of the configuration.
        let defaults = if self.foreign { Defaults::default() } else { self.options.defaults.clone() };
        let mut env = defaults.env;
        let runner_env = match &runner {
            DraftRunner::Pi { env, .. }
            | DraftRunner::Agent { env, .. }
            | DraftRunner::ExternalCli { env, .. }
            | DraftRunner::Demo { env, .. } => env,
        };
        for (name, value) in self.draft.env.iter().chain(runner_env).chain(&draft.env) {
            env.retain(|(known, _)| known != name);
            env.push((name.clone(), value.clone()));
        }
        let is_pi = matches!(runner, DraftRunner::Pi { .. });
        let default_model = defaults.model.filter(|_| is_pi);
        let models = draft.models.clone().or_else(|| base.map(|b| b.models.clone()).filter(|m| !m.is_empty()));
        let tools = draft.tools.clone().or_else(|| self.tools(base?, &runner, draft));
        let system_prompt = draft.system_prompt.clone().or_else(|| base.map(|b| b.system_prompt.clone()));
        let written_mode = draft.system_prompt_mode.or_else(|| base.map(|b| b.system_prompt_mode));
        let context = draft.inherit_project_context.or_else(|| base.map(|b| b.inherit_project_context));
        let skills = draft.inherit_skills.or_else(|| base.map(|b| b.inherit_skills));
        let output = draft.output.as_ref().map(|o| o.value.clone()).or_else(|| base.and_then(|b| b.output.clone()));
        self.times(draft);
        let own = |timeout: &Option<Spanned<Duration>>| timeout.as_ref().map(|t| t.value);
        let tool_timeout = own(&draft.tool_timeout)
            .or(base.and_then(|b| b.tool_timeout))
            .or(own(&self.draft.tool_timeout))
            .or(defaults.tool_timeout);
        let tool_exempt = draft.tool_exempt.as_ref().or(self.draft.tool_exempt.as_ref());
        let tool_exempt = tool_exempt.or(defaults.tool_exempt.as_ref()).cloned().unwrap_or_default();
        let attention = draft.attention.over(&self.draft.attention).over(&defaults.attention);
        let step = Step {
            key: id,
            agent,
            label: draft.label.clone(),
            phase: draft.phase.clone(),
            task,
            filling: self.filling(),
            cwd: cwd.clone(),
            env,
            models: models.unwrap_or_else(|| default_model.into_iter().collect()),
            thinking: draft.thinking.clone().or_else(|| base.and_then(|b| b.thinking.clone())),
            tools,
            extensions: draft.extensions.clone().or_else(|| base.and_then(|b| b.extensions.clone())),
            system_prompt: system_prompt.filter(|p| !p.is_empty()),
            system_prompt_mode: written_mode.unwrap_or(SystemPromptMode::Append),
            inherit_project_context: context.unwrap_or(true),
            inherit_skills: skills.unwrap_or(true),
            output: output.map(PathBuf::from),
            budget: draft.budget.clone(),
            tool_timeout,
            tool_exempt,
            question_timeout: draft.question_timeout.or(self.draft.question_timeout).or(defaults.question_timeout),
            attention: attention.thresholds(),
            completion_guard: draft.completion_guard,
            session_file: draft.session.as_ref().map(|s| absolute(&cwd, &s.value, self.options)),
            carried: None,
            acceptance: draft.acceptance.clone(),
            extras: draft.extras.clone(),
            runner: self.runner(runner),
        };
        self.unheeded(draft, base, &step);
        self.startable(draft, &step);
        step
    }

    fn runner(&self, runner: DraftRunner) -> Runner {
        match runner {
            DraftRunner::Pi { transport, command, args, .. } => {
                Runner::Pi { transport, command: command.or_else(|| self.options.pi_program.clone()), args }
            }
            DraftRunner::Agent { mut runner, permitted, .. } => {
                // What a plan says of permissions takes the place of all that the configuration says of them.
                if !permitted && !self.foreign {
                    let (permission, rules) = self.options.defaults.permission.clone().settled();
                    runner.kind.permission = permission;
                    runner.rules = rules;
                }
                Runner::Agent(runner)
            }
            DraftRunner::ExternalCli { command, args, .. } => Runner::ExternalCli { command, args },
            DraftRunner::Demo { script, .. } => Runner::Demo { script: script.unwrap_or_else(|| "default".to_owned()) },
        }
    }

    const fn filling(&self) -> Filling {
        if self.foreign { Filling::Given } else { Filling::Template }
    }

    fn task(&mut self, draft: &DraftStep, runner: &DraftRunner) -> String {
        let at = Spanned { value: (), span: draft.span.clone(), path: draft.path.clone() };
        let in_args = match (runner, &draft.runner) {
            (DraftRunner::ExternalCli { args, .. }, Some(written))
                if args.iter().any(|a| takes_prompt(a, self.filling())) =>
            {
                Some(written)
            }
            _ => None,
        };
        // What another step said is never put among arguments, where a shell would read it.
        if let (DraftRunner::ExternalCli { args, .. }, Some(written), false) = (runner, &draft.runner, self.foreign) {
            let filling = self.filling();
            for word in args.iter().filter_map(|arg| stays(arg, filling)) {
                self.reader
                    .warn_at(written, format!("`{word}` is not filled in in the arguments of a command"))
                    .suggest("write it in the step's `task`, which the command gets on standard input");
            }
        }
        let is_agent = !matches!(runner, DraftRunner::ExternalCli { .. });
        let task = match &draft.task {
            Some(task) => task.value.clone(),
            None if (is_agent || in_args.is_some()) && self.draft.task.is_some() && !self.foreign => {
                "{task}".to_owned()
            }
            None if draft.broken.task || draft.broken.runner => String::new(),
            None if is_agent => {
                self.reader
                    .error_at(&at, "the step has no `task`")
                    .suggest("say what the agent is to do: task = \"...\", or set `task` for the whole plan");
                String::new()
            }
            None => String::new(),
        };
        if let (Some(written), false) = (in_args, self.foreign) {
            if task.is_empty() && draft.literal {
                return task;
            }
            if task.is_empty() && !draft.broken.task {
                self.reader
                    .error_at(written, "`{task}` stands in the arguments, and the step has no `task`")
                    .suggest("give the step a `task` or take `{task}` out");
            } else {
                self.reader
                    .warn_at(written, "the task will be visible in the list of processes")
                    .suggest("leave `{task}` out to pass it on standard input, where the command can read it");
            }
        }
        task
    }

    /// The definition of the step's agent, when it needs one.
    fn definition(&mut self, draft: &DraftStep, agent: &str, runner: &DraftRunner) -> Option<AgentDef> {
        let family = match runner {
            DraftRunner::Pi { .. } => None,
            DraftRunner::Agent { runner, .. } => Some(runner.kind.family),
            DraftRunner::ExternalCli { .. } | DraftRunner::Demo { .. } => return None,
        };
        if self.foreign || (family.is_some() && draft.agent.is_none()) {
            return None;
        }
        if let Some(found) = self.agents.found.get(agent) {
            if let Some(nearer) = &found.instead_of {
                let at = Spanned { value: (), span: draft.span.clone(), path: draft.path.clone() };
                let (at, used) =
                    (draft.agent.as_ref().map_or(at, |written| written.clone().map(|_| ())), found.path.display());
                let message = format!("the agent `{agent}` is that of {used}: a nearer definition cannot be used");
                self.reader.warn_at(&at, message).suggest(format!("mend {}: {}", nearer.path.display(), nearer.reason));
            }
            return Some(found.clone());
        }
        let named = draft.agent.is_some() || self.options.defaults.agent.is_some();
        if !named
            || agent == family.map_or("pi", Family::word)
            || draft.system_prompt.is_some()
            || draft.broken.agent
            || draft.broken.runner
        {
            return None;
        }
        let skipped = self.agents.skipped.iter().find(|skipped| skipped.name == agent);
        let near = nearest(agent, self.agents.found.keys().map(String::as_str));
        let mut advice = match (skipped, near) {
            (Some(skipped), _) => format!("{} was skipped: {}", skipped.path.display(), skipped.reason),
            (None, Some(near)) => format!("did you mean `{near}`?"),
            (None, None) if self.agents.found.is_empty() => "no agent definitions were found".to_owned(),
            (None, None) => {
                let names: Vec<_> = self.agents.found.keys().take(8).map(String::as_str).collect();
                let more = if self.agents.found.len() > names.len() { " and others" } else { "" };
                format!("there are {}{more}", names.join(", "))
            }
        };
        advice.push_str(&self.searched());
        if draft.label.is_none() {
            advice.push_str("; a name for people is `label`");
        }
        let message = format!("there is no agent `{agent}`");
        match &draft.agent {
            Some(written) => self.reader.error_at(written, message).suggest(advice),
            None => self.reader.error(draft.span.clone(), &draft.path, message).suggest(advice),
        }
        None
    }

    /// Where definitions were looked for, in few words.
    fn searched(&self) -> String {
        if let Some(folders) = &self.options.agent_folders {
            let folders: Vec<_> = folders.iter().map(|(folder, _)| folder.display().to_string()).collect();
            return format!("; searched {}", folders.join(", "));
        }
        let levels = agents::project_levels(self.cwd);
        let up = match (levels.first(), levels.last()) {
            (Some(first), Some(last)) if first != last => format!("{} up to {}", first.display(), last.display()),
            _ => self.cwd.display().to_string(),
        };
        format!("; searched .subdeck/agents, .claude/agents and .pi/agents in {up} and in the home folder")
    }

    /// The tools of a definition, by the names that pi has for them.
    fn tools(&mut self, base: &AgentDef, runner: &DraftRunner, draft: &DraftStep) -> Option<Vec<String>> {
        let tools = base.tools.clone()?;
        match runner {
            DraftRunner::Pi { .. } if base.flavor == Flavor::Claude => {}
            DraftRunner::Agent { runner, .. } if base.flavor != Flavor::Claude => {
                return Some(match runner.kind.family {
                    Family::Claude => agents::tools_for_claude(&tools),
                    _ => tools,
                });
            }
            _ => return Some(tools),
        }
        let (known, unknown) = agents::tools_for_pi(&tools);
        if !unknown.is_empty() {
            let at = Spanned { value: (), span: draft.span.clone(), path: draft.path.clone() };
            let message = format!("pi has no tool for {} of agent `{}`", unknown.join(", "), base.name);
            self.reader.warn_at(&at, message).suggest("the agent runs without; set `tools` on the step to choose");
        }
        Some(known)
    }
}
