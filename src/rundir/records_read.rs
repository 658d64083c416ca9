//! Reading the lines of `events.jsonl`: records of any runner and of its children (law 5).
//!
//! Total: a line that cannot be read gives nothing, a record that is not known gives [`What::Unknown`].

use serde::Deserialize;
use serde_json::{Map, Value};

use super::contract;
use super::inner_run;
use super::look::Look;
use super::question_record;
use super::signal_names::{SIGNALS, signal_number};
use super::status_read as read;
use super::supervision;
use crate::run::{
    AgentEvent, Artifact, EndingCause, Event, ExitInfo, Group, Metric, Raise, Reason, RunId, RunMeta, RunPhase, Stage,
    SteerMode, SteerRequest, Steerable, StepId, StepMeta, StepOutcome, StepPhase, Stream, TargetState, Timestamp, Used,
    What,
};

/// Appends what a line says; one line of a child may say several things, and a line that is no record none. Returns
/// whether the line could be read at all.
pub fn decode(line: &[u8], out: &mut Vec<Event>) -> bool {
    let line = line.trim_ascii();
    if line.is_empty() {
        return true;
    }
    if let Some(child) = child_of(line) {
        child_events(line, &child, out);
        return true;
    }
    let Ok(Value::Object(record)) = serde_json::from_slice::<Value>(line) else { return false };
    let look = Look(&record);
    let Some(kind) = look.str("type") else { return false };
    // A control event has its time inside (run-directory, trap 22).
    let inner = look.obj("event").and_then(|e| e.time("ts"));
    let at = look.time("ts").or_else(|| look.time("observedAt")).or(inner).unwrap_or_default();
    if let Some(what) = record_of(kind, &look) {
        out.push(Event { at, what });
    }
    true
}

/// Whose a child's line is, from its annotation.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Child {
    /// The step.
    #[serde(rename = "subagentStepIndex", deserialize_with = "step_index")]
    pub step: StepId,
    /// When the runner read it, in milliseconds since the epoch.
    #[serde(rename = "observedAt", default)]
    observed: f64,
}

impl Child {
    /// When the runner read the line.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        Timestamp::from_millis_f64(self.observed)
    }
}

fn step_index<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<StepId, D::Error> {
    f64::deserialize(deserializer).map(|n| StepId(n as u32))
}

/// The annotation of a child's line; `None` when the line is a record of the runner or no record at all. What the
/// line's type is does not matter: a child may print records that look like the runner's.
#[must_use]
pub fn child_of(line: &[u8]) -> Option<Child> {
    const MARK: &[u8] = br#""subagentSource":"child""#;
    if let Some(start) = memchr::memmem::rfind(line, MARK) {
        // The annotation stands last, so what follows the mark is short, and closes the line's own object or nothing.
        let tail = line.get(start..)?;
        let mut object = Vec::with_capacity(tail.len() + 1);
        object.push(b'{');
        object.extend_from_slice(tail);
        if let Ok(child) = serde_json::from_slice(&object) {
            return Some(child);
        }
        return slow_child_of(line);
    }
    // Another writer may put blanks between the parts.
    memchr::memmem::find(line, b"\"subagentSource\"").and_then(|_| slow_child_of(line))
}

fn slow_child_of(line: &[u8]) -> Option<Child> {
    let record: Map<String, Value> = serde_json::from_slice(line).ok()?;
    let look = Look(&record);
    (look.str("subagentSource") == Some("child")).then_some(())?;
    Some(Child { step: look.step("subagentStepIndex")?, observed: look.num("observedAt").unwrap_or(0.0) })
}

/// The type of a line, from its first bytes where it stands there.
pub(super) fn type_of(line: &[u8]) -> Option<String> {
    if let Some(kind) = kind_in_front(line) {
        return Some(kind.to_owned());
    }
    #[derive(Deserialize)]
    struct Typed {
        #[serde(rename = "type")]
        kind: String,
    }
    serde_json::from_slice::<Typed>(line).ok().map(|t| t.kind)
}

