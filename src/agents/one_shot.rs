//! The other side of a child that takes one prompt and nothing more.

use super::{Receipt, Talk};
use crate::run::{AgentEvent, SteerMode, Steerable};

/// Hands nothing over and says why: the whole prompt is in the child's arguments or was written once.
#[derive(Clone, Copy, Debug)]
pub struct OneShot {
    /// Why it takes no messages: what follows "takes no messages: ".
    pub reason: &'static str,
}

impl Talk for OneShot {
    fn prompt(&mut self, _text: &str) -> Vec<u8> {
        Vec::new()
    }

    fn steer(&mut self, _id: &str, _mode: SteerMode, _text: &str) -> Option<Vec<u8>> {
        None
    }

    fn abort(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn receipts(&mut self, _event: &AgentEvent) -> Vec<Receipt> {
        Vec::new()
    }

    fn steerable(&self) -> Steerable {
        Steerable::No(self.reason.to_owned())
    }

    fn done(&self) -> bool {
        true
    }
}
