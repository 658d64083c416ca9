use proptest::prelude::*;

use super::*;
use crate::run::{RunPhase, StepId};

fn event(ms: i64) -> Event {
    Event { at: Timestamp::from_millis(ms), what: What::StepStarted { step: StepId(0) } }
}

fn line(times: &[i64]) -> Timeline {
    let mut line = Timeline::default();
    for (ms, place) in times.iter().zip(0..) {
        assert!(line.push(&event(*ms), place));
    }
    line
}

fn at(line: &Timeline) -> Vec<u128> {
    (0..line.len()).map(|event| line.at(event).as_millis()).collect()
}

#[test]
fn events_lie_in_their_order_whatever_clocks_do() {
    assert_eq!(at(&line(&[1_000, 1_500, 3_000])), [0, 500, 2_000]);
    // Two writers a little apart take no time of their own.
    assert_eq!(at(&line(&[1_000, 1_500, 1_400, 1_600, 1_450, 1_700])), [0, 500, 500, 600, 600, 700]);
    // A record without a time is as late as the one before it.
    assert_eq!(at(&line(&[5_000_000, 0, 5_000_100])), [0, 0, 100]);
    // The clock was set back by an hour, and goes on.
    let set = line(&[10_000_000, 10_001_000, 6_401_000, 6_402_000]);
    assert_eq!(at(&set), [0, 1_000, 1_000, 2_000]);
    let shows = |ms, events| set.clock(Duration::from_millis(ms), events).millis();
    assert_eq!((shows(1_000, 2), shows(1_000, 3), shows(2_000, 4)), (10_001_000, 6_401_000, 6_402_000));
    assert_eq!(shows(1_700, 3), 6_401_700);
}

#[test]
fn what_stands_out_is_found_by_kind_and_place() {
    let mut line = Timeline::default();
    let ended = What::RunEnded { state: RunPhase::Complete, error: None };
    let asked = What::RunInterrupted { source: None };
    let needs = What::AttentionNoted { step: StepId(0), reason: crate::run::Reason::ToolOpen, message: String::new() };
    for (what, ms) in [(event(0).what, 0), (asked, 10), (needs, 20), (event(0).what, 30), (ended, 40)] {
        line.push(&Event { at: Timestamp::from_millis(1_000 + ms), what }, ms as u64);
    }
    assert_eq!(line.mark_in(0..5), Some((MarkKind::Attention, 2)));
    assert_eq!(line.mark_in(3..5), Some((MarkKind::End, 4)));
    assert_eq!(line.mark_in(3..4), None);
    assert_eq!((line.mark_from(0), line.mark_from(2), line.mark_from(5)), (Some(1), Some(2), None));
    assert_eq!((line.mark_before(5), line.mark_before(4), line.mark_before(1)), (Some(4), Some(2), None));
    // Four equal parts of the time, and its end.
    assert_eq!([0, 1, 2, 3, 4].map(|cell| line.in_cell(cell, 5)), [0..1, 1..2, 2..3, 3..4, 4..5]);
    assert_eq!((0..400).filter(|cell| !line.in_cell(*cell, 400).is_empty()).count(), 5);
}

#[test]
fn idle_times_are_known() {
    let line = line(&[1_000, 2_000, 62_000, 63_000]);
    assert_eq!(line.gap(2), Some(Duration::from_secs(1)..Duration::from_secs(61)));
    assert_eq!([0, 1, 3, 4, 99].map(|events| line.gap(events)), [None, None, None, None, None]);
}

proptest! {
    #[test]
    fn every_event_has_one_place(times in proptest::collection::vec(0i64..4_000_000, 0..300)) {
        let line = line(&times);
        for event in 0..line.len() {
            let at = line.at(event);
            prop_assert!(event == 0 || line.at(event - 1) <= at);
            prop_assert!(at <= line.span());
            let until = line.until(at);
            prop_assert!(until > event && (until == line.len() || line.at(until) > at));
            let (first, place) = line.place(event);
            prop_assert!(first <= event && place == first as u64);
            // The place is found again from what the clock shows there.
            prop_assert_eq!(line.when(line.clock(at, event + 1), at, event + 1), at);
        }
        for of in [1, 7, 200] {
            let cells: Vec<_> = (0..of).map(|cell| line.in_cell(cell, of)).collect();
            prop_assert!(cells.windows(2).all(|pair| pair[0].end == pair[1].start));
            prop_assert_eq!(cells.iter().map(Range::len).sum::<usize>(), line.len());
            // What happened until a moment has its mark in the cell of that moment or before it, what comes behind it.
            for event in 0..line.len() {
                prop_assert!(cells[line.cell(line.at(event), of)].contains(&event));
            }
            let begins = |cell: usize| line.cell(line.cell_begins(cell, of), of);
            prop_assert!(line.span().is_zero() || (0..of).all(|cell| begins(cell) == cell));
        }
    }
}
