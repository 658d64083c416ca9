//! JSON as it is printed, in one place: what is unknown is absent, and no character can drive a terminal.

use serde::Serialize;
use serde_json::Value;

/// One document on one line, without a line feed.
#[must_use]
pub fn line(value: &impl Serialize) -> String {
    // Nothing that is printed has keys that are no texts, which is all that could fail.
    escape(serde_json::to_string(value).unwrap_or_default())
}

/// One document over several lines, without a line feed at the end.
#[must_use]
pub fn document(value: &Value) -> String {
    escape(format!("{value:#}"))
}

/// Unknown is absent at every depth, never a made-up value.
#[must_use]
pub fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k, without_nulls(v))).collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// The same JSON without the characters that could drive a terminal or turn its text around; serializing escapes
/// those below a space only.
fn escape(json: String) -> String {
    // Most of what is printed is plain.
    if json.is_ascii() && memchr::memchr(0x7f, json.as_bytes()).is_none() {
        return json;
    }
    let drives = |c: char| {
        matches!(c, '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        // All of them lie in the basic plane, so that one escape is enough.
        if drives(c) { text.push_str(&format!("\\u{:04x}", u32::from(c))) } else { text.push(c) }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_keeps_its_meaning_and_drives_nothing() {
        let text = "a\u{1b}[31m\u{9b}31m\u{7f}\u{202e}\u{200b}é日";
        for json in [line(&json!({ "text": text })), document(&json!({ "text": text }))] {
            let shown = json.replace('\n', "");
            assert!(shown.chars().all(|c| !c.is_control() && !matches!(c, '\u{202e}' | '\u{200b}')), "{json}");
            assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), json!({ "text": text }));
            assert!(json.contains("é日"), "{json}");
        }
    }

    #[test]
    fn what_is_unknown_is_absent_at_every_depth() {
        let value = json!({ "a": null, "b": [{ "c": null, "d": 0 }], "e": { "f": null } });
        assert_eq!(without_nulls(value), json!({ "b": [{ "d": 0 }], "e": {} }));
    }
}
