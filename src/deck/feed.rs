//! The deck's only window on the world: what it reads and what it writes. `LiveFeed` is the
//! one over a run directory; tests bring their own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::run::replay::{Spot, Tape};
use crate::run::{Event, Raise, RunState, SteerMode, StepId, Stream, Timestamp};
use crate::rundir::{LeftOut, Match, StepLog};
use crate::text::SafeText;

/// What a look at the disk found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// The state is another one.
    pub state: bool,
    /// Steps whose logs may have grown.
    pub output: Vec<StepId>,
    /// What happened, oldest first.
    pub news: Vec<Event>,
    /// Where each of them stands in the event log; its record is for [`Feed::record`].
    pub places: Vec<Spot>,
    /// The steps of which older news than these were left out.
    pub cut: BTreeMap<StepId, LeftOut>,
    /// The event log is another one: its events begin anew.
    pub anew: bool,
    /// The event log is not there any more, or is there again.
    pub gone: bool,
}

/// Whether the run is in somebody's hands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Hands {
    /// Its runner lives, or is about to.
    #[default]
    Live,
    /// It has ended.
    Over,
    /// Its runner is gone without an end; the evidence.
    Lost(SafeText),
    /// The directory is gone, and what became of it; the picture is the last one.
    Gone(SafeText),
    /// Its runner lives and answers nothing, and what can be done.
    Suspended(SafeText),
    /// It cannot be told, and why.
    Unknown(SafeText),
}

/// A line of a step's live output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Where it begins, as a virtual position.
    pub start: u64,
    /// Where the next one begins.
    pub end: u64,
    /// Which stream printed it.
    pub stream: Stream,
    /// When.
    pub at: Option<Timestamp>,
    /// By which attempt, from 1; 0 when that is not known.
    pub attempt: u8,
    /// Its bytes without the newline.
    pub bytes: Vec<u8>,
    /// It was longer than what is kept of a line.
    pub cut: bool,
}

/// A request to the runner.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Say something to steps.
    Steer {
        /// Who.
        targets: Vec<StepId>,
        /// How.
        mode: SteerMode,
        /// What.
        message: String,
    },
    /// Pause the run.
    Interrupt,
    /// Stop the run.
    Stop,
    /// Stop a step.
    StopStep(StepId),
    /// Take note of a notice of the runner.
    Acknowledge(String),
    /// Answer a question, by its name in the run.
    Answer(String, crate::run::Answer),
    /// Change a limit of the run, or of a step.
    Raise(Option<StepId>, Raise),
    /// Withdraw a message, by the id of its request.
    TakeBack(String),
}

/// What the runner answered to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was done.
    Done,
    /// It was not, and why.
    Refused(SafeText),
}

/// What was being written when decks before this one went away.
pub use crate::rundir::drafts::{News, Unsent};

/// What the deck knows of the plan beside the state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepFacts {
    /// The task, line by line.
    pub task: Vec<SafeText>,
    /// Limits as name and value.
    pub limits: Vec<(&'static str, String)>,
}

/// A run that was started in a step of this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InnerRun {
    /// Its directory.
    pub path: PathBuf,
    /// The step, where that is known.
    pub step: Option<StepId>,
    /// What it is called.
    pub title: SafeText,
    /// It goes on.
    pub living: bool,
    /// It needs a person.
    pub needs: bool,
    /// When it was started.
    pub started: Timestamp,
}

/// How far a search has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Searched {
    /// Up to where the log was looked through.
    pub upto: u64,
    /// How long the log is.
    pub len: u64,
    /// How many matches there are up to there.
    pub total: u64,
}

impl Searched {
    /// Whether everything was looked through.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.upto >= self.len
    }
}

/// Reads and writes one run.
pub trait Feed {
    /// Looks at what is new. Never waits.
    fn poll(&mut self) -> Changes;

    /// The run as of the last look.
    fn state(&self) -> &RunState;

    /// Who has it.
    fn hands(&self) -> Hands;

