//! Looking for a text in the tabs that are not output: among calls, in what was said, in what happened, in lines about
//! budgets and changes. Records are read whole for it, some of them between two looks at the keys.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::looked::{Looked, MomentKey, Region};
use super::{App, Moment, Source, wall};
use crate::deck::actions::Action;
use crate::deck::entries::{Entries, Sieve, lists};
use crate::deck::history::History;
use crate::deck::model::{Count, Tab};
use crate::deck::older::Older;
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

/// How it begins that a text is nowhere.
const NOTHING: &str = "nothing found:";

/// A search through a tab that goes on.
pub(super) struct Sifting {
    step: StepId,
    tab: Tab,
    needle: Needle,
    /// What is still to be shown; after that only the rest is counted.
    goal: Option<Goal>,
    /// The steps whose tab is looked through when this one has nothing.
    others: VecDeque<StepId>,
    /// It was found while the person was elsewhere, and is not shown.
    missed: bool,
}

impl<S: Source> App<'_, S> {
    /// Begins to look for what is searched in the tab that is shown, or for the next of it.
    pub(super) fn sift(&mut self, tab: Tab, opposite: bool) {
        let step = self.ui.selected;
        let Some(needle) = self.ui.needle() else { return };
        self.end_old_counts();
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
        if !lists(tab) {
            self.sifted = Looked::default();
        }
        self.sifted.begin(tab, &needle, self.moment_key(), self.older.generation());
        self.sifting = Some(Sifting { step, tab, needle, goal: Some(goal), others, missed: false });
        self.ui.searching = Some(0);
        self.sift_on();
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

    /// Which moment is shown: what is looked through there later has all that it had before.
    fn moment_key(&self) -> MomentKey {
        match &self.moment {
            None | Some(Moment::Frozen { .. }) => MomentKey::Now,
            Some(Moment::Replay(_)) => MomentKey::Replay(self.ui.replay.as_ref().map_or(0, |r| r.cursor.events())),
        }
    }

    fn sieve_of(&self, step: StepId, tab: Tab) -> Sieve {
        self.ui.panes.get(&step).and_then(|pane| pane.sieve.get(&tab)).copied().unwrap_or_default()
    }

    /// What was found among other entries than those that are listed now says nothing about these.
    pub(super) fn end_old_counts(&mut self) {
        let Some((step, tab)) = self.ui.search.as_ref().and_then(|search| {
            let step = search.count.map(|count| count.step).or(search.found.map(|(step, _)| step));
            Some((step.or(self.sifting.as_ref().map(|sifting| sifting.step))?, search.tab))
        }) else {
            return;
        };
        if !lists(tab) {
            return;
        }
        let (sieve, moment, generation) = (self.sieve_of(step, tab), self.moment_key(), self.older.generation());
        let plays = self.ui.replay.as_ref().is_some_and(|replay| replay.cursor.plays());
        if self.sifted.fits(step, sieve, moment, generation, plays || self.sifting.is_some()) {
            return;
        }
        self.sifted = Looked::default();
        self.sifting = None;
        self.ui.searching = None;
        if let Some(search) = &mut self.ui.search {
            (search.found, search.count) = (None, None);
        }
        // Nor does it that nothing was found there.
        self.ui.notice = self.ui.notice.take().filter(|notice| !notice.text.as_str().starts_with(NOTHING));
    }

    /// Looks through the next entries. Returns whether there is something to show.
    pub(super) fn sift_on(&mut self) -> bool {
        self.end_old_counts();
        let Some(mut sifting) = self.sifting.take() else { return false };
        let known = self.ui.search.as_ref().is_some_and(|s| Needle::new(&s.needle).as_ref() == Some(&sifting.needle));
        if self.ui.searching.is_none() || !known {
            self.ui.searching = None;
            return true;
        }
        // Calls are numbered by how many there were before.
        let waits = self.waits_for_older(sifting.step, sifting.tab);
        let begun = Instant::now();
        let goes = loop {
            let goes = if waits && sifting.tab == Tab::Tools { None } else { self.look_towards(&mut sifting) };
            if !matches!(goes, Some(Progress::Looked)) || begun.elapsed() >= PAUSE {
                break goes;
            }
        };
        match goes {
            Some(Progress::Shown) => {
                self.note_count(&sifting);
                self.sifting = Some(sifting);
                true
            }
            Some(Progress::Looked) => {
                self.note_count(&sifting);
                self.ui.searching = Some(self.sifted_percent(&sifting));
                self.sifting = Some(sifting);
                true
            }
            _ if waits => {
                let before = self.ui.searching;
                self.ui.searching = self.older.reading().or(before);
                self.sifting = Some(sifting);
                self.ui.searching != before
            }
            _ => {
                self.ui.searching = None;
                self.arrive(sifting);
                true
            }
        }
    }

    /// Whether it waits for what happened before everything that is kept.
    pub(super) fn sifts_older(&self) -> bool {
        self.sifting.as_ref().is_some_and(|sifting| self.waits_for_older(sifting.step, sifting.tab))
    }

    /// Goes to what is looked for where it was found; looks through the next entries towards it where it was not, and
    /// through the rest once it is shown. `None` where there are no more.
    fn look_towards(&mut self, sifting: &mut Sifting) -> Option<Progress> {
        let Sifting { step, tab, goal, .. } = *sifting;
        let sieve = self.sieve_of(step, tab);
        if !lists(tab) {
            self.look_at_lines(sifting);
        }
        let Some(goal) = goal else {
            let more = self.look_through(sifting, false) || self.look_through(sifting, true);
            return more.then_some(Progress::Looked);
        };
        let toward = {
            let (state, entries) = then(&self.source, &self.history, &self.older, self.moment.as_ref());
            let listed = state.step(step).map(|found| entries.all(found, tab, sieve)).unwrap_or_default();
            let region = self.sifted.region(step, sieve, goal, &listed);
            if lists(tab) { region.toward(goal, &listed) } else { None }
        };
        if let Some(back) = toward {
            return self.look_through(sifting, back).then_some(Progress::Looked);
        }
        if let Some(number) = self.sifted.hit(step, goal) {
            sifting.goal = None;
            self.show_item(sifting, number, None);
            return Some(Progress::Shown);
        }
        if self.look_through(sifting, goal.back) {
            return Some(Progress::Looked);
        }
        // Where one was shown it is enough to know that there is none on this side.
        let search = self.ui.search.as_ref();
        let shown = search.is_some_and(|search| search.found.is_some_and(|(found, _)| found == step));
        let everywhere = search.is_some_and(|search| search.everywhere);
        if shown || everywhere || self.waits_for_older(step, tab) {
            return None;
        }
        self.look_through(sifting, !goal.back).then_some(Progress::Looked)
    }

    /// Looks at all lines of a tab that is no list.
    fn look_at_lines(&mut self, sifting: &Sifting) {
        let lines = self.tab_text();
        let has = |(_, line): &(u64, &SafeText)| sifting.needle.is_in(line.as_str());
        let hits = (0..).zip(&lines).filter(has).map(|(n, _)| n).collect();
        self.sifted.put(sifting.step, Region { high: lines.len() as u64, hits, ..Region::default() });
    }

    /// Looks through the next entries of a list on one side of those that were looked through. Whether there were any.
    fn look_through(&mut self, sifting: &Sifting, back: bool) -> bool {
        let Sifting { step, tab, .. } = *sifting;
        if !lists(tab) {
            return false;
        }
        let own = self.facts.0 == Some(step);
        let facts = if own { self.facts.1.clone() } else { self.source.facts(step) };
        let sieve = self.sieve_of(step, tab);
        let (state, entries) = self.then();
        let Some(found) = state.step(step) else { return false };
        let listed = entries.all(found, tab, sieve);
        let Some((low, high)) = self.sifted.bounds(step) else { return false };
        let places = if back {
            let end = listed.place(low);
            end.saturating_sub(ENTRIES)..end
        } else {
            let from = listed.place(high);
            from..listed.len().min(from.saturating_add(ENTRIES))
        };
        let mut next: Vec<u64> = places.clone().map_while(|place| listed.number(place)).collect();
        if next.is_empty() {
            return false;
        }
        if back {
            next.reverse();
        }
        let needs = entries.needs(found, tab, &listed, places);
        self.older.fetch(&needs);
        let (state, entries) = then(&self.source, &self.history, &self.older, self.moment.as_ref());
        let reader = Reader { state, entries, zone: &self.zone };
        let mut bytes = 0;
        for number in next {
            if bytes > SLICE {
                break;
            }
            let lines = reader.said(&self.source, &facts, step, tab, number);
            bytes += lines.iter().map(|line| line.as_str().len()).sum::<usize>();
            self.sifted.note(step, number, back, sifting.needle.is_in_any(&lines));
        }
        true
    }

    /// How much was looked through, in per cent.
    fn sifted_percent(&self, sifting: &Sifting) -> u8 {
        let (state, entries) = self.then();
        let sieve = self.sieve_of(sifting.step, sifting.tab);
        let Some(found) = state.step(sifting.step) else { return 0 };
        let listed = entries.all(found, sifting.tab, sieve);
        let Some((low, high)) = self.sifted.bounds(sifting.step) else { return 0 };
        let done = listed.place(high).saturating_sub(listed.place(low));
        u8::try_from(done.saturating_mul(100) / listed.len().max(1)).unwrap_or(99).min(99)
    }

    /// Everything was looked through that had to be: what was to be shown is not on that side. Goes to what is on the other
    /// side or in the next step.
    fn arrive(&mut self, mut sifting: Sifting) {
        let Sifting { step, tab, goal, .. } = sifting;
        let Some(goal) = goal else { return self.end_sifting(&sifting) };
        let Some(search) = &self.ui.search else { return };
        let (needle, everywhere) = (search.needle.clone(), search.everywhere && lists(tab));
        let shown = search.found.is_some_and(|(found, _)| found == step);
        if let Some(next) = sifting.others.pop_front() {
            let from = if goal.back { u64::MAX } else { 0 };
            let goal = Some(Goal { from, here: true, back: goal.back });
            self.sifting = Some(Sifting { step: next, goal, ..sifting });
            self.ui.searching = Some(0);
            return;
        }
        sifting.goal = None;
        match self.sifted.other_side(step, goal) {
            Some(_) if shown && !everywhere => {
                let (side, key) = (if goal.back { "above" } else { "below" }, self.other_key(goal.back));
                let text = format!("no more of \"{needle}\" {side}; {key} looks the other way");
                say(&mut self.ui, wall(), true, &text);
                // The others are still to be counted.
                self.ui.searching = Some(self.sifted_percent(&sifting));
                self.sifting = Some(sifting);
            }
            Some(number) if !everywhere => {
                let text = if goal.back { "nothing above; this is below" } else { "nothing below; this is above" };
                self.show_item(&mut sifting, number, Some(text));
                self.end_sifting(&sifting);
            }
            _ => {
                let here = self.ui.selected == step && self.ui.searched_tab() == tab;
                let whose = match (everywhere, here) {
                    (true, _) => format!("in the {} of no step", tab.name()),
                    (false, true) => "nowhere in this tab".to_owned(),
                    (false, false) => format!("nowhere in the {} of step {step}", tab.name()),
                };
                say(&mut self.ui, wall(), true, &format!("{NOTHING} \"{needle}\" is {whose}"));
                self.note_count(&sifting);
            }
        }
    }

    /// Everything was looked through. Who has gone elsewhere is told what was found.
    fn end_sifting(&mut self, sifting: &Sifting) {
        self.note_count(sifting);
        if sifting.missed {
            self.tell_of_missed(sifting.step, sifting.tab, self.sifted.total(sifting.step));
        }
    }

    /// The key that looks the other way than one has just looked.
    pub(super) fn other_key(&self, back: bool) -> String {
        let with = self.ui.search.as_ref().is_some_and(|search| search.back == back);
        self.ui.keymap.hint(if with { Action::SearchPrevious } else { Action::SearchNext })
    }

    /// Puts the keys at what was found, unless the person has gone elsewhere.
    fn show_item(&mut self, sifting: &mut Sifting, number: u64, told: Option<&str>) {
        let (step, tab) = (sifting.step, sifting.tab);
        if !self.ui.may_be_led() {
            sifting.missed = true;
            return;
        }
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
    }

    /// Whether what was found is in a part of the entry that the list has no room for.
    fn is_hidden(&self, sifting: &Sifting, number: u64) -> bool {
        let (state, entries) = self.then();
        let reader = Reader { state, entries, zone: &self.zone };
        let seen = reader.in_sight(sifting.step, sifting.tab, number);
        seen.is_some_and(|seen| !sifting.needle.is_in_any(&seen))
    }

    /// Notes how many there are as far as was looked, and which of them is shown once that is known.
    fn note_count(&mut self, sifting: &Sifting) {
        let Sifting { step, tab, .. } = *sifting;
        let Some((low, high)) = self.sifted.bounds(step) else { return };
        let (mut first, mut last) = (true, true);
        let mut upto = high;
        if lists(tab) {
            let sieve = self.sieve_of(step, tab);
            let (state, entries) = self.then();
            let Some(found) = state.step(step) else { return };
            let listed = entries.all(found, tab, sieve);
            first = listed.place(low) == 0 && !self.waits_for_older(step, tab);
            last = listed.place(high) >= listed.len();
            upto = listed.newest().unwrap_or_default().min(high);
        }
        let Some(search) = &mut self.ui.search else { return };
        let at = search.found.filter(|(found, _)| first && *found == step).map(|(_, at)| at);
        let (nth, total) = (at.map_or(0, |at| self.sifted.nth(step, at)), self.sifted.total(step));
        // What was not looked through yet may have more.
        let upto = if first && last { upto } else { 0 };
        if search.count.is_none_or(|count| count.step != step) && total == 0 && sifting.goal.is_some() {
            return;
        }
        search.count = Some(Count { step, nth, total, upto });
    }

    /// The run and what happened in it at the moment that is shown.
    pub(super) fn then(&self) -> (&RunState, Entries<'_>) {
        then(&self.source, &self.history, &self.older, self.moment.as_ref())
    }
}

fn then<'a>(
    source: &'a impl Source,
    history: &'a History,
    older: &'a Older,
    moment: Option<&'a Moment>,
) -> (&'a RunState, Entries<'a>) {
    let (state, history) = super::then(source, history, moment);
    (state, Entries { history, older })
}

/// What a look through entries came to.
enum Progress {
    /// What was looked for is shown.
    Shown,
    /// More of them were looked through.
    Looked,
}
