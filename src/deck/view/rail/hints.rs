//! What can be pressed: the hints of the picture, and those of what lies above it.

use crossterm::event::KeyCode;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::super::paint::{self, Piece, hit, piece, row};
use super::super::{Scene, overlay};
use super::inset;
use super::message::message;
use crate::deck::actions::{self, Action, Situation};
use crate::deck::answer_dialog;
use crate::deck::entries::Sieve;
use crate::deck::footer;
use crate::deck::model::{Danger, Overlay, Tab, UiState, ViewMode};
use crate::deck::rows;
use crate::run::Stream;
use crate::run::replay::Step;

/// Draws the hints; `alone` says that there is no other line for a notice.
pub(in crate::deck::view) fn footer(buf: &mut Buffer, area: Rect, alone: bool, scene: &Scene<'_>, ui: &UiState) {
    if alone
        && (ui.armed.is_some()
            || ui.notice.is_some()
            || matches!(ui.overlays.last(), Some(Overlay::Search { .. } | Overlay::Filter)))
        && let Some(pieces) = message(scene, ui)
    {
        row(buf, inset(area), 0, pieces, Vec::new());
        return;
    }
    let pieces = above(scene, ui).unwrap_or_else(|| hints(scene, ui));
    row(buf, inset(area), 0, pieces, Vec::new());
}

/// The keys of what lies above the picture, if anything does. The first named are the last to go.
fn above(scene: &Scene<'_>, ui: &UiState) -> Option<Vec<Piece>> {
    let named = |hints: &[(&str, &str)]| -> Vec<Piece> {
        let ranked = hints.iter().zip((0..=20).rev());
        let pieces = |((key, word), rank): (&(&str, &str), u8)| {
            hint(&ui.keymap.spelt(key), word, rank, scene).map(|p| p.presses(key_of(key)))
        };
        ranked.flat_map(pieces).collect()
    };
    Some(match ui.overlays.last() {
        Some(Overlay::Composer(composer)) => {
            let refused = composer.refused.is_some();
            let mut out = vec![("ctrl-s", "send"), ("esc", "keep draft")];
            if refused {
                out.remove(0);
            }
            if !composer.goes_on {
                out.push(("tab", "target"));
            }
            if !composer.goes_on && !refused {
                out.push(("ctrl-t", "mode"));
            }
            out.extend([("ctrl-c", "discard"), ("F1", "help")]);
            named(&out)
        }
        Some(Overlay::Palette { .. }) => named(&[("enter", "do it"), ("↑↓", "choose"), ("esc", "back")]),
        Some(Overlay::Filter) => named(&[("enter", "keep it"), ("esc", "all steps")]),
        Some(Overlay::Search { .. }) => {
            let mut out = vec![("enter", "look"), ("esc", "back"), ("tab", "this step or all"), ("↑", "last search")];
            let one = matches!(ui.searched_tab(), Tab::Budget | Tab::Changes)
                || ui.overlays.iter().any(|over| matches!(over, Overlay::Reading(_)));
            if one {
                out.remove(2);
            }
            named(&out)
        }
        // What is on the screen as a whole is not scrolled.
        Some(Overlay::Help { query: Some(_), .. }) => {
            let mut out = vec![("esc", "all keys")];
            out.extend(overlay::scrolls(scene, ui).then_some(("↑↓", "scroll")));
            named(&out)
        }
        Some(Overlay::Help { .. }) => {
            let mut out = vec![("esc", "back"), ("/", "find")];
            if overlay::scrolls(scene, ui) {
                out.insert(0, ("jk", "scroll"));
            }
            named(&out)
        }
        Some(Overlay::Reading(_)) => {
            let mut out = vec![("esc", "back")];
            out.extend(overlay::scrolls(scene, ui).then_some(("jk", "scroll")));
            out.extend(ui.needle().map(|_| ("n N", "next match")));
            out.extend([("/", "find"), ("y", "copy")]);
            named(&out)
        }
        Some(Overlay::Why { step, .. }) => {
            let at = Situation { state: scene.state, read_only: scene.read_only };
            let keys: Vec<(String, &str)> = actions::FROM_WHY
                .into_iter()
                .filter(|action| actions::possible_of(*step, *action, ui, at).is_ok())
                .filter_map(|action| Some((ui.keymap.hint(action), actions::row(action)?.short)))
                .collect();
            let mut out: Vec<(&str, &str)> = vec![("esc", "back")];
            out.extend(overlay::scrolls(scene, ui).then_some(("jk", "scroll")));
            out.extend(keys.iter().map(|(key, word)| (key.as_str(), *word)));
            named(&out)
        }
        Some(Overlay::Budget(_)) => {
            named(&[("enter", "ask for it"), ("esc", "back"), ("↑↓", "limit"), ("tab", "scope")])
        }
        Some(Overlay::Answer(dialog)) => {
            let question = answer_dialog::question(scene.state, dialog);
            // The words of the dialog.
            let does = question.map(|question| answer_dialog::does(question, dialog)).unwrap_or_default();
            let mut out: Vec<(&str, &str)> = does.iter().map(|(key, word)| (key.as_str(), word.as_str())).collect();
            out.push(("esc", if question.is_some() { "later" } else { "back" }));
            // What is only typed has nothing to choose from.
            let choices = question.map(answer_dialog::lines);
            // Where none is meant yet, they go to one.
            let word = if dialog.index.is_none() { "choose" } else { "move" };
            out.extend(choices.filter(|lines| !lines.is_empty()).map(|_| ("↑↓", word)));
            if question.is_some_and(|question| question.asking.many) {
                out.insert(1, ("space", "tick"));
            }
            named(&out)
        }
        Some(Overlay::Confirm { what: Danger::Retry, .. }) => named(&[("esc", "no"), ("y", "do it again")]),
        Some(Overlay::Confirm { what: Danger::Left(_), .. }) => named(&[("esc", "no"), ("y", "end them")]),
        Some(Overlay::Confirm { .. }) => named(&[("esc", "no"), ("y", "stop it")]),
        Some(Overlay::Quit { .. }) => {
            let stop = ui.keymap.hint(Action::StopRun);
            named(&[("esc", "stay"), ("l", "leave it running"), (stop.as_str(), "stop everything")])
        }
        None => return None,
    })
}

