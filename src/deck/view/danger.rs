//! What is asked before something ends or costs, and before the deck is left.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::Scene;
use super::detail::many;
use super::overlay::dialog_box;
use super::paint::{piece, put, put_cut, put_right, row};
use crate::deck::allowed::living;
use crate::deck::left::{Left, processes};
use crate::deck::model::{Danger, UiState};
use crate::run::{StepId, StepPhase, StepState, cost_of};
use crate::text::{SafeText, width};

/// At most so many things are named in a question about several.
const NAMED: usize = 6;

/// Sentences that are wrapped into a dialog, from a row on. Returns the row after them.
fn sentences(buf: &mut Buffer, inner: Rect, dy: u16, text: &str, style: Style) -> u16 {
    let lines = SafeText::line(text).wrap(usize::from(inner.width));
    for (line, at) in lines.iter().zip(dy..) {
        put(buf, inner, 0, at, line.as_str(), style);
    }
    dy.saturating_add(u16::try_from(lines.len()).unwrap_or(1))
}

/// A question about what ends or costs something.
struct Asked {
    title: &'static str,
    question: String,
    /// What it is about, one thing a row.
    about: Vec<String>,
    consequence: String,
    yes: &'static str,
    no: &'static str,
}

/// Names things, so many that they fit into a dialog of this height.
fn named<T>(things: &[T], height: u16, name: impl Fn(&T) -> String) -> Vec<String> {
    // The frame, the question, what comes of it, the answers, and blank rows.
    let most = usize::from(height.saturating_sub(9)).clamp(2, NAMED + 1);
    let kept = if things.len() > most { most - 1 } else { things.len() };
    let mut names: Vec<String> = things.iter().take(kept).map(name).collect();
    if things.len() > kept {
        names.push(format!("and {} more", things.len() - kept));
    }
    names
}

/// Draws the question about what ends or costs something.
pub(super) fn confirm(buf: &mut Buffer, area: Rect, what: Danger, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let Asked { title, question, about, consequence, yes, no } = asked(what, area.height, scene, ui);
    // As high as its sentences need, and as wide as what it is about.
    let longest = about.iter().map(|name| width(name)).max().unwrap_or(0);
    let wide = u16::try_from(longest + 6).unwrap_or(u16::MAX).clamp(66, 120);
    let cells = usize::from(area.width.min(wide)).saturating_sub(4).max(1);
    let rows = [&question, &consequence].map(|text| SafeText::line(text).wrap(cells).len()).iter().sum::<usize>();
    let blank = if about.is_empty() { 5 } else { 6 };
    let high = u16::try_from(rows + about.len()).unwrap_or(u16::MAX).saturating_add(blank).max(9);
    let inner = dialog_box(buf, area, (wide, high), title, scene);
    let tight = u16::from(high <= area.height);
    let mut dy = sentences(buf, inner, tight, &question, theme.bold());
    for name in &about {
        put_cut(buf, inner, 2, dy, &SafeText::line(name), inner.width.saturating_sub(2), theme.plain());
        dy += 1;
    }
    let dy = sentences(buf, inner, dy + if about.is_empty() { 0 } else { tight }, &consequence, theme.plain());
    let left = vec![
        piece("y", theme.key()),
        piece(yes, theme.bad()).gap(1),
        piece("esc", theme.key()).gap(6),
        piece(no, theme.plain()).gap(1),
    ];
    row(buf, inner, (dy + 1).min(inner.height.saturating_sub(1)), left, Vec::new());
}

fn asked(what: Danger, height: u16, scene: &Scene<'_>, ui: &UiState) -> Asked {
    let name = |id: StepId| scene.state.step(id).map(|s| SafeText::line(s.title()).truncate(30)).unwrap_or_default();
    match what {
        Danger::Step(id) => Asked {
            title: "stop step",
            question: format!("Stop step {id} {} and every process below it?", name(id)),
            about: Vec::new(),
            consequence: stopped_alone(scene, id),
            yes: "stop it",
            no: "no, let it run (default)",
        },
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
            Asked {
                title: "stop run",
                question: "Stop the whole run?".to_owned(),
                about: Vec::new(),
                consequence: format!("{children}{never}.{leaves}"),
                yes: "stop it",
                no: "no, let it run (default)",
            }
        }
        Danger::Left(step) => {
            let of: Vec<_> = ui.left.iter().filter(|left| step.is_none_or(|step| step == left.step)).collect();
            let whose = step.map(|step| format!(" of step {step}")).unwrap_or_default();
            let pid = of.iter().map(|left| left.pid.to_string().len()).max().unwrap_or(0);
            let told = |left: &&Left| {
                let whose = format!("{} {}", left.step, name(left.step).truncate(12));
                format!("{:>pid$}  {whose:<14}  {}", left.pid, left.command)
            };
            Asked {
                title: "end what lives on",
                question: format!("End {}{whose} that nobody supervises any more?", processes(of.len())),
                about: named(&of, height, told),
                consequence: "Asked to end first, killed after 3 s.".to_owned(),
                yes: "end them",
                no: "no, leave them (default)",
            }
        }
        Danger::Retry => {
            let left: Vec<&StepState> = scene.state.steps.iter().filter(|s| s.phase != StepPhase::Complete).collect();
            let number = left.iter().map(|step| step.id.to_string().len()).max().unwrap_or(0);
            let titles = left.iter().take(NAMED).map(|step| SafeText::line(step.title()).truncate(24).width());
            let longest = titles.max().unwrap_or(0);
            let told = |step: &&StepState| {
                let title = SafeText::line(step.title()).truncate(24);
                let blank = " ".repeat(longest.saturating_sub(title.width()));
                let word = scene.theme.face(scene.state.face(step)).word;
                format!("{:>number$} {title}{blank}  {word}", step.id.to_string())
            };
            let cost = cost_of(left.iter().copied()).map_or_else(
                || "It may cost as much again.".to_owned(),
                |(usd, partial)| {
                    let least = if partial { "at least " } else { "" };
                    format!("Before, they cost {least}{}.", crate::text::cost(usd))
                },
            );
            Asked {
                title: "retry",
                question: format!("Do {} again?", many(left.len() as u64, "step")),
                about: named(&left, height, told),
                consequence: format!("In a new run, which takes over what is done. {cost}"),
                yes: "do it again",
                no: "no (default)",
            }
        }
    }
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
