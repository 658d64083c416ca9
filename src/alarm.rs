//! An alarm: one wake at one moment.
//!
//! The timers of the runtime stand in a wheel, which wakes the process for a timer of more than 64 ms at least once
//! before it is due. Who shows a clock and otherwise sleeps would wake twice a second for it, so on Linux the kernel
//! keeps the time.

use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use kernel::Timer;
#[cfg(not(target_os = "linux"))]
use wheel::Timer;

/// One alarm, which can be set again and again.
#[derive(Debug)]
pub struct Alarm {
    /// `None` where the system has none to give.
    timer: Option<Timer>,
    /// What the timer is set to.
    set: Option<Instant>,
}

impl Default for Alarm {
    fn default() -> Self {
        Self::new()
    }
}

impl Alarm {
    /// An alarm that is not set. Where the kernel has no more timers to give the runtime's are used.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[must_use]
    pub fn new() -> Self {
        Self { timer: Timer::new(), set: None }
    }

    /// Returns when this moment has come; never, where there is none. May be dropped at any time. One that is past lets
    /// the runtime look at its files and signals once, so that a loop that is always busy still hears of them.
    pub async fn at(&mut self, moment: Option<Instant>) {
        let left = moment.map(|at| at.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return tokio::task::yield_now().await;
        }
        let Some(timer) = &mut self.timer else {
            return match moment {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            };
        };
        if self.set != moment {
            timer.set(left);
            self.set = moment;
        }
        match moment {
            Some(at) => timer.rung(at).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::os::fd::OwnedFd;
    use std::time::{Duration, Instant};

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    };
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// A timer of the kernel on the clock of `Instant`.
    #[derive(Debug)]
    pub struct Timer(AsyncFd<OwnedFd>);

    impl Timer {
        pub fn new() -> Option<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let file = timerfd_create(TimerfdClockId::Monotonic, flags).ok()?;
            // The newer function is unsafe, because any type could lie about its descriptor; ours owns it.
            #[allow(deprecated)]
            AsyncFd::with_interest(file, Interest::READABLE).ok().map(Self)
        }

        /// Sets it to ring so much later; `None` stops it.
        pub fn set(&self, left: Option<Duration>) {
            // All zero stops a timer, which is why nothing is as short as that here.
            let left = left.map_or(Duration::ZERO, |left| left.max(Duration::from_nanos(1)));
            let it_value = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
            // Refused only for times that the kernel cannot count, which `left` is not.
            let _ = timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &Itimerspec { it_interval, it_value });
        }

        /// Returns when it rings.
        pub async fn rung(&self, at: Instant) {
            let read = |file: &OwnedFd| Ok(rustix::io::read(file, &mut [0; 8]).map(drop)?);
            if self.0.async_io(Interest::READABLE, read).await.is_err() {
                tokio::time::sleep_until(at.into()).await;
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod wheel {
    use std::time::{Duration, Instant};

    /// A timer of the runtime.
    #[derive(Debug)]
    pub struct Timer;

    impl Timer {
        pub const fn new() -> Option<Self> {
            Some(Self)
        }

        pub const fn set(&self, _: Option<Duration>) {}

        pub async fn rung(&self, at: Instant) {
            tokio::time::sleep_until(at.into()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    #[test]
    fn it_rings_at_its_moment_however_often_it_was_set_to_others() {
        block_on(async {
            let mut alarm = Alarm::new();
            let begun = Instant::now();
            let (near, far) = (begun + Duration::from_millis(30), begun + Duration::from_secs(3600));
            // Set to another moment, and to none, and left again before it could ring.
            for moment in [Some(far), None, Some(near), Some(far)] {
                tokio::select! {
                    biased;
                    () = alarm.at(moment) => panic!("{moment:?} has not come"),
                    () = std::future::ready(()) => {}
                }
            }
            alarm.at(Some(near)).await;
            assert!(Instant::now() >= near);
            // That it rang is not remembered for the next moment.
            let next = Instant::now() + Duration::from_millis(20);
            alarm.at(Some(next)).await;
            assert!(Instant::now() >= next);
        });
    }

    #[test]
    fn a_moment_that_is_past_lets_others_have_their_turn() {
        block_on(async {
            let mut alarm = Alarm::new();
            let turn = tokio::spawn(async {});
            alarm.at(Some(Instant::now())).await;
            assert!(turn.is_finished());
        });
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_second_costs_one_wake() {
        let wakes = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let line = status.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:")).unwrap();
            line.trim().parse::<u64>().unwrap()
        };
        block_on(async {
            let mut alarm = Alarm::new();
            alarm.at(Some(Instant::now() + Duration::from_millis(5))).await;
            let before = wakes();
            alarm.at(Some(Instant::now() + Duration::from_millis(300))).await;
            assert_eq!(wakes() - before, 1);
        });
    }
}
