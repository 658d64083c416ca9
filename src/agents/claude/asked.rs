//! What Claude Code asks: whether it may use a tool, and, with a tool of its own for that, what a person wants
//! (agent-streams 1). And what it is answered.

use serde_json::{Value, json};

use crate::agents::asked::{REFUSED, Together, numbered, request_of};
use crate::agents::look::Look;
use crate::agents::written::{COMES, GOES, written};
use crate::run::{Answer, Asking, Choice, QuestionKind};
use crate::text::prefix;

/// The tool that asks a person.
const PERSON: &str = "AskUserQuestion";
/// What it is told when nobody answers a question of its own.
const SILENCE: &str = "Nobody answers this. Decide yourself, or end with what you would need to know.";
/// What stands for the answer to one of several that nobody answers, beside the answers to the others.
const UNANSWERED: &str = "(nobody answered this; decide yourself)";

/// The questions of a request; one for most.
pub(super) fn questions(id: &str, request: Look<'_>) -> Vec<Asking> {
    let tool = request.word("tool_name");
    let input = request.get("input").cloned().unwrap_or_else(|| json!({}));
    let base = Asking {
        id: id.to_owned(),
        tool: Some(tool.to_owned()),
        call: request.str("tool_use_id").map(str::to_owned),
        repeat: Some(input.to_string()),
        ..Asking::default()
    };
    let own = request.object("input").list("questions");
    if tool == PERSON && !own.is_empty() {
        let one = |(n, question): (usize, &Value)| {
            let look = Look::new(question);
            let option = |option: &Value| {
                let look = Look::new(option);
                let (id, about) = (look.str("label")?, look.word("description"));
                let label = if about.is_empty() { String::new() } else { format!("{id}: {about}") };
                Some(Choice { id: id.to_owned(), label, kind: String::new() })
            };
            Asking {
                id: numbered(id, n, own.len()),
                kind: QuestionKind::Choice,
                text: look.word("question").to_owned(),
                choices: look.list("options").iter().filter_map(option).collect(),
                many: look.is("multiSelect"),
                free: true,
                ..base.clone()
            }
            .bounded()
        };
        return own.iter().enumerate().map(one).collect();
    }
    let args = subject(&input);
    let text = format!("May it use {tool}? {args}").trim_end().to_owned();
    vec![Asking { text, args, detail: would(&input), ..base }.bounded()]
}

/// What the tool is to do: the command, the file, else all of it.
fn subject(input: &Value) -> String {
    let look = Look::new(input);
    let known = ["command", "file_path", "notebook_path", "path", "url", "query", "pattern"];
    match known.iter().find_map(|key| look.str(key)) {
        Some(text) => text.to_owned(),
        None if input.as_object().is_some_and(serde_json::Map::is_empty) => String::new(),
        None => prefix(&input.to_string(), crate::run::AgentEvent::PREVIEW).to_owned(),
    }
}

/// What a tool that writes would write, by the names that its tools give the old and the new text.
fn would(input: &Value) -> String {
    let look = Look::new(input);
    let edits = look.list("edits");
    let own = [input];
    let each: Vec<Look<'_>> =
        if edits.is_empty() { own.map(Look::new).to_vec() } else { edits.iter().map(Look::new).collect() };
    let parts = each.iter().flat_map(|edit| {
        let new = ["content", "new_string", "new_source"].into_iter().find_map(|key| edit.str(key));
        [(GOES, edit.str("old_string")), (COMES, new)]
    });
    written(parts.filter_map(|(mark, text)| Some((mark, text?))))
}

/// The answers to questions of one request, until all are there.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers(Together);

/// What is to be said now.
pub(super) enum Next {
    /// The answer to the whole request, by its id; what else it asked is answered by it too.
    Say(String, Value),
    /// Nothing: the answer to another question is missing.
    Wait,
}

