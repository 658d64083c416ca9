//! Whether the work of a step that ended well is accepted: what its agent reports, what stands in its folder, and the
//! commands that have to succeed (runner-behaviour 9). Commands take time, so the step waits for them without a child; a
//! stop ends them too.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::Notify;

use super::clock::now;
use super::dispatch::Engine;
use super::notes::Note;
use super::output_file::OutputFile;
use super::tree::{self, RUN_MARK, STEP_MARK};
use crate::agents::acceptance;
use crate::run::{
    Acceptance, AcceptanceLevel, AcceptanceStatus, EndingCause, Evidence, ExitInfo, Judgement, Ledger, Report,
    Reported, StepId, StepPhase, Verify, VerifyRun, What, judge,
};

/// From SIGTERM to SIGKILL for a command whose time is over.
const GRACE: Duration = Duration::from_secs(1);
/// How long the output of a command that has ended may stay open.
const HELD: Duration = Duration::from_secs(2);
/// How long a look at the folder may take.
const LOOK: Duration = Duration::from_secs(30);
/// Bytes of a command's output that are read; the rest is passed over.
const READ: usize = 256 * 1024;

/// A step whose work is being looked at.
pub(super) struct Examining {
    judgement: Judgement,
    /// The command that runs.
    pid: Arc<Mutex<Option<u32>>>,
    stop: Arc<Notify>,
    stopping: bool,
}

/// An attempt that is over, as others get it.
pub(super) struct Settled {
    pub(super) judgement: Judgement,
    pub(super) reported: Option<Reported>,
    /// Why its output is not in its file.
    pub(super) failed: Option<String>,
}

impl Engine {
    /// The text of an attempt that is over as others get it, in its file too, and what its agent reports of its work when
    /// something is asked of that.
    pub(super) fn settle(&self, id: StepId, mut judgement: Judgement, file: Option<&OutputFile>) -> Settled {
        let asked = self.plan.flat().nth(id.flat()).map(|s| &s.acceptance).filter(|a| **a != Acceptance::default());
        let mut reported = asked.map(|_| acceptance::report(&judgement.text));
        if asked.is_some_and(|a| a.level != AcceptanceLevel::None) {
            let text = acceptance::strip(&judgement.text);
            // A report alone is an answer too.
            if !text.trim().is_empty() {
                judgement.text = text.to_owned();
            }
        }
        let Some(file) = file else { return Settled { judgement, reported, failed: None } };
        let said = judgement.text.clone();
        let (judgement, failed) = file.settle(judgement);
        // What the agent wrote to the file itself may hold its report.
        if judgement.text != said
            && let Some(found) = reported.as_mut().filter(|r| r.is_err())
            && let Ok(report) = acceptance::report(&judgement.text)
        {
            *found = Ok(report);
        }
        Settled { judgement, reported, failed }
    }

    /// Ends a step once it is known whether its work is accepted; `reported` is what its agent reports of it, for a step
    /// that is to show something.
    pub(super) fn accept(&mut self, id: StepId, mut judgement: Judgement, reported: Option<Reported>) {
        let step = self.plan.flat().nth(id.flat()).cloned().unwrap_or_default();
        let (asked, Some(reported)) = (step.acceptance, reported) else { return self.end_step(id, judgement, true) };
        if judgement.outcome.phase != StepPhase::Complete || asked.level == AcceptanceLevel::None {
            judgement.outcome.acceptance = unproven(&asked, &judgement).map(Box::new);
            return self.end_step(id, judgement, true);
        }
        let look =
            asked.level >= AcceptanceLevel::Checked && asked.evidence.iter().any(|kind| kind == "no-staged-files");
        if !look && asked.verify.is_empty() {
            let ledger = Ledger::judge(&asked, reported, None).verified(Vec::new());
            return self.end_step(id, accepted(judgement, ledger), true);
        }
        for verify in &asked.verify {
            let line = format!("acceptance: {}", verify.command);
            self.recorder.absorb(now(), What::OutputLines { step: id, lines: vec![line], open: false });
        }
        let examining = Examining { judgement, pid: Arc::default(), stop: Arc::default(), stopping: false };
        let marks = [(RUN_MARK, self.dir.id_str().to_owned()), (STEP_MARK, id.flat().to_string())];
        let examination = Examination {
            asked,
            cwd: step.cwd,
            marks: marks.into(),
            pid: Arc::clone(&examining.pid),
            stop: Arc::clone(&examining.stop),
        };
        self.examining.insert(id, examining);
        let sender = self.sender.clone();
        tokio::spawn(async move {
            let ledger = examination.run(reported, look).await;
            // Nobody is left to be told when this fails.
            let _ = sender.send(Note::Examined { step: id, ledger: Box::new(ledger) }).await;
        });
    }

