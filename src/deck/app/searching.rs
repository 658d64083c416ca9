//! Searching the output of a step: the next match, and how many there are. Both go through the log a slice at a time,
//! between two looks at the keys.

use std::collections::VecDeque;

use super::{App, Source, wall};
use crate::deck::feed::Find;
use crate::deck::model::{Anchor, Count, Position, Scroll, Tab};
use crate::deck::update::say;
use crate::run::StepId;
use crate::text::SafeText;

/// As much of a log is searched between two looks at the keys.
const SLICE: usize = 4 * 1024 * 1024;

/// A search that goes on.
pub(super) struct Finding {
    step: StepId,
    needle: String,
    /// Where it began.
    begun: u64,
    /// Where it goes on.
    from: u64,
    back: bool,
    /// The first look found nothing on its side; this one is at the other.
    wrapped: bool,
    /// Where it goes on when there is nothing here: the other steps, and at last the rest of the one it began in.
    others: VecDeque<StepId>,
}

/// A count that goes on.
pub(super) struct Counting {
    step: StepId,
    needle: String,
    /// The match that is shown.
    at: u64,
    /// Where it goes on.
    from: u64,
    /// Where it ends: what came later is not counted.
    upto: u64,
    /// Matches up to the one that is shown, and all of them.
    nth: u64,
    total: u64,
}

impl<S: Source> App<'_, S> {
    /// Begins a search.
    pub(super) fn find(&mut self, opposite: bool) {
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
        let needle = search.needle.clone();
        let others = if search.everywhere { self.others(step, back) } else { VecDeque::new() };
        self.finding = Some(Finding { step, needle, begun: from, from, back, wrapped: false, others });
        self.ui.searching = Some(0);
    }

    /// The steps around this one in the direction of a search, this one last.
    fn others(&self, step: StepId, back: bool) -> VecDeque<StepId> {
        let steps = &self.source.state().steps;
        let mut order: VecDeque<StepId> = steps.iter().map(|s| s.id).collect();
        if back {
            order = order.into_iter().rev().collect();
        }
        let at = order.iter().position(|id| *id == step).unwrap_or(0);
        order.rotate_left(if order.is_empty() { 0 } else { (at + 1) % order.len() });
        order
    }

    /// Looks at the next slice. Returns whether there is something to show.
    pub(super) fn find_on(&mut self) -> bool {
        let Some(finding) = &mut self.finding else { return self.count_on() };
        if self.ui.searching.is_none() {
            self.finding = None;
            return true;
        }
        let found = self.source.find(finding.step, &finding.needle, finding.from, finding.back, SLICE);
        let len = self.source.log_len(finding.step);
        match found {
            Find::More(from) => {
                finding.from = from;
                let (done, len) = if finding.back {
                    (finding.begun.saturating_sub(from), finding.begun)
                } else {
                    (from.saturating_sub(finding.begun), len.saturating_sub(finding.begun))
                };
                let percent = u8::try_from(done.saturating_mul(100) / len.max(1)).unwrap_or(99).min(99);
                return self.ui.searching.replace(percent) != Some(percent);
            }
            Find::At(at) => self.found(at),
            Find::Nowhere if !finding.others.is_empty() => {
                let Some(next) = finding.others.pop_front() else { return false };
                finding.step = next;
                finding.wrapped = finding.others.is_empty();
                let len = self.source.log_len(next);
                finding.begun = if finding.back { len } else { 0 };
                finding.from = finding.begun;
                return false;
            }
            Find::Nowhere => {
                let shown = self.ui.search.as_ref().and_then(|s| s.found).is_some_and(|(s, _)| s == finding.step);
                let all = if finding.back { finding.begun >= len } else { finding.begun == 0 };
                if !shown && !all && !finding.wrapped {
                    // Nothing on this side of what is shown; there may be something on the other.
                    finding.wrapped = true;
                    finding.begun = if finding.back { len } else { 0 };
                    finding.from = finding.begun;
                    return false;
                }
                let everywhere = self.ui.search.as_ref().is_some_and(|s| s.everywhere);
                let text = if everywhere {
                    format!("nothing found: \"{}\" is in the output of no step", finding.needle)
                } else if shown {
                    let side = if finding.back { "above" } else { "below" };
                    format!("no more of \"{}\" {side}; N looks the other way", finding.needle)
                } else {
                    if let Some(search) = &mut self.ui.search {
                        search.count = Some(Count { step: finding.step, nth: 0, total: 0, upto: len });
                    }
                    format!("nothing found: \"{}\" is nowhere in this output", finding.needle)
                };
                say(&mut self.ui, wall(), true, &text);
            }
        }
        self.finding = None;
        self.ui.searching = None;
        true
    }

    /// Shows a match.
    fn found(&mut self, at: u64) {
        let Some(Finding { step, needle, back, wrapped, .. }) = self.finding.take() else { return };
        let elsewhere = step != self.ui.selected;
        self.ui.selected = step;
        // The line that holds the match begins at the last line start that is not behind it.
        let line = self.source.lines_before(step, at + 1, 1).pop().filter(|l| l.end > at);
        let line = line.or_else(|| self.source.lines_from(step, at, 1).pop()).map_or(at, |l| l.start);
        let seen = self.source.log_len(step);
        let pane = self.ui.pane_mut(step);
        pane.tab = Tab::Output;
        pane.output = Position::At { top: Anchor { line, row: 0 }, seen };
        // A little of what was before it tells what it is about.
        pane.asked = vec![Scroll::Rows(-3)];
        self.ui.notice = None;
        let everywhere = self.ui.search.as_ref().is_some_and(|s| s.everywhere);
        if elsewhere {
            let name =
                self.source.state().step(step).map(|s| SafeText::line(s.title()).truncate(30)).unwrap_or_default();
            say(&mut self.ui, wall(), false, &format!("in step {step} {name}"));
        } else if wrapped && !everywhere {
            let text = if back { "nothing above; this is below" } else { "nothing below; this is above" };
            say(&mut self.ui, wall(), false, text);
        }
        let Some(search) = &mut self.ui.search else { return };
        let next_to_it = search.found.is_some_and(|(s, _)| s == step) && self.counting.is_none();
        search.found = Some((step, at));
        match search.count.as_mut().filter(|c| next_to_it && c.step == step && c.nth > 0) {
            // The neighbour of a match that has its number.
            Some(count) => {
                count.nth = if back { count.nth.saturating_sub(1).max(1) } else { count.nth + 1 };
                count.total = count.total.max(count.nth);
            }
            None => {
                search.count = None;
                self.counting = Some(Counting { step, needle, at, from: 0, upto: seen, nth: 0, total: 0 });
            }
        }
    }

    /// Counts the next slice. Returns whether there is something to show.
    fn count_on(&mut self) -> bool {
        let Some(counting) = &mut self.counting else { return false };
        let Some(search) = self.ui.search.as_mut().filter(|s| s.needle == counting.needle) else {
            self.counting = None;
            return false;
        };
        let end = counting.from.saturating_add(SLICE as u64).min(counting.upto);
        let (up_to_it, all) = self.source.count(counting.step, &counting.needle, counting.from..end, counting.at);
        counting.nth += up_to_it;
        counting.total += all;
        counting.from = end;
        if end < counting.upto {
            return false;
        }
        let Counting { step, nth, total, upto, .. } = *counting;
        search.count = Some(Count { step, nth, total, upto });
        self.counting = None;
        true
    }
}
