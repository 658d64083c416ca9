//! A runner below this process: waited for and signalled without ever meaning another process.

use std::io;
use std::process::{Child, ExitStatus};

use rustix::process::Signal;
use tokio::sync::oneshot;

/// What a runner in the foreground can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ToRunner {
    Interrupt,
    Stop,
    Kill,
    Hangup,
    /// Ends it at once, whatever it does. What it leaves is for its keeper.
    Abandon,
}

/// A runner that is waited for.
#[derive(Debug)]
pub struct Watched {
    ended: oneshot::Receiver<Option<ExitStatus>>,
    status: Option<Option<ExitStatus>>,
    pid: u32,
    #[cfg(target_os = "linux")]
    handle: std::os::fd::OwnedFd,
}

impl Watched {
    /// Begins to wait for `runner`.
    ///
    /// # Errors
    /// When the system gives no handle or thread.
    pub fn new(mut runner: Child) -> io::Result<Self> {
        let pid = runner.id();
        // Taken while the child is unreaped, the handle means this process for good.
        #[cfg(target_os = "linux")]
        let handle = {
            let raw = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
            let raw = raw.ok_or_else(|| io::Error::other("the runner has no process id"))?;
            rustix::process::pidfd_open(raw, rustix::process::PidfdFlags::empty())?
        };
        let (sender, ended) = oneshot::channel();
        std::thread::Builder::new().name("wait".to_owned()).stack_size(64 * 1024).spawn(move || {
            // Nobody is left to be told when this fails.
            let _ = sender.send(runner.wait().ok());
        })?;
        Ok(Self {
            ended,
            status: None,
            pid,
            #[cfg(target_os = "linux")]
            handle,
        })
    }

    /// Returns how the runner ended, once it has; `None` when that could not be learnt. Can be dropped and called
    /// again.
    pub async fn wait(&mut self) -> Option<ExitStatus> {
        if let Some(status) = self.status {
            return status;
        }
        let status = (&mut self.ended).await.ok().flatten();
        self.status = Some(status);
        status
    }

    /// Tells the runner something; nothing happens when it is gone.
    pub fn signal(&self, what: ToRunner) {
        let signal = match what {
            ToRunner::Interrupt => Signal::INT,
            ToRunner::Stop => Signal::TERM,
            ToRunner::Kill => Signal::QUIT,
            ToRunner::Hangup => Signal::HUP,
            ToRunner::Abandon => Signal::KILL,
        };
        #[cfg(target_os = "linux")]
        let _ = rustix::process::pidfd_send_signal(&self.handle, signal);
        #[cfg(not(target_os = "linux"))]
        if self.status.is_none()
            && let Some(pid) = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// Its process id.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }
}
