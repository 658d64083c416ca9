//! An index of everything that happened to every step: of each entry of its tabs the number by which the recording gives it
//! again, and whether a filter leaves it. Eight bytes an entry, sixteen a call; what an entry says is in the recording.

use std::collections::BTreeMap;

use super::entries::Sieve;
use super::history::{Entry, Tone, tell};
use super::said::{REDACTED, SaidWhat, has_text, said};
use super::touched::{Touch, Touched, Words};
use crate::run::replay::Recorded;
use crate::run::{
    AgentEvent, Event, MessageRole, OpenCall, RunState, StepId, StepState, ToolCall, ToolOutcome, What, reduce,
};

/// As many entries are noted at most, which take about 100 MB; of a longer recording there is no index.
const MOST: usize = 10_000_000;
/// A step takes as much room as so many entries.
const A_STEP: usize = 32;
/// As many entries at most are kept as they are, because what they say is not in their records alone.
const KEPT_WHOLE: usize = 20_000;
/// No more steps than these are made up for a recording that does not say which there are.
const MADE_UP: usize = 1000;

/// The index of a run.
#[derive(Debug, Default)]
pub struct Book {
    /// The run where the index ends.
    state: RunState,
    /// A run of which nothing is known.
    nobody: RunState,
    shelves: BTreeMap<StepId, Shelf>,
    /// The number of the newest event in it.
    upto: u64,
    entries: usize,
    /// What happened, where the record alone says it in other words than the run then.
    told: BTreeMap<u64, Entry>,
    /// What was said, likewise.
    said: BTreeMap<u64, SaidWhat>,
    /// The files and the tools of calls.
    words: Words,
}

/// What there is of one step.
#[derive(Debug, Default)]
pub struct Shelf {
    /// What happened to it.
    pub told: Column,
    /// What was said in it.
    pub said: Column,
    /// Its calls that ended, in the order of their ends; the numbers are those of the ends.
    pub calls: Column,
    /// The numbers of their beginnings.
    begun: Vec<u64>,
    /// The open calls.
    open: Vec<Begun>,
    /// Those of its calls that ended which named a file.
    touched: Touched,
}

/// A call that is open.
#[derive(Clone, Copy, Debug)]
struct Begun {
    /// How the run counts it.
    seq: u64,
    /// The number of its beginning.
    start: u64,
    /// The file that it names.
    touch: Option<Touch>,
}

impl Shelf {
    /// The events that began and ended the call at this place among those that ended.
    #[must_use]
    pub fn call(&self, place: usize) -> Option<(u64, u64)> {
        Some((*self.begun.get(place)?, *self.calls.numbers.get(place)?))
    }
}

/// The entries of one tab, oldest first.
#[derive(Debug, Default)]
pub struct Column {
    numbers: Vec<u64>,
    /// The places of those that went wrong.
    bad: Vec<u32>,
    /// The places of messages.
    text: Vec<u32>,
}

impl Column {
    fn push(&mut self, number: u64, Noted { bad, text }: Noted) {
        let place = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        self.numbers.push(number);
        if bad {
            self.bad.push(place);
        }
        if text {
            self.text.push(place);
        }
    }

    fn number_at(&self, place: u32) -> u64 {
        self.numbers.get(place as usize).copied().unwrap_or(u64::MAX)
    }

    /// How many entries a filter leaves of those before a number.
    #[must_use]
    pub fn before(&self, sieve: Sieve, number: u64) -> usize {
        self.first(sieve, |other| other < number)
    }

    /// How many entries a filter leaves of the first `places`.
    #[must_use]
    pub fn among(&self, sieve: Sieve, places: usize) -> usize {
        match sieve {
            Sieve::All => places.min(self.numbers.len()),
            Sieve::Errors => self.bad.partition_point(|place| (*place as usize) < places),
            Sieve::Text => self.text.partition_point(|place| (*place as usize) < places),
        }
    }

