//! The sentences around what a supervisor says to an agent in the middle of its work.

use crate::run::SteerMode;

const STEER_HEAD: &str = "A message from the person who supervises this run:";
const STEER_FOOT: &str = "Take it into account now and go on with your task.";
const LIMIT_HEAD: &str = "A message from the program that supervises this run:";
const FOLLOW_HEAD: &str = "A further message from the person who supervises this run:";
const FOLLOW_FOOT: &str = "Deal with it now that the work before it is done.";

/// A message without the lines that [`wrapped`] put around it.
#[must_use]
pub fn unwrapped(text: &str) -> &str {
    let inner = |head, foot| text.strip_prefix(head)?.strip_suffix(foot);
    inner(STEER_HEAD, STEER_FOOT).or_else(|| inner(FOLLOW_HEAD, FOLLOW_FOOT)).map_or(text, str::trim)
}

/// A person's message as the agent gets it.
#[must_use]
pub fn wrapped(mode: SteerMode, text: &str) -> String {
    let (head, foot) = match mode {
        SteerMode::FollowUp => (FOLLOW_HEAD, FOLLOW_FOOT),
        SteerMode::Steer | SteerMode::Auto => (STEER_HEAD, STEER_FOOT),
    };
    format!("{head}\n\n{text}\n\n{foot}")
}

/// What this program says about a limit, as the agent gets it.
#[must_use]
pub fn limit(text: &str) -> String {
    format!("{LIMIT_HEAD}\n\n{text}")
}
