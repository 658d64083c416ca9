//! What is kept and what is read again are together what a history without bounds has, under the same numbers.

use proptest::prelude::*;

use super::*;
use crate::deck::entries::{Call, Earlier, Entries, OPEN, Sieve, TASK};
use crate::deck::history::{History, Tone};
use crate::deck::listed::Listed;
use crate::deck::model::Tab;
use crate::run::replay::Piece;
use crate::run::{MessageRole, RunMeta, StepMeta, StepOutcome, StepPhase, StepState, SubAgentDid, Timestamp, reduce};
use crate::text::SafeText;

/// A recording in memory: an event after the other, some of them in one record.
#[derive(Clone, Default)]
struct Recordings {
    events: Vec<Recorded>,
    /// So many of them were recorded by now.
    len: usize,
    /// Nothing can be read at this place any more.
    gone: Option<u64>,
}

impl Tape for Recordings {
    fn beginning(&self) -> RunState {
        RunState::default()
    }

    fn read(&mut self, place: u64, most: u64) -> Piece {
        let from = self.events.partition_point(|recorded| recorded.place < place);
        let mut to = from + usize::try_from(most / 100).unwrap().max(1);
        while self.events.get(to).is_some_and(|next| next.nth > 0) {
            to += 1;
        }
        let to = to.min(self.len).max(from);
        let events = self.events[from..to].iter().filter(|recorded| Some(recorded.place) != self.gone);
        let next = self.events.get(to).filter(|_| to < self.len).map(|next| next.place);
        Piece { events: events.cloned().collect(), next }
    }

    fn len(&self) -> u64 {
        self.events.last().map_or(0, |last| last.place + 1)
    }
}

/// Everything that there ever was of a step.
#[derive(Default)]
struct Unbounded {
    told: Vec<Entry>,
    said: Vec<Said>,
    calls: Vec<ToolCall>,
}

const STEPS: u32 = 2;

fn recorded(whats: Vec<(What, bool)>) -> Vec<Recorded> {
    let steps =
        (0..STEPS).map(|n| StepMeta { agent: "a".into(), key: format!("s{n}"), has_task: true, ..StepMeta::default() });
    let start = What::RunStarted(Box::new(RunMeta { steps: steps.collect(), ..RunMeta::default() }));
    let starts = (0..STEPS).map(|n| (What::StepStarted { step: StepId(n) }, false));
    let (mut place, mut nth) = (0, 0);
    let mut out: Vec<Recorded> = Vec::new();
    for (what, same) in std::iter::once((start, false)).chain(starts).chain(whats) {
        (place, nth) = if same { (place, nth + 1) } else { (place + 100, 0) };
        let at = Timestamp::from_millis(1_000 + 7 * out.len() as i64);
        out.push(Recorded { event: Event { at, what }, place, nth, record: Some(place) });
    }
    out
}

fn unbounded(events: &[Recorded], step: StepId) -> Unbounded {
    let (mut state, mut all) = (RunState::default(), Unbounded::default());
    for recorded in events {
        state.steps.iter_mut().for_each(|step| step.recent_tools.clear());
        reduce(&mut state, &recorded.event);
        let (seq, place) = (recorded.spot().number.unwrap(), recorded.record);
        if let What::Agent { step: of, event } = &recorded.event.what
            && *of == step
            && let Some(what) = said(&state, step, event)
        {
            all.said.push(Said { seq, at: recorded.event.at, place, what });
        }
        if let Some(entry) = tell(&state, &recorded.event).filter(|entry| entry.step == Some(step)) {
            all.told.push(Entry { seq, place, ..entry });
        }
        all.calls.extend(state.step(step).into_iter().flat_map(|step| step.recent_tools.iter().cloned()));
    }
    all
}

/// The run and its bounded history after these events.
fn bounded(events: &[Recorded]) -> (RunState, History) {
    let (mut state, mut history) = (RunState::default(), History::default());
    for recorded in events {
        reduce(&mut state, &recorded.event);
        history.add(&state, std::slice::from_ref(&recorded.event), &[recorded.spot()]);
    }
    (state, history)
}

fn read_all(older: &mut Older) {
    while older.read_on(5_000) {
        assert!(older.reading().is_some_and(|percent| percent < 100) && older.open().is_none());
    }
}

