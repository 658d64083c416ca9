//! The state of a step: nouns only, like [`super::RunState`].

use std::collections::VecDeque;
use std::time::Duration;

use super::{
    Attempt, BudgetState, Conflict, CostUsd, Ending, EndingCause, ExitInfo, ExternalProcess, Failures, Level, Limits,
    NextAttempt, Notice, OpenCall, Question, Repeat, Retrying, RunId, RunnerKind, SharedContract, Steerable, Steering,
    StepFace, StepId, StepPhase, SubAgent, Thresholds, Timestamp, Tokens, ToolCall, Unknowns, Window,
};

/// Everything known of one step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepState {
    /// Its name for as long as the run exists.
    pub id: StepId,
    /// The id used by `{outputs.ID}` and `RUN:STEP`.
    pub key: String,
    /// The agent's name.
    pub agent: String,
    /// What the person calls it.
    pub label: Option<String>,
    /// The phase it belongs to.
    pub phase_title: Option<String>,
    /// The logical step.
    pub logical: usize,
    /// How its child is run.
    pub runner: RunnerKind,
    /// Where it stands.
    pub phase: StepPhase,
    /// When it started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Its exit code (run-directory 8.3).
    pub exit_code: Option<i32>,
    /// Its error.
    pub error: Option<String>,
    /// It ran out of time.
    pub timed_out: bool,
    /// It was stopped.
    pub stopped: bool,
    /// The model, once known.
    pub model: Option<String>,
    /// The thinking level.
    pub thinking: Option<String>,
    /// The child's session file.
    pub session_file: Option<String>,
    /// The agent's own id of the session.
    pub session_id: Option<String>,
    /// Attempts so far, oldest first.
    pub attempts: Vec<Attempt>,
    /// The running child.
    pub pid: Option<u32>,
    /// When that child started, in the kernel's ticks.
    pub start_ticks: Option<u64>,
    /// How the newest child ended.
    pub exit: Option<ExitInfo>,
    /// When the child last did something.
    pub last_activity: Option<Timestamp>,
    /// It did something since its newest attempt began; known to the runner only. A clock that was set back in between
    /// leaves this true.
    pub heard: bool,
    /// Open tool calls, in the order they were started.
    pub open: Vec<OpenCall>,
    /// Calls that ended, oldest first, at most [`StepState::KEPT_TOOLS`].
    pub recent_tools: VecDeque<ToolCall>,
    /// Agents that the agent started itself, in the order they began, at most [`super::SubAgent::KEPT`].
    pub sub_agents: Vec<SubAgent>,
    /// What its agent said that this version does not know.
    pub unknown: Unknowns,
    /// How many calls were started.
    pub tool_count: u64,
    /// How many assistant messages came.
    pub turn_count: u64,
    /// Tokens so far.
    pub tokens: Tokens,
    /// Cost so far, where the agent reports it.
    pub cost: Option<CostUsd>,
    /// How full the context window of its newest attempt is.
    pub window: Window,
    /// The newest message of the assistant, a preview.
    pub last_message: Option<String>,
    /// The newest non-blank lines of output, oldest first, at most [`StepState::KEPT_LINES`].
    pub recent_output: VecDeque<String>,
    /// The last of them has no end yet. Known to the runner only.
    pub open_line: bool,
    /// The agent waits to try its provider again: attempt, of how many, until when, why.
    pub retrying: Option<Retrying>,
    /// When the agent said that nothing more will come for its prompt; it is expected to exit soon after.
    pub settled_at: Option<Timestamp>,
    /// The newest answer was whole and asked for no tools: it will go no further by itself.
    pub last_word: bool,
    /// The newest answer asked for tools, and none of them has started.
    pub calls_pending: bool,
    /// How many turns it had when it last had no tool open and none asked for. What comes after that may be read together
    /// with it, and is too late for a limit that was reached by then.
    pub free_turns: u64,
    /// Model calls in a row that asked for no tools and did not end the work.
    pub barren: u32,
    /// The child is being ended.
    pub ending: Option<Ending>,
    /// Whether it can be steered.
    pub steerable: Steerable,
    /// A call was begun that changes files; known to the runner only.
    pub changed_files: bool,
    /// The tool whose call the agent's own guard refused because too many were made (runner-behaviour 3.2).
    pub blocked_tool: Option<String>,
    /// How many turns there were when a call was begun that its budget of calls blocks (runner-behaviour 3.2); known to the
    /// runner only.
    pub beyond_calls: Option<u64>,
    /// What was asked of it.
    pub steering: Steering,
    /// Facts of a plain command (run-directory 2.1.1).
    pub external: Option<ExternalProcess>,
    /// Who held the output open after the child had ended.
    pub held_by: Vec<u32>,
    /// Processes of the step that would not die.
    pub survivors: Vec<u32>,
    /// Captured output was cut at this many bytes.
    pub truncated_at: Option<u64>,
    /// Why a log of the step is not complete.
    pub log_error: Option<String>,
    /// The limit on its time in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Its outcome was taken over from an earlier run.
    pub carried_over: bool,
    /// The task has text.
    pub has_task: bool,
    /// The run that the step is, where it is a run of its own (workflows).
    pub own_run: Option<RunId>,
    /// The folder that its child works in; empty where it is not known.
    pub cwd: String,
    /// What it may use beside its time.
    pub limits: Limits,
    /// When somebody should look at it.
    pub thresholds: Thresholds,
    /// What became of its limits.
    pub budget: BudgetState,
    /// Why somebody should look at it, oldest first.
    pub attention: Vec<Notice>,
    /// The loudest of them as files say it (`needs_attention`, `active_long_running`).
    pub activity: Option<String>,
    /// Changes that failed since the last one that worked.
    pub failures: Failures,
    /// The newest call, and how many times in a row it came.
    pub repeat: Option<Repeat>,
    /// What the agent asked and nobody answered, oldest first, at most [`StepState::KEPT_SIGNS`].
    pub questions: Vec<Question>,
    /// What it asked in a run in which nobody may be asked, so that the run paused.
    pub unanswered: Option<String>,
    /// Files it changed, oldest first, at most [`StepState::KEPT_EDITS`].
    pub edited: VecDeque<String>,
    /// Files that another running step changes too.
    pub conflicts: Vec<Conflict>,
    /// Runs that were started in it and go on, at most [`super::InnerRun::KEPT`].
    pub inner: Vec<super::InnerRun>,
    /// The newest sign of life of runs that were started in it.
    pub inner_heard: Option<Timestamp>,
    /// The task of the next attempts is handed over in a file.
    pub task_by_file: bool,
    /// Another attempt is to be made.
    pub next_attempt: Option<NextAttempt>,
    /// What its launcher said for the package's readers, and what became of that.
    pub contract: SharedContract,
}

