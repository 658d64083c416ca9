//! A step in one line, where there is no room for facts: what it does, what it used of its limits, how it ended.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::calls::{call_text, open_for};
use super::detail::{many, runner, told_cost};
use super::meters::{HIGH, meter_is_high, meter_text, percent};
use super::paint::{Piece, piece, right_cells, row};
use super::{Scene, now_text, took};
use crate::deck::model::UiState;
use crate::run::{Metric, RunnerKind, StepPhase, StepState, budget, resume_command};
use crate::text::{SafeText, UNKNOWN, bytes, clock, count, width};

/// What a step used of its limits, each in a few cells, for a line without room for bars.
pub(super) fn of_limits(step: &StepState, scene: &Scene<'_>) -> Vec<Piece> {
    let theme = scene.theme;
    let meters = budget::meters(scene.state, step, scene.now);
    let told = |metric: Metric| meters.iter().find(|m| m.metric == metric);
    let mut out = Vec::new();
    let mut add = |metric: Metric, name: &str, bare: Option<String>, rank: u8| {
        let (text, style) = match (told(metric), bare) {
            (Some(meter), _) => {
                let gap = if name.is_empty() { "" } else { " " };
                let text = format!("{name}{gap}{}", meter_text(meter).replace(" of ", "/"));
                if meter_is_high(meter) { (format!("{text}!"), theme.bad()) } else { (text, theme.plain()) }
            }
            (None, Some(bare)) => (bare, theme.dim()),
            (None, None) => return,
        };
        // What was warned of is the last to go.
        let rank = if told(metric).is_some_and(meter_is_high) { rank + 4 } else { rank };
        out.push(piece(text, style).rank(rank).gap(3));
    };
    let turns = (step.turn_count > 0).then(|| many(step.turn_count, "turn"));
    add(Metric::Turns, "turn", turns, 6);
    let calls = (step.tool_count > 0).then(|| many(step.tool_count, "call"));
    add(Metric::ToolCalls, "calls", calls, 3);
    // What an agent does not tell is told to be missing; before it begins there is nothing to tell.
    let agent = !matches!(step.runner, RunnerKind::ExternalCli { .. }) && step.phase != StepPhase::Pending;
    let tokens = if step.tokens.is_zero() { UNKNOWN.to_owned() } else { count(step.tokens.total()) };
    add(Metric::Tokens, "tok", agent.then(|| format!("{tokens} tok")), 5);
    add(Metric::Cost, "", agent.then(|| told_cost(step)), 7);
    if let Some(share) = step.window.share() {
        let style = if share >= HIGH { theme.bad() } else { theme.dim() };
        let mark = if share >= HIGH { "!" } else { "" };
        out.push(piece(format!("{} ctx{mark}", percent(share)), style).rank(4).gap(3));
    }
    out
}

/// One line about what a step does, for panes without room for facts.
pub(super) fn line(buf: &mut Buffer, area: Rect, dy: u16, step: &StepState, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let mut left = Vec::new();
    // What it uses keeps its room beside what it does.
    let right = if step.phase == StepPhase::Pending { Vec::new() } else { of_limits(step, scene) };
    let beside = usize::from(right_cells(&right, 5));
    // Cut so that the right end fits; where that would leave too little, the right end gives way.
    let room = |beside: usize, most: u16| match usize::from(area.width).saturating_sub(beside) {
        left if left >= 6 => left,
        _ => usize::from(most),
    };
    let most = room(beside, area.width * 3 / 5);
    match (step.current_call(), &step.runner) {
        (Some(call), _) => {
            let tool = SafeText::line(&call.tool).truncate(16).to_string();
            let open = open_for(call, scene);
            // What it does is worth more than how many tokens it used.
            let fixed = width(&tool) + 1 + 2 + width(&open);
            let wide = call_text(&call.args, call.path.as_deref(), usize::MAX).width();
            let mut ranks = (5..=7).map(|rank| usize::from(right_cells(&right, rank)));
            let beside = ranks.find(|cells| fixed + wide + cells <= usize::from(area.width)).unwrap_or(beside);
            let room = room(beside + fixed, area.width / 2);
            let what = call_text(&call.args, call.path.as_deref(), room);
            left.push(piece(tool, theme.accent()));
            left.push(piece(what.truncate(room).to_string(), theme.plain()).gap(1));
            left.push(piece(open, theme.bold()).rank(8).gap(2));
        }
        (None, RunnerKind::ExternalCli { command, args }) => {
            let text = SafeText::line(&format!("{command} {}", args.join(" ")));
            left.push(piece("$", theme.accent()));
            left.push(piece(text.truncate(usize::from(area.width.saturating_sub(2))).to_string(), theme.dim()).gap(1));
        }
        (None, _) if step.phase == StepPhase::Pending => {
            left.push(piece(SafeText::line(&step.agent).truncate(most).to_string(), theme.dim()));
            left.push(piece(runner(step), theme.dim()).rank(3).gap(2));
            left.extend(
                step.model.as_deref().map(|m| piece(SafeText::line(m).to_string(), theme.dim()).rank(4).gap(2)),
            );
        }
        (None, _) => {
            let text = SafeText::line(&now_text(scene.state, &ui.sums(scene.state), step, scene.now));
            left.push(piece(text.truncate(most).to_string(), theme.dim()));
        }
    }
    row(buf, area, dy, left, right);
}

/// The sentence below the output of a step that is over.
#[must_use]
pub fn epitaph(step: &StepState, log_bytes: u64) -> String {
    let mut parts = vec![crate::deck::theme::Theme::default().face(step.face()).word.to_owned()];
    match step.exit {
        Some(crate::run::ExitInfo { signal: Some(n), .. }) => parts.push(format!("signal {n}")),
        _ => parts.extend(step.exit_code.filter(|c| *c >= 0).map(|c| format!("exit {c}"))),
    }
    parts.extend(took(step, step.ended_at.unwrap_or_default()).map(clock));
    if step.carried_over {
        parts.push("taken over from an earlier run".to_owned());
    }
    if log_bytes > 0 {
        parts.push(bytes(log_bytes));
    }
    if let Some(cap) = step.truncated_at {
        parts.push(format!("cut at {}", bytes(cap)));
    }
    if step.log_error.is_some() {
        parts.push("not all of its output is kept".to_owned());
    }
    if step.contract.file_error.is_some() {
        parts.push("its output file was not written".to_owned());
    }
    let agent = matches!(step.runner, RunnerKind::Agent(_));
    let command = resume_command(step).filter(|_| agent);
    let session = || step.session_id.as_deref().map(|id| format!("session {}", SafeText::line(id)));
    parts.extend(command.or_else(session));
    parts.join(" · ")
}
