//! The line about the run, or about the zoomed step.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::super::brief::of_limits;
use super::super::meters::{marked, meter_is_high, meter_style};
use super::super::paint::{Piece, bar, piece, row, total};
use super::super::{Scene, elapsed, now_text};
use super::inset;
use crate::deck::model::UiState;
use crate::deck::theme::Face;
use crate::run::budget::Meter;
use crate::run::{Metric, RunState, StepFace, StepPhase, or_more};
use crate::text::{SafeText, UNKNOWN, clock, clock_long, cost, count, or_unknown};

/// The line about the run.
pub(in crate::deck::view) fn header(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let state = scene.state;
    let face = run_face(scene);
    let mut left = Vec::new();
    let id = run_id(state);
    match &state.name {
        Some(name) => {
            let cells = usize::from(area.width / 3).max(10);
            left.push(piece(SafeText::line(name).truncate(cells).to_string(), theme.bold()));
            left.push(piece("run", theme.dim()).rank(3).gap(2));
            left.push(piece(id.to_string(), theme.dim()).rank(3).gap(1));
        }
        None => {
            left.push(piece("run ", theme.dim()).rank(1));
            left.push(piece(id.to_string(), theme.bold()));
        }
    }
    left.push(piece(format!("{} {}", face.glyph, face.word), face.style).gap(2));
    left.extend(frozen(scene, ui));
    left.extend(reading(scene, ui));
    if scene.read_only.is_some() && ui.replay.is_none() {
        left.push(piece("read-only", theme.halted()).rank(6).gap(2));
    }
    if let Some(from) = &state.resumed_from {
        // Eight characters are enough to name a run, and every command takes them.
        let from: String = from.as_str().chars().take(8).collect();
        left.push(piece(format!("goes on from {from}"), theme.dim()).rank(1).gap(2));
    }
    left.extend(inside(scene, ui));
    let sums = ui.sums(state);
    let mut right = Vec::new();
    let gap = if area.width < 70 { 2 } else { 3 };
    // Before any is known the list says so.
    if !state.steps.is_empty() {
        let (count, word) = sums.progress;
        right.push(piece(format!("{count}/{}", state.steps.len()), theme.plain()).rank(7));
        // Of what they are so many is worth more than which run it is.
        right.push(piece(word, theme.dim()).rank(4).gap(1));
    }
    let ran = state.elapsed(scene.now);
    let time = or_unknown(ran.map(if area.width >= 100 { clock_long } else { clock }));
    let more = if state.lost.is_some() && state.ended_at.is_none() && ran.is_some() { "+" } else { "" };
    // A lone sign for what is not known says nothing of what it is that is not.
    if ran.is_some() || !state.steps.is_empty() {
        right.push(piece(format!("{time}{more}"), theme.bold()).gap(gap));
    }
    if let Some(limit) = state.timeout_ms {
        let limit = std::time::Duration::from_millis(limit);
        let limit = if area.width >= 100 { clock_long(limit) } else { clock(limit) };
        right.push(piece(format!("of {limit}"), theme.dim()).rank(4).gap(1));
    }
    // Unknown money is said to be unknown only where there is room to say so.
    let meters = crate::run::budget::run_meters(state, scene.now);
    let metered = |metric: Metric| meters.iter().find(|m| m.metric == metric);
    let used_style = |meter: &Meter| if meter_is_high(meter) { theme.bad() } else { theme.plain() };
    let (cost_more, tokens_more) = (or_more(sums.cost_more), or_more(sums.tokens_more));
    let money = sums.cost.map_or_else(|| format!("cost {UNKNOWN}"), |c| format!("{}{cost_more}", cost(c.0)));
    if !sums.plain || sums.cost.is_some() {
        let rank = if sums.cost.is_some() { 8 } else { 1 };
        match metered(Metric::Cost) {
            // Where there is no room for the limit what was used is told, and that it is much.
            Some(meter) if area.width < 70 => {
                let mark = if meter_is_high(meter) { " !" } else { "" };
                right.push(piece(format!("{money}{mark}"), used_style(meter)).rank(8).gap(gap));
            }
            Some(meter) => {
                right.push(piece(marked(meter), used_style(meter)).rank(8).gap(gap));
                right.push(piece(bar(meter.share(), 10), meter_style(meter, scene)).rank(1).gap(1));
            }
            None => right.push(piece(money, theme.plain()).rank(rank).gap(gap)),
        }
    }
    let tokens = if sums.tokens.is_zero() { "–".to_owned() } else { count(sums.tokens.total()) };
    if !sums.plain {
        match metered(Metric::Tokens) {
            Some(meter) => {
                right.push(piece(format!("{} tok", marked(meter)), used_style(meter)).rank(5).gap(gap));
                right.push(piece(bar(meter.share(), 10), meter_style(meter, scene)).rank(0).gap(1));
            }
            None => right.push(piece(format!("{tokens}{tokens_more} tok"), theme.plain()).rank(5).gap(gap)),
        }
    }
    row(buf, inset(area), 0, left, right);
}

/// How the run looks.
pub(super) fn run_face(scene: &Scene<'_>) -> Face {
    let face = scene.theme.own_run_face(scene.state);
    if scene.is_gone() && !scene.state.is_over() {
        return Face { glyph: face.glyph, word: "was running", ..scene.theme.face(StepFace::Unknown) };
    }
    face
}

