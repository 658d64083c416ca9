//! `subdeck resume` and `subdeck retry`: a new run from an earlier one, carrying over what was completed (product 2).

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};

use super::args::{ResumeArgs, RetryArgs};
use super::load::World;
use super::{find, launch};
use crate::plan::template::Filling;
use crate::plan::{Carried, LogicalStep, Plan, RunExtras, Runner, Step, programs, stored};
use crate::run::{Family, RunState, RunnerKind, StepId, StepPhase, StepState, Timestamp};
use crate::rundir::RunDir;
use crate::text::{SafeText, span};

/// A minute, in milliseconds.
const MINUTE: i64 = 60_000;
/// As long as an agent may take to begin its session.
const START: Duration = Duration::from_secs(30);
/// What an agent is told when the person says nothing.
const GO_ON: &str = "You were interrupted. Go on with your task where you left off.";

/// `subdeck resume`.
pub fn resume(args: ResumeArgs) -> anyhow::Result<ExitCode> {
    let world = World::to_start()?;
    let (dir, step) = find::target(&world, args.root.root.as_deref(), &args.target)?;
    let earlier = Earlier::read(dir)?;
    let wait = earlier.taken_for(crate::engine::now());
    let plan = earlier.resumed(step, args.text.as_deref())?;
    startable(&world, &plan)?;
    if let Some(wait) = wait {
        tell!("subdeck: Gemini CLI would write over a session that began in this minute: waiting {}", span(wait));
        std::thread::sleep(wait);
    }
    launch::start(&world, &plan, args.root.root.as_deref(), &args.show, args.detach, args.ask.on_permission)
}

/// `subdeck retry`.
pub fn retry(args: RetryArgs) -> anyhow::Result<ExitCode> {
    let world = World::to_start()?;
    let dir = find::run(&world, args.root.root.as_deref(), &args.run)?;
    let earlier = Earlier::read(dir)?;
    let plan = earlier.retried()?;
    startable(&world, &plan)?;
    launch::start(&world, &plan, args.root.root.as_deref(), &args.show, args.detach, args.ask.on_permission)
}

/// Goes on with a step of a run that is over, as `subdeck resume` does, for a deck that shows the new run afterwards.
///
/// # Errors
/// Why nothing was started.
pub fn go_on_with(
    world: &World,
    root: Option<&std::path::Path>,
    dir: &RunDir,
    step: StepId,
    text: &str,
) -> anyhow::Result<RunDir> {
    let earlier = Earlier::read(dir.clone())?;
    if let Some(wait) = earlier.taken_for(crate::engine::now()) {
        bail!("Gemini CLI would write over a session that began in this minute; try again in {}", span(wait));
    }
    let plan = earlier.one(step, Some(text))?;
    startable(world, &plan)?;
    launch::detached(world, &plan, root)
}

/// Does again what failed or never ran of a run that is over, as `subdeck retry` does, for a deck that shows the new run
/// afterwards.
///
/// # Errors
/// Why nothing was started.
pub fn do_again(world: &World, root: Option<&std::path::Path>, dir: &RunDir) -> anyhow::Result<RunDir> {
    let plan = Earlier::read(dir.clone())?.retried()?;
    startable(world, &plan)?;
    launch::detached(world, &plan, root)
}

/// Whether the programs of the new run are there still.
fn startable(world: &World, plan: &Plan) -> anyhow::Result<()> {
    let sessions = plan.flat().filter(|step| step.carried.is_none()).filter_map(|step| step.session_file.as_deref());
    for session in sessions {
        // Taken for a look; the runner takes it for good.
        if let Err(why) = crate::engine::session::take(session) {
            bail!("{why}; nothing was started");
        }
    }
    let missing = plan.flat().filter_map(|step| programs::missing(step, world.env.path.as_deref()));
    match missing.into_iter().find(|m| m.certain) {
        Some(missing) => bail!("{}; nothing was started", missing.message),
        None => Ok(()),
    }
}

/// A run that is over, with its stored plan.
struct Earlier {
    state: RunState,
    plan: Plan,
    outputs: std::collections::BTreeMap<StepId, String>,
}