fn child_events(line: &[u8], child: &Child, out: &mut Vec<Event>) {
    let at = child.at();
    let step = child.step;
    let mut say = |event| out.push(Event { at, what: What::Agent { step, event } });
    match kind_in_front(line) {
        Some("subagent.child.stdout") => return say(AgentEvent::Unparsed { stream: Stream::Out }),
        Some("subagent.child.stderr") => return say(AgentEvent::Unparsed { stream: Stream::Err }),
        // These repeat what other records say, at length; they are known by their type alone.
        Some("turn_end") => return say(AgentEvent::TurnEnded),
        Some("message_start") => return,
        _ => {}
    }
    let mut said = Vec::new();
    super::child::decode_line(line, &mut said);
    said.into_iter().for_each(say);
}

/// The type of a record whose first field it is, as every runner writes it.
fn kind_in_front(line: &[u8]) -> Option<&str> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let end = memchr::memchr2(b'"', b'\\', rest.get(..rest.len().min(64))?)?;
    (rest.get(end) == Some(&b'"')).then(|| std::str::from_utf8(rest.get(..end)?).ok())?
}

/// `None` for records that are known and say nothing about the state.
fn record_of(kind: &str, look: &Look<'_>) -> Option<What> {
    let step = || look.step("stepIndex");
    let unknown = || What::Unknown { kind: kind.to_owned() };
    let own = look.obj("subdeck");
    let source = || own.as_ref().and_then(|o| o.obj("source")).map(|s| read::source(&s));
    let message = || look.text("message").unwrap_or_default();
    let what = match kind {
        "subagent.run.started" => Some(What::RunStarted(Box::new(run_meta(look)))),
        "subagent.step.started" => step().map(|step| What::StepStarted { step }),
        "subagent.step.completed" => step_ended(look, StepPhase::Complete),
        "subagent.step.failed" => step_ended(look, StepPhase::Failed),
        "subagent.step.paused" => step_ended(look, StepPhase::Paused),
        "subagent.step.stopped" => step_ended(look, StepPhase::Stopped),
        "subagent.parallel.started" => look.place("stepIndex").map(|logical| What::GroupStarted { logical }),
        "subagent.parallel.completed" | "subagent.dynamic.completed" => {
            look.place("stepIndex").map(|logical| What::GroupEnded { logical, success: look.is("success") })
        }
        "subagent.run.paused" => Some(What::RunInterrupted { source: source() }),
        "subagent.run.stopped" => Some(What::RunStopped { message: message(), source: source() }),
        "subagent.run.timed_out" => {
            Some(What::RunTimedOut { timeout_ms: look.count("timeoutMs"), message: message(), source: source() })
        }
        "subagent.run.completed" => Some(What::RunEnded {
            state: look.str("status").map_or_else(|| RunPhase::Unknown(String::new()), read::run_phase),
            error: own.as_ref().and_then(|o| o.text("error")).or_else(|| look.text("error")),
        }),
        "subagent.run.repaired_stale" => Some(What::RunLost { message: message() }),
        "subagent.steer.requested" => steer_requested(look),
        "subagent.steer.scheduled" => steer_moved(look, TargetState::Scheduled, "message"),
        "subagent.steer.routed" => steer_moved(look, TargetState::Routed, "message"),
        "subagent.steer.queued" => steer_moved(look, TargetState::Queued, "message"),
        "subagent.steer.delivered" if look.is("late") => steer_moved(look, TargetState::Late, "message"),
        "subagent.steer.delivered" => steer_moved(look, TargetState::Delivered, "message"),
        "subagent.steer.failed" => steer_moved(look, TargetState::Failed, "reason"),
        "subdeck.steer.moved" => {
            steer_moved(look, TargetState::parse(look.str("state").unwrap_or_default()), "message")
        }
        "subagent.control" => return control_event(look),
        "subagent.step.turn_budget_deferred" => budget_reached(look, Some((Metric::Turns, Stage::Deferred))),
        "subagent.step.turn_budget_exceeded" => budget_reached(look, Some((Metric::Turns, Stage::Hard))),
        // What the parent of a workflow records says less than its status.
        "subagent.workflow.started"
        | "subagent.workflow.trace"
        | "subagent.workflow.completed"
        | "subagent.steering.notice"
        | "subagent.events.truncated"
        | "subagent.capability-ceiling.applied"
        | "subagent.run.process_terminal"
        | "subagent.chain.append.requested"
        | "subagent.chain.append.accepted"
        | "subagent.nested.interrupt_failed"
        | "subagent.nested.stop_failed"
        | "subagent.nested.timeout_failed" => return None,
        _ if kind.starts_with("subdeck.") => own_record(kind, look),
        _ => Some(unknown()),
    };
    // A known type without what makes it one is as good as unknown.
    Some(what.unwrap_or_else(unknown))
}

