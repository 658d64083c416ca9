//! The files of a step that outlive its run directory: begun before its first child, ended with it (run-directory 2.9).
//! That one cannot be written is told and changes nothing else (runner-behaviour 9).

use std::path::Path;

use super::clock::now;
use super::dispatch::Engine;
use crate::plan::{Plan, Runner, Step};
use crate::run::{Artifact, Artifacts, StepId, What};
use crate::rundir::artifacts;
use crate::rundir::transcript::{Transcript, Whose};

/// Where the files of a step go; none where the launcher wants none.
pub(super) fn of(plan: &Plan, step: &Step, flat: usize, run: &str) -> Artifacts {
    let Some(kept) = &plan.extras.artifacts else { return Artifacts::default() };
    let number = (plan.flat().count() > 1).then_some(flat);
    let path = |wanted: bool, suffix| wanted.then(|| artifacts::path(&kept.folder, run, &step.agent, number, suffix));
    // The output of a plain command is text and no conversation; its streams are files of the run.
    let speaks = !matches!(step.runner, Runner::ExternalCli { .. });
    Artifacts {
        input: path(kept.input, "_input.md"),
        output: path(kept.output, "_output.md"),
        transcript: path(kept.transcript && speaks, "_transcript.jsonl"),
        metadata: path(kept.metadata, "_meta.json"),
    }
}

impl Engine {
    /// Begins the files of a step, before its first child.
    pub(super) fn begin_artifacts(&mut self, id: StepId) {
        let Some(step) = self.recorder.state().step(id) else { return };
        let files = step.contract.artifacts.clone();
        let (agent, cwd) = (step.agent.clone(), step.cwd.clone());
        if let Some(path) = &files.input {
            // What a step was asked is no loss when it cannot be written: it is not in there.
            if let Err(error) = artifacts::write(Path::new(path), artifacts::input(&agent).as_bytes()) {
                super::complain::complain("runner", &format_args!("cannot write {path}: {error}"));
            }
        }
        if let Some(path) = &files.transcript {
            let whose = Whose { run: self.dir.id_str(), step: id, agent: &agent, cwd: &cwd };
            let transcript = Transcript::begin(Path::new(path), &whose, now());
            self.transcripts.insert(id, transcript);
            self.tell_transcript(id);
        }
    }

    /// Ends the files of a step that has ended with this text.
    pub(super) fn end_artifacts(&mut self, id: StepId, text: &str) {
        self.tell_transcript(id);
        self.transcripts.remove(&id);
        let state = self.recorder.state();
        let Some(step) = state.step(id).filter(|s| !s.attempts.is_empty()) else { return };
        let files = step.contract.artifacts.clone();
        let output = files.output.map(|path| (Artifact::Output, path, artifacts::output(step, text).into_bytes()));
        let metadata = files.metadata.map(|path| (Artifact::Metadata, path, artifacts::metadata(state, step)));
        for (which, path, bytes) in [output, metadata].into_iter().flatten() {
            if let Err(error) = artifacts::write(Path::new(&path), &bytes) {
                let error = format!("cannot write {path}: {error}");
                self.recorder.record(What::ArtifactFailed { step: id, which, error });
            }
        }
    }

    fn tell_transcript(&mut self, id: StepId) {
        if let Some(error) = self.transcripts.get(&id).and_then(Transcript::take_error) {
            self.recorder.record(What::ArtifactFailed { step: id, which: Artifact::Transcript, error });
        }
    }
}