impl Earlier {
    fn read(dir: RunDir) -> anyhow::Result<Self> {
        let name = SafeText::line(dir.id_str());
        let state =
            crate::rundir::read_status(&dir).with_context(|| format!("the status of run {name} is unreadable"))?;
        // Of a run that was started elsewhere nothing can be begun again here, whether it is over or not.
        let bytes = crate::rundir::plan_doc::bytes(&dir).with_context(|| {
            format!("run {name} has no stored plan (subdeck/plan.json), so its steps cannot be started again")
        })?;
        if !state.is_over() && !matches!(crate::rundir::identity::probe(&dir), crate::rundir::RunnerLife::Dead(_)) {
            bail!("run {name} is not over yet; interrupt or stop it first, or wait for it");
        }
        // What an agent of the earlier run still does would meet what the new one does.
        let left = if state.is_over() && state.lost.is_none() { Vec::new() } else { crate::engine::leftovers(&dir) };
        if let Some(first) = left.first() {
            bail!(
                "{} of the lost run {name} live on (pid {}, {}); end them first with `subdeck stop {name}`",
                if left.len() == 1 { "one process".to_owned() } else { format!("{} processes", left.len()) },
                first.pid,
                SafeText::line(&first.command).truncate(60)
            );
        }
        // The demo's own variable says only how fast it plays.
        let value = |_: &str, name: &str| {
            std::env::var(name).ok().or_else(|| (name == super::demo::SPEED).then(|| "1".to_owned()))
        };
        let stored = stored::decode(&bytes, &value)?;
        if !stored.missing_env.is_empty() {
            let names: Vec<_> = stored.missing_env.iter().map(|(step, name)| format!("{name} (step {step})")).collect();
            bail!(
                "variables of the plan are not kept on disk and are missing here: {}; set them and try again",
                names.join(", ")
            );
        }
        let outputs = crate::rundir::result_read::outputs(&dir, &state);
        let mut plan = stored.plan;
        plan.take_limits(&state);
        Ok(Self { state, plan, outputs })
    }

    /// How long nothing can be gone on with. Gemini CLI keeps a session in a file with the minute in its name, and writes
    /// over it when it loads the session in the same minute.
    fn taken_for(&self, now: Timestamp) -> Option<Duration> {
        let minute = |at: Timestamp| at.millis().div_euclid(MINUTE);
        let gemini = |step: &&StepState| matches!(step.runner, RunnerKind::Agent(a) if a.family == Family::Gemini);
        // The session begins when the agent is up.
        let began = |step: &StepState| Some((step.started_at? + START).min(step.ended_at.unwrap_or(now)));
        let taken = |step: &StepState| began(step).is_some_and(|at| minute(at) >= minute(now));
        let left = MINUTE - now.millis().rem_euclid(MINUTE);
        let taken = self.state.steps.iter().filter(gemini).any(taken);
        taken.then(|| Duration::from_millis(left.unsigned_abs()))
    }

    /// Goes on with one step, or with every paused one and what comes after it.
    fn resumed(self, step: Option<StepId>, text: Option<&str>) -> anyhow::Result<Plan> {
        if let Some(id) = step {
            return self.one(id, text);
        }
        let paused = self.state.steps.iter().filter(|s| s.phase == StepPhase::Paused).count();
        if paused == 0 {
            if let [only] = self.state.steps.as_slice() {
                let id = only.id;
                return self.one(id, text);
            }
            bail!(
                "no step of this run is paused; name the one to go on with, such as {}:1, or use `subdeck retry`",
                SafeText::line(self.state.id.as_str())
            );
        }
        let unnamed =
            |(step, before): &(&Step, &StepState)| before.phase == StepPhase::Paused && begins_anew(step, before);
        if let Some((_, step)) = self.plan.flat().zip(&self.state.steps).find(unnamed)
            && text.is_some()
        {
            bail!(
                "the agent of step {} never named its session and begins anew, so it cannot be told this; leave the text out",
                step.id
            );
        }
        let earlier = self.state.clone();
        let outputs = self.outputs.clone();
        self.rebuilt(|id, step| {
            let before = earlier.step(id)?;
            match before.phase {
                StepPhase::Complete => carry(step, &outputs, id),
                StepPhase::Paused => go_on(step, before, text.unwrap_or(GO_ON)),
                _ => {}
            }
            Some(())
        })
    }