fn own_record(kind: &str, look: &Look<'_>) -> Option<What> {
    let step = look.step("stepIndex");
    let message = || look.text("message").unwrap_or_default();
    Some(match kind {
        "subdeck.attempt.started" => What::AttemptStarted {
            step: step?,
            attempt: look.small("attempt")?,
            model: look.text("model"),
            reason: look.text("reason"),
        },
        "subdeck.child.spawned" => {
            What::ChildSpawned { step: step?, pid: look.small("pid")?, start_ticks: look.count("startTicks") }
        }
        "subdeck.child.exited" => {
            let signal = look.str("signal").and_then(signal_number);
            What::ChildExited { step: step?, exit: ExitInfo { code: look.code("exitCode"), signal } }
        }
        "subdeck.protocol.failed" => {
            What::Agent { step: step?, event: AgentEvent::ProtocolFailure { message: message() } }
        }
        "subdeck.output.held" => What::OutputHeld { step: step?, pids: look.pids("pids") },
        "subdeck.output.truncated" => {
            What::OutputTruncated { step: step?, stream: stream(look.str("stream")?), cap: look.count("cap")? }
        }
        "subdeck.log.failed" => What::LogFailed { step: step?, error: look.text("error")? },
        "subdeck.artifact.failed" => What::ArtifactFailed {
            step: step?,
            which: Artifact::parse(look.str("which")?)?,
            error: look.text("error")?,
        },
        "subdeck.step.ending" => What::StepEnding {
            step: step?,
            cause: EndingCause::parse(look.str("cause")?)?,
            message: message(),
            source: look.obj("source").map(|s| read::source(&s)),
        },
        "subdeck.attempt.ended" => What::AttemptEnded {
            step: step?,
            exit_code: look.code("exitCode")?,
            error: look.text("error").unwrap_or_default(),
            next: supervision::read_next_attempt(&look.obj("next")?)?,
        },
        "subdeck.attention.raised" => {
            What::AttentionRaised { step: step?, notice: Box::new(supervision::read_notice(&look.obj("notice")?)?) }
        }
        "subdeck.attention.cleared" => What::AttentionCleared { step: step?, id: look.text("id")? },
        "subdeck.attention.acknowledged" => What::AttentionAcknowledged {
            step: step?,
            id: look.text("id")?,
            source: look.obj("source").map(|s| read::source(&s)),
        },
        "subdeck.question.asked" => What::QuestionAsked {
            step: step?,
            question: Box::new(question_record::read_question(&look.obj("question")?)?),
        },
        "subdeck.question.answered" => return question_record::read_answered(look, step?),
        "subdeck.budget.reached" => return budget_reached(look, None),
        "subdeck.budget.raised" => What::BudgetRaised {
            step,
            raise: Raise::read(look.str("key")?, look.0.get("value")?).ok()?,
            source: look.obj("source").map(|s| read::source(&s)),
        },
        "subdeck.disk.space" => What::DiskSpace { free: look.count("free")?, low: look.bool("low")? },
        "subdeck.inner.runs" => What::InnerRuns { step: step?, runs: inner_run::read_runs(look, "runs") },
        "subdeck.slept" => What::Slept { ms: look.count("ms")? },
        "subdeck.capability" => What::Capability {
            step: step?,
            steerable: match look.bool("steerable") {
                None => Steerable::Unknown,
                Some(true) => Steerable::Yes,
                Some(false) => Steerable::No(look.text("reason").unwrap_or_default()),
            },
        },
        "subdeck.control.rejected" => What::ControlRejected {
            file: look.text("file")?,
            reason: look.text("reason").unwrap_or_default(),
            set_aside: look.is("setAside"),
        },
        "subdeck.control.unannounced" => {
            What::ControlUnannounced { step, what: look.text("what")?, source: read::source(&look.obj("source")?) }
        }
        "subdeck.signal.sent" => What::SignalSent {
            step: step?,
            signal: SIGNALS.iter().find(|(_, n)| Some(*n) == look.str("signal")).map(|(_, n)| *n)?,
            pid: look.small("pid")?,
            group: look.is("group"),
            cause: EndingCause::parse(look.str("cause")?)?,
        },
        "subdeck.abort.sent" => What::AbortSent { step: step? },
        "subdeck.tree.swept" => {
            What::TreeSwept { step: step?, ended: look.pids("ended"), survivors: look.pids("survivors") }
        }
        _ => return None,
    })
}

