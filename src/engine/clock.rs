//! The one place that reads clocks for events.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use crate::run::Timestamp;

/// Now, in whole milliseconds, as files hold them: the wall clock as it was when this process asked first, and the time
/// since then. Somebody who sets the clock meanwhile makes no age negative and no limit fire early.
#[must_use]
pub fn now() -> Timestamp {
    static START: OnceLock<(Duration, Duration)> = OnceLock::new();
    let since_boot = clock(WITH_SLEEP);
    let (wall, boot) =
        *START.get_or_init(|| (SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(), since_boot));
    let span = wall.saturating_add(since_boot.saturating_sub(boot).saturating_mul(speed()));
    Timestamp::from_millis(i64::try_from(span.as_millis()).unwrap_or(i64::MAX))
}

/// How long to wait until a moment comes; nothing when it has.
#[must_use]
pub fn wait_until(at: Timestamp) -> Duration {
    at.since(now()) / speed()
}

/// How many times faster the runner's time goes than the world's. Only a build for tests can be told so, to see what comes
/// after minutes.
#[cfg(debug_assertions)]
fn speed() -> u32 {
    static SPEED: OnceLock<u32> = OnceLock::new();
    let told = || std::env::var("SUBDECK_TEST_CLOCK_SPEED").ok()?.parse().ok();
    *SPEED.get_or_init(|| told().unwrap_or(1).max(1))
}

#[cfg(not(debug_assertions))]
const fn speed() -> u32 {
    1
}

/// How long the machine has slept since it was started.
#[must_use]
pub fn slept() -> Duration {
    clock(WITH_SLEEP).saturating_sub(clock(AWAKE))
}

#[cfg(target_os = "linux")]
const WITH_SLEEP: ClockId = ClockId::Boottime;
#[cfg(target_os = "linux")]
const AWAKE: ClockId = ClockId::Monotonic;
/// The monotonic clock of macOS counts sleep.
#[cfg(target_os = "macos")]
const WITH_SLEEP: ClockId = ClockId::Monotonic;
/// Nothing tells the two apart there with what is at hand: no sleep is seen.
#[cfg(target_os = "macos")]
const AWAKE: ClockId = ClockId::Monotonic;

fn clock(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
