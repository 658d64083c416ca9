//! The lines at the edges: the run, what needs a person, what became of requests, what can be pressed.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::detail::{meter_style, meter_text, of_limits};
use super::layout::{self, Shape};
use super::paint::{Piece, bar, hit, piece, put, put_cut, row, total};
use super::{Scene, elapsed, now_text};
use crate::deck::actions::{self, Action, Situation};
use crate::deck::answer_dialog;
use crate::deck::attention;
use crate::deck::compose;
use crate::deck::feed::Hands;
use crate::deck::history::short;
use crate::deck::model::{Danger, Fate, Overlay, Sent, Tab, UiState, living};
use crate::deck::replay::Replay;
use crate::deck::theme::Face;
use crate::run::replay::Step;
use crate::run::{Metric, Notice, RunPhase, RunState, StepFace, TargetState, cause};
use crate::text::{SafeText, UNKNOWN, clock, clock_long, cost, count, or_unknown};

/// For so long a request of this deck is the newest thing to tell.
const FRESH: std::time::Duration = std::time::Duration::from_secs(10);

/// The line about the run.
pub(super) fn header(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState) {
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
        right.push(piece(format!("{}/{}", sums.ended, state.steps.len()), theme.plain()).rank(7));
        right.push(piece("ended", theme.dim()).rank(2).gap(1));
    }
    let ran = state.elapsed(scene.now);
    let time = or_unknown(ran.map(if area.width >= 100 { clock_long } else { clock }));
    let more = if state.lost.is_some() && state.ended_at.is_none() && ran.is_some() { "+" } else { "" };
    right.push(piece(format!("{time}{more}"), theme.bold()).gap(gap));
    if let Some(limit) = state.timeout_ms {
        let limit = std::time::Duration::from_millis(limit);
        let limit = if area.width >= 100 { clock_long(limit) } else { clock(limit) };
        right.push(piece(format!("of {limit}"), theme.dim()).rank(4).gap(1));
    }
    // Unknown money is said to be unknown only where there is room to say so.
    let meters = crate::run::budget::run_meters(state, scene.now);
    let metered = |metric: Metric| meters.iter().find(|m| m.metric == metric);
    // A sum of which a part is not told is at least that.
    let or_more = |more: bool| if more { "+" } else { "" };
    let (cost_more, tokens_more) = (or_more(sums.cost_more), or_more(sums.tokens_more));
    let money = sums.cost.map_or_else(|| format!("cost {UNKNOWN}"), |c| format!("{}{cost_more}", cost(c.0)));
    if !sums.plain || sums.cost.is_some() {
        let rank = if sums.cost.is_some() { 8 } else { 1 };
        match metered(Metric::Cost) {
            Some(meter) => {
                let text = meter_text(meter).replacen(" of ", &format!("{cost_more} of "), 1);
                right.push(piece(text, theme.plain()).rank(8).gap(gap));
                right.push(piece(bar(meter.share(), 10), meter_style(meter, scene)).rank(1).gap(1));
            }
            None => right.push(piece(money, theme.plain()).rank(rank).gap(gap)),
        }
    }
    let tokens = if sums.tokens.is_zero() { "–".to_owned() } else { count(sums.tokens.total()) };
    if !sums.plain {
        match metered(Metric::Tokens) {
            Some(meter) => {
                let text = meter_text(meter).replacen(" of ", &format!("{tokens_more} of "), 1);
                right.push(piece(format!("{text} tok"), theme.plain()).rank(5).gap(gap));
                right.push(piece(bar(meter.share(), 10), meter_style(meter, scene)).rank(0).gap(1));
            }
            None => right.push(piece(format!("{tokens}{tokens_more} tok"), theme.plain()).rank(5).gap(gap)),
        }
    }
    row(buf, inset(area), 0, left, right);
}

/// How the run looks.
fn run_face(scene: &Scene<'_>) -> Face {
    let face = scene.theme.run_face(scene.state);
    if scene.is_gone() && !scene.state.is_over() {
        return Face { word: "was running", ..scene.theme.face(StepFace::Unknown) };
    }
    face
}

/// A line with a cell of air at both ends.
const fn inset(area: Rect) -> Rect {
    Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area }
}

