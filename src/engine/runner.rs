//! The runner's own process: it takes the run directory over, says that it is ready, runs, and goes.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};

use super::capture::Capture;
use super::clock::now;
use super::complain::complain;
use super::dispatch::{Doors, Engine};
use super::launch::HandOver;
use super::nested::Nested;
use super::recorder::Recorder;
use super::signals::Signals;
use crate::plan::stored;
use crate::plan::{LogicalStep, Plan, Runner};
use crate::run::{Group, Limits, RunContract, RunMeta, RunnerKind, StepContract, StepMeta, Timestamp, What};
use crate::rundir::{EventLog, Home, InboxReader, Place, ResultContext, RunDir, RunnerIdentity, RunnerLock, Watch};

/// The exit code of a runner whose run could not be recorded.
const UNRECORDED: u8 = 7;

/// Why a runner could not begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The stored plan cannot be used.
    #[error("the stored plan cannot be used: {0}")]
    Plan(String),
    /// Another runner has the directory, or the lock cannot be taken.
    #[error("{0}")]
    Lock(String),
    /// Something on disk.
    #[error("cannot {doing}: {error}")]
    Disk {
        /// What was tried.
        doing: &'static str,
        /// What the system says.
        error: std::io::Error,
    },
}

fn disk(doing: &'static str) -> impl FnOnce(std::io::Error) -> StartError {
    move |error| StartError::Disk { doing, error }
}

/// How the runner stands to whoever started it.
#[derive(Clone, Copy, Debug)]
pub struct Stance {
    /// It belongs to a command in the foreground: it ends with it.
    pub foreground: bool,
}

/// The runner's main. Standard input holds the values that may not be on disk, standard output is where readiness is
/// told. The return value is the process's exit code: 0 for every finished run, 1 when it could not begin, 7 when its
/// directory was removed meanwhile, so that it could not be recorded.
#[must_use]
pub fn main(path: &Path, stance: Stance) -> u8 {
    // A group of its own keeps the terminal's Ctrl-C away; the command in front passes on what it means.
    let _ = rustix::process::setpgid(None, None);
    super::keeper::take_name();
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        if stance.foreground {
            let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM));
        }
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tell(&serde_json::json!({ "error": format!("cannot start the runtime: {error}") }));
            return 1;
        }
    };
    runtime.block_on(async {
        match begin(path, stance) {
            Ok((mut engine, notes, mut doors, _lock)) => {
                engine.run(notes, &mut doors).await;
                if engine.home.place() == Place::Gone { UNRECORDED } else { 0 }
            }
            Err(error) => {
                tell(&serde_json::json!({ "error": error.to_string() }));
                1
            }
        }
    })
}

fn tell(message: &serde_json::Value) {
    let mut out = std::io::stdout().lock();
    // Whoever waited may be gone; the run goes on without them.
    let _ = writeln!(out, "{message}");
    let _ = out.flush();
}

/// Standard output was the door to whoever started us; from now on it is the runner's own log. Whoever is told that the
/// run is ready finds this log too.
fn ready(home: &Home) {
    let log = home.way().runner_out();
    let file = crate::rundir::open::append(&log);
    tell(&serde_json::json!({ "ready": true, "pid": std::process::id() }));
    if let Ok(file) = file.or_else(|_| std::fs::File::open("/dev/null")) {
        let _ = rustix::stdio::dup2_stdout(&file);
    }
}

type Begun = (Engine, tokio::sync::mpsc::Receiver<super::notes::Note>, Doors, RunnerLock);

fn begin(path: &Path, stance: Stance) -> Result<Begun, StartError> {
    let signals = Signals::install(stance.foreground).map_err(disk("install signal handlers"))?;
    let deaths = signal(SignalKind::child()).map_err(disk("install signal handlers"))?;
    let mut handed = String::new();
    std::io::stdin().lock().read_to_string(&mut handed).map_err(disk("read what the launcher passes on"))?;
    let handed: HandOver = if handed.trim().is_empty() {
        HandOver::default()
    } else {
        serde_json::from_str(&handed).map_err(|e| StartError::Plan(e.to_string()))?
    };
    if handed.withdrawn {
        return Err(StartError::Plan("it could not be stored".to_owned()));
    }
    let home = Home::open(&RunDir::at(path)).map_err(disk("open the run directory"))?;
    let home = Arc::new(home);
    let (dir, way) = (home.dir().clone(), home.way().clone());
    let bytes = crate::rundir::open::whole(&way.plan_json()).map_err(disk("read the stored plan"))?;
    let stored = stored::decode(&bytes, &|step, name| handed.secrets.get(step, name));
    let plan = stored.map_err(|e| StartError::Plan(e.to_string()))?.plan;
    let lock = RunnerLock::acquire(&way).map_err(|e| StartError::Lock(e.to_string()))?;
    if way.runner_json().exists() {
        // Its files would be gone on with as if they were those of another run.
        return Err(StartError::Lock("this run was begun already; start another one with `subdeck retry`".to_owned()));
    }
    let cap = EventLog::cap_from_env(std::env::var("PI_SUBAGENT_ASYNC_EVENTS_MAX_BYTES").ok().as_deref());
    let log = EventLog::open(&way.events(), cap).map_err(disk("open events.jsonl"))?;
    let inbox = InboxReader::new(way).of_steps(plan.flat().count());
    let meta = meta(&plan, &dir);
    let result =
        ResultContext { most: plan.extras.summary, ..ResultContext::of_run(&dir, plan.result_path.as_deref()) };
    let mut recorder = Recorder::new(&home, log, result);
    recorder.nested = Nested::of(&plan, &dir);
    recorder.record(What::RunStarted(Box::new(meta)));
    let capture = Capture::new(handed.caps.step, handed.caps.run);
    let (engine, notes) = Engine::new(plan, home, recorder, capture, handed.on_permission);
    Ok((engine, notes, Doors { signals, deaths, inbox, watch: Watch::default(), missing: None }, lock))
}