    /// A run of this one step on its own session.
    fn one(self, id: StepId, text: Option<&str>) -> anyhow::Result<Plan> {
        let before = self.state.step(id).context("there is no such step")?.clone();
        if before.phase == StepPhase::Pending {
            bail!("step {id} never ran; use `subdeck retry`");
        }
        let mut step = self.plan.flat().nth(id.flat()).context("the stored plan has no such step")?.clone();
        match &step.runner {
            Runner::Pi { .. } | Runner::Demo { .. } => {
                if before.session_file.as_deref().is_none_or(|p| !std::path::Path::new(p).exists()) {
                    bail!("the session file of step {id} is gone, so the agent cannot go on where it was");
                }
            }
            Runner::Agent(_) if begins_anew(&step, &before) => {
                bail!("the agent of step {id} never named its session, so it cannot go on; use `subdeck retry`");
            }
            Runner::Agent(_) => {}
            Runner::ExternalCli { .. } => {
                bail!("step {id} is a plain command and has no session to go on with; use `subdeck retry`");
            }
        }
        // Whether it can go on at all comes before what it should do.
        let text = match (text, &before.phase) {
            (Some(text), _) => text,
            // A step that still runs by its status ran when its runner died.
            (None, StepPhase::Paused | StepPhase::Stopped | StepPhase::Failed | StepPhase::Running) => GO_ON,
            (None, _) => bail!("step {id} has finished; say what it should do next: subdeck resume RUN:{id} TEXT"),
        };
        step.carried = None;
        go_on(&mut step, &before, text);
        let resumed_from = Some(self.state.id.0.clone());
        Ok(Plan { steps: vec![LogicalStep::Single(Box::new(step))], mode: None, resumed_from, ..fresh(self.plan) })
    }

    /// What failed, was stopped or never ran is run again, with new sessions.
    fn retried(self) -> anyhow::Result<Plan> {
        if self.state.steps.iter().all(|s| s.phase == StepPhase::Complete) {
            bail!("every step of this run is complete; there is nothing to retry");
        }
        let earlier = self.state.clone();
        let outputs = self.outputs.clone();
        self.rebuilt(|id, step| {
            if earlier.step(id)?.phase == StepPhase::Complete {
                carry(step, &outputs, id);
            }
            Some(())
        })
    }

    fn rebuilt(self, mut change: impl FnMut(StepId, &mut Step) -> Option<()>) -> anyhow::Result<Plan> {
        let resumed_from = Some(self.state.id.0.clone());
        let mut plan = Plan { resumed_from, ..fresh(self.plan) };
        let mut flat = 0u32;
        for entry in &mut plan.steps {
            let members = match entry {
                LogicalStep::Single(step) => std::slice::from_mut(&mut **step),
                LogicalStep::Group { steps, .. } => steps.as_mut_slice(),
            };
            for step in members {
                change(StepId(flat), step).context("the stored plan and the status have different steps")?;
                flat += 1;
            }
        }
        Ok(plan)
    }
}

/// The plan for a new run: what named the old run's own places is taken out, and those above it, who know nothing of the new
/// one.
fn fresh(plan: Plan) -> Plan {
    let extras = RunExtras { route: None, nested: None, ..plan.extras };
    Plan { run_id: None, run_dir: None, result_path: None, deadline_at_ms: None, extras, ..plan }
}

fn carry(step: &mut Step, outputs: &std::collections::BTreeMap<StepId, String>, id: StepId) {
    let output = outputs.get(&id).cloned().unwrap_or_default();
    step.carried = Some(Carried { output });
}

/// Whether there is no session that its agent could go on with.
fn begins_anew(step: &Step, before: &StepState) -> bool {
    matches!(&step.runner, Runner::Agent(agent) if before.session_id.is_none() && agent.resume.is_none())
}

