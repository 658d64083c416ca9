use proptest::prelude::*;

use super::*;
use crate::run::{Event, StepId, What};

const NOON: i64 = 1_764_417_600_000;

fn now(ms: i64) -> Timestamp {
    Timestamp::from_millis(NOON + ms)
}

/// Events at these milliseconds; every third one stands out.
fn line(times: &[i64]) -> Timeline {
    let mut line = Timeline::default();
    for (ms, number) in times.iter().zip(0_u64..) {
        let what = if number % 3 == 2 {
            What::ControlRejected { file: String::new(), reason: String::new(), set_aside: false }
        } else {
            What::StepStarted { step: StepId(0) }
        };
        line.push(&Event { at: now(*ms), what }, number);
    }
    line
}

fn whereabouts(cursor: &Cursor) -> (u128, usize) {
    (cursor.at().as_millis(), cursor.events())
}

#[test]
fn it_plays_as_fast_as_it_is_told_and_stops_at_the_end() {
    let line = line(&[0, 500, 1_000, 9_000]);
    let mut cursor = Cursor::default();
    cursor.seek(&line, Duration::ZERO);
    assert_eq!(whereabouts(&cursor), (0, 1));
    assert!(!cursor.advance(&line, now(0)), "it stays until it is told to play");
    cursor.play(&line, now(0));
    assert!(cursor.advance(&line, now(600)));
    assert_eq!(whereabouts(&cursor), (600, 2));
    for speed in [2, 4, 8, 16, 32, 64] {
        assert!(cursor.change_speed(true));
        assert_eq!(cursor.speed(), speed);
    }
    assert!(!cursor.change_speed(true));
    cursor.advance(&line, now(610));
    assert_eq!(whereabouts(&cursor), (1_240, 3));
    assert!(!cursor.advance(&line, now(100)), "a clock that was set back moves nothing");
    cursor.advance(&line, now(5_000));
    assert_eq!((whereabouts(&cursor), cursor.plays()), ((9_000, 4), false));
    // From the end it begins again.
    cursor.play(&line, now(5_000));
    assert_eq!(whereabouts(&cursor), (0, 1));
}

#[test]
fn steps_go_by_event_by_mark_and_by_time() {
    let line = line(&[0, 500, 500, 500, 30_000, 31_000, 31_000]);
    let mut cursor = Cursor::default();
    let mut go = |steps: &[Step]| {
        let moved = steps.iter().fold(false, |_, step| cursor.step(&line, *step));
        (whereabouts(&cursor), moved)
    };
    assert_eq!(go(&[Step::Start]), ((0, 1), true));
    assert_eq!(go(&[Step::EventBack]), ((0, 1), false), "before the first event there is nothing");
    assert_eq!(go(&[Step::Event]), ((500, 2), true));
    assert_eq!(go(&[Step::Event]), ((500, 3), true), "what has the same time comes one by one");
    assert_eq!(go(&[Step::EventBack]), ((500, 2), true));
    assert_eq!(go(&[Step::Mark]), ((500, 3), true));
    assert_eq!(go(&[Step::Mark]), ((31_000, 6), true));
    assert_eq!(go(&[Step::Mark]), ((31_000, 7), true), "behind the last mark there is the end");
    assert_eq!(go(&[Step::MarkBack]), ((31_000, 6), true));
    assert_eq!(go(&[Step::MarkBack]), ((500, 3), true));
    assert_eq!(go(&[Step::MarkBack]), ((0, 1), true));
    assert_eq!(go(&[Step::Jump]), ((10_000, 4), true));
    assert_eq!(go(&[Step::EventBack]), ((500, 3), true), "one event less also from between two events");
    assert_eq!(go(&[Step::Jump, Step::Jump, Step::Jump]), ((30_500, 5), true));
    assert_eq!(go(&[Step::Jump]), ((31_000, 7), true));
    assert_eq!(go(&[Step::Jump]), ((31_000, 7), false));
    assert_eq!(go(&[Step::JumpBack]), ((21_000, 4), true));
    assert_eq!(go(&[Step::Event]), ((30_000, 5), true));
    assert_eq!(go(&[Step::End]), ((31_000, 7), true));
}

