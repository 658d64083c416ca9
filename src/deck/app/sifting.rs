//! Looking for a text in the tabs that are not output: among calls, in what was said, in what happened, in lines about
//! budgets and changes. Records are read whole for it, some of them between two looks at the keys.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::{App, Source, wall};
use crate::deck::actions::Action;
use crate::deck::entries::{Entries, lists};
use crate::deck::model::{Count, Tab};
use crate::deck::reading::Reader;
use crate::deck::sheet::{Goal, Needle};
use crate::deck::update::say;
use crate::run::{RunState, StepId};
use crate::text::SafeText;

/// As many bytes of entries are looked through between two looks at the keys.
const SLICE: usize = 1024 * 1024;
/// No more entries than these, however short they are.
const ENTRIES: usize = 100;
/// What is looked through in less than this is followed by more at once: each look at the keys takes its time too.
const PAUSE: Duration = Duration::from_millis(15);

/// A search through a tab that goes on.
pub(super) struct Sifting {
    step: StepId,
    tab: Tab,
    needle: Needle,
    goal: Goal,
    /// How many entries there are, and how many of them were looked through, oldest first. Not known while those before
    /// what is kept are still read.
    len: Option<usize>,
    done: usize,
    /// The number of the newest.
    upto: u64,
    /// Those that have the text.
    hits: Vec<u64>,
    /// The steps whose tab is looked through when this one has nothing.
    others: VecDeque<StepId>,
}