/// A limit that is reached; a foreign record says which by its type.
fn budget_reached(look: &Look<'_>, known: Option<(Metric, Stage)>) -> Option<What> {
    let own = look.obj("subdeck");
    let own = own.as_ref();
    let said = |key| own.and_then(|o| o.str(key));
    Some(What::BudgetReached {
        step: look.step("stepIndex"),
        metric: said("metric").and_then(Metric::parse).or(known.map(|k| k.0))?,
        stage: said("stage").and_then(Stage::parse).or(known.map(|k| k.1))?,
        used: Used {
            amount: own.and_then(|o| o.num("used")).or_else(|| look.num("turnCount")).unwrap_or(0.0),
            partial: own.is_some_and(|o| o.is("atLeast")),
        },
        message: look.text("message").unwrap_or_default(),
    })
}

/// What a runner says for its own readers; `None` for what names no step.
fn control_event(look: &Look<'_>) -> Option<What> {
    // One of ours repeats what its own record says.
    let event = look.obj("event").filter(|_| look.obj("subdeck").is_none())?;
    Some(What::AttentionNoted {
        step: event.step("index")?,
        reason: Reason::parse(event.str("reason").or_else(|| event.str("type"))?),
        message: event.text("message").unwrap_or_default(),
    })
}

fn run_meta(look: &Look<'_>) -> RunMeta {
    let empty = Map::new();
    let own = look.obj("subdeck").unwrap_or(Look(&empty));
    let group = |g: Look<'_>| {
        Some(Group { start: g.place("start")?, count: g.place("count")?, logical: g.place("stepIndex")? })
    };
    RunMeta {
        id: RunId(look.text("runId").unwrap_or_default()),
        name: own.text("name"),
        session_id: own.text("sessionId"),
        owner_id: own.text("ownerId"),
        mode: look.str("mode").map(read::mode).unwrap_or_default(),
        pid: look.small("pid"),
        cwd: look.text("cwd").unwrap_or_default(),
        timeout_ms: own.count("timeoutMs"),
        deadline_at: own.time("deadlineAt"),
        deadline_fixed: own.is("deadlineFixed"),
        limits: supervision::read_limits(&own, "limits"),
        steps: own.objs("steps").map(|s| step_meta(&s)).collect(),
        groups: own.objs("groups").filter_map(group).collect(),
        logical_count: own.place("logicalCount").unwrap_or(0),
        resumed_from: own.text("resumedFrom").map(RunId),
        started_in: own.obj("startedIn").and_then(|within| read::within(&within)),
        contract: own.obj("contract").map(|c| contract::read_run(&c, &c)).unwrap_or_default(),
    }
}

