//! Reading `status.json`, lenient in types: whatever is missing, odd or unknown becomes a value, never an error
//! (law 10, run-directory 10).

use std::collections::VecDeque;

use serde_json::{Map, Value};

use super::status::signal_number;
use crate::run::{
    Attempt, ControlSource, CostUsd, Ending, ExitInfo, ExternalProcess, Group, NamedOutput, OpenCall, Retrying, RunId,
    RunMode, RunPhase, RunState, RunnerKind, SteerMode, SteerRequest, SteerTarget, Steerable, Steering, StepId,
    StepPhase, StepState, TargetState, Timestamp, Tokens, ToolCall, ToolOutcome, Usage,
};

/// Why a document could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is none; right after its creation a run has none yet.
    #[error("it has no status yet")]
    Missing,
    /// The file system refused.
    #[error("it cannot be read: {0}")]
    Io(std::io::Error),
    /// It is not JSON, perhaps half-written.
    #[error("it is not valid JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// It is JSON but not an object.
    #[error("it is not a JSON object")]
    NotAnObject,
}

/// Most bytes of a status document that are read; tool lists of foreign runs grow without bound.
pub const STATUS_MOST: u64 = 64 * 1024 * 1024;

/// Reads a status document.
///
/// # Errors
/// Only when it is not a JSON object at all.
pub fn decode(bytes: &[u8]) -> Result<RunState, ReadError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match serde_json::from_slice(bytes)? {
        Value::Object(doc) => Ok(run(&doc)),
        _ => Err(ReadError::NotAnObject),
    }
}

/// Reads the status of a run directory.
///
/// # Errors
/// [`ReadError::Missing`] when there is none yet, else why it cannot be read.
pub fn read(dir: &super::RunDir) -> Result<RunState, ReadError> {
    let read = super::open::regular(&dir.status()).and_then(|f| super::open::read_at_most(&f, STATUS_MOST));
    match read {
        Ok(bytes) => decode(&bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(ReadError::Missing),
        Err(error) => Err(ReadError::Io(error)),
    }
}

/// Typed looks into an object; a field of another type is as good as absent.
pub(super) struct Look<'a>(pub(super) &'a Map<String, Value>);

impl<'a> Look<'a> {
    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.str(key).map(str::to_owned)
    }
    pub(super) fn str(&self, key: &str) -> Option<&'a str> {
        self.0.get(key)?.as_str()
    }
    pub(super) fn num(&self, key: &str) -> Option<f64> {
        self.0.get(key)?.as_f64().filter(|n| n.is_finite())
    }
    /// A count: a fraction is cut, a negative one is none.
    pub(super) fn count(&self, key: &str) -> Option<u64> {
        let value = self.0.get(key)?;
        value.as_u64().or_else(|| value.as_f64().filter(|n| *n >= 0.0).map(|n| n as u64))
    }
    pub(super) fn small(&self, key: &str) -> Option<u32> {
        u32::try_from(self.count(key)?).ok()
    }
    pub(super) fn place(&self, key: &str) -> Option<usize> {
        usize::try_from(self.count(key)?).ok()
    }
    pub(super) fn code(&self, key: &str) -> Option<i32> {
        self.num(key).map(|n| n as i32)
    }
    pub(super) fn time(&self, key: &str) -> Option<Timestamp> {
        self.num(key).map(Timestamp::from_millis_f64)
    }
    pub(super) fn is(&self, key: &str) -> bool {
        self.0.get(key).and_then(Value::as_bool).unwrap_or(false)
    }
    pub(super) fn bool(&self, key: &str) -> Option<bool> {
        self.0.get(key)?.as_bool()
    }
    pub(super) fn obj(&self, key: &str) -> Option<Look<'a>> {
        self.0.get(key)?.as_object().map(Look)
    }
    pub(super) fn list(&self, key: &str) -> &'a [Value] {
        self.0.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
    pub(super) fn objs(&self, key: &str) -> impl Iterator<Item = Look<'a>> {
        self.list(key).iter().filter_map(|v| v.as_object().map(Look))
    }
    pub(super) fn pids(&self, key: &str) -> Vec<u32> {
        self.list(key).iter().filter_map(|v| u32::try_from(v.as_u64()?).ok()).collect()
    }
    pub(super) fn step(&self, key: &str) -> Option<StepId> {
        self.small(key).map(StepId)
    }
}

