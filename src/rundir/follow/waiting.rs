//! Waiting until something may have changed.

use std::time::Instant;

use super::{Follower, GATHER};
use crate::rundir::health::Health;
use crate::rundir::watch;

impl Follower {
    /// Stops waiting for changes once the run has said that it ended; what little follows is found by the next looks.
    /// For those who learn of the end of the runner in another way.
    pub fn rest_when_ended(&mut self) {
        if self.view.ended_at.is_some() {
            self.watch.release();
        }
    }

    /// Returns when something may have changed, or when it is time to look anyway. May be dropped and called again.
    pub async fn wait(&mut self) {
        let looked = self.looked.unwrap_or_else(Instant::now);
        match &self.past {
            Some(past) => tokio::select! {
                () = past.moved() => {}
                () = self.watch.changed_since(looked) => {}
            },
            None if self.behind => {}
            // Nothing but files can change what is over, and here the system tells of each.
            None if self.health == Health::Over && self.watch.tells() && watch::tells_everything(self.dir.path()) => {
                self.watch.woken().await;
            }
            None => self.watch.changed_since(looked).await,
        }
    }

    /// Like [`Follower::wait`], for those who print: at once after a quiet time, and while much happens no more often
    /// than every [`GATHER`], so that what came meanwhile is looked at together. May be dropped and called again.
    pub async fn wait_gathered(&mut self) {
        if self.behind {
            return;
        }
        if !self.woken {
            self.watch.changed().await;
            self.woken = true;
        }
        if let Some(looked) = self.looked {
            tokio::time::sleep_until((looked + GATHER).into()).await;
        }
    }
}