/// What the first child need not wait for: the folders that others write into and the watch over them, the identity
/// for those who look whether the runner lives, logs of its own, and the word that all of it is there.
pub(super) fn open_doors(home: &Home, doors: &mut Doors, recorder: &mut Recorder) {
    let (dir, way) = (home.dir(), home.way());
    super::keeper::own_stderr(way);
    // Results and requests make the folder that they need, should one be missing.
    let made = way.make_folders().and_then(|()| dir.root().map_or(Ok(()), |root| root.create()));
    if let Err(error) = made {
        complain("runner", &format_args!("the run directory is not complete: {error}"));
    }
    let keeper = std::os::unix::process::parent_id();
    recorder.keep(&dir.runner_json(), RunnerIdentity::of_this_process(Some(keeper)).encode());
    if let Some(within) = &recorder.state().started_in
        && let Err(error) = crate::rundir::inside::announce(dir, within)
    {
        complain("runner", &format_args!("the run that this one was started in cannot be told of it: {error}"));
    }
    doors.watch = Watch::arrivals(doors.inbox.folders());
    doors.watch.more_arrivals([crate::rundir::inside::folder(way)]);
    // The folder of runs says when one of them is removed or renamed; only directories are made and removed in it.
    dir.root().into_iter().for_each(|root| doors.watch.departures(&root.runs()));
    ready(home);
}

/// What is known of the run before anything happens.
fn meta(plan: &Plan, dir: &RunDir) -> RunMeta {
    let mut steps = Vec::new();
    let mut groups = Vec::new();
    for (logical, entry) in plan.steps.iter().enumerate() {
        let members = match entry {
            LogicalStep::Single(step) => std::slice::from_ref(&**step),
            LogicalStep::Group { steps: members, .. } => {
                groups.push(Group { start: steps.len(), count: members.len(), logical });
                members.as_slice()
            }
        };
        for step in members {
            steps.push(StepMeta {
                key: step.key.clone(),
                agent: step.agent.clone(),
                label: step.label.clone(),
                phase: step.phase.clone(),
                logical,
                runner: kind(&step.runner),
                model: step.models.first().cloned(),
                thinking: step.thinking.clone(),
                session_file: super::prepare::session_file(step, steps.len(), dir).map(|p| p.display().to_string()),
                has_task: !step.task.is_empty(),
                timeout_ms: step.budget.time.map(|t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX)),
                cwd: step.cwd.display().to_string(),
                limits: Limits { tool_calls_observed: plan.usage_spares_children, ..step.limits() },
                thresholds: step.attention.clone(),
                carried_over: step.carried.is_some(),
                contract: StepContract {
                    models: step.models.clone(),
                    output_name: step.extras.output_name.clone(),
                    context: step.extras.context.clone(),
                    launch_digest: step.extras.launch_digest.clone(),
                    launch_extensions: step.extras.launch_extensions.clone().map(Into::into),
                    agent_contract: step.extras.agent_contract.clone(),
                    artifacts: super::artifacts::of(plan, step, steps.len(), dir.id_str()),
                    ..StepContract::default()
                }
                .into(),
            });
        }
    }
    let timeout_ms = plan.budget.time.map(|t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX));
    let deadline_at =
        plan.deadline_at_ms.map(Timestamp::from_millis).or_else(|| plan.budget.time.map(|time| now() + time));
    RunMeta {
        id: dir.id(),
        name: plan.name.clone(),
        // Without a session no result can be written (runner-behaviour 14.27), so a run without one is its own.
        session_id: Some(plan.session_id.clone().unwrap_or_else(|| format!("subdeck-{}", dir.id().as_str()))),
        owner_id: plan.owner_id.clone(),
        mode: plan.mode(),
        pid: Some(std::process::id()),
        cwd: plan.cwd.display().to_string(),
        timeout_ms,
        deadline_at,
        deadline_fixed: plan.deadline_at_ms.is_some(),
        limits: plan.run_limits(),
        steps,
        groups,
        logical_count: plan.steps.len(),
        resumed_from: plan.resumed_from.clone().map(crate::run::RunId),
        started_in: super::tree::enclosing(|name| std::env::var(name).ok()).filter(|within| within.run != dir.id()),
        contract: contract(plan),
    }
}

/// What the launcher said for the package's readers.
fn contract(plan: &Plan) -> RunContract {
    let extras = &plan.extras;
    RunContract {
        session_dir: plan.session_dir.as_ref().map(|p| p.display().to_string()),
        artifacts_dir: extras.artifacts.as_ref().map(|kept| kept.folder.clone()),
        parent_workflow: extras.parent_workflow.clone(),
        workflow_key: plan.control.workflow_key.clone(),
        nested: extras.nested.is_some(),
        launch_digest: extras.launch_digest.clone(),
        launch_extensions: extras.launch_extensions.clone(),
        task_index: extras.task_index,
        total_tasks: extras.total_tasks,
        graph: extras.graph.as_ref().and_then(crate::rundir::graph::read),
    }
}

fn kind(runner: &Runner) -> RunnerKind {
    match runner {
        Runner::Pi { transport: crate::plan::PiTransport::Rpc, .. } => RunnerKind::Pi,
        Runner::Pi { .. } => RunnerKind::PiJson,
        Runner::Demo { .. } => RunnerKind::Demo,
        Runner::Agent(agent) => RunnerKind::Agent(agent.kind),
        Runner::ExternalCli { command, args } => {
            RunnerKind::ExternalCli { command: command.clone(), args: args.clone() }
        }
    }
}
