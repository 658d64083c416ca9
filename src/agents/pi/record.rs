//! One line of pi's output as a flat struct that borrows from the line. It owns the shape of the records; what they mean
//! is said in [`super::decode`].
//!
//! Records come from many versions and from imitations, so a field of the wrong type counts as missing instead of
//! spoiling the record.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The fields of every record that matter here.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Record<'a> {
    #[serde(borrow, rename = "type", deserialize_with = "text")]
    pub kind: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    pub id: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    pub tool_call_id: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    pub tool_name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub args: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "object")]
    pub result: Option<Body<'a>>,
    #[serde(borrow, deserialize_with = "object")]
    pub partial_result: Option<Body<'a>>,
    #[serde(deserialize_with = "flag")]
    pub is_error: Option<bool>,
    #[serde(borrow, deserialize_with = "object")]
    pub message: Option<Body<'a>>,
    #[serde(borrow, deserialize_with = "object")]
    pub assistant_message_event: Option<Piece<'a>>,
    #[serde(deserialize_with = "flag")]
    pub will_retry: Option<bool>,
    #[serde(deserialize_with = "flag")]
    pub aborted: Option<bool>,
    #[serde(deserialize_with = "flag")]
    pub success: Option<bool>,
    #[serde(deserialize_with = "number")]
    pub attempt: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub max_attempts: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub delay_ms: Option<u64>,
    #[serde(borrow, deserialize_with = "text")]
    pub error_message: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    pub command: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    pub error: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "object")]
    pub data: Option<State<'a>>,
    #[serde(deserialize_with = "object")]
    pub usage: Option<UsageRecord>,
    #[serde(deserialize_with = "object")]
    pub window: Option<WindowRecord>,
    #[serde(borrow, deserialize_with = "object")]
    pub sub_agent: Option<SubRecord<'a>>,
    #[serde(borrow, deserialize_with = "text")]
    pub unknown: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "texts")]
    pub steering: Vec<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "texts")]
    pub follow_up: Vec<Cow<'a, str>>,
}

/// What a sub-agent did.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct SubRecord<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub did: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    pub name: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    pub about: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    pub model: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    pub tool: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    pub args: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    pub text: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "number")]
    pub tokens: Option<u64>,
    #[serde(borrow, deserialize_with = "text")]
    pub outcome: Option<Cow<'a, str>>,
}

/// A message, or the result of a tool: both have content.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Body<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub role: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "content")]
    pub content: Content<'a>,
    #[serde(borrow, deserialize_with = "text")]
    pub model: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    pub stop_reason: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    pub error_message: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "object")]
    pub usage: Option<UsageRecord>,
    #[serde(borrow, deserialize_with = "text")]
    pub tool_call_id: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    pub tool_name: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "flag")]
    pub is_error: Option<bool>,
}

impl Body<'_> {
    /// The text blocks, with a line feed between two of them.
    pub(super) fn text(&self) -> Cow<'_, str> {
        match self.content.texts.as_slice() {
            [] => Cow::Borrowed(""),
            [only] => Cow::Borrowed(only),
            many => Cow::Owned(many.join("\n")),
        }
    }
}

/// What is of interest in a list of content blocks.
#[derive(Debug, Default)]
pub(super) struct Content<'a> {
    pub texts: Vec<Cow<'a, str>>,
    pub calls_tools: bool,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Block<'a> {
    #[serde(borrow, rename = "type", deserialize_with = "text")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    text: Option<Cow<'a, str>>,
}

/// A piece of a message that is being written.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Piece<'a> {
    #[serde(borrow, rename = "type", deserialize_with = "text")]
    pub kind: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "number")]
    pub content_index: Option<u64>,
    #[serde(borrow, deserialize_with = "text")]
    pub delta: Option<Cow<'a, str>>,
}

/// The answer to `get_state`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct State<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "object")]
    pub model: Option<Model<'a>>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Model<'a> {
    #[serde(borrow, deserialize_with = "text")]
    pub id: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "number")]
    pub context_window: Option<u64>,
}

/// What an agent tells of its context window.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct WindowRecord {
    #[serde(deserialize_with = "number")]
    pub used: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub size: Option<u64>,
}

/// Usage in either of the two spellings (runner-behaviour 1.5).
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct UsageRecord {
    #[serde(deserialize_with = "number")]
    pub input: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub input_tokens: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub output: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub output_tokens: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub cache_read: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub cache_write: Option<u64>,
    #[serde(deserialize_with = "object")]
    pub cost: Option<CostRecord>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct CostRecord {
    #[serde(deserialize_with = "money")]
    pub total: Option<f64>,
}

/// Parses a line. `None` when it is not a JSON object with a `type`; a record whose inside is not what it should be
/// keeps its type alone.
pub(super) fn with_record<T>(line: &[u8], then: impl FnOnce(&Record<'_>) -> T) -> Option<T> {
    // The strict check first: it is several times as fast, and nearly every line passes it.
    let text = simdutf8::basic::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed);
    let error = match serde_json::from_str::<Record<'_>>(&text) {
        Ok(record) => return record.kind.is_some().then(|| then(&record)),
        Err(error) => error,
    };
    if error.is_eof() || !text.trim_start().starts_with('{') {
        return None;
    }
    // A text that was cut inside a surrogate pair is valid JSON for its writer but not for a strict reader.
    let repaired = without_lone_surrogates(&text);
    if let Some(Ok(record)) = repaired.as_deref().map(serde_json::from_str::<Record<'_>>) {
        return record.kind.is_some().then(|| then(&record));
    }
    // Repeated keys: the last one counts, as it does for the program that wrote the line.
    let loose: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(repaired.as_deref().unwrap_or(&text)).ok()?;
    let kind = loose.get("type")?.as_str()?;
    let again = serde_json::to_string(&loose).ok()?;
    match serde_json::from_str::<Record<'_>>(&again) {
        Ok(record) => Some(then(&record)),
        Err(_) => Some(then(&Record { kind: Some(Cow::Borrowed(kind)), ..Record::default() })),
    }
}

