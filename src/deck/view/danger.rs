//! What is asked before something ends or costs, and before the deck is left.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::Scene;
use super::detail::many;
use super::overlay::dialog_box;
use super::paint::{piece, put, put_cut, put_right, row};
use crate::deck::left::processes;
use crate::deck::model::{Danger, UiState, living};
use crate::run::{StepId, StepPhase, StepState, cost_of};
use crate::text::SafeText;

/// So many steps are named in a question about several.
const NAMED: usize = 6;

/// Sentences that are wrapped into a dialog, from a row on. Returns the row after them.
fn sentences(buf: &mut Buffer, inner: Rect, dy: u16, text: &str, style: Style) -> u16 {
    let lines = SafeText::line(text).wrap(usize::from(inner.width));
    for (line, at) in lines.iter().zip(dy..) {
        put(buf, inner, 0, at, line.as_str(), style);
    }
    dy.saturating_add(u16::try_from(lines.len()).unwrap_or(1))
}

/// Draws the question about what ends or costs something.
pub(super) fn confirm(buf: &mut Buffer, area: Rect, what: Danger, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let (title, question, consequence) = match what {
        Danger::Step(id) => {
            let name = scene.state.step(id).map(|s| SafeText::line(s.title()).truncate(30)).unwrap_or_default();
            let question = format!("End step {id} {name} and every process below it?");
            ("stop step", question, stopped_alone(scene, id))
        }
        Danger::Run | Danger::Everything => {
            let many = living(scene.state);
            let children = if many == 1 { "1 child ends".to_owned() } else { format!("{many} children end") };
            let waiting = scene.state.steps.iter().filter(|s| s.phase == StepPhase::Pending).count();
            let never = match waiting {
                0 => String::new(),
                1 => ", 1 never starts".to_owned(),
                n => format!(", {n} never start"),
            };
            let leaves = if what == Danger::Everything { " The deck leaves when all have ended." } else { "" };
            ("stop run", "End the whole run?".to_owned(), format!("{children}{never}.{leaves}"))
        }
        Danger::Left(step) => {
            let of: Vec<_> = ui.left.iter().filter(|left| step.is_none_or(|step| step == left.step)).collect();
            let mut named: Vec<String> = of
                .iter()
                .take(NAMED)
                .map(|left| format!("pid {} of step {} ({})", left.pid, left.step, left.command.truncate(24)))
                .collect();
            if of.len() > NAMED {
                named.push(format!("and {} more", of.len() - NAMED));
            }
            let whose = step.map(|step| format!(" of step {step}")).unwrap_or_default();
            let question = format!("End {}{whose} that nobody supervises any more?", processes(of.len()));
            ("end what lives on", question, format!("{}. Asked to end first, killed after 3 s.", named.join(", ")))
        }
        Danger::Retry => {
            let left: Vec<&StepState> = scene.state.steps.iter().filter(|s| s.phase != StepPhase::Complete).collect();
            let mut names: Vec<String> = left
                .iter()
                .take(NAMED)
                .map(|step| {
                    let name = SafeText::line(step.title()).truncate(24);
                    format!("{} {name} {}", step.id, scene.theme.face(scene.state.face(step)).word)
                })
                .collect();
            if left.len() > NAMED {
                names.push(format!("and {} more", left.len() - NAMED));
            }
            let cost = cost_of(left.iter().copied()).map_or_else(
                || "It may cost as much again.".to_owned(),
                |(usd, partial)| {
                    let least = if partial { "at least " } else { "" };
                    format!("Before, they cost {least}{}.", crate::text::cost(usd))
                },
            );
            let question = format!("Do {} again? {}.", many(left.len() as u64, "step"), names.join(", "));
            ("retry", question, format!("In a new run, which takes over what is done. {cost}"))
        }
    };
    let (yes, no) = match what {
        Danger::Retry => ("do it again", "no (default)"),
        Danger::Left(_) => ("end them", "no, leave them (default)"),
        Danger::Step(_) | Danger::Run | Danger::Everything => ("stop it", "no, let it run (default)"),
    };
    // As high as its sentences need.
    let wide = usize::from(area.width.min(66)).saturating_sub(4).max(1);
    let rows = [&question, &consequence].map(|text| SafeText::line(text).wrap(wide).len()).iter().sum::<usize>();
    let high = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(5).max(9);
    let inner = dialog_box(buf, area, (66, high), title, scene);
    let dy = sentences(buf, inner, 1, &question, theme.bold());
    let dy = sentences(buf, inner, dy, &consequence, theme.plain());
    let left = vec![
        piece("y", theme.key()),
        piece(yes, theme.bad()).gap(1),
        piece("esc", theme.key()).gap(6),
        piece(no, theme.plain()).gap(1),
    ];
    row(buf, inner, dy + 1, left, Vec::new());
}

/// What comes of ending one step: those beside it go on, those behind it start only where it ends well.
fn stopped_alone(scene: &Scene<'_>, id: StepId) -> String {
    let Some(step) = scene.state.step(id) else { return String::new() };
    let others = scene.state.steps.iter().filter(|other| other.id != id && !other.phase.is_terminal());
    let mut behind = others.clone().filter(|other| other.logical > step.logical);
    let mut names: Vec<String> = behind
        .by_ref()
        .take(NAMED)
        .map(|step| format!("{} {}", step.id, SafeText::line(step.title()).truncate(24)))
        .collect();
    let more = behind.count();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    let beside = if others.clone().any(|other| other.logical == step.logical) { "Its siblings go on. " } else { "" };
    match names.as_slice() {
        [] => format!("{beside}No step waits for it."),
        [only] => format!("{beside}{only} waits for it and will never start."),
        all => format!("{beside}{} wait for it and will never start.", all.join(", ")),
    }
}

/// Draws the question before the deck is left while the run goes on.
pub(super) fn quit(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, stop: &str) {
    let theme = scene.theme;
    let many = living(scene.state);
    let inner = dialog_box(buf, area, (66, 9), "leave the deck", scene);
    let text = match many {
        0 => "The run is not over yet.".to_owned(),
        1 => "1 child is alive.".to_owned(),
        n => format!("{n} children are alive."),
    };
    put(buf, inner, 0, 1, &text, theme.bold());
    let room = inner.width >= 60;
    let choices = [
        (
            "l",
            if room { "leave it running (default); subdeck attach comes back" } else { "leave it running (default)" },
        ),
        (stop, "stop everything, then leave"),
        ("esc", "stay here"),
    ];
    for ((key, text), dy) in choices.into_iter().zip(3_u16..) {
        put_right(buf, inner, 3, dy, key, theme.key());
        let style = if key == stop { theme.bad() } else { theme.plain() };
        put_cut(buf, inner, 5, dy, &SafeText::line(text), inner.width, style);
    }
}
