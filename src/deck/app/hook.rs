//! The person's own program that is told what happens: one event a call, as JSON on its standard input, one call after
//! the other, each with a limited time.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

/// A call may take this long; then it and what it started are killed.
const TIME: Duration = Duration::from_secs(10);
/// So many events wait at most; of a program that is slower than what happens, the newest are dropped.
const WAITING: usize = 64;

/// A running hook.
pub(super) struct Hook {
    events: Sender<Vec<u8>>,
    worker: JoinHandle<()>,
}

impl Hook {
    /// A hook of this program and its arguments; `None` for an empty list.
    pub(super) fn start(words: &[String]) -> Option<Self> {
        let (program, arguments) = words.split_first()?;
        let (program, arguments) = (program.clone(), arguments.to_vec());
        let (events, waiting) = channel(WAITING);
        let worker = tokio::spawn(work(program, arguments, waiting));
        Some(Self { events, worker })
    }

    /// Tells an event.
    pub(super) fn tell(&self, event: &serde_json::Value) {
        let mut line = event.to_string().into_bytes();
        line.push(b'\n');
        // A full queue means that the program hangs; what happens is on the screen and in the run's files anyway.
        let _ = self.events.try_send(line);
    }

    /// Waits until every call has ended, each within its time.
    pub(super) async fn finish(self) {
        drop(self.events);
        let _ = self.worker.await;
    }
}

async fn work(program: String, arguments: Vec<String>, mut events: Receiver<Vec<u8>>) {
    while let Some(event) = events.recv().await {
        call(&program, &arguments, &event, TIME).await;
    }
}

/// One call. What the program says is not ours to show, and the screen is taken.
async fn call(program: &str, arguments: &[String], event: &[u8], time: Duration) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // A group of its own, so that what it starts can be ended with it; the deck that dies takes it along.
    command.process_group(0).kill_on_drop(true);
    let Ok(mut child) = command.spawn() else { return false };
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let stdin = child.stdin.take();
    let talk = async {
        if let Some(mut stdin) = stdin {
            // A program that reads nothing is no fault.
            let _ = stdin.write_all(event).await;
        }
        child.wait().await.is_ok_and(|status| status.success())
    };
    if let Ok(well) = tokio::time::timeout(time, talk).await {
        return well;
    }
    // It was not waited for yet, so the id is still its own.
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait().await;
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_program_reads_the_event() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("got");
        let words = ["sh".to_owned(), "-c".to_owned(), format!("cat >> {}", file.display())];
        let hook = Hook::start(&words).unwrap();
        hook.tell(&serde_json::json!({ "event": "end" }));
        hook.tell(&serde_json::json!({ "event": "attention" }));
        hook.finish().await;
        assert_eq!(std::fs::read_to_string(file).unwrap(), "{\"event\":\"end\"}\n{\"event\":\"attention\"}\n");
        assert!(Hook::start(&[]).is_none());
    }

    #[tokio::test]
    async fn a_program_that_hangs_is_killed_with_what_it_started() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("pid");
        let script = format!("sleep 1000 & echo $! > {}; wait", file.display());
        let words = ["-c".to_owned(), script];
        let file = temp.path().join("pid");
        // The time begins to run once the grandchild is there, however slow the machine is.
        let mut time = Duration::from_millis(200);
        let pid = loop {
            assert!(!call("sh", &words, b"{}\n", time).await);
            match std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse::<i32>().ok()) {
                Some(pid) => break pid,
                None => time *= 2,
            }
        };
        let gone = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        };
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while !gone() {
            assert!(std::time::Instant::now() < deadline);
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_or_reads_nothing_is_no_fault() {
        assert!(!call("/nonexistent/hook", &[], b"{}\n", TIME).await);
        assert!(call("true", &[], &[b'x'; 300_000], TIME).await);
    }
}
