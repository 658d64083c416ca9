//! The dialog that changes a limit while the run goes on (run-directory 3.9): which limits there are, what they are and
//! what was used of them, and what its keys mean.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent};

use super::actions::Action;
use super::keymap::Key;
use super::model::{BudgetDialog, Overlay, UiEffect, UiState};
use super::update::Context;
use crate::run::{Limit, Limits, Metric, Raise, RunState, StepId, Timestamp, Used, budget};
use crate::text::{SafeText, clock, cost, count, grouped, or_unknown};

/// The longest value that anybody can mean.
const VALUE_MOST: usize = 24;

/// A limit as the dialog lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The key in a request and on the command line.
    pub key: &'static str,
    /// What it is called where it is shown elsewhere.
    pub name: &'static str,
    /// What was used of it so far.
    pub used: String,
    /// The limit as it is, if there is one.
    pub limit: Option<String>,
    /// What to write.
    pub example: &'static str,
}

impl Line {
    /// What was used of what.
    #[must_use]
    pub fn told(&self) -> String {
        match &self.limit {
            Some(limit) => format!("{} of {limit}", self.used),
            None => format!("{}, no limit", self.used),
        }
    }
}

/// Whether limits can be changed now.
///
/// # Errors
/// The reason, ready to be shown.
pub fn possible(state: &RunState) -> Result<(), String> {
    if state.stopped || state.timed_out || state.interrupted {
        return Err("the run is ending".to_owned());
    }
    if state.steps.is_empty() { Err("there is no step".to_owned()) } else { Ok(()) }
}

/// Opens the dialog for the selected step, or for the run when the step is over.
pub fn open(ui: &mut UiState, state: &RunState) {
    let step = ui.selected;
    let whole_run = state.step(step).is_none_or(|s| s.phase.is_terminal());
    let dialog = BudgetDialog { step, whole_run, index: 0, value: String::new(), wrong: None };
    // What is limited already is what one wants to change.
    let lines = lines(state, &dialog, Timestamp::default());
    let index = lines.iter().position(|line| line.limit.is_some()).unwrap_or(0);
    ui.overlays.push(Overlay::Budget(BudgetDialog { index, ..dialog }));
}

/// The limits that the dialog lists.
#[must_use]
pub fn lines(state: &RunState, dialog: &BudgetDialog, now: Timestamp) -> Vec<Line> {
    let step = state.step(dialog.step).filter(|_| !dialog.whole_run);
    let limits = step.map_or(&state.limits, |s| &s.limits);
    let time = |ms: Option<u64>| ms.map(|ms| clock(Duration::from_millis(ms)));
    let ran = step.map_or_else(|| state.elapsed(now), |s| s.elapsed(now));
    let whole = step.map_or(state.timeout_ms, |s| s.timeout_ms);
    let counted = |name, key, metric: Metric, example| {
        let used = step.map_or_else(|| budget::used_by_run(state, metric), |s| Used::all(budget::used(s, metric)));
        let known = step.map_or_else(|| budget::is_known_of_run(state, metric), |s| budget::is_known(s, metric));
        let Limit { soft, hard } = budget::limit(limits, metric);
        // Of a limit on turns or calls is counted what was told; that it may have been more is only said.
        let partial = used.partial
            || step.is_none()
                && match metric {
                    Metric::Turns => state.are_turns_partial(),
                    Metric::ToolCalls => state.are_calls_partial(),
                    Metric::Cost | Metric::Tokens => false,
                };
        let used = or_unknown(known.then(|| Used { partial, ..used }.told(|used| amount(metric, used))));
        let mut limit = hard.or(soft).map(|n| amount(metric, n));
        // What is changed is the limit without what is granted beyond it.
        if let Some(turns) = limits.turns.filter(|turns| metric == Metric::Turns && turns.grace > 0) {
            let (max, grace) = (grouped(turns.max), grouped(turns.grace));
            limit = limit.map(|limit| format!("{limit} ({max}, {grace} more to finish)"));
        }
        Line { key, name, used, limit, example }
    };
    let mut lines = vec![
        Line { key: "time", name: "time", used: or_unknown(ran.map(clock)), limit: time(whole), example: "1h30m" },
        counted("turns", "turns", Metric::Turns, "50"),
        counted("calls", "tool_calls", Metric::ToolCalls, "200"),
        counted("tokens", "tokens", Metric::Tokens, "400_000"),
        counted("cost", "cost_usd", Metric::Cost, "2.50"),
    ];
    if let Some(step) = step {
        let quiet = step.last_activity.map(|at| clock(now.since(at)));
        lines.push(Line {
            key: "idle",
            name: "idle",
            used: or_unknown(quiet),
            limit: time(limits.idle_ms),
            example: "10m",
        });
        let open = step.current_call().map(|call| clock(now.since(call.started_at)));
        lines.push(Line {
            key: "tool_timeout",
            name: "one tool call",
            used: or_unknown(open),
            limit: time(limits.tool_ms),
            example: "20m",
        });
    }
    lines
}