/// The numbers of everything that is listed, and what needs to be at hand for it.
fn listed(older: &mut Older, state: &RunState, history: &History, step: StepId, tab: Tab, sieve: Sieve) -> Vec<u64> {
    let found = state.step(step).unwrap();
    let entries = Entries { history, older };
    let all: Listed<'_> = entries.all(found, tab, sieve);
    let numbers: Vec<u64> = (0..all.len()).map(|place| all.number(place).unwrap()).collect();
    assert!(numbers.is_sorted() && all.number(all.len()).is_none());
    for (place, number) in numbers.iter().enumerate() {
        assert_eq!((all.place(*number), all.place(*number + 1)), (place, place + 1), "{tab:?} {sieve:?}");
    }
    let needs = entries.needs(found, tab, &all, 0..all.len());
    older.pages.clear();
    older.fetch(&needs);
    numbers
}

fn check(older: &mut Older, events: &[Recorded]) {
    let (state, history) = bounded(events);
    for step in (0..STEPS).map(StepId) {
        let all = unbounded(events, step);
        for sieve in [Sieve::All, Sieve::Errors, Sieve::Text] {
            let said = |said: &&Said| match sieve {
                Sieve::All => true,
                Sieve::Errors => said.what.is_bad(),
                Sieve::Text => said.what.is_message(),
            };
            let want: Vec<&Said> = all.said.iter().filter(said).collect();
            let numbers = listed(older, &state, &history, step, Tab::Transcript, sieve);
            let numbers = numbers.strip_prefix(&[TASK]).unwrap_or(&numbers);
            let entries = Entries { history: &history, older };
            let found: Vec<Said> = numbers.iter().map(|n| entries.said(step, *n).unwrap().into_owned()).collect();
            assert_eq!(found.iter().collect::<Vec<_>>(), want, "{sieve:?}");
            if let (Sieve::All, Some(first)) = (sieve, numbers.first()) {
                let after: Vec<u64> = entries.said_after(step, *first).map(|said| said.seq).collect();
                assert_eq!(after, numbers[1..]);
            }
            let want: Vec<&Entry> = all.told.iter().filter(|e| sieve != Sieve::Errors || e.tone == Tone::Bad).collect();
            if sieve != Sieve::Text {
                let numbers = listed(older, &state, &history, step, Tab::Events, sieve);
                let entries = Entries { history: &history, older };
                let found: Vec<Entry> = numbers.iter().map(|n| entries.told(step, *n).unwrap().into_owned()).collect();
                assert_eq!(found.iter().collect::<Vec<_>>(), want, "{sieve:?}");
                let want: Vec<&ToolCall> = all
                    .calls
                    .iter()
                    .filter(|call| sieve != Sieve::Errors || call.outcome != Some(ToolOutcome::Ok))
                    .collect();
                let numbers = listed(older, &state, &history, step, Tab::Tools, sieve);
                let (entries, found) = (Entries { history: &history, older }, state.step(step).unwrap());
                let calls = numbers.iter().filter_map(|n| match entries.call(found, *n).unwrap() {
                    Call::Ended(call, _) => Some(call.into_owned()),
                    Call::Open(_) => None,
                });
                assert_eq!(calls.collect::<Vec<_>>().iter().collect::<Vec<_>>(), want, "{sieve:?}");
                assert_eq!(entries.many(found), all.told.len());
            }
        }
        let entries = Entries { history: &history, older };
        check_files(&all, state.step(step).unwrap(), entries);
        for tab in [Tab::Tools, Tab::Transcript, Tab::Events] {
            let earlier = entries.earlier(state.step(step).unwrap(), tab);
            assert!(matches!(earlier, Earlier::None | Earlier::Listed), "{tab:?} {earlier:?}");
        }
    }
}

