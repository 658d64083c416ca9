//! Whether the children of a foreign run take messages: each says so in a file of its own, and a marker says that nobody does
//! any more (run-directory 3.5, 3.7). A runner of ours records both as events.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use super::request::ControlRequest;
use super::request_read::capability;
use super::{RunDir, inbox_closed, open};
use crate::run::{RunState, Steerable, StepId, StepPhase, StepState};

/// Larger files say nothing.
const FILE_MOST: u64 = 64 * 1024;
/// The most steps that are asked; more never run at once.
const STEPS_MOST: usize = 64;
/// Why nobody takes a message any more.
const CLOSED: &str = "the inbox of the run is closed";

/// What the files say.
#[derive(Debug)]
pub(super) struct Ears {
    dir: RunDir,
    /// By step: which file was read last, and what it says.
    said: BTreeMap<StepId, (Stamp, Option<Steerable>)>,
    closed: bool,
}

/// Which file it is, when it was written, and how long it is.
type Stamp = (u64, i64, i64, u64);

impl Ears {
    pub(super) const fn new(dir: RunDir) -> Self {
        Self { dir, said: BTreeMap::new(), closed: false }
    }

    /// Looks at the files of the steps that run; whether anything is said that was not said before.
    pub(super) fn look(&mut self, state: &RunState) -> bool {
        let closed = inbox_closed::is_closed(&self.dir);
        let mut changed = std::mem::replace(&mut self.closed, closed) != closed;
        let folder = self.dir.control().join("steer-capabilities");
        for step in state.steps.iter().filter(|step| step.phase == StepPhase::Running).take(STEPS_MOST) {
            let path = folder.join(format!("{}.json", step.id.flat()));
            let Some(stamp) = stamp(&path) else { continue };
            if self.said.get(&step.id).is_some_and(|(known, _)| *known == stamp) {
                continue;
            }
            let bytes = open::regular(&path).and_then(|file| open::read_at_most(&file, FILE_MOST)).unwrap_or_default();
            let said = match capability(&bytes) {
                Some(ControlRequest::Capability { step: of, steerable }) if of == step.id => Some(steerable),
                _ => None,
            };
            let before = self.said.insert(step.id, (stamp, said.clone())).and_then(|(_, before)| before);
            changed |= before != said;
        }
        changed
    }

    /// Says it of the steps that do not say it themselves.
    pub(super) fn show(&self, view: &mut Arc<RunState>) {
        let says = |step: &StepState| {
            let agent = step.runner.is_agent() && !step.phase.is_terminal();
            let own =
                if self.closed { Some(Steerable::No(CLOSED.to_owned())) } else { self.said.get(&step.id)?.1.clone() };
            own.filter(|_| agent && (self.closed || step.steerable == Steerable::Unknown))
        };
        let all: Vec<(usize, Steerable)> =
            view.steps.iter().enumerate().filter_map(|(at, step)| Some((at, says(step)?))).collect();
        if all.is_empty() {
            return;
        }
        let view = Arc::make_mut(view);
        for (at, steerable) in all {
            if let Some(step) = view.steps.get_mut(at) {
                step.steerable = steerable;
            }
        }
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some((meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_children_say_is_looked_up_and_a_closed_inbox_goes_before_it() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path());
        let folder = dir.control().join("steer-capabilities");
        fs::create_dir_all(&folder).unwrap();
        let step = |id: u32, phase| StepState { id: StepId(id), phase, ..StepState::default() };
        let phases = [StepPhase::Running, StepPhase::Running, StepPhase::Running, StepPhase::Complete];
        let steps: Vec<StepState> = (0..).zip(phases).map(|(id, phase)| step(id, phase)).collect();
        let state = Arc::new(RunState { steps, ..RunState::default() });
        let mut ears = Ears::new(dir.clone());
        let shown = |ears: &Ears| {
            let mut view = Arc::clone(&state);
            ears.show(&mut view);
            view.steps.iter().map(|step| step.steerable.clone()).collect::<Vec<_>>()
        };
        assert!(!ears.look(&state));
        assert_eq!(shown(&ears), vec![Steerable::Unknown; 4]);
        let say = |flat: u32, of: u32, supported: bool| {
            let text = format!(
                r#"{{"type":"steer-capability","protocolVersion":1,"index":{of},"pid":7,"readyAt":1,"supported":{supported}}}"#
            );
            fs::write(folder.join(format!("{flat}.json")), text).unwrap();
        };
        say(0, 0, true);
        say(1, 1, false);
        // That of another one counts for nobody.
        say(2, 5, true);
        assert!(ears.look(&state) && !ears.look(&state));
        let [yes, no, unknown, over] = shown(&ears).try_into().unwrap();
        assert_eq!((yes, unknown, over), (Steerable::Yes, Steerable::Unknown, Steerable::Unknown));
        assert!(matches!(no, Steerable::No(_)));
        fs::write(dir.inbox_closed(), "{}").unwrap();
        assert!(ears.look(&state));
        let closed = Steerable::No(CLOSED.to_owned());
        assert_eq!(shown(&ears), [closed.clone(), closed.clone(), closed, Steerable::Unknown]);
    }
}
