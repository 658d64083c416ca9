//! The lines at the edges: the run, what needs a person, what became of requests, what can be pressed.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::paint::{Piece, piece, put, put_cut, row};
use super::{Scene, elapsed, now_text};
use crate::deck::actions::{self, Action, Situation};
use crate::deck::attention;
use crate::deck::compose;
use crate::deck::feed::Hands;
use crate::deck::history::short;
use crate::deck::model::{Fate, Overlay, UiState, living};
use crate::run::{RunState, RunnerKind, TargetState};
use crate::text::{SafeText, clock, clock_long, cost, count, or_unknown, span};

/// The line about the run.
pub(super) fn header(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let state = scene.state;
    let face = theme.run_face(state);
    let mut left = vec![piece(" ", theme.plain())];
    let id = run_id(state);
    match &state.name {
        Some(name) => {
            let cells = usize::from(area.width / 3).max(10);
            left.push(piece(format!("{}  ", SafeText::line(name).truncate(cells)), theme.bold()));
            left.push(piece("run ", theme.dim()).rank(1));
            left.push(piece(format!("{id}  "), theme.dim()).rank(3));
        }
        None => {
            left.push(piece("run ", theme.dim()).rank(1));
            left.push(piece(format!("{id}  "), theme.bold()));
        }
    }
    left.push(piece(format!("{} {}", face.glyph, face.word), face.style));
    left.extend(frozen(scene, ui));
    if scene.read_only.is_some() {
        left.push(piece("  read-only", theme.halted()).rank(6));
    }
    if let Some(from) = &state.resumed_from {
        left.push(piece(format!("  goes on from {}", short(from.as_str())), theme.dim()).rank(1));
    }
    let mut right = vec![
        piece("step ", theme.dim()).rank(2),
        piece(format!("{}/{}   ", state.steps_ended(), state.steps.len()), theme.plain()).rank(7),
    ];
    let ran = state.elapsed(scene.now);
    let time = or_unknown(ran.map(if area.width >= 100 { clock_long } else { clock }));
    right.push(piece(time, theme.bold()));
    if let Some(limit) = state.timeout_ms {
        let limit = clock(std::time::Duration::from_millis(limit));
        right.push(piece(format!(" of {limit}"), theme.dim()).rank(4));
    }
    // Unknown money is said to be unknown only where there is room to say so.
    let plain = state.steps.iter().all(|s| matches!(s.runner, RunnerKind::ExternalCli { .. }));
    let money = or_unknown(state.cost().map(|c| cost(c.0)));
    if !plain || state.cost().is_some() {
        right.push(piece(format!("   {money}"), theme.plain()).rank(if state.cost().is_some() { 8 } else { 1 }));
    }
    let tokens = state.tokens();
    let tokens = if tokens.is_zero() { "–".to_owned() } else { count(tokens.total()) };
    if !plain {
        right.push(piece(format!("   {tokens} tok"), theme.plain()).rank(5));
    }
    right.push(piece(" ", theme.plain()));
    row(buf, area, 0, left, right);
}