    /// What stands between the files and the picture, one sentence each.
    fn troubles(&self) -> Vec<SafeText> {
        Vec::new()
    }

    /// The length of a step's log in virtual bytes, as of the last look at it; looks.
    fn log_len(&mut self, step: StepId) -> u64;

    /// Only one stream of a step is looked at from here on, or all; `Out` stands for all that is not of standard error.
    /// All positions of the step are those of what is looked at.
    fn show(&mut self, step: StepId, only: Option<Stream>) {
        _ = (step, only);
    }

    /// At most `n` lines that end at or before `position`, oldest first.
    fn lines_before(&mut self, step: StepId, position: u64, n: usize) -> Vec<LogLine>;

    /// At most `n` lines that begin at or after `position`, oldest first.
    fn lines_from(&mut self, step: StepId, position: u64, n: usize) -> Vec<LogLine>;

    /// Begins to search a step's log, or goes on: looks at about `budget` bytes more, so that nobody waits for a long log.
    /// Letters match whatever their case when the needle has no capitals; colours and carriage returns in between do not
    /// matter.
    fn search(&mut self, step: StepId, needle: &str, budget: u64) -> Searched;

    /// The first match at or behind a position, or the last one before it, as far as the search has come.
    fn found(&mut self, step: StepId, needle: &str, position: u64, back: bool) -> Option<Match>;

    /// A match near a position, whatever the search has come to; at most `span` bytes are looked at.
    fn nearby(&mut self, step: StepId, needle: &str, position: u64, back: bool, span: u64) -> Option<u64>;

    /// How many lines end in a range of a step's log. The caller bounds the range.
    fn feeds(&mut self, step: StepId, range: std::ops::Range<u64>) -> u64;

    /// Goes on counting the lines of a step's log: looks at about `budget` bytes more. Returns whether there are more.
    fn index(&mut self, step: StepId, budget: u64) -> bool;

    /// The number of the line that holds a position, from 1, and how many lines there are, once all were counted.
    fn line_number(&mut self, step: StepId, position: u64) -> Option<(u64, u64)>;

    /// How much of what happened was read, in per cent, while there is more: until then the picture is that of the newest
    /// status.
    fn reading(&self) -> Option<u8>;

    /// What happened last, oldest first, for as long as not everything was read.
    fn newest(&self) -> Vec<Event>;

    /// What happened, to be played again from its beginning.
    fn tape(&self) -> Box<dyn Tape>;

    /// How long a step's log was at a moment, in virtual bytes; `None` where nothing tells it.
    fn log_len_at(&mut self, step: StepId, at: Timestamp) -> Option<u64>;

    /// When a step printed something next after a moment, where anything tells it.
    fn printed_after(&mut self, step: StepId, at: Timestamp) -> Option<Timestamp>;

    /// The log of a step for somebody who reads it on a thread of his own; `None` where nothing was printed yet.
    fn whole_log(&self, step: StepId) -> Option<StepLog>;

    /// What the plan says of a step.
    fn facts(&mut self, step: StepId) -> StepFacts;

    /// The record that begins at this place of the event log, whole.
    ///
    /// # Errors
    /// Why it cannot be read, ready to be shown.
    fn record(&self, place: u64) -> Result<Vec<u8>, String>;

    /// Writes a request; the id of the request, where it has one.
    ///
    /// # Errors
    /// Why it was not written, ready to be shown.
    fn send(&mut self, request: &Request, key: &str) -> Result<Option<String>, String>;

    /// What the runner answered to a request, by its id; `None` while it has not.
    fn answer(&self, request: &str) -> Option<Answer>;

    /// The drafts of other decks that were kept for the run.
    fn drafts(&mut self) -> Vec<Unsent>;

    /// What other decks have written for a step since then; `held`: this deck has a draft of it that was in a file.
    fn new_drafts(&mut self, step: StepId, held: bool) -> Option<News>;

    /// Keeps the draft of a step, with the run where that takes it, or forgets it.
    ///
    /// # Errors
    /// Why it was not kept, ready to be shown.
    fn keep_draft(&mut self, step: StepId, draft: Option<(&str, SteerMode)>) -> Result<(), String>;