    fn first(&self, sieve: Sieve, before: impl Fn(u64) -> bool) -> usize {
        match sieve {
            Sieve::All => self.numbers.partition_point(|number| before(*number)),
            Sieve::Errors => self.bad.partition_point(|place| before(self.number_at(*place))),
            Sieve::Text => self.text.partition_point(|place| before(self.number_at(*place))),
        }
    }

    /// The place among all entries of the n-th that a filter leaves.
    #[must_use]
    pub fn place(&self, sieve: Sieve, nth: usize) -> Option<usize> {
        match sieve {
            Sieve::All => (nth < self.numbers.len()).then_some(nth),
            Sieve::Errors => self.bad.get(nth).map(|place| *place as usize),
            Sieve::Text => self.text.get(nth).map(|place| *place as usize),
        }
    }

    /// The number of the entry at a place.
    #[must_use]
    pub fn number(&self, place: usize) -> Option<u64> {
        self.numbers.get(place).copied()
    }

    /// The place of the entry that has this number.
    #[must_use]
    pub fn place_of(&self, number: u64) -> Option<usize> {
        self.numbers.binary_search(&number).ok()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }
}

impl Book {
    /// An index that begins with what is known before the first event.
    #[must_use]
    pub fn new(beginning: RunState) -> Self {
        Self { state: beginning, ..Self::default() }
    }

    /// Notes an event. Whether there was room for it.
    pub fn take(&mut self, recorded: &Recorded) -> bool {
        let Some(number) = recorded.spot().number.filter(|number| *number > self.upto) else { return true };
        if self.entries >= MOST {
            return false;
        }
        self.upto = number;
        let event = &recorded.event;
        if let What::RunStarted(_) = event.what
            && self.state.started_at.is_none()
        {
            // What was called before a run begins is forgotten when it does.
            for shelf in self.shelves.values_mut() {
                (shelf.calls, shelf.begun, shelf.open) = (Column::default(), Vec::new(), Vec::new());
                shelf.touched = Touched::default();
            }
        }
        if let Some(step) = event.what.step() {
            self.know(step);
        }
        reduce(&mut self.state, event);
        self.note_said(number, event);
        self.note_told(number, event);
        match &event.what {
            What::Agent { step, event: AgentEvent::ToolStarted { .. } } => self.follow_calls(*step, number, None),
            What::Agent { step, event: AgentEvent::ToolEnded { outcome, .. } } => {
                self.follow_calls(*step, number, Some(*outcome));
            }
            What::Agent { .. } => {}
            what => match what.step() {
                Some(step) => self.follow_calls(step, number, Some(ToolOutcome::Lost)),
                None => {
                    let open = self.shelves.iter().filter(|(_, shelf)| !shelf.open.is_empty());
                    for step in open.map(|(step, _)| *step).collect::<Vec<_>>() {
                        self.follow_calls(step, number, Some(ToolOutcome::Lost));
                    }
                }
            },
        }
        true
    }

    fn note_said(&mut self, number: u64, event: &Event) {
        let What::Agent { step, event: agent } = &event.what else { return };
        let entry = match outline(agent) {
            Outline::Known { said, .. } => said,
            Outline::Unknown => said(&self.state, *step, agent).map(|what| {
                let entry = Noted { bad: what.is_bad(), text: what.is_message() };
                if self.said.len() < KEPT_WHOLE && said(&self.nobody, *step, agent).as_ref() != Some(&what) {
                    self.said.insert(number, what);
                }
                entry
            }),
        };
        if let Some(entry) = entry {
            self.shelf_of(*step).said.push(number, entry);
            self.entries += 1;
        }
    }

