//! The line about requests and notices: what became of the newest key, what stays true, what is typed.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::super::Scene;
use super::super::layout::{self, Shape};
use super::super::paint::{Piece, piece, row};
use super::inset;
use crate::deck::actions::{self, Action, NARROW, Situation};
use crate::deck::allowed::living;
use crate::deck::compose;
use crate::deck::feed::Hands;
use crate::deck::history::short;
use crate::deck::model::{Fate, Overlay, Sent, Tab, UiState};
use crate::deck::replay::Replay;
use crate::run::{Notice, RunPhase, RunState, RunnerKind, StepFace, StepPhase, StepState, TargetState, cause};
use crate::text::{SafeText, clock};

/// For so long a request of this deck is the newest thing to tell.
const FRESH: std::time::Duration = std::time::Duration::from_secs(10);

/// The line about requests and notices. Returns the pieces, so that the footer can take its place where there is no
/// row for it.
pub(super) fn message(scene: &Scene<'_>, ui: &UiState) -> Option<Vec<Piece>> {
    let theme = scene.theme;
    if let Some(Overlay::Search { query, everywhere }) = ui.overlays.last() {
        let typed = SafeText::line(query);
        return Some(vec![
            piece(if *everywhere { "in all steps / " } else { "/ " }, theme.key()),
            piece(typed.to_string(), theme.plain()),
            piece("▏", theme.select()),
        ]);
    }
    if let Some(Overlay::Filter) = ui.overlays.last() {
        let typed = SafeText::line(ui.filter.as_deref().unwrap_or_default());
        return Some(vec![
            piece("& ", theme.key()),
            piece(typed.to_string(), theme.plain()),
            piece("▏", theme.select()),
        ]);
    }
    if ui.armed.is_some() {
        let children = of_an_interrupt(scene.state, ui.size.0 < NARROW);
        if ui.size.0 < NARROW {
            let told = format!(" again {children}");
            return Some(vec![piece(ui.keymap.hint(Action::Interrupt), theme.key()), piece(told, theme.bold())]);
        }
        return Some(vec![
            piece("press ", theme.bold()),
            piece(ui.keymap.hint(Action::Interrupt), theme.key()),
            piece(format!(" again to interrupt: {children}"), theme.bold()),
        ]);
    }
    if let (Some(percent), Some(search)) = (ui.searching, &ui.search) {
        let needle = SafeText::line(&search.needle).truncate(30);
        let found = search.count.filter(|count| count.step == ui.selected && count.total > 0);
        let so_far = found.map(|count| format!(", {} so far", crate::text::grouped(count.total))).unwrap_or_default();
        let what = if search.tab == Tab::Output { "log" } else { search.tab.name() };
        return Some(vec![
            piece(format!("looking for {needle}, {percent}%"), theme.plain()),
            piece(format!(" of the {what}"), theme.plain()).rank(1),
            piece(so_far, theme.plain()).rank(2),
            piece("esc", theme.key()).gap(3),
            piece(" ends it", theme.dim()),
        ]);
    }
    if let Some(notice) = &ui.notice {
        let style = if notice.bad { theme.bad() } else { theme.plain() };
        return Some(vec![piece(notice.text.to_string(), style)]);
    }
    if let Some(replay) = &ui.replay {
        return Some(replayed(replay, scene, ui));
    }
    if let Some(text) = standing(scene, ui.size.0 < NARROW) {
        // What became of a request is told for a while also where something stays true beside it; where nobody is left to
        // take one there is nothing to tell.
        let fresh = ui.sent.last().is_some_and(|sent| scene.wall.since(sent.at) < FRESH);
        if !fresh || matches!(scene.hands, Hands::Lost(_) | Hands::Gone(_)) {
            return Some(vec![piece(text.to_string(), theme.halted())]);
        }
    }
    if scene.state.is_over() {
        let failed = ui.sums(scene.state).first_failed.and_then(|place| scene.state.steps.get(place));
        // What is paused can be gone on with, and is not called over too.
        let paused = scene.state.lost.is_none() && scene.state.phase == RunPhase::Paused;
        // A narrow line says it with the end of the step; the line about the run says it at every size.
        let lead = match paused {
            true => "the run is paused; ",
            false if ui.size.0 < NARROW && failed.is_some() => "",
            false => "the run is over; ",
        };
        let mut over = vec![piece(lead, theme.plain())];
        let at = Situation { state: scene.state, read_only: scene.read_only };
        let retries = actions::possible(Action::Retry, ui, at).is_ok();
        let again = match (ui.size.0 < 100, paused) {
            (true, _) => " retries",
            (false, true) => " runs again what is not done",
            (false, false) => " does again what failed",
        };
        // Where there is little room for the reason, the footer alone names the ways out.
        let wide = ui.size.0 >= 100;
        let ways = "; q leaves".len() + if retries { "; R".len() + again.len() } else { 0 };
        over.extend(failed.map(|step| {
            let name = SafeText::line(step.title()).truncate(24);
            let error = step.error.as_deref().map(|why| format!(": {}", SafeText::line(&cause(why))));
            let text = SafeText::line(&format!("step {} {name} failed{}", step.id, error.unwrap_or_default()));
            let room = usize::from(ui.size.0).saturating_sub(2 + lead.len() + if wide { ways } else { 0 });
            piece(format!("{}{}", text.truncate(room.min(ENDED)), if wide { "; " } else { "" }), theme.bad())
        }));
        if failed.is_some() && !wide {
            return Some(over);
        }
        over.extend([
            piece(ui.keymap.hint(Action::Quit), theme.key()),
            piece(" leaves", theme.plain()),
            piece(" and prints the summary", theme.plain()).rank(1),
        ]);
        if actions::possible(Action::Steer, ui, at).is_ok() {
            over.push(piece("; ", theme.plain()).rank(3));
            over.push(piece(ui.keymap.hint(Action::Steer), theme.key()).rank(3));
            over.push(piece(format!(" goes on with step {}", ui.selected), theme.plain()).rank(3));
        }
        if retries {
            over.push(piece("; ", theme.plain()).rank(4));
            over.push(piece(ui.keymap.hint(Action::Retry), theme.key()).rank(4));
            over.push(piece(again, theme.plain()).rank(4));
        }
        return Some(over);
    }
    if ui.leave_when_over {
        let told = match ui.size.0 < NARROW {
            true => "stopping all; leaves when the last has ended",
            false => "stopping everything; the deck leaves when the last child has ended",
        };
        return Some(vec![piece(told, theme.bold())]);
    }
    request(scene, ui)
}

