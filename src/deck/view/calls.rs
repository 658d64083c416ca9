//! A call of a tool in a line: its tool, what it is about, how it ended and how long it took.

use ratatui::style::Style;

use super::Scene;
use super::paint::{Piece, piece};
use crate::run::{OpenCall, StepState, ToolCall, ToolOutcome};
use crate::text::{SafeText, clock, lasted, or_unknown};

/// For how long a call is open, or was.
pub(super) fn open_for(call: &OpenCall, scene: &Scene<'_>) -> String {
    let was = if scene.is_gone() { "was " } else { "" };
    format!("{was}open {}", clock(scene.now.since(call.started_at)))
}

/// An open call with its running clock.
pub(super) fn open_pieces(
    call: &OpenCall,
    cells: usize,
    step: &StepState,
    scene: &Scene<'_>,
) -> (Vec<Piece>, Vec<Piece>) {
    let theme = scene.theme;
    // A limit is named only where there is one; while a permission is waited for its time does not go on.
    let limit = step.limits.tool_limit(&call.tool).filter(|_| !step.asks_about(call));
    let limit = limit.map(|ms| format!(" of {}", clock(std::time::Duration::from_millis(ms)))).unwrap_or_default();
    let open = format!("{}{limit}", open_for(call, scene));
    let tool = SafeText::line(&call.tool).truncate(16);
    let room = cells.saturating_sub(tool.width() + 1 + 2 + open.len());
    let left = vec![
        piece(tool.to_string(), theme.accent()).gap(1),
        piece(call_text(&call.args, call.path.as_deref(), room).to_string(), theme.plain()).gap(1),
    ];
    (left, vec![piece(open, theme.bold())])
}

/// A call that ended, with how long it took.
pub(super) fn ended_pieces(call: &ToolCall, cells: usize, scene: &Scene<'_>) -> (Vec<Piece>, Vec<Piece>) {
    let theme = scene.theme;
    let (glyph, style) = outcome_mark(call.outcome, scene);
    let mut left = vec![
        piece(glyph, style).gap(2),
        piece(SafeText::line(&call.tool).truncate(16).to_string(), theme.plain()).gap(1),
        piece(call_text(&call.args, call.path.as_deref(), cells.saturating_sub(28)).to_string(), theme.dim()).gap(1),
    ];
    if let Some(word) = outcome_word(call.outcome) {
        left.push(piece(word, style).gap(2));
        // The first line of what it says is the reason.
        let preview = SafeText::block(&call.preview).into_iter().find(|line| !line.is_empty()).unwrap_or_default();
        left.push(piece(preview.to_string(), theme.bad()).gap(2));
    }
    let took = or_unknown(call.started_at.map(|s| lasted(call.ended_at.since(s))));
    (left, vec![piece(took, theme.dim())])
}

/// The sign of how a call ended.
pub(super) const fn outcome_mark(outcome: Option<ToolOutcome>, scene: &Scene<'_>) -> (&'static str, Style) {
    let theme = scene.theme;
    match outcome {
        Some(ToolOutcome::Ok) => ("✓", theme.good()),
        Some(ToolOutcome::Error) => ("✗", theme.bad()),
        Some(ToolOutcome::Denied) => ("✗", theme.halted()),
        Some(ToolOutcome::Cancelled | ToolOutcome::Lost) => ("■", theme.halted()),
        None => ("?", theme.dim()),
    }
}

/// The word for how a call ended that did not work.
pub(super) const fn outcome_word(outcome: Option<ToolOutcome>) -> Option<&'static str> {
    match outcome {
        Some(ToolOutcome::Error) => Some("failed"),
        Some(ToolOutcome::Denied) => Some("denied"),
        Some(ToolOutcome::Cancelled) => Some("cancelled"),
        Some(ToolOutcome::Lost) => Some("no result"),
        Some(ToolOutcome::Ok) | None => None,
    }
}

/// What a call is about in so many cells. Of a path the end is kept, which is the name of the file.
pub(super) fn call_text(args: &str, path: Option<&str>, cells: usize) -> SafeText {
    match path {
        Some(path) if args.trim().is_empty() || args.trim() == path => SafeText::line(path).truncate_start(cells),
        _ => SafeText::line(args),
    }
}
