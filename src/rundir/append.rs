//! Appending to `events.jsonl` (run-directory 2.5): whole lines, never a torn one in the middle, never a lost record
//! of the runner.
//!
//! Child records stop at the cap; what bears state goes on in a lean form (law 5). While there is no room, lines wait
//! in memory up to a bound. Knows nothing of what the lines mean beyond [`super::child_record::lean`].

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::write::is_capacity;

/// The cap on the file for child records when nobody says otherwise, in bytes (run-directory 1.7).
pub const EVENTS_MAX_BYTES: u64 = 52_428_800;
/// What the cap keeps back for the truncation marker, in bytes.
const RESERVE: u64 = 512;
/// How many bytes of lines wait in memory while there is no room.
const BACKLOG: usize = 16 * 1024 * 1024;

/// What became of a child's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Appended as it is.
    Whole,
    /// Beyond the cap: appended without its payload.
    Lean,
    /// Beyond the cap and without meaning for the state: not appended.
    Dropped,
}

/// An event log that several threads append to.
#[derive(Clone, Debug)]
pub struct EventLog {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    file: File,
    size: u64,
    cap: u64,
    marked: bool,
    /// The file ends in the middle of a line.
    torn: Option<Torn>,
    backlog: Vec<u8>,
}

/// A line that stands in the file only in part.
#[derive(Clone, Copy, Debug)]
struct Torn {
    /// How many bytes of the first line that waits are there already; 0 when its rest is not known.
    done: usize,
    /// How long the file is, so that nobody has appended anything since.
    len: u64,
}

impl EventLog {
    /// The cap that the environment asks for: `PI_SUBAGENT_ASYNC_EVENTS_MAX_BYTES` in bytes, else
    /// [`EVENTS_MAX_BYTES`].
    #[must_use]
    pub fn cap_from_env(value: Option<&str>) -> u64 {
        value.and_then(|v| v.trim().parse().ok()).filter(|n| *n > 0).unwrap_or(EVENTS_MAX_BYTES)
    }

    /// Opens the log for appending, mode 0600, and makes it when there is none. The part of a last line at which an earlier
    /// writer was killed is cut off: nobody can read it, and only the last line of a log may be torn.
    ///
    /// # Errors
    /// What the file system says.
    pub fn open(path: &Path, cap: u64) -> io::Result<Self> {
        let file = super::open::append(path)?;
        let found = file.metadata()?.len();
        let size = whole_lines(&file, found)?;
        if size < found {
            file.set_len(size)?;
        }
        Ok(Self::of(file, size, cap))
    }

