//! Looking for words in what is shown of a run.

use super::Class;
use crate::run::needs;
use crate::rundir::fleet::FleetRun;

/// Whether a run has all these words somewhere in what is shown of it, whatever their case.
#[must_use]
pub fn has_words(run: &FleetRun, words: &str) -> bool {
    has(run, &words.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>())
}

pub(super) fn has(run: &FleetRun, words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let mut text = format!("{} {} {} ", run.dir().path().display(), run.title(), run.task);
    let mut add = |word: &str| {
        text.push_str(word);
        text.push(' ');
    };
    run.agents().into_iter().for_each(&mut add);
    add(Class::of(run).title());
    if let Some(project) = &run.project {
        add(&project.name);
        add(project.branch.as_deref().unwrap_or_default());
    }
    match &run.listed.state {
        Ok(state) => {
            add(state.phase.as_str());
            add(&state.cwd);
            add(state.error.as_deref().unwrap_or_default());
            state.steps.iter().filter_map(|s| s.model.as_deref()).for_each(&mut add);
            needs(state).iter().for_each(|need| {
                add(need.short().as_str());
                add(&need.evidence);
            });
        }
        Err(error) => add(&error.to_string()),
    }
    let text = text.to_lowercase();
    words.iter().all(|word| text.contains(word))
}