/// Cells of what the line about a run that is over says of the step that failed.
const ENDED: usize = 84;

/// What comes of an interrupt. Agents with a session pause; a plain command is ended, and has none to go on with.
fn of_an_interrupt(state: &RunState, narrow: bool) -> String {
    let many = living(state);
    let is_plain = |s: &&StepState| s.phase == StepPhase::Running && matches!(s.runner, RunnerKind::ExternalCli { .. });
    let plain = state.steps.iter().filter(is_plain).count();
    match (many, many - plain) {
        (1, 1) if narrow => "pauses 1 child; its session lives on".to_owned(),
        (1, 1) => "1 child pauses, its session lives on".to_owned(),
        (1, 0) if narrow => "ends 1 child; a retry runs it again".to_owned(),
        (1, 0) => "1 child is ended, a retry runs it again".to_owned(),
        (n, 0) if narrow => format!("ends {n} children; a retry runs them"),
        (n, 0) => format!("{n} children are ended, a retry runs them again"),
        (n, m) if n == m && narrow => format!("pauses {n} children; sessions live on"),
        (n, m) if n == m => format!("{n} children pause, their sessions live on"),
        (n, m) if narrow => format!("pauses {n} children; {m} with sessions"),
        (n, 1) => format!("{n} children pause, of 1 the session lives on"),
        (n, m) => format!("{n} children pause, of {m} the sessions live on"),
    }
}

