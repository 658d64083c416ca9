//! What the deck does beside drawing: requests, searches, the clipboard, the pager, suspending.

use crossterm::event::EventStream;

use super::{App, Finding, Frozen, SLICE, Source, Then, wall};
use crate::deck::feed::{Find, Request};
use crate::deck::model::{Anchor, Position, Scroll, Sent, UiEffect};
use crate::deck::terminal::{self, Screen};
use crate::deck::update::say;
use crate::deck::{DeckError, DeckExit};
use crate::run::{StepId, Timestamp};
use crate::text::SafeText;

impl<S: Source> App<S> {
    pub(super) fn perform(
        &mut self,
        effect: UiEffect,
        now: Timestamp,
        screen: &mut Screen,
        keys: &mut Option<EventStream>,
    ) -> Result<Then, DeckError> {
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
                if !self.send(&Request::Stop, "stop", None, "X", now) {
                    self.ui.leave_when_over = false;
                }
            }
            UiEffect::StopStep(step) => {
                self.send(&Request::StopStep(step), "stop", Some(step), "x", now);
            }
            UiEffect::Leave => {
                let state = self.source.state();
                let exit = if state.is_over() { DeckExit::Ended } else { DeckExit::LeftRunning };
                return Ok(Then::Leave(exit));
            }
            UiEffect::Suspend => self.suspend(screen, keys)?,
            UiEffect::Repaint => self.repaint(screen)?,
            UiEffect::Mouse(on) => {
                screen.mouse(on).map_err(DeckError::Terminal)?;
                let text = if on { "the mouse is the deck's; hold shift to select text" } else { "the mouse is yours" };
                say(&mut self.ui, now, false, text);
            }
            UiEffect::Copy => self.copy(screen, now)?,
            UiEffect::Pager(step) => self.page(step, screen, keys, now)?,
            UiEffect::Find { opposite } => self.find(opposite),
            UiEffect::Freeze(true) => {
                let (state, history) = (self.source.state().clone(), self.history.clone());
                let lengths = state.steps.iter().map(|s| (s.id, self.source.log_len(s.id))).collect();
                self.frozen = Some(Frozen { state, history, lengths, at: now });
            }
            UiEffect::Freeze(false) => self.frozen = None,
        }
        Ok(Then::Stay)
    }

    /// Writes a request. Returns whether it is on disk.
    fn send(&mut self, request: &Request, what: &'static str, step: Option<StepId>, key: &str, now: Timestamp) -> bool {
        match self.source.send(request, key) {
            Ok(id) => {
                self.ui.notice = None;
                self.ui.sent.push(Sent { id, what, step, at: now });
                true
            }
            Err(why) => {
                say(&mut self.ui, now, true, &format!("{what} was not written: {why}"));
                false
            }
        }
    }

    /// Begins a search.
    fn find(&mut self, opposite: bool) {
        let step = self.ui.selected;
        let len = self.source.log_len(step);
        let position = self.ui.pane(step).output;
        let Some(search) = &self.ui.search else { return };
        let back = search.back != opposite;
        let from = match (search.found.filter(|(s, _)| *s == step), position) {
            (Some((_, at)), _) if back => at,
            (Some((_, at)), _) => at + 1,
            (None, Position::Follow) if back => len,
            (None, Position::Follow) => 0,
            (None, Position::At { top, .. }) => top.line,
        };
        self.finding = Some(Finding { step, needle: search.needle.clone(), begun: from, from, back });
        self.ui.searching = Some(0);
    }

    /// Looks at the next slice. Returns whether there is something to show.
    pub(super) fn find_on(&mut self) -> bool {
        let Some(finding) = &mut self.finding else { return false };
        if self.ui.searching.is_none() {
            self.finding = None;
            return true;
        }
        let found = self.source.find(finding.step, &finding.needle, finding.from, finding.back, SLICE);
        match found {
            Find::More(from) => {
                finding.from = from;
                let (done, len) = if finding.back {
                    (finding.begun.saturating_sub(from), finding.begun)
                } else {
                    (from - finding.begun, self.source.log_len(finding.step).saturating_sub(finding.begun))
                };
                let percent = u8::try_from(done.saturating_mul(100) / len.max(1)).unwrap_or(99).min(99);
                return self.ui.searching.replace(percent) != Some(percent);
            }
            Find::At(at) => {
                let step = finding.step;
                // The line that holds the match begins at the last line start that is not behind it.
                let line = self.source.lines_before(step, at + 1, 1).pop().filter(|l| l.end > at);
                let line = line.or_else(|| self.source.lines_from(step, at, 1).pop()).map_or(at, |l| l.start);
                let seen = self.source.log_len(step);
                let pane = self.ui.pane_mut(step);
                pane.output = Position::At { top: Anchor { line, row: 0 }, seen };
                // A little of what was before it tells what it is about.
                pane.asked = vec![Scroll::Rows(-3)];
                if let Some(search) = &mut self.ui.search {
                    search.found = Some((step, at));
                }
                self.ui.notice = None;
            }
            Find::Nowhere => {
                let where_to = if finding.back { "above" } else { "below" };
                let text = format!("\"{}\" is nowhere {where_to}; N looks the other way", finding.needle);
                say(&mut self.ui, wall(), true, &text);
            }
        }
        self.finding = None;
        self.ui.searching = None;
        true
    }

    fn copy(&mut self, screen: &mut Screen, now: Timestamp) -> Result<(), DeckError> {
        let windows = self.windows();
        let rows = windows.logs.get(&self.ui.selected).map(|w| w.rows.as_slice()).unwrap_or_default();
        let lines: Vec<SafeText> = rows
            .iter()
            .map(|r| SafeText::line(&r.runs.iter().map(|run| run.text.as_str()).collect::<String>()))
            .collect();
        let sent = screen.copy(&lines).map_err(DeckError::Terminal)?;
        let text = if sent {
            format!("{} lines sent to the terminal's clipboard", lines.len())
        } else {
            "there is nothing to copy".to_owned()
        };
        say(&mut self.ui, now, !sent, &text);
        Ok(())
    }

    pub(super) fn suspend(&mut self, screen: &mut Screen, keys: &mut Option<EventStream>) -> Result<(), DeckError> {
        // An event stream reads even when nobody polls it, so it has to go first.
        *keys = None;
        screen.lend(terminal::stop_self).map_err(DeckError::Terminal)?;
        *keys = Some(EventStream::new());
        self.repaint(screen)
    }

    fn page(
        &mut self,
        step: StepId,
        screen: &mut Screen,
        keys: &mut Option<EventStream>,
        now: Timestamp,
    ) -> Result<(), DeckError> {
        let Some(path) = self.source.log_path(step) else {
            say(&mut self.ui, now, true, "this step has no log yet");
            return Ok(());
        };
        let pager = std::env::var("PAGER").ok().filter(|p| !p.trim().is_empty()).unwrap_or_else(|| "less".to_owned());
        let mut words = pager.split_whitespace();
        let program = words.next().unwrap_or("less").to_owned();
        let arguments: Vec<String> = words.map(str::to_owned).collect();
        *keys = None;
        let ended = screen
            .lend(|| std::process::Command::new(&program).args(&arguments).arg("--").arg(&path).status())
            .map_err(DeckError::Terminal)?;
        *keys = Some(EventStream::new());
        if let Err(error) = ended {
            say(&mut self.ui, now, true, &format!("{program} could not be started: {error}"));
        }
        self.repaint(screen)
    }
}
