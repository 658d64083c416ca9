//! `subdeck wait`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};

use super::args::WaitArgs;
use super::load::World;
use super::show::{is_unreadable, tell_suspended, tell_unreadable};
use super::{find, lines, out};
use crate::headless::needs;
use crate::run::{ExitCause, Limits, RunMode, RunPhase, RunState, StepPhase, StepState, exit_code};
use crate::rundir::Follower;
use crate::text::SafeText;

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Goal {
    /// Any end.
    End,
    /// A step needs a person.
    Attention,
    /// Nothing is at work: nothing runs and nothing is about to, or everything that runs waits.
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
            Self::Attention => !needs(state).is_empty(),
            Self::Idle => {
                let mut running = state.steps.iter().filter(|s| s.phase == StepPhase::Running).peekable();
                // Between two steps of ours nothing runs for a moment; the steps of a workflow come when they come.
                let quiet = state.is_over() || (state.mode == RunMode::Workflow && state.phase == RunPhase::Running);
                if running.peek().is_some() { running.all(is_waiting) } else { quiet }
            }
            Self::State(word) => state.phase.as_str() == word,
        }
    }

    /// What is told when it is reached; nothing for what says itself.
    fn found(&self, state: &RunState) -> Vec<SafeText> {
        let now = crate::engine::now();
        if *self == Self::Attention {
            needs(state).iter().map(|need| need.line(state, now)).collect()
        } else {
            Vec::new()
        }
    }
}

/// Whether a step does nothing by itself any more: its agent has settled, or every call it has open waits for somebody
/// else.
fn is_waiting(step: &StepState) -> bool {
    if !step.questions.is_empty() {
        return true;
    }
    if step.open.is_empty() {
        return step.settled_at.is_some();
    }
    step.open.iter().all(|call| call.about.asks || Limits::TOOLS_EXEMPT.contains(&call.tool.as_str()))
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
        let mut told = false;
        loop {
            if follower.poll().health || !told {
                told = tell_suspended(&follower);
            }
            // The end is reached when everything of it is on the disk, the result too; that is more than the state.
            if goal != Goal::End && follower.lost().is_none() && goal.reached(follower.state()) {
                lines::out(|to| goal.found(follower.state()).iter().try_for_each(|line| writeln!(to, "{line}")))?;
                return Ok(out::code(ExitCause::Complete));
            }
            // A run that has ended otherwise, or is lost, will not reach any other state any more.
            if follower.is_over() {
                if follower.unreadable().is_some() {
                    // The last status comes before the last event, so one that is still broken now stays so.
                    follower.poll();
                }
                let unreadable = tell_unreadable(&follower);
                if is_unreadable(&follower) {
                    return Ok(out::code(ExitCause::Failed));
                }
                if goal != Goal::End {
                    let word = follower.lost().map_or(follower.state().phase.as_str(), |_| "lost");
                    tell!("subdeck: the run is {}; what --for names was not reached", SafeText::line(word));
                }
                // Its events have an end that its runner could not write down, which `run` says so, too.
                let code = if unreadable { ExitCause::Lost } else { exit_code(follower.state()) };
                return Ok(out::code(code));
            }
            tokio::select! {
                () = &mut timeout => {
                    tell!("subdeck: still {} after the time that --timeout gave", follower.state().phase.as_str());
                    return Ok(out::code(ExitCause::WaitTimeout));
                }
                () = follower.wait() => {}
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{CallFacts, OpenCall, StepId, Timestamp};

    fn step(id: u32, phase: StepPhase) -> StepState {
        StepState { id: StepId(id), phase, ..StepState::default() }
    }

    fn call(tool: &str) -> OpenCall {
        OpenCall {
            call: None,
            tool: tool.to_owned(),
            args: String::new(),
            path: None,
            started_at: Timestamp::default(),
            seq: 0,
            about: CallFacts::default(),
            heard: None,
        }
    }

    #[test]
    fn a_run_is_idle_when_everything_that_runs_waits() {
        let idle = |steps: Vec<StepState>| {
            let state = RunState { phase: RunPhase::Running, steps, ..RunState::default() };
            Goal::Idle.reached(&state)
        };
        let working = step(0, StepPhase::Running);
        let settled = StepState { settled_at: Some(Timestamp::from_millis(1)), ..step(1, StepPhase::Running) };
        let asking = StepState { open: vec![call("contact_supervisor")], ..step(2, StepPhase::Running) };
        let busy = StepState { open: vec![call("contact_supervisor"), call("bash")], ..settled.clone() };
        for (steps, expected) in [
            (vec![settled.clone(), asking.clone(), step(3, StepPhase::Complete)], true),
            (vec![settled.clone(), working], false),
            (vec![asking, busy], false),
            // The next one is about to start.
            (vec![step(0, StepPhase::Complete), step(1, StepPhase::Pending)], false),
            (vec![step(0, StepPhase::Pending)], false),
        ] {
            assert_eq!(idle(steps.clone()), expected, "{steps:?}");
        }
        let between = RunState { phase: RunPhase::Running, mode: RunMode::Workflow, ..RunState::default() };
        assert!(Goal::Idle.reached(&between));
        let over =
            RunState { phase: RunPhase::Paused, ended_at: Some(Timestamp::from_millis(2)), ..RunState::default() };
        assert!(Goal::Idle.reached(&over));
        assert!(!Goal::Idle.reached(&RunState::default()), "it has not begun");
    }

    #[test]
    fn only_steps_that_run_need_somebody() {
        let marked = |phase| StepState { activity: Some("needs_attention".to_owned()), ..step(1, phase) };
        let state = |steps| RunState { phase: RunPhase::Running, steps, ..RunState::default() };
        let both = state(vec![step(0, StepPhase::Running), marked(StepPhase::Running)]);
        assert!(Goal::Attention.reached(&both));
        let lines: Vec<String> = Goal::Attention.found(&both).iter().map(ToString::to_string).collect();
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("2 "), "{lines:?}");
        assert!(!Goal::Attention.reached(&state(vec![marked(StepPhase::Complete)])));
    }
}
