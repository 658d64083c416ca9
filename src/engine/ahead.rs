//! Reads ahead: while a stream of an agent floods, a thread of its own takes its bytes from the pipe and keeps them, so
//! that keeping them and understanding them go on side by side. The intake is handed to that thread and back, so that
//! there is one hand at a time that reads and writes, and nothing is ever reordered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::intake::{Intake, Piece, Took};

/// From this many bytes in one read on a stream floods.
pub(super) const FLOOD: usize = 64 * 1024;
/// How many pieces may wait to be understood.
const AHEAD: usize = 2;
/// A flood is over when nothing came for so long.
const PAUSE: Duration = Duration::from_millis(5);

/// What the thread hands over.
enum Handed {
    Piece(Piece),
    /// The intake, and whether the stream is at its end.
    Back(Intake, bool),
}

/// A thread that reads ahead.
pub(super) struct Ahead {
    handed: Receiver<Handed>,
    enough: Arc<AtomicBool>,
}

/// Who has the intake of a stream.
pub(super) enum Reader {
    /// The pump.
    Here(Intake),
    /// A thread that reads ahead.
    Ahead(Ahead),
    /// Nobody: the thread is gone with it, which only a fault of the program brings about.
    Gone,
}

impl Reader {
    /// What comes next. Waits for a thread that reads ahead, never for the pipe.
    pub(super) fn next(&mut self) -> Took {
        loop {
            match self {
                Self::Here(intake) => return intake.take(),
                Self::Gone => return Took::End,
                Self::Ahead(ahead) => match ahead.handed.recv() {
                    Ok(Handed::Piece(piece)) => return Took::Piece(piece),
                    Ok(Handed::Back(intake, ended)) => {
                        *self = Self::Here(intake);
                        return if ended { Took::End } else { Took::Dry };
                    }
                    Err(_) => *self = Self::Gone,
                },
            }
        }
    }

    /// Lets a thread read ahead from now on. Without a thread everything goes on as it was.
    pub(super) fn go_ahead(&mut self) {
        if !matches!(self, Self::Here(_)) {
            return;
        }
        let (give, handed) = sync_channel(AHEAD);
        let enough = Arc::new(AtomicBool::new(false));
        let (hand_in, taken) = sync_channel::<Intake>(1);
        let seen = Arc::clone(&enough);
        let thread = std::thread::Builder::new().name("ahead".to_owned()).stack_size(64 * 1024);
        let started = thread.spawn(move || {
            if let Ok(intake) = taken.recv() {
                read_ahead(intake, &give, &seen);
            }
        });
        if started.is_ok()
            && let Self::Here(intake) = std::mem::replace(self, Self::Gone)
        {
            *self = match hand_in.send(intake) {
                Ok(()) => Self::Ahead(Ahead { handed, enough }),
                Err(unsent) => Self::Here(unsent.0),
            };
        }
    }

    /// The intake, once a thread that reads ahead has given it back, and before that what it had read.
    pub(super) fn into_intake(self, mut rest: impl FnMut(Piece)) -> Option<Intake> {
        match self {
            Self::Here(intake) => Some(intake),
            Self::Gone => None,
            Self::Ahead(ahead) => {
                ahead.enough.store(true, Ordering::Relaxed);
                ahead.handed.iter().find_map(|handed| match handed {
                    Handed::Back(intake, _) => Some(intake),
                    Handed::Piece(piece) => {
                        rest(piece);
                        None
                    }
                })
            }
        }
    }
}

fn read_ahead(mut intake: Intake, give: &SyncSender<Handed>, enough: &AtomicBool) {
    let pause = Timespec::try_from(PAUSE).ok();
    while !enough.load(Ordering::Relaxed) {
        match intake.take() {
            Took::Piece(piece) => {
                if give.send(Handed::Piece(piece)).is_err() {
                    return;
                }
            }
            Took::End => {
                let _ = give.send(Handed::Back(intake, true));
                return;
            }
            Took::Dry => {
                let mut fds = [PollFd::new(intake.pipe(), PollFlags::IN)];
                // A call that a signal broke off only makes the thread begin anew some time.
                if poll(&mut fds, pause.as_ref()) != Ok(1) {
                    break;
                }
            }
        }
    }
    // Nobody is left who would miss it when this fails.
    let _ = give.send(Handed::Back(intake, false));
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::os::fd::OwnedFd;

    use super::super::capture::Capture;
    use super::super::kept::Kept;
    use super::*;

    fn reader(log: &std::path::Path) -> (OwnedFd, Reader) {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let flags = rustix::fs::fcntl_getfl(&read).unwrap();
        rustix::fs::fcntl_setfl(&read, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
        let raw = Kept::new(OpenOptions::new().append(true).open(log).unwrap(), 0);
        (write, Reader::Here(Intake::new(read, Some(raw), Capture::new(u64::MAX, u64::MAX).step(), 4096)))
    }

    #[test]
    fn the_order_is_kept_through_floods_and_pauses() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (write, mut reader) = reader(file.path());
        let sent: Vec<u8> = (0..2_000_000_u32).flat_map(u32::to_le_bytes).collect();
        let all = sent.clone();
        let (ask, asked) = sync_channel::<()>(0);
        let writer = std::thread::spawn(move || {
            for part in all.chunks(1_500_001) {
                let mut rest = part;
                while !rest.is_empty() {
                    rest = &rest[rustix::io::write(&write, rest).unwrap()..];
                }
                // The next part comes when the stream was seen to be dry.
                if asked.recv().is_err() {
                    return;
                }
            }
        });
        let (mut got, mut floods) = (Vec::new(), 0);
        loop {
            match reader.next() {
                Took::Piece(piece) => {
                    got.extend_from_slice(piece.bytes());
                    if matches!(reader, Reader::Here(_)) {
                        floods += 1;
                        reader.go_ahead();
                        assert!(matches!(reader, Reader::Ahead(_)));
                    }
                }
                Took::Dry => {
                    assert!(matches!(reader, Reader::Here(_)), "nobody reads ahead of a dry stream");
                    let _ = ask.try_send(());
                    std::thread::yield_now();
                }
                Took::End => break,
            }
        }
        writer.join().unwrap();
        assert!(got == sent && floods >= sent.len() / 1_500_001, "{floods} floods");
        assert!(reader.into_intake(|_| panic!("nothing is left")).is_some());
        assert!(std::fs::read(file.path()).unwrap() == sent);
    }

    #[test]
    fn who_has_enough_gets_the_intake_back_and_all_that_was_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (write, mut reader) = reader(file.path());
        let writer = std::thread::spawn(move || {
            // Until nobody reads any more.
            while rustix::io::write(&write, &[b'x'; 4096]).is_ok() {}
        });
        reader.go_ahead();
        let mut got = 0;
        while got < 100_000 {
            if let Took::Piece(piece) = reader.next() {
                got += piece.bytes().len();
            } else {
                reader.go_ahead();
            }
        }
        let intake = reader.into_intake(|piece| got += piece.bytes().len());
        assert!(intake.is_some());
        assert_eq!(std::fs::metadata(file.path()).unwrap().len(), got as u64, "what is kept was handed on");
        drop(intake);
        writer.join().unwrap();
    }
}
