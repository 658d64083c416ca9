//! The pi coding agent over its JSON lines, in both of its modes (one prompt, or commands on standard input).

mod about;
mod adapter;
pub(in crate::agents) mod args;
mod asked;
pub mod command;
mod decode;
mod encode;
mod fast;
pub(in crate::agents) mod live;
mod record;
mod talk;

pub use adapter::PiAdapter;
pub use decode::{Kind, decode_line};
pub use encode::{WHOLE_ARGS, call_begins, call_ends, encode, line_of, message};
pub use talk::PiTalk;