/// How much of a long event log was read.
fn reading(scene: &Scene<'_>, ui: &UiState) -> Option<Piece> {
    let percent = ui.reading.filter(|_| ui.replay.is_none())?;
    Some(piece(format!("reading what happened {percent}%"), scene.theme.dim()).rank(7).gap(2))
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
    let (count, needs) = (ui.inside.len(), ui.inside.iter().filter(|run| run.needs).count());
    if count > 0 {
        let style = if needs > 0 { theme.alarm() } else { theme.dim() };
        let runs = if count == 1 { "1 run inside".to_owned() } else { format!("{count} runs inside") };
        let alarm = if needs > 0 { format!(", {needs} needs you") } else { String::new() };
        out.push(piece(runs + &alarm, style).rank(if needs > 0 { 6 } else { 1 }).gap(2));
    }
    out
}

fn frozen(scene: &Scene<'_>, ui: &UiState) -> Option<Piece> {
    if ui.replay.is_some() {
        let clock = if ui.size.0 < 70 { String::new() } else { format!("{} ", scene.time_of_day(scene.now)) };
        return Some(piece(format!(" REPLAY {clock}"), scene.theme.alarm()).gap(2));
    }
    let since = ui.frozen?;
    Some(piece(format!(" FROZEN {} ", clock(scene.wall.since(since))), scene.theme.alarm()).gap(2))
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
    let face = super::face(step, scene, ui);
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
    let about_run = [
        piece("run", theme.dim()).rank(1).gap(3),
        piece(run_id(scene.state).to_string(), theme.dim()).rank(1).gap(1),
        piece(run.glyph, run.style).rank(1).gap(1),
    ];
    let open = step.current_call().filter(|_| step.retrying.is_none());
    let open = open.map(|call| piece(clock(scene.now.since(call.started_at)), theme.bold()).rank(2).gap(1));
    // What it does is cut to the room that there is, and worth more than which run it is in.
    let clock_wide = open.as_ref().map_or(0, |piece| total(std::slice::from_ref(piece)) + 1);
    let own = total(&left) + total(&right) + clock_wide + 6;
    let room = usize::from(area.width.saturating_sub(own));
    let with_run = room.saturating_sub(usize::from(total(&about_run)) + 3);
    let (room, about_run) = if with_run >= 20 { (with_run, Some(about_run)) } else { (room, None) };
    if room >= 8 {
        let now =
            SafeText::line(&now_text(scene.state, step, scene.now)).truncate(room.min(usize::from(area.width / 2)));
        left.push(piece(now.to_string(), theme.dim()).rank(2).gap(2));
        left.extend(open);
    }
    right.extend(about_run.into_iter().flatten());
    row(buf, inset(area), 0, left, right);
}

/// The line about what needs a person.
pub(super) fn needs_you(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState) {
    if area.is_empty() {
        return;
    }
    buf.set_style(area, scene.theme.alarm());
    let (left, right) = needs(area.width, scene, ui);
    row(buf, inset(area), 0, left, right);
}

fn needs(width: u16, scene: &Scene<'_>, ui: &UiState) -> (Vec<Piece>, Vec<Piece>) {
    let theme = scene.theme;
    let waiting = attention::attention(scene.state, ui);
    let Some(first) = attention::foremost(&waiting, ui) else { return (Vec::new(), Vec::new()) };
    let name = scene.state.step(first.step).map(|s| SafeText::line(s.title())).unwrap_or_default();
    let hint = |action: Action, word: &str, rank: u8| {
        piece(format!("{} {word}", ui.keymap.hint(action)), theme.alarm()).rank(rank).gap(3).does(action)
    };
    let asks = scene.read_only.is_none() && scene.state.step(first.step).is_some_and(|step| !step.questions.is_empty());
    let mut right = vec![hint(Action::NextAttention, "jump", 3), hint(Action::Why, "why", 1)];
    if ui.replay.is_none() && !scene.is_gone() {
        let word = if width < 100 { "acknowledge".to_owned() } else { format!("acknowledge step {}", first.step) };
        right.insert(1, hint(Action::Acknowledge, &word, 2));
    }
    if asks {
        right.insert(0, hint(Action::Answer, "answer", 4));
    }
    let verb = match waiting.len() {
        _ if scene.is_gone() || ui.replay.is_some() => "NEEDED",
        1 => "NEEDS",
        _ => "NEED",
    };
    let count = format!("▲ {} {verb} YOU", waiting.len());
    let word = if width < 70 { "" } else { "step " };
    // For how long is never cut; what it is about may be.
    let used = crate::text::width(&count) + 4 + if width < 70 { 0 } else { 10 };
    // How to answer is never crowded out by the question.
    let used = if asks { used + 10 } else { used };
    let number = format!("{word}{}", first.step);
    let text = first.line(&number, name.as_str(), usize::from(width).saturating_sub(used), scene.now);
    let mut left = vec![
        piece(count, theme.alarm()).does(Action::NextAttention),
        piece(text.to_string(), theme.alarm()).gap(2).does(Action::NextAttention),
    ];
    // Where there is room: what comes next by itself, and who else needs somebody.
    let mut room = width.saturating_sub(2).saturating_sub(total(&left) + total(&right) + 4);
    let mut add = |text: String, gap: u16| {
        let more = piece(text, theme.alarm()).gap(gap).rank(0).does(Action::NextAttention);
        let cells = total(std::slice::from_ref(&more)) + gap;
        let fits = cells <= room;
        if fits {
            room -= cells;
            left.push(more);
        }
        fits
    };
    if let Some(next) = scene.state.step(first.step).and_then(attention::outlook) {
        add(format!("({next})"), 1);
    }
    for other in waiting.iter().filter(|other| other.step != first.step) {
        let name = scene.state.step(other.step).map(|s| SafeText::line(s.title()).truncate(24)).unwrap_or_default();
        let text = other.line(&other.step.to_string(), name.as_str(), OTHER + name.width(), scene.now);
        if !add(text.to_string(), 3) {
            break;
        }
    }
    (left, right)
}