fn go_on(step: &mut Step, before: &StepState, text: &str) {
    if begins_anew(step, before) {
        return;
    }
    match &mut step.runner {
        Runner::Pi { .. } | Runner::Demo { .. } => step.session_file = before.session_file.clone().map(Into::into),
        Runner::Agent(agent) => agent.resume = before.session_id.clone().or(agent.resume.take()),
        Runner::ExternalCli { .. } => return,
    }
    (step.task, step.filling) = (text.to_owned(), Filling::Literal);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::AgentRunner;
    use crate::run::{AgentKind, Permission};

    fn kind(family: Family) -> AgentKind {
        AgentKind { family, transport: family.transport(), permission: Permission::default() }
    }

    /// A run of one step of this family that was paused.
    fn paused(family: Family, change: impl FnOnce(&mut StepState)) -> Earlier {
        let kind = kind(family);
        let mut state = StepState {
            phase: StepPhase::Paused,
            runner: RunnerKind::Agent(kind),
            session_id: Some("s-1".to_owned()),
            ..StepState::default()
        };
        change(&mut state);
        let runner = AgentRunner {
            kind,
            command: None,
            args: Vec::new(),
            rules: Vec::new(),
            resume: None,
            fixed_transport: false,
        };
        let step = Step { task: "Do it.".to_owned(), runner: Runner::Agent(runner), ..Step::default() };
        Earlier {
            state: RunState { steps: vec![state], ..RunState::default() },
            plan: Plan { steps: vec![LogicalStep::Single(Box::new(step))], ..Plan::default() },
            outputs: std::collections::BTreeMap::new(),
        }
    }

    fn seconds(at: i64) -> Timestamp {
        Timestamp::from_millis(at * 1000)
    }

    #[test]
    fn a_session_of_gemini_is_left_alone_until_its_minute_is_over() {
        // Seconds into a minute: when the step began and ended, what time it is, and how long it has to be waited.
        for (began, ended, now, wait) in [
            (Some(10), Some(20), 30, Some(30)),
            (Some(10), Some(20), 59, Some(1)),
            (Some(10), Some(20), 60, None),
            // The agent may have needed until the next minute to begin its session.
            (Some(40), Some(80), 90, Some(30)),
            (Some(40), Some(50), 65, None),
            (Some(40), None, 50, Some(10)),
            (None, None, 30, None),
        ] {
            let earlier = paused(Family::Gemini, |step| {
                (step.started_at, step.ended_at) = (began.map(seconds), ended.map(seconds));
            });
            let found = earlier.taken_for(seconds(now));
            assert_eq!(found, wait.map(Duration::from_secs), "{began:?} to {ended:?} at {now}");
        }
        let other = paused(Family::Qwen, |step| step.started_at = Some(seconds(10)));
        assert_eq!(other.taken_for(seconds(30)), None);
    }

    #[test]
    fn a_paused_agent_goes_on_in_its_session_and_one_that_named_none_begins_anew() {
        let only = |plan: Plan| plan.flat().next().cloned().expect("a step");
        let resume = |step: &Step| match &step.runner {
            Runner::Agent(agent) => agent.resume.clone(),
            other => panic!("{other:?}"),
        };
        let step = only(paused(Family::Codex, |_| {}).resumed(None, Some("more")).expect("a plan"));
        assert_eq!((step.task.as_str(), resume(&step).as_deref()), ("more", Some("s-1")));
        let step = only(paused(Family::Codex, |_| {}).resumed(None, None).expect("a plan"));
        assert_eq!((step.task.as_str(), resume(&step).as_deref()), (GO_ON, Some("s-1")));
        // It was interrupted before it said anything: its task is begun again, and there is nobody to be told more.
        let nameless = || paused(Family::Codex, |step| step.session_id = None);
        let step = only(nameless().resumed(None, None).expect("a plan"));
        assert_eq!((step.task.as_str(), resume(&step)), ("Do it.", None));
        let error = nameless().resumed(None, Some("more")).expect_err("nobody to be told").to_string();
        assert!(error.contains("never named its session"), "{error}");
        let error = nameless().resumed(Some(StepId(0)), None).expect_err("no session").to_string();
        assert!(error.contains("never named its session") && error.contains("subdeck retry"), "{error}");
    }
}
