use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;

use super::loading::{KEPT, KEPT_MOST};
use super::*;
use crate::deck::feed::fake::FakeTape;
use crate::run::replay::Step;
use crate::run::{
    AgentEvent, Event, MessageRole, RunMeta, RunPhase, StepId, StepMeta, StepOutcome, StepPhase, ToolOutcome, What,
};

const BEGAN: i64 = 1_764_417_600_000;

/// A run of so many calls over two steps, 700 ms each.
fn tape(calls: usize) -> FakeTape {
    let mut events = Vec::new();
    let mut ms = BEGAN;
    let mut happens = |what: What| {
        events.push(Event { at: Timestamp::from_millis(ms), what });
        ms += 350;
    };
    let steps = ["look", "work"].map(|key| StepMeta { key: key.to_owned(), ..StepMeta::default() });
    happens(What::RunStarted(Box::new(RunMeta { steps: steps.to_vec(), logical_count: 2, ..RunMeta::default() })));
    for step in [StepId(0), StepId(1)] {
        happens(What::StepStarted { step });
        happens(What::AttemptStarted { step, attempt: 1, model: None, reason: None });
    }
    for call in 0..calls {
        let step = StepId(u32::try_from(call % 2).unwrap());
        let id = Some(format!("c{call}"));
        happens(What::Agent {
            step,
            event: AgentEvent::ToolStarted {
                call: id.clone(),
                tool: "bash".to_owned(),
                args: format!("make {call}"),
                path: None,
                about: Default::default(),
            },
        });
        happens(What::Agent {
            step,
            event: AgentEvent::ToolEnded { call: id, tool: None, outcome: ToolOutcome::Ok, preview: String::new() },
        });
        if call % 5 == 0 {
            happens(What::Agent {
                step,
                event: AgentEvent::Message {
                    role: MessageRole::Assistant,
                    preview: format!("done with {call}"),
                    model: None,
                    stop: None,
                    usage: None,
                    error: None,
                    calls_tools: true,
                },
            });
        }
    }
    for step in [StepId(0), StepId(1)] {
        let outcome = Box::new(StepOutcome { phase: StepPhase::Complete, ..StepOutcome::default() });
        happens(What::StepEnded { step, outcome });
    }
    happens(What::RunEnded { state: RunPhase::Complete, error: None });
    FakeTape { beginning: RunState::default(), events }
}

fn loaded(tape: &FakeTape) -> (Player, Replay) {
    let mut player = Player::new(Box::new(tape.clone()));
    let mut replay = Replay { reading: Some(0), ..Replay::default() };
    while replay.reading.is_some() {
        player.load(&mut replay);
        std::thread::yield_now();
    }
    assert_eq!(replay.line.len(), tape.events.len());
    (player, replay)
}

/// The state as the one reducer makes it, and nothing else.
fn direct(tape: &FakeTape, events: usize) -> RunState {
    let mut state = tape.beginning.clone();
    tape.events.iter().take(events).for_each(|event| reduce(&mut state, event));
    state
}

fn told(history: &History) -> Vec<String> {
    history.ticker.iter().map(|entry| format!("{} {}", entry.seq, entry.text)).collect()
}

#[test]
fn it_stands_at_the_first_event_when_everything_was_read_and_ends_as_the_run_did() {
    let tape = tape(40);
    let (mut player, mut replay) = loaded(&tape);
    assert_eq!((replay.cursor.events(), replay.cursor.at()), (1, Duration::ZERO));
    assert!(player.seek(&replay.line, 1));
    assert_eq!(player.now().state.phase, RunPhase::Running);
    assert!(player.now().state.steps.iter().all(|step| step.phase == StepPhase::Pending));
    replay.cursor.step(&replay.line, Step::End);
    assert!(player.seek(&replay.line, replay.cursor.events()));
    assert!(!player.seek(&replay.line, replay.cursor.events()), "nothing is another when it stays");
    assert_eq!(player.now().state, direct(&tape, usize::MAX));
    assert_eq!(player.now().state.phase, RunPhase::Complete);
    assert_eq!(replay.clock(), tape.events.last().unwrap().at);
}

