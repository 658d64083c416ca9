//! What happens: children are spawned, watched and ended here; timers run here; effects are performed here.
//!
//! The engine decides nothing about a run by itself: it turns what it sees into events, lets [`crate::run`] reduce
//! and decide, records, and performs the effects that come back.

#![deny(clippy::print_stderr, clippy::print_stdout)]

mod accept;
mod ahead;
mod artifacts;
mod attempt;
mod attend;
mod capture;
mod child;
mod clock;
mod complain;
mod control;
mod descriptors;
mod disk;
mod dispatch;
mod family;
mod finish;
mod home;
mod inside;
mod intake;
mod keep;
mod keeper;
mod kept;
mod last;
mod launch;
mod leftovers;
mod live_log;
mod nested;
mod not_started;
mod notes;
mod output_file;
mod prepare;
mod pump;
mod questions;
mod raise;
mod recorder;
mod runner;
mod schedule;
pub mod session;
mod settle;
mod signals;
mod step;
pub mod tree;
mod understand;
mod watched;

pub use clock::now;
pub use keeper::{Aftermath, after as after_runner, main as keeper_main, take_name};
pub use launch::{Caps, LaunchError, Prepared, detach, discard, foreground, prepare, wait_ready};
pub use leftovers::{Leftover, end_leftovers, leftovers};
pub use runner::{Stance, main as runner_main};
pub use settle::Patience;
pub use signals::shrug_off_strays;
pub use watched::{ToRunner, Watched};