/// Replaces escapes of half a surrogate pair by the replacement character; `None` when there are none.
pub(super) fn without_lone_surrogates(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let unit = |at: usize| -> Option<u32> {
        let escape = bytes.get(at..at + 6)?;
        let digits = escape.strip_prefix(b"\\u")?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        at += found;
        match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => {
                out.push_str(text.get(copied..at)?);
                out.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            Some(_) => at += 6,
            None => at += 2,
        }
    }
    if copied == 0 {
        return None;
    }
    out.push_str(text.get(copied..)?);
    Some(out)
}

/// The visitor methods of scalars, all with the same answer.
macro_rules! scalars_give {
    ($value:expr) => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($value)
        }
    };
}

/// Takes what it wants of any JSON value and skips the rest.
struct Lax<T>(PhantomData<T>);

/// A type that can be read leniently: everything is `None` unless a method says otherwise.
trait Take<'de>: Sized {
    fn from_borrowed(_: &'de str) -> Option<Self> {
        None
    }
    fn from_owned(_: &str) -> Option<Self> {
        None
    }
    fn from_number(_: f64) -> Option<Self> {
        None
    }
    fn from_bool(_: bool) -> Option<Self> {
        None
    }
}

impl<'de> Take<'de> for Cow<'de, str> {
    fn from_borrowed(text: &'de str) -> Option<Self> {
        Some(Cow::Borrowed(text))
    }
    fn from_owned(text: &str) -> Option<Self> {
        Some(Cow::Owned(text.to_owned()))
    }
}

impl Take<'_> for u64 {
    fn from_number(number: f64) -> Option<Self> {
        // Beyond this a number of JSON is none that anybody counted.
        (0.0..=9_007_199_254_740_992.0).contains(&number).then_some(number as Self)
    }
}

impl Take<'_> for f64 {
    fn from_number(number: f64) -> Option<Self> {
        number.is_finite().then_some(number)
    }
}

impl Take<'_> for bool {
    fn from_bool(value: bool) -> Option<Self> {
        Some(value)
    }
}

impl<'de, T: Take<'de>> Visitor<'de> for Lax<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(T::from_borrowed(text))
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(T::from_owned(text))
    }
    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(T::from_bool(value))
    }
    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(T::from_number(number as f64))
    }
    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(T::from_number(number as f64))
    }
    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(T::from_number(number))
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    from.deserialize_any(Lax(PhantomData))
}

fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    from.deserialize_any(Lax(PhantomData))
}

fn money<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    from.deserialize_any(Lax(PhantomData))
}

fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<Option<bool>, D::Error> {
    from.deserialize_any(Lax(PhantomData))
}

/// An object of the wanted shape; anything else is missing.
fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    struct Object<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
        type Value = Option<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("anything")
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            T::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(Some)
        }
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok(None)
        }
        scalars_give!(None);
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(None)
        }
    }
    from.deserialize_any(Object(PhantomData))
}

/// A list of strings; elements of another type are left out.
fn texts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Cow<'de, str>>, D::Error> {
    list(from, |text: Element<'de>, out: &mut Vec<_>| match text {
        Element::Text(text) => out.push(text),
        Element::Block(_) | Element::Other => {}
    })
}

/// Content is a list of blocks or, in some versions, one string.
fn content<'de, D: Deserializer<'de>>(from: D) -> Result<Content<'de>, D::Error> {
    list(from, |element: Element<'de>, out: &mut Content<'de>| match element {
        Element::Text(text) => {
            if !text.is_empty() {
                out.texts.push(text);
            }
        }
        Element::Block(block) => match block.kind.as_deref() {
            Some("text") => out.texts.extend(block.text),
            Some("toolCall") => out.calls_tools = true,
            _ => {}
        },
        Element::Other => {}
    })
}

enum Element<'a> {
    Text(Cow<'a, str>),
    Block(Block<'a>),
    Other,
}

impl<'de> Deserialize<'de> for Element<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Element<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Element::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Element::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                Block::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(Element::Block)
            }
            scalars_give!(Element::Other);
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Element::Other)
            }
        }
        from.deserialize_any(Any)
    }
}

/// Folds a list, or a single string in its place, into a value; anything else leaves the default.
fn list<'de, D, T, F>(from: D, fold: F) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default,
    F: FnMut(Element<'de>, &mut T),
{
    struct List<T, F>(F, PhantomData<T>);
    impl<'de, T: Default, F: FnMut(Element<'de>, &mut T)> List<T, F> {
        fn one(mut self, text: Cow<'de, str>) -> T {
            let mut out = T::default();
            (self.0)(Element::Text(text), &mut out);
            out
        }
    }
    impl<'de, T: Default, F: FnMut(Element<'de>, &mut T)> Visitor<'de> for List<T, F> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("anything")
        }
        fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<T, A::Error> {
            let mut out = T::default();
            while let Some(element) = seq.next_element::<Element<'de>>()? {
                (self.0)(element, &mut out);
            }
            Ok(out)
        }
        fn visit_borrowed_str<E>(self, text: &'de str) -> Result<T, E> {
            Ok(self.one(Cow::Borrowed(text)))
        }
        fn visit_str<E>(self, text: &str) -> Result<T, E> {
            Ok(self.one(Cow::Owned(text.to_owned())))
        }
        scalars_give!(T::default());
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(T::default())
        }
    }
    from.deserialize_any(List(fold, PhantomData))
}