    /// The folder that a step works in; `None` when it is not there.
    fn folder(&self, step: StepId) -> Option<PathBuf>;

    /// The runs that were started in this one, as of the last look.
    fn inside(&self) -> Vec<InnerRun> {
        Vec::new()
    }
}

#[cfg(test)]
pub mod fake {
    //! A feed from memory.

    use super::*;
    use crate::run::replay::{Piece, Recorded};
    use crate::rundir::drafts::Kept;

    /// A run that only exists in a test.
    #[derive(Default)]
    pub struct FakeFeed {
        /// What [`Feed::state`] gives.
        pub state: RunState,
        /// The lines of each step's log.
        pub logs: BTreeMap<StepId, Vec<LogLine>>,
        /// What [`Feed::hands`] gives.
        pub hands: Hands,
        /// What was sent.
        pub sent: Vec<Request>,
        /// What [`Feed::facts`] gives.
        pub facts: BTreeMap<StepId, StepFacts>,
        /// What [`Feed::record`] gives.
        pub records: BTreeMap<u64, String>,
        /// What [`Feed::drafts`] gives.
        pub drafts: BTreeMap<StepId, Unsent>,
        /// What [`Feed::tape`] gives.
        pub tape: FakeTape,
    }

    /// Events from memory; so many bytes each, so many in a record.
    #[derive(Clone, Default)]
    pub struct FakeTape {
        /// What is known before them.
        pub beginning: RunState,
        /// What happened.
        pub events: Vec<Event>,
    }

    impl Tape for FakeTape {
        fn beginning(&self) -> RunState {
            self.beginning.clone()
        }

        fn read(&mut self, place: u64, most: u64) -> Piece {
            let from = usize::try_from(place).unwrap_or(usize::MAX).min(self.events.len());
            let to =
                from.saturating_add(usize::try_from(most / 100).unwrap_or(usize::MAX).max(1)).min(self.events.len());
            let recorded =
                |(event, place): (&Event, u64)| Recorded { event: event.clone(), place, nth: 0, record: Some(place) };
            Piece {
                events: self.events[from..to].iter().zip(place..).map(recorded).collect(),
                next: (to < self.events.len()).then_some(to as u64),
            }
        }

        fn len(&self) -> u64 {
            self.events.len() as u64
        }
    }

    impl FakeFeed {
        /// Adds lines of one stream to a step's log.
        pub fn print(&mut self, step: u32, stream: Stream, text: &str) {
            let log = self.logs.entry(StepId(step)).or_default();
            for line in text.lines() {
                let start = log.last().map_or(0, |l| l.end);
                log.push(LogLine {
                    start,
                    end: start + line.len() as u64 + 1,
                    stream,
                    at: None,
                    attempt: 1,
                    bytes: line.as_bytes().to_vec(),
                    cut: false,
                });
            }
        }
    }

    impl FakeFeed {
        fn matches(&self, step: StepId, needle: &str) -> Vec<u64> {
            let log = self.logs.get(&step).map(Vec::as_slice).unwrap_or_default();
            let has = |l: &&LogLine| String::from_utf8_lossy(&l.bytes).contains(needle);
            log.iter().filter(has).map(|l| l.start).collect()
        }
    }

    impl Feed for FakeFeed {
        fn poll(&mut self) -> Changes {
            Changes::default()
        }

        fn state(&self) -> &RunState {
            &self.state
        }

        fn hands(&self) -> Hands {
            self.hands.clone()
        }

        fn log_len(&mut self, step: StepId) -> u64 {
            self.logs.get(&step).and_then(|l| l.last()).map_or(0, |l| l.end)
        }

        fn lines_before(&mut self, step: StepId, position: u64, n: usize) -> Vec<LogLine> {
            let log = self.logs.get(&step).map(Vec::as_slice).unwrap_or_default();
            let end = log.partition_point(|l| l.end <= position);
            log[end.saturating_sub(n)..end].to_vec()
        }

