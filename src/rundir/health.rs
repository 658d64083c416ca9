//! Whether somebody runs a run, by its files and its processes (run-directory 7).

use std::fs;
use std::time::{Duration, SystemTime};

use super::RunDir;
use super::identity::{self, RunnerLife};
use crate::run::{RunState, Timestamp};

/// A directory without a status and without a runner is starting for this long; then it never will. A runner says who it
/// is before anything else, so this is the time that a launcher may take on a busy machine.
pub(super) const STARTING: Duration = Duration::from_secs(30);
/// A process id is believed for this long after the last sign of the run (run-directory 7).
const BELIEVED: Duration = Duration::from_secs(24 * 60 * 60);

/// Whether somebody runs the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// Its directory is there and its first status is not.
    #[default]
    Starting,
    /// Its runner lives.
    Live,
    /// Its runner lives and is stopped by a signal, so it answers nothing; what can be done.
    Suspended(String),
    /// It has ended.
    Over,
    /// Its runner died without ending it; how that is known.
    Lost(String),
    /// Whether its runner lives cannot be known; why.
    Unknown(String),
    /// Its status cannot be read, its events say nothing, and no runner is known that would mend that; why.
    Unreadable(String),
    /// Its directory was removed, moved, replaced or unmounted, or is closed to us; what became of it, in words that
    /// follow "the run's directory". The last picture stays.
    Gone(String),
}

/// Now, by the wall clock.
pub(super) fn wall() -> Timestamp {
    let ms = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    Timestamp::from_millis(i64::try_from(ms).unwrap_or(i64::MAX))
}

/// A run whose runner lives.
pub(super) fn living(dir: &RunDir) -> Health {
    identity::suspended(dir).map_or(Health::Live, suspended)
}

fn suspended(pid: u32) -> Health {
    Health::Suspended(format!(
        "the runner (pid {pid}) is suspended (stopped by a signal) and answers nothing; `kill -CONT {pid}` lets it go on"
    ))
}

/// Whether somebody runs a run that has not ended by its files (run-directory 7).
pub(super) fn health(dir: &RunDir, state: Option<&RunState>) -> Health {
    match identity::probe(dir) {
        RunnerLife::Alive if state.is_some() => return living(dir),
        RunnerLife::Alive => return Health::Starting,
        RunnerLife::Dead(evidence) if state.is_none() => return Health::Lost(format!("before it started: {evidence}")),
        RunnerLife::Dead(evidence) => return Health::Lost(evidence),
        RunnerLife::Unknown(why) => return Health::Unknown(why),
        RunnerLife::NotOurs => {}
    }
    let Some(state) = state else {
        let age = fs::metadata(dir.path()).and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok());
        return match age {
            Some(age) if age < STARTING => Health::Starting,
            Some(_) => {
                let time = crate::text::span(STARTING);
                Health::Lost(format!(
                    "before it started: it has neither a status nor a runner {time} after it was made"
                ))
            }
            // Made in the future, so nobody knows for how long it has been there.
            None => Health::Unknown("it has no status".into()),
        };
    };
    let Some(pid) = state.pid else { return Health::Unknown("its status names no process".into()) };
    match identity::pid_lives(pid) {
        Some(false) => Health::Lost(format!("the runner (pid {pid}) is gone")),
        Some(true) => {
            let now = wall();
            let heard = state.last_update.or(state.started_at).unwrap_or_default();
            if now.since(heard) > BELIEVED {
                return Health::Unknown(format!("nothing was heard for a day; pid {pid} may be another process"));
            }
            if identity::is_stopped(pid) { suspended(pid) } else { Health::Live }
        }
        None => Health::Unknown(format!("the process {pid} belongs to another user")),
    }
}
