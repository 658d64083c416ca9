//! Filling in the placeholders of a task: `{task}`, `{previous}` and `{outputs.ID}` (runner-behaviour 2.1).
//!
//! Everything is put in literally and once: a value that looks like a placeholder stays what it is. Braces that are no
//! placeholder, and outputs that nobody knows, stay untouched. In plans `{{task}}` stands for the text `{task}`.

use std::ops::Range;

/// What the placeholders stand for.
pub struct Values<'a> {
    /// The plan's task; `None` leaves `{task}` as it is.
    pub task: Option<&'a str>,
    /// The output of the step before, empty for the first one.
    pub previous: &'a str,
    /// The output of a finished step, by its id.
    pub output: &'a dyn Fn(&str) -> Option<&'a str>,
}

/// What a text with braces in it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filling {
    /// The text of a plan: placeholders are filled in, and one with doubled braces is the text itself.
    #[default]
    Template,
    /// The text of a runner config: placeholders are filled in (runner-behaviour 2.1).
    Given,
    /// What a person said: nothing is filled in.
    Literal,
}

/// One placeholder of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholder<'a> {
    /// `{task}`
    Task,
    /// `{previous}`
    Previous,
    /// `{outputs.ID}`
    Output(&'a str),
    /// `{{...}}` with one of the above inside; what it stands for: the same with single braces.
    Doubled(&'a str),
}

/// The placeholders of `template` with the bytes that they take, in order.
pub fn placeholders(template: &str, filling: Filling) -> impl Iterator<Item = (Range<usize>, Placeholder<'_>)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        if filling == Filling::Literal {
            return None;
        }
        loop {
            let start = from + template.get(from..)?.find('{')?;
            if filling == Filling::Template
                && let Some(inner) = single(template, start + 1)
                && template.get(start + 1 + inner.len()..).is_some_and(|rest| rest.starts_with('}'))
            {
                from = start + inner.len() + 2;
                return Some((start..from, Placeholder::Doubled(inner)));
            }
            let Some(text) = single(template, start) else {
                from = start + 1;
                continue;
            };
            from = start + text.len();
            return Some((start..from, meaning(text)?));
        }
    })
}

/// The placeholder that begins at `start`, with its braces.
fn single(template: &str, start: usize) -> Option<&str> {
    let rest = template.get(start..)?.strip_prefix('{')?;
    let text = template.get(start..start + rest.find('}')? + 2)?;
    meaning(text).map(|_| text)
}

fn meaning(text: &str) -> Option<Placeholder<'_>> {
    Some(match text.strip_prefix('{')?.strip_suffix('}')? {
        "task" => Placeholder::Task,
        "previous" => Placeholder::Previous,
        word => Placeholder::Output(word.strip_prefix("outputs.").filter(|id| is_id(id))?),
    })
}

/// Whether a text can be the id of a step: letters, digits, `_`, `-` and `.`, not beginning with `-` or `.`.
#[must_use]
pub fn is_id(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// Fills in a task.
#[must_use]
pub fn fill(template: &str, filling: Filling, values: &Values<'_>) -> String {
    put(template, filling, |placeholder| match placeholder {
        Placeholder::Task => values.task,
        Placeholder::Previous => Some(values.previous),
        Placeholder::Output(id) => (values.output)(id),
        Placeholder::Doubled(text) => Some(text),
    })
}

/// A task as far as it is known before the run: with the plan's own task in it.
#[must_use]
pub fn fill_task(template: &str, filling: Filling, task: Option<&str>) -> String {
    put(template, filling, |placeholder| match placeholder {
        Placeholder::Task => task,
        Placeholder::Doubled(text) => Some(text),
        Placeholder::Previous | Placeholder::Output(_) => None,
    })
}

fn put<'a>(template: &'a str, filling: Filling, value: impl Fn(Placeholder<'a>) -> Option<&'a str>) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut done = 0;
    for (range, placeholder) in placeholders(template, filling) {
        if let Some(value) = value(placeholder) {
            filled.push_str(template.get(done..range.start).unwrap_or_default());
            filled.push_str(value);
            done = range.end;
        }
    }
    filled.push_str(template.get(done..).unwrap_or_default());
    filled
}

/// Whether the prompt of a plain command stands in this argument.
#[must_use]
pub fn takes_prompt(arg: &str, filling: Filling) -> bool {
    placeholders(arg, filling).any(|(_, found)| found == Placeholder::Task)
}

