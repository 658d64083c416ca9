//! The dialog in which a message is written: to whom, how it is to arrive, and its text.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use super::Scene;
use super::paint::{Edge, Piece, fade, frame, piece, put, put_cut, row, total, wipe};
use crate::deck::actions::{self, Situation};
use crate::deck::compose::candidates;
use crate::deck::model::{Composer, UiState};
use crate::run::{RunnerKind, SteerMode, SteerRequest, Steerable};
use crate::text::{SafeText, grouped};

/// Draws it, below the picture, which stands back.
pub(super) fn draw(buf: &mut Buffer, area: Rect, composer: &Composer, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let high = (area.height * 2 / 5).clamp(7, 16).min(area.height);
    let above = Rect { height: area.height - high, ..area };
    fade(buf, above, theme);
    let place = Rect { y: area.y + above.height, height: high, ..area };
    wipe(buf, place);
    let mut right =
        vec![piece("esc keep draft", theme.dim()).rank(2).gap(3), piece("ctrl-c discard", theme.dim()).rank(1).gap(3)];
    if composer.refused.is_none() {
        right.insert(0, piece("ctrl-s send", theme.bold()));
    }
    let draft = ui.drafts.get(&composer.home);
    let mut title = vec![piece(if composer.goes_on { "go on" } else { "steer" }, theme.bold())];
    title.extend(draft.and_then(|draft| draft.found).map(|(many, at)| {
        let of = if many == 1 { "begun in another deck".to_owned() } else { format!("{many} drafts of other decks") };
        piece(format!("{of}, {}", scene.time_of_day(at)), theme.accent()).rank(0).gap(2)
    }));
    let inner = frame(buf, place, theme, Edge::Above, title, right);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    if composer.goes_on {
        let name = scene.state.step(composer.home).map(|s| SafeText::line(s.title()).truncate(30)).unwrap_or_default();
        let left = vec![piece("to    ", theme.dim()), piece(format!("{} {name}", composer.home), theme.bold())];
        row(buf, inner, 0, left, Vec::new());
        put(buf, inner, 0, 1, "begins a new run that goes on with its session", theme.dim());
    } else {
        targets(buf, inner, composer, scene);
        match &composer.refused {
            Some(why) => {
                let at = Situation { state: scene.state, read_only: scene.read_only };
                let others = actions::possible(actions::Action::SteerAll, ui, at).is_ok();
                let other = if others { "; tab chooses another step" } else { "" };
                let whole = SafeText::line(&format!("cannot be sent: {why}{other}"));
                // The reason says it too, and what to do is never what is cut.
                let fits = whole.width() <= usize::from(inner.width);
                let text = if fits { whole } else { SafeText::line(&format!("{why}{other}")) };
                put_cut(buf, inner, 0, 1, &text, inner.width, theme.bad());
            }
            None => modes(buf, inner, draft.map(|d| d.mode).unwrap_or_default(), scene),
        }
    }
    put(buf, inner, 0, 2, &"─".repeat(usize::from(inner.width)), theme.dim());
    let text = Rect { y: inner.y + 3, height: inner.height.saturating_sub(4), ..inner };
    if let Some(draft) = draft {
        (&draft.text).render(text, buf);
    }
    let size = draft.map_or(0, |d| d.message().len());
    let over = size > SteerRequest::MAX_BYTES;
    let count = format!("{} of {} bytes", grouped(size as u64), grouped(SteerRequest::MAX_BYTES as u64));
    let mut left = vec![piece(count, if over { theme.bad() } else { theme.dim() })];
    let mut right = vec![piece(capability(composer, scene), theme.dim()).rank(1)];
    // The line for notices lies below the composer, so what it has to say is said here.
    if let Some(notice) = &ui.notice {
        left = vec![piece(notice.text.to_string(), if notice.bad { theme.bad() } else { theme.plain() })];
        right.clear();
    }
    row(buf, inner, inner.height.saturating_sub(1), left, right);
}