/// Which key of what lies above the picture a click on the hints is. What ends or costs something is never one click away:
/// of a dialog that asks about that only the way back is.
pub(in crate::deck::view) fn pressed(width: u16, dx: u16, scene: &Scene<'_>, ui: &UiState) -> Option<KeyCode> {
    let key = paint::pressed(width.saturating_sub(2), above(scene, ui)?, dx.checked_sub(1)?)?;
    let allowed = match ui.overlays.last()? {
        Overlay::Confirm { .. } => key == KeyCode::Esc,
        Overlay::Quit { .. } => matches!(key, KeyCode::Esc | KeyCode::Char('l')),
        _ => true,
    };
    allowed.then_some(key)
}

/// The key that a hint names, where it names one that is pressed by itself.
fn key_of(label: &str) -> Option<KeyCode> {
    let mut chars = label.chars();
    match (label, chars.next(), chars.next()) {
        ("enter", ..) => Some(KeyCode::Enter),
        ("esc", ..) => Some(KeyCode::Esc),
        ("tab", ..) => Some(KeyCode::Tab),
        ("space", ..) => Some(KeyCode::Char(' ')),
        ("F1", ..) => Some(KeyCode::F(1)),
        ("↑", ..) => Some(KeyCode::Up),
        ("n N", ..) => Some(KeyCode::Char('n')),
        (_, Some(only), None) => Some(KeyCode::Char(only)),
        _ => None,
    }
}

/// A key and what it does.
fn hint(key: &str, word: &str, rank: u8, scene: &Scene<'_>) -> [Piece; 2] {
    [piece(key, scene.theme.key()).rank(rank).gap(2), piece(word, scene.theme.dim()).rank(rank).gap(1)]
}

