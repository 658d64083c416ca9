//! Writing the status of one run again and again: what has not changed since is not written anew, so that a run of
//! many steps pays for those that change. Owns what was written last; what is written is [`super::status`]'s.

use std::collections::BTreeMap;

use super::RunDir;
use super::json::{Json, Obj};
use super::status::{StatusContext, document, output};
use super::status_step::step;
use crate::run::{NamedOutput, RunState, StepState};

/// Writes the status of one run.
#[derive(Debug, Default)]
pub struct StatusEncoder {
    /// Each step as it was, and what was written for it.
    steps: Vec<(StepState, Json)>,
    /// The same of each named output.
    outputs: BTreeMap<String, (NamedOutput, Json)>,
    /// For which run.
    dir: RunDir,
}

impl StatusEncoder {
    /// The whole document.
    #[must_use]
    pub fn encode(&mut self, state: &RunState, context: &StatusContext<'_>) -> Vec<u8> {
        if *context.dir != self.dir {
            *self = Self { dir: context.dir.clone(), ..Self::default() };
        }
        let steps = self.steps(state, context);
        let outputs = self.outputs(state);
        document(state, context, steps, outputs)
    }

    fn steps(&mut self, state: &RunState, context: &StatusContext<'_>) -> Json {
        // Proofs of the end of a process say more than the step.
        if context.instance.is_some() {
            return state.steps.iter().map(|s| step(s, state, context)).collect();
        }
        self.steps.truncate(state.steps.len());
        for (at, now) in state.steps.iter().enumerate() {
            let fresh = || (now.clone(), written(step(now, state, context)));
            match self.steps.get_mut(at) {
                Some((then, _)) if then == now => {}
                Some(place) => *place = fresh(),
                None => self.steps.push(fresh()),
            }
        }
        self.steps.iter().map(|(_, json)| json.clone()).collect()
    }

    fn outputs(&mut self, state: &RunState) -> Obj {
        self.outputs.retain(|name, _| state.outputs.contains_key(name));
        let mut map = Obj::new();
        for (name, now) in &state.outputs {
            let known = self.outputs.get(name).filter(|(then, _)| then == now).map(|(_, json)| json.clone());
            let json = known.unwrap_or_else(|| {
                let json = written(output(now));
                self.outputs.insert(name.clone(), (now.clone(), json.clone()));
                json
            });
            map.set(name, json);
        }
        map
    }
}

/// An entry of a list of the document.
fn written(obj: Obj) -> Json {
    obj.written(2).map_or(Json::Obj(obj), Json::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{StepId, StepPhase};
    use crate::rundir::status;

    fn step(number: u32) -> StepState {
        StepState { id: StepId(number), key: format!("s{number}"), agent: "a \"b\"\n".into(), ..StepState::default() }
    }

    #[test]
    fn every_document_is_what_it_would_be_without_the_earlier_ones() {
        let mut encoder = StatusEncoder::default();
        let (here, there) = (RunDir::at("/r/here"), RunDir::at("/r/there"));
        let mut state = RunState { steps: (0..4).map(step).collect(), ..RunState::default() };
        let output = |text: &str| NamedOutput { text: text.into(), agent: "a".into(), logical: 0 };
        type Change = fn(&mut RunState);
        let changes: [Change; 8] = [
            |_| {},
            |s| s.steps[1].phase = StepPhase::Running,
            |s| s.steps.push(step(4)),
            |s| s.steps[0].agent = "{\n}".into(),
            |s| s.steps.truncate(2),
            |s| s.steps[1].error = Some("x".into()),
            |s| s.steps.clear(),
            |s| s.steps.push(step(7)),
        ];
        for (number, change) in changes.iter().enumerate() {
            change(&mut state);
            state.outputs.insert(format!("o{}", number % 3), output(&"line\n".repeat(number)));
            if number == 5 {
                state.outputs.remove("o1");
            }
            for (dir, instance) in [(&here, None), (&here, Some("i")), (&there, None), (&there, None)] {
                let context = StatusContext { dir, instance };
                let (got, want) = (encoder.encode(&state, &context), status::encode(&state, &context));
                assert_eq!(String::from_utf8(got).unwrap(), String::from_utf8(want).unwrap(), "{number} {instance:?}");
            }
        }
    }

    #[test]
    fn a_step_that_has_not_changed_is_not_written_again() {
        let (mut encoder, dir) = (StatusEncoder::default(), RunDir::at("/r/one"));
        let context = StatusContext { dir: &dir, instance: None };
        let mut state = RunState { steps: (0..3).map(step).collect(), ..RunState::default() };
        let _ = encoder.encode(&state, &context);
        // Whoever did write them anew would not repeat this.
        for (_, json) in &mut encoder.steps {
            *json = "as before".into();
        }
        state.steps[1].phase = StepPhase::Running;
        let text = String::from_utf8(encoder.encode(&state, &context)).unwrap();
        assert_eq!(text.matches("as before").count(), 2);
    }
}