/// Cells of what another step needs somebody for, on the line that is about the foremost one; its name not counted.
const OTHER: usize = 40;

/// What a click on the line about what needs a person does, `dx` cells from its left.
pub(super) fn hit_needs(width: u16, dx: u16, scene: &Scene<'_>, ui: &UiState) -> Option<Action> {
    let (left, right) = needs(width, scene, ui);
    hit(width.saturating_sub(2), left, right, dx.checked_sub(1)?)
}

/// What a click on the hints does.
pub(super) fn hit_footer(width: u16, dx: u16, scene: &Scene<'_>, ui: &UiState) -> Option<Action> {
    hit(width.saturating_sub(2), hints(scene, ui), Vec::new(), dx.checked_sub(1)?)
}

/// The line about requests and notices. Returns the pieces, so that the footer can take its place where there is no
/// row for it.
fn message(scene: &Scene<'_>, ui: &UiState) -> Option<Vec<Piece>> {
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
        let many = living(scene.state);
        let children = if many == 1 { "child pauses".to_owned() } else { format!("{many} children pause") };
        return Some(vec![
            piece("press ", theme.bold()),
            piece(ui.keymap.hint(Action::Interrupt), theme.key()),
            piece(format!(" again to interrupt: {children}, their sessions live on"), theme.bold()),
        ]);
    }
    if let (Some(percent), Some(search)) = (ui.searching, &ui.search) {
        let needle = SafeText::line(&search.needle).truncate(30);
        let found = search.count.filter(|count| count.step == ui.selected && count.total > 0);
        let so_far = found.map(|count| format!(", {} so far", crate::text::grouped(count.total))).unwrap_or_default();
        let what = if search.tab == Tab::Output { "log" } else { search.tab.name() };
        return Some(vec![
            piece(format!("looking for {needle}, {percent}% of the {what}{so_far}   "), theme.plain()),
            piece("esc", theme.key()),
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
    if let Some(text) = standing(scene) {
        // What became of a request is told for a while also where something stays true beside it.
        let fresh = ui.sent.last().is_some_and(|sent| scene.wall.since(sent.at) < FRESH);
        if !(fresh && scene.trouble == Some(&text)) {
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
            false if ui.size.0 < 70 && failed.is_some() => "",
            false => "the run is over; ",
        };
        let mut over = vec![piece(lead, theme.plain())];
        over.extend(failed.map(|step| {
            // The reason is cut to the room that there is beside the way out.
            let name = SafeText::line(step.title()).truncate(24);
            let error = step.error.as_deref().map(|why| format!(": {}", SafeText::line(&cause(why))));
            let text = SafeText::line(&format!("step {} {name} failed{}", step.id, error.unwrap_or_default()));
            let room = usize::from(ui.size.0).saturating_sub(2 + lead.len() + "; q leaves".len());
            piece(format!("{}; ", text.truncate(room.min(ENDED))), theme.bad())
        }));
        over.extend([
            piece(ui.keymap.hint(Action::Quit), theme.key()),
            piece(" leaves", theme.plain()),
            piece(" and prints the summary", theme.plain()).rank(3),
        ]);
        let at = Situation { state: scene.state, read_only: scene.read_only };
        if actions::possible(Action::Steer, ui, at).is_ok() {
            over.push(piece("; ", theme.plain()).rank(1));
            over.push(piece(ui.keymap.hint(Action::Steer), theme.key()).rank(1));
            over.push(piece(format!(" goes on with step {}", ui.selected), theme.plain()).rank(1));
        }
        if actions::possible(Action::Retry, ui, at).is_ok() {
            over.push(piece("; ", theme.plain()).rank(2));
            over.push(piece(ui.keymap.hint(Action::Retry), theme.key()).rank(2));
            let again = if paused { " runs again what is not done" } else { " does again what failed" };
            over.push(piece(again, theme.plain()).rank(2));
        }
        return Some(over);
    }
    if ui.leave_when_over {
        return Some(vec![piece("stopping everything; the deck leaves when the last child has ended", theme.bold())]);
    }
    request(scene, ui)
}

/// Cells of what the line about a run that is over says of the step that failed.
const ENDED: usize = 84;

/// What happened last where a replay is.
fn replayed(replay: &Replay, scene: &Scene<'_>, ui: &UiState) -> Vec<Piece> {
    let theme = scene.theme;
    if replay.reading.is_none() && replay.cursor.is_at_end(&replay.line) {
        let key = |action| piece(ui.keymap.hint(action), theme.key());
        return vec![
            piece("this is the end; ", theme.plain()),
            key(Action::Freeze),
            piece(" plays it again, ", theme.plain()),
            key(Action::Replay),
            piece(" shows the run as it is", theme.plain()),
        ];
    }
    let Some(entry) = scene.history.ticker.back() else { return Vec::new() };
    let step = entry.step.map(|step| format!("step {step}: ")).unwrap_or_default();
    vec![piece(scene.time_of_day(entry.at), theme.dim()), piece(format!("{step}{}", entry.text), theme.plain()).gap(2)]
}

/// What stays true and must be known.
fn standing(scene: &Scene<'_>) -> Option<SafeText> {
    let text = match (scene.hands, scene.read_only) {
        (Hands::Lost(evidence), _) => {
            let since = scene.state.last_update.map(|at| format!(" since {}", scene.time_of_day(at)));
            let told = evidence.as_str();
            let pid = told.strip_prefix("the runner (").and_then(|told| told.strip_suffix(") is gone"));
            let since = since.unwrap_or_default();
            format!("read-only: runner gone{since}, the run was marked lost ({})", pid.unwrap_or(told))
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
pub(super) fn control(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState) {
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
        // What the signs on the track above mean.
        _ if ui.replay.as_ref().is_some_and(|replay| replay.reading.is_none()) => {
            vec![piece("• call   ▲ need   ■ end   ▸ request   ◆ now", scene.theme.dim()).rank(0)]
        }
        _ => Vec::new(),
    }
}

/// Of the open tool of a zoomed step: when it is told that it is open for long, and when it is ended.
fn tool_limits(scene: &Scene<'_>, ui: &UiState) -> Vec<Piece> {
    let Some(step) = scene.state.step(ui.selected) else { return Vec::new() };
    let Some(call) = step.current_call() else { return Vec::new() };
    let theme = scene.theme;
    let tool = SafeText::line(&call.tool).truncate(16);
    let open = scene.now.since(call.started_at);
    let mut out = vec![
        piece(tool.to_string(), theme.dim()).rank(5),
        piece(format!("open {}", clock(open)), theme.plain()).rank(5).gap(1),
    ];
    let time = |ms: u64| std::time::Duration::from_millis(ms);
    let ends = step.limits.tool_limit(&call.tool).map(time);
    out.extend(ends.map(|at| piece(format!("of {}", clock(at)), theme.dim()).rank(4).gap(1)));
    let warns = step.thresholds.tool_open(&call.tool).map(time);
    out.extend(warns.map(|at| {
        let (word, style) = if open >= at { ("warned", theme.bad()) } else { ("warning", theme.dim()) };
        piece(format!("{word} at {}", clock(at)), style).rank(1).gap(3)
    }));
    // Where there is room the line about the step says for how long it is open.
    let said = ui.size.0 >= 100 && warns.is_none() && ends.is_none();
    if said || scene.rests(step) { Vec::new() } else { out }
}

/// Draws the hints; `alone` says that there is no other line for a notice.
pub(super) fn footer(buf: &mut Buffer, area: Rect, alone: bool, scene: &Scene<'_>, ui: &UiState) {
    if alone
        && (ui.armed.is_some()
            || ui.notice.is_some()
            || matches!(ui.overlays.last(), Some(Overlay::Search { .. } | Overlay::Filter)))
        && let Some(pieces) = message(scene, ui)
    {
        row(buf, inset(area), 0, pieces, Vec::new());
        return;
    }
    // The first named are the last to go.
    let named = |hints: &[(&str, &str)]| -> Vec<Piece> {
        let ranked = hints.iter().zip((0..=20).rev());
        ranked.flat_map(|((key, word), rank)| hint(key, word, rank, scene)).collect()
    };
    let pieces: Vec<Piece> = match ui.overlays.last() {
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
        Some(Overlay::Help { query: Some(_), .. }) => named(&[("↑↓", "scroll"), ("esc", "all keys")]),
        Some(Overlay::Help { .. }) => named(&[("jk", "scroll"), ("/", "find"), ("esc", "back")]),
        Some(Overlay::Reading(_)) => {
            let mut out = vec![("esc", "back"), ("jk", "scroll"), ("/", "find"), ("y", "copy")];
            if ui.needle().is_some() {
                out.insert(2, ("n N", "next match"));
            }
            named(&out)
        }
        Some(Overlay::Why { .. }) => {
            let at = Situation { state: scene.state, read_only: scene.read_only };
            let keys: Vec<(String, &str)> = actions::FROM_WHY
                .into_iter()
                .filter(|action| actions::possible(*action, ui, at).is_ok())
                .filter_map(|action| Some((ui.keymap.hint(action), actions::row(action)?.short)))
                .collect();
            let mut out: Vec<(&str, &str)> = vec![("esc", "back")];
            out.extend(keys.iter().map(|(key, word)| (key.as_str(), *word)));
            out.push(("jk", "scroll"));
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
            out.push(("esc", "later"));
            // What is only typed has nothing to choose from.
            let choices = question.map(answer_dialog::lines);
            out.extend(choices.filter(|lines| !lines.is_empty()).map(|_| ("↑↓", "move")));
            if question.is_some_and(|question| question.asking.many) {
                out.insert(1, ("space", "tick"));
            }
            named(&out)
        }
        Some(Overlay::Confirm { what: Danger::Retry, .. }) => named(&[("esc", "no"), ("y", "do it again")]),
        Some(Overlay::Confirm { .. }) => named(&[("esc", "no"), ("y", "stop it")]),
        Some(Overlay::Quit { .. }) => {
            let stop = ui.keymap.hint(Action::StopRun);
            named(&[("esc", "stay"), ("l", "leave it running"), (stop.as_str(), "stop everything")])
        }
        None => hints(scene, ui),
    };
    row(buf, inset(area), 0, pieces, Vec::new());
}

/// A key and what it does.
fn hint(key: &str, word: &str, rank: u8, scene: &Scene<'_>) -> [Piece; 2] {
    [piece(key, scene.theme.key()).rank(rank).gap(2), piece(word, scene.theme.dim()).rank(rank).gap(1)]
}

fn hints(scene: &Scene<'_>, ui: &UiState) -> Vec<Piece> {
    let at = Situation { state: scene.state, read_only: scene.read_only };
    let over = scene.state.step(ui.selected).is_some_and(|step| step.phase.is_terminal());
    let mut out = Vec::new();
    for action in actions::footer(ui, at) {
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
        let rank = match action {
            Action::View => 0,
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
            Action::Steer => 8,
            Action::Zoom | Action::Open | Action::SearchNext | Action::Seek(Step::Mark) => 7,
            Action::Seek(_) => 8,
            Action::NextAttention => 10,
            Action::Help => 11,
            _ => 12,
        };
        let word = match (action, &ui.replay) {
            (Action::Freeze, Some(replay)) if replay.cursor.plays() => "pause",
            (Action::Freeze, Some(_)) => "play",
            (Action::Freeze, None) => "go on",
            // In the picture of one step a key that is about all of them says so.
            (Action::Interrupt, _) if ui.zoom => "interrupt run",
            (Action::Faster, Some(_)) => "speed",
            (Action::Back, Some(_)) if !ui.zoom => "leave",
            (Action::SearchNext, _) => "next match",
            _ => info.short,
        };
        out.extend(hint(&key, word, rank, scene).map(|p| p.does(action)));
    }
    out
}

/// One sentence, for a terminal without room for anything else.
pub(super) fn tiny(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let state = scene.state;
    let face = theme.run_face(state);
    let waiting = attention::attention(state, ui).len();
    let needs = if waiting > 0 {
        format!(", {waiting} {} you", if waiting == 1 { "needs" } else { "need" })
    } else {
        String::new()
    };
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
