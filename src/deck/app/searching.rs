//! Searching the output of a step, or of all, a slice of it between two looks at the keys: a match near to what is shown
//! comes at once, the others and their number while the search goes through the whole log. Counting the lines of a log
//! that is scrolled goes the same way.

use std::collections::VecDeque;

use super::{App, Source, wall};
use crate::deck::actions::Action;
use crate::deck::feed::Searched;
use crate::deck::model::{Anchor, Count, Position, Scroll, Tab};
use crate::deck::update::say;
use crate::run::StepId;
use crate::text::{SafeText, grouped};

/// As much of a log is looked at between two looks at the keys, in bytes.
const SLICE: u64 = 4 * 1024 * 1024;

/// A search that goes on.
pub(super) struct Finding {
    step: StepId,
    needle: String,
    /// The match that is still to be shown.
    goal: Option<Goal>,
    /// Where it is looked for when there is none here: the other steps, and at last the rest of the one it began in.
    others: VecDeque<StepId>,
    /// It was found while the person was elsewhere, and is not shown.
    missed: bool,
}

#[derive(Clone, Copy)]
struct Goal {
    /// From here on.
    from: u64,
    back: bool,
}

impl<S: Source> App<'_, S> {
    /// Begins a search, or goes to the next match.
    pub(super) fn find(&mut self, opposite: bool) {
        let tab = self.ui.searched_tab();
        self.ui.away = false;
        if tab != Tab::Output {
            return self.sift(tab, opposite);
        }
        self.sifting = None;
        let step = self.ui.selected;
        let len = self.log_end(step);
        // Keys that came since the last picture may have gone elsewhere.
        self.windows();
        let position = self.ui.pane(step).output;
        let Some(search) = &mut self.ui.search else { return };
        if search.tab != tab {
            // What was found elsewhere says nothing about the output.
            (search.tab, search.found, search.count) = (tab, None, None);
            search.back = position == Position::Follow;
        }
        let back = search.back != opposite;
        let from = match (search.found.filter(|(s, _)| *s == step), position) {
            // Whoever went elsewhere since goes on from there.
            (Some(_), Position::Follow) if self.strayed => len,
            (Some(_), Position::At { top, .. }) if self.strayed => top.line,
            (Some((_, at)), _) if back => at,
            (Some((_, at)), _) => at + 1,
            (None, Position::Follow) if back => len,
            (None, Position::Follow) => 0,
            (None, Position::At { top, .. }) => top.line,
        };
        let (needle, everywhere) = (search.needle.clone(), search.everywhere);
        let others = if everywhere { self.others(step, back) } else { VecDeque::new() };
        let near = self.source.nearby(step, &needle, from, back, SLICE).filter(|at| *at < len);
        let goal = if near.is_none() { Some(Goal { from, back }) } else { None };
        self.finding = Some(Finding { step, needle, goal, others, missed: false });
        self.ui.searching = Some(0);
        if let Some(at) = near {
            self.show_match(step, at, None);
        }
    }

    /// Where the log of a step ends at the moment that is shown.
    fn log_end(&mut self, step: StepId) -> u64 {
        match self.length_then(step) {
            Some(then) => then.unwrap_or(0),
            None => self.source.log_len(step),
        }
    }

    /// Looks at the next slice, as far as the log goes at the moment that is shown: what was printed later is not there.
    fn search_on(&mut self, step: StepId, needle: &str) -> Searched {
        let searched = self.source.search(step, needle, SLICE);
        let end = self.log_end(step);
        if searched.len <= end {
            return searched;
        }
        let total = if searched.upto <= end {
            searched.total
        } else {
            self.source.found(step, needle, end, true).map_or(0, |last| last.nth)
        };
        Searched { upto: searched.upto.min(end), len: end, total }
    }

    /// The steps around this one in the direction of a search, this one last.
    pub(super) fn others(&self, step: StepId, back: bool) -> VecDeque<StepId> {
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
        self.end_old_counts();
        if self.sifting.is_some() {
            return self.sift_on();
        }
        let Some(Finding { step, needle, goal, .. }) = &self.finding else { return self.index_on() };
        let (step, needle, goal) = (*step, needle.clone(), *goal);
        let known = self.ui.search.as_ref().is_some_and(|search| search.needle == needle);
        if self.ui.searching.is_none() || !known {
            self.finding = None;
            self.ui.searching = None;
            return true;
        }
        let searched = self.search_on(step, &needle);
        let mut changed = false;
        if let Some(Goal { from, back }) = goal
            && (!back || searched.upto >= from || searched.is_done())
        {
            match self.source.found(step, &needle, from, back).filter(|found| found.at < searched.len) {
                Some(found) => {
                    self.reach(step, found.at, Some(found.nth), None);
                    changed = true;
                }
                None if searched.is_done() => {
                    if self.next_step(back) {
                        return false;
                    }
                    self.other_side(step, &needle, back, searched);
                    changed = true;
                }
                None => {}
            }
        }
        changed |= self.count(step, &needle, searched);
        if searched.is_done() {
            let missed = self.finding.take().is_some_and(|finding| finding.missed);
            self.ui.searching = None;
            if missed {
                self.tell_of_missed(step, Tab::Output, searched.total);
            }
            return true;
        }
        let percent = u8::try_from(searched.upto.saturating_mul(100) / searched.len.max(1)).unwrap_or(99).min(99);
        changed | (self.ui.searching.replace(percent) != Some(percent))
    }

    /// Goes on in the next of the other steps, if there is one.
    fn next_step(&mut self, back: bool) -> bool {
        let Some(next) = self.finding.as_mut().and_then(|finding| finding.others.pop_front()) else { return false };
        let from = if back { self.log_end(next) } else { 0 };
        if let Some(finding) = &mut self.finding {
            finding.step = next;
            finding.goal = Some(Goal { from, back });
        }
        true
    }

    /// There is nothing on the side that was asked for; unless a match was shown before, one on the other side will do.
    fn other_side(&mut self, step: StepId, needle: &str, back: bool, searched: Searched) {
        let shown = self.ui.search.as_ref().and_then(|s| s.found).is_some_and(|(s, _)| s == step);
        let everywhere = self.ui.search.as_ref().is_some_and(|s| s.everywhere);
        let nothing = if everywhere {
            format!("nothing found: \"{needle}\" is in the output of no step")
        } else if self.ui.selected != step || self.ui.searched_tab() != Tab::Output {
            format!("nothing found: \"{needle}\" is nowhere in the output of step {step}")
        } else {
            let part = if self.ui.pane(step).only.is_some() { "what is shown of this output" } else { "this output" };
            format!("nothing found: \"{needle}\" is nowhere in {part}")
        };
        if shown && !everywhere {
            let side = if back { "above" } else { "below" };
            let key = self.other_key(back);
            let text = format!("no more of \"{needle}\" {side}; {key} looks the other way");
            return say(&mut self.ui, wall(), true, &text);
        }
        let end = if back { searched.len } else { 0 };
        let found = self.source.found(step, needle, end, back).filter(|found| found.at < searched.len);
        match found.filter(|_| !everywhere) {
            Some(found) => {
                let text = if back { "nothing above; this is below" } else { "nothing below; this is above" };
                self.reach(step, found.at, Some(found.nth), Some(text));
            }
            None => say(&mut self.ui, wall(), true, &nothing),
        }
    }

    /// The match that was to be shown is there. Who has gone elsewhere is not taken to it.
    fn reach(&mut self, step: StepId, at: u64, nth: Option<u64>, told: Option<&str>) {
        let led = self.ui.may_be_led();
        if let Some(finding) = &mut self.finding {
            finding.goal = None;
            finding.missed = !led;
        }
        if !led {
            return;
        }
        self.show_match(step, at, nth);
        if let Some(text) = told {
            say(&mut self.ui, wall(), false, text);
        }
    }

    /// Tells who has gone elsewhere what a search found meanwhile.
    pub(super) fn tell_of_missed(&mut self, step: StepId, tab: Tab, total: u64) {
        let Some(search) = &self.ui.search else { return };
        let here = self.ui.selected == step && self.ui.searched_tab() == tab;
        let next = if here {
            format!("; {} goes there", self.ui.keymap.hint(Action::SearchNext))
        } else {
            format!(" in the {} of step {step}", tab.name())
        };
        let text = format!("found: {} of \"{}\"{next}", grouped(total), search.needle);
        say(&mut self.ui, wall(), false, &text);
    }

    /// Shows a match.
    fn show_match(&mut self, step: StepId, at: u64, nth: Option<u64>) {
        let elsewhere = step != self.ui.selected;
        self.ui.selected = step;
        // The line that holds the match begins at the last line start that is not behind it.
        let line = self.source.lines_before(step, at + 1, 1).pop().filter(|l| l.end > at);
        let line = line.or_else(|| self.source.lines_from(step, at, 1).pop()).map_or(at, |l| l.start);
        let seen = self.log_end(step);
        let pane = self.ui.pane_mut(step);
        pane.tab = Tab::Output;
        pane.output = Position::At { top: Anchor { line, row: 0 }, seen };
        // A little of what was before it tells what it is about.
        pane.asked = vec![Scroll::To(at), Scroll::Rows(-3)];
        self.ui.notice = None;
        if elsewhere {
            let name =
                self.source.state().step(step).map(|s| SafeText::line(s.title()).truncate(30)).unwrap_or_default();
            say(&mut self.ui, wall(), false, &format!("in step {step} {name}"));
        }
        let Some(search) = &mut self.ui.search else { return };
        search.found = Some((step, at));
        self.strayed = false;
        match search.count.as_mut().filter(|count| count.step == step) {
            Some(count) => count.nth = nth.unwrap_or(0),
            None => search.count = None,
        }
    }

    /// Notes how many matches there are by now, and which of them is shown once that is known. Returns whether that is
    /// another count than before.
    fn count(&mut self, step: StepId, needle: &str, searched: Searched) -> bool {
        let Some(search) = &mut self.ui.search else { return false };
        let was = search.count.filter(|count| count.step == step);
        let mut nth = was.map_or(0, |count| count.nth);
        if let (0, Some((_, at))) = (nth, search.found.filter(|(s, _)| *s == step))
            && (searched.upto > at || searched.is_done())
        {
            nth = self.source.found(step, needle, at, false).filter(|m| m.at == at).map_or(0, |m| m.nth);
        }
        let count = Count { step, nth, total: searched.total, upto: searched.upto };
        let changed = was.is_none_or(|was| (was.nth, was.total) != (count.nth, count.total));
        search.count = Some(count);
        changed
    }

    /// The step whose lines are to be counted: the one whose log is scrolled.
    pub(super) fn to_index(&self) -> Option<StepId> {
        let step = self.ui.selected;
        let scrolled = matches!(self.ui.pane(step).output, Position::At { .. });
        (scrolled && self.indexed.get(&step) != self.counted.get(&step)).then_some(step)
    }

    /// Counts the lines of the next slice. Returns whether there is something to show.
    fn index_on(&mut self) -> bool {
        let Some(step) = self.to_index() else { return false };
        if self.source.index(step, SLICE) {
            return false;
        }
        // Up to where the log was drawn, so that what is printed later is counted with the frame that shows it.
        if let Some(len) = self.counted.get(&step) {
            self.indexed.insert(step, *len);
        }
        true
    }
}
