//! A run to take along: one document for people that needs nothing but a browser, and one for programs. Both are made of
//! the same [`Report`], which is bounded however large the run is and says what it leaves out.
//!
//! Prompts are left out unless they are asked for, and what looks like a key is redacted.

mod gather;
mod html;
mod json;
mod prompts;
mod timeline;
mod whole;

pub use gather::{Bounds, Call, OutputPart, Report, Thought, gather};
pub use html::html;
pub use json::json;

/// What stands where a prompt was.
pub const NO_PROMPT: &str = "[prompt left out]";

#[cfg(test)]
mod tests;
