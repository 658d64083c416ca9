//! Input to changes of the picture and to effects. Pure: the run, the clock and the terminal are arguments, and what
//! reaches the world is a value.
//!
//! A key goes to the topmost overlay; only without one is it looked up in the table of actions. A paste is text and
//! never a key.

mod mouse;
mod overlays;
mod replay;

use std::time::Duration;

use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind};

use super::actions::{self, Action, Situation};
use super::allowed::{can_steer, inner_run, is_foreign, living};
use super::attention::{Attention, asked, attention, foremost};
use super::entries::{self, Entries};
use super::history::History;
use super::model::{
    Danger, Focus, Notice, Overlay, PaneState, Position, Question, Scroll, Tab, UiEffect, UiState, ViewMode,
};
use super::view::layout::{Shape, grid_fits, layout};
use super::{answer_dialog, budget_dialog, compose, listed, rows};
use crate::run::{RunState, StepId, Stream, Timestamp};
use crate::text::SafeText;
use mouse::on_mouse;
use overlays::{on_confirm_key, on_filter_key, on_palette_key, on_quit_key, on_reading_key, on_search_key};

/// Within this time a second press of the interrupt key counts.
pub const ARMED_FOR: Duration = Duration::from_secs(2);
/// A notice stays this long.
pub const NOTICE_FOR: Duration = Duration::from_secs(6);

/// What `update` looks at beside the picture.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The run.
    pub state: &'a RunState,
    /// Why nothing may be written, if so.
    pub read_only: Option<&'a SafeText>,
    /// What happened in it.
    pub entries: Entries<'a>,
    /// Now.
    pub now: Timestamp,
}

impl<'a> Context<'a> {
    /// What decides whether an action is possible.
    #[must_use]
    pub const fn situation(&self) -> Situation<'a> {
        Situation { state: self.state, read_only: self.read_only }
    }
}

/// Takes one input.
pub fn update(ui: &mut UiState, cx: Context<'_>, input: &Input) -> Vec<UiEffect> {
    ui.settle(cx.state);
    let searched = ui.searching.is_some().then(|| looked_at(ui));
    let effects = take(ui, cx, input);
    // Who goes elsewhere does not want to be taken back by a search that is not done yet.
    ui.away |= searched.is_some_and(|before| before != looked_at(ui));
    effects
}

/// What a person looks at, as far as a search would change it.
fn looked_at(ui: &UiState) -> (StepId, bool, PaneState) {
    (ui.selected, ui.zoom, ui.pane(ui.selected))
}

fn take(ui: &mut UiState, cx: Context<'_>, input: &Input) -> Vec<UiEffect> {
    match input {
        Input::Key(key) if matches!(key.kind, KeyEventKind::Press | KeyEventKind::Repeat) => {
            let effects = on_key(ui, cx, *key);
            ui.typed = Some(cx.now);
            effects
        }
        Input::Paste(text) => {
            on_paste(ui, cx, text);
            Vec::new()
        }
        Input::Mouse(mouse) if ui.mouse => on_mouse(ui, cx, *mouse),
        _ => Vec::new(),
    }
}

/// Says something on the line for notices.
pub fn say(ui: &mut UiState, now: Timestamp, bad: bool, text: &str) {
    ui.notice = Some(Notice { text: SafeText::line(text), bad, until: now + NOTICE_FOR });
}

/// Lets go of what has had its time. Returns whether something visible changed.
pub fn expire(ui: &mut UiState, now: Timestamp) -> bool {
    let mut changed = false;
    // A clock that was set back must not keep anything for longer than it was to be kept.
    if ui.armed.is_some_and(|q| now < q.since || now.since(q.since) >= ARMED_FOR) {
        ui.armed = None;
        changed = true;
    }
    if ui.notice.as_ref().is_some_and(|n| n.until <= now || n.until.since(now) > NOTICE_FOR) {
        ui.notice = None;
        changed = true;
    }
    changed
}