impl StepState {
    /// How many ended calls are kept.
    pub const KEPT_TOOLS: usize = 200;
    /// How many lines of recent output are kept (runner-behaviour 9).
    pub const KEPT_LINES: usize = 50;
    /// How many changed files are kept.
    pub const KEPT_EDITS: usize = 64;
    /// How many conflicts and open questions a step may have.
    pub const KEPT_SIGNS: usize = 16;

    /// The call shown as current: the one started last; of calls started in the same instant the first
    /// (runner-behaviour 4.5, trap 9). Nothing is current in a step that does not run (trap 8), nor once the child is gone
    /// and only the rest of its output is read.
    #[must_use]
    pub fn current_call(&self) -> Option<&OpenCall> {
        if self.phase != StepPhase::Running || (self.exit.is_some() && self.pid.is_none()) {
            return None;
        }
        self.open.iter().min_by_key(|c| (std::cmp::Reverse(c.started_at), c.seq))
    }

    /// What the person calls this step: its label, else its id (which is the agent's name unless the plan says
    /// otherwise), else its agent.
    #[must_use]
    pub fn title(&self) -> &str {
        self.label.as_deref().unwrap_or(if self.key.is_empty() { &self.agent } else { &self.key })
    }

    /// How long it ran, or runs as of `now`; of a lost one nobody knows, nor of one whose end has no time.
    #[must_use]
    pub fn elapsed(&self, now: Timestamp) -> Option<Duration> {
        if self.phase == StepPhase::Lost || (self.phase.is_terminal() && self.ended_at.is_none()) {
            return None;
        }
        self.started_at.map(|start| self.ended_at.unwrap_or(now).since(start))
    }