    fn note_told(&mut self, number: u64, event: &Event) {
        let known = match &event.what {
            What::Agent { step, event: agent } => Some((*step, outline(agent))),
            _ => None,
        };
        let (step, noted) = if let Some((step, Outline::Known { told, .. })) = known {
            let Some(noted) = told else { return };
            (step, noted)
        } else {
            let Some(entry) = tell(&self.state, event) else { return };
            let Some(step) = entry.step else { return };
            let noted = Noted { bad: entry.tone == Tone::Bad, text: false };
            if self.told.len() < KEPT_WHOLE && tell(&self.nobody, event).as_ref() != Some(&entry) {
                self.told.insert(number, entry);
            }
            (step, noted)
        };
        self.shelf_of(step).told.push(number, noted);
        self.entries += 1;
    }

    fn shelf_of(&mut self, step: StepId) -> &mut Shelf {
        self.shelves.entry(step).or_insert_with(|| {
            self.entries += A_STEP;
            Shelf::default()
        })
    }

    /// A log of others does not say which steps there are, and a chain may grow.
    fn know(&mut self, step: StepId) {
        if step.flat() >= MADE_UP {
            return;
        }
        for flat in self.state.steps.len()..=step.flat() {
            let id = StepId(u32::try_from(flat).unwrap_or(u32::MAX));
            self.state.steps.push(StepState { id, logical: flat, ..StepState::default() });
        }
    }

    /// Notes which calls of a step an event began or ended; without an outcome one that is gone was begun again.
    fn follow_calls(&mut self, step: StepId, number: u64, outcome: Option<ToolOutcome>) {
        let open = self.state.step(step).map(|step| step.open.as_slice()).unwrap_or_default();
        let Some(shelf) = self.shelves.get_mut(&step) else { return };
        let Shelf { calls, begun, open: known, touched, .. } = shelf;
        let mut end = |call: Begun| {
            if let Some(outcome) = outcome {
                if let Some(touch) = call.touch {
                    touched.ended(touch, calls.len());
                }
                begun.push(call.start);
                calls.push(number, Noted { bad: outcome != ToolOutcome::Ok, text: false });
                self.entries += 2;
            }
        };
        // Both are in the order of the beginnings. There may be many, and nearly always one of them is gone, or none.
        let newer = open.last().filter(|call| known.last().is_none_or(|known| known.seq != call.seq));
        let newer = newer.filter(|_| outcome.is_none());
        let stay = open.len() - usize::from(newer.is_some());
        if known.len() == stay + 1 {
            let same = first_apart(known, open);
            end(known.remove(same));
        } else if known.len() > stay {
            let mut rest = open.iter().peekable();
            known.retain(|known| {
                let stays = rest.next_if(|call| call.seq == known.seq).is_some();
                if !stays {
                    end(*known);
                }
                stays
            });
        }
        if let Some(call) = newer {
            let (touch, bytes) = Touched::begins(&mut self.words, call.path.as_deref(), &call.tool);
            known.push(Begun { seq: call.seq, start: number, touch });
            self.entries += bytes / 8;
        }
    }

    /// The files that the first `many` calls of a step named which ended, with the tool and how often it did.
    pub fn touched(&self, step: StepId, many: usize) -> impl Iterator<Item = (&str, &str, usize)> {
        self.shelf(step).into_iter().flat_map(move |shelf| shelf.touched.counts(&self.words, many))
    }

    /// The places of those of the first `many` calls of a step that named a file with such a name.
    #[must_use]
    pub fn calls_on(&self, step: StepId, many: usize, names: impl Fn(&str) -> bool) -> Vec<usize> {
        self.shelf(step).map(|shelf| shelf.touched.places(&self.words, many, names)).unwrap_or_default()
    }

    /// What there is of a step.
    #[must_use]
    pub fn shelf(&self, step: StepId) -> Option<&Shelf> {
        self.shelves.get(&step)
    }

    /// The number of the newest event in it.
    #[must_use]
    pub const fn upto(&self) -> u64 {
        self.upto
    }