/// When [`expire`] has something to do next.
#[must_use]
pub fn expires_at(ui: &UiState) -> Option<Timestamp> {
    let armed = ui.armed.map(|q| q.since + ARMED_FOR);
    let notice = ui.notice.as_ref().map(|n| n.until);
    [armed, notice].into_iter().flatten().min()
}

/// Shows all of an output, standard error only, or all but it.
fn next_stream(ui: &mut UiState, cx: Context<'_>) {
    if ui.replay.is_some() || ui.frozen.is_some() {
        return say(ui, cx.now, true, "a picture that stands still shows both streams");
    }
    let step = ui.selected;
    let pane = ui.pane_mut(step);
    pane.only = match pane.only {
        None => Some(Stream::Err),
        Some(Stream::Err) => Some(Stream::Out),
        Some(Stream::Out | Stream::Own) => None,
    };
    // Positions mean something else now.
    pane.output = Position::Follow;
    pane.asked.clear();
    ui.searching = None;
    if let Some(search) = &mut ui.search {
        (search.found, search.count) = (None, None);
    }
}

fn on_key(ui: &mut UiState, cx: Context<'_>, key: KeyEvent) -> Vec<UiEffect> {
    match ui.overlays.last() {
        None => match ui.keymap.lookup(key) {
            Some(action) => act_on_key(ui, cx, action, key),
            None => Vec::new(),
        },
        Some(Overlay::Composer(_)) => compose::on_key(ui, cx, key),
        Some(Overlay::Budget(_)) => budget_dialog::on_key(ui, cx, key),
        Some(Overlay::Answer(_)) => answer_dialog::on_key(ui, cx, key),
        Some(Overlay::Palette { .. }) => on_palette_key(ui, cx, key),
        Some(Overlay::Search { .. }) => on_search_key(ui, key),
        Some(Overlay::Filter) => on_filter_key(ui, cx, key),
        Some(Overlay::Why { step, .. }) => match ui.keymap.lookup(key) {
            // Who has read why does something about it, without the way back first.
            Some(action) if actions::FROM_WHY.contains(&action) => {
                ui.selected = *step;
                ui.overlays.pop();
                perform(ui, cx, action)
            }
            _ => on_reading_key(ui, key),
        },
        Some(Overlay::Help { .. } | Overlay::Reading(_)) => on_reading_key(ui, key),
        Some(Overlay::Confirm { what, question }) => {
            let (what, ready) = (*what, ui.may_answer(question.shown, cx.now));
            on_confirm_key(ui, cx, key, what, ready)
        }
        Some(Overlay::Quit { question }) => {
            let ready = ui.may_answer(question.shown, cx.now);
            on_quit_key(ui, cx, key, ready)
        }
    }
}

fn act_on_key(ui: &mut UiState, cx: Context<'_>, action: Action, key: KeyEvent) -> Vec<UiEffect> {
    // Below a bar of tabs the digits pick a tab of that bar.
    if let (KeyCode::Char(c @ '1'..='9'), ViewMode::Tabs, false) = (key.code, ui.mode, ui.zoom) {
        let number = usize::try_from(c.to_digit(10).unwrap_or(1)).unwrap_or(1);
        if let Some(step) = cx.state.steps.get(number - 1) {
            ui.selected = step.id;
        }
        return Vec::new();
    }
    perform(ui, cx, action)
}