impl<S: Source> App<'_, S> {
    /// Begins to look for what is searched in the tab that is shown, or for the next of it.
    pub(super) fn sift(&mut self, tab: Tab, opposite: bool) {
        let step = self.ui.selected;
        let Some(needle) = self.ui.needle() else { return };
        let (from, follows) = self.keys_at(step, tab);
        let Some(search) = &mut self.ui.search else { return };
        if search.tab != tab {
            // What was found elsewhere says nothing about this tab.
            (search.tab, search.found, search.count) = (tab, None, None);
            search.back = follows;
        }
        let (back, fresh) = (search.back != opposite, search.found.is_none());
        let everywhere = search.everywhere && lists(tab);
        // An entry that the keys only follow counts like any other.
        let goal = Goal { from, here: fresh || follows, back };
        let others = if everywhere { self.others(step, back) } else { VecDeque::new() };
        self.finding = None;
        self.sifting = Some(self.sifting_of(step, tab, needle, goal, others));
        self.ui.searching = Some(0);
        self.sift_on();
    }

    fn sifting_of(&mut self, step: StepId, tab: Tab, needle: Needle, goal: Goal, others: VecDeque<StepId>) -> Sifting {
        let mut sifting = Sifting { step, tab, needle, goal, len: None, done: 0, upto: 0, hits: Vec::new(), others };
        if !lists(tab) {
            let lines = self.tab_text();
            let has = |(_, line): &(u64, &SafeText)| sifting.needle.is_in(line.as_str());
            sifting.hits = (0..).zip(&lines).filter(has).map(|(n, _)| n).collect();
            (sifting.len, sifting.done, sifting.upto) = (Some(lines.len()), lines.len(), lines.len() as u64);
        }
        sifting
    }

    /// The item that the keys are at, and whether they only follow the newest.
    fn keys_at(&self, step: StepId, tab: Tab) -> (u64, bool) {
        let pane = self.ui.pane(step);
        if lists(tab) {
            let cursor = pane.cursor.get(&tab).copied();
            return (cursor.unwrap_or(u64::MAX), cursor.is_none());
        }
        (pane.lines.get(&tab).map_or(0, |lines| lines.at as u64), false)
    }

    /// Looks through the next entries. Returns whether there is something to show.
    pub(super) fn sift_on(&mut self) -> bool {
        let Some(mut sifting) = self.sifting.take() else { return false };
        let known = self.ui.search.as_ref().is_some_and(|s| Needle::new(&s.needle).as_ref() == Some(&sifting.needle));
        if self.ui.searching.is_none() || !known {
            self.ui.searching = None;
            return true;
        }
        if self.waits_for_older(sifting.step, sifting.tab) {
            let before = self.ui.searching;
            self.ui.searching = self.older.reading().or(before);
            self.sifting = Some(sifting);
            return self.ui.searching != before;
        }
        let begun = Instant::now();
        let len = loop {
            let len = self.look_through(&mut sifting);
            if sifting.done >= len || begun.elapsed() >= PAUSE {
                break len;
            }
        };
        if sifting.done < len {
            let percent = sifting.done.saturating_mul(100) / len.max(1);
            self.ui.searching = u8::try_from(percent.min(99)).ok();
            self.sifting = Some(sifting);
            return true;
        }
        self.ui.searching = None;
        self.arrive(sifting);
        true
    }

    /// Whether it waits for what happened before everything that is kept.
    pub(super) fn sifts_older(&self) -> bool {
        self.sifting.as_ref().is_some_and(|sifting| self.waits_for_older(sifting.step, sifting.tab))
    }

    /// Looks through the next entries of a list. How many there are in all.
    fn look_through(&mut self, sifting: &mut Sifting) -> usize {
        let Sifting { step, tab, .. } = *sifting;
        if !lists(tab) {
            return sifting.done;
        }
        let own = self.facts.0 == Some(step);
        let facts = if own { self.facts.1.clone() } else { self.source.facts(step) };
        let sieve = self.ui.panes.get(&step).and_then(|pane| pane.sieve.get(&tab)).copied().unwrap_or_default();
        let (state, entries) = self.then();
        let Some(found) = state.step(step) else { return sifting.done };
        let listed = entries.all(found, tab, sieve);
        let len = *sifting.len.get_or_insert(listed.len());
        if sifting.done == 0 {
            sifting.upto = listed.newest().unwrap_or_default();
        }
        let next: Vec<u64> = (sifting.done..len).take(ENTRIES).map_while(|place| listed.number(place)).collect();
        let needs = entries.needs(found, tab, &listed, sifting.done..sifting.done + next.len());
        if next.is_empty() {
            // There are fewer by now.
            sifting.done = len;
        }
        self.older.fetch(&needs);
        let (state, entries) = self.then();
        let reader = Reader { state, entries, zone: &self.zone };
        let mut bytes = 0;
        for number in next {
            if bytes > SLICE {
                break;
            }
            let lines = reader.said(&self.source, &facts, step, tab, number);
            bytes += lines.iter().map(|line| line.as_str().len()).sum::<usize>();
            sifting.done += 1;
            if sifting.needle.is_in_any(&lines) {
                sifting.hits.push(number);
            }
        }
        len
    }

    /// Everything was looked through: goes to what was found, on the other side or in the next step where there is nothing
    /// on this one.
    fn arrive(&mut self, mut sifting: Sifting) {
        let Sifting { step, tab, goal, .. } = sifting;
        let Some(search) = &self.ui.search else { return };
        let (needle, everywhere) = (search.needle.clone(), search.everywhere && lists(tab));
        let shown = search.found.is_some_and(|(found, _)| found == step);
        let place = goal.among(&sifting.hits);
        if let Some(place) = place {
            return self.show_item(&sifting, place, None);
        }
        if let Some(next) = sifting.others.pop_front() {
            let from = if goal.back { u64::MAX } else { 0 };
            let goal = Goal { from, here: true, back: goal.back };
            self.sifting = Some(self.sifting_of(next, tab, sifting.needle, goal, sifting.others));
            self.ui.searching = Some(0);
            return;
        }
        match goal.other_side(&sifting.hits) {
            Some(_) if shown && !everywhere => {
                let (side, key) = (if goal.back { "above" } else { "below" }, self.other_key(goal.back));
                let text = format!("no more of \"{needle}\" {side}; {key} looks the other way");
                say(&mut self.ui, wall(), true, &text);
            }
            Some(place) if !everywhere => {
                let text = if goal.back { "nothing above; this is below" } else { "nothing below; this is above" };
                self.show_item(&sifting, place, Some(text));
            }
            _ => {
                let whose = if everywhere { "in this tab of no step" } else { "nowhere in this tab" };
                say(&mut self.ui, wall(), true, &format!("nothing found: \"{needle}\" is {whose}"));
                self.note_count(&sifting, 0);
            }
        }
    }

    /// The key that looks the other way than one has just looked.
    pub(super) fn other_key(&self, back: bool) -> String {
        let with = self.ui.search.as_ref().is_some_and(|search| search.back == back);
        self.ui.keymap.hint(if with { Action::SearchPrevious } else { Action::SearchNext })
    }

    /// Puts the keys at what was found.
    fn show_item(&mut self, sifting: &Sifting, place: usize, told: Option<&str>) {
        let Some(number) = sifting.hits.get(place).copied() else { return };
        let (step, tab) = (sifting.step, sifting.tab);
        let elsewhere = step != self.ui.selected;
        let hidden = self.is_hidden(sifting, number);
        self.ui.selected = step;
        let pane = self.ui.pane_mut(step);
        pane.tab = tab;
        if lists(tab) {
            pane.cursor.insert(tab, number);
        } else {
            pane.lines.entry(tab).or_default().go_to(usize::try_from(number).unwrap_or(usize::MAX));
        }
        self.ui.notice = None;
        if elsewhere {
            let name =
                self.source.state().step(step).map(|s| SafeText::line(s.title()).truncate(30)).unwrap_or_default();
            say(&mut self.ui, wall(), false, &format!("in step {step} {name}"));
        } else if let Some(text) = told {
            say(&mut self.ui, wall(), false, text);
        } else if hidden {
            let key = self.ui.keymap.hint(Action::Open);
            say(
                &mut self.ui,
                wall(),
                false,
                &format!("it is in what is not shown of this entry; {key} shows all of it"),
            );
        }
        if let Some(search) = &mut self.ui.search {
            search.found = Some((step, number));
        }
        self.note_count(sifting, place as u64 + 1);
    }

    /// Whether what was found is in a part of the entry that the list has no room for.
    fn is_hidden(&self, sifting: &Sifting, number: u64) -> bool {
        let (state, entries) = self.then();
        let reader = Reader { state, entries, zone: &self.zone };
        let seen = reader.in_sight(sifting.step, sifting.tab, number);
        seen.is_some_and(|seen| !sifting.needle.is_in_any(&seen))
    }

    fn note_count(&mut self, sifting: &Sifting, nth: u64) {
        let total = sifting.hits.len() as u64;
        if let Some(search) = &mut self.ui.search {
            search.count = Some(Count { step: sifting.step, nth, total, upto: sifting.upto });
        }
    }

    /// The run and what happened in it at the moment that is shown.
    pub(super) fn then(&self) -> (&RunState, Entries<'_>) {
        let (state, history) = super::then(&self.source, &self.history, self.moment.as_ref());
        (state, Entries { history, older: &self.older })
    }
}