fn amount(metric: Metric, n: f64) -> String {
    match metric {
        Metric::Cost => cost(n),
        // `as` saturates.
        Metric::Tokens => count(n as u64),
        Metric::Turns | Metric::ToolCalls => grouped(n as u64),
    }
}

/// Takes a key while the dialog is open. It stays until the request is on disk.
pub fn on_key(ui: &mut UiState, cx: Context<'_>, key: KeyEvent) -> Vec<UiEffect> {
    let quits = ui.keymap.lookup(key) == Some(Action::Quit) && Key::from(key).ctrl;
    let Some(Overlay::Budget(dialog)) = ui.overlays.last_mut() else { return Vec::new() };
    let ctrl = Key::from(key).ctrl;
    let count = lines(cx.state, dialog, cx.now).len();
    match key.code {
        KeyCode::Esc => drop(ui.overlays.pop()),
        _ if quits => drop(ui.overlays.pop()),
        KeyCode::Down => choose(dialog, (dialog.index + 1).min(count.saturating_sub(1))),
        KeyCode::Up => choose(dialog, dialog.index.saturating_sub(1)),
        KeyCode::Tab | KeyCode::BackTab => {
            dialog.whole_run = !dialog.whole_run;
            dialog.wrong = None;
            let count = lines(cx.state, dialog, cx.now).len();
            dialog.index = dialog.index.min(count.saturating_sub(1));
        }
        KeyCode::Backspace => {
            dialog.value.pop();
            dialog.wrong = None;
        }
        KeyCode::Char('u') if ctrl => dialog.value.clear(),
        KeyCode::Char('z') if ctrl => return vec![UiEffect::Suspend],
        KeyCode::Char('l') if ctrl => return vec![UiEffect::Repaint],
        KeyCode::Enter => match wanted(cx.state, dialog, cx.now) {
            Ok((step, raise)) => return vec![UiEffect::Raise(step, raise)],
            Err(why) => dialog.wrong = Some(SafeText::line(&why)),
        },
        KeyCode::Char(c) if !ctrl => type_in(dialog, c),
        _ => {}
    }
    Vec::new()
}

/// Goes to another limit. What was typed was meant for the one before.
pub(super) fn choose(dialog: &mut BudgetDialog, index: usize) {
    if dialog.index != index {
        dialog.index = index;
        dialog.value.clear();
        dialog.wrong = None;
    }
}

fn type_in(dialog: &mut BudgetDialog, c: char) {
    if dialog.value.len() < VALUE_MOST && (c.is_ascii_alphanumeric() || matches!(c, '.' | '_')) {
        dialog.value.push(c);
    }
    dialog.wrong = None;
}

/// Puts a pasted value in as far as it can be one.
pub fn paste(dialog: &mut BudgetDialog, text: &str) {
    for c in text.trim().chars() {
        type_in(dialog, c);
    }
}

