//! What becomes of a run whose directory is renamed, removed or replaced while it goes on (product 6).

use super::complain::complain;
use super::dispatch::Engine;
use crate::run::{ControlSource, What};
use crate::rundir::Place;

impl Engine {
    /// Looks where the run directory is. A renamed one is followed. Without one nothing can be recorded and nobody can
    /// ask for anything any more, so the run is stopped in the orderly way.
    pub(super) fn look_home(&mut self) {
        let place = self.home.place();
        if place == self.place {
            return;
        }
        let path = self.dir.path().display();
        match &place {
            Place::There => complain("runner", &format_args!("the run directory is at {path} again")),
            Place::Moved(now) => {
                complain("runner", &format_args!("the run directory {path} is {} now; the run goes on", now.display()));
            }
            Place::Gone => {
                let message = format!("The run directory {path} was removed, so the run was stopped.");
                complain("runner", &message);
                if !self.recorder.state().stopped {
                    let source = ControlSource { via: "runner".to_owned(), ..ControlSource::default() };
                    self.recorder.record(What::RunStopped { message, source: Some(source) });
                }
            }
        }
        self.place = place;
    }
}
