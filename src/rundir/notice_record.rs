//! The record that tells the package's own readers of a notice, `subagent.control` (run-directory 2.5, runner-behaviour
//! 4.4). It changes no state of ours: the notice itself is recorded beside it.

use super::json::{Json, Obj};
use super::status::REDACTED;
use crate::plan::Control;
use crate::run::{Level, Notice, Reason, RunState, StepId, StepState, Timestamp};

/// The line, with its line feed; `None` for what nobody is to be told of.
#[must_use]
pub fn encode(state: &RunState, id: StepId, notice: &Notice, control: &Control, at: Timestamp) -> Option<Vec<u8>> {
    let step = state.step(id)?;
    let word = notice.level().activity()?;
    let needs = notice.level() == Level::Needs;
    if !(if needs { control.notify_on.needs_attention } else { control.notify_on.active_long_running }) {
        return None;
    }
    let mut obj = Obj::new();
    obj.set("type", "subagent.control").set("event", event(state, step, notice, control, word, at));
    // That something works for long is nothing to interrupt anybody for.
    let channels = control.channels.iter().filter(|c| needs || *c != "intercom");
    obj.set("channels", channels.collect::<Json>());
    let child = control.child_targets.get(id.flat()).and_then(Option::as_ref);
    obj.opt("childIntercomTarget", child);
    let text = notice_text(state, step, notice);
    if needs
        && control.channels.iter().any(|c| c == "intercom")
        && let Some(to) = &control.intercom_to
    {
        let mut intercom = Obj::new();
        intercom.set("to", to).set("message", &text);
        obj.set("noticeText", &text).set("intercom", intercom);
    } else {
        obj.set("noticeText", &text);
    }
    // Readers of ours have the notice from its own record.
    let mut own = Obj::new();
    own.set("notice", &notice.id);
    obj.set("subdeck", own);
    Some(obj.line())
}

fn event(state: &RunState, step: &StepState, notice: &Notice, control: &Control, word: &str, at: Timestamp) -> Obj {
    let condition = &notice.condition;
    let mut event = Obj::new();
    event.set("type", word).opt("from", step.activity.as_ref().filter(|a| *a != word)).set("to", word);
    event.set("ts", at).set("runId", state.id.as_str()).set("agent", &step.agent).set("index", step.id.flat());
    event.set("message", format!("{} {}", step.agent, headline(notice)));
    event.set("reason", condition.reason.as_str());
    event.opt("turns", Some(step.turn_count).filter(|n| *n > 0));
    event.opt("tokens", Some(step.tokens.total()).filter(|n| *n > 0));
    event.opt("toolCount", Some(step.tool_count).filter(|n| *n > 0));
    // The call that the notice is about, which need not be the newest.
    let call =
        step.open.iter().find(|c| condition.reason == Reason::ToolOpen && c.seq.to_string() == condition.subject);
    if let Some(call) = call.or_else(|| step.current_call()) {
        event.set("currentTool", &call.tool).set("currentToolDurationMs", super::status::millis(at, call.started_at));
        event.opt("currentPath", call.path.as_ref());
    }
    event.opt("elapsedMs", step.started_at.map(|start| super::status::millis(at, start)));
    if condition.reason == Reason::ToolFailures {
        event.set("recentFailureSummary", step.failures.summary());
    }
    event.opt("workflowKey", control.workflow_key.as_ref());
    event.opt("phase", step.phase_title.as_ref()).opt("label", step.label.as_ref());
    // Never the task itself (runner-behaviour 14.20).
    event.opt("taskPreview", step.has_task.then_some(REDACTED));
    event
}

fn headline(notice: &Notice) -> String {
    let evidence = &notice.condition.evidence;
    match notice.level() {
        Level::Needs => format!("needs attention ({evidence})"),
        Level::Busy | Level::Note => format!("is still active but long-running ({evidence})"),
    }
}

/// A few lines for a person, with the commands that help.
fn notice_text(state: &RunState, step: &StepState, notice: &Notice) -> String {
    let run = state.id.as_str();
    let number = step.id.number();
    let name = match &step.label {
        Some(label) => format!("{} ({label})", step.agent),
        None => step.agent.clone(),
    };
    let mut lines = vec![format!("{name} {}", headline(notice))];
    lines.push(format!(
        "Run {run}, step {number} of {}; signal: {}",
        state.steps.len(),
        notice.condition.reason.as_str()
    ));
    if notice.condition.reason == Reason::ToolFailures {
        lines.push(format!("Recent failures: {}", step.failures.summary()));
    }
    lines.push(format!("Look: subdeck attach {run}"));
    if step.runner.is_agent() {
        lines.push(format!("Tell it something: subdeck steer {run}:{number} TEXT"));
    }
    lines.push(format!("Pause or end it: subdeck interrupt {run}, subdeck stop {run}:{number}"));
    lines.join("\n")
}
