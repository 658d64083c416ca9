//! Reading `status.json`, lenient in types: whatever is missing, odd or unknown becomes a value, never an error
//! (law 10, run-directory 10).

use std::collections::VecDeque;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::budget_read;
use super::contract;
use super::look::Look;
use super::step_read;
use super::supervision;
use crate::run::{
    AgentKind, ControlSource, CostUsd, Group, NamedOutput, RunId, RunMode, RunPhase, RunState, RunnerKind, SteerMode,
    SteerRequest, SteerTarget, Steering, StepId, StepPhase, StepState, TargetState, Timestamp, Tokens, Unannounced,
    Within,
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
    match serde_json::from_slice::<Doc>(bytes) {
        Ok(Doc { fields, steps }) => Ok(run(&fields, steps)),
        // Nothing within an object has to be of a certain type.
        Err(error) if error.is_data() => Err(ReadError::NotAnObject),
        Err(error) => Err(error.into()),
    }
}

/// A status with its steps read already: of ten thousand steps only one at a time is there as a document, which takes
/// several times the room of what is known of it.
struct Doc {
    fields: Map<String, Value>,
    steps: Vec<StepState>,
}

impl<'de> Deserialize<'de> for Doc {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Doc;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Doc, A::Error> {
                let mut doc = Doc { fields: Map::new(), steps: Vec::new() };
                while let Some(key) = map.next_key::<String>()? {
                    if key == "steps" {
                        doc.steps = map.next_value::<Steps>()?.0;
                    } else {
                        doc.fields.insert(key, map.next_value()?);
                    }
                }
                Ok(doc)
            }
        }
        from.deserialize_map(Fields)
    }
}

/// The steps; what is no list has none.
struct Steps(Vec<StepState>);

impl<'de> Deserialize<'de> for Steps {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Steps;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("anything")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Steps, A::Error> {
                let mut steps: Vec<StepState> = Vec::new();
                while let Some(value) = list.next_element::<Value>()? {
                    let id = u32::try_from(steps.len()).unwrap_or(u32::MAX);
                    let look = value.as_object().map(Look);
                    let mut step =
                        look.map_or_else(|| step_read::unreadable_step(id), |look| step_read::step(&look, id));
                    if let Some(before) = steps.last() {
                        step.contract.share_with(&before.contract);
                    }
                    steps.push(step);
                }
                steps.shrink_to_fit();
                Ok(Steps(steps))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Steps, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Steps(Vec::new()))
            }

            fn visit_unit<E>(self) -> Result<Steps, E> {
                Ok(Steps(Vec::new()))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Steps, E> {
                Ok(Steps(Vec::new()))
            }

            fn visit_i64<E>(self, _: i64) -> Result<Steps, E> {
                Ok(Steps(Vec::new()))
            }

            fn visit_u64<E>(self, _: u64) -> Result<Steps, E> {
                Ok(Steps(Vec::new()))
            }

            fn visit_f64<E>(self, _: f64) -> Result<Steps, E> {
                Ok(Steps(Vec::new()))
            }

            fn visit_str<E>(self, _: &str) -> Result<Steps, E> {
                Ok(Steps(Vec::new()))
            }
        }
        from.deserialize_any(List)
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

fn run(doc: &Map<String, Value>, steps: Vec<StepState>) -> RunState {
    let look = Look(doc);
    let empty = Map::new();
    let own = look.obj("subdeck").unwrap_or(Look(&empty));
    let logical_count = look.place("chainStepCount").unwrap_or(0);
    // Ours in full, else what a foreign status says of them.
    let (limits, budget) = match look.obj("subdeck") {
        Some(own) => (supervision::read_limits(&own, "limits"), supervision::read_budget(&own, "budget")),
        None => budget_read::run(&look, look.time("lastUpdate").unwrap_or_default()),
    };
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
        deadline_fixed: own.is("deadlineFixed"),
        limits,
        budget,
        gaps: supervision::read_gaps(&own, "slept"),
        unannounced: own.obj("unannounced").and_then(|one| {
            Some(Unannounced { at: one.time("at")?, step: one.step("step")?, told: one.text("what")? })
        }),
        disk_low: own.obj("diskLow").and_then(|low| Some((low.time("since")?, low.count("free")?))),
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
        started_in: own.obj("startedIn").and_then(|place| within(&place)),
        contract: contract::read_run(&look, &own),
        totals: None,
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
        state.totals = totals(&look);
        state.lost = repaired(&state);
        state.ended_at = end_of(&state);
    }
    state
}

/// When a foreign run ended: one that says only that it has, or that says it ended before it began because the clock was
/// set back meanwhile, ended with the last of its steps. Only what is paused may go on without an end (trap 3).
fn end_of(state: &RunState) -> Option<Timestamp> {
    let told = state.ended_at;
    let odd = told.is_some_and(|end| state.started_at.is_some_and(|began| end < began));
    let missing = told.is_none() && state.phase.is_terminal() && state.phase != RunPhase::Paused;
    if !odd && !missing {
        return told;
    }
    let last = state.steps.iter().filter_map(|step| step.ended_at).max();
    last.max(told).or(state.last_update).max(state.started_at)
}

/// How it is known that the runner of a foreign run was lost, where the package's own readers have written an end for it:
/// the same as its event log tells (run-directory 7).
fn repaired(state: &RunState) -> Option<String> {
    let errors = state.steps.iter().filter(|_| state.phase == RunPhase::Failed).filter_map(|step| step.error.as_ref());
    errors.into_iter().find(|error| error.contains(REPAIRED)).cloned()
}

