//! Waiting for what the runner says to requests of ours (run-directory 3.9).

use std::time::Duration;

use crate::run::ExitCause;
use crate::rundir::{Answered, Follower, RunDir, Watch, answer_to, answers};
use crate::text::SafeText;

/// Waits for the answers to these requests, for as long as somebody is there to give them. `None` for what was not
/// answered.
///
/// # Errors
/// When nothing can be waited for.
pub fn wait(
    follower: &mut Follower,
    dir: &RunDir,
    requests: &[String],
    time: Duration,
) -> anyhow::Result<Vec<Option<Answered>>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut found: Vec<Option<Answered>> = vec![None; requests.len()];
    runtime.block_on(async {
        let timeout = tokio::time::sleep(time);
        tokio::pin!(timeout);
        // The folder for the answers is made with the first of them.
        let folders = || Watch::new([dir.control(), answers(dir)]);
        let (mut complete, mut watch) = (answers(dir).is_dir(), folders());
        loop {
            follower.poll();
            let over = follower.is_over();
            for (request, found) in requests.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
                *found = answer_to(dir, request);
            }
            if over || found.iter().all(Option::is_some) {
                return;
            }
            if !complete && answers(dir).is_dir() {
                // Answers may have come before the watch.
                (complete, watch) = (true, folders());
                continue;
            }
            tokio::select! {
                () = &mut timeout => return,
                () = watch.changed() => {}
                () = follower.wait() => {}
            }
        }
    });
    Ok(found)
}

/// What became of a request in words, and the exit code for it: 0 when it was done, 1 when it was refused, 8 when it was
/// not answered in time.
#[must_use]
pub fn told(answer: Option<&Answered>, over: bool) -> (String, ExitCause) {
    match answer {
        Some(Answered::Done) => ("done".to_owned(), ExitCause::Complete),
        Some(Answered::Refused(reason)) => (format!("refused: {}", SafeText::line(reason)), ExitCause::Failed),
        None if over => ("the run was over before it was taken".to_owned(), ExitCause::Failed),
        None => ("not answered within the time that --timeout gave".to_owned(), ExitCause::WaitTimeout),
    }
}