/// What happened last where a replay is.
fn replayed(replay: &Replay, scene: &Scene<'_>, ui: &UiState) -> Vec<Piece> {
    let theme = scene.theme;
    if replay.reading.is_none() && replay.cursor.is_at_end(&replay.line) {
        let key = |action| piece(ui.keymap.hint(action), theme.key());
        let [end, again, leaves] = match ui.size.0 < NARROW {
            true => ["the end; ", " plays again, ", " leaves the replay"],
            false => ["this is the end; ", " plays it again, ", " shows the run as it is"],
        };
        return vec![
            piece(end, theme.plain()),
            key(Action::Freeze),
            piece(again, theme.plain()),
            key(Action::Replay),
            piece(leaves, theme.plain()),
        ];
    }
    // The newest that happened stands above the track already.
    if tells_happening(scene, ui) {
        return legend(replay).map(|text| piece(text, theme.dim())).into_iter().collect();
    }
    let Some(entry) = scene.history.ticker.back() else { return Vec::new() };
    let of = entry.step.and_then(|id| scene.state.step(id));
    let name = of.map(|step| format!("{} {}", step.id, SafeText::line(step.title()).truncate(16)));
    let mut out = vec![piece(scene.time_of_day(entry.at), theme.dim())];
    out.extend(name.map(|name| piece(name, theme.plain()).gap(2)));
    out.push(piece(entry.text.to_string(), theme.plain()).gap(2));
    out
}

/// Whether what happened last is on the screen beside what this line says.
fn tells_happening(scene: &Scene<'_>, ui: &UiState) -> bool {
    !layout::layout(ui, scene.state).ticker.is_empty()
}

/// What the signs on the track of a replay mean, where there is one.
fn legend(replay: &Replay) -> Option<&'static str> {
    replay.reading.is_none().then_some("• call   ▲ need   ■ end   ▸ request   ◆ now")
}

/// What stays true and must be known; in fewer words where there is little room.
fn standing(scene: &Scene<'_>, narrow: bool) -> Option<SafeText> {
    let text = match (scene.hands, scene.read_only) {
        (Hands::Lost(evidence), _) => {
            let since = scene.state.last_update.map(|at| format!(" since {}", scene.time_of_day(at)));
            let (told, since) = (evidence.as_str(), since.unwrap_or_default());
            match super::super::lost_because(told) == told {
                true => format!("read-only: {told}; the run is lost"),
                false if narrow => format!("read-only: runner gone{since}, run lost"),
                false => format!("read-only: {told}{since}; the run is lost"),
            }
        }
        (Hands::Gone(what), _) if narrow => {
            format!(
                "directory {}; this is the last picture",
                what.as_str().strip_prefix("was ").unwrap_or(what.as_str())
            )
        }
        (Hands::Gone(what), _) => format!("the run's directory {what}; this is the last picture"),
        (Hands::Suspended(what), _) => what.to_string(),
        _ if scene.trouble.is_some() => return scene.trouble.cloned(),
        (Hands::Unknown(why), _) if !scene.state.is_over() => format!("whether the runner lives is not known: {why}"),
        (_, Some(why)) => format!("read-only: {why}"),
        _ => return None,
    };
    Some(SafeText::line(&text))
}

/// How far a request has come that the runner answers with nothing but what it does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Written,
    Taken,
    Done,
}

