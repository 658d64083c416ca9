//! The terminal's input, read on the thread that draws: a key needs no other thread to be taken, and nothing is read
//! while another program has the terminal.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use crossterm::event::Event as Input;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::guard;
use super::typed::Typed;

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Reads what is typed.
pub struct Keyboard {
    tty: AsyncFd<OwnedFd>,
    typed: Typed,
    /// When the newest bytes were read.
    read: Instant,
}

/// What a look at the terminal found.
enum Found {
    Bytes,
    Nothing,
    /// It is gone.
    Gone,
}

impl Keyboard {
    /// Reads the terminal that is the standard input; `early` was typed before.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn new(early: &[u8]) -> io::Result<Self> {
        Self::of(io::stdin().as_fd().try_clone_to_owned()?, early)
    }

    fn of(tty: OwnedFd, early: &[u8]) -> io::Result<Self> {
        // The newer function is unsafe, because any type could lie about its descriptor; ours owns it.
        #[allow(deprecated)]
        let tty = AsyncFd::with_interest(tty, Interest::READABLE)?;
        let mut typed = Typed::default();
        typed.feed(early);
        Ok(Self { tty, typed, read: Instant::now() })
    }

    /// The next input; `None` when the terminal is gone. May be dropped at any time.
    ///
    /// # Errors
    /// When the terminal cannot be read.
    pub async fn next(&mut self) -> Option<io::Result<Input>> {
        loop {
            if let Some(input) = self.typed.next() {
                return Some(Ok(input));
            }
            if guard::hung_up() {
                return None;
            }
            let patience = self.typed.patience().map(|patience| patience.saturating_sub(self.read.elapsed()));
            if patience == Some(Duration::ZERO) {
                // Whoever was busy meanwhile has not heard of the rest yet, which may have come long ago.
                match look(&self.tty, &mut self.typed) {
                    Ok(Found::Bytes) => self.read = Instant::now(),
                    Ok(Found::Nothing) => self.typed.settle(),
                    Ok(Found::Gone) => return None,
                    Err(error) => return Some(Err(error.into())),
                }
                continue;
            }
            let readable = self.tty.readable();
            let mut ready = match patience {
                None => readable.await,
                Some(patience) => match tokio::time::timeout(patience, readable).await {
                    Ok(ready) => ready,
                    Err(_) => continue,
                },
            }
            .ok()?;
            match look(&self.tty, &mut self.typed) {
                Ok(Found::Bytes) => self.read = Instant::now(),
                Ok(Found::Nothing) if ready.ready().is_read_closed() => return None,
                Ok(Found::Nothing) => ready.clear_ready(),
                Ok(Found::Gone) => return None,
                Err(error) => return Some(Err(error.into())),
            }
        }
    }

    /// An input that is there already.
    pub fn ready(&mut self) -> Option<Input> {
        loop {
            if let Some(input) = self.typed.next() {
                return Some(input);
            }
            match look(&self.tty, &mut self.typed) {
                Ok(Found::Bytes) => self.read = Instant::now(),
                // What is wrong with it is told when it is waited for.
                _ => return None,
            }
        }
    }
}

/// Takes what the terminal has, without waiting for anything.
fn look(tty: &AsyncFd<OwnedFd>, typed: &mut Typed) -> Result<Found, Errno> {
    let mut fds = [PollFd::new(tty, PollFlags::IN)];
    match retry_on_intr(|| poll(&mut fds, Some(&AT_ONCE)))? {
        0 => return Ok(Found::Nothing),
        _ if !fds[0].revents().contains(PollFlags::IN) => return Ok(Found::Gone),
        _ => {}
    }
    let mut bytes = [0; 4096];
    match retry_on_intr(|| rustix::io::read(tty, &mut bytes)) {
        Ok(0) | Err(Errno::IO) => Ok(Found::Gone),
        Ok(n) => {
            typed.feed(bytes.get(..n).unwrap_or_default());
            Ok(Found::Bytes)
        }
        Err(Errno::AGAIN) => Ok(Found::Nothing),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use crossterm::event::KeyCode;

    use super::*;

    fn key(input: Option<io::Result<Input>>) -> KeyCode {
        match input {
            Some(Ok(Input::Key(key))) => key.code,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn the_rest_of_a_sequence_is_its_rest_also_for_one_who_was_busy_when_it_came() {
        let (mut terminal, tty) = UnixStream::pair().unwrap();
        let mut keyboard = Keyboard::of(tty.into(), b"\x1b").unwrap();
        terminal.write_all(b"[A").unwrap();
        // Longer ago than anybody waits for the rest.
        keyboard.read = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        assert_eq!(key(keyboard.next().await), KeyCode::Up);
        terminal.write_all(b"\x1b").unwrap();
        assert_eq!(key(keyboard.next().await), KeyCode::Esc, "nothing followed it");
        terminal.write_all(b"jk").unwrap();
        assert_eq!(key(keyboard.next().await), KeyCode::Char('j'));
        assert_eq!(keyboard.ready().map(|input| key(Some(Ok(input)))), Some(KeyCode::Char('k')));
        assert!(keyboard.ready().is_none());
        drop(terminal);
        assert!(keyboard.next().await.is_none(), "the terminal is gone");
    }
}
