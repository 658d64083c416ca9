//! The picture. Draw functions take the run, the picture's state and the windows that were fetched before; they read
//! no file and no clock.

pub(super) mod answer;
mod attempts;
mod brief;
mod calls;
mod composer;
mod danger;
pub mod detail;
mod entries;
mod entry;
mod flow;
mod group;
pub mod layout;
mod list;
mod marks;
mod meters;
mod output;
pub mod overlay;
pub(super) mod paint;
mod queued;
mod rail;
mod raise;
mod scrubber;
pub(super) mod secrets;
mod sections;
mod sub_row;
pub mod tabs;
mod ticker;

#[cfg(test)]
pub(crate) mod tests;

use std::borrow::Cow;
use std::time::Duration;

use crossterm::event::KeyCode;
use jiff::tz::TimeZone;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::actions::Action;
use super::attention;
use super::changes::Opens;
use super::entries::Entries;
use super::feed::{Hands, StepFacts};
use super::history::History;
use super::model::{Overlay, Scroll, Tab, UiState};
use super::older::Older;
use super::sums::Sums;
use super::theme::{Face, Theme, asciify};
use super::window::Windows;
use crate::run::{RunState, RunnerKind, StepFace, StepId, StepPhase, StepState, Timestamp, cause};
use crate::text::SafeText;
use layout::Shape;

/// Everything that a frame shows beside the picture's own state.
#[derive(Clone, Debug)]
pub struct Scene<'a> {
    /// The run.
    pub state: &'a RunState,
    /// Who has it.
    pub hands: &'a Hands,
    /// Why nothing may be written, if so.
    pub read_only: Option<&'a SafeText>,
    /// What stands between the files and the picture, if anything does.
    pub trouble: Option<&'a SafeText>,
    /// The moment that clocks show.
    pub now: Timestamp,
    /// The moment of the frame, which goes on while the picture is frozen.
    pub wall: Timestamp,
    /// What looks like a key is shown; else there is a mask over it.
    pub reveal: bool,
    /// How things look.
    pub theme: Theme,
    /// What just happened.
    pub history: &'a History,
    /// What happened before that, as far as anybody asked for it.
    pub older: &'a Older,
    /// What the plan says of a step.
    pub facts: &'a StepFacts,
    /// Of which.
    pub facts_of: Option<StepId>,
    /// Where times of day are told.
    pub zone: &'a TimeZone,
}

impl<'a> Scene<'a> {
    /// The entries of all steps.
    const fn entries(&self) -> Entries<'a> {
        Entries { history: self.history, older: self.older }
    }

    /// Whether what is shown is the last picture of a directory that is not there any more.
    const fn is_gone(&self) -> bool {
        matches!(self.hands, Hands::Gone(_))
    }

    /// Whether nothing of a step goes on any more: it is over, or nobody knows what became of it.
    fn rests(&self, step: &StepState) -> bool {
        step.phase.is_terminal() || self.is_gone()
    }

    /// The time of day of a moment, `12:40:51`.
    fn time_of_day(&self, at: Timestamp) -> String {
        time_of_day(at, self.zone)
    }
}

/// The time of day of a moment, `12:40:51`.
pub(super) fn time_of_day(at: Timestamp, zone: &TimeZone) -> String {
    match jiff::Timestamp::from_microsecond(at.micros()) {
        Ok(at) => at.to_zoned_datetime(zone.clone()).strftime("%H:%M:%S").to_string(),
        Err(_) => "--:--:--".to_owned(),
    }
}

/// What a click on a line at the edges does: on what needs a person, on the tabs of a zoomed step, on a hint.
#[must_use]
pub fn hit(scene: &Scene<'_>, ui: &UiState, x: u16, y: u16) -> Option<Action> {
    let parts = layout::layout(ui, scene.state);
    let at = ratatui::layout::Position { x, y };
    if parts.attention.contains(at) {
        return rail::hit_needs(parts.attention.width, x, scene, ui);
    }
    if parts.tabs.contains(at) && parts.shape == Shape::Zoom {
        return tabs::hit_section(parts.tabs.width, x, scene, ui);
    }
    parts.footer.contains(at).then(|| rail::hit_footer(parts.footer.width, x, scene, ui)).flatten()
}

