//! Input to changes of the picture and to effects. Pure: the run, the clock and the terminal are arguments, and what
//! reaches the world is a value.
//!
//! A key goes to the topmost overlay; only without one is it looked up in the table of actions. A paste is text and
//! never a key.

use std::time::Duration;

use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, MouseButton, MouseEvent, MouseEventKind};

use super::actions::{self, Action, Situation};
use super::compose;
use super::model::{
    Attention, Danger, Focus, Notice, Overlay, Position, Question, Scroll, Search, Tab, UiEffect, UiState, ViewMode,
    attention, can_steer, living, needs_person,
};
use super::view::layout::{Spot, spot};
use crate::run::{RunState, StepFace, StepId, StepPhase, Timestamp};
use crate::text::SafeText;

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
    match input {
        Input::Key(key) if matches!(key.kind, KeyEventKind::Press | KeyEventKind::Repeat) => on_key(ui, cx, *key),
        Input::Paste(text) => {
            on_paste(ui, cx, text);
            Vec::new()
        }
        Input::Resize(width, height) => {
            ui.size = (*width, *height);
            Vec::new()
        }
        Input::Mouse(mouse) => on_mouse(ui, cx, *mouse),
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
    if ui.armed.is_some_and(|q| now.since(q.since) >= ARMED_FOR) {
        ui.armed = None;
        changed = true;
    }
    if ui.notice.as_ref().is_some_and(|n| n.until <= now) {
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

fn on_key(ui: &mut UiState, cx: Context<'_>, key: KeyEvent) -> Vec<UiEffect> {
    match ui.overlays.last() {
        None => match actions::lookup(key) {
            Some(action) => act_on_key(ui, cx, action, key),
            None => Vec::new(),
        },
        Some(Overlay::Composer(_)) => compose::on_key(ui, cx, key),
        Some(Overlay::Palette { .. }) => on_palette_key(ui, cx, key),
        Some(Overlay::Search { .. }) => on_search_key(ui, key),
        Some(Overlay::Help { .. } | Overlay::Why(_)) => on_reading_key(ui, key),
        Some(Overlay::Confirm { what, question }) => {
            let (what, shown) = (*what, question.shown);
            on_confirm_key(ui, cx, key, what, shown)
        }
        Some(Overlay::Quit { question }) => {
            let shown = question.shown;
            on_quit_key(ui, cx, key, shown)
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
        say(ui, cx.now, true, &why);
        return Vec::new();
    }
    match action {
        Action::Down => move_by(ui, cx.state, 1),
        Action::Up => move_by(ui, cx.state, -1),
        Action::First => to_end(ui, cx.state, false),
        Action::Last => to_end(ui, cx.state, true),
        Action::HalfDown => scroll(ui, Scroll::Halves(1)),
        Action::HalfUp => scroll(ui, Scroll::Halves(-1)),
        Action::PageDown => scroll(ui, Scroll::Pages(1)),
        Action::PageUp => scroll(ui, Scroll::Pages(-1)),
        Action::PreviousStep => ui.select_by(cx.state, -1),
        Action::NextStep => ui.select_by(cx.state, 1),
        Action::NextPane => {
            ui.focus = match ui.focus {
                Focus::Steps => Focus::Output,
                Focus::Output => Focus::Ticker,
                Focus::Ticker => Focus::Steps,
            };
        }
        Action::Back => back(ui),
        Action::Zoom => ui.zoom = !ui.zoom,
        Action::View => {
            ui.zoom = false;
            ui.mode = match ui.mode {
                ViewMode::List => ViewMode::Grid,
                ViewMode::Grid => ViewMode::Tabs,
                ViewMode::Tabs => ViewMode::List,
            };
        }
        Action::Tab(tab) => {
            let selected = ui.selected;
            ui.pane_mut(selected).tab = tab;
            ui.zoom = true;
        }
        Action::Follow => {
            ui.ticker_back = 0;
            scroll(ui, Scroll::End);
        }
        Action::Freeze => {
            ui.frozen = if ui.frozen.is_some() { None } else { Some(cx.now) };
            return vec![UiEffect::Freeze(ui.frozen.is_some())];
        }
        Action::Wrap => ui.wrap = !ui.wrap,
        Action::Search => ui.overlays.push(Overlay::Search { query: String::new() }),
        Action::SearchNext => return vec![UiEffect::Find { opposite: false }],
        Action::SearchPrevious => return vec![UiEffect::Find { opposite: true }],
        Action::Steer => compose::open(ui, cx, false),
        Action::SteerAll => compose::open(ui, cx, true),
        Action::Interrupt => return interrupt(ui, cx),
        Action::StopStep => {
            let what = Danger::Step(ui.selected);
            ui.overlays.push(Overlay::Confirm { what, question: Question::new(cx.now) });
        }
        Action::StopRun => ui.overlays.push(Overlay::Confirm { what: Danger::Run, question: Question::new(cx.now) }),
        Action::NextAttention => jump(ui, cx.state),
        Action::Acknowledge => acknowledge(ui, cx),
        Action::Why => ui.overlays.push(Overlay::Why(ui.selected)),
        Action::Copy => return vec![UiEffect::Copy],
        Action::Pager => return vec![UiEffect::Pager(ui.selected)],
        Action::Mouse => {
            ui.mouse = !ui.mouse;
            return vec![UiEffect::Mouse(ui.mouse)];
        }
        Action::Repaint => return vec![UiEffect::Repaint],
        Action::Palette => ui.overlays.push(Overlay::Palette { query: String::new(), index: 0 }),
        Action::Help => ui.overlays.push(Overlay::Help { top: 0 }),
        Action::Suspend => return vec![UiEffect::Suspend],
        Action::Quit => return quit(ui, cx),
    }
    Vec::new()
}

fn move_by(ui: &mut UiState, state: &RunState, by: i32) {
    match ui.focus {
        Focus::Ticker if !ui.shows_one() => {
            ui.ticker_back = if by > 0 { ui.ticker_back.saturating_sub(1) } else { ui.ticker_back + 1 };
        }
        Focus::Steps if !ui.shows_one() => ui.select_by(state, by as isize),
        _ => scroll(ui, Scroll::Rows(by)),
    }
}

fn to_end(ui: &mut UiState, state: &RunState, last: bool) {
    match ui.focus {
        Focus::Ticker if !ui.shows_one() => ui.ticker_back = if last { 0 } else { usize::MAX },
        Focus::Steps if !ui.shows_one() => ui.select_by(state, if last { isize::MAX } else { isize::MIN }),
        _ => scroll(ui, if last { Scroll::End } else { Scroll::Start }),
    }
}

/// Scrolls what the selected step shows: the log by its rows, another tab by its own.
fn scroll(ui: &mut UiState, scroll: Scroll) {
    let half = usize::from(ui.size.1 / 2).max(1);
    let zoomed = ui.zoom;
    let selected = ui.selected;
    let pane = ui.pane_mut(selected);
    if pane.tab == Tab::Output || !zoomed {
        pane.asked.push(scroll);
        return;
    }
    let back = pane.back.entry(pane.tab).or_default();
    let (up, rows) = match scroll {
        Scroll::Rows(n) => (n < 0, usize::try_from(n.unsigned_abs()).unwrap_or(0)),
        Scroll::Halves(n) | Scroll::Pages(n) => (n < 0, half),
        Scroll::Start => (true, usize::MAX),
        Scroll::End => (false, usize::MAX),
    };
    // The draw function limits it to what there is.
    *back = if up { back.saturating_add(rows) } else { back.saturating_sub(rows) };
}

fn back(ui: &mut UiState) {
    if ui.zoom {
        ui.zoom = false;
    } else if ui.focus != Focus::Steps {
        ui.focus = Focus::Steps;
    } else if ui.mode != ViewMode::List {
        ui.mode = ViewMode::List;
    } else {
        ui.notice = None;
    }
}

fn interrupt(ui: &mut UiState, cx: Context<'_>) -> Vec<UiEffect> {
    match ui.armed {
        Some(question) if !question.shown => Vec::new(),
        Some(question) if cx.now.since(question.since) < ARMED_FOR => {
            ui.armed = None;
            vec![UiEffect::Interrupt]
        }
        _ => {
            ui.armed = Some(Question::new(cx.now));
            Vec::new()
        }
    }
}

fn jump(ui: &mut UiState, state: &RunState) {
    let waiting: Vec<StepId> = attention(state, ui).iter().map(|a| a.step).collect();
    let next = waiting.iter().find(|s| **s > ui.selected).or_else(|| waiting.first());
    if let Some(step) = next {
        ui.selected = *step;
    }
}

fn acknowledge(ui: &mut UiState, cx: Context<'_>) {
    let waiting = attention(cx.state, ui);
    let chosen = waiting.iter().find(|a| a.step == ui.selected).or_else(|| waiting.first());
    if let Some(Attention { step, reason, .. }) = chosen {
        ui.acknowledged.insert(*step, reason.clone());
        say(ui, cx.now, false, &format!("step {step} acknowledged"));
    }
}

fn quit(ui: &mut UiState, cx: Context<'_>) -> Vec<UiEffect> {
    if cx.read_only.is_none()
        && !cx.state.is_over()
        && (living(cx.state) > 0 || cx.state.steps_ended() < cx.state.steps.len())
    {
        ui.overlays.push(Overlay::Quit { question: Question::new(cx.now) });
        return Vec::new();
    }
    vec![UiEffect::Leave]
}

fn on_quit_key(ui: &mut UiState, cx: Context<'_>, key: KeyEvent, shown: bool) -> Vec<UiEffect> {
    let cancels = matches!(key.code, KeyCode::Esc | KeyCode::Char('n'));
    if cancels || cx.state.is_over() {
        ui.overlays.pop();
        return if cx.state.is_over() && !cancels { vec![UiEffect::Leave] } else { Vec::new() };
    }
    if !shown {
        return Vec::new();
    }
    match (actions::lookup(key), key.code) {
        (Some(Action::Quit), _) | (_, KeyCode::Char('l') | KeyCode::Enter) => {
            ui.overlays.pop();
            vec![UiEffect::Leave]
        }
        (_, KeyCode::Char('s')) => {
            ui.overlays.pop();
            ui.leave_when_over = true;
            vec![UiEffect::StopRun]
        }
        (_, KeyCode::Char('c')) => {
            ui.overlays.pop();
            Vec::new()
        }
        _ => Vec::new(),
    }
}

fn on_confirm_key(ui: &mut UiState, cx: Context<'_>, key: KeyEvent, what: Danger, shown: bool) -> Vec<UiEffect> {
    match key.code {
        KeyCode::Char('y' | 'Y') if shown => {
            ui.overlays.pop();
            match what {
                Danger::Run if !cx.state.is_over() => vec![UiEffect::StopRun],
                Danger::Step(step) if cx.state.step(step).is_some_and(|s| s.phase == StepPhase::Running) => {
                    vec![UiEffect::StopStep(step)]
                }
                _ => {
                    say(ui, cx.now, false, "it has ended by itself");
                    Vec::new()
                }
            }
        }
        KeyCode::Esc | KeyCode::Enter | KeyCode::Char('n' | 'N' | 'q') => {
            ui.overlays.pop();
            Vec::new()
        }
        KeyCode::Char('c') if actions::lookup(key) == Some(Action::Quit) => {
            ui.overlays.pop();
            Vec::new()
        }
        _ => Vec::new(),
    }
}

fn on_reading_key(ui: &mut UiState, key: KeyEvent) -> Vec<UiEffect> {
    let page = usize::from(ui.size.1 / 2).max(1);
    let action = actions::lookup(key);
    if let Some(Overlay::Help { top }) = ui.overlays.last_mut() {
        match action {
            Some(Action::Down) => return moved(top, 1, true),
            Some(Action::Up) => return moved(top, 1, false),
            Some(Action::PageDown | Action::HalfDown) => return moved(top, page, true),
            Some(Action::PageUp | Action::HalfUp) => return moved(top, page, false),
            Some(Action::First) => return moved(top, usize::MAX, false),
            Some(Action::Last) => return moved(top, usize::from(u16::MAX), true),
            Some(Action::Repaint) => return vec![UiEffect::Repaint],
            Some(Action::Suspend) => return vec![UiEffect::Suspend],
            _ => {}
        }
    }
    ui.overlays.pop();
    Vec::new()
}

fn moved(top: &mut usize, by: usize, down: bool) -> Vec<UiEffect> {
    // Limited by the draw function, which knows how much there is; kept small so that the way back is short.
    *top = if down { top.saturating_add(by).min(actions::TABLE.len() + 8) } else { top.saturating_sub(by) };
    Vec::new()
}

fn on_palette_key(ui: &mut UiState, cx: Context<'_>, key: KeyEvent) -> Vec<UiEffect> {
    let ctrl = super::model::Key::from(key).ctrl;
    let Some(Overlay::Palette { query, index }) = ui.overlays.last_mut() else { return Vec::new() };
    let count = actions::search(query).len();
    match key.code {
        KeyCode::Esc => {
            ui.overlays.pop();
        }
        KeyCode::Char('c' | 'g') if ctrl => {
            ui.overlays.pop();
        }
        KeyCode::Enter => {
            let chosen = actions::search(query).get(*index).map(|r| r.action);
            ui.overlays.pop();
            if let Some(action) = chosen {
                return perform(ui, cx, action);
            }
        }
        KeyCode::Down | KeyCode::Tab => *index = (*index + 1).min(count.saturating_sub(1)),
        KeyCode::Char('n') if ctrl => *index = (*index + 1).min(count.saturating_sub(1)),
        KeyCode::Up | KeyCode::BackTab => *index = index.saturating_sub(1),
        KeyCode::Char('p') if ctrl => *index = index.saturating_sub(1),
        KeyCode::Backspace => {
            query.pop();
            *index = 0;
        }
        KeyCode::Char('u') if ctrl => query.clear(),
        KeyCode::Char(c) if !ctrl => {
            query.push(c);
            *index = 0;
        }
        _ => {}
    }
    Vec::new()
}

fn on_search_key(ui: &mut UiState, key: KeyEvent) -> Vec<UiEffect> {
    let ctrl = super::model::Key::from(key).ctrl;
    let Some(Overlay::Search { query }) = ui.overlays.last_mut() else { return Vec::new() };
    match key.code {
        KeyCode::Enter => {
            let needle = query.clone();
            ui.overlays.pop();
            if needle.is_empty() {
                ui.search = None;
                return Vec::new();
            }
            // Who follows the end looks for what has been; who reads looks for what comes.
            let back = ui.pane(ui.selected).output == Position::Follow;
            ui.search = Some(Search { needle, back, found: None });
            let selected = ui.selected;
            ui.pane_mut(selected).tab = Tab::Output;
            return vec![UiEffect::Find { opposite: false }];
        }
        KeyCode::Esc => {
            ui.overlays.pop();
            ui.search = None;
        }
        KeyCode::Char('c' | 'g') if ctrl => {
            ui.overlays.pop();
        }
        KeyCode::Char('u') if ctrl => query.clear(),
        KeyCode::Backspace if query.is_empty() => {
            ui.overlays.pop();
        }
        KeyCode::Backspace => {
            query.pop();
        }
        KeyCode::Char(c) if !ctrl => query.push(c),
        _ => {}
    }
    Vec::new()
}

fn on_paste(ui: &mut UiState, cx: Context<'_>, text: &str) {
    match ui.overlays.last_mut() {
        Some(Overlay::Composer(_)) => compose::paste(ui, text),
        Some(Overlay::Palette { query, .. } | Overlay::Search { query }) => {
            query.push_str(SafeText::line(text).as_str())
        }
        Some(_) => {}
        None => match cx.state.step(ui.selected).map(can_steer) {
            Some(Ok(())) if cx.read_only.is_none() && !cx.state.is_over() => {
                compose::open(ui, cx, false);
                compose::paste(ui, text);
            }
            _ => say(ui, cx.now, true, "a paste is a message, and the selected step cannot be given one"),
        },
    }
}

fn on_mouse(ui: &mut UiState, cx: Context<'_>, mouse: MouseEvent) -> Vec<UiEffect> {
    if !ui.overlays.is_empty() {
        return Vec::new();
    }
    let place = spot(ui, cx.state, mouse.column, mouse.row);
    match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) => match place {
            Some(Spot::Step(step)) if ui.selected == step && ui.focus == Focus::Steps && !ui.shows_one() => {
                ui.zoom = true;
            }
            Some(Spot::Step(step)) => {
                ui.selected = step;
                ui.focus = Focus::Steps;
            }
            Some(Spot::Output(step)) => {
                ui.selected = step;
                ui.focus = Focus::Output;
            }
            Some(Spot::Ticker) => ui.focus = Focus::Ticker,
            None => {}
        },
        MouseEventKind::ScrollUp | MouseEventKind::ScrollDown => {
            let by = if mouse.kind == MouseEventKind::ScrollUp { -3 } else { 3 };
            match place {
                Some(Spot::Output(step)) if ui.zoom => {
                    ui.selected = step;
                    scroll(ui, Scroll::Rows(by));
                }
                Some(Spot::Output(step)) => ui.pane_mut(step).asked.push(Scroll::Rows(by)),
                Some(Spot::Step(_)) => ui.select_by(cx.state, by.signum() as isize),
                Some(Spot::Ticker) => {
                    ui.ticker_back = if by > 0 { ui.ticker_back.saturating_sub(3) } else { ui.ticker_back + 3 };
                }
                None => {}
            }
        }
        _ => {}
    }
    Vec::new()
}

/// Whether any clock that is on the screen moves by itself.
#[must_use]
pub fn clocks_run(state: &RunState, ui: &UiState) -> bool {
    ui.frozen.is_some() || !state.is_over() && state.started_at.is_some() || state.steps.iter().any(retries)
}

fn retries(step: &crate::run::StepState) -> bool {
    step.phase == StepPhase::Running && step.face() != StepFace::Queued
}

/// The evidence for a step's attention, line by line.
#[must_use]
pub fn evidence(state: &RunState, step: StepId, now: Timestamp) -> Vec<(String, String)> {
    let Some(step) = state.step(step) else { return Vec::new() };
    let Some(attention) = needs_person(step) else { return Vec::new() };
    let mut lines = vec![("rule".to_owned(), attention.rule.to_owned()), ("reason".to_owned(), attention.reason)];
    if let Some(since) = attention.since {
        lines.push(("since".to_owned(), format!("{} ago", crate::text::span(now.since(since)))));
    }
    if let Some(at) = step.last_activity {
        lines.push(("last activity".to_owned(), format!("{} ago", crate::text::span(now.since(at)))));
    }
    lines.extend(step.open.iter().map(|call| {
        let open = crate::text::span(now.since(call.started_at));
        ("open tool".to_owned(), format!("{} {}, {open}", call.tool, call.args))
    }));
    lines
}

#[cfg(test)]
mod tests;