/// Carries out an action, by whatever door it was asked for.
pub fn perform(ui: &mut UiState, cx: Context<'_>, action: Action) -> Vec<UiEffect> {
    if action != Action::Interrupt {
        ui.armed = None;
    }
    if let Err(why) = actions::possible(action, ui, cx.situation()) {
        match action {
            // Nothing is ever sent in a replay.
            Action::Steer | Action::SteerAll if cx.state.step(ui.selected).is_some() && ui.replay.is_none() => {
                compose::open(ui, cx, action == Action::SteerAll, Some(&why));
            }
            _ => say(ui, cx.now, true, &why),
        }
        return Vec::new();
    }
    match action {
        Action::Down => move_by(ui, cx, 1),
        Action::Up => move_by(ui, cx, -1),
        Action::Left => sideways(ui, cx.state, false),
        Action::Right => sideways(ui, cx.state, true),
        Action::First => to_end(ui, cx, false),
        Action::Last => to_end(ui, cx, true),
        Action::HalfDown => return turn(ui, cx, Scroll::Halves(1)),
        Action::HalfUp => return turn(ui, cx, Scroll::Halves(-1)),
        Action::PageDown => return page(ui, cx, 1),
        Action::PageUp => return page(ui, cx, -1),
        Action::PreviousStep => ui.select_by(cx.state, -1),
        Action::NextStep => ui.select_by(cx.state, 1),
        Action::NextPane => {
            // Nobody is taken to a pane that is not there.
            let ticker = !layout(ui, cx.state).ticker.is_empty();
            ui.focus = match ui.focus {
                Focus::Steps => Focus::Output,
                Focus::Output if ticker => Focus::Ticker,
                Focus::Output | Focus::Ticker => Focus::Steps,
            };
        }
        Action::Back => return back(ui),
        Action::Zoom if ui.zoom => ui.leave_zoom(),
        Action::Zoom => ui.zoom = true,
        Action::Open if ui.zoom && ui.tab(ui.selected) != Tab::Output => return vec![UiEffect::Open(ui.selected)],
        Action::Open if ui.zoom => {
            let pager = ui.keymap.hint(Action::Pager);
            say(ui, cx.now, false, &format!("an output has nothing to open; {pager} shows all of it in the pager"));
        }
        Action::Open => ui.zoom = true,
        Action::Inside => {
            return inner_run(ui).map(|run| UiEffect::Inside(run.path.clone())).into_iter().collect();
        }
        Action::View => {
            ui.leave_zoom();
            // A grid that there is no room for would look like the list.
            ui.mode = match ui.mode {
                ViewMode::List if grid_fits(ui.size) => ViewMode::Grid,
                ViewMode::List | ViewMode::Grid => ViewMode::Tabs,
                ViewMode::Tabs => ViewMode::Flow,
                ViewMode::Flow => ViewMode::List,
            };
            ui.grid_from = (ui.mode == ViewMode::Grid).then(|| ui.sums(cx.state).first_open);
        }
        Action::Tab(tab) => {
            let selected = ui.selected;
            ui.pane_mut(selected).tab = tab;
            ui.zoom = true;
        }
        Action::Follow => {
            ui.ticker_back = 0;
            scroll(ui, cx, Scroll::End);
        }
        Action::Freeze if ui.replay.is_some() => replay::pause(ui, cx.now),
        Action::Freeze => {
            ui.frozen = if ui.frozen.is_some() { None } else { Some(cx.now) };
            return vec![UiEffect::Freeze(ui.frozen.is_some())];
        }
        Action::Wrap => ui.wrap = !ui.wrap,
        Action::Fold => ui.fold = !ui.fold,
        Action::Reveal => ui.reveal = !ui.reveal,
        Action::Filter if ui.zoom && entries::lists(ui.tab(ui.selected)) => {
            let selected = ui.selected;
            let pane = ui.pane_mut(selected);
            let sieve = pane.sieve.entry(pane.tab).or_default();
            *sieve = sieve.next(pane.tab);
        }
        Action::Filter if ui.zoom && ui.tab(ui.selected) == Tab::Output => next_stream(ui, cx),
        Action::Filter if ui.zoom => say(ui, cx.now, false, "there is nothing to leave out on this tab"),
        Action::Filter => {
            ui.leave_zoom();
            ui.mode = ViewMode::List;
            ui.overlays.push(Overlay::Filter);
        }
        Action::Search => ui.overlays.push(Overlay::Search {
            query: String::new(),
            everywhere: ui.search.as_ref().is_some_and(|s| s.everywhere),
        }),
        Action::SearchNext => return vec![UiEffect::Find { opposite: false }],
        Action::SearchPrevious => return vec![UiEffect::Find { opposite: true }],
        Action::Steer => compose::open(ui, cx, false, None),
        Action::SteerAll => compose::open(ui, cx, true, None),
        Action::Interrupt => return interrupt(ui, cx),
        Action::StopStep | Action::StopRun if !ui.left.is_empty() => {
            let what = Danger::Left((action == Action::StopStep).then_some(ui.selected));
            ui.overlays.push(Overlay::Confirm { what, question: Question::new(cx.now) });
        }
        Action::StopStep => {
            let what = Danger::Step(ui.selected);
            ui.overlays.push(Overlay::Confirm { what, question: Question::new(cx.now) });
        }
        Action::StopRun => ui.overlays.push(Overlay::Confirm { what: Danger::Run, question: Question::new(cx.now) }),
        Action::Raise => budget_dialog::open(ui, cx.state),
        Action::Answer => {
            if let Some((step, question)) = answer_dialog::next(ui, cx.state) {
                answer_dialog::open(ui, cx.state, step, question);
            }
        }
        Action::TakeBack => return take_back(ui, cx.state),
        Action::Retry => {
            ui.overlays.push(Overlay::Confirm { what: Danger::Retry, question: Question::new(cx.now) });
        }
        Action::Replay => return vec![UiEffect::Replay(ui.replay.is_none())],
        Action::Slower => replay::change_speed(ui, cx.now, false),
        Action::Faster => replay::change_speed(ui, cx.now, true),
        Action::Seek(step) => replay::step(ui, cx.now, step),
        Action::SkipIdle => replay::skip_idle(ui, cx.now),
        Action::NextAttention => jump(ui, cx.state),
        Action::Acknowledge => return acknowledge(ui, cx),
        Action::Why => {
            ui.overlays.extend(asked(cx.state, ui).map(|step| Overlay::Why { step, top: 0 }));
        }
        Action::Copy => return vec![UiEffect::Copy],
        Action::CopySession => return vec![UiEffect::CopySession(ui.selected)],
        Action::Pager => return vec![UiEffect::Pager(ui.selected)],
        Action::Editor => return vec![UiEffect::Editor(ui.selected)],
        Action::Shell => return vec![UiEffect::Shell(ui.selected)],
        Action::Mouse => {
            ui.mouse = !ui.mouse;
            return vec![UiEffect::Mouse(ui.mouse)];
        }
        Action::Repaint => return vec![UiEffect::Repaint],
        Action::Palette => ui.overlays.push(Overlay::Palette { query: String::new(), index: 0 }),
        Action::Help => ui.overlays.push(Overlay::Help { top: 0, query: None }),
        Action::Suspend => return vec![UiEffect::Suspend],
        Action::Quit => return quit(ui, cx),
    }
    Vec::new()
}