/// What a click means on what lies above the picture: a key that a hint names, or one of the things to choose from.
#[must_use]
pub fn hit_above(scene: &Scene<'_>, ui: &UiState, x: u16, y: u16) -> (Option<KeyCode>, Option<usize>) {
    let parts = layout::layout(ui, scene.state);
    if layout::is_tiny(ui.size) {
        return (None, None);
    }
    if parts.footer.contains(ratatui::layout::Position { x, y }) {
        return (rail::pressed(parts.footer.width, x, scene, ui), None);
    }
    let area = Rect { x: 0, y: 0, width: ui.size.0, height: ui.size.1 };
    (None, overlay::choice_at(area, scene, ui, x, y))
}

/// The entry of a list that is zoomed at a cell.
#[must_use]
pub fn entry_at(scene: &Scene<'_>, ui: &UiState, x: u16, y: u16) -> Option<u64> {
    let (step, area) = section(scene, ui).filter(|(step, _)| crate::deck::entries::lists(ui.tab(step.id)))?;
    area.contains(ratatui::layout::Position { x, y }).then(|| entries::at(area, y, step, scene, ui)).flatten()
}

/// The line at a cell of a tab that is read from its beginning; there may be fewer lines.
#[must_use]
pub fn line_at(scene: &Scene<'_>, ui: &UiState, x: u16, y: u16) -> Option<usize> {
    let (step, area) = section(scene, ui).filter(|(step, _)| reads(ui.tab(step.id)))?;
    let at = area.contains(ratatui::layout::Position { x, y }).then(|| usize::from(y - area.y))?;
    Some(sections::lines_of(step, ui).top + at)
}

/// The zoomed step that shows another tab than its output, and where that is.
fn section<'a>(scene: &Scene<'a>, ui: &UiState) -> Option<(&'a StepState, Rect)> {
    let parts = layout::layout(ui, scene.state);
    let (id, pane) = parts.panes.first().filter(|_| parts.shape == Shape::Zoom)?;
    Some((scene.state.step(*id)?, output::section_area(parts.shape, *pane)))
}

/// Whether a tab is read from its beginning.
const fn reads(tab: Tab) -> bool {
    matches!(tab, Tab::Budget | Tab::Changes)
}

/// What the line of such a tab stands for that the keys are at.
#[must_use]
pub fn opens(scene: &Scene<'_>, ui: &UiState, windows: &Windows) -> Opens {
    let step = scene.state.step(ui.selected);
    let opens = step.map(|step| sections::opens(step, scene, ui, windows, usize::from(ui.size.0)));
    opens.unwrap_or_default()
}

/// How many entries further a page, or half of one, is in the list that the selected step shows.
#[must_use]
pub fn page(scene: &Scene<'_>, ui: &UiState, windows: &Windows, scroll: Scroll) -> i32 {
    section(scene, ui).map_or(0, |(step, area)| entries::page(area, step, scene, ui, windows, scroll))
}

/// What the tab says that the selected step shows, where it is read from its beginning.
#[must_use]
pub fn tab_text(scene: &Scene<'_>, ui: &UiState, windows: &Windows) -> Vec<SafeText> {
    let step = scene.state.step(ui.selected);
    let lines = step.map(|step| sections::text(ui.tab(step.id), step, scene, windows, usize::from(ui.size.0)));
    lines.unwrap_or_default()
}

/// Keeps what was scrolled within what there is, and finds out whether there is anything to open. To be called before
/// [`draw`].
pub fn limit(scene: &Scene<'_>, ui: &mut UiState, windows: &Windows) {
    if let Some((step, area)) = section(scene, ui).filter(|(step, _)| reads(ui.tab(step.id))) {
        ui.opens_nothing = sections::limit(ui, area, step, scene, windows) == Opens::Nothing;
    }
}