fn step_meta(look: &Look<'_>) -> StepMeta {
    let runner = look.obj("runner").map(|r| read::runner(&r)).unwrap_or_default();
    StepMeta {
        key: look.text("key").unwrap_or_default(),
        agent: look.text("agent").unwrap_or_default(),
        label: look.text("label"),
        phase: look.text("phase"),
        logical: look.place("logical").unwrap_or(0),
        runner: look.str("runnerKind").map_or(runner, read::runner_of_word),
        model: look.text("model"),
        thinking: look.text("thinking"),
        session_file: look.text("sessionFile"),
        has_task: look.is("hasTask"),
        timeout_ms: look.count("timeoutMs"),
        cwd: look.text("cwd").unwrap_or_default(),
        limits: supervision::read_limits(look, "limits"),
        thresholds: supervision::read_thresholds(look, "thresholds"),
        carried_over: look.is("carriedOver"),
        contract: look.obj("contract").map(|c| contract::read_step(&c, &c)).unwrap_or_default(),
    }
}

fn step_ended(look: &Look<'_>, phase: StepPhase) -> Option<What> {
    let empty = Map::new();
    let own = look.obj("subdeck").unwrap_or(Look(&empty));
    // Foreign records say nothing of the flags; a stopped step was stopped.
    let stopped = own.bool("stopped").unwrap_or(phase == StepPhase::Stopped && look.obj("subdeck").is_none());
    let outcome = StepOutcome {
        phase: own.str("phase").map_or(phase, read::step_phase),
        exit_code: look.code("exitCode").unwrap_or(0),
        error: own.text("error"),
        timed_out: own.is("timedOut"),
        stopped,
        signal: own.code("signal"),
        output: own.obj("output").and_then(|o| Some((o.text("name")?, read::output(&o)))),
        acceptance: super::acceptance::read(&own, "acceptance").map(Box::new),
    };
    Some(What::StepEnded { step: look.step("stepIndex")?, outcome: Box::new(outcome) })
}

fn steer_requested(look: &Look<'_>) -> Option<What> {
    let own = look.obj("subdeck");
    let own = own.as_ref();
    Some(What::SteerRequested(Box::new(SteerRequest {
        id: look.text("requestId")?,
        requested_at: own.and_then(|o| o.time("requestedAt")).or_else(|| look.time("ts")).unwrap_or_default(),
        source: own.and_then(|o| o.text("source")),
        mode: own.and_then(|o| o.str("mode")).and_then(SteerMode::parse).unwrap_or_default(),
        message: String::new(),
        preview: own.and_then(|o| o.text("preview")).unwrap_or_default(),
        // Ours say when each target moved, too.
        targets: own.unwrap_or(look).objs("targets").filter_map(|t| read::target(&t)).collect(),
    })))
}

fn steer_moved(look: &Look<'_>, to: TargetState, detail: &str) -> Option<What> {
    Some(What::SteerMoved { id: look.text("requestId")?, step: look.step("index")?, to, detail: look.text(detail) })
}

fn stream(word: &str) -> Stream {
    match word {
        "stdout" => Stream::Out,
        "stderr" => Stream::Err,
        _ => Stream::Own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is known by its type says what the whole record says.
    #[test]
    fn the_short_way_agrees_with_the_long_one() {
        let annotation =
            r#""subagentSource":"child","subagentRunId":"r","subagentStepIndex":2,"subagentAgent":"a","observedAt":7"#;
        for record in [
            r#""type":"turn_end","message":{"role":"assistant","content":[{"type":"text","text":"x"}]},"toolResults":[]"#,
            r#""type":"message_start","message":{"role":"user","content":"turn_end"}"#,
            r#""type":"message_end","message":{"role":"assistant","content":"x"}"#,
            r#""type":"turn_end_soon","message":{}"#,
            r#""type":"subagent.child.stdout","line":"x""#,
            r#""type":"subagent.child.stderr","line":"x""#,
            r#""type":"turn_\u0065nd","message":{}"#,
        ] {
            let mut short = Vec::new();
            assert!(decode(format!("{{{record},{annotation}}}").as_bytes(), &mut short));
            // A blank in front of the type takes the long way.
            let mut long = Vec::new();
            assert!(decode(format!("{{ {record},{annotation}}}").as_bytes(), &mut long));
            assert_eq!(short, long, "{record}");
        }
    }
}
