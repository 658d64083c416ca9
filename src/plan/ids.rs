//! The ids of steps, and what their tasks refer to by them.

use std::collections::HashMap;
use std::collections::HashSet;

use super::draft::{DraftLogical, DraftPlan, DraftStep};
use super::nearest::nearest;
use super::reader::{Reader, Spanned};
use super::template::{Filling, Placeholder, placeholders};

/// How the text itself is written.
const DOUBLED: &str = "; the text itself is written with doubled braces";

/// An id for every step in flat order: its own, else its agent's name made unique.
pub(super) fn assign(reader: &mut Reader<'_>, draft: &DraftPlan, agent: &dyn Fn(&DraftStep) -> String) -> Vec<String> {
    let steps: Vec<&DraftStep> = draft.steps.iter().flat_map(members).collect();
    let mut taken: HashMap<String, &Spanned<String>> = HashMap::new();
    for id in steps.iter().filter_map(|s| s.id.as_ref()) {
        if let Some(first) = taken.get(&id.value) {
            let line =
                reader.source().position(first.span.start).map_or_else(String::new, |p| format!(" on line {}", p.line));
            reader
                .error_at(id, format!("the id `{}` is taken already{line}", id.value))
                .suggest("give each step an id of its own");
        } else {
            taken.insert(id.value.clone(), id);
        }
    }
    let mut names = Names { used: taken.into_keys().collect(), ..Names::default() };
    let ids = steps.into_iter().map(|step| match &step.id {
        Some(id) => id.value.clone(),
        None => names.unique(&slug(&agent(step))),
    });
    ids.collect()
}

/// Makes names unique by a number behind them.
#[derive(Debug, Default)]
struct Names {
    used: HashSet<String>,
    /// The number that the next one of a name gets: all before it are used.
    next: HashMap<String, usize>,
    /// How many names were tried in all.
    tried: usize,
}

impl Names {
    fn unique(&mut self, base: &str) -> String {
        loop {
            let n = self.next.entry(base.to_owned()).or_insert(1);
            let id = if *n == 1 { base.to_owned() } else { format!("{base}-{n}") };
            *n += 1;
            self.tried += 1;
            if self.used.insert(id.clone()) {
                return id;
            }
        }
    }
}

/// The children of one position in the order of steps.
pub(super) fn members(logical: &DraftLogical) -> &[DraftStep] {
    match logical {
        DraftLogical::Single(step) => std::slice::from_ref(&**step),
        DraftLogical::Group { steps, .. } => steps,
    }
}

/// A name as an id.
fn slug(name: &str) -> String {
    let id: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '-' }).collect();
    let id = id.trim_matches(['-', '.']);
    match id {
        "" => "step".to_owned(),
        number if number.bytes().all(|b| b.is_ascii_digit()) => format!("s{number}"),
        id => id.to_owned(),
    }
}

/// Notes placeholders that nothing can be put in for.
pub(super) fn check_tasks(reader: &mut Reader<'_>, draft: &DraftPlan, ids: &[String]) {
    let mut earlier = Earlier::default();
    let mut flat = ids.iter();
    for (logical, position) in draft.steps.iter().zip(0..) {
        let steps = members(logical);
        for task in steps.iter().filter_map(|s| s.task.as_ref()) {
            check_task(reader, task, &earlier, ids, draft, position == 0);
        }
        for id in flat.by_ref().take(steps.len()) {
            earlier.known.insert(id);
            earlier.in_order.push(id);
        }
    }
}

/// The steps that run before one.
#[derive(Default)]
struct Earlier<'a> {
    in_order: Vec<&'a str>,
    known: HashSet<&'a str>,
}

