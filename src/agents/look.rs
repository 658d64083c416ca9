//! A JSON object of an agent's output whose fields may be missing or of any type (law 10).

use serde_json::{Map, Value};

use crate::text::prefix;

/// A view of an object; of what is none, nothing is found.
#[derive(Clone, Copy)]
pub(in crate::agents) struct Look<'a>(Option<&'a Map<String, Value>>);

impl<'a> Look<'a> {
    pub(in crate::agents) fn new(value: &'a Value) -> Self {
        Self(value.as_object())
    }

    pub(in crate::agents) fn get(self, key: &str) -> Option<&'a Value> {
        self.0?.get(key).filter(|value| !value.is_null())
    }

    pub(in crate::agents) fn object(self, key: &str) -> Self {
        Self(self.get(key).and_then(Value::as_object))
    }

    pub(in crate::agents) fn str(self, key: &str) -> Option<&'a str> {
        self.get(key)?.as_str()
    }

    pub(in crate::agents) fn word(self, key: &str) -> &'a str {
        self.str(key).unwrap_or_default()
    }

    pub(in crate::agents) fn is(self, key: &str) -> bool {
        self.get(key).and_then(Value::as_bool) == Some(true)
    }

    pub(in crate::agents) fn count(self, key: &str) -> Option<u64> {
        self.get(key)?.as_u64()
    }

    pub(in crate::agents) fn money(self, key: &str) -> Option<f64> {
        self.get(key)?.as_f64().filter(|money| money.is_finite() && *money >= 0.0)
    }

    pub(in crate::agents) fn list(self, key: &str) -> &'a [Value] {
        self.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// The objects in an object.
    pub(in crate::agents) fn values(self) -> impl Iterator<Item = Look<'a>> {
        self.0.into_iter().flat_map(Map::values).map(Look::new)
    }

    pub(in crate::agents) const fn is_there(self) -> bool {
        self.0.is_some()
    }
}

/// The text of a content: a text, or the texts of a list of blocks with a line feed between two of them.
pub(in crate::agents) fn text_of(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts = blocks.iter().filter_map(|block| Look::new(block).str("text").or_else(|| block.as_str()));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Cuts the longest texts of arguments that are too long to be kept.
pub(in crate::agents) fn shorten(args: &mut Value) {
    const LONGEST: usize = 16 * 1024;
    match args {
        Value::String(text) if text.len() > LONGEST => *text = prefix(text, LONGEST).to_owned(),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        Value::Array(items) => items.iter_mut().for_each(shorten),
        _ => {}
    }
}