/// Each file has all the calls that named it, with their tools.
fn check_files(all: &Unbounded, step: &StepState, entries: Entries<'_>) {
    let ended = all.calls.iter().map(|call| (&call.path, &call.tool));
    let every: Vec<_> = ended.chain(step.open.iter().map(|call| (&call.path, &call.tool))).collect();
    let mut want: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (path, tool) in &every {
        if let Some(path) = path {
            *want.entry((path, tool)).or_default() += 1;
        }
    }
    let mut got: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (path, tool, times) in entries.touched(step) {
        *got.entry((path, tool)).or_default() += times;
    }
    assert_eq!(got, want);
    let listed = entries.all(step, Tab::Tools, Sieve::All);
    for name in ["f0.rs", "src/f1.rs", "f2.rs"] {
        let of =
            every.iter().enumerate().filter(|(_, (path, _))| path.as_ref().is_some_and(|path| path.ends_with(name)));
        let want: Vec<u64> = of.map(|(place, _)| listed.number(place).unwrap()).collect();
        assert_eq!(entries.calls_on_file(step, &SafeText::line(name)), want, "{name}");
    }
}

fn outcome() -> impl Strategy<Value = ToolOutcome> {
    prop_oneof![6 => Just(ToolOutcome::Ok), 1 => Just(ToolOutcome::Error), 1 => Just(ToolOutcome::Denied)]
}

fn what() -> impl Strategy<Value = What> {
    let call = (0..STEPS, prop::option::of(0..6u8), 0..3u8).prop_map(|(step, id, tool)| {
        let event = AgentEvent::ToolStarted {
            call: id.map(|id| format!("c{id}")),
            tool: format!("t{tool}"),
            args: format!("of {id:?}"),
            path: id.map(|id| format!("src/f{}.rs", id % 2)),
            about: Default::default(),
        };
        What::Agent { step: StepId(step), event }
    });
    let end = (0..STEPS, prop::option::of(0..6u8), 0..3u8, outcome()).prop_map(|(step, id, tool, outcome)| {
        let call = id.map(|id| format!("c{id}"));
        let preview = format!("gave {id:?}\nand more");
        What::Agent {
            step: StepId(step),
            event: AgentEvent::ToolEnded { call, tool: Some(format!("t{tool}")), outcome, preview },
        }
    });
    let text =
        prop_oneof![4 => Just("it says"), 1 => Just("\n\x1b[31m\n"), 1 => Just(""), 1 => Just("[prompt redacted]")];
    let message = (0..STEPS, 0..3u8, prop::option::weighted(0.2, Just("429".to_owned())), text).prop_map(
        |(step, role, error, text)| {
            let role = [MessageRole::Assistant, MessageRole::User, MessageRole::ToolResult][usize::from(role)];
            let event = AgentEvent::Message {
                role,
                preview: text.into(),
                model: None,
                stop: Some(crate::run::StopReason::Error),
                usage: None,
                error,
                calls_tools: false,
            };
            What::Agent { step: StepId(step), event }
        },
    );
    let other = (0..STEPS, 0..6u8).prop_map(|(step, which)| {
        let step = StepId(step);
        match which {
            0 => What::Agent { step, event: AgentEvent::TurnStarted },
            1 => What::AttemptStarted { step, attempt: 2, model: None, reason: Some("again".into()) },
            2 => What::ChildSpawned { step, pid: 7, start_ticks: None },
            3 => What::ChildExited { step, exit: Default::default() },
            4 => What::Agent {
                step,
                event: AgentEvent::SubAgent {
                    id: "s".into(),
                    did: SubAgentDid::Started { name: "scout".into(), about: "look".into(), model: None },
                },
            },
            _ => What::Agent {
                step,
                event: AgentEvent::SubAgent { id: "s".into(), did: SubAgentDid::Ended(ToolOutcome::Ok) },
            },
        }
    });
    prop_oneof![8 => call, 8 => end, 3 => message, 1 => other]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn what_is_kept_and_what_is_read_again_are_everything(
        whats in prop::collection::vec((what(), prop::bool::weighted(0.2)), 1_500..3_000),
        end in prop::option::of(prop::bool::ANY),
    ) {
        let mut whats = whats;
        if let Some(stopped) = end {
            let phase = if stopped { StepPhase::Stopped } else { StepPhase::Failed };
            let outcome = StepOutcome { phase, exit_code: 1, error: Some("it broke".into()), ..StepOutcome::default() };
            whats.push((What::StepEnded { step: StepId(0), outcome: Box::new(outcome) }, false));
        }
        let events = recorded(whats);
        // Made when everything was recorded.
        let mut older = Older::default();
        older.begin(|| Box::new(Recordings { len: events.len(), events: events.clone(), gone: None }));
        read_all(&mut older);
        check(&mut older, &events);
        // An earlier moment, as a replay shows it.
        check(&mut older, &events[..events.len() * 2 / 3]);
        // Made in the middle, and what came then was told.
        let half = events.len() / 2;
        let half = half + events[half..].iter().take_while(|recorded| recorded.nth > 0).count();
        let mut older = Older::default();
        older.begin(|| Box::new(Recordings { len: half, events: events.clone(), gone: None }));
        read_all(&mut older);
        for recorded in &events[half - 3..] {
            older.add(std::slice::from_ref(&recorded.event), &[recorded.spot()]);
        }
        // Its records are read when they are there.
        if let Stage::Open { tape, .. } = &mut older.stage {
            *tape = Box::new(Recordings { len: events.len(), events: events.clone(), gone: None });
        }
        check(&mut older, &events);
    }
}

