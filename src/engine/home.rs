//! What becomes of a run whose directory, or the inbox in it, is renamed, removed or replaced while it goes on (product 6).

use std::time::{Duration, Instant};

use super::complain::complain;
use super::dispatch::{Doors, Engine};
use crate::run::{ControlSource, What};
use crate::rundir::Place;

/// How long a folder of the inbox is missing before it is made again.
const MISSING_MADE: Duration = Duration::from_secs(1);

impl Engine {
    /// Makes the folders of the inbox again when somebody has removed them, and watches them: whoever asks for something
    /// finds them where they were. Not at once, because whoever removes the whole run directory would find it filled again.
    pub(super) fn keep_inbox(&self, doors: &mut Doors) {
        let way = self.home.way();
        if doors.watch.take_lost() {
            doors.missing = Some(Instant::now());
        } else if !way.control().is_dir() {
            doors.missing.get_or_insert_with(Instant::now);
        }
        let Some(since) = doors.missing else { return };
        if self.home.place() == Place::Gone {
            doors.missing = None;
            return;
        }
        if since.elapsed() >= MISSING_MADE {
            doors.missing = None;
            if let Err(error) = way.make_folders() {
                let what = format_args!("a folder for requests is gone and cannot be made again: {error}");
                complain("runner", &what);
            }
        }
        // Who asks for something makes the folder that it needs.
        doors.watch.more_arrivals(doors.inbox.folders());
    }

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