    /// How many calls of a step ended before those that the run still has of it, when the newest event was `newest`; `None`
    /// where the two do not tell of the same calls.
    #[must_use]
    pub fn calls_before(&self, step: &StepState, newest: u64) -> Option<usize> {
        let calls = self.shelf(step.id).map(|shelf| &shelf.calls);
        let ended = calls.map_or(0, |calls| calls.before(Sieve::All, newest.saturating_add(1)));
        if ended < calls.map_or(0, Column::len) {
            // The picture is an older one, and was made of the same events.
            return ended.checked_sub(step.recent_tools.len());
        }
        let Some(own) = self.state.step(step.id).map(|own| &own.recent_tools) else { return Some(ended) };
        let kept = &step.recent_tools;
        let same_ends = || {
            own.front().zip(kept.front()).is_some_and(|(a, b)| is_same(a, b))
                && own.back().zip(kept.back()).is_some_and(|(a, b)| is_same(a, b))
        };
        let first = if own.is_empty() || own.len() == kept.len() && same_ends() {
            0
        } else {
            // A status may keep fewer of them, and those that a lost runner left open are ended by whoever reads of it.
            let fits = |place: &usize| {
                own.len() - place <= kept.len() && own.iter().skip(*place).zip(kept).all(|(a, b)| is_same(a, b))
            };
            (0..own.len()).find(fits)?
        };
        Some(ended.checked_sub(own.len())? + first)
    }

    /// An entry that its record alone does not say as it was.
    #[must_use]
    pub fn told(&self, number: u64) -> Option<&Entry> {
        self.told.get(&number)
    }

    /// What was said that its record alone does not say as it was.
    #[must_use]
    pub fn said(&self, number: u64) -> Option<&SaidWhat> {
        self.said.get(&number)
    }
}

/// What a filter asks of an entry.
#[derive(Clone, Copy, Debug)]
struct Noted {
    /// Something went wrong.
    bad: bool,
    /// It is a message.
    text: bool,
}

/// Which entries an event of an agent makes.
enum Outline {
    /// In the transcript and among what happened, whatever else the run knows.
    Known { said: Option<Noted>, told: Option<Noted> },
    /// Their texts have to be made to find out.
    Unknown,
}

/// Of nearly all events it can be told without making their texts, which takes most of the time that they take.
fn outline(event: &AgentEvent) -> Outline {
    let noted = |bad, text| Some(Noted { bad, text });
    let (said, told) = match event {
        AgentEvent::ToolStarted { .. } => (noted(false, false), noted(false, false)),
        AgentEvent::ToolEnded { outcome: ToolOutcome::Ok, .. } => (noted(false, false), None),
        AgentEvent::ToolEnded { .. } => (noted(true, false), noted(true, false)),
        AgentEvent::Message { error: None, role, preview, .. } => {
            let says = || preview.trim() != REDACTED && has_text(preview);
            match role {
                MessageRole::Assistant => (noted(false, true), noted(false, false).filter(|_| says())),
                MessageRole::User if says() => (noted(false, true), noted(false, false)),
                _ => (None, None),
            }
        }
        AgentEvent::TurnStarted
        | AgentEvent::TurnEnded
        | AgentEvent::TextDelta { .. }
        | AgentEvent::ToolProgress { .. }
        | AgentEvent::Unknown { .. }
        | AgentEvent::Unparsed { .. } => (None, None),
        _ => return Outline::Unknown,
    };
    Outline::Known { said, told }
}

/// The place of the one call that was known and is not open any more.
fn first_apart(known: &[Begun], open: &[OpenCall]) -> usize {
    let (mut same, mut apart) = (0, known.len().saturating_sub(1));
    while same < apart {
        let middle = usize::midpoint(same, apart);
        let alike = known.get(middle).zip(open.get(middle)).is_some_and(|(known, call)| known.seq == call.seq);
        if alike {
            same = middle + 1;
        } else {
            apart = middle;
        }
    }
    same
}

fn is_same(one: &ToolCall, other: &ToolCall) -> bool {
    one.tool == other.tool && one.ended_at.millis() == other.ended_at.millis()
}