fn run(doc: &Map<String, Value>) -> RunState {
    let look = Look(doc);
    let empty = Map::new();
    let own = look.obj("subdeck").unwrap_or(Look(&empty));
    let steps: Vec<StepState> = look
        .list("steps")
        .iter()
        .zip(0u32..)
        .map(|(value, id)| value.as_object().map_or_else(|| unreadable_step(id), |s| step(&Look(s), id)))
        .collect();
    let logical_count = look.place("chainStepCount").unwrap_or(0);
    let mut state = RunState {
        id: RunId(look.text("runId").unwrap_or_default()),
        name: own.text("name"),
        session_id: look.text("sessionId"),
        owner_id: look.text("completionOwnerId"),
        mode: look.str("mode").map_or(RunMode::Single, mode),
        phase: run_phase(look.str("state").unwrap_or("unknown")),
        pid: look.small("pid").filter(|pid| *pid != 0),
        cwd: look.text("cwd").unwrap_or_default(),
        started_at: look.time("startedAt"),
        ended_at: look.time("endedAt"),
        last_update: look.time("lastUpdate"),
        last_activity: look.time("lastActivityAt"),
        timeout_ms: look.count("timeoutMs"),
        deadline_at: look.time("deadlineAt"),
        groups: groups(&look, steps.len(), logical_count),
        steps,
        logical_count,
        current: own.step("current"),
        last_started: own.step("lastStarted"),
        steering: look.obj("steering").map(|s| steering(&s)).unwrap_or_default(),
        error: look.text("error"),
        stopped: look.is("stopped"),
        timed_out: look.is("timedOut"),
        interrupted: own.is("interrupted") || look.str("state") == Some("paused"),
        ended_by: own.obj("endedBy").map(|s| source(&s)),
        outputs: look.obj("outputs").map(|o| outputs(&o)).unwrap_or_default(),
        resumed_from: own.text("resumedFrom").map(RunId),
        lost: own.text("lost"),
        rejected: own
            .objs("rejected")
            .map(|r| (r.text("file").unwrap_or_default(), r.text("reason").unwrap_or_default()))
            .collect(),
        anomalies: own.count("anomalies").unwrap_or(0),
        next_seq: own.count("nextSeq").unwrap_or(0),
    };
    if look.obj("subdeck").is_none() {
        // A foreign status always names a current step; it means something only once a step has started.
        let started = state.steps.iter().any(|s| s.started_at.is_some());
        state.current = look.step("currentStep").filter(|_| started);
        state.last_started = look.str("outputFile").and_then(step_of_output).filter(|_| started);
        number_logical(&mut state);
    }
    state
}

