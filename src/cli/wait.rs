//! `subdeck wait`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};

use super::args::WaitArgs;
use super::load::World;
use super::{find, out};
use crate::run::{ExitCause, RunState, StepPhase, exit_code};
use crate::rundir::Follower;

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Goal {
    /// Any end.
    End,
    /// A step needs a person.
    Attention,
    /// No tool is open and no child is at work.
    Idle,
    /// A state by its word.
    State(String),
}

impl Goal {
    fn parse(word: &str) -> anyhow::Result<Self> {
        Ok(match word {
            "complete" | "end" | "over" => Self::End,
            "attention" => Self::Attention,
            "idle" => Self::Idle,
            "queued" | "running" | "failed" | "paused" | "stopped" => Self::State(word.to_owned()),
            _ => {
                bail!("--for takes complete, attention, idle, queued, running, failed, paused or stopped, not `{word}`")
            }
        })
    }

    fn reached(&self, state: &RunState) -> bool {
        match self {
            Self::End => state.is_over(),
            Self::Attention => state.steps.iter().any(|s| s.activity.as_deref() == Some("needs_attention")),
            Self::Idle => state
                .steps
                .iter()
                .all(|s| s.phase != StepPhase::Running || (s.open.is_empty() && s.settled_at.is_some())),
            Self::State(word) => state.phase.as_str() == word,
        }
    }
}

/// Waits.
pub fn wait(args: &WaitArgs) -> anyhow::Result<ExitCode> {
    let goal = Goal::parse(&args.what)?;
    let world = World::look()?;
    let dir = find::run(&world, args.root.root.as_deref(), &args.run)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut follower = Follower::open(dir.path()).context("cannot read the run directory")?;
        let timeout = tokio::time::sleep(args.timeout.unwrap_or(Duration::from_secs(u64::from(u32::MAX))));
        tokio::pin!(timeout);
        loop {
            follower.poll();
            // The end is reached when everything of it is on the disk, the result too; that is more than the state.
            if goal != Goal::End && follower.lost().is_none() && goal.reached(follower.state()) {
                return Ok(out::code(ExitCause::Complete));
            }
            // A run that has ended otherwise, or is lost, will not reach any other state any more.
            if follower.is_over() {
                return Ok(out::code(exit_code(follower.state())));
            }
            tokio::select! {
                () = &mut timeout => {
                    eprintln!("subdeck: still {} after the time that --timeout gave", follower.state().phase.as_str());
                    return Ok(out::code(ExitCause::WaitTimeout));
                }
                () = follower.wait() => {}
            }
        }
    })
}