    fn of(file: File, size: u64, cap: u64) -> Self {
        let inner = Inner { file, size, cap, marked: false, torn: None, backlog: Vec::new() };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// Appends whole lines of the runner, each with its line feed, in one write. There is no cap for them. When there
    /// is no room they wait and the error is returned, for information only.
    ///
    /// # Errors
    /// What the file system says. After a lack of room [`EventLog::pending`] is true and nothing is lost.
    pub fn append(&self, lines: &[u8]) -> io::Result<()> {
        self.lock().write(lines)
    }

    /// Appends one annotated line of a child, with its line feed, if the cap allows it.
    ///
    /// # Errors
    /// As [`EventLog::append`].
    fn append_child(&self, line: &[u8]) -> io::Result<Kept> {
        let mut inner = self.lock();
        let after = inner.size + inner.backlog.len() as u64 + line.len() as u64;
        if after <= inner.cap.saturating_sub(RESERVE) {
            return inner.write(line).map(|()| Kept::Whole);
        }
        let mut lines = Vec::new();
        if !inner.marked {
            inner.marked = true;
            lines.extend_from_slice(&super::child_record::truncated(inner.cap, line));
        }
        let lean = super::child_record::lean(line);
        let kept = if lean.is_some() { Kept::Lean } else { Kept::Dropped };
        lines.extend(lean.unwrap_or_default());
        if lines.is_empty() {
            return Ok(kept);
        }
        inner.write(&lines).map(|()| kept)
    }

    /// Appends several annotated lines of a child, each with its line feed: in one write while the cap is far, line by
    /// line once it is near.
    ///
    /// # Errors
    /// As [`EventLog::append`].
    pub fn append_children(&self, lines: &[u8]) -> io::Result<()> {
        {
            let mut inner = self.lock();
            let after = inner.size + inner.backlog.len() as u64 + lines.len() as u64;
            if after <= inner.cap.saturating_sub(RESERVE) {
                return inner.write(lines);
            }
        }
        let mut result = Ok(());
        for line in lines.split_inclusive(|b| *b == b'\n') {
            result = result.and(self.append_child(line).map(|_| ()));
        }
        result
    }

    /// Writes what waits for room.
    ///
    /// # Errors
    /// As [`EventLog::append`].
    pub fn retry(&self) -> io::Result<()> {
        self.lock().write(&[])
    }

    /// Whether lines wait for room.
    #[must_use]
    pub fn pending(&self) -> bool {
        !self.lock().backlog.is_empty()
    }

    /// How many bytes the file has, as far as this log wrote or found them.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.lock().size
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A thread that panicked in here left whole lines and true counters, so its poison means nothing.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many of the first `size` bytes of a file are whole lines.
fn whole_lines(file: &File, size: u64) -> io::Result<u64> {
    const CHUNK: u64 = 64 * 1024;
    let mut end = size;
    while end > 0 {
        let begin = end.saturating_sub(CHUNK);
        let mut chunk = vec![0; usize::try_from(end - begin).unwrap_or(0)];
        file.read_exact_at(&mut chunk, begin)?;
        if let Some(feed) = memchr::memrchr(b'\n', &chunk) {
            return Ok(begin + feed as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

impl Inner {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if !self.backlog.is_empty() {
            let waiting = std::mem::take(&mut self.backlog);
            let result = self.put(&waiting);
            if result.is_err() {
                self.wait(lines);
                return result;
            }
        }
        if lines.is_empty() { Ok(()) } else { self.put(lines) }
    }

    /// Writes now; keeps what could not be written because there is no room.
    fn put(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut rest = lines;
        if let Some(torn) = self.torn {
            let as_it_was = self.file.metadata().is_ok_and(|meta| meta.len() == torn.len);
            if torn.done > 0 && as_it_was {
                // The line goes on where it was cut.
                rest = lines.get(torn.done..).unwrap_or_default();
            } else {
                match self.file.write(b"\n") {
                    Ok(n) if n > 0 => self.size += 1,
                    Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
                    Err(error) => return self.keep(lines, error),
                }
            }
            self.torn = None;
        }
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(n) => {
                    self.size += n as u64;
                    rest = rest.get(n..).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let done = lines.len() - rest.len();
                    let start = lines.get(..done).and_then(|d| memchr::memrchr(b'\n', d)).map_or(0, |at| at + 1);
                    let kept = is_capacity(&error) && lines.len() - start <= BACKLOG;
                    let len = self.file.metadata().map_or(0, |meta| meta.len());
                    self.torn = (done > start).then_some(Torn { done: if kept { done - start } else { 0 }, len });
                    return self.keep(lines.get(start..).unwrap_or_default(), error);
                }
            }
        }
        Ok(())
    }

    fn keep(&mut self, lines: &[u8], error: io::Error) -> io::Result<()> {
        if is_capacity(&error) {
            self.wait(lines);
        }
        Err(error)
    }

    fn wait(&mut self, lines: &[u8]) {
        if self.backlog.len() + lines.len() <= BACKLOG {
            self.backlog.extend_from_slice(lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::thread;

    use super::*;

    fn child(n: usize) -> Vec<u8> {
        let text = "x".repeat(300);
        format!(
            "{{\"type\":\"tool_execution_start\",\"toolCallId\":\"c{n}\",\"toolName\":\"bash\",\"args\":{{\"command\":\"{text}\"}},\
             \"subagentSource\":\"child\",\"subagentRunId\":\"r\",\"subagentStepIndex\":0,\"subagentAgent\":\"a\",\"observedAt\":1}}\n"
        )
        .into_bytes()
    }

    #[test]
    fn beyond_the_cap_child_records_lose_their_payload_and_the_runner_goes_on() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("events.jsonl");
        let log = EventLog::open(&path, 2048).unwrap();
        let kept: Vec<Kept> = (0..8).map(|n| log.append_child(&child(n)).unwrap()).collect();
        assert_eq!(kept.iter().filter(|k| **k == Kept::Whole).count(), 3, "{kept:?}");
        assert_eq!(kept.iter().filter(|k| **k == Kept::Lean).count(), 5, "{kept:?}");
        let noise = b"{\"type\":\"message_start\",\"subagentSource\":\"child\",\"subagentRunId\":\"r\",\"subagentStepIndex\":0,\"subagentAgent\":\"a\",\"observedAt\":1}\n";
        assert_eq!(log.append_child(noise).unwrap(), Kept::Dropped);
        log.append(b"{\"type\":\"subagent.run.completed\"}\n").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches("subagent.events.truncated").count(), 1);
        assert_eq!(text.matches("\"toolCallId\":\"c").count(), 8);
        assert!(text.ends_with("{\"type\":\"subagent.run.completed\"}\n"));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(log.size(), text.len() as u64);
    }

    #[test]
    fn a_torn_last_line_of_an_earlier_writer_is_cut_off() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("events.jsonl");
        let long = "x".repeat(200_000);
        for (whole, torn) in
            [("{\"whole\":1}\n", "{\"torn\":"), ("", "{\"to"), ("{}\n", long.as_str()), ("{}\n", ""), ("", "")]
        {
            std::fs::write(&path, format!("{whole}{torn}")).unwrap();
            let log = EventLog::open(&path, 1000).unwrap();
            assert_eq!(log.size(), whole.len() as u64);
            log.append(b"{\"next\":1}\n").unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{whole}{{\"next\":1}}\n"));
        }
    }

    #[test]
    fn lines_of_several_threads_do_not_mix() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("events.jsonl");
        let log = EventLog::open(&path, EVENTS_MAX_BYTES).unwrap();
        thread::scope(|scope| {
            for t in 0..4 {
                let log = log.clone();
                scope.spawn(move || {
                    for n in 0..200 {
                        log.append(format!("{{\"t\":{t},\"n\":{n}}}\n").as_bytes()).unwrap();
                    }
                });
            }
        });
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 800);
        assert!(text.lines().all(|l| serde_json::from_str::<serde_json::Value>(l).is_ok()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_keeps_the_lines_and_says_so() {
        let file = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let log = EventLog::of(file, 0, EVENTS_MAX_BYTES);
        let error = log.append(b"{}\n").unwrap_err();
        assert!(is_capacity(&error));
        assert!(log.pending());
        log.retry().unwrap_err();
        assert!(log.pending());
        // There is room again.
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("events.jsonl");
        log.lock().file = super::super::open::append(&path).unwrap();
        log.append(b"{\"next\":1}\n").unwrap();
        assert!(!log.pending());
        assert_eq!(std::fs::read(&path).unwrap(), b"{}\n{\"next\":1}\n");
    }

    #[test]
    fn the_cap_comes_from_the_environment() {
        for (value, want) in [
            (None, EVENTS_MAX_BYTES),
            (Some("1000"), 1000),
            (Some("x"), EVENTS_MAX_BYTES),
            (Some("0"), EVENTS_MAX_BYTES),
        ] {
            assert_eq!(EventLog::cap_from_env(value), want, "{value:?}");
        }
    }
}
