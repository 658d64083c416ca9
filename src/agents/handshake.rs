//! How a conversation with an agent begins that makes a session before it takes anything.

use super::Receipt;
use crate::run::{Steerable, TargetState};

const REFUSED: &str = "the agent refused to begin";

/// How far the conversation came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// The session is being made; the task waits.
    #[default]
    Greeting,
    /// There is a session.
    Open,
    /// The agent refused to begin.
    Refused,
}

impl Phase {
    /// Whether messages are taken.
    pub(super) fn steerable(self) -> Steerable {
        match self {
            Self::Refused => Steerable::No(REFUSED.to_owned()),
            Self::Greeting | Self::Open => Steerable::Yes,
        }
    }
}

/// The end of messages to an agent that refused to begin.
pub(super) fn refused(ids: impl IntoIterator<Item = String>) -> impl Iterator<Item = Receipt> {
    let detail = Some(REFUSED.to_owned());
    ids.into_iter().map(move |id| Receipt { id, state: TargetState::Failed, detail: detail.clone() })
}
