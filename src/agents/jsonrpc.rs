//! One line of JSON-RPC 2.0, with or without the member that names its version, read leniently.

use serde_json::{Map, Value};

/// One message of the agent.
#[derive(Debug, PartialEq)]
pub(in crate::agents) enum Message {
    /// It answers a request of ours.
    Answer {
        /// The id that it repeats, as it stands there.
        id: Value,
        /// What came of it.
        result: Result<Value, Failure>,
    },
    /// It asks for something and waits for the answer.
    Request {
        /// Its id, as it is to be repeated.
        id: Value,
        /// What it asks for.
        method: String,
        /// The particulars.
        params: Value,
    },
    /// It says something.
    Notice {
        /// What kind of thing.
        method: String,
        /// The particulars.
        params: Value,
    },
}

/// A request of ours went wrong.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::agents) struct Failure {
    code: i64,
    message: String,
    details: Option<String>,
}

impl Failure {
    /// What went wrong, ready to be shown.
    pub(in crate::agents) fn text(&self) -> String {
        let mut text = match self.message.trim() {
            "" => format!("error {}", self.code),
            // Gemini's code is the provider's HTTP status.
            message if (400..600).contains(&self.code) && !message.contains(&self.code.to_string()) => {
                format!("{}: {message}", self.code)
            }
            message => message.to_owned(),
        };
        if let Some(details) = self.details.as_deref().map(str::trim)
            && !details.is_empty()
            && !text.contains(details)
        {
            text.push_str(": ");
            text.push_str(details);
        }
        text
    }
}

/// Reads a line; `None` when it is no message of the protocol.
pub(in crate::agents) fn parse(line: &[u8]) -> Option<Message> {
    let mut map: Map<String, Value> = serde_json::from_slice(line).ok()?;
    let params = map.remove("params").unwrap_or_default();
    match (map.remove("method"), map.remove("id")) {
        (Some(Value::String(method)), Some(id)) if !id.is_null() => Some(Message::Request { id, method, params }),
        (Some(Value::String(method)), _) => Some(Message::Notice { method, params }),
        (_, id) => {
            let result = match map.remove("error") {
                Some(error) if !error.is_null() => Err(failure(&error)),
                // An answer without content is one all the same.
                _ if map.contains_key("result") => Ok(map.remove("result").unwrap_or_default()),
                _ => return None,
            };
            Some(Message::Answer { id: id.unwrap_or_default(), result })
        }
    }
}

/// A number that was given as an id, which some libraries repeat as text.
pub(in crate::agents) fn number(id: &Value) -> Option<u64> {
    id.as_u64().or_else(|| id.as_str()?.parse().ok())
}

fn failure(error: &Value) -> Failure {
    let details = error.get("data").and_then(|data| match data {
        Value::String(text) => Some(text.as_str()),
        _ => text(data, "details"),
    });
    Failure {
        code: error.get("code").and_then(Value::as_i64).unwrap_or(0),
        message: text(error, "message").unwrap_or_default().to_owned(),
        details: details.map(str::to_owned),
    }
}

/// A text in an object.
pub(in crate::agents) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// The value of the last of these keys, each in the value of the one before.
pub(in crate::agents) fn within<'a>(value: &'a Value, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().try_fold(value, |value, key| value.get(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(line: &str) -> Option<Message> {
        parse(line.as_bytes())
    }

    #[test]
    fn messages_are_told_apart() {
        let answer = |id, result| Some(Message::Answer { id, result: Ok(result) });
        assert_eq!((number(&json!(3)), number(&json!("3")), number(&json!("x"))), (Some(3), Some(3), None));
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":3,"result":{"a":1}}"#), answer(json!(3), json!({"a": 1})));
        assert_eq!(read(r#"{"id":"3","result":null,"error":null}"#), answer(json!("3"), Value::Null));
        assert_eq!(read(r#"{"id":"x","result":1}"#), answer(json!("x"), json!(1)));
        let request = Message::Request { id: json!(0), method: "m".into(), params: json!([1]) };
        assert_eq!(read(r#"{"id":0,"method":"m","params":[1],"more":{}}"#), Some(request));
        let notice = Message::Notice { method: "m".into(), params: Value::Null };
        assert_eq!(read(r#"{"method":"m","id":null}"#), Some(notice));
        for line in ["", "text", "[]", "{}", r#"{"id":1}"#, r#"{"method":1}"#, r#"{"type":"session"}"#] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn failures_say_what_was_wrong() {
        let table = [
            (r#"{"code":-32603,"message":"Internal error","data":{"details":"no key"}}"#, "Internal error: no key"),
            (r#"{"code":-32603,"message":"Internal error: no key","data":"no key"}"#, "Internal error: no key"),
            (r#"{"code":429,"message":"slow down"}"#, "429: slow down"),
            (r#"{"code":400,"message":"got 400"}"#, "got 400"),
            (r#"{"code":-1}"#, "error -1"),
            (r#""broken""#, "error 0"),
        ];
        for (error, expected) in table {
            let line = format!(r#"{{"id":1,"error":{error}}}"#);
            let Some(Message::Answer { result: Err(failure), .. }) = read(&line) else { panic!("{line}") };
            assert_eq!(failure.text(), expected);
        }
    }
}
