//! Questions in pi's vocabulary: those of its extensions as they come, and those of agents of other families, with what
//! pi has no word for beside it (agent-streams 11). Rare, so each line is read by itself.

use serde_json::{Value, json};

use super::record::without_lone_surrogates;
use crate::run::{AgentEvent, Asking, Choice, QuestionKind};

/// The question of an `extension_ui_request`; `None` for one that only shows something and expects no answer.
pub(super) fn read(line: &[u8]) -> Option<AgentEvent> {
    // A question that could not be read would never be answered, so what other records may lack is mended here.
    let line = String::from_utf8_lossy(line);
    let record: Value =
        serde_json::from_str(&line).ok().or_else(|| serde_json::from_str(&without_lone_surrogates(&line)?).ok())?;
    let text = |key: &str| record.get(key).and_then(Value::as_str);
    let kind = match text("method")? {
        "select" => QuestionKind::Choice,
        "confirm" => QuestionKind::Confirm,
        "input" | "editor" => QuestionKind::Text,
        "permission" => QuestionKind::Permission,
        _ => return None,
    };
    let parts = [text("title"), text("message")].map(|part| part.map(str::trim).unwrap_or_default());
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let choice = |value: &Value| {
        let word = |key: &str| value.get(key).and_then(Value::as_str);
        let own = |key: &str| word(key).unwrap_or_default().to_owned();
        let id = value.as_str().or_else(|| word("id"))?;
        Some(Choice { id: id.to_owned(), label: own("label"), kind: own("kind") })
    };
    let choices = record.get("options").and_then(Value::as_array).into_iter().flatten().filter_map(choice);
    let asking = Asking {
        id: text("id")?.to_owned(),
        kind,
        text: parts.join("\n"),
        tool: text("toolName").map(str::to_owned),
        args: text("detail").or_else(|| text("prefill")).unwrap_or_default().to_owned(),
        call: text("toolCallId").map(str::to_owned),
        detail: text("written").unwrap_or_default().to_owned(),
        choices: choices.collect(),
        many: record.get("multiple").and_then(Value::as_bool) == Some(true),
        free: record.get("free").and_then(Value::as_bool) == Some(true),
        within_ms: record.get("timeout").and_then(Value::as_u64),
        by_file: false,
        repeat: None,
    };
    Some(AgentEvent::Asked(Box::new(asking.bounded())))
}

/// The record that reads as this question.
pub(super) fn record(asking: &Asking) -> Value {
    let method = match asking.kind {
        QuestionKind::Choice => "select",
        QuestionKind::Confirm => "confirm",
        QuestionKind::Text => "input",
        QuestionKind::Permission => "permission",
    };
    let choice = |choice: &Choice| match (choice.label.as_str(), choice.kind.as_str()) {
        ("", "") => Value::from(choice.id.as_str()),
        (label, kind) => json!({"id": choice.id, "label": label, "kind": kind}),
    };
    let mut record = json!({"type": "extension_ui_request", "id": asking.id, "method": method, "title": asking.text});
    let options: Vec<Value> = asking.choices.iter().map(choice).collect();
    let fields = [
        ("toolName", asking.tool.as_deref().map(Value::from)),
        ("detail", Some(asking.args.as_str()).filter(|args| !args.is_empty()).map(Value::from)),
        ("toolCallId", asking.call.as_deref().map(Value::from)),
        ("options", (!options.is_empty()).then(|| options.into())),
        ("written", Some(asking.detail.as_str()).filter(|detail| !detail.is_empty()).map(Value::from)),
        ("multiple", asking.many.then_some(true.into())),
        ("free", asking.free.then_some(true.into())),
        ("timeout", asking.within_ms.map(Value::from)),
    ];
    if let Some(map) = record.as_object_mut() {
        map.extend(fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Option<Asking> {
        match read(line.as_bytes())? {
            AgentEvent::Asked(asking) => Some(*asking),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn dialogs_of_extensions_are_questions() {
        let select = asked(
            r#"{"type":"extension_ui_request","id":"u1","method":"select","title":"Which?","options":["Allow",7,"Block"],"timeout":10000}"#,
        )
        .unwrap();
        assert_eq!(
            (select.kind, select.text.as_str(), select.within_ms),
            (QuestionKind::Choice, "Which?", Some(10_000))
        );
        assert_eq!(select.choices.iter().map(Choice::shown).collect::<Vec<_>>(), ["Allow", "Block"]);
        let confirm = asked(r#"{"id":"u2","method":"confirm","title":"Clear?","message":"All is lost."}"#).unwrap();
        assert_eq!((confirm.kind, confirm.text.as_str()), (QuestionKind::Confirm, "Clear?\nAll is lost."));
        let cut = asked(r#"{"id":"u","method":"input","title":"half \ud83d"}"#).unwrap();
        assert_eq!(cut.text, "half \u{fffd}");
        for method in ["input", "editor"] {
            let line = format!(r#"{{"id":"u","method":"{method}","title":"Say","prefill":"x"}}"#);
            let text = asked(&line).unwrap();
            assert_eq!((text.kind, text.args.as_str(), text.takes_text()), (QuestionKind::Text, "x", true));
        }
        for line in [
            r#"{"id":"u","method":"notify","message":"hi"}"#,
            r#"{"method":"input","title":"no id"}"#,
            r#"{"id":5,"method":"input"}"#,
            r#"{"id":"u","method":"setStatus"}"#,
            r#"{"id":"u"}"#,
            "[",
        ] {
            assert_eq!(asked(line), None, "{line}");
        }
    }

    #[test]
    fn what_is_recorded_reads_the_same() {
        let bare = Asking { id: "1".into(), text: "May it?".into(), ..Asking::default() };
        let choice =
            |id: &str, label: &str, kind: &str| Choice { id: id.into(), label: label.into(), kind: kind.into() };
        let full = Asking {
            kind: QuestionKind::Choice,
            tool: Some("Bash".into()),
            args: "rm \u{1b}[31m x".into(),
            call: Some("c".into()),
            choices: vec![choice("a", "", ""), choice("b", "B", "allow_once")],
            detail: "- a\n+ b".into(),
            many: true,
            free: true,
            within_ms: Some(5),
            ..bare.clone()
        };
        let confirm = Asking { kind: QuestionKind::Confirm, ..bare.clone() };
        let words = Asking { kind: QuestionKind::Text, ..bare.clone() };
        for asking in [bare, full, confirm, words] {
            assert_eq!(asked(&record(&asking).to_string()), Some(asking));
        }
    }
}
