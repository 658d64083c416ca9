//! Filling in the placeholders of a task: `{task}`, `{previous}` and `{outputs.ID}` (runner-behaviour 2.1).
//!
//! Everything is put in literally and once: a value that looks like a placeholder stays what it is. Braces that are no
//! placeholder, and outputs that nobody knows, stay untouched.

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

/// One placeholder of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholder<'a> {
    /// `{task}`
    Task,
    /// `{previous}`
    Previous,
    /// `{outputs.ID}`
    Output(&'a str),
}

/// The placeholders of `template` with the bytes that they take, in order.
pub fn placeholders(template: &str) -> impl Iterator<Item = (Range<usize>, Placeholder<'_>)> {
    template.match_indices('{').filter_map(|(start, _)| {
        let rest = template.get(start + 1..)?;
        let end = rest.find('}')?;
        let word = rest.get(..end)?;
        let found = match word {
            "task" => Placeholder::Task,
            "previous" => Placeholder::Previous,
            _ => Placeholder::Output(word.strip_prefix("outputs.").filter(|id| is_id(id))?),
        };
        Some((start..start + end + 2, found))
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
pub fn fill(template: &str, values: &Values<'_>) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut done = 0;
    for (range, placeholder) in placeholders(template) {
        let value = match placeholder {
            Placeholder::Task => values.task,
            Placeholder::Previous => Some(values.previous),
            Placeholder::Output(id) => (values.output)(id),
        };
        if let Some(value) = value {
            filled.push_str(template.get(done..range.start).unwrap_or_default());
            filled.push_str(value);
            done = range.end;
        }
    }
    filled.push_str(template.get(done..).unwrap_or_default());
    filled
}

/// The arguments of a plain command with its prompt in place of `{task}`, and whether the prompt stands in them; when
/// it does not, it belongs on standard input. A step without a task has no prompt, and its arguments are literal.
#[must_use]
pub fn fill_args(args: &[String], prompt: Option<&str>) -> (Vec<String>, bool) {
    let Some(prompt) = prompt else { return (args.to_vec(), false) };
    let in_args = args.iter().any(|arg| arg.contains("{task}"));
    (args.iter().map(|arg| arg.replace("{task}", prompt)).collect(), in_args)
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
        fill(template, &Values { task: Some("T"), previous: "{outputs.scout}", output: &output })
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
            ("{{task}}", "{T}"),
            ("{\"json\": {\"task\": 1}} {task", "{\"json\": {\"task\": 1}} {task"),
            ("é{task}é", "éTé"),
        ] {
            assert_eq!(filled(template), expected, "{template}");
        }
    }

    #[test]
    fn an_unknown_task_stays() {
        assert_eq!(fill("{task}", &Values { task: None, previous: "", output: &|_| None }), "{task}");
    }

    #[test]
    fn arguments_take_the_prompt_only_when_there_is_one() {
        let args = ["-p".to_owned(), "x={task}".to_owned()];
        assert_eq!(fill_args(&args, None), (args.to_vec(), false));
        assert_eq!(fill_args(&args, Some("{task}!")), (vec!["-p".to_owned(), "x={task}!".to_owned()], true));
        assert_eq!(fill_args(&args[..1], Some("p")), (vec!["-p".to_owned()], false));
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
