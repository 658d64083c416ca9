//! What to run: plan files, runner configs of pi-subagents, agent definitions, and their validation with positions.
//!
//! Everything ends in one [`Plan`], resolved: agents looked up, defaults filled in, paths absolute. The engine reads
//! nothing else. Never starts anything, never writes outside of what it is told to.

pub mod agents;
mod attention;
mod contract;
mod draft;
mod foreign;
mod foreign_extras;
mod foreign_limits;
mod ids;
pub mod keys;
mod limits;
mod load;
mod model;
pub(crate) mod nearest;
mod problem;
pub mod programs;
mod raise;
pub(crate) mod read;
mod read_agent;
pub(crate) mod read_attention;
mod read_budget;
pub(crate) mod read_permission;
mod read_runner;
pub(crate) mod reader;
mod resolve;
mod show;
mod source;
pub mod stored;
pub mod template;
mod toml_errors;
pub mod tree;

pub use crate::run::{End, Raise};
pub use attention::{Attention, Rule};
pub use contract::{KeptFiles, NestedSelf, PathEntry, Route, RunExtras, StepExtras, SummaryLimit};
pub use load::{
    Defaults, Input, LoadOptions, Loaded, ScriptCheck, ScriptProblem, from_agent, from_command, load, load_source,
};
pub use model::{
    AgentRunner, Budget, Carried, Control, Limit, LogicalStep, NotifyOn, PiTransport, Plan, Runner, Step,
    SystemPromptMode,
};
pub use problem::{Problem, Problems, Severity};
pub use read_permission::Permissions;
pub(crate) use source::open_regular;
pub use source::{MAX_BYTES, Position, Source};