    /// The same for people, who are told no time of what never ran.
    #[must_use]
    pub fn took(&self, now: Timestamp) -> Option<Duration> {
        if self.never_ran() { None } else { self.elapsed(now) }
    }

    /// Since when it gives no sign of life: since the newest one of it or of a run that was started in it, or since its
    /// newest attempt began if there was none. `None` before it began.
    #[must_use]
    pub fn silent_since(&self) -> Option<Timestamp> {
        let began = self.attempts.last().and_then(|attempt| attempt.started_at).max(self.started_at);
        let own = self.last_activity.filter(|_| self.heard);
        own.or(began).max(self.inner_heard)
    }

    /// Whether the limit on silence counts: an open tool is a sign of life, and so is an agent that waits for its provider
    /// or for a person, also for one whom a run asks that was started in the step.
    #[must_use]
    pub fn may_be_idle(&self) -> bool {
        let asks = self.inner.iter().any(|run| run.needs.is_some());
        self.open.is_empty() && self.retrying.is_none() && self.questions.is_empty() && !asks
    }

    /// Whether the agent went on after a call that its budget blocks, though a guard in it would have refused that one.
    #[must_use]
    pub fn has_no_guard(&self) -> bool {
        self.blocked_tool.is_none() && self.beyond_calls.is_some_and(|turns| self.turn_count > turns)
    }

    /// The loudest level among its notices.
    #[must_use]
    pub fn level(&self) -> Option<Level> {
        self.attention.iter().map(Notice::level).max()
    }

    /// The number of the attempt that runs or ran last, from 1; 0 before the first.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        u32::try_from(self.attempts.len()).unwrap_or(u32::MAX)
    }

    /// Whether it ended without ever having begun: because a sibling failed, or because a stop or the time of the run ended
    /// it before its turn, which by the contract with other readers is an end without a duration (runner-behaviour 6).
    #[must_use]
    pub fn never_ran(&self) -> bool {
        let ended = matches!(self.phase, StepPhase::Failed | StepPhase::Stopped);
        let for_no_time = self.started_at == self.ended_at && self.attempts.is_empty() && self.exit.is_none();
        ended && (self.exit_code == Some(-1) || (self.stopped || self.timed_out) && for_no_time)
    }

    /// Whether it has begun and nothing of it was seen yet. Runners of others may not say when it was active last.
    fn is_starting(&self) -> bool {
        let did = self.turn_count > 0 || self.tool_count > 0 || !self.open.is_empty() || !self.recent_output.is_empty();
        self.last_activity.is_none() && self.pid.is_none() && !did
    }

    /// Whether an agent has been at work in it, which costs something.
    #[must_use]
    pub fn worked(&self) -> bool {
        self.runner.is_agent() && self.phase != StepPhase::Pending && !self.never_ran()
    }

    /// The state as the screen shows it (the table in the deck's design). What never ran in a run that is over is known to
    /// the run alone, see [`super::RunState::face`].
    #[must_use]
    pub fn face(&self) -> StepFace {
        match &self.phase {
            _ if self.ending.as_ref().is_some_and(|e| e.cause != EndingCause::Drain) => StepFace::Stopping,
            StepPhase::Pending => StepFace::Queued,
            StepPhase::Running if self.activity.as_deref() == Some("needs_attention") && !self.is_excused() => {
                StepFace::Attention
            }
            StepPhase::Running if self.is_starting() => StepFace::Starting,
            StepPhase::Running => StepFace::Running,
            StepPhase::Complete => StepFace::Succeeded,
            StepPhase::Failed | StepPhase::Stopped if self.never_ran() => StepFace::Skipped,
            StepPhase::Failed if self.budget.exceeded.is_some() => StepFace::OverBudget,
            StepPhase::Failed if self.timed_out => StepFace::TimedOut,
            StepPhase::Failed | StepPhase::Rejected => StepFace::Failed,
            StepPhase::Paused => StepFace::Paused,
            StepPhase::Stopped => StepFace::Stopped,
            StepPhase::Lost => StepFace::Lost,
            StepPhase::Unknown(_) => StepFace::Unknown,
        }
    }
}
