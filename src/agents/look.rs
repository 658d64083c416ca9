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

/// Most of the arguments of a call that is kept, in bytes of JSON.
pub(in crate::agents) const ARGS: usize = 256 * 1024;

/// The arguments of a call as they are kept: where they are too long, their longest texts are cut, which is marked.
pub(in crate::agents) fn kept(args: Value) -> Value {
    let json = args.to_string();
    if json.len() <= ARGS {
        return args;
    }
    for longest in [192 * 1024, 64 * 1024, 16 * 1024, 1024] {
        let mut short = args.clone();
        shorten(&mut short, longest);
        if short.to_string().len() <= ARGS {
            return short;
        }
    }
    // There are too many of them. Their JSON stands in JSON again, which at most doubles it.
    Value::String(cut(&json, ARGS / 2 - MARK))
}

/// What the mark of a cut text takes at most, in bytes.
const MARK: usize = 64;

fn cut(text: &str, longest: usize) -> String {
    let start = prefix(text, longest);
    format!("{start}… {} more bytes", text.len() - start.len())
}

fn shorten(args: &mut Value, longest: usize) {
    match args {
        Value::String(text) if text.len() > longest + MARK => *text = cut(text, longest),
        Value::Object(fields) => fields.values_mut().for_each(|value| shorten(value, longest)),
        Value::Array(items) => items.iter_mut().for_each(|item| shorten(item, longest)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_kept_whole_up_to_a_bound_and_what_is_cut_is_marked() {
        let whole = json!({"path": "a", "old": "x".repeat(200_000)});
        assert_eq!(kept(whole.clone()), whole);
        let long = kept(json!({"path": "a", "old": "x".repeat(ARGS), "new": ["é".repeat(16_000)]}));
        assert_eq!((&long["path"], &long["new"][0]), (&json!("a"), &json!("é".repeat(16_000))));
        let old = long["old"].as_str().unwrap();
        assert_eq!(old.len(), 192 * 1024 + "… 65536 more bytes".len());
        assert!(old.ends_with("x… 65536 more bytes"), "{}", &old[old.len() - 40..]);
        let order: Vec<&String> = long.as_object().unwrap().keys().collect();
        assert_eq!(order, ["path", "old", "new"], "in the order of the agent");
        // Many texts of middle length, and more names than there is room for.
        let many = kept(Value::Array(vec![json!("x".repeat(10_000)); 100]));
        assert!(many.to_string().len() <= ARGS && many[99].as_str().unwrap().ends_with("… 8976 more bytes"));
        let names: serde_json::Map<String, Value> = (0..60_000).map(|n| (format!("\"{n}"), json!(1))).collect();
        let names = kept(Value::Object(names));
        assert!(names.as_str().unwrap().ends_with(" more bytes") && names.to_string().len() <= ARGS);
    }
}
