//! A JSON value that keeps the order of its fields, because the documents of a run directory have one.
//!
//! Owns writing only; documents are read with `serde_json`.

use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::value::RawValue;

use crate::run::Timestamp;

/// A JSON value to be written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    /// `null`, which only few fields may be (run-directory 0).
    Null,
    /// A boolean.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any number; a whole one is written without a fraction, as JavaScript does.
    Num(f64),
    /// A string.
    Str(String),
    /// An array.
    Arr(Vec<Json>),
    /// An object, fields in the order they were added.
    Obj(Obj),
    /// A value that was written before.
    Written(Written),
}

/// A value as the text that it was written as, ready to be put into a document again.
#[derive(Clone, Debug)]
pub(super) struct Written(Arc<RawValue>);

impl PartialEq for Written {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

/// An object under construction.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Obj(Vec<(String, Json)>);

impl Obj {
    /// An empty object.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Adds a field.
    pub(super) fn set(&mut self, key: &str, value: impl Into<Json>) -> &mut Self {
        self.0.push((key.to_owned(), value.into()));
        self
    }

    /// Adds the fields of another object.
    pub(super) fn extend(&mut self, other: &Self) -> &mut Self {
        self.0.extend(other.0.iter().cloned());
        self
    }

    /// Adds a field that has a value; absent fields are left out, never null (run-directory 0).
    pub(super) fn opt<T: Into<Json>>(&mut self, key: &str, value: Option<T>) -> &mut Self {
        if let Some(value) = value {
            self.set(key, value);
        }
        self
    }

    /// Adds `true`, or nothing.
    pub(super) fn flag(&mut self, key: &str, value: bool) -> &mut Self {
        if value {
            self.set(key, true);
        }
        self
    }

    /// Whether no field was added.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One line without spaces and without a line feed.
    pub(super) fn compact(&self) -> Vec<u8> {
        // Writing a tree of plain values into memory has no way to fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Two spaces a level, no line feed at the end (run-directory 0).
    pub(super) fn pretty(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }

    /// The same for a value inside of a document, `depth` levels deep.
    pub(super) fn written(&self, depth: usize) -> Option<Written> {
        let text = String::from_utf8(self.pretty()).ok()?;
        // A line feed inside of a string is escaped, so each of these ends a line.
        let text = text.replace('\n', &format!("\n{}", "  ".repeat(depth)));
        RawValue::from_string(text).ok().map(|raw| Written(raw.into()))
    }

    /// One line with its line feed, as `*.jsonl` files want it.
    pub(super) fn line(&self) -> Vec<u8> {
        let mut line = self.compact();
        line.push(b'\n');
        line
    }
}

impl Serialize for Obj {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(b) => serializer.serialize_bool(*b),
            Self::Int(n) => serializer.serialize_i64(*n),
            Self::Num(n) if n.fract() == 0.0 && n.abs() < 9.0e15 => serializer.serialize_i64(*n as i64),
            Self::Num(n) => serializer.serialize_f64(*n),
            Self::Str(s) => serializer.serialize_str(s),
            Self::Arr(items) => {
                let mut seq = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    seq.serialize_element(item)?;
                }
                seq.end()
            }
            Self::Obj(obj) => obj.serialize(serializer),
            Self::Written(text) => text.0.serialize(serializer),
        }
    }
}

impl From<bool> for Json {
    fn from(b: bool) -> Self {
        Self::Bool(b)
    }
}
impl From<i32> for Json {
    fn from(n: i32) -> Self {
        Self::Int(n.into())
    }
}
impl From<i64> for Json {
    fn from(n: i64) -> Self {
        Self::Int(n)
    }
}
impl From<u32> for Json {
    fn from(n: u32) -> Self {
        Self::Int(n.into())
    }
}
impl From<u64> for Json {
    fn from(n: u64) -> Self {
        Self::Int(i64::try_from(n).unwrap_or(i64::MAX))
    }
}
impl From<usize> for Json {
    fn from(n: usize) -> Self {
        Self::Int(i64::try_from(n).unwrap_or(i64::MAX))
    }
}
impl From<f64> for Json {
    fn from(n: f64) -> Self {
        Self::Num(n)
    }
}
impl From<&str> for Json {
    fn from(s: &str) -> Self {
        Self::Str(s.to_owned())
    }
}
impl From<&String> for Json {
    fn from(s: &String) -> Self {
        Self::Str(s.clone())
    }
}
impl From<String> for Json {
    fn from(s: String) -> Self {
        Self::Str(s)
    }
}
impl From<Obj> for Json {
    fn from(obj: Obj) -> Self {
        Self::Obj(obj)
    }
}
impl From<Written> for Json {
    fn from(text: Written) -> Self {
        Self::Written(text)
    }
}
impl From<&serde_json::Value> for Json {
    /// A value of somebody else's, as it is.
    fn from(value: &serde_json::Value) -> Self {
        use serde_json::Value;
        match value {
            Value::Null => Self::Null,
            Value::Bool(b) => Self::Bool(*b),
            Value::Number(n) => n.as_i64().map_or_else(|| Self::Num(n.as_f64().unwrap_or_default()), Self::Int),
            Value::String(s) => Self::Str(s.clone()),
            Value::Array(items) => items.iter().collect(),
            Value::Object(fields) => Self::Obj(Obj(fields.iter().map(|(k, v)| (k.clone(), v.into())).collect())),
        }
    }
}
impl From<Timestamp> for Json {
    /// Milliseconds since the epoch, with a fraction only when there is one (run-directory 0).
    fn from(at: Timestamp) -> Self {
        Self::Num(at.micros() as f64 / 1000.0)
    }
}
impl<T: Into<Json>> FromIterator<T> for Json {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::Arr(items.into_iter().map(Into::into).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_javascript_writes_them() {
        let mut obj = Obj::new();
        obj.set("whole", 1_764_000_061_500.0);
        obj.set("part", Timestamp::from_micros(1_764_000_693_950_250));
        obj.set("cost", 0.0184);
        obj.set("none", Json::Null);
        let text = String::from_utf8(obj.compact()).unwrap();
        assert_eq!(text, r#"{"whole":1764000061500,"part":1764000693950.25,"cost":0.0184,"none":null}"#);
    }

    #[test]
    fn pretty_uses_two_spaces_and_keeps_the_order() {
        let mut obj = Obj::new();
        obj.set("b", Json::Arr(vec![])).set("a", [1, 2].into_iter().collect::<Json>());
        let text = String::from_utf8(obj.pretty()).unwrap();
        assert_eq!(text, "{\n  \"b\": [],\n  \"a\": [\n    1,\n    2\n  ]\n}");
    }
}
