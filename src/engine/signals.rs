//! Signals to the runner. The handlers are installed before the first child is spawned, so that children begin with
//! every one of them at its default, whatever the runner inherited.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Want {
    Interrupt,
    Stop,
    Kill,
}

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What it asks for.
    pub want: Want,
    /// Its name.
    pub signal: &'static str,
    /// Nobody sent it: the command in front, with this process id, is gone.
    pub orphaned_by: Option<u32>,
}

/// Signals that would end a process and that mean nothing here: timers and what other programs agree upon. The real-time
/// signals, which have no names, are among them.
fn strays() -> impl Iterator<Item = i32> {
    use rustix::process::Signal as S;
    #[cfg(target_os = "linux")]
    let more = [S::STKFLT.as_raw(), S::IO.as_raw()].into_iter().chain(34..=64);
    #[cfg(not(target_os = "linux"))]
    let more = std::iter::empty();
    // Of a file beyond its largest size the write itself tells.
    [S::USR1, S::ALARM, S::VTALARM, S::PROF, S::XFSZ].map(S::as_raw).into_iter().chain(more)
}

/// Lets signals that mean nothing pass by in this process, which has a runtime. What it starts begins with every one of
/// them at its default.
pub fn shrug_off_strays() {
    for number in strays() {
        // One that cannot be caught is as it was.
        let _ = signal(SignalKind::from_raw(number));
    }
}

/// Lets every signal that can be caught pass by, in a process that only waits and has no runtime.
pub fn shrug_off_all() {
    use rustix::process::Signal as S;
    let came = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let asking = [S::INT, S::TERM, S::HUP, S::QUIT, S::USR2, S::XCPU].map(S::as_raw);
    for number in asking.into_iter().chain(strays()) {
        let _ = signal_hook::flag::register(number, std::sync::Arc::clone(&came));
    }
}

/// Listens to the signals.
#[derive(Debug)]
pub struct Signals {
    int: Signal,
    usr2: Signal,
    term: Signal,
    hup: Signal,
    quit: Signal,
    /// The time on a processor that the system grants is nearly used up.
    spent: Signal,
    foreground: bool,
    /// The process above this one as it began.
    parent: u32,
}

impl Signals {
    /// Installs the handlers. SIGHUP stops a run in the foreground; otherwise it is ignored (product 2). What means nothing
    /// ends nothing.
    ///
    /// # Errors
    /// When a handler cannot be installed.
    pub fn install(foreground: bool) -> io::Result<Self> {
        shrug_off_strays();
        Ok(Self {
            int: signal(SignalKind::interrupt())?,
            usr2: signal(SignalKind::user_defined2())?,
            term: signal(SignalKind::terminate())?,
            hup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
            spent: signal(SignalKind::from_raw(rustix::process::Signal::XCPU.as_raw()))?,
            foreground,
            parent: parent(),
        })
    }

    /// The next request by signal. Can be dropped at any time without losing one.
    pub async fn next(&mut self) -> Asked {
        loop {
            let (want, signal) = tokio::select! {
                _ = self.int.recv() => (Want::Interrupt, "SIGINT"),
                _ = self.usr2.recv() => (Want::Interrupt, "SIGUSR2"),
                _ = self.term.recv() => (Want::Stop, "SIGTERM"),
                _ = self.quit.recv() => (Want::Kill, "SIGQUIT"),
                _ = self.spent.recv() => (Want::Stop, "SIGXCPU"),
                _ = self.hup.recv() => {
                    if !self.foreground {
                        continue;
                    }
                    (Want::Stop, "SIGHUP")
                }
            };
            // The system sends it to a runner in the foreground when the command is gone, which it is by then.
            let orphaned = self.foreground && signal == "SIGTERM" && is_gone(self.parent);
            return Asked { want, signal, orphaned_by: orphaned.then_some(self.parent) };
        }
    }
}

/// Whether the process above this one has ended. It stays the parent for as long as one of its threads is not gone.
fn is_gone(pid: u32) -> bool {
    if parent() != pid {
        return true;
    }
    cfg!(target_os = "linux") && super::tree::start_ticks(pid).is_none()
}

fn parent() -> u32 {
    std::os::unix::process::parent_id()
}