/// The keys of the picture. The lower a rank is, the sooner a hint goes.
fn hints(scene: &Scene<'_>, ui: &UiState) -> Vec<Piece> {
    let at = Situation { state: scene.state, read_only: scene.read_only };
    let step = scene.state.step(ui.selected);
    let over = step.is_some_and(|step| step.phase.is_terminal());
    // The row is a group, and the key reaches one of it.
    let in_group = step.filter(|step| !ui.zoom && rows::folded(ui, scene.state, step).is_some());
    let whom = in_group.map(|step| format!(" {}", step.id)).unwrap_or_default();
    let mut out = Vec::new();
    let mut wanted = footer::named(ui, at);
    let more = if ui.size.0 >= ROOMY { footer::more(ui, at) } else { Vec::new() };
    let more: Vec<Action> = more.into_iter().filter(|action| !wanted.contains(action)).collect();
    let end = wanted.iter().position(|action| matches!(action, Action::Palette | Action::Help | Action::Quit));
    wanted.splice(end.unwrap_or(wanted.len())..end.unwrap_or(wanted.len()), more.iter().copied());
    for action in wanted {
        let Some(info) = actions::row(action) else { continue };
        let key = match action {
            Action::Down => format!("{}{}", ui.keymap.hint(Action::Down), ui.keymap.hint(Action::Up)),
            Action::NextStep => {
                format!("{} {}", ui.keymap.hint(Action::PreviousStep), ui.keymap.hint(Action::NextStep))
            }
            Action::Seek(Step::Event) => {
                let back = ui.keymap.hint(Action::Seek(Step::EventBack));
                format!("{back} {}", ui.keymap.hint(action))
            }
            Action::Seek(Step::Mark) => {
                let back = ui.keymap.hint(Action::Seek(Step::MarkBack));
                format!("{back} {}", ui.keymap.hint(action))
            }
            Action::Faster => format!("{} {}", ui.keymap.hint(Action::Slower), ui.keymap.hint(action)),
            Action::SearchNext => {
                format!("{} {}", ui.keymap.hint(action), ui.keymap.hint(Action::SearchPrevious))
            }
            Action::Interrupt => [(); 2].map(|()| ui.keymap.hint(action)).join(" "),
            _ => ui.keymap.hint(action),
        };
        if key.trim().is_empty() {
            continue;
        }
        // What there is only room for on a large screen goes first, the last of it before the first.
        let spare = more.iter().rev().position(|other| *other == action);
        let spare = spare.map(|place| u8::try_from(place).unwrap_or(SPARE).min(SPARE));
        let rank = match action {
            // How to leave a state is seen in it.
            Action::Filter if leaves_out(ui).is_some() => 9,
            Action::View => 0,
            // Where one step has the screen, others have a tab each.
            Action::Down if ui.mode == ViewMode::Tabs && !ui.zoom => 1,
            Action::NextStep if ui.mode == ViewMode::Tabs && !ui.zoom => 8,
            Action::NextPane => 1,
            // What ends the run, beside a step that is over.
            Action::Interrupt if ui.zoom && over => 1,
            Action::Palette | Action::Search => 2,
            Action::Follow | Action::Filter | Action::Replay => 3,
            Action::Down | Action::NextStep => 4,
            Action::Interrupt | Action::Faster => 5,
            Action::StopStep | Action::TakeBack | Action::Retry => 6,
            // Nobody is to be kept where he cannot see the way back.
            Action::Back | Action::Raise => 9,
            // Whoever has just searched goes from one match to the next.
            Action::SearchNext => 10,
            Action::Steer => 8,
            Action::Zoom | Action::Open | Action::Right | Action::Seek(Step::Mark) => 7,
            Action::Seek(_) => 8,
            Action::NextAttention | Action::Acknowledge => 10,
            Action::Help => 11,
            _ => 12,
        };
        let rank = spare.unwrap_or(SPARE + 1 + rank);
        let word = match (action, &ui.replay) {
            (Action::Freeze, Some(replay)) if replay.cursor.plays() => "pause",
            (Action::Freeze, Some(_)) => "play",
            (Action::Freeze, None) if ui.frozen.is_some() => "go on",
            // In the picture of one step a key that is about all of them says so.
            (Action::Interrupt, _) if ui.zoom => "interrupt run",
            (Action::Faster, Some(_)) => "speed",
            (Action::Back, _) if ui.lists_some() => "all steps",
            (Action::Back, Some(_)) if !ui.zoom => "leave",
            (Action::Filter, _) => leaves_out(ui).unwrap_or(info.short),
            (Action::SearchNext, _) => "next match",
            (Action::Down, _) if ui.mode == ViewMode::Tabs && !ui.zoom => "scroll",
            // To what is over nobody writes: it is gone on with.
            (Action::Steer, None) if scene.state.is_over() => "go on",
            (Action::StopRun, _) if !ui.left.is_empty() => "end what lives on",
            (Action::StopStep, _) if !ui.left.is_empty() => "end what it left",
            _ => info.short,
        };
        let word = match action {
            Action::Steer | Action::StopStep => format!("{word}{whom}"),
            _ => word.to_owned(),
        };
        out.extend(hint(&key, &word, rank, scene).map(|p| p.does(action)));
    }
    out
}

/// From here on the hints name more than what one needs first, in cells.
const ROOMY: u16 = 100;
/// The highest rank of what they name then.
const SPARE: u8 = 9;

/// What the key that leaves something out of a tab shows next, where something is left out.
fn leaves_out(ui: &UiState) -> Option<&'static str> {
    let tab = ui.tab(ui.selected);
    let pane = ui.panes.get(&ui.selected).filter(|_| ui.zoom)?;
    if tab == Tab::Output {
        return pane.only.map(|only| if only == Stream::Err { "stdout" } else { "all" });
    }
    let sieve = pane.sieve.get(&tab).copied().filter(|sieve| *sieve != Sieve::All)?;
    Some(match sieve.next(tab) {
        Sieve::All => "all",
        Sieve::Errors => "errors",
        Sieve::Text => "text",
    })
}

/// What a click on the hints does.
pub(in crate::deck::view) fn hit_footer(width: u16, dx: u16, scene: &Scene<'_>, ui: &UiState) -> Option<Action> {
    hit(width.saturating_sub(2), hints(scene, ui), Vec::new(), dx.checked_sub(1)?)
}
