//! What ends the deck from outside: signals and the loss of the terminal.
//!
//! A thread of its own listens, so that a deck whose thread is stuck in a write to a terminal that does not read ends
//! all the same.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::terminal;

/// The deck has this long to leave by itself.
const GRACE: Duration = Duration::from_millis(1500);
const SIGHUP: i32 = 1;
const SIGQUIT: i32 = 3;

/// Another program has the terminal: what its keys send to everybody is meant for that one.
static LENT: AtomicBool = AtomicBool::new(false);

/// When it had it last: the thread that hears of signals may take its time.
static RETURNED: Mutex<Option<Instant>> = Mutex::new(None);

/// So long after that a Ctrl-\ is taken for one of the other program. The keys themselves are no signals while the deck
/// has the terminal.
const LATE: Duration = Duration::from_secs(1);

/// Says that another program has the terminal, or has it no longer.
pub fn lend(lent: bool) {
    if !lent {
        *RETURNED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
    LENT.store(lent, Ordering::SeqCst);
}

/// Whether a signal that keys send to everybody on the terminal was meant for another program.
fn is_of_another() -> bool {
    let returned = *RETURNED.lock().unwrap_or_else(PoisonError::into_inner);
    LENT.load(Ordering::SeqCst) || returned.is_some_and(|at| at.elapsed() < LATE)
}

/// Every signal that would end the deck and that can be listened to; SIGINT is a key here.
fn fatal() -> Vec<i32> {
    use rustix::process::Signal as Known;
    let signals = [
        Known::TERM,
        Known::HUP,
        Known::QUIT,
        Known::USR1,
        Known::USR2,
        Known::ALARM,
        Known::VTALARM,
        Known::PROF,
        Known::XCPU,
        Known::XFSZ,
        Known::ABORT,
        Known::SYS,
        Known::TRAP,
    ];
    let mut numbers = signals.map(Known::as_raw).to_vec();
    #[cfg(target_os = "linux")]
    numbers.extend([Known::IO, Known::POWER].map(Known::as_raw));
    numbers
}

/// What the two threads know of whoever is to be told.
struct Told {
    /// The newest deck or fleet of this process.
    whom: Option<Sender<i32>>,
    /// What asked it to go.
    number: Option<i32>,
    /// The threads are there.
    listening: bool,
}

/// Told when something asks the process to go.
static ASKED: Condvar = Condvar::new();

static TOLD: Mutex<Told> = Mutex::new(Told { whom: None, number: None, listening: false });

fn told() -> MutexGuard<'static, Told> {
    TOLD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts to listen. The receiver gets the number of the signal that asks the deck to go; a lost terminal counts as
/// SIGHUP. Of several receivers of one process, as of a fleet and the runs that are opened from it, the newest gets it,
/// and two threads serve them all.
///
/// # Errors
/// When the threads cannot be started.
pub fn watch() -> io::Result<Receiver<i32>> {
    let (sender, receiver) = channel(1);
    let mut told = told();
    if !told.listening {
        start()?;
        told.listening = true;
    }
    // What came between two decks is for the one that comes.
    if let Some(number) = told.number {
        let _ = sender.try_send(number);
    }
    told.whom = Some(sender);
    Ok(receiver)
}

fn start() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Installed before the thread starts, so that none finds the terminal taken and nobody listening.
    let mut listened: Vec<(i32, Signal)> = {
        let _inside = runtime.enter();
        let one = |number| signal(SignalKind::from_raw(number)).map(|signal| (number, signal));
        fatal().into_iter().map(one).collect::<io::Result<_>>()?
    };
    let listen = move || {
        let first = std::future::poll_fn(|cx| {
            let meant = |number: i32| !(number == SIGQUIT && is_of_another());
            for (number, signal) in &mut listened {
                while signal.poll_recv(cx).is_ready() {
                    if meant(*number) {
                        return Poll::Ready(*number);
                    }
                }
            }
            Poll::Pending
        });
        go(runtime.block_on(first));
    };
    std::thread::Builder::new().name("deck-signals".to_owned()).spawn(listen)?;
    std::thread::Builder::new().name("deck-tty".to_owned()).spawn(wait_for_hangup)?;
    Ok(())
}

/// What asked this process to go, where it does so before `time` has passed.
pub fn asked_within(time: Duration) -> Option<i32> {
    let waited = ASKED.wait_timeout_while(told(), time, |told| told.number.is_none());
    waited.unwrap_or_else(PoisonError::into_inner).0.number
}

/// Ends this process by a signal, as it would have ended without a deck.
pub fn die_by(number: i32) -> ! {
    // Comes back only for a signal that does not end a process.
    let _ = signal_hook::low_level::emulate_default_handler(number);
    std::process::exit(128 + number);
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
fn wait_for_hangup() {
    loop {
        let stdin = io::stdin();
        let mut fds = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::empty())];
        match poll(&mut fds, None) {
            Ok(_) if lost(&fds) => return go(SIGHUP),
            Err(rustix::io::Errno::INTR) => {}
            // Where a terminal cannot be polled the signal has to do.
            _ => return,
        }
    }
}

fn go(number: i32) {
    {
        let mut told = told();
        told.number = Some(number);
        if let Some(whom) = &told.whom {
            let _ = whom.try_send(number);
        }
    }
    ASKED.notify_all();
    std::thread::sleep(GRACE);
    terminal::leave_without_writing();
    die_by(number);
}