/// A run of one step with this many calls that ended, and one that is open.
fn calls(many: usize) -> Vec<Recorded> {
    let step = StepId(0);
    let said = |event| (What::Agent { step, event }, false);
    let start = |n: usize| AgentEvent::ToolStarted {
        call: Some(format!("c{n}")),
        tool: "bash".into(),
        args: format!("job {n}"),
        path: None,
        about: Default::default(),
    };
    let end = |n: usize| AgentEvent::ToolEnded {
        call: Some(format!("c{n}")),
        tool: None,
        outcome: ToolOutcome::Ok,
        preview: format!("gave {n}"),
    };
    let all = (0..many).flat_map(|n| [said(start(n)), said(end(n))]);
    recorded(all.chain([said(start(many))]).collect())
}

fn opened(events: &[Recorded]) -> Older {
    let mut older = Older::default();
    older.begin(|| Box::new(Recordings { len: events.len(), events: events.to_vec(), gone: None }));
    read_all(&mut older);
    older
}

#[test]
fn calls_that_a_status_tells_of_are_joined_where_they_are_the_same() {
    let events = calls(250);
    let (state, history) = bounded(&events);
    let older = opened(&events);
    let listed = |change: &dyn Fn(&mut StepState)| {
        let mut step = state.steps[0].clone();
        change(&mut step);
        let entries = Entries { history: &history, older: &older };
        let all = entries.all(&step, Tab::Tools, Sieve::All);
        (entries.earlier(&step, Tab::Tools), all.len(), all.number(0), all.newest())
    };
    assert_eq!(listed(&|_| {}), (Earlier::Listed, 251, Some(0), Some(OPEN + 250)));
    // A status that keeps fewer of them.
    assert_eq!(listed(&|step| drop(step.recent_tools.drain(..195))), (Earlier::Listed, 251, Some(0), Some(OPEN + 250)));
    // One that counts fewer than the log has, or more.
    assert_eq!(listed(&|step| step.tool_count = 3), (Earlier::Listed, 251, Some(0), Some(OPEN + 250)));
    assert_eq!(listed(&|step| step.tool_count = 260), (Earlier::Listed, 251, Some(9), Some(OPEN + 250)));
    // Of a lost run the open call was ended by whoever reads of it.
    let lose = |step: &mut StepState| {
        let open = step.open.pop().unwrap();
        let mut lost = step.recent_tools[0].clone();
        (lost.ended_at, lost.outcome) = (open.started_at, Some(ToolOutcome::Lost));
        step.recent_tools.push_back(lost);
    };
    assert_eq!(listed(&lose), (Earlier::Listed, 251, Some(0), Some(250)));
    // Other calls than those of the log: only what the status has is listed, and said to be the newest.
    let others = |step: &mut StepState| step.recent_tools.iter_mut().for_each(|call| call.tool = "other".into());
    assert_eq!(listed(&others), (Earlier::Unlisted, 201, Some(50), Some(OPEN + 250)));
}