fn move_by(ui: &mut UiState, cx: Context<'_>, by: i32) {
    match ui.focus {
        Focus::Ticker if !ui.shows_one() => {
            ui.ticker_back = if by > 0 { ui.ticker_back.saturating_sub(1) } else { ui.ticker_back.saturating_add(1) };
        }
        Focus::Steps if !ui.shows_one() => ui.select_by(cx.state, by as isize),
        _ => scroll(ui, cx, Scroll::Rows(by)),
    }
}

fn to_end(ui: &mut UiState, cx: Context<'_>, last: bool) {
    match ui.focus {
        Focus::Ticker if !ui.shows_one() => ui.ticker_back = if last { 0 } else { History::KEPT },
        Focus::Steps if !ui.shows_one() => ui.select_by(cx.state, if last { isize::MAX } else { isize::MIN }),
        _ => scroll(ui, cx, if last { Scroll::End } else { Scroll::Start }),
    }
}

/// Folds or unfolds the group of the selected step; where stages lie beside each other the next one is selected.
fn sideways(ui: &mut UiState, state: &RunState, right: bool) {
    let Some(step) = state.step(ui.selected) else { return };
    if ui.mode == ViewMode::Flow && !ui.zoom {
        let beside =
            |s: &&crate::run::StepState| if right { s.logical > step.logical } else { s.logical < step.logical };
        let stages = state.steps.iter().filter(beside).map(|s| s.logical);
        let stage = if right { stages.min() } else { stages.max() };
        // As far down in its stage as this step is in its own.
        let place = state.steps.iter().filter(|s| s.logical == step.logical).position(|s| s.id == step.id).unwrap_or(0);
        let there: Vec<StepId> = state.steps.iter().filter(|s| Some(s.logical) == stage).map(|s| s.id).collect();
        if let Some(next) = there.get(place).or(there.last()) {
            ui.selected = *next;
        }
        return;
    }
    let branch = if right { rows::unfoldable(ui, state, step) } else { rows::foldable(ui, state, step) };
    match branch {
        Ok(rows::Branch::Agents) if right => drop(ui.folded_agents.remove(&step.id)),
        Ok(rows::Branch::Agents) => drop(ui.folded_agents.insert(step.id)),
        Ok(rows::Branch::Group) if right => drop(ui.folded.remove(&step.logical)),
        Ok(rows::Branch::Group) => {
            if let Some(first) = rows::group_of(state, step).and_then(|group| rows::members(state, group).first()) {
                ui.folded.insert(step.logical);
                ui.selected = first.id;
            }
        }
        // Why not was said before the key came here.
        Err(_) => {}
    }
}