fn step(look: &Look<'_>, id: u32) -> StepState {
    let empty = Map::new();
    let own = look.obj("subdeck").unwrap_or(Look(&empty));
    let phase = step_phase(look.str("status").unwrap_or("unknown"));
    let usage = look.obj("tokens");
    let cache = own.obj("cache");
    let tokens = Tokens {
        input: usage.as_ref().and_then(|t| t.count("input")).unwrap_or(0),
        output: usage.as_ref().and_then(|t| t.count("output")).unwrap_or(0),
        cache_read: cache.as_ref().and_then(|t| t.count("read")).unwrap_or(0),
        cache_write: cache.as_ref().and_then(|t| t.count("write")).unwrap_or(0),
    };
    let cost = match look.obj("subdeck") {
        Some(own) => own.num("costUsd"),
        None => look.obj("totalCost").and_then(|c| c.num("costUsd")).or_else(|| attempts_cost(look)),
    };
    let mut runner = look.obj("runner").map(|r| runner(&r)).unwrap_or_default();
    if let Some(word) = own.str("runner") {
        runner = runner_of_word(word);
    }
    let open = open_calls(look, &own, &phase);
    StepState {
        id: StepId(id),
        key: own.text("key").unwrap_or_default(),
        agent: look.text("agent").unwrap_or_default(),
        label: look.text("label"),
        phase_title: look.text("phase"),
        logical: own.place("logical").unwrap_or(id as usize),
        runner,
        phase,
        started_at: look.time("startedAt"),
        ended_at: look.time("endedAt"),
        exit_code: look.code("exitCode"),
        error: look.text("error"),
        timed_out: look.is("timedOut"),
        stopped: look.is("stopped"),
        model: look.text("model"),
        thinking: look.text("thinking"),
        session_file: look.text("sessionFile"),
        session_id: own.text("sessionId"),
        attempts: attempts(look, &own),
        pid: own.small("pid"),
        start_ticks: own.count("startTicks"),
        exit: own.obj("exit").map(|e| ExitInfo { code: e.code("code"), signal: e.code("signal") }),
        last_activity: look.time("lastActivityAt"),
        open,
        recent_tools: recent_tools(look, &own),
        tool_count: look.count("toolCount").unwrap_or(0),
        turn_count: look.count("turnCount").unwrap_or(0),
        tokens,
        cost: cost.map(CostUsd),
        last_message: None,
        recent_output: tail(
            look.list("recentOutput").iter().filter_map(|v| v.as_str().map(str::to_owned)),
            StepState::KEPT_LINES,
        ),
        retrying: own.obj("retrying").map(|r| Retrying {
            attempt: r.small("attempt"),
            max: r.small("max"),
            until: r.time("until"),
            reason: r.text("reason").unwrap_or_default(),
        }),
        settled_at: own.time("settledAt"),
        ending: own.obj("ending").and_then(|e| ending(&e)),
        steerable: match own.bool("steerable") {
            Some(true) => Steerable::Yes,
            Some(false) => Steerable::No(own.text("notSteerable").unwrap_or_default()),
            None => Steerable::Unknown,
        },
        steering: look.obj("steering").map(|s| steering(&s)).unwrap_or_default(),
        external: look.obj("externalProcess").map(|p| external(&p)),
        held_by: own.pids("heldBy"),
        survivors: own.pids("survivors"),
        truncated_at: own.count("truncatedAt"),
        log_error: own.text("logError"),
        timeout_ms: own.count("timeoutMs"),
        carried_over: own.is("carriedOver"),
        has_task: look.str("description").is_some(),
        activity: look.text("activityState"),
    }
}

fn unreadable_step(id: u32) -> StepState {
    StepState { id: StepId(id), phase: StepPhase::Unknown("unreadable".into()), ..StepState::default() }
}

pub(super) fn mode(word: &str) -> RunMode {
    match word {
        "single" => RunMode::Single,
        "parallel" => RunMode::Parallel,
        "chain" => RunMode::Chain,
        "workflow" => RunMode::Workflow,
        other => RunMode::Unknown(other.to_owned()),
    }
}

pub(super) fn run_phase(word: &str) -> RunPhase {
    match word {
        "queued" => RunPhase::Queued,
        "running" => RunPhase::Running,
        "complete" | "completed" => RunPhase::Complete,
        "failed" => RunPhase::Failed,
        "paused" => RunPhase::Paused,
        "stopped" => RunPhase::Stopped,
        "rejected" => RunPhase::Rejected,
        other => RunPhase::Unknown(other.to_owned()),
    }
}

pub(super) fn step_phase(word: &str) -> StepPhase {
    match word {
        "pending" => StepPhase::Pending,
        "running" => StepPhase::Running,
        "complete" | "completed" => StepPhase::Complete,
        "failed" => StepPhase::Failed,
        "paused" => StepPhase::Paused,
        "stopped" => StepPhase::Stopped,
        "rejected" => StepPhase::Rejected,
        other => StepPhase::Unknown(other.to_owned()),
    }
}

/// Valid groups only, in order (run-directory 2.3).
fn groups(look: &Look<'_>, steps: usize, logical: usize) -> Vec<Group> {
    let mut groups: Vec<Group> = look
        .objs("parallelGroups")
        .filter_map(|g| {
            Some(Group { start: g.place("start")?, count: g.place("count")?, logical: g.place("stepIndex")? })
        })
        .filter(|g| g.count > 0 && g.logical < logical && g.start.checked_add(g.count).is_some_and(|end| end <= steps))
        .collect();
    groups.sort_by_key(|g| (g.logical, g.start));
    groups
}

/// Flat steps outside of groups are the remaining logical steps in their order (run-directory 2.3).
fn number_logical(state: &mut RunState) {
    let mut next = 0;
    for (flat, step) in state.steps.iter_mut().enumerate() {
        match state.groups.iter().find(|g| (g.start..g.start + g.count).contains(&flat)) {
            Some(group) => step.logical = group.logical,
            None => {
                while state.groups.iter().any(|g| g.logical == next) {
                    next += 1;
                }
                step.logical = next;
                next += 1;
            }
        }
    }
    state.logical_count = state.logical_count.max(next);
}