fn progress(sent: &Sent, state: &RunState) -> Progress {
    let (taken, done) = match (sent.what, sent.step.and_then(|id| state.step(id))) {
        ("stop", Some(step)) => (step.face() == StepFace::Stopping, step.phase.is_terminal()),
        ("stop", None) => (state.stopped, state.is_over()),
        ("interrupt", _) => (state.interrupted, state.is_over()),
        ("acknowledge", Some(step)) => {
            let noted = step.attention.iter().any(|notice| notice.acknowledged.is_some_and(|at| at >= sent.at));
            (false, noted || !step.attention.iter().any(Notice::is_open))
        }
        _ => (false, false),
    };
    match (taken, done) {
        (_, true) => Progress::Done,
        (true, _) => Progress::Taken,
        _ => Progress::Written,
    }
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
    let mut out = vec![piece("control: ", theme.dim())];
    if let (Some(sent), true) = (sent, sent_is_newer) {
        let id = sent.id.as_deref().map(|id| format!(" #{}", short(id))).unwrap_or_default();
        let whom = sent.step.map_or_else(String::new, |s| format!(" → step {s}"));
        out.push(piece(format!("{}{id}{whom} ", sent.what), theme.plain()));
        match &sent.fate {
            Fate::Refused(why) => out.push(piece(format!("refused: {why}"), theme.bad())),
            Fate::Done if sent.what == "steer" => out.push(piece("delivered", theme.good())),
            Fate::Done => out.push(piece("done", theme.good())),
            Fate::Unanswered | Fate::Awaited => match progress(sent, scene.state) {
                Progress::Written => out.push(piece("written", theme.bold())),
                Progress::Taken => out.push(piece("taken", theme.bold())),
                Progress::Done => out.push(piece("done", theme.good())),
            },
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
pub(in crate::deck::view) fn control(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState) {
    if area.is_empty() {
        return;
    }
    let pieces = message(scene, ui).unwrap_or_default();
    row(buf, inset(area), 0, pieces, page(scene, ui));
}

/// Which of the panes are shown, where there are more than fit.
fn page(scene: &Scene<'_>, ui: &UiState) -> Vec<Piece> {
    let shown = layout::layout(ui, scene.state);
    let (steps, panes) = (scene.state.steps.len(), shown.panes.len());
    match (shown.shape, shown.panes.first()) {
        (Shape::Grid, Some((first, _))) if panes < steps => {
            let at = scene.state.steps.iter().position(|s| s.id == *first).unwrap_or(0);
            let text = format!("panes {}-{} of {steps}", at + 1, at + panes);
            let keys = [Action::PageUp, Action::PageDown].map(|action| ui.keymap.hint(action)).join(" ");
            vec![piece(text, scene.theme.dim()).rank(1), piece(keys, scene.theme.key()).rank(1).gap(2)]
        }
        (Shape::Zoom, _) => tool_limits(scene, ui),
        // The line itself says it.
        _ if tells_happening(scene, ui) => Vec::new(),
        _ => {
            let told = ui.replay.as_ref().and_then(legend);
            told.map(|text| piece(text, scene.theme.dim()).rank(0)).into_iter().collect()
        }
    }
}

/// Of the open tool of a zoomed step: when it is told that it is open for long, and when it is ended.
fn tool_limits(scene: &Scene<'_>, ui: &UiState) -> Vec<Piece> {
    let Some(step) = scene.state.step(ui.selected) else { return Vec::new() };
    let Some(call) = step.current_call().filter(|call| !step.asks_about(call)) else { return Vec::new() };
    let theme = scene.theme;
    let tool = SafeText::line(&call.tool).truncate(16);
    let open = scene.now.since(call.started_at);
    let time = |ms: u64| std::time::Duration::from_millis(ms);
    let ends = step.limits.tool_limit(&call.tool).map(time);
    // Of how much says nothing without how long.
    let of = ends.map(|at| format!(" of {}", clock(at))).unwrap_or_default();
    let mut out = vec![
        piece(tool.to_string(), theme.dim()).rank(5),
        piece(format!("open {}{of}", clock(open)), theme.plain()).rank(5).gap(1),
    ];
    let warns = step.thresholds.tool_open(&call.tool).map(time);
    out.extend(warns.map(|at| {
        let (word, style) = if open >= at { ("warned", theme.bad()) } else { ("warning", theme.dim()) };
        piece(format!("{word} at {}", clock(at)), style).rank(1).gap(3)
    }));
    // Where there is room the line about the step says for how long it is open.
    let said = ui.size.0 >= 100 && warns.is_none() && ends.is_none();
    if said || scene.rests(step) { Vec::new() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::StepId;

    #[test]
    fn an_interrupt_promises_a_session_only_to_those_that_have_one() {
        let step = |id, plain| StepState {
            id: StepId(id),
            phase: StepPhase::Running,
            runner: if plain {
                RunnerKind::ExternalCli { command: "sleep".to_owned(), args: Vec::new() }
            } else {
                StepState::default().runner
            },
            ..StepState::default()
        };
        let told = |plain: &[bool]| {
            let steps = (0..).zip(plain).map(|(id, plain)| step(id, *plain)).collect();
            of_an_interrupt(&RunState { steps, ..RunState::default() }, false)
        };
        assert_eq!(told(&[false]), "1 child pauses, its session lives on");
        assert_eq!(told(&[true]), "1 child is ended, a retry runs it again");
        assert_eq!(told(&[true, true]), "2 children are ended, a retry runs them again");
        assert_eq!(told(&[false, false]), "2 children pause, their sessions live on");
        assert_eq!(told(&[false, true]), "2 children pause, of 1 the session lives on");
        assert_eq!(told(&[false, true, false]), "3 children pause, of 2 the sessions live on");
    }
}