#[test]
fn the_beginning_is_the_first_event_also_where_more_happened_in_that_moment() {
    let line = line(&[0, 0, 500, 900]);
    for back in [Step::Start, Step::MarkBack] {
        let mut cursor = Cursor::default();
        cursor.seek_events(&line, 2);
        assert!(cursor.step(&line, back), "{back:?}");
        assert_eq!(whereabouts(&cursor), (0, 1), "{back:?}");
    }
    let mut cursor = Cursor::default();
    cursor.seek(&line, line.span());
    cursor.play(&line, now(0));
    assert_eq!(whereabouts(&cursor), (0, 1));
}

#[test]
fn idle_time_is_passed_over_up_to_a_little_before_what_comes_next() {
    let line = line(&[0, 1_000, 61_000, 62_000]);
    let mut cursor = Cursor::default();
    cursor.seek(&line, Duration::from_secs(1));
    assert_eq!(cursor.idle(&line), None, "it does not play");
    cursor.play(&line, now(0));
    assert_eq!(cursor.idle(&line), None, "a little of it is shown");
    cursor.advance(&line, now(2_500));
    let idle = cursor.idle(&line).unwrap();
    assert_eq!(idle, Duration::from_millis(3_500)..Duration::from_secs(59));
    assert_eq!(cursor.pass_over(&line, idle.end), Duration::from_millis(55_500));
    assert_eq!((whereabouts(&cursor), cursor.idle(&line)), ((59_000, 2), None));
    // No event is passed over with it.
    assert_eq!(cursor.pass_over(&line, Duration::from_secs(70)), Duration::from_secs(2));
    assert_eq!(whereabouts(&cursor), (61_000, 2));
    cursor.seek(&line, Duration::from_secs(10));
    cursor.skip_idle(false);
    assert_eq!(cursor.idle(&line), None);
}

#[test]
fn it_is_due_when_the_next_event_is_or_the_clock_shows_another_second() {
    let line = line(&[0, 400, 5_000]);
    let mut cursor = Cursor::default();
    cursor.seek(&line, Duration::ZERO);
    assert_eq!(cursor.due(&line), None);
    cursor.play(&line, now(0));
    assert_eq!(cursor.due(&line), Some(Duration::from_millis(400)));
    cursor.advance(&line, now(600));
    assert_eq!(cursor.due(&line), Some(Duration::from_millis(400)));
    cursor.change_speed(true);
    cursor.change_speed(true);
    assert_eq!(cursor.due(&line), Some(Duration::from_millis(100)));
}

#[test]
fn nothing_that_was_recorded_is_nothing_to_play() {
    let line = Timeline::default();
    let mut cursor = Cursor::default();
    for step in [Step::Event, Step::EventBack, Step::Mark, Step::MarkBack, Step::Jump, Step::Start, Step::End] {
        assert!(!cursor.step(&line, step));
    }
    cursor.play(&line, now(0));
    assert!(!cursor.advance(&line, now(900)) && !cursor.plays());
}

proptest! {
    #[test]
    fn wherever_it_goes_its_time_and_its_events_agree(
        times in proptest::collection::vec(0i64..100_000, 1..60),
        steps in proptest::collection::vec(0usize..9, 0..40),
    ) {
        let mut sorted = times;
        sorted.sort_unstable();
        let line = line(&sorted);
        let mut cursor = Cursor::default();
        let mut clock = 0;
        cursor.seek(&line, Duration::ZERO);
        const STEPS: [Step; 8] = [Step::Event, Step::EventBack, Step::Mark, Step::MarkBack, Step::Jump, Step::JumpBack,
            Step::Start, Step::End];
        for step in steps {
            match STEPS.get(step) {
                Some(step) => { cursor.step(&line, *step); }
                None => {
                    cursor.play(&line, now(clock));
                    clock += 777;
                    cursor.advance(&line, now(clock));
                }
            }
            let (at, events) = (cursor.at(), cursor.events());
            prop_assert!(events >= 1 && events <= line.len() && at <= line.span());
            prop_assert!(line.at(events - 1) <= at);
            prop_assert!(events == line.len() || line.at(events) >= at);
        }
    }
}