fn step_of_output(path: &str) -> Option<StepId> {
    let name = path.rsplit('/').next()?;
    name.strip_prefix("output-")?.strip_suffix(".log")?.parse().ok().map(StepId)
}

pub(super) fn steering(look: &Look<'_>) -> Steering {
    let count = |key| look.count(key).unwrap_or(0);
    let recent: VecDeque<SteerRequest> = tail(look.objs("recent").filter_map(|r| request(&r)), SteerRequest::KEPT);
    Steering {
        requested: count("requested"),
        scheduled: count("scheduled"),
        pending: count("pending"),
        delivered: count("delivered"),
        failed: count("failed"),
        recovered: count("recovered"),
        last_requested_at: look.time("lastRequestedAt"),
        last_delivered_at: look.time("lastDeliveredAt"),
        recent: recent.into(),
    }
}

fn request(look: &Look<'_>) -> Option<SteerRequest> {
    Some(SteerRequest {
        id: look.text("id")?,
        requested_at: look.time("requestedAt").unwrap_or_default(),
        source: look.text("source"),
        mode: look.obj("subdeck").and_then(|o| o.str("mode")).and_then(SteerMode::parse).unwrap_or_default(),
        message: String::new(),
        preview: look.text("messagePreview").unwrap_or_default(),
        targets: look.objs("targets").filter_map(|t| target(&t)).collect(),
    })
}

pub(super) fn target(look: &Look<'_>) -> Option<SteerTarget> {
    Some(SteerTarget {
        step: look.step("index")?,
        state: TargetState::parse(look.str("state").unwrap_or_default()),
        routed_at: look.time("routedAt"),
        delivered_at: look.time("deliveredAt").or_else(|| look.time("lateDeliveredAt")),
        failed_at: look.time("failedAt"),
        reason: look.text("reason"),
    })
}

pub(super) fn source(look: &Look<'_>) -> ControlSource {
    ControlSource {
        via: look.text("via").unwrap_or_default(),
        user: look.text("user"),
        pid: look.small("pid"),
        tty: look.text("tty"),
        key: look.text("key"),
        reason: look.text("reason"),
    }
}

fn outputs(look: &Look<'_>) -> std::collections::BTreeMap<String, NamedOutput> {
    look.0.iter().filter_map(|(name, value)| Some((name.clone(), output(&Look(value.as_object()?))))).collect()
}

pub(super) fn output(look: &Look<'_>) -> NamedOutput {
    NamedOutput {
        text: look.text("text").unwrap_or_default(),
        agent: look.text("agent").unwrap_or_default(),
        logical: look.place("stepIndex").unwrap_or(0),
    }
}

pub(super) fn runner(look: &Look<'_>) -> RunnerKind {
    match look.str("type") {
        Some("external-cli") => RunnerKind::ExternalCli {
            command: look.text("command").unwrap_or_default(),
            args: look.list("args").iter().filter_map(|v| v.as_str().map(str::to_owned)).collect(),
        },
        Some("external-job") => RunnerKind::ExternalJob { provider: look.text("provider").unwrap_or_default() },
        None | Some("pi") => RunnerKind::Pi,
        Some(other) => RunnerKind::Other(other.to_owned()),
    }
}

pub(super) fn runner_of_word(word: &str) -> RunnerKind {
    match word {
        "pi" => RunnerKind::Pi,
        "pi-json" => RunnerKind::PiJson,
        "demo" => RunnerKind::Demo,
        other => RunnerKind::Other(other.to_owned()),
    }
}

fn external(look: &Look<'_>) -> ExternalProcess {
    let exit = ExitInfo { code: look.code("exitCode"), signal: look.str("processSignal").and_then(signal_number) };
    ExternalProcess {
        pid: look.small("pid"),
        started_at: look.time("startedAt"),
        ended_at: look.time("endedAt"),
        exit: (look.0.contains_key("exitCode") || look.0.contains_key("processSignal")).then_some(exit),
        stdout_path: look.text("stdoutPath").unwrap_or_default(),
        stderr_path: look.text("stderrPath").unwrap_or_default(),
    }
}

