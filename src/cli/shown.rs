//! A followed run on its way to standard output. Looking and printing happen on a thread of their own, so that neither a
//! long backlog nor a reader that takes nothing keeps the command from heeding signals (product 2).

use std::future::pending;
use std::io::{self, Stdout, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::{JoinHandle, spawn_blocking};

use super::args::Output;
use super::out;
use crate::headless::Printer;
use crate::rundir::{Follower, RunDir};

/// What became of the printing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// Everything was printed, or its reader had seen enough.
    #[default]
    Whole,
    /// Standard output cannot be written, which was told.
    Unwritable,
    /// It was ended from outside.
    Cut,
}

/// Prints a followed run.
pub struct Shown {
    dir: PathBuf,
    /// Here between two looks, in `task` during one.
    view: Option<Box<View>>,
    task: Option<JoinHandle<Box<View>>>,
    begun: bool,
    /// The look that is at work, or was, is the last one.
    last: bool,
    shut: Arc<AtomicBool>,
    fate: Fate,
}

struct View {
    follower: Follower,
    printer: Printer<Gate<Stdout>>,
    /// The end of the run is learnt from its runner, so nothing has to be watched for after it.
    own: bool,
}

impl Shown {
    /// Prints what `follower` finds in the run directory `dir`. A run of one's `own` is that of a runner below this
    /// process.
    pub fn new(follower: Follower, output: Output, dir: &RunDir, own: bool) -> Self {
        let shut = Arc::new(AtomicBool::new(false));
        let gate = Gate { out: io::stdout(), shut: shut.clone() };
        let printer = Printer::new(gate, output.into(), dir);
        Self {
            dir: follower.dir().path().to_path_buf(),
            view: Some(Box::new(View { follower, printer, own })),
            task: None,
            begun: false,
            last: false,
            shut,
            fate: Fate::Whole,
        }
    }

    /// Waits until something may have changed, at first not, and prints what is new. May be dropped and called again.
    pub async fn more(&mut self) {
        if self.task.is_none() {
            if let Some(view) = self.view.as_mut().filter(|_| self.begun) {
                view.follower.wait_gathered().await;
            }
            self.begun = true;
            let Some(mut view) = self.view.take() else { return pending().await };
            self.task = Some(spawn_blocking(move || {
                view.look();
                view
            }));
        }
        self.collect().await;
    }

    /// Prints everything that is left, and what stands at the end. May be dropped and called again.
    pub async fn rest(&mut self) {
        self.collect().await;
        if self.last {
            return;
        }
        let Some(mut view) = self.view.take() else { return };
        self.last = true;
        self.task = Some(spawn_blocking(move || {
            // A long event log is read piece by piece.
            while view.look() {}
            view.printer.end(view.follower.state());
            view
        }));
        self.collect().await;
    }

    /// Waits for the look that is at work.
    async fn collect(&mut self) {
        let Some(task) = &mut self.task else { return };
        let done = task.await;
        self.task = None;
        // A thread that broke leaves nothing to look with; the end is read anew.
        let Ok(mut view) = done else { return };
        if let Some(error) = view.printer.trouble()
            && self.fate == Fate::Whole
        {
            self.fate = Fate::Unwritable;
            out::complain(&error);
        }
        self.view = Some(view);
    }

    /// Whether nothing more will come.
    pub fn is_over(&self) -> bool {
        self.task.is_none() && self.view.as_ref().is_none_or(|view| view.follower.is_over())
    }

    /// Ends the printing where it is. Nothing waits for the thread that prints: its reader may never take
    /// anything again.
    pub fn cut(&mut self) {
        self.shut.store(true, Ordering::Relaxed);
        self.fate = Fate::Cut;
    }

    /// The run as it stands now, and what became of the printing.
    ///
    /// # Errors
    /// When the directory is gone and no picture of it is left.
    pub fn close(self) -> io::Result<(Follower, Fate)> {
        if let Some(view) = self.view {
            return Ok((view.follower, self.fate));
        }
        let mut follower = Follower::open(&self.dir)?;
        while follower.poll().behind && !follower.state().is_over() {}
        Ok((follower, self.fate))
    }
}

impl View {
    /// Looks and prints; whether there is more to look at.
    fn look(&mut self) -> bool {
        let changes = self.follower.poll();
        if changes.health {
            super::show::tell_suspended(&self.follower);
        }
        self.printer.print(self.follower.state(), &changes);
        if self.own {
            self.follower.rest_when_ended();
        }
        changes.behind
    }
}

/// Lets through until it is shut; then it is like a pipe without a reader.
struct Gate<W> {
    out: W,
    shut: Arc<AtomicBool>,
}

impl<W: Write> Write for Gate<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.shut.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_that_is_shut_takes_nothing_more() {
        let shut = Arc::new(AtomicBool::new(false));
        let mut gate = Gate { out: Vec::new(), shut: shut.clone() };
        gate.write_all(b"one").unwrap();
        shut.store(true, Ordering::Relaxed);
        assert_eq!(gate.write_all(b"two").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(gate.out, b"one");
    }
}