/// The change that was asked for, where it can be one.
pub(super) fn wanted(
    state: &RunState,
    dialog: &BudgetDialog,
    now: Timestamp,
) -> Result<(Option<StepId>, Raise), String> {
    let lines = lines(state, dialog, now);
    let line = lines.get(dialog.index).ok_or("there is no such limit")?;
    if dialog.value.is_empty() {
        return Err(format!("type the new value of `{}`, like {}", line.key, line.example));
    }
    let raise = Raise::parse(&format!("{}={}", line.key, dialog.value))?;
    let step = (!dialog.whole_run).then_some(dialog.step);
    let limits: &Limits = match step {
        Some(id) => match state.step(id) {
            Some(step) if step.phase.is_terminal() => return Err(format!("step {id} is over")),
            Some(step) => &step.limits,
            None => return Err(format!("there is no step {id}")),
        },
        None => &state.limits,
    };
    raise.apply(&mut limits.clone())?;
    Ok((step, raise))
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyModifiers;

    use super::*;
    use crate::deck::view::tests::Stage;
    use crate::run::{RunPhase, StepPhase};

    fn dialog(stage: &Stage) -> BudgetDialog {
        match stage.ui.overlays.last() {
            Some(Overlay::Budget(dialog)) => dialog.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_limit_is_chosen_typed_and_sent() {
        let mut stage = Stage::new(120, 36);
        stage.keys("+");
        // The step has a limit on its time, so this is what is offered first.
        assert_eq!((dialog(&stage).index, dialog(&stage).whole_run), (0, false));
        // What is typed for one limit is not taken for the next.
        stage.keys("25m");
        for _ in 0..3 {
            stage.key(KeyCode::Down);
        }
        assert_eq!(dialog(&stage).value, "");
        stage.keys("900_000");
        let raise = Raise::parse("tokens=900_000").unwrap();
        assert_eq!(stage.key(KeyCode::Enter), [UiEffect::Raise(Some(StepId(2)), raise)]);
        // It stays until the request is on disk.
        assert_eq!(dialog(&stage).value, "900_000");
        stage.key(KeyCode::Tab);
        assert_eq!(stage.key(KeyCode::Enter), [UiEffect::Raise(None, raise)]);
        stage.key(KeyCode::Esc);
        assert!(stage.ui.overlays.is_empty());
    }

    #[test]
    fn what_cannot_be_meant_is_said_in_place() {
        let mut stage = Stage::new(120, 36);
        stage.keys("+");
        let mut wrong = |keys: &str| {
            stage.keys(keys);
            assert!(stage.key(KeyCode::Enter).is_empty(), "{keys}");
            let said = dialog(&stage).wrong.unwrap_or_default().to_string();
            stage.press(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
            said
        };
        assert!(wrong("").contains("like 1h30m"));
        assert!(wrong("5").contains("has no unit"));
        // The warning of the step's tokens is at 180 thousand.
        for _ in 0..3 {
            stage.key(KeyCode::Down);
        }
        stage.keys("5");
        assert!(stage.key(KeyCode::Enter).is_empty());
        assert!(dialog(&stage).wrong.unwrap().as_str().contains("warning of `tokens`"));
    }

    #[test]
    fn letters_are_a_value_and_never_a_command() {
        let mut stage = Stage::new(120, 36);
        stage.keys("+xXqi$e;5m");
        assert_eq!(dialog(&stage).value, "xXqie5m");
        assert_eq!(stage.ui.overlays.len(), 1);
    }

    #[test]
    fn a_step_that_is_over_offers_the_limits_of_the_run() {
        let mut stage = Stage::new(120, 36);
        stage.keys("g+");
        assert!(dialog(&stage).whole_run);
        stage.key(KeyCode::Tab);
        stage.keys("9m");
        assert!(stage.key(KeyCode::Enter).is_empty());
        assert_eq!(dialog(&stage).wrong.unwrap().as_str(), "step 1 is over");
    }

    #[test]
    fn a_run_that_is_over_or_ending_has_no_dialog() {
        let mut stage = Stage::new(120, 36);
        stage.feed.state.stopped = true;
        stage.keys("+");
        assert!(stage.ui.overlays.is_empty() && stage.ui.notice.as_ref().is_some_and(|n| n.bad));
        stage.feed.state.stopped = false;
        stage.feed.state.phase = RunPhase::Complete;
        stage.feed.state.ended_at = Some(stage.now);
        for step in &mut stage.feed.state.steps {
            step.phase = StepPhase::Complete;
        }
        stage.keys("+");
        assert!(stage.ui.overlays.is_empty());
    }

    #[test]
    fn the_lines_tell_what_was_used_of_what() {
        let stage = Stage::new(120, 36);
        let dialog = BudgetDialog { step: StepId(2), whole_run: false, index: 0, value: String::new(), wrong: None };
        let lines = lines(&stage.feed.state, &dialog, stage.now);
        let tokens = lines.iter().find(|l| l.key == "tokens").unwrap();
        assert_eq!((tokens.used.as_str(), tokens.limit.as_deref()), ("191k", Some("400k")));
        let time = lines.iter().find(|l| l.key == "time").unwrap();
        assert_eq!((time.used.as_str(), time.limit.as_deref()), ("4:02", Some("10:00")));
        let told = |key| lines.iter().find(|l| l.key == key).unwrap().told();
        // The same limit as in the pane, and what it is made of.
        assert_eq!(told("turns"), "14 of 42 (40, 2 more to finish)");
        // What has no limit is not unknown.
        assert_eq!(told("cost_usd"), "$0.31, no limit");
    }
}
