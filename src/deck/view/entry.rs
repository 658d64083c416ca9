//! The rows of one entry of a list: a call, something that was said, something that happened.

use ratatui::style::Style;

use super::paint::{Piece, piece};
use super::secrets::wrapped;
use super::{Scene, ticker};
use super::{calls, detail};
use crate::deck::entries::{self, Call};
use crate::deck::history::Entry;
use crate::deck::model::Tab;
use crate::deck::reading::{SHOWN, UNREADABLE};
use crate::deck::said::{Said, SaidWhat};
use crate::deck::window::Windows;
use crate::run::{StepState, Timestamp, ToolOutcome};
use crate::text::SafeText;

/// What stands at the left and at the right end of a row.
pub(super) type Line = (Vec<Piece>, Vec<Piece>);

/// From this width on there is room beside a call for what came of it.
const WIDE: u16 = 110;

/// The rows of the entry with a number; of something long as many lines as are asked for.
pub(super) fn lines(
    tab: Tab,
    number: u64,
    width: u16,
    most: usize,
    step: &StepState,
    scene: &Scene<'_>,
    windows: &Windows,
) -> Option<Vec<Line>> {
    match tab {
        Tab::Tools => Some(vec![call(number, width, step, scene).unwrap_or_else(|| unread(scene))]),
        Tab::Transcript => {
            if number == entries::TASK {
                return Some(task(step, scene, width, most));
            }
            let said = scene.entries().said(step.id, number);
            Some(said.map_or_else(|| vec![unread(scene)], |said| self::said(&said, width, most, scene, windows)))
        }
        Tab::Events => {
            let entry = scene.entries().told(step.id, number);
            Some(vec![entry.map_or_else(|| unread(scene), |entry| event(&entry, scene))])
        }
        Tab::Output | Tab::Budget | Tab::Changes => None,
    }
}

/// Of what cannot be read.
fn unread(scene: &Scene<'_>) -> Line {
    (vec![piece(UNREADABLE, scene.theme.dim())], Vec::new())
}

fn call(number: u64, width: u16, step: &StepState, scene: &Scene<'_>) -> Option<Line> {
    // All rows tell when, or none does.
    let time = |left: &mut Vec<Piece>, at| {
        if width >= 50 {
            left.insert(0, piece(scene.time_of_day(at), scene.theme.dim()));
        }
    };
    match scene.entries().call(step, number)? {
        Call::Ended(call, _) => {
            let (mut left, mut right) = calls::ended_pieces(&call, usize::from(width), scene);
            if width >= WIDE {
                let first = SafeText::block(&call.preview).into_iter().find(|line| !line.is_empty());
                let came = first.filter(|_| matches!(call.outcome, Some(ToolOutcome::Ok))).unwrap_or_default();
                right = vec![aside(&right, 6, &came, width, scene.theme.dim())];
            }
            time(&mut left, call.started_at.unwrap_or(call.ended_at));
            Some((left, right))
        }
        Call::Open(call) => {
            let (mut left, mut right) = calls::open_pieces(call, usize::from(width), step, scene);
            if width >= WIDE {
                right = vec![aside(&right, 0, &SafeText::default(), width, scene.theme.bold())];
            }
            left.insert(0, piece("●", scene.theme.accent()).gap(2));
            time(&mut left, call.started_at);
            Some((left, right))
        }
    }
}

/// In a wide pane how long a call took stands in one column for all of them, and what came of it behind that: what is
/// compared stands below each other.
fn aside(time: &[Piece], digits: usize, came: &SafeText, width: u16, style: Style) -> Piece {
    let time: String = time.iter().map(Piece::spaced).collect();
    let cells = usize::from(if width < 150 { width * 2 / 5 } else { width / 2 });
    let text = SafeText::line(&format!("{time:>digits$}   {came}")).truncate(cells);
    piece(format!("{text}{}", " ".repeat(cells.saturating_sub(text.width()))), style)
}

fn event(entry: &Entry, scene: &Scene<'_>) -> Line {
    // In a list that has the sign of the keys a call has another one.
    let text = match entry.text.as_str().strip_prefix("› ") {
        Some(call) => format!("● {call}"),
        None => entry.text.to_string(),
    };
    let text = piece(text, ticker::tone(entry.tone, scene)).gap(2);
    (vec![piece(scene.time_of_day(entry.at), scene.theme.dim()), text], Vec::new())
}

