//! Notices: what needs a look is recorded, and told once in the words of the package's readers (runner-behaviour 4.4).

use super::clock::now;
use super::dispatch::Engine;
use crate::run::{Level, Notice, StepId, What};
use crate::rundir::notice_record;

impl Engine {
    /// Records a notice, and tells each cause once.
    pub(super) fn raise(&mut self, step: StepId, notice: Box<Notice>) {
        self.recorder.record(What::AttentionRaised { step, notice: notice.clone() });
        if notice.level() == Level::Note || !self.told.insert(notice.id.clone()) {
            return;
        }
        let line = notice_record::encode(self.recorder.state(), step, &notice, &self.plan.control, now());
        if let Some(line) = line {
            // As with every record: the log keeps what it could not write.
            let _ = self.recorder.log().append(&line);
        }
    }
}