fn frozen(scene: &Scene<'_>, ui: &UiState) -> Option<Piece> {
    let since = ui.frozen?;
    Some(piece(format!("  FROZEN {} ", clock(scene.wall.since(since))), scene.theme.alarm()))
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
pub(super) fn step_header(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let Some(step) = scene.state.step(ui.selected) else { return };
    let face = theme.face(step.face());
    let mut left = vec![
        piece(format!(" {} ", step.id), theme.dim()),
        piece(format!("{}  ", SafeText::line(step.title()).truncate(usize::from(area.width / 3))), theme.bold()),
        piece(format!("{} {}", face.glyph, face.word), face.style),
    ];
    left.extend(frozen(scene, ui));
    let now = SafeText::line(&now_text(scene.state, step, scene.now)).truncate(usize::from(area.width / 3));
    left.push(piece(format!("  {now}"), theme.dim()).rank(2));
    let mut right = vec![piece(elapsed(step, scene.now), theme.bold())];
    if step.turn_count > 0 {
        right.push(piece(format!("   turn {}", step.turn_count), theme.plain()).rank(5));
    }
    if let Some(usd) = step.cost {
        right.push(piece(format!("   {}", cost(usd.0)), theme.plain()).rank(6));
    }
    if !step.tokens.is_zero() {
        right.push(piece(format!("   {} tok", count(step.tokens.total())), theme.plain()).rank(4));
    }
    let run = theme.run_face(scene.state);
    right.push(piece(format!("   run {} ", run_id(scene.state)), theme.dim()).rank(3));
    right.push(piece(format!("{} ", run.glyph), run.style).rank(3));
    row(buf, area, 0, left, right);
}

/// The line about what needs a person.
pub(super) fn needs_you(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState) {
    if area.is_empty() {
        return;
    }
    let theme = scene.theme;
    let waiting = attention_of(scene, ui);
    let Some((first, name)) = waiting.first() else { return };
    buf.set_style(area, theme.alarm());
    let age = first.since.map(|s| format!(" {}", span(scene.now.since(s)))).unwrap_or_default();
    let text = SafeText::line(&format!("step {} {name}: {}{age}", first.step, first.reason));
    let text = text.truncate(usize::from(area.width.saturating_sub(18)));
    let left =
        vec![piece(format!(" ▲ {} NEEDS YOU  ", waiting.len()), theme.alarm()), piece(text.to_string(), theme.alarm())];
    let right = vec![
        piece(format!("{} jump   ", ui.keymap.hint(Action::NextAttention)), theme.alarm()).rank(3),
        piece(format!("{} acknowledge   ", ui.keymap.hint(Action::Acknowledge)), theme.alarm()).rank(2),
        piece(format!("{} why ", ui.keymap.hint(Action::Why)), theme.alarm()).rank(1),
    ];
    row(buf, area, 0, left, right);
}

fn attention_of(scene: &Scene<'_>, ui: &UiState) -> Vec<(attention::Attention, SafeText)> {
    attention::attention(scene.state, ui)
        .into_iter()
        .map(|a| {
            let name = scene.state.step(a.step).map(|s| SafeText::line(s.title())).unwrap_or_default();
            (a, name)
        })
        .collect()
}

/// The line about requests and notices. Returns the pieces, so that the footer can take its place where there is no
/// row for it.
fn message(scene: &Scene<'_>, ui: &UiState) -> Option<Vec<Piece>> {
    let theme = scene.theme;
    if let Some(Overlay::Search { query }) = ui.overlays.last() {
        let typed = SafeText::line(query);
        return Some(vec![
            piece(" / ", theme.key()),
            piece(typed.to_string(), theme.plain()),
            piece("▏", theme.select()),
        ]);
    }
    if let Some(Overlay::Filter) = ui.overlays.last() {
        let typed = SafeText::line(ui.filter.as_deref().unwrap_or_default());
        return Some(vec![
            piece(" & ", theme.key()),
            piece(typed.to_string(), theme.plain()),
            piece("▏", theme.select()),
        ]);
    }
    if ui.armed.is_some() {
        let many = living(scene.state);
        let children = if many == 1 { "child pauses".to_owned() } else { format!("{many} children pause") };
        return Some(vec![
            piece(" press ", theme.plain()),
            piece(ui.keymap.hint(Action::Interrupt), theme.key()),
            piece(format!(" again to interrupt: {children}, their sessions live on"), theme.plain()),
        ]);
    }
    if let (Some(percent), Some(search)) = (ui.searching, &ui.search) {
        let needle = SafeText::line(&search.needle).truncate(30);
        return Some(vec![
            piece(format!(" looking for {needle}, {percent}% of the log   "), theme.plain()),
            piece("esc", theme.key()),
            piece(" ends it", theme.dim()),
        ]);
    }
    if let Some(notice) = &ui.notice {
        let style = if notice.bad { theme.bad() } else { theme.plain() };
        return Some(vec![piece(format!(" {}", notice.text), style)]);
    }
    if let Some(text) = standing(scene) {
        return Some(vec![piece(format!(" {text}"), theme.halted())]);
    }
    if scene.state.is_over() {
        let mut over = vec![
            piece(" the run is over; ", theme.plain()),
            piece(ui.keymap.hint(Action::Quit), theme.key()),
            piece(" leaves and prints the summary", theme.plain()),
        ];
        let at = Situation { state: scene.state, read_only: scene.read_only };
        if actions::possible(Action::Steer, ui, at).is_ok() {
            over.push(piece("; ", theme.plain()).rank(1));
            over.push(piece(ui.keymap.hint(Action::Steer), theme.key()).rank(1));
            over.push(piece(format!(" goes on with step {}", ui.selected), theme.plain()).rank(1));
        }
        return Some(over);
    }
    if ui.leave_when_over {
        return Some(vec![piece(" stopping everything; the deck leaves when the last child has ended", theme.bold())]);
    }
    request(scene, ui)
}

/// What stays true and must be known.
fn standing(scene: &Scene<'_>) -> Option<SafeText> {
    let text = match (scene.hands, scene.read_only) {
        (Hands::Lost(evidence), _) => format!("read-only: the runner is gone, the run was marked lost ({evidence})"),
        (Hands::Gone, _) => "the run's directory is gone; this is the last picture".to_owned(),
        (Hands::Suspended(what), _) => what.to_string(),
        (Hands::Unknown(why), _) if !scene.state.is_over() => format!("whether the runner lives is not known: {why}"),
        (_, Some(why)) => format!("read-only: {why}"),
        _ => return None,
    };
    Some(SafeText::line(&text))
}

/// The life of the newest request: what the runner says of it, or that it was written.
fn request(scene: &Scene<'_>, ui: &UiState) -> Option<Vec<Piece>> {
    let theme = scene.theme;
    let sent = ui.sent.last();
    let known = scene.state.steering.recent.last();
    let sent_is_newer = match (sent, known) {
        (Some(sent), Some(known)) => {
            sent.at > known.requested_at && !scene.state.steering.recent.iter().any(|r| Some(&r.id) == sent.id.as_ref())
        }
        (Some(_), None) => true,
        _ => false,
    };
    let mut out = vec![piece(" control: ", theme.dim())];
    if let (Some(sent), true) = (sent, sent_is_newer) {
        let id = sent.id.as_deref().map(|id| format!(" #{}", short(id))).unwrap_or_default();
        let whom = sent.step.map_or_else(String::new, |s| format!(" → step {s}"));
        out.push(piece(format!("{}{id}{whom} ", sent.what), theme.plain()));
        match &sent.fate {
            Fate::Refused(why) => out.push(piece(format!("refused: {why}"), theme.bad())),
            Fate::Done => out.push(piece("done", theme.good())),
            Fate::Unanswered | Fate::Awaited => out.push(piece("written", theme.bold())),
        }
        out.push(piece(format!(" {}", scene.time_of_day(sent.at)), theme.dim()).rank(2));
        if sent.what == "steer" && compose::withdrawable(scene.state, ui) == sent.id {
            out.push(piece(format!("   {} takes it back", ui.keymap.hint(Action::TakeBack)), theme.dim()).rank(1));
        }
        return Some(out);
    }
    let request = known?;
    out.push(piece(format!("steer #{} → ", short(&request.id)), theme.plain()));
    for (n, target) in request.targets.iter().take(4).enumerate() {
        let style = match target.state {
            TargetState::Failed => theme.bad(),
            TargetState::Delivered => theme.good(),
            _ => theme.bold(),
        };
        let gap = if n > 0 { ", " } else { "" };
        out.push(piece(format!("{gap}step {} ", target.step), theme.plain()));
        out.push(piece(target.state.as_str(), style));
        if let Some(at) = target.delivered_at.or(target.failed_at).or(target.routed_at) {
            out.push(piece(format!(" {}", scene.time_of_day(at)), theme.dim()).rank(2));
        }
        if let Some(why) = &target.reason {
            out.push(piece(format!(": {}", SafeText::line(why)), theme.bad()));
        }
    }
    Some(out)
}

/// Draws the line about requests and notices.
pub(super) fn control(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState) {
    if let (false, Some(pieces)) = (area.is_empty(), message(scene, ui)) {
        row(buf, area, 0, pieces, Vec::new());
    }
}

/// Draws the hints; `alone` says that there is no other line for a notice.
pub(super) fn footer(buf: &mut Buffer, area: Rect, alone: bool, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    if alone
        && (ui.armed.is_some()
            || ui.notice.is_some()
            || matches!(ui.overlays.last(), Some(Overlay::Search { .. } | Overlay::Filter)))
        && let Some(pieces) = message(scene, ui)
    {
        return row(buf, area, 0, pieces, Vec::new());
    }
    let hint = |key: &str, word: &str| [piece(format!(" {key}"), theme.key()), piece(format!(" {word} "), theme.dim())];
    let pieces: Vec<Piece> = match ui.overlays.last() {
        Some(Overlay::Composer(composer)) => {
            let mut out = vec![piece(" keys type text  ", theme.dim()).rank(1)];
            out.extend(hint("ctrl-s", "send"));
            if !composer.goes_on {
                out.extend([hint("tab", "target"), hint("ctrl-t", "mode")].concat());
            }
            out.extend(hint("esc", "keep draft"));
            out.extend(hint("ctrl-c", "discard").map(|p| p.rank(2)));
            out.extend(hint("F1", "help").map(|p| p.rank(2)));
            out
        }
        Some(Overlay::Palette { .. }) => [hint("enter", "do it"), hint("↑↓", "choose"), hint("esc", "back")].concat(),
        Some(Overlay::Filter) => [hint("enter", "keep it"), hint("esc", "all steps")].concat(),
        Some(Overlay::Search { .. }) => [hint("enter", "look"), hint("esc", "back")].concat(),
        Some(Overlay::Help { .. }) => [hint("jk", "scroll"), hint("esc", "back")].concat(),
        Some(Overlay::Why(_)) => hint("esc", "back").to_vec(),
        Some(Overlay::Budget(_)) => {
            [hint("enter", "ask for it"), hint("↑↓", "limit"), hint("tab", "scope"), hint("esc", "back")].concat()
        }
        Some(Overlay::Confirm { .. } | Overlay::Quit { .. }) => Vec::new(),
        None => hints(scene, ui),
    };
    row(buf, area, 0, pieces, Vec::new());
}

fn hints(scene: &Scene<'_>, ui: &UiState) -> Vec<Piece> {
    let theme = scene.theme;
    let at = Situation { state: scene.state, read_only: scene.read_only };
    let mut out = Vec::new();
    for action in actions::footer(ui, at) {
        let Some(info) = actions::row(action) else { continue };
        let key = match action {
            Action::Down => format!("{}{}", ui.keymap.hint(Action::Down), ui.keymap.hint(Action::Up)),
            Action::NextStep => {
                format!("{} {}", ui.keymap.hint(Action::PreviousStep), ui.keymap.hint(Action::NextStep))
            }
            Action::Interrupt => [(); 2].map(|()| ui.keymap.hint(action)).join(" "),
            _ => ui.keymap.hint(action),
        };
        if key.trim().is_empty() {
            continue;
        }
        let rank = match action {
            Action::View => 0,
            Action::NextPane => 1,
            Action::Palette => 2,
            Action::Search => 2,
            Action::Follow => 3,
            Action::Down | Action::NextStep => 4,
            Action::Zoom => 5,
            Action::Interrupt => 6,
            Action::Back => 7,
            Action::StopStep | Action::TakeBack => 8,
            Action::Steer => 9,
            Action::NextAttention => 10,
            Action::Help => 11,
            _ => 12,
        };
        out.push(piece(format!(" {key}"), theme.key()).rank(rank));
        out.push(piece(format!(" {} ", info.short), theme.dim()).rank(rank));
    }
    out
}

/// One sentence, for a terminal without room for anything else.
pub(super) fn tiny(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let state = scene.state;
    let face = theme.run_face(state);
    let waiting = attention::attention(state, ui).len();
    let needs = if waiting > 0 { format!(", {waiting} needs you") } else { String::new() };
    let text =
        format!("{} {} {} of {}{needs}, enlarge me", face.glyph, face.word, state.steps_ended(), state.steps.len());
    let rows = SafeText::line(&text).wrap(usize::from(area.width));
    for (line, dy) in rows.iter().zip(0_u16..area.height) {
        put_cut(buf, area, 0, dy, line, area.width, if waiting > 0 { theme.alarm() } else { theme.plain() });
    }
    let below = u16::try_from(rows.len()).unwrap_or(u16::MAX);
    if matches!(ui.overlays.last(), Some(Overlay::Confirm { .. } | Overlay::Quit { .. })) {
        put(buf, area, 0, below, "esc: no", theme.bold());
    }
}
