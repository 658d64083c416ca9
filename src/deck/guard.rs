//! What ends the deck from outside: signals and the loss of the terminal.
//!
//! A thread of its own listens, so that a deck whose thread is stuck in a write to a terminal that does not read, or
//! in a library that spins on a terminal that is gone, ends all the same.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::terminal;

/// The deck has this long to leave by itself.
const GRACE: Duration = Duration::from_millis(1500);
const SIGHUP: i32 = 1;

/// Starts to listen. The receiver gets the number of the signal that asks the deck to go; a lost terminal counts as
/// SIGHUP.
///
/// # Errors
/// When the threads cannot be started.
pub fn watch() -> io::Result<Receiver<i32>> {
    let (sender, receiver) = channel(4);
    let hangup = sender.clone();
    std::thread::Builder::new().name("deck-signals".to_owned()).spawn(move || signals(&sender))?;
    std::thread::Builder::new().name("deck-tty".to_owned()).spawn(move || wait_for_hangup(&hangup))?;
    Ok(receiver)
}

fn signals(sender: &Sender<i32>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    let number = runtime.block_on(async {
        let mut term = signal(SignalKind::terminate()).ok()?;
        let mut hup = signal(SignalKind::hangup()).ok()?;
        let mut quit = signal(SignalKind::quit()).ok()?;
        Some(tokio::select! {
            _ = term.recv() => SignalKind::terminate(),
            _ = hup.recv() => SignalKind::hangup(),
            _ = quit.recv() => SignalKind::quit(),
        })
    });
    if let Some(kind) = number {
        go(sender, kind.as_raw_value());
    }
}

/// Whether the terminal on standard input is gone.
#[must_use]
pub fn hung_up() -> bool {
    let stdin = io::stdin();
    let mut fds = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::empty())];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok() && lost(&fds)
}

fn lost(fds: &[PollFd<'_>]) -> bool {
    fds.iter().any(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR))
}

/// Sleeps until the terminal hangs up. Asking for no event leaves only that one, so the thread wakes once in its life.
fn wait_for_hangup(sender: &Sender<i32>) {
    loop {
        let stdin = io::stdin();
        let mut fds = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::empty())];
        match poll(&mut fds, None) {
            Ok(_) if lost(&fds) => return go(sender, SIGHUP),
            Err(rustix::io::Errno::INTR) => {}
            // Where a terminal cannot be polled the signal has to do.
            _ => return,
        }
    }
}

fn go(sender: &Sender<i32>, number: i32) {
    let _ = sender.try_send(number);
    std::thread::sleep(GRACE);
    terminal::leave_without_writing();
    std::process::exit(128 + number);
}