/// Who gets the message.
fn targets(buf: &mut Buffer, inner: Rect, composer: &Composer, scene: &Scene<'_>) {
    let theme = scene.theme;
    let mut left = vec![piece("to ", theme.dim())];
    let steps = candidates(scene.state);
    let all = steps.len() > 1 && steps.iter().all(|s| composer.targets.contains(s));
    let mut shown = steps.clone();
    // The one it was begun for is named even when it cannot be told anything; those that ended meanwhile are not.
    shown.extend(composer.targets.iter().filter(|t| composer.targets.len() == 1 && !steps.contains(t)));
    shown.sort_unstable();
    let named = shown.into_iter().map(|id| {
        let chosen = composer.targets.contains(&id) && !all;
        let name = scene.state.step(id).map(|s| SafeText::line(s.title()).truncate(16)).unwrap_or_default();
        let mark = if chosen { "[x]" } else { "[ ]" };
        let style = if chosen { theme.bold() } else { theme.dim() };
        (chosen, piece(format!("{mark} {id} {name}"), style).rank(u8::MAX).gap(3))
    });
    let named: Vec<(bool, Piece)> = named.collect();
    let mark = if all { "[x]" } else { "[ ]" };
    let style = if all { theme.bold() } else { theme.dim() };
    let whole = piece(format!("{mark} all {} running", steps.len()), style).rank(u8::MAX).gap(3);
    let whole = Some(whole).filter(|_| steps.len() > 1);
    // Where not all fit the chosen ones and the first ones are named, and it is said how many are not.
    let cells = |piece: &Piece| total(std::slice::from_ref(piece)) + 3;
    let needed = named.iter().filter(|(chosen, _)| *chosen).map(|(_, piece)| cells(piece)).fold(0, u16::saturating_add);
    let mut room = inner.width.saturating_sub(3).saturating_sub(needed).saturating_sub(whole.as_ref().map_or(0, cells));
    let others = named.iter().filter(|(chosen, _)| !chosen).map(|(_, piece)| cells(piece)).fold(0, u16::saturating_add);
    if others > room {
        room = room.saturating_sub(MORE);
    }
    let mut hidden = 0;
    for (chosen, piece) in named {
        let fits = hidden == 0 && cells(&piece) <= room;
        if !chosen && !fits {
            hidden += 1;
            continue;
        }
        if !chosen {
            room -= cells(&piece);
        }
        left.push(piece);
    }
    if hidden > 0 {
        left.push(piece(format!("{hidden} more"), theme.dim()).rank(u8::MAX).gap(3));
    }
    left.extend(whole);
    row(buf, inner, 0, left, vec![piece("tab", theme.key()).rank(1), piece(" target", theme.dim()).rank(1)]);
}

/// Cells for how many targets are not named, with what parts it from them.
const MORE: u16 = 9;

/// How it is to arrive.
fn modes(buf: &mut Buffer, inner: Rect, mode: SteerMode, scene: &Scene<'_>) {
    let theme = scene.theme;
    let choice = |which: SteerMode, text: &str| {
        let (mark, style) = if mode == which { ("(•)", theme.bold()) } else { ("( )", theme.dim()) };
        piece(format!("{mark} {text}"), style).rank(if mode == which { u8::MAX } else { 2 }).gap(2)
    };
    let left = vec![
        piece("mode", theme.dim()),
        choice(SteerMode::Steer, "steer now"),
        choice(SteerMode::FollowUp, "follow up after this turn"),
        choice(SteerMode::Auto, "auto"),
    ];
    row(buf, inner, 1, left, vec![piece("ctrl-t", theme.key()).rank(1), piece(" mode", theme.dim()).rank(1)]);
}

/// What is known of whether the target can be told anything.
fn capability(composer: &Composer, scene: &Scene<'_>) -> String {
    if composer.goes_on || composer.refused.is_some() {
        return String::new();
    }
    let mut targets = composer.targets.iter().filter_map(|id| scene.state.step(*id));
    match (targets.next(), targets.next()) {
        (Some(step), None) => {
            let word = match &step.steerable {
                Steerable::Yes => match &step.runner {
                    RunnerKind::Agent(agent) => format!("yes, {}", agent.family.arrival()),
                    _ => "yes".to_owned(),
                },
                Steerable::Unknown => "not known yet".to_owned(),
                Steerable::No(why) => format!("no, {}", SafeText::line(why)),
            };
            let queue = step.steering.open_for(step.id).count();
            let name = SafeText::line(step.title()).truncate(16);
            format!("{} {name} accepts steering: {word}   queue {queue} of {}", step.id, SteerRequest::QUEUE_LIMIT)
        }
        (Some(_), Some(_)) => {
            let steps: Vec<_> = composer.targets.iter().filter_map(|id| scene.state.step(*id)).collect();
            let which = |is: fn(&Steerable) -> bool| steps.iter().filter(|step| is(&step.steerable)).count();
            let willing = which(|steerable| matches!(steerable, Steerable::Yes));
            let unknown = match which(|steerable| matches!(steerable, Steerable::Unknown)) {
                0 => String::new(),
                n => format!(", of {n} it is not known yet"),
            };
            format!("{willing} of {} accept steering{unknown}", steps.len())
        }
        _ => String::new(),
    }
}
