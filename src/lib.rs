//! Subdeck supervises AI subagent runs: it launches coding agents as children of a detached runner, shows what each
//! of them does, lets a person or a script steer, interrupt and stop them, and keeps the whole run in a directory of
//! plain files.
//!
//! # How a byte becomes a picture
//!
//! ```text
//! child output -> engine (pump) -> agents (framing, adapter) -> AgentEvent -\
//! child exit, timers, control files ------------------------------------- > run::reduce -> run::decide -> effects
//!                                                                             |
//!                                                                             v
//!                                     rundir: status.json, events.jsonl, logs, result   (the only door)
//!                                                                             |
//!                                                                             v
//!                                     rundir::follow -> the same RunState -> deck (person) or headless (script)
//! ```
//!
//! # Rooms
//!
//! A room uses only rooms above it in this table.
//!
//! | room | owns | may touch |
//! |---|---|---|
//! | [`text`] | safe text, widths, ANSI to styles, human units | nothing |
//! | [`run`] | what a run *is*: events, state, `reduce`, `decide`, outcomes. Pure: no clock, no I/O | text |
//! | [`agents`] | what agents *say*: framing and one adapter a CLI, and how to talk back. Pure state machines | run, text |
//! | [`plan`] | what to run: plan files, runner configs, agent definitions, validation with positions | run, text |
//! | [`config`] | what the user set: layers, trust | plan (for positions), run (its words), text |
//! | [`rundir`] | what is on disk: one file per document kind, inbox, indexes, following, log windows | run, text, agents (the pi decoder), plan (its stored form, how a limit is written) |
//! | [`engine`] | what happens: spawning, process trees, timers, scheduling; performs effects | all above |
//! | [`listing`] | lists of runs: classes, order, headings, sums. Pure | run, rundir, text |
//! | [`headless`] | what scripts see: text, JSONL, summary | run, rundir, text |
//! | [`deck`] | what people see: model, update, views, actions, terminal guard | run, rundir, listing, text |
//! | [`export`] | what people take along: a run as one HTML document and as JSON | run, rundir, headless, text; of the deck how events are told |
//! | [`cli`] | what people type: one file a command, arguments, exit codes | all |
//!
//! Beside the rooms stand `tell`, which prints for people, and `alarm`, which wakes at one moment; they know of no room.
//!
//! # Laws
//!
//! 1. **The runner is a process of its own.** A keeper starts it; the deck never owns a child. The keeper is a
//!    subreaper that only waits: when the runner dies uncleanly it ends what fell to it and records *lost*. Of a run
//!    in the foreground the command itself is the keeper.
//! 2. **One reducer.** [`run::reduce`] is used live, when attaching and in tests. No event changes a
//!    [`run::RunState`] in another way. Time is an argument. What a reader sees is made of what the events say and what
//!    the status says (`rundir::merge`).
//! 3. **Decisions are events, effects are values.** [`run::decide`] returns conclusions and the next deadline; the
//!    engine records each as an event, then performs it. Followers never decide for a run they do not own.
//! 4. **Files are the only door** between the runner and everything else. Keys, commands and foreign tools write the
//!    same control files.
//! 5. **One vocabulary on disk.** `events.jsonl` holds runner records and pi-shaped child records; one decoder reads
//!    every run. State-bearing records are never dropped.
//! 6. **Clean at the glass.** A screen, a printed line, a title takes only [`text::SafeText`] or what is made of it.
//! 7. **Reading never waits, writing never loses.** The pump never waits for a screen or a reader.
//! 8. **Identity before signal; looking never kills.** A signal goes only to an unreaped child, to a pid whose start
//!    time and boot id match, or to a member of a swept tree.
//! 9. **Cheap when quiet.** No interval ticks. Work is proportional to what changed and what is visible.
//! 10. **Unknown is a value.** Unknown fields, events and states of foreign files are shown as unknown, never an error.
//! 11. **No panic from data.** `unsafe` is forbidden; `unwrap`, `expect` and indexing are denied outside tests.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing))]
// The printing macros end the process when nobody can read what they say.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![warn(missing_docs)]

#[cfg(not(unix))]
compile_error!("subdeck runs on Linux and macOS; Windows is not supported");

#[macro_use]
mod tell;

pub mod agents;
mod alarm;
pub mod cli;
pub mod config;
pub mod deck;
pub mod engine;
pub mod export;
pub mod headless;
pub mod listing;
pub mod plan;
pub mod run;
pub mod rundir;
pub mod text;