    /// What came of a look at a step's work.
    pub(super) fn examined(&mut self, id: StepId, ledger: Ledger) {
        let Some(Examining { judgement, .. }) = self.examining.remove(&id) else { return };
        let ending = self.recorder.state().step(id).and_then(|s| s.ending.clone());
        let Some(ending) = ending.filter(|e| e.cause != EndingCause::Drain) else {
            return self.end_step(id, accepted(judgement, ledger), true);
        };
        let report = Report { final_text: Some(judgement.text), ..Report::default() };
        let mut ended = judge(&Evidence {
            report: &report,
            exit: ExitInfo::default(),
            spawn_error: None,
            ending: Some(&ending),
            stderr_tail: "",
        });
        ended.outcome.acceptance = unproven(&ledger.asked, &ended).map(Box::new);
        self.end_step(id, ended, true);
    }

    /// Ends the commands of steps that are being ended.
    pub(super) fn end_examinations(&mut self) {
        let state = self.recorder.state();
        for (id, examining) in &mut self.examining {
            let ending = state.step(*id).and_then(|s| s.ending.as_ref());
            if ending.is_some_and(|e| e.cause != EndingCause::Drain) && !examining.stopping {
                examining.stopping = true;
                examining.stop.notify_one();
            }
        }
    }

    /// The commands that run just now.
    pub(super) fn examining_pids(&self) -> BTreeSet<u32> {
        let pid = |e: &Examining| *e.pid.lock().unwrap_or_else(PoisonError::into_inner);
        self.examining.values().filter_map(pid).collect()
    }
}

/// The ledger of work that was not looked at; none for a step that goes on later.
fn unproven(asked: &Acceptance, judgement: &Judgement) -> Option<Ledger> {
    let outcome = &judgement.outcome;
    let why = match outcome.phase {
        StepPhase::Paused => return None,
        _ if outcome.stopped => "stopped",
        _ if outcome.timed_out => "timeout",
        _ if outcome.error.as_deref().is_some_and(|error| error.contains("exceeded turn budget")) => "turn-budget",
        _ => "execution",
    };
    Some(Ledger::skipped(asked, why, outcome.error.as_deref().unwrap_or("the step did not end well")))
}

fn accepted(mut judgement: Judgement, ledger: Ledger) -> Judgement {
    if let Some(error) = ledger.failure() {
        let outcome = &mut judgement.outcome;
        (outcome.phase, outcome.exit_code, outcome.error) = (StepPhase::Failed, 1, Some(error));
    }
    judgement.outcome.acceptance = Some(Box::new(ledger));
    judgement
}

/// A look at a step's work, on a task of its own.
struct Examination {
    asked: Acceptance,
    cwd: PathBuf,
    marks: Vec<(&'static str, String)>,
    pid: Arc<Mutex<Option<u32>>>,
    stop: Arc<Notify>,
}

impl Examination {
    async fn run(self, reported: Reported, look: bool) -> Ledger {
        let staged = if look { self.staged().await } else { None };
        let ledger = Ledger::judge(&self.asked, reported, staged.as_deref());
        if ledger.status == AcceptanceStatus::Rejected {
            return ledger.verified(Vec::new());
        }
        let mut runs = Vec::with_capacity(self.asked.verify.len());
        for verify in &self.asked.verify {
            let (run, stopped) = self.verify(verify).await;
            runs.push(run);
            if stopped {
                break;
            }
        }
        ledger.verified(runs)
    }

    /// The files that are staged for a commit in the step's folder; `None` where that cannot be known.
    async fn staged(&self) -> Option<Vec<String>> {
        let mut command = Command::new("git");
        command.args(["status", "--short"]);
        let ended = self.ended(command, &self.cwd, &[], LOOK).await.ok().filter(|e| e.code == Some(0))?;
        let staged = ended.stdout.lines().filter(|line| {
            // The first column is what is staged; a question mark is a file that git does not know.
            line.len() >= 2 && !line.starts_with([' ', '?'])
        });
        Some(staged.map(|line| line.trim().to_owned()).collect())
    }