impl Answers {
    /// Takes the answer to a question.
    pub(super) fn take(&mut self, asking: &Asking, answer: &Answer) -> Next {
        let request = request_of(&asking.id).to_owned();
        let mut input: Value =
            asking.repeat.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let own = asking.kind == QuestionKind::Choice;
        let said = match answer {
            Answer::Choose(_) | Answer::Several(..) | Answer::Text(_) if own => answer.words(),
            Answer::Dismiss if own => None,
            Answer::Allow => return Next::Say(request, json!({"behavior": "allow", "updatedInput": input})),
            Answer::Deny(why) => {
                self.0.forget(asking);
                let why = why.as_deref().unwrap_or(REFUSED);
                return Next::Say(request, json!({"behavior": "deny", "message": why}));
            }
            Answer::Choose(_) | Answer::Several(..) | Answer::Text(_) | Answer::Dismiss => {
                self.0.forget(asking);
                return Next::Say(request, json!({"behavior": "deny", "message": REFUSED}));
            }
        };
        // By the number of each: two may ask the same, and a long text is cut where a person reads it.
        let asked = Look::new(&input).list("questions");
        let of = asked.len();
        let Some(all) = self.0.take(asking, &asking.id, said, of) else { return Next::Wait };
        if all.values().all(Option::is_none) {
            return Next::Say(request, json!({"behavior": "deny", "message": SILENCE}));
        }
        let answers = asked.iter().enumerate().map(|(n, question)| {
            let said = all.get(&numbered(&request, n, of)).and_then(Option::as_deref);
            (Look::new(question).word("question").to_owned(), json!(said.unwrap_or(UNANSWERED)))
        });
        let answers: serde_json::Map<String, Value> = answers.collect();
        if let Some(fields) = input.as_object_mut() {
            fields.insert("answers".to_owned(), Value::Object(answers));
        }
        Next::Say(request, json!({"behavior": "allow", "updatedInput": input}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(request: Value) -> Vec<Asking> {
        questions("r", Look::new(&request))
    }

    fn said(next: Next) -> (String, Value) {
        match next {
            Next::Say(id, value) => (id, value),
            Next::Wait => panic!("it waits"),
        }
    }

    #[test]
    fn a_permission_names_what_the_tool_is_to_do() {
        for (input, args) in [
            (json!({"command": "make", "description": "Build"}), "make"),
            (json!({"file_path": "/x", "content": "secret"}), "/x"),
            (json!({"a": 1}), r#"{"a":1}"#),
            (json!({}), ""),
        ] {
            let asked = read(json!({"tool_name": "Bash", "input": input, "tool_use_id": "t"}));
            let [asking] = &asked[..] else { panic!("{asked:?}") };
            assert_eq!((asking.args.as_str(), asking.call.as_deref()), (args, Some("t")));
            assert_eq!(asking.text, format!("May it use Bash? {args}").trim_end());
            let allowed = said(Answers::default().take(asking, &Answer::Allow));
            assert_eq!(allowed, ("r".to_owned(), json!({"behavior": "allow", "updatedInput": input})));
            let denied = said(Answers::default().take(asking, &Answer::Deny(Some("not here".into()))));
            assert_eq!(denied.1, json!({"behavior": "deny", "message": "not here"}));
            for answer in [Answer::Deny(None), Answer::Dismiss] {
                assert_eq!(said(Answers::default().take(asking, &answer)).1["message"], REFUSED);
            }
        }
    }

    #[test]
    fn a_permission_to_write_tells_what_would_be_written() {
        for (tool, input, detail) in [
            ("Write", json!({"file_path": "/x", "content": "a\nb\n"}), "+ a\n+ b"),
            ("Edit", json!({"file_path": "/x", "old_string": "a", "new_string": "b\nc"}), "- a\n+ b\n+ c"),
            ("Edit", json!({"file_path": "/x", "old_string": "a", "new_string": ""}), "- a"),
            (
                "MultiEdit",
                json!({"edits": [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}]}),
                "- a\n+ b\n- c\n+ d",
            ),
            ("NotebookEdit", json!({"notebook_path": "/n", "new_source": "1 + 1"}), "+ 1 + 1"),
            ("Bash", json!({"command": "make"}), ""),
            ("Write", json!({"file_path": 7, "content": []}), ""),
        ] {
            assert_eq!(read(json!({"tool_name": tool, "input": input}))[0].detail, detail, "{input}");
        }
    }

    #[test]
    fn several_choices_are_one_text_with_commas() {
        let input = json!({"questions": [{"question": "Which?", "multiSelect": true,
            "options": [{"label": "Red"}, {"label": "Blue"}, {"label": "Green"}]}]});
        let asked = read(json!({"tool_name": "AskUserQuestion", "input": input}));
        assert!(asked[0].many && asked[0].free);
        let ids = || vec!["Red".to_owned(), "Green".to_owned()];
        for (answer, text) in [
            (Answer::Several(ids(), None), "Red, Green"),
            (Answer::Several(ids(), Some("and dark".into())), "Red, Green, and dark"),
            (Answer::Choose("Blue".into()), "Blue"),
        ] {
            let mut expected = input.clone();
            expected["answers"] = json!({"Which?": text});
            let value = said(Answers::default().take(&asked[0], &answer)).1;
            assert_eq!(value, json!({"behavior": "allow", "updatedInput": expected}));
        }
        let may = read(json!({"tool_name": "Bash", "input": {}}));
        let value = said(Answers::default().take(&may[0], &Answer::Several(ids(), None))).1;
        assert_eq!(value["behavior"], "deny", "a permission is no choice of several");
    }

    #[test]
    fn its_own_questions_are_answered_together() {
        let input = json!({"questions": [
            {"question": "Which colour?", "options": [{"label": "Red", "description": "warm"}, {"label": "Blue"}]},
            {"question": "How many?", "options": []},
        ]});
        let asked = read(json!({"tool_name": "AskUserQuestion", "input": input}));
        assert_eq!(asked.iter().map(|a| a.id.as_str()).collect::<Vec<_>>(), ["r#0", "r#1"]);
        assert_eq!(asked[0].choices.iter().map(Choice::shown).collect::<Vec<_>>(), ["Red: warm", "Blue"]);
        let mut answers = Answers::default();
        assert!(matches!(answers.take(&asked[1], &Answer::Text("three".into())), Next::Wait));
        let (id, value) = said(answers.take(&asked[0], &Answer::Choose("Red".into())));
        let mut expected = input.clone();
        expected["answers"] = json!({"Which colour?": "Red", "How many?": "three"});
        assert_eq!((id.as_str(), value), ("r", json!({"behavior": "allow", "updatedInput": expected})));
        // What was answered goes on its way although nobody answers the other, whichever of them comes first.
        for order in [[0, 1], [1, 0]] {
            let said_to = |n: usize| if n == 0 { Answer::Choose("Red".into()) } else { Answer::Dismiss };
            assert!(matches!(answers.take(&asked[order[0]], &said_to(order[0])), Next::Wait));
            let value = said(answers.take(&asked[order[1]], &said_to(order[1]))).1;
            expected["answers"] = json!({"Which colour?": "Red", "How many?": UNANSWERED});
            assert_eq!(value, json!({"behavior": "allow", "updatedInput": expected}));
        }
        assert!(matches!(answers.take(&asked[0], &Answer::Dismiss), Next::Wait));
        assert_eq!(said(answers.take(&asked[1], &Answer::Dismiss)).1, json!({"behavior": "deny", "message": SILENCE}));
        assert!(matches!(answers.take(&asked[1], &Answer::Text("x".into())), Next::Wait), "it begins anew");
        let one = said(answers.take(&asked[0], &Answer::Deny(None))).1;
        assert_eq!(one, json!({"behavior": "deny", "message": REFUSED}), "a no is one to all");
        let one = json!({"questions": [{"question": "Sure?", "options": []}]});
        assert_eq!(read(json!({"tool_name": "AskUserQuestion", "input": one}))[0].id, "r");
    }
}
