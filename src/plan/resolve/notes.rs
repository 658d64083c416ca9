//! What is wrong or odd with a plan that can be read: told with its place while it is resolved.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::Resolver;
use crate::plan::agents::AgentDef;
use crate::plan::draft::{DraftLogical, DraftStep};
use crate::plan::ids::members;
use crate::plan::nearest::{nearest, one_of};
use crate::plan::reader::{Reader, Spanned};
use crate::plan::{Runner, Step, programs, source};

/// Notes a folder whose name cannot be written down: the stored plan and the documents of a run are text.
pub(super) fn need_text(reader: &mut Reader<'_>, folder: &Path, at: &Spanned<()>) -> bool {
    let is_text = folder.to_str().is_some();
    if !is_text {
        let name = folder.display();
        let wrong = format!("the name of the folder `{name}` is no UTF-8 text, and runs keep their folders as text");
        reader.error_at(at, wrong).suggest("rename it, or start from another folder");
    }
    is_text
}

pub(super) fn need_folder(reader: &mut Reader<'_>, folder: &Path, at: &Spanned<()>) {
    let wrong = match std::fs::metadata(folder) {
        Ok(meta) if meta.is_dir() => return,
        Ok(_) => format!("`{}` is not a folder", folder.display()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            format!("the folder `{}` does not exist", folder.display())
        }
        Err(error) => format!("the folder `{}` cannot be used: {}", folder.display(), source::reason(&error)),
    };
    reader.error_at(at, wrong).suggest("create it or name another one");
}

impl Resolver<'_, '_> {
    /// Notes what agents of another family than pi's cannot be told.
    pub(super) fn unheeded(&mut self, draft: &DraftStep, base: Option<&AgentDef>, step: &Step) {
        let Runner::Agent(runner) = &step.runner else { return };
        let name = runner.kind.family.name();
        let at = Spanned { value: (), span: draft.span.clone(), path: draft.path.clone() };
        if let Some(session) = &draft.session {
            self.reader
                .error_at(session, format!("{name} keeps its sessions itself; `session` names a file of pi"))
                .suggest(format!("write runner = {{ type = \"{}\", resume = \"ID\" }}", runner.kind.family.word()));
        }
        let extensions = draft.extensions.is_some() || base.is_some_and(|b| b.extensions.is_some());
        for (given, key) in [
            (extensions, "extensions"),
            (draft.inherit_project_context == Some(false), "inherit_project_context = false"),
            (draft.inherit_skills == Some(false), "inherit_skills = false"),
            (!runner.kind.family.takes_tools() && step.tools.is_some(), "tools"),
            (!runner.kind.family.takes_thinking() && step.thinking.is_some(), "thinking"),
            (!runner.kind.family.takes_model() && !step.models.is_empty(), "model"),
        ] {
            if given {
                self.reader.warn_at(&at, format!("`{key}` says nothing to {name}")).suggest("leave it out");
            }
        }
    }

    /// Notes a program or a script that is not there.
    pub(super) fn startable(&mut self, draft: &DraftStep, step: &Step) {
        let whole = || Spanned { value: (), span: draft.span.clone(), path: draft.path.clone() };
        let at = draft.runner.clone().map_or_else(whole, |r| r.map(|_| ()));
        if let (Runner::Demo { script }, Some(check)) = (&step.runner, self.options.check_script) {
            let Err(problem) = check(script, &step.cwd) else { return };
            let near =
                nearest(script, problem.known.iter().map(String::as_str)).map(|n| format!("did you mean `{n}`?"));
            let list = || one_of(problem.known.iter().map(String::as_str));
            let advice = near.or_else(|| (!problem.known.is_empty()).then(|| format!("use {}", list())));
            let may_come = problem.may_come;
            let note = if may_come {
                self.reader.warn_at(&at, problem.message)
            } else {
                self.reader.error_at(&at, problem.message)
            };
            if let Some(advice) = advice {
                note.suggest(advice);
            }
            return;
        }
        let Some(missing) = programs::missing(step, self.options.path.as_deref()) else { return };
        if draft.broken.runner || self.missing.contains(&missing.program) {
            return;
        }
        if missing.certain {
            self.reader.error_at(&at, missing.message).suggest("install it, or correct its name or PATH");
        } else {
            self.reader.warn_at(&at, missing.message).suggest("a step before has to make it");
        }
        self.missing.push(missing.program);
    }

    /// Notes times of a step that another one ends first.
    pub(super) fn times(&mut self, draft: &DraftStep) {
        if self.foreign {
            return;
        }
        if let (Some(own), Some(all)) = (draft.budget.time, self.draft.budget.time)
            && own > all
        {
            let at = Spanned { value: (), span: draft.span.clone(), path: draft.path.clone() };
            self.reader
                .warn_at(&at, "the step's time is longer than the whole run's")
                .suggest("the run's time ends it first");
        }
        if let (Some(tool), Some(step)) = (&draft.tool_timeout, draft.budget.time)
            && tool.value > step
        {
            self.reader
                .warn_at(tool, "the time of a tool call is longer than the whole step's")
                .suggest("the step's time ends it first");
        }
    }

    /// Notes children that run at the same time and write the same file.
    pub(super) fn shared_outputs(&mut self, logical: &DraftLogical, steps: &[Step]) {
        let mut seen: HashMap<PathBuf, &str> = HashMap::new();
        for (draft, step) in members(logical).iter().zip(steps) {
            let Some(output) = step.output.as_ref().map(|o| step.cwd.join(o)) else { continue };
            if let Some(other) = seen.get(&output) {
                let at = draft.output.clone().map_or_else(
                    || Spanned { value: (), span: draft.span.clone(), path: draft.path.clone() },
                    |o| o.map(|_| ()),
                );
                let message = format!("the steps `{other}` and `{}` run at once and write the same file", step.key);
                self.reader.error_at(&at, message).suggest("give each an `output` of its own");
            }
            seen.entry(output).or_insert(&step.key);
        }
    }
}