/// Scrolls what the selected step shows: the log by its rows, a list by its entries, another tab by its own rows.
fn scroll(ui: &mut UiState, cx: Context<'_>, scroll: Scroll) {
    let half = usize::from(ui.size.1 / 2).max(1);
    let zoomed = ui.zoom;
    let selected = ui.selected;
    let tab = ui.tab(selected);
    if zoomed && entries::lists(tab) {
        if let Some(step) = cx.state.step(selected) {
            listed::scroll(ui, step, cx.entries, scroll);
        }
        return;
    }
    let pane = ui.pane_mut(selected);
    if tab == Tab::Output || !zoomed {
        pane.asked.push(scroll);
        return;
    }
    // These tabs are read from their beginning; the draw function limits it to what there is.
    let by = match scroll {
        Scroll::Rows(n) => n as isize,
        Scroll::Halves(n) => n as isize * (half / 2).max(1).cast_signed(),
        Scroll::Pages(n) => n as isize * half.cast_signed(),
        Scroll::Start => isize::MIN,
        Scroll::End => FURTHEST,
        // A position is one of the log.
        Scroll::To(_) => 0,
    };
    pane.lines.entry(tab).or_default().move_by(by);
}

/// A page on or back: of the panes where there are more than fit, else of the text.
fn page(ui: &mut UiState, cx: Context<'_>, by: i32) -> Vec<UiEffect> {
    let shown = layout(ui, cx.state);
    if shown.shape == Shape::Grid && ui.focus == Focus::Steps && shown.panes.len() < cx.state.steps.len() {
        let panes = isize::try_from(shown.panes.len()).unwrap_or(isize::MAX);
        ui.select_by(cx.state, if by < 0 { -panes } else { panes });
        return Vec::new();
    }
    turn(ui, cx, Scroll::Pages(by))
}

/// A page of the text, or half of one. Entries of a list may be higher than a row, which is known where they are laid out.
fn turn(ui: &mut UiState, cx: Context<'_>, by: Scroll) -> Vec<UiEffect> {
    if ui.zoom && entries::lists(ui.tab(ui.selected)) {
        ui.away = true;
        return vec![UiEffect::Page(by)];
    }
    scroll(ui, cx, by);
    Vec::new()
}

/// Further than this nothing is scrolled that is read from its beginning.
const FURTHEST: isize = 10_000_000;

fn back(ui: &mut UiState) -> Vec<UiEffect> {
    if ui.searching.take().is_some() {
        return Vec::new();
    }
    if ui.zoom {
        ui.leave_zoom();
    } else if ui.focus != Focus::Steps {
        ui.focus = Focus::Steps;
    } else if ui.filter.is_some() {
        ui.filter = None;
    } else if ui.search.is_some() {
        ui.search = None;
    } else if ui.mode != ViewMode::List {
        ui.mode = ViewMode::List;
    } else if ui.replay.is_some() {
        return vec![UiEffect::Replay(false)];
    } else if ui.from_fleet {
        return vec![UiEffect::Fleet];
    } else {
        ui.notice = None;
    }
    Vec::new()
}

