//! The scripted agent: a child process like any other, that speaks pi's rpc protocol and does what a script says. No
//! model, no key, no network; it starts no processes. It serves the demo and the tests.

mod perform;
mod play;
mod script;
mod session;
#[cfg(test)]
mod tests;

pub use play::{Input, Stage, serve};
pub use script::{BUILT_IN, Progress, Retry, Scene, Script, ScriptError, Tool, Turn, UsageOf};
pub use session::Session;

/// The plan that `subdeck demo` runs.
pub const PLAN: &str = include_str!("../../../assets/demo-plan.toml");