#[test]
fn a_recording_that_goes_on_in_another_way_is_not_joined_and_one_that_is_gone_says_so() {
    let events = calls(600);
    let (state, mut history) = bounded(&events);
    let mut older = opened(&events);
    let step = &state.steps[0];
    // Nothing is at hand yet, and this record cannot be read any more.
    let (begun, gone) = (events[3].spot().number.unwrap(), events[3].place);
    if let Stage::Open { tape, .. } = &mut older.stage {
        *tape = Box::new(Recordings { len: events.len(), events: events.clone(), gone: Some(gone) });
    }
    let entries = Entries { history: &history, older: &older };
    let listed = entries.all(step, Tab::Tools, Sieve::All);
    assert_eq!((listed.len(), listed.number(0)), (601, Some(0)));
    let needs = entries.needs(step, Tab::Tools, &listed, 0..3);
    assert_eq!(needs.len(), 6);
    older.fetch(&needs);
    let entries = Entries { history: &history, older: &older };
    assert!(entries.call(step, 0).is_none() && entries.said(step.id, begun).is_none());
    assert!(entries.told(step.id, begun).is_none());
    let Some(Call::Ended(call, _)) = entries.call(step, 1) else { panic!() };
    assert_eq!((call.args.as_str(), call.preview.as_str()), ("job 1", "gave 1"));
    // The log was cut, and is read again from its beginning.
    history.add(&state, std::slice::from_ref(&events[0].event), &[events[0].spot()]);
    let entries = Entries { history: &history, older: &older };
    for tab in [Tab::Tools, Tab::Transcript, Tab::Events] {
        assert_eq!(entries.earlier(step, tab), Earlier::Unlisted);
    }
    assert_eq!(entries.all(step, Tab::Tools, Sieve::All).len(), 201);
}

#[test]
fn the_end_of_a_call_that_gave_nothing_names_the_call_also_when_it_is_read_again() {
    let events: Vec<Recorded> = calls(600).into_iter().map(silent).collect();
    let (state, history) = bounded(&events);
    let mut older = opened(&events);
    for (tab, words) in [(Tab::Transcript, "job 7"), (Tab::Events, "✗ bash failed job 7")] {
        let numbers = listed(&mut older, &state, &history, StepId(0), tab, Sieve::All);
        let entries = Entries { history: &history, older: &older };
        let told = numbers.iter().filter_map(|number| match tab {
            Tab::Events => Some(entries.told(StepId(0), *number)?.text.to_string()),
            _ => match entries.said(StepId(0), *number)?.into_owned().what {
                crate::deck::said::SaidWhat::Result { of, .. } => of.map(|of| of.to_string()),
                _ => None,
            },
        });
        assert_eq!(told.filter(|told| told == words).count(), 1, "{tab:?}");
    }
}

/// The same where calls give nothing and do not work.
fn silent(mut recorded: Recorded) -> Recorded {
    if let What::Agent { event: AgentEvent::ToolEnded { outcome, preview, .. }, .. } = &mut recorded.event.what {
        (*outcome, *preview) = (ToolOutcome::Error, String::new());
    }
    recorded
}

#[test]
fn calls_that_never_end_do_not_make_every_other_event_as_slow_as_they_are_many() {
    const MANY: usize = 3_000;
    let started = |n: usize| {
        let event = AgentEvent::ToolStarted {
            call: Some(format!("c{n}")),
            tool: "Read".into(),
            args: "{}".into(),
            path: None,
            about: crate::run::CallFacts::default(),
        };
        (What::Agent { step: StepId(0), event }, false)
    };
    let ended = |n: usize| {
        let event = AgentEvent::ToolEnded {
            call: Some(format!("c{n}")),
            tool: None,
            outcome: ToolOutcome::Ok,
            preview: "fine".into(),
        };
        (What::Agent { step: StepId(0), event }, false)
    };
    let mut whats: Vec<_> = (0..MANY).map(started).collect();
    // Looked for in all that are open, for each of them that is open, this takes hours.
    for n in MANY..3 * MANY {
        whats.extend([started(n), ended(n)]);
    }
    whats.extend([ended(7), ended(5)]);
    let mut book = Book::new(RunState::default());
    assert!(recorded(whats).iter().all(|recorded| book.take(recorded)));
    let shelf = book.shelf(StepId(0)).unwrap();
    assert_eq!(shelf.calls.len(), 2 * MANY + 2);
    let (first, last) = (shelf.call(2 * MANY), shelf.call(2 * MANY + 1));
    assert!(first.unwrap().0 > last.unwrap().0 && first.unwrap().1 < last.unwrap().1, "{first:?} {last:?}");
}