/// What a foreign run says of itself as a whole. A workflow whose children are runs of their own says zero, which is
/// what it used itself and not what it cost.
fn totals(look: &Look<'_>) -> Option<(Tokens, Option<CostUsd>)> {
    let (tokens, cost) = (look.obj("totalTokens")?, look.obj("totalCost"));
    let count = |key| tokens.count(key).unwrap_or(0);
    let tokens = Tokens { input: count("input"), output: count("output"), ..Tokens::default() };
    let cost = cost.and_then(|c| c.num("costUsd"));
    (!tokens.is_zero() || cost.is_some_and(|usd| usd > 0.0)).then_some((tokens, cost.map(CostUsd)))
}

/// What the sentence of such an end says.
const REPAIRED: &str = "Marked run failed by stale-run reconciliation.";

pub(super) fn mode(word: &str) -> RunMode {
    match word {
        "single" => RunMode::Single,
        "parallel" => RunMode::Parallel,
        "chain" => RunMode::Chain,
        "workflow" => RunMode::Workflow,
        other => RunMode::Unknown(other.to_owned()),
    }
}

pub(super) fn within(look: &Look<'_>) -> Option<Within> {
    Some(Within { run: RunId(look.text("runId")?), step: look.step("stepIndex") })
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
        older: Vec::new(),
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
        text: look.str("text").unwrap_or_default().into(),
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
        other => AgentKind::of_word(other).map_or_else(|| RunnerKind::Other(other.to_owned()), RunnerKind::Agent),
    }
}

/// The newest `most` of a list.
pub(super) fn tail<T>(items: impl Iterator<Item = T>, most: usize) -> VecDeque<T> {
    let mut kept = VecDeque::new();
    for item in items {
        if kept.len() == most {
            kept.pop_front();
        }
        kept.push_back(item);
    }
    kept
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn whatever_stands_where_the_steps_should_be_is_no_step_and_no_error() {
        for odd in ["null", "true", "-3", "3", "0.5", "\"steps\"", "{\"a\":[1,{\"b\":2}]}", "[]"] {
            let text = format!(r#"{{"runId":"r","steps":{odd},"state":"running","cwd":"/w"}}"#);
            let state = decode(text.as_bytes()).unwrap();
            assert_eq!((state.steps.len(), state.cwd.as_str(), state.phase), (0, "/w", RunPhase::Running), "{odd}");
        }
        let state = decode(br#"{"steps":[{"agent":"a"},7,{"agent":"b"}],"runId":"r"}"#).unwrap();
        let steps: Vec<_> = state.steps.iter().map(|s| (s.id.flat(), s.agent.as_str())).collect();
        assert_eq!((steps.len(), steps[0], steps[2]), (3, (0, "a"), (2, "b")));
    }

    #[test]
    fn a_foreign_end_without_a_time_and_one_before_the_beginning_are_ends_all_the_same() {
        let read =
            |more: &str| decode(format!(r#"{{"runId":"r","startedAt":1000,"lastUpdate":9000,{more}}}"#).as_bytes());
        let end = |more: &str| read(more).unwrap().ended_at.map(Timestamp::millis);
        let step = r#""steps":[{"agent":"a","status":"complete","startedAt":1000,"endedAt":400,"durationMs":2500}]"#;
        assert_eq!(end(&format!(r#""state":"complete","endedAt":500,{step}"#)), Some(3500));
        let took = |more: &str| read(more).unwrap().steps[0].elapsed(Timestamp::default());
        assert_eq!(took(&format!(r#""state":"complete",{step}"#)), Some(Duration::from_millis(2500)));
        assert_eq!(end(r#""state":"complete""#), Some(9000));
        // Only what is paused may go on without an end.
        assert_eq!((end(r#""state":"paused""#), end(r#""state":"running""#)), (None, None));
    }

    #[test]
    fn a_repaired_end_is_a_lost_run_and_what_a_chain_lost_of_its_tokens_is_in_its_sums() {
        let error = "Async runner process 7 exited or disappeared before writing a result. Marked run failed by stale-run reconciliation.";
        let steps = format!(
            r#"[{{"agent":"a","status":"failed","error":"{error}","tokens":{{"input":-680,"output":-80}},"totalCost":{{"inputTokens":120,"outputTokens":20,"costUsd":0.1}}}}]"#
        );
        let text = format!(r#"{{"runId":"r","state":"failed","endedAt":5,"steps":{steps}}}"#);
        let state = decode(text.as_bytes()).unwrap();
        assert_eq!(state.lost.as_deref(), Some(error));
        assert_eq!((state.tokens().input, state.tokens().output), (120, 20));
    }

    #[test]
    fn what_is_no_object_and_what_is_no_json_are_told_apart() {
        for odd in ["null", "7", "\"text\"", "[{\"runId\":\"r\"}]"] {
            assert!(matches!(decode(odd.as_bytes()), Err(ReadError::NotAnObject)), "{odd}");
        }
        for torn in ["", "{", "{\"steps\":[{\"agent\":\"a\"}", "{\"steps\":[}", "{} x", "{\"a\":1e999}"] {
            assert!(
                matches!(decode(torn.as_bytes()), Err(ReadError::Json(_))),
                "{torn}: {:?}",
                decode(torn.as_bytes())
            );
        }
    }
}