#[test]
fn a_long_log_keeps_few_moments_and_goes_back_by_single_events_from_near() {
    let tape = tape(20_000);
    let (mut player, replay) = loaded(&tape);
    assert!(player.keeps.len() <= KEPT_MOST && player.keeps.len() >= 4, "{}", player.keeps.len());
    for events in [tape.events.len(), 30_000, 29_999, 29_998, 29_930, 29_900, 3, 2, 1] {
        player.seek(&replay.line, events);
        assert_eq!(player.events, events);
        assert_eq!(player.now().state, direct(&tape, events), "after {events} events");
    }
    // The first step back keeps a moment, from which the next ones come.
    player.seek(&replay.line, 30_000);
    player.seek(&replay.line, 29_999);
    assert_eq!(player.near.as_ref().map(|(at, _)| *at), Some(29_999 - NEAR));
}

/// A tape that counts what is read of it.
struct Counted {
    tape: FakeTape,
    read: Arc<AtomicUsize>,
}

impl Tape for Counted {
    fn beginning(&self) -> RunState {
        self.tape.beginning()
    }

    fn read(&mut self, place: u64, most: u64) -> crate::run::replay::Piece {
        let piece = self.tape.read(place, most);
        self.read.fetch_add(piece.events.len(), Ordering::SeqCst);
        piece
    }

    fn len(&self) -> u64 {
        self.tape.len()
    }
}

#[test]
fn of_a_hundred_thousand_events_few_are_read_again_to_go_anywhere() {
    let tape = tape(45_400);
    let all = tape.events.len();
    assert!(all > 99_000, "{all}");
    let read = Arc::new(AtomicUsize::new(0));
    let mut player = Player::new(Box::new(Counted { tape: tape.clone(), read: Arc::clone(&read) }));
    let mut replay = Replay { reading: Some(0), ..Replay::default() };
    while replay.reading.is_some() {
        player.load(&mut replay);
        std::thread::yield_now();
    }
    let read = || read.load(Ordering::SeqCst);
    assert_eq!(read(), all, "each is read once");
    assert!(player.keeps.len() * player.now.weight() < 2 * KEPT);
    let mut go = |events: usize| {
        let before = read();
        player.seek(&replay.line, events);
        assert_eq!(player.events, events);
        read() - before
    };
    // From one end to the other, and anywhere back: what lies between two moments that are kept, and a part of the tape.
    for events in [all, 1, 77_777, 50_000, 49_000, 3, 99_000] {
        let again = go(events);
        assert!(again < all / 8, "{again} to come to {events}");
    }
    // Step by step back it is not much more than the steps.
    let again: usize = (90_000..90_300).rev().map(&mut go).sum();
    assert!(again < all / 2, "{again} for 300 steps back");
    // On it goes through the tape once.
    let again: usize = (90_000..90_900).map(&mut go).sum();
    assert!(again < 10_000, "{again} for 900 steps on");
}

#[test]
fn a_log_that_is_gone_leaves_the_picture_where_it_is() {
    let whole = tape(2_000);
    let (mut player, replay) = loaded(&whole);
    player.tape = Some(Box::new(FakeTape::default()));
    player.seek(&replay.line, 700);
    assert!(player.events < 700, "nothing is invented");
    assert_eq!(player.now().state, direct(&whole, player.events));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn wherever_it_comes_from_the_run_at_a_place_is_the_same(
        calls in 1usize..900,
        places in proptest::collection::vec(0.0f64..1.0, 1..14),
    ) {
        let tape = tape(calls);
        let (mut player, replay) = loaded(&tape);
        for place in places {
            let events = 1 + (place * (tape.events.len() - 1) as f64) as usize;
            player.seek(&replay.line, events);
            prop_assert_eq!(&player.now().state, &direct(&tape, events));
            // What is told of it is the same too, however it was come by.
            let (mut fresh, line) = loaded(&tape);
            fresh.seek(&line.line, events);
            prop_assert_eq!(told(&player.now().history), told(&fresh.now().history));
        }
    }
}