/// A placeholder in an argument of a plain command that is filled in in tasks alone.
#[must_use]
pub fn stays(arg: &str, filling: Filling) -> Option<&str> {
    let in_tasks = |found: &Placeholder<'_>| matches!(found, Placeholder::Previous | Placeholder::Output(_));
    let (range, _) = placeholders(arg, filling).find(|(_, found)| in_tasks(found))?;
    arg.get(range)
}

/// The arguments of a plain command with its prompt in place of `{task}`, and whether the prompt stands in them; when
/// it does not, it belongs on standard input. A step without a task has no prompt, and its arguments are literal.
#[must_use]
pub fn fill_args(args: &[String], filling: Filling, prompt: Option<&str>) -> (Vec<String>, bool) {
    let Some(prompt) = prompt else { return (args.to_vec(), false) };
    let in_args = args.iter().any(|arg| takes_prompt(arg, filling));
    let fill = |arg: &String| {
        put(arg, filling, |placeholder| match placeholder {
            Placeholder::Task => Some(prompt),
            Placeholder::Doubled(text) if text == "{task}" => Some(text),
            _ => None,
        })
    };
    (args.iter().map(fill).collect(), in_args)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filled(template: &str) -> String {
        let output = |id: &str| match id {
            "scout" => Some("FOUND"),
            "sly" => Some("{previous}{task}"),
            _ => None,
        };
        fill(template, Filling::Template, &Values { task: Some("T"), previous: "{outputs.scout}", output: &output })
    }

    #[test]
    fn placeholders_are_filled_once_and_literally() {
        for (template, expected) in [
            ("", ""),
            ("nothing here", "nothing here"),
            ("{task}", "T"),
            ("a {previous} b {previous}", "a {outputs.scout} b {outputs.scout}"),
            ("{outputs.scout}{outputs.scout}", "FOUNDFOUND"),
            ("{outputs.sly}", "{previous}{task}"),
            ("{outputs.nobody}", "{outputs.nobody}"),
            ("{outputs.}", "{outputs.}"),
            ("{outputs.a b}", "{outputs.a b}"),
            ("{ task }", "{ task }"),
            ("{{task}} {{previous}} {{outputs.scout}}", "{task} {previous} {outputs.scout}"),
            ("{{{task}}}", "{{task}}"),
            ("{{task} {task}}", "{T T}"),
            ("{{other}} {{outputs.nobody}}", "{{other}} {outputs.nobody}"),
            ("{\"json\": {\"task\": 1}} {task", "{\"json\": {\"task\": 1}} {task"),
            ("é{task}é", "éTé"),
        ] {
            assert_eq!(filled(template), expected, "{template}");
        }
    }

    #[test]
    fn an_unknown_task_stays() {
        let values = Values { task: None, previous: "", output: &|_| None };
        assert_eq!(fill("{task}", Filling::Template, &values), "{task}");
    }

    #[test]
    fn only_plans_know_doubled_braces_and_what_a_person_said_stays() {
        let values = Values { task: Some("T"), previous: "P", output: &|_| None };
        let text = "{{task}} {previous}";
        for (filling, want) in [(Filling::Template, "{task} P"), (Filling::Given, "{T} P"), (Filling::Literal, text)] {
            assert_eq!(fill(text, filling, &values), want);
        }
        assert_eq!(fill_task(text, Filling::Template, Some("T")), "{task} {previous}");
        assert_eq!(fill_task("{task}", Filling::Template, Some("T")), "T");
    }

    #[test]
    fn arguments_take_the_prompt_only_when_there_is_one() {
        let args = ["-p".to_owned(), "x={task}".to_owned()];
        let fill_args = |args: &[String], prompt| fill_args(args, Filling::Template, prompt);
        assert_eq!(fill_args(&args, None), (args.to_vec(), false));
        assert_eq!(fill_args(&args, Some("{task}!")), (vec!["-p".to_owned(), "x={task}!".to_owned()], true));
        assert_eq!(fill_args(&args[..1], Some("p")), (vec!["-p".to_owned()], false));
        let doubled = ["{{task}} {{previous}} {previous}".to_owned()];
        assert_eq!(fill_args(&doubled, Some("p")), (vec!["{task} {{previous}} {previous}".to_owned()], false));
    }

    proptest! {
        #[test]
        fn text_without_braces_is_kept(text in "[^{]*") {
            prop_assert_eq!(filled(&text), text);
        }

        #[test]
        fn any_template_is_survived(text in r"(\{|\}|task|previous|outputs\.|scout|é| )*") {
            let _ = filled(&text);
        }
    }
}