fn interrupt(ui: &mut UiState, cx: Context<'_>) -> Vec<UiEffect> {
    match ui.armed {
        Some(question) if !ui.may_answer(question.shown, cx.now) => Vec::new(),
        Some(question) if cx.now >= question.since && cx.now.since(question.since) < ARMED_FOR => {
            ui.armed = None;
            vec![UiEffect::Interrupt]
        }
        _ => {
            ui.armed = Some(Question::new(cx.now));
            Vec::new()
        }
    }
}

fn take_back(ui: &mut UiState, state: &RunState) -> Vec<UiEffect> {
    compose::withdrawable(state, ui).map(UiEffect::TakeBack).into_iter().collect()
}

fn jump(ui: &mut UiState, state: &RunState) {
    let waiting: Vec<StepId> = attention(state, ui).iter().map(|a| a.step).collect();
    let next = waiting.iter().find(|s| **s > ui.selected).or_else(|| waiting.first());
    if let Some(step) = next {
        ui.selected = *step;
    }
}

/// Takes note: of what the runner told, in the run, so that every viewer knows; of anything else, and of a run that is
/// only looked at, for this deck alone.
fn acknowledge(ui: &mut UiState, cx: Context<'_>) -> Vec<UiEffect> {
    let waiting = attention(cx.state, ui);
    let Some(Attention { step, cause, notice, .. }) = foremost(&waiting, ui).cloned() else { return Vec::new() };
    ui.acknowledged.insert(step, cause);
    let whose = if is_foreign(cx.state) { " in this deck; its runner takes no note of it" } else { "" };
    say(ui, cx.now, false, &format!("step {step} acknowledged{whose}"));
    match notice {
        // A runner of others takes no such request: it is seen here and nowhere else.
        Some(notice) if cx.read_only.is_none() && !is_foreign(cx.state) => vec![UiEffect::Acknowledge(step, notice)],
        _ => Vec::new(),
    }
}

fn quit(ui: &mut UiState, cx: Context<'_>) -> Vec<UiEffect> {
    if cx.read_only.is_none()
        && !cx.state.is_over()
        && (living(cx.state) > 0 || cx.state.steps.iter().any(|s| !s.phase.is_terminal()))
    {
        ui.overlays.push(Overlay::Quit { question: Question::new(cx.now) });
        return Vec::new();
    }
    vec![UiEffect::Leave]
}

fn on_paste(ui: &mut UiState, cx: Context<'_>, text: &str) {
    match ui.overlays.last_mut() {
        Some(Overlay::Composer(_)) => compose::paste(ui, text),
        Some(
            Overlay::Palette { query, .. } | Overlay::Search { query, .. } | Overlay::Help { query: Some(query), .. },
        ) => query.push_str(SafeText::line(text).as_str()),
        Some(Overlay::Filter) => {
            ui.filter.get_or_insert_default().push_str(SafeText::line(text).as_str());
            rows::settle(ui, cx.state);
        }
        Some(Overlay::Budget(dialog)) => budget_dialog::paste(dialog, text),
        Some(Overlay::Answer(dialog)) => answer_dialog::paste(dialog, cx.state, text),
        Some(_) => {}
        None => match cx.state.step(ui.selected).map(can_steer) {
            Some(Ok(())) if cx.read_only.is_none() && !cx.state.is_over() => {
                compose::open(ui, cx, false, None);
                compose::paste(ui, text);
            }
            _ => say(ui, cx.now, true, "a paste is a message, and the selected step cannot be given one"),
        },
    }
}

/// Whether any clock that is on the screen moves by itself.
#[must_use]
pub fn clocks_run(state: &RunState, ui: &UiState) -> bool {
    ui.frozen.is_some() || !state.is_over() && state.started_at.is_some()
}

#[cfg(test)]
mod tests;
