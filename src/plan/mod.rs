//! What to run: plan files, runner configs of pi-subagents, agent definitions, and their validation with positions.
//!
//! Everything ends in one [`Plan`], resolved: agents looked up, defaults filled in, paths absolute. The engine reads
//! nothing else. Never starts anything, never writes outside of what it is told to.

mod model;
pub mod template;

pub use model::{Budget, Carried, Limit, LogicalStep, PiTransport, Plan, Runner, Step, SystemPromptMode};