/// What was asked of a step, before anything was said.
fn task(step: &StepState, scene: &Scene<'_>, width: u16, most: usize) -> Vec<Line> {
    let theme = scene.theme;
    let mut out = vec![(vec![piece("task", theme.bold())], Vec::new())];
    let task = if scene.facts_of == Some(step.id) { scene.facts.task.as_slice() } else { &[] };
    if task.is_empty() {
        out.push((vec![piece("  its runner keeps it to itself", theme.dim())], Vec::new()));
    }
    let wrapped: Vec<SafeText> =
        task.iter().flat_map(|l| wrapped(l, usize::from(width.saturating_sub(2)), scene.reveal)).collect();
    out.extend(wrapped.iter().take(most).map(|line| (vec![piece(format!("  {line}"), theme.plain())], Vec::new())));
    out.extend(more_lines(wrapped.len().saturating_sub(most), scene));
    out.push((Vec::new(), Vec::new()));
    out
}

/// That there are more lines than are shown.
fn more_lines(hidden: usize, scene: &Scene<'_>) -> Option<Line> {
    let text = format!("  … {}", detail::many(hidden as u64, "more line"));
    (hidden > 0).then(|| (vec![piece(text, scene.theme.dim())], Vec::new()))
}

fn said(said: &Said, width: u16, most: usize, scene: &Scene<'_>, windows: &Windows) -> Vec<Line> {
    let theme = scene.theme;
    let time = piece(scene.time_of_day(said.at), theme.dim()).rank(1);
    match &said.what {
        SaidWhat::Message { told, text, error } => {
            let name = if *told { piece("told", theme.bold()) } else { piece("assistant", theme.accent()) };
            let mut out = vec![(vec![name], vec![time])];
            let full =
                said.place.and_then(|place| windows.messages.get(&place)).filter(|m| m.lines > 0 || m.thought > 0);
            if let Some(thought) = full.map(|m| m.thought).filter(|n| *n > 0) {
                let text = format!("▸ thought for {}", detail::many(thought as u64, "line"));
                out.push((vec![piece(format!("  {text}"), theme.dim())], Vec::new()));
            }
            let (text, all) = full.map_or((text, text.len()), |m| (&m.text, m.lines));
            let wrapped: Vec<SafeText> =
                text.iter().flat_map(|l| wrapped(l, usize::from(width.saturating_sub(2)), scene.reveal)).collect();
            out.extend(
                wrapped.iter().take(most).map(|line| (vec![piece(format!("  {line}"), theme.plain())], Vec::new())),
            );
            let hidden = all.saturating_sub(text.len()) + wrapped.len().saturating_sub(most);
            out.extend(more_lines(hidden, scene));
            out.extend(error.iter().map(|e| (vec![piece(format!("  ✗ {e}"), theme.bad())], Vec::new())));
            out
        }
        SaidWhat::Call { tool, args, .. } => {
            let left = vec![piece(format!("  ● {tool}"), theme.accent()), piece(args.to_string(), theme.dim()).gap(1)];
            vec![(left, vec![time])]
        }
        SaidWhat::Result { tool, outcome, text, of, .. } => {
            let (glyph, style) = calls::outcome_mark(Some(*outcome), scene);
            let word = calls::outcome_word(Some(*outcome)).map(|word| format!(" {word}")).unwrap_or_default();
            let first = text.iter().find(|l| !l.is_empty()).map(SafeText::to_string).unwrap_or_default();
            let more = if text.len() > 1 {
                format!(
                    "{} lines",
                    if text.len() >= SHOWN { format!("{SHOWN} or more") } else { text.len().to_string() }
                )
            } else {
                String::new()
            };
            let rest = if *outcome == ToolOutcome::Ok { theme.dim() } else { theme.bad() };
            let mut left = vec![piece(format!("  {glyph}"), style), piece(format!("{tool}{word}"), theme.dim()).gap(1)];
            // What gave nothing is told by what it was called with.
            left.push(match of {
                Some(of) => piece(of.to_string(), theme.dim()).gap(2),
                None => piece(first, rest).gap(2),
            });
            vec![(left, vec![piece(more, theme.dim()).rank(2), time.gap(2)])]
        }
    }
}

/// When an entry was begun; `None` where that is not at hand.
pub(super) fn began(tab: Tab, number: u64, step: &StepState, scene: &Scene<'_>) -> Option<Timestamp> {
    match tab {
        Tab::Tools => match scene.entries().call(step, number)? {
            Call::Ended(call, _) => Some(call.started_at.unwrap_or(call.ended_at)),
            Call::Open(call) => Some(call.started_at),
        },
        // Of the task nobody asks when it was.
        Tab::Transcript if number == entries::TASK => None,
        Tab::Transcript => scene.entries().said(step.id, number).map(|said| said.at),
        _ => None,
    }
}