/// Open calls: ours in full, else the one that a foreign status names. A step that does not run has none, whatever
/// its leftover fields say (runner-behaviour 14.8).
fn open_calls(look: &Look<'_>, own: &Look<'_>, phase: &StepPhase) -> Vec<OpenCall> {
    let ours = own.objs("open").filter_map(|c| {
        Some(OpenCall {
            call: c.text("call"),
            tool: c.text("tool")?,
            args: c.text("args").unwrap_or_default(),
            path: c.text("path"),
            started_at: c.time("startedAt")?,
            seq: c.count("seq").unwrap_or(0),
        })
    });
    let ours: Vec<OpenCall> = ours.collect();
    if !ours.is_empty() || *phase != StepPhase::Running {
        return ours;
    }
    let Some(tool) = look.text("currentTool") else { return ours };
    let started_at = look.time("currentToolStartedAt").or_else(|| look.time("lastActivityAt")).unwrap_or_default();
    vec![OpenCall {
        call: None,
        tool,
        args: look.text("currentToolArgs").unwrap_or_default(),
        path: look.text("currentPath"),
        started_at,
        seq: 0,
    }]
}

fn recent_tools(look: &Look<'_>, own: &Look<'_>) -> VecDeque<ToolCall> {
    let mut extras = own.objs("tools");
    let calls = look.objs("recentTools").filter_map(move |t| {
        let extra = extras.next();
        Some(ToolCall {
            tool: t.text("tool")?,
            args: t.text("args").unwrap_or_default(),
            path: extra.as_ref().and_then(|e| e.text("path")),
            started_at: extra.as_ref().and_then(|e| e.time("startedAt")),
            ended_at: t.time("endMs").unwrap_or_default(),
            outcome: extra.as_ref().and_then(|e| e.str("outcome")).and_then(outcome),
            preview: String::new(),
        })
    });
    tail(calls, StepState::KEPT_TOOLS)
}

pub(super) fn outcome(word: &str) -> Option<ToolOutcome> {
    Some(match word {
        "ok" => ToolOutcome::Ok,
        "error" => ToolOutcome::Error,
        "denied" => ToolOutcome::Denied,
        "cancelled" => ToolOutcome::Cancelled,
        "lost" => ToolOutcome::Lost,
        _ => return None,
    })
}

fn attempts(look: &Look<'_>, own: &Look<'_>) -> Vec<Attempt> {
    if !own.list("attempts").is_empty() {
        return own
            .objs("attempts")
            .map(|a| Attempt {
                reason: a.text("reason"),
                started_at: a.time("startedAt"),
                success: a.bool("success"),
                ..attempt(&a)
            })
            .collect();
    }
    look.objs("modelAttempts").map(|a| Attempt { success: a.bool("success"), ..attempt(&a) }).collect()
}

fn attempt(look: &Look<'_>) -> Attempt {
    let empty = Map::new();
    let usage = look.obj("usage").unwrap_or(Look(&empty));
    let count = |key| usage.count(key).unwrap_or(0);
    Attempt {
        model: look.text("model"),
        exit_code: look.code("exitCode"),
        error: look.text("error"),
        usage: Usage {
            tokens: Tokens {
                input: count("input"),
                output: count("output"),
                cache_read: count("cacheRead"),
                cache_write: count("cacheWrite"),
            },
            cost: usage.num("cost").filter(|_| !look.is("free")).map(CostUsd),
        },
        turns: count("turns"),
        ..Attempt::default()
    }
}

fn attempts_cost(look: &Look<'_>) -> Option<f64> {
    let costs: Vec<f64> = look.objs("modelAttempts").filter_map(|a| a.obj("usage")?.num("cost")).collect();
    (!costs.is_empty()).then(|| costs.iter().sum())
}

fn ending(look: &Look<'_>) -> Option<Ending> {
    Some(Ending {
        cause: super::records::cause(look.str("cause")?)?,
        since: look.time("since")?,
        message: look.text("message").unwrap_or_default(),
        abort_at: look.time("abortAt"),
        int_at: look.time("intAt"),
        term_at: look.time("termAt"),
        kill_at: look.time("killAt"),
    })
}

/// The newest `most` of a list.
fn tail<T>(items: impl Iterator<Item = T>, most: usize) -> VecDeque<T> {
    let mut kept = VecDeque::new();
    for item in items {
        if kept.len() == most {
            kept.pop_front();
        }
        kept.push_back(item);
    }
    kept
}
