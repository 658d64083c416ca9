//! How old the runs of a list are, and when that reads differently: a picture is drawn again then and not before.

use std::time::Duration;

use crate::deck::fleet::model::{FleetUi, runs};
use crate::listing::Row;
use crate::run::Timestamp;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// An age in few cells, in its largest unit: `42s`, `12m`, `7h`, `31d`.
pub(super) fn age(span: Duration) -> String {
    let (unit, word) = unit(span);
    format!("{}{word}", span.as_secs() / unit)
}

/// The unit in which an age is told, in seconds.
const fn unit(span: Duration) -> (u64, char) {
    match span.as_secs() {
        0..MINUTE => (1, 's'),
        MINUTE..HOUR => (MINUTE, 'm'),
        HOUR..DAY => (HOUR, 'h'),
        _ => (DAY, 'd'),
    }
}

/// When something in the picture of this list reads differently though nothing happens: an age, or how long the
/// selected run has been at it. Nothing does without runs.
pub(in crate::deck::fleet) fn reads_differently_at(
    rows: &[Row<'_>],
    ui: &FleetUi,
    now: Timestamp,
) -> Option<Timestamp> {
    let next = |since: Timestamp, unit: u64| {
        // One that starts in the future is no age old until then.
        let span = now.since(since);
        since.max(now) + (Duration::from_secs(unit * (span.as_secs() / unit + 1)) - span)
    };
    let times = runs(rows).filter_map(|run| {
        let started = run.state()?.started_at?;
        let clock = Some(run.dir().path()) == ui.selected.as_deref() && run.is_living();
        // As a span is written: with seconds in the first hour, with minutes in the first day.
        let clock = clock.then(|| match unit(now.since(started)).0 {
            1 | MINUTE => 1,
            HOUR => MINUTE,
            _ => HOUR,
        });
        let age = unit(now.since(started)).0;
        Some(next(started, clock.map_or(age, |clock| clock.min(age))))
    });
    times.min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RunId, RunPhase, RunState};
    use crate::rundir::fleet::FleetRun;
    use crate::rundir::{Listed, RunDir};

    fn at(s: u64) -> Timestamp {
        Timestamp::from_millis(1_764_000_000_000) + Duration::from_secs(s)
    }

    fn one(id: &str, phase: RunPhase, started: u64) -> FleetRun {
        let ended_at = phase.is_terminal().then(|| at(started + 1));
        let state =
            RunState { id: RunId(id.into()), phase, started_at: Some(at(started)), ended_at, ..RunState::default() };
        let dir = RunDir::at(format!("/r/{id}"));
        FleetRun::of(Listed { dir, state: Ok(state), lost: None, distrust: None, nested_in: None }, 0)
    }

    #[test]
    fn an_age_reads_differently_when_it_says_so_and_not_before() {
        let runs = [one("a", RunPhase::Complete, 0), one("b", RunPhase::Running, 100_000)];
        let (over, living) = (&runs[..1], &runs[..]);
        // What is selected, how long after the first start, and in how many seconds the picture is another.
        for (runs, selected, now, wait) in [
            (over, "/r/a", 0, 1),
            (over, "/r/a", 59, 1),
            (over, "/r/a", 60, 60),
            (over, "/r/a", 90, 30),
            (over, "/r/a", 3_599, 1),
            (over, "/r/a", 3_700, 3_500),
            (over, "/r/a", 86_400 * 3 + 400, 86_000),
            // One that goes on and is not looked at has an age like the others.
            (living, "/r/a", 100_000 + 7_300, 3_500),
            (living, "/r/b", 100_000 + 130, 1),
            (living, "/r/b", 100_000 + 7_230, 30),
        ] {
            let rows: Vec<Row<'_>> = runs.iter().map(|run| Row::Run { run, part: false }).collect();
            let ui = FleetUi { selected: Some(selected.into()), ..FleetUi::default() };
            let next = reads_differently_at(&rows, &ui, at(now)).unwrap();
            assert_eq!(next.since(at(now)).as_secs(), wait, "{selected} {now}");
            let ages = |now| {
                runs.iter().map(|r| age(at(now).since(r.state().unwrap().started_at.unwrap()))).collect::<Vec<_>>()
            };
            // The ages alone are what they were for all but the last of these seconds.
            assert_eq!(ages(now), ages(now + wait - 1), "{selected} {now}");
        }
        assert_eq!(reads_differently_at(&[], &FleetUi::default(), at(0)), None);
        let future = [one("a", RunPhase::Complete, 500)];
        let rows = [Row::Run { run: &future[0], part: false }];
        assert_eq!(reads_differently_at(&rows, &FleetUi::default(), at(100)), Some(at(501)));
    }

    #[test]
    fn ages_are_told_in_their_largest_unit() {
        let table =
            [(0, "0s"), (59, "59s"), (60, "1m"), (3_599, "59m"), (3_600, "1h"), (86_399, "23h"), (86_400 * 31, "31d")];
        for (secs, text) in table {
            assert_eq!(age(Duration::from_secs(secs)), text);
        }
    }
}
