//! What a run *is*: its events, its state, how events change the state, and what follows from a state.
//!
//! Pure: no clock (time is an argument), no I/O, no tokio. Everything here can be tested as a table.

mod acceptance;
mod agent_event;
pub mod attention;
mod awake;
pub mod budget;
mod cause;
mod contract;
mod decide;
mod demand;
mod event;
mod face;
mod family;
mod graph;
pub mod inner;
mod judge;
mod limits;
mod named;
mod needs;
mod older;
mod outcome;
pub mod permission;
mod question;
mod raise;
mod reduce;
pub mod replay;
mod resume;
pub mod retry;
mod signs;
mod state;
mod steering;
mod step_attempts;
mod step_kinds;
mod step_meta;
mod step_state;
#[cfg(test)]
pub(crate) mod story;
mod sub_agent;
mod told;
mod unknown;
mod values;
pub mod words;

pub use acceptance::{
    Acceptance, AcceptanceLevel, AcceptanceReport, AcceptanceStatus, Check, CheckStatus, Claim, Criterion, Ledger,
    Reported, Review, Verify, VerifyRun, prompt as acceptance_prompt,
};
pub use agent_event::{AgentEvent, CallFacts, MessageRole, QueueContents, StopReason, ToolOutcome, Usage, broken_off};
pub use attention::{Amount, Condition, Level, Notice, Reason};
pub use awake::{Gap, Gaps};
pub use budget::{BudgetState, Meter, Metric, Reached, Stage};
pub use cause::cause;
pub use contract::{Artifacts, RunContract, SharedContract, StepContract};
pub use decide::{
    ABORT_TO_TERM, BUDGET_TO_TERM, DRAIN, DRAIN_MOST, DRAIN_QUIET, Decision, Effect, INT_TO_TERM, TERM_TO_KILL, decide,
};
pub use demand::{demands_edits, keeps_what_is};
pub use event::{Artifact, ControlSource, Event, ExitInfo, RunMeta, Stream, What};
pub use face::StepFace;
pub use family::{AgentKind, Family, Permission, Transport};
pub use graph::{Graph, Node as GraphNode};
pub use inner::InnerRun;
pub use judge::{Evidence, Judgement, Report, STOPPED, judge, signal_name};
pub use limits::{Limit, Limits, Thresholds, ToolBlock, TurnLimit};
pub use named::NamedRunner;
pub use needs::{Need, needs};
pub use outcome::{ExitCause, RunVerdict, StepOutcome, exit_code, verdict};
pub use permission::{OnPermission, Ruling, ToolRule, ruling};
pub use question::{Answer, AnsweredBy, Asking, Choice, Question, QuestionKind};
pub use raise::{End, Raise};
pub use reduce::reduce;
pub use resume::{resume_command, resume_line};
pub use signs::{Conflict, Failure, Failures, Repeat, Worst, same_name};
pub use state::{Group, NamedOutput, RunMode, RunPhase, RunState, Unannounced, Within};
pub use steering::{MESSAGE, SteerMode, SteerRequest, SteerTarget, Steering, TargetState};
pub use step_attempts::{Attempt, Ending, EndingCause, NextAttempt, Retrying};
pub use step_kinds::{ExternalProcess, OpenCall, RunnerKind, Steerable, StepPhase, ToolCall};
pub use step_meta::StepMeta;
pub use step_state::StepState;
pub use sub_agent::{SubAgent, SubAgentDid, SubCall};
pub use told::{Used, cost_of, or_more};
pub use unknown::{UnknownKind, Unknowns};
pub use values::{CostUsd, RunId, StepId, Timestamp, Tokens, Window};