/// Draws one frame.
pub fn draw(buf: &mut Buffer, scene: &Scene<'_>, ui: &UiState, windows: &Windows) {
    let area = Rect { x: 0, y: 0, width: ui.size.0, height: ui.size.1 }.intersection(buf.area);
    if area.is_empty() {
        return;
    }
    let parts = layout::layout(ui, scene.state);
    match parts.shape {
        Shape::Tiny => rail::tiny(buf, area, scene, ui),
        shape => {
            if shape == Shape::Zoom {
                rail::step_header(buf, parts.header, scene, ui);
            } else {
                rail::header(buf, parts.header, scene, ui);
            }
            rail::needs_you(buf, parts.attention, scene, ui);
            if shape == Shape::Flow {
                flow::draw(buf, parts.list, scene, ui);
            } else {
                list::draw(buf, parts.list, shape, scene, ui);
            }
            match shape {
                Shape::Tabs => tabs::steps(buf, parts.tabs, scene, ui),
                Shape::Zoom => tabs::sections(buf, parts.tabs, scene, ui, windows),
                _ => {}
            }
            for (id, pane) in &parts.panes {
                match scene.state.step(*id) {
                    Some(step) => output::pane(buf, *pane, shape, step, scene, ui, windows),
                    // Nothing is there yet; the place is kept.
                    None => {
                        let (inner, dx) = match shape {
                            Shape::Narrow => (*pane, 2),
                            _ => {
                                let title = vec![paint::piece("no step", scene.theme.bold())];
                                (paint::frame(buf, *pane, scene.theme, paint::Edge::Plain, title, Vec::new()), 1)
                            }
                        };
                        paint::put(buf, inner, dx, 0, "the steps come with the plan of the run", scene.theme.dim());
                    }
                }
            }
            ticker::draw(buf, parts.ticker, shape, scene, ui);
            scrubber::draw(buf, parts.scrubber, scene, ui);
            rail::control(buf, parts.control, scene, ui);
            rail::footer(buf, parts.footer, parts.control.is_empty(), scene, ui);
        }
    }
    if !ui.reveal {
        secrets::mask(buf, area);
    }
    overlay::draw(buf, area, scene, ui);
    // Of what a person is writing to an agent every letter is seen.
    if !ui.reveal && !matches!(ui.overlays.last(), None | Some(Overlay::Composer(_))) {
        secrets::mask(buf, area);
    }
    if scene.theme.ascii {
        asciify(buf, area);
    }
}

/// How long a step took or has taken. A foreign step may be over without an end: then nobody knows.
fn took(step: &StepState, now: Timestamp) -> Option<Duration> {
    if step.phase.is_terminal() && step.ended_at.is_none() { None } else { step.took(now) }
}

/// A step's time on its clock, or unknown. Of one that was lost it is at least the time up to the last sign.
fn elapsed(step: &StepState, scene: &Scene<'_>) -> String {
    let last = scene.state.last_update.filter(|_| step.phase == StepPhase::Lost && step.ended_at.is_none());
    if let (Some(started), Some(last)) = (step.started_at, last) {
        return format!("{}+", crate::text::clock(last.since(started)));
    }
    crate::text::or_unknown(took(step, scene.now).map(crate::text::clock))
}

/// How a step looks: what somebody took note of calls nobody any more.
fn face(step: &StepState, scene: &Scene<'_>, ui: &UiState) -> Face {
    let face = scene.state.face(step);
    if face == StepFace::Attention && attention::is_seen(step, ui) && !scene.is_gone() {
        return Face { word: "seen", ..scene.theme.face(StepFace::Running) };
    }
    last_seen(face, scene)
}

/// How a state looks: of a directory that is gone nobody knows what became of who worked there, only how it was.
fn last_seen(face: StepFace, scene: &Scene<'_>) -> Face {
    let glyph = scene.theme.face(face).glyph;
    let word = match face {
        _ if !scene.is_gone() => return scene.theme.face(face),
        StepFace::Starting => "was starting",
        StepFace::Running => "was running",
        StepFace::Stopping => "was stopping",
        StepFace::Queued => "was queued",
        StepFace::Attention => "needed you",
        _ => return scene.theme.face(face),
    };
    Face { glyph, word, ..scene.theme.face(StepFace::Unknown) }
}