fn check_task(
    reader: &mut Reader<'_>,
    task: &Spanned<String>,
    earlier: &Earlier<'_>,
    all: &[String],
    draft: &DraftPlan,
    first: bool,
) {
    // The launcher of a runner config has filled in the task; what looks like it is text (runner-behaviour 2.1).
    let (has_task, foreign) = (draft.task.is_some(), draft.fixed.is_some());
    let filling = if foreign { Filling::Given } else { Filling::Template };
    for (range, placeholder) in placeholders(&task.value, filling) {
        let at = part(reader, task, task.value.get(range).unwrap_or_default());
        match placeholder {
            Placeholder::Task if !has_task && !foreign => reader
                .error_at(&at, "`{task}` stands for the plan's task, and the plan has none")
                .suggest(format!("set `task` at the top of the plan or give one on the command line{DOUBLED}")),
            Placeholder::Previous if first && !foreign => reader
                .warn_at(&at, "`{previous}` is empty in the first step")
                .suggest("write what the step needs to know"),
            Placeholder::Output(id) if !earlier.known.contains(id) => {
                let earlier = &earlier.in_order;
                let suggestion = if all.iter().any(|known| known == id) {
                    format!("the step `{id}` does not run before this one; only earlier steps have an output")
                } else if let Some(near) = nearest(id, earlier.iter().copied()) {
                    format!("did you mean `{{outputs.{near}}}`?")
                } else if earlier.is_empty() {
                    "no step runs before this one".to_owned()
                } else {
                    format!("earlier steps are {}", super::nearest::one_of(earlier.iter().copied()))
                };
                reader
                    .error_at(&at, format!("`{{outputs.{id}}}` names no earlier step"))
                    .suggest(format!("{suggestion}{DOUBLED}"));
            }
            Placeholder::Task | Placeholder::Previous | Placeholder::Output(_) | Placeholder::Doubled(_) => {}
        }
    }
    for word in almost_placeholders(&task.value, filling).filter(|_| !foreign) {
        let inner = word.trim_matches(['{', '}', ' ']);
        let meant = if inner.starts_with("output") { Some("{outputs.ID}".to_owned()) } else { None };
        let meant = meant.or_else(|| nearest(inner, ["task", "previous"]).map(|near| format!("{{{near}}}")));
        if let Some(meant) = meant {
            let at = part(reader, task, word);
            reader
                .warn_at(&at, format!("`{word}` is no placeholder and stays as it is"))
                .suggest(format!("did you mean `{meant}`?"));
        }
    }
}

/// Words in braces that are no placeholders.
fn almost_placeholders(template: &str, filling: Filling) -> impl Iterator<Item = &str> {
    let known: HashSet<usize> = placeholders(template, filling).flat_map(|(range, _)| range).collect();
    template.match_indices('{').filter_map(move |(start, _)| {
        let rest = template.get(start..)?;
        let word = rest.get(..=rest.find('}')?)?;
        let inner = word.get(1..word.len() - 1)?;
        let plain =
            !inner.is_empty() && inner.len() < 64 && inner.chars().all(|c| c.is_alphanumeric() || " _.-".contains(c));
        (plain && !known.contains(&start)).then_some(word)
    })
}

/// A part of a written text; its place is found again in the source when it stands there as it is.
fn part(reader: &Reader<'_>, text: &Spanned<String>, part: &str) -> Spanned<()> {
    let source = reader.source().text().get(text.span.clone()).unwrap_or_default();
    let span = match source.find(part) {
        Some(at) => text.span.start + at..text.span.start + at + part.len(),
        None => text.span.clone(),
    };
    Spanned { value: (), span, path: text.path.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_unique_without_trying_all_that_are_used() {
        let mut names = Names { used: ["worker-3".to_owned(), "b".to_owned()].into(), ..Names::default() };
        let made: Vec<String> = ["worker", "worker", "b", "worker", "worker-3"].map(|n| names.unique(n)).into();
        assert_eq!(made, ["worker", "worker-2", "b-2", "worker-4", "worker-3-2"]);
        let mut names = Names::default();
        let made: HashSet<String> = (0..20_000).map(|n| names.unique(["worker", "scout"][n % 2])).collect();
        assert_eq!((made.len(), names.tried), (20_000, 20_000));
    }
}
