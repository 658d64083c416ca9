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
}

/// Listens to the signals.
#[derive(Debug)]
pub struct Signals {
    int: Signal,
    usr2: Signal,
    term: Signal,
    hup: Signal,
    quit: Signal,
    hangup_stops: bool,
}

impl Signals {
    /// Installs the handlers. With `hangup_stops` SIGHUP stops the run (a run in the foreground); otherwise it is
    /// ignored (product 2).
    ///
    /// # Errors
    /// When a handler cannot be installed.
    pub fn install(hangup_stops: bool) -> io::Result<Self> {
        Ok(Self {
            int: signal(SignalKind::interrupt())?,
            usr2: signal(SignalKind::user_defined2())?,
            term: signal(SignalKind::terminate())?,
            hup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
            hangup_stops,
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
                _ = self.hup.recv() => {
                    if !self.hangup_stops {
                        continue;
                    }
                    (Want::Stop, "SIGHUP")
                }
            };
            return Asked { want, signal };
        }
    }
}