/// How much of a long event log was read.
fn reading(scene: &Scene<'_>, ui: &UiState) -> Option<Piece> {
    let percent = ui.reading.filter(|_| ui.replay.is_none())?;
    Some(piece(format!("reading what happened {percent}%"), scene.theme.dim()).rank(6).gap(2))
}

/// Where the run was started, and what was started in it.
fn inside(scene: &Scene<'_>, ui: &UiState) -> Vec<Piece> {
    let theme = scene.theme;
    let mut out = Vec::new();
    if let Some(within) = &scene.state.started_in {
        let id: String = SafeText::line(within.run.as_str()).as_str().chars().take(8).collect();
        let step = within.step.map(|step| format!(" step {step}")).unwrap_or_default();
        out.push(piece(format!("in {id}{step}"), theme.dim()).rank(1).gap(2));
    }
    let narrow = ui.size.0 < 70;
    let (count, needs) = (ui.inside.len(), ui.inside.iter().filter(|run| run.needs).count());
    if count > 0 {
        let style = if needs > 0 { theme.alarm() } else { theme.dim() };
        let runs = if count == 1 { "1 run inside".to_owned() } else { format!("{count} runs inside") };
        let text = match needs {
            0 => runs,
            _ if narrow => format!("▲ {needs} inside"),
            1 => format!("{runs}, 1 needs you"),
            _ => format!("{runs}, {needs} need you"),
        };
        out.push(piece(text, style).rank(if needs > 0 { 9 } else { 1 }).gap(2));
    }
    out
}

/// That the picture is one of another moment; whoever needs somebody only now is told all the same.
fn frozen(scene: &Scene<'_>, ui: &UiState) -> Vec<Piece> {
    let alarm = scene.theme.alarm();
    if ui.replay.is_some() {
        let clock = if ui.size.0 < 70 { String::new() } else { format!("{} ", scene.time_of_day(scene.now)) };
        return vec![piece(format!(" REPLAY {clock}"), alarm).gap(2)];
    }
    let Some(since) = ui.frozen else { return Vec::new() };
    let mut out = vec![piece(format!(" FROZEN {} ", clock(scene.wall.since(since))), alarm).gap(2)];
    if ui.missed > 0 {
        let needs = if ui.missed == 1 { "NEEDS" } else { "NEED" };
        let glyph = scene.theme.face(StepFace::Attention).glyph;
        out.push(piece(format!(" {glyph} {} {needs} YOU NOW ", ui.missed), alarm).gap(1));
    }
    out
}

/// The beginning of the run's id, as far as a person needs it.
fn run_id(state: &RunState) -> SafeText {
    let id = SafeText::line(state.id.as_str());
    match id.as_str().split_once('-') {
        Some((first, _)) if first.len() >= 6 => SafeText::line(first),
        _ => id.truncate(12),
    }
}

/// The line about a zoomed step.
pub(in crate::deck::view) fn step_header(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let Some(step) = scene.state.step(ui.selected) else { return };
    let face = super::super::face(step, scene, ui);
    let title = SafeText::line(step.title()).truncate(usize::from(area.width / 3));
    let mut left = vec![
        piece(step.id.to_string(), theme.dim()),
        piece(title.to_string(), theme.bold()).gap(1),
        piece(format!("{} {}", face.glyph, face.word), face.style).gap(2),
    ];
    left.extend(frozen(scene, ui));
    left.extend(reading(scene, ui));
    let mut right = vec![piece(elapsed(step, scene), theme.bold())];
    right.extend(of_limits(step, scene));
    let run = run_face(scene);
    let about_run = |told: String| {
        [
            piece("run", theme.dim()).rank(1).gap(3),
            piece(run_id(scene.state).to_string(), theme.dim()).rank(1).gap(1),
            piece(told, run.style).rank(1).gap(1),
        ]
    };
    // How the run stands is told in a word where there is room for one.
    let about_run = [about_run(format!("{} {}", run.glyph, run.word)), about_run(run.glyph.to_owned())];
    let open = step.current_call().filter(|_| step.retrying.is_none());
    let open = open.map(|call| piece(clock(scene.now.since(call.started_at)), theme.bold()).rank(2).gap(1));
    // What it does is cut to the room that there is, and worth more than which run it is in.
    let clock_wide = open.as_ref().map_or(0, |piece| total(std::slice::from_ref(piece)) + 1);
    let own = total(&left) + total(&right) + clock_wide + 6;
    let room = usize::from(area.width.saturating_sub(own));
    // Of one who does nothing there is less to be said.
    let least = if step.phase == StepPhase::Running { 20 } else { 12 };
    let with_run = |told: &[Piece]| room.saturating_sub(usize::from(total(told)) + 3);
    let about_run = about_run.into_iter().find(|told| with_run(told) >= least);
    let room = about_run.as_ref().map_or(room, |told| with_run(told));
    if room >= 8 {
        let now = SafeText::line(&now_text(scene.state, &ui.sums(scene.state), step, scene.now))
            .truncate(room.min(usize::from(area.width / 2)));
        left.push(piece(now.to_string(), theme.dim()).rank(2).gap(2));
        left.extend(open);
    }
    right.extend(about_run.into_iter().flatten());
    row(buf, inset(area), 0, left, right);
}