    async fn verify(&self, verify: &Verify) -> (VerifyRun, bool) {
        let cwd = verify.cwd.as_ref().map_or_else(|| self.cwd.clone(), |cwd| self.cwd.join(cwd));
        let time = Duration::from_millis(verify.timeout_ms.unwrap_or(Verify::TIMEOUT_MS));
        let mut command = Command::new("sh");
        command.args(["-c", &verify.command]);
        let began = Instant::now();
        let ended = self
            .ended(command, &cwd, &verify.env, time)
            .await
            .unwrap_or_else(|error| Ended { stderr: format!("cannot be started: {error}"), ..Ended::default() });
        let secrets = secrets(&verify.env);
        let run = VerifyRun {
            id: verify.id.clone(),
            command: verify.command.clone(),
            cwd: cwd.display().to_string(),
            exit_code: ended.code,
            timed_out: ended.timed_out,
            allow_failure: verify.allow_failure,
            stdout: shown(&ended.stdout, &secrets),
            stderr: shown(&ended.stderr, &secrets),
            ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        (run, ended.stopped)
    }

    /// Runs a command to its end, or ends it when its time is over or somebody stops the step; what it leaves behind in
    /// its group is ended with it.
    async fn ended(
        &self,
        mut command: Command,
        cwd: &Path,
        env: &[(String, String)],
        time: Duration,
    ) -> std::io::Result<Ended> {
        command.current_dir(cwd).process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.envs(env.iter().map(|(name, value)| (name, value)));
        command.envs(self.marks.iter().map(|(name, value)| (*name, value)));
        let mut child = command.spawn()?;
        let group = child.id();
        *self.pid.lock().unwrap_or_else(PoisonError::into_inner) = group;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let (out, err) = (tokio::spawn(text_of(out)), tokio::spawn(text_of(err)));
        let mut ended = Ended::default();
        let status = tokio::select! {
            status = child.wait() => status.ok(),
            () = tokio::time::sleep(time) => {
                ended.timed_out = true;
                end(&mut child, group).await
            }
            () = self.stop.notified() => {
                ended.stopped = true;
                end(&mut child, group).await
            }
        };
        if let Some(group) = group {
            tree::signal_group(group, Signal::KILL);
        }
        *self.pid.lock().unwrap_or_else(PoisonError::into_inner) = None;
        ended.code = status.and_then(|s| s.code()).filter(|_| !ended.timed_out && !ended.stopped);
        for (task, place) in [(out, &mut ended.stdout), (err, &mut ended.stderr)] {
            if let Ok(Ok(text)) = tokio::time::timeout(HELD, task).await {
                *place = text;
            }
        }
        Ok(ended)
    }
}

#[derive(Default)]
struct Ended {
    code: Option<i32>,
    timed_out: bool,
    stopped: bool,
    stdout: String,
    stderr: String,
}

async fn end(child: &mut Child, group: Option<u32>) -> Option<std::process::ExitStatus> {
    let group = group?;
    tree::signal_group(group, Signal::TERM);
    if let Ok(status) = tokio::time::timeout(GRACE, child.wait()).await {
        return status.ok();
    }
    tree::signal_group(group, Signal::KILL);
    child.wait().await.ok()
}

/// The first part of a stream; the rest is read and passed over, so that nobody waits for room in a pipe.
async fn text_of(stream: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut stream) = stream else { return String::new() };
    let (mut kept, mut piece) = (Vec::new(), vec![0; 8192]);
    while let Ok(n @ 1..) = stream.read(&mut piece).await {
        let room = READ.saturating_sub(kept.len()).min(n);
        kept.extend_from_slice(piece.get(..room).unwrap_or_default());
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// Values that may not be shown: of the variables whose names say so.
fn secrets(own: &[(String, String)]) -> Vec<String> {
    const WORDS: [&str; 9] =
        ["TOKEN", "SECRET", "PASSWORD", "PASS", "AUTH", "CREDENTIAL", "COOKIE", "SESSION", "PRIVATE"];
    let secret = |name: &str| {
        let name = name.to_uppercase();
        let parts: Vec<&str> = name.split('_').collect();
        parts.iter().any(|part| WORDS.contains(part)) || name.contains("API_KEY") || name.contains("ACCESS_KEY")
    };
    let inherited =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut values: Vec<String> = inherited
        .chain(own.iter().cloned())
        .filter(|(name, value)| value.len() >= 4 && secret(name))
        .map(|(_, v)| v)
        .collect();
    // One may hold another.
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    values.dedup();
    values
}

fn shown(text: &str, secrets: &[String]) -> String {
    let mut text = text.trim().to_owned();
    for secret in secrets {
        text = text.replace(secret.as_str(), "[REDACTED]");
    }
    match text.char_indices().nth(VerifyRun::KEPT) {
        Some((end, _)) => format!("{}\n...[truncated]", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_may_not_be_shown_are_left_out_of_what_is_shown() {
        let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let secrets = secrets(&[
            own("MY_API_KEY", "key-12345"),
            own("DB_PASS", "key-1"),
            own("PATHS", "visible"),
            own("A_TOKEN", "abc"),
        ]);
        let text = shown("  key-12345 key-1 visible abc\n", &secrets);
        assert_eq!(text, "[REDACTED] [REDACTED] visible abc");
        let long = shown(&"é".repeat(VerifyRun::KEPT + 1), &[]);
        assert!(long.ends_with("é\n...[truncated]") && long.chars().count() == VerifyRun::KEPT + 15, "{}", long.len());
    }
}