/// What the frame of something that shows its end says: that it follows, where anything is still to come.
fn at_end(scene: &Scene<'_>, ui: &UiState) -> &'static str {
    let plays = ui.replay.as_ref().map(|replay| !replay.cursor.is_at_end(&replay.line));
    let comes = !scene.is_gone() && plays.unwrap_or(!scene.state.is_over());
    match ui.frozen {
        Some(_) => "frozen",
        None if comes => "▼ following",
        None => "end",
    }
}

/// Why something is lost, in a row of many: which runner it was that is gone is told of the run that is looked at.
pub(super) fn lost_because(evidence: &str) -> &str {
    if evidence.starts_with("the runner (pid") && evidence.ends_with("is gone") { "runner is gone" } else { evidence }
}

/// What the text about a paused step begins with that is not over.
const INTERRUPTED: &str = "interrupted; ";

/// What a step does just now, in a few words.
fn now_text<'s>(state: &'s RunState, sums: &Sums, step: &'s StepState, now: Timestamp) -> Cow<'s, str> {
    use StepFace as F;
    let last_line = || step.recent_output.iter().rev().find(|l| !l.trim().is_empty()).map(|l| Cow::from(l.as_str()));
    let error = || step.error.as_deref().map(cause);
    match state.face(step) {
        F::Queued => queued::in_short(state, sums, step).into(),
        F::Starting => "starting".into(),
        F::Stopping => step.ending.as_ref().map_or(Cow::Borrowed(""), |e| {
            let what = match (e.kill_at, e.term_at, e.abort_at) {
                (Some(_), ..) => "killed",
                (_, Some(_), _) => "asked to end",
                (.., Some(_)) => "asked to break off",
                _ => "ending",
            };
            format!("{what}, {} ago", crate::text::clock(now.since(e.since))).into()
        }),
        F::Running | F::Attention => {
            if let Some(retry) = &step.retrying {
                let left = retry.until.map(|u| format!(" in {}", crate::text::clock(u.since(now)))).unwrap_or_default();
                let attempt = crate::text::or_unknown(retry.attempt.map(|a| a.to_string()));
                return format!("retry {attempt}{left}").into();
            }
            // Whoever asks does nothing else, whatever of his is open.
            if let Some(question) = step.questions.first() {
                return format!("asks: {}", question.asking.text).into();
            }
            if let Some(run) = step.waits_for() {
                let asks = if run.needs.is_some() { ", which needs you" } else { "" };
                return format!("waits for run {}{asks}", run.title).into();
            }
            let silent = attention::silent(step).filter(|_| step.open.is_empty());
            if let Some(since) = silent {
                return format!("{} {}", attention::SILENT, crate::text::clock(now.since(since))).into();
            }
            match step.current_call() {
                Some(call) => {
                    let what = call.path.as_deref().unwrap_or(&call.args);
                    let more = if step.open.len() > 1 { format!(" +{}", step.open.len() - 1) } else { String::new() };
                    format!("{} {what}{more}", call.tool).into()
                }
                None if step.turn_count > 0 || step.tool_count > 0 => "thinking…".into(),
                None => last_line().unwrap_or_else(|| match &step.runner {
                    RunnerKind::ExternalCli { .. } => "no output yet".into(),
                    _ => "waiting for the first event".into(),
                }),
            }
        }
        F::Succeeded => step
            .last_message
            .as_deref()
            .and_then(|m| m.lines().find(|l| !l.trim().is_empty()).map(Cow::from))
            .or_else(last_line)
            .unwrap_or_default(),
        F::Skipped => "not run".into(),
        // What an agent says of being interrupted is no news.
        F::Paused => match (&step.unanswered, &step.error) {
            (Some(asked), _) => asked.as_str().into(),
            (None, Some(error)) if !state.interrupted => cause(error),
            _ if step.session_id.is_some() || step.session_file.is_some() => {
                format!("{INTERRUPTED}its session lives on").into()
            }
            _ if crate::deck::allowed::is_foreign(state) => "interrupted".into(),
            _ => format!("{INTERRUPTED}a retry runs it again").into(),
        },
        F::Stopped => error().or_else(last_line).unwrap_or_else(|| match step.exit {
            Some(crate::run::ExitInfo { signal: Some(n), .. }) => format!("ended by signal {n}").into(),
            _ => "ended before it was done".into(),
        }),
        F::Unknown => match &step.phase {
            StepPhase::Unknown(word) => format!("its status says {word}").into(),
            _ => Cow::Borrowed(""),
        },
        F::Lost => match &state.lost {
            Some(evidence) => lost_because(evidence).into(),
            None if state.is_over() => "the run ended and nothing tells how this step did".into(),
            None => "what became of it is not known".into(),
        },
        _ => error().or_else(last_line).unwrap_or_default(),
    }
}
