//! What the deck does beside drawing: requests, the clipboard, the pager, suspending. Searches are `searching`'s.

use std::sync::Arc;

use super::{App, Moment, Source, Then, wall};
use crate::deck::changes::Opens;
use crate::deck::entries::{self, Entries};
use crate::deck::feed::{Hands, Request};
use crate::deck::listed;
use crate::deck::model::{Fate, Overlay, Scroll, Sent, Tab, UiEffect};
use crate::deck::reading::{self, Reader, Reading};
use crate::deck::replay::Known;
use crate::deck::sums::Sums;
use crate::deck::terminal::{self, Copied, Screen};
use crate::deck::update::say;
use crate::deck::view;
use crate::deck::{DeckError, DeckExit};
use crate::run::{RunMode, StepId, Timestamp, resume_line};
use crate::text::{SafeText, SecretLines, StyledLine};

impl<S: Source> App<'_, S> {
    pub(super) fn perform(&mut self, effect: UiEffect, now: Timestamp, screen: &mut Screen) -> Result<Then, DeckError> {
        match effect {
            UiEffect::Steer { targets, mode, message, key, home } => {
                let step = if let [only] = targets.as_slice() { Some(*only) } else { None };
                if self.send(&Request::Steer { targets, mode, message }, "steer", step, key, now) {
                    self.ui.drafts.remove(&home);
                }
            }
            UiEffect::Interrupt => {
                self.send(&Request::Interrupt, "interrupt", None, "i", now);
            }
            UiEffect::StopRun => {
                if !self.send(&Request::Stop, "stop", None, if self.ui.leave_when_over { "q, X" } else { "X" }, now) {
                    self.ui.leave_when_over = false;
                }
            }
            UiEffect::StopStep(step) => {
                self.send(&Request::StopStep(step), "stop", Some(step), "x", now);
            }
            UiEffect::Raise(step, raise) => self.raise(step, raise, now),
            UiEffect::Answer { step, question, answer } => self.answer(step, question, answer, now),
            UiEffect::TakeBack(id) => self.take_back(id, now),
            UiEffect::GoOn { step, message } => return Ok(self.go_on(step, &message, now)),
            UiEffect::Retry => return Ok(self.do_again(now)),
            UiEffect::Editor(step) => self.edit(step, screen, now)?,
            UiEffect::Shell(step) => self.shell(step, screen, now)?,
            UiEffect::Acknowledge(step, notice) => {
                self.send(&Request::Acknowledge(notice), "acknowledge", Some(step), "a", now);
            }
            UiEffect::EndLeft(step) => self.end_remains(step, now),
            UiEffect::Leave => {
                let state = self.source.state();
                let exit = match self.source.hands() {
                    Hands::Gone(_) => DeckExit::Gone(Box::new(state.clone())),
                    _ if state.is_over() => DeckExit::Ended,
                    _ => DeckExit::LeftRunning,
                };
                return Ok(Then::Leave(exit));
            }
            UiEffect::Fleet => return Ok(Then::Leave(DeckExit::Back)),
            UiEffect::Inside(path) => return Ok(Then::Leave(DeckExit::Inside(path, self.ui.selected))),
            UiEffect::Suspend => self.suspend(screen)?,
            UiEffect::Repaint => {
                self.git.forget();
                self.repaint(screen)?;
            }
            UiEffect::Mouse(on) => {
                screen.mouse(on).map_err(DeckError::Terminal)?;
                let text = if on { "the mouse is the deck's; hold shift to select text" } else { "the mouse is yours" };
                say(&mut self.ui, now, false, text);
            }
            UiEffect::Copy => self.copy(screen, now)?,
            UiEffect::CopySession(step) => self.copy_session(step, screen, now)?,
            UiEffect::Page(scroll) => self.turn(scroll),
            UiEffect::Pager(step) => self.page(step, screen, now)?,
            UiEffect::Open(step) => self.open(step),
            UiEffect::Find { opposite } => self.find(opposite),
            UiEffect::Freeze(true) => {
                let (state, history) = (self.source.state().clone(), self.history.clone());
                let lengths = state.steps.iter().map(|s| (s.id, self.source.log_len(s.id))).collect();
                self.moment = Some(Moment::Frozen { known: Box::new(Known { state, history }), lengths, at: now });
            }
            UiEffect::Freeze(false) => self.show_newest(),
            UiEffect::Replay(true) => self.begin_replay(),
            UiEffect::Replay(false) => self.end_replay(),
        }
        Ok(Then::Stay)
    }

    /// Shows the run as it is.
    pub(super) fn show_newest(&mut self) {
        self.moment = None;
        self.ui.missed = 0;
        self.ui.known = Some(Arc::new(Sums::of(self.source.state())));
        self.ui.settle(self.source.state());
    }

    /// Writes a request. Returns whether it is on disk.
    pub(super) fn send(
        &mut self,
        request: &Request,
        what: &'static str,
        step: Option<StepId>,
        key: &str,
        now: Timestamp,
    ) -> bool {
        match self.source.send(request, key) {
            Ok(id) => {
                self.ui.notice = None;
                // The life of a message is told by the state of the run; of what the runner answers, by its answer.
                // A child of a workflow answers in its own inbox.
                let awaited = match request {
                    Request::Steer { .. } => self.source.state().mode == RunMode::Workflow,
                    Request::Raise(..) | Request::TakeBack(_) | Request::Answer(..) => id.is_some(),
                    _ => false,
                };
                let fate = if awaited { Fate::Awaited } else { Fate::Unanswered };
                self.ui.sent.push(Sent { id, what, step, at: now, fate });
                true
            }
            Err(why) => {
                say(&mut self.ui, now, true, &format!("{what} was not written: {why}"));
                false
            }
        }
    }

    /// Shows the entry that the keys are at in full.
    fn open(&mut self, step: StepId) {
        let entry = if entries::lists(self.ui.tab(step)) { self.entry(step) } else { self.behind(step) };
        let Some(mut text) = entry else {
            return say(&mut self.ui, wall(), false, "there is nothing to open on this line");
        };
        // What was looked for is what one wants to see of it.
        if let Some(needle) = self.ui.needle().filter(|needle| needle.is_in_any(&text.lines)) {
            text.find(&needle, false, self.ui.size.0);
        }
        self.ui.overlays.push(Overlay::Reading(text));
    }

    /// What the line that the keys are at stands for, in full.
    fn behind(&mut self, step: StepId) -> Option<Reading> {
        let windows = self.windows();
        let opens = self.scene(|scene, ui| view::opens(scene, ui, &windows));
        let (state, entries) = self.then();
        if let (Opens::File(path), Some(found)) = (&opens, state.step(step)) {
            let numbers = entries.calls_on_file(found, path);
            let newest = numbers.get(numbers.len().saturating_sub(reading::CALLS)..).unwrap_or_default();
            let needs = entries.calls_need(found, newest);
            self.older.fetch(&needs);
        }
        let (state, entries) = self.then();
        let reader = Reader { state, entries, zone: &self.zone };
        let diff = windows.diff.as_deref().filter(|diff| diff.step == Some(step));
        reader.behind(&self.source, step, &opens, diff)
    }

    /// The entry that the keys are at in full.
    fn entry(&mut self, step: StepId) -> Option<Reading> {
        self.fetch_older();
        let (state, entries) = self.then();
        let listed = entries.listed(&self.ui, state.step(step)?);
        let reader = Reader { state, entries, zone: &self.zone };
        reader.open(&self.source, &self.facts.1, step, self.ui.tab(step), &listed)
    }

    /// Goes a page further among the entries that the selected step lists.
    fn turn(&mut self, scroll: Scroll) {
        self.fetch_older();
        let windows = self.windows();
        let by = self.scene(|scene, ui| view::page(scene, ui, &windows, scroll));
        let Self { source, history, older, ui, moment, .. } = self;
        let (state, history) = super::then(source, history, moment.as_ref());
        if let Some(step) = state.step(ui.selected) {
            listed::scroll(ui, step, Entries { history, older }, Scroll::Rows(by));
        }
    }

    fn copy(&mut self, screen: &mut Screen, now: Timestamp) -> Result<(), DeckError> {
        if let Some(Overlay::Reading(text)) = self.ui.overlays.last() {
            let lines = text.lines.clone();
            return self.copy_lines(&lines, screen, now);
        }
        let step = self.ui.selected;
        let lines = match self.ui.tab(step) {
            tab if self.ui.zoom && entries::lists(tab) => self.entry(step).map(|entry| entry.lines).unwrap_or_default(),
            Tab::Budget | Tab::Changes if self.ui.zoom => self.tab_text(),
            _ => self.visible_lines(step),
        };
        self.copy_lines(&lines, screen, now)
    }

    /// The lines of a log of which anything is visible, whole: as they were printed, neither wrapped nor folded.
    fn visible_lines(&mut self, step: StepId) -> Vec<SafeText> {
        let rows = self.windows().logs.remove(&step).map(|window| window.rows).unwrap_or_default();
        let mut lines: Vec<SafeText> = Vec::new();
        let mut newest = None;
        let mut above = SecretLines::default();
        for row in rows {
            if let Some(again) = row.again {
                let same = lines.last().cloned().unwrap_or_default();
                lines.extend(std::iter::repeat_n(same, again.times));
            } else if newest != Some(row.anchor.line) {
                newest = Some(row.anchor.line);
                lines.extend(self.source.lines_from(step, row.anchor.line, 1).first().map(|line| {
                    let mut styled = StyledLine::whole(&line.bytes);
                    if !self.ui.reveal {
                        styled.mask(&mut above);
                    }
                    styled.text()
                }));
            }
        }
        lines
    }

    fn copy_session(&mut self, step: StepId, screen: &mut Screen, now: Timestamp) -> Result<(), DeckError> {
        let Some(command) = self.source.state().step(step).and_then(resume_line) else { return Ok(()) };
        let command = SafeText::line(&command);
        let sent = screen.copy_word(&command).map_err(DeckError::Terminal)?;
        let text = match sent {
            Copied::Nothing => "there is nothing to copy".to_owned(),
            Copied::All => format!("sent to the terminal's clipboard: {command}"),
            Copied::Beginning(bytes) => only_the_beginning(bytes),
        };
        say(&mut self.ui, now, sent != Copied::All, &text);
        Ok(())
    }

    fn copy_lines(&mut self, lines: &[SafeText], screen: &mut Screen, now: Timestamp) -> Result<(), DeckError> {
        let mut above = SecretLines::default();
        let mut masked = |line: &SafeText| if self.ui.reveal { line.clone() } else { line.masked_below(&mut above) };
        let lines: Vec<SafeText> = lines.iter().map(&mut masked).collect();
        let sent = screen.copy(&lines).map_err(DeckError::Terminal)?;
        let text = match sent {
            Copied::Nothing => "there is nothing to copy".to_owned(),
            Copied::All if lines.len() == 1 => "1 line sent to the terminal's clipboard".to_owned(),
            Copied::All => format!("{} lines sent to the terminal's clipboard", lines.len()),
            Copied::Beginning(bytes) => only_the_beginning(bytes),
        };
        say(&mut self.ui, now, sent != Copied::All, &text);
        Ok(())
    }

    pub(super) fn suspend(&mut self, screen: &mut Screen) -> Result<(), DeckError> {
        self.lent = true;
        screen.lend(terminal::stop_self).map_err(DeckError::Terminal)?;
        self.repaint(screen)
    }
}

/// What is said of a copy that is too long for a clipboard.
fn only_the_beginning(bytes: u64) -> String {
    format!("the first {} sent to the terminal's clipboard, which takes no more", crate::text::bytes(bytes))
}