        fn lines_from(&mut self, step: StepId, position: u64, n: usize) -> Vec<LogLine> {
            let log = self.logs.get(&step).map(Vec::as_slice).unwrap_or_default();
            let start = log.partition_point(|l| l.start < position);
            log[start..].iter().take(n).cloned().collect()
        }

        fn search(&mut self, step: StepId, needle: &str, _budget: u64) -> Searched {
            let len = self.log_len(step);
            Searched { upto: len, len, total: self.matches(step, needle).len() as u64 }
        }

        fn found(&mut self, step: StepId, needle: &str, position: u64, back: bool) -> Option<Match> {
            let all = self.matches(step, needle);
            let mut numbered = all.into_iter().zip(1..).map(|(at, nth)| Match { at, nth });
            if back { numbered.filter(|m| m.at < position).last() } else { numbered.find(|m| m.at >= position) }
        }

        fn nearby(&mut self, step: StepId, needle: &str, position: u64, back: bool, _span: u64) -> Option<u64> {
            self.found(step, needle, position, back).map(|found| found.at)
        }

        fn feeds(&mut self, step: StepId, range: std::ops::Range<u64>) -> u64 {
            let log = self.logs.get(&step).map(Vec::as_slice).unwrap_or_default();
            log.iter().filter(|l| range.contains(&(l.end - 1))).count() as u64
        }

        fn index(&mut self, _step: StepId, _budget: u64) -> bool {
            false
        }

        fn line_number(&mut self, step: StepId, position: u64) -> Option<(u64, u64)> {
            let log = self.logs.get(&step)?;
            Some((log.partition_point(|l| l.end <= position) as u64 + 1, log.len() as u64))
        }

        fn reading(&self) -> Option<u8> {
            None
        }

        fn newest(&self) -> Vec<Event> {
            Vec::new()
        }

        fn tape(&self) -> Box<dyn Tape> {
            Box::new(self.tape.clone())
        }

        fn log_len_at(&mut self, step: StepId, at: Timestamp) -> Option<u64> {
            let log = self.logs.get(&step)?;
            let came = log.iter().take_while(|line| line.at.is_some_and(|then| then <= at)).last();
            log.iter().all(|line| line.at.is_some()).then(|| came.map_or(0, |line| line.end))
        }

        fn printed_after(&mut self, step: StepId, at: Timestamp) -> Option<Timestamp> {
            self.logs.get(&step)?.iter().find_map(|line| line.at.filter(|then| *then > at))
        }

        fn whole_log(&self, _step: StepId) -> Option<StepLog> {
            None
        }

        fn facts(&mut self, step: StepId) -> StepFacts {
            self.facts.get(&step).cloned().unwrap_or_default()
        }

        fn record(&self, place: u64) -> Result<Vec<u8>, String> {
            self.records.get(&place).map(|r| r.clone().into_bytes()).ok_or_else(|| "nothing is there".to_owned())
        }

        fn send(&mut self, request: &Request, _key: &str) -> Result<Option<String>, String> {
            self.sent.push(request.clone());
            Ok(matches!(request, Request::Steer { .. }).then(|| "a91f".to_owned()))
        }

        fn answer(&self, _request: &str) -> Option<Answer> {
            None
        }

        fn drafts(&mut self) -> Vec<Unsent> {
            self.drafts.values().cloned().collect()
        }

        fn new_drafts(&mut self, _: StepId, _: bool) -> Option<News> {
            None
        }

        fn keep_draft(&mut self, step: StepId, draft: Option<(&str, SteerMode)>) -> Result<(), String> {
            self.drafts.remove(&step);
            let kept = draft.map(|(text, mode)| Kept { step, mode, text: text.to_owned() });
            self.drafts.extend(kept.map(|kept| (step, Unsent { kept, many: 1, at: Timestamp::default() })));
            Ok(())
        }

        fn folder(&self, _step: StepId) -> Option<PathBuf> {
            None
        }
    }
}
