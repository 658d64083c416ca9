//! One tree with positions, made from TOML or JSON, so that everything after it need not know which it was.

use std::collections::HashSet;
use std::ops::Range;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use toml_edit::{Item, TableLike, Value};

use super::{Problem, Problems, Source, toml_errors};

/// A value with the bytes that it takes and the way to it.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its bytes in the source.
    pub span: Range<usize>,
    /// The way to it, like `step[2].budget.time`; elements are counted from 1. Empty at the root.
    pub path: String,
    /// What it is.
    pub kind: Kind,
}

/// What a value is.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Kind {
    Table(Vec<Entry>),
    Array(Vec<Node>),
    String(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    Null,
    /// A TOML date or time, which nothing here wants.
    Date,
}

/// A key and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_span: Range<usize>,
    /// The value.
    pub node: Node,
}

impl Kind {
    /// What a message calls it, with its article.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Table(_) => "a table",
            Self::Array(_) => "a list",
            Self::String(_) => "a text",
            Self::Int(_) => "a number",
            Self::Float(_) => "a number with a fraction",
            Self::Bool(_) => "true or false",
            Self::Null => "null",
            Self::Date => "a date",
        }
    }
}

impl Node {
    /// The value of a key, when this is a table that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|e| &e.node)
    }

    /// The same with where the key stands.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        let Kind::Table(entries) = &self.kind else { return None };
        entries.iter().find(|e| e.key == key)
    }

    /// The value without its places.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.kind {
            Kind::Table(entries) => Json::Object(entries.iter().map(|e| (e.key.clone(), e.node.to_json())).collect()),
            Kind::Array(nodes) => nodes.iter().map(Self::to_json).collect(),
            Kind::String(text) => text.as_str().into(),
            Kind::Int(number) => (*number).into(),
            Kind::Float(number) => (*number).into(),
            Kind::Bool(truth) => (*truth).into(),
            Kind::Null | Kind::Date => Json::Null,
        }
    }

    fn child_path(&self, key: &str) -> String {
        let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
        let key = if plain { key.to_owned() } else { format!("{key:?}") };
        if self.path.is_empty() { key } else { format!("{}.{key}", self.path) }
    }

    fn new(span: Range<usize>, path: String) -> Self {
        Self { span, path, kind: Kind::Null }
    }
}

/// Parses JSON when the text begins like JSON, else TOML.
///
/// # Errors
/// The syntax error, or every key that a JSON object has twice.
pub fn parse(source: &Source) -> Result<Node, Problems> {
    let json = source.name().ends_with(".json") || source.text().trim_start().starts_with('{');
    if json { parse_json(source) } else { parse_toml(source) }
}

/// Parses TOML.
///
/// # Errors
/// Every syntax error, or what else is wrong first.
pub fn parse_toml(source: &Source) -> Result<Node, Problems> {
    match toml_edit::Document::parse(source.text()) {
        Ok(document) => {
            let mut root = Node::new(0..source.text().len(), String::new());
            root.kind = toml_table(&root, document.as_table());
            Ok(root)
        }
        Err(error) => {
            let errors = toml_errors::all(source);
            if !errors.is_empty() {
                return Err(Problems(errors));
            }
            let end = source.text().len();
            let span = error.span().unwrap_or(end..end);
            let message = error.message().lines().collect::<Vec<_>>().join(", ");
            Err(Problem::at(source, span, "", format!("not valid TOML: {message}")).into())
        }
    }
}

fn toml_table(parent: &Node, table: &dyn TableLike) -> Kind {
    let entries = table.iter().filter_map(|(key, item)| {
        let key_span = table.key(key).and_then(toml_edit::Key::span);
        let span = item.span().or_else(|| key_span.clone())?;
        let mut node = Node::new(span.clone(), parent.child_path(key));
        node.kind = toml_item(&node, item);
        Some(Entry { key: key.to_owned(), key_span: key_span.unwrap_or(span), node })
    });
    Kind::Table(entries.collect())
}

fn toml_item(node: &Node, item: &Item) -> Kind {
    match item {
        Item::None => Kind::Null,
        Item::Value(value) => toml_value(node, value),
        Item::Table(table) => toml_table(node, table),
        Item::ArrayOfTables(tables) => {
            let elements = tables.iter().enumerate().map(|(i, table)| {
                let span = table.span().unwrap_or_else(|| node.span.clone());
                let mut element = Node::new(span, format!("{}[{}]", node.path, i + 1));
                element.kind = toml_table(&element, table);
                element
            });
            Kind::Array(elements.collect())
        }
    }
}

fn toml_value(node: &Node, value: &Value) -> Kind {
    match value {
        Value::String(text) => Kind::String(text.value().clone()),
        Value::Integer(number) => Kind::Int(*number.value()),
        Value::Float(number) => Kind::Float(*number.value()),
        Value::Boolean(truth) => Kind::Bool(*truth.value()),
        Value::Datetime(_) => Kind::Date,
        Value::InlineTable(table) => toml_table(node, table),
        Value::Array(array) => {
            let elements = array.iter().enumerate().map(|(i, value)| {
                let span = value.span().unwrap_or_else(|| node.span.clone());
                let mut element = Node::new(span, format!("{}[{}]", node.path, i + 1));
                element.kind = toml_value(&element, value);
                element
            });
            Kind::Array(elements.collect())
        }
    }
}

/// Parses JSON: no comments, no trailing commas, no loose names.
///
/// # Errors
/// The first syntax error, or every key that an object has twice.
fn parse_json(source: &Source) -> Result<Node, Problems> {
    let options = jsonc_parser::ParseOptions {
        allow_comments: false,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let end = source.text().len();
    match jsonc_parser::parse_to_ast(source.text(), &jsonc_parser::CollectOptions::default(), &options) {
        Ok(ast) => {
            let Some(value) = ast.value else {
                return Err(Problem::at(source, 0..0, "", "the file is empty").into());
            };
            let mut problems = Vec::new();
            let mut root = Node::new(value.start()..value.end(), String::new());
            root.kind = json_value(&root, &value, source, &mut problems);
            if problems.is_empty() { Ok(root) } else { Err(Problems(problems)) }
        }
        Err(error) => {
            let range = error.range();
            let span = range.start.min(end)..range.end.min(end);
            Err(Problem::at(source, span, "", format!("not valid JSON: {}", lower_first(&error.kind().to_string())))
                .into())
        }
    }
}

fn json_value(node: &Node, value: &ast::Value<'_>, source: &Source, problems: &mut Vec<Problem>) -> Kind {
    match value {
        ast::Value::StringLit(text) => Kind::String(text.value.clone().into_owned()),
        ast::Value::NumberLit(number) => {
            number.value.parse().map_or_else(|_| number.value.parse().map_or(Kind::Null, Kind::Float), Kind::Int)
        }
        ast::Value::BooleanLit(truth) => Kind::Bool(truth.value),
        ast::Value::NullKeyword(_) => Kind::Null,
        ast::Value::Object(object) => {
            let mut entries: Vec<Entry> = Vec::with_capacity(object.properties.len());
            let mut keys = HashSet::new();
            for property in &object.properties {
                let key = property.name.as_str();
                let key_span = property.name.start()..property.name.end();
                let mut child = Node::new(property.value.start()..property.value.end(), node.child_path(key));
                if !keys.insert(key) {
                    problems.push(Problem::at(
                        source,
                        key_span,
                        &child.path,
                        format!("the key `{key}` stands here twice"),
                    ));
                    continue;
                }
                child.kind = json_value(&child, &property.value, source, problems);
                entries.push(Entry { key: key.to_owned(), key_span, node: child });
            }
            Kind::Table(entries)
        }
        ast::Value::Array(array) => {
            let mut elements = Vec::with_capacity(array.elements.len());
            for (i, value) in array.elements.iter().enumerate() {
                let mut element = Node::new(value.start()..value.end(), format!("{}[{}]", node.path, i + 1));
                element.kind = json_value(&element, value, source, problems);
                elements.push(element);
            }
            Kind::Array(elements)
        }
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The tree without positions, as text.
    fn show(node: &Node) -> String {
        match &node.kind {
            Kind::Table(entries) => {
                let inner: Vec<_> = entries.iter().map(|e| format!("{}={}", e.key, show(&e.node))).collect();
                format!("{{{}}}", inner.join(" "))
            }
            Kind::Array(elements) => format!("[{}]", elements.iter().map(show).collect::<Vec<_>>().join(" ")),
            Kind::String(text) => format!("{text:?}"),
            Kind::Int(number) => number.to_string(),
            Kind::Float(number) => format!("{number}f"),
            Kind::Bool(truth) => truth.to_string(),
            Kind::Null => "null".to_owned(),
            Kind::Date => "date".to_owned(),
        }
    }

    #[test]
    fn both_languages_give_the_same_tree() {
        let toml = "\u{feff}name = \"n\"\r\nbudget.time = '1h'\r\n[[step]]\r\nid = \"a\"\r\n[step.env]\r\nX = \"1\"\r\n\
                    [[step]]\r\nparallel = [ { n = 1 }, { f = 2.5, t = true } ]\r\n";
        let json = "\u{feff}{\"name\":\"n\",\r\n\"budget\":{\"time\":\"1h\"},\"step\":[{\"id\":\"a\",\"env\":{\"X\":\"1\"}},\
                    {\"parallel\":[{\"n\":1},{\"f\":2.5,\"t\":true}]}]}\r\n";
        let expected =
            "{name=\"n\" budget={time=\"1h\"} step=[{id=\"a\" env={X=\"1\"}} {parallel=[{n=1} {f=2.5f t=true}]}]}";
        assert_eq!(show(&parse(&Source::new("a.toml", toml)).unwrap()), expected);
        assert_eq!(show(&parse(&Source::new("<stdin>", json)).unwrap()), expected);
    }

    #[test]
    fn nodes_know_their_place_and_their_path() {
        let source = Source::new("a.toml", "[[step]]\nx = [1, \"two\"]\n[step.budget]\ntime = 5\n");
        let root = parse(&source).unwrap();
        let Kind::Array(steps) = &root.get("step").unwrap().kind else { panic!() };
        assert_eq!(steps[0].path, "step[1]");
        let Kind::Array(x) = &steps[0].get("x").unwrap().kind else { panic!() };
        assert_eq!((x[1].path.as_str(), &source.text()[x[1].span.clone()]), ("step[1].x[2]", "\"two\""));
        let time = steps[0].get("budget").unwrap().get("time").unwrap();
        assert_eq!((time.path.as_str(), &source.text()[time.span.clone()]), ("step[1].budget.time", "5"));
        assert_eq!(source.position(time.span.start).unwrap().line, 4);
    }

    #[test]
    fn syntax_errors_have_a_place() {
        for (name, text, line, column) in [
            ("a.toml", "a = 1\nb = = 2\n", 2, 5),
            ("a.toml", "a = 1\na = 2\n", 2, 1),
            ("a.toml", "a = \"open\n", 1, 10),
            ("a.json", "{\"a\": 1,\n \"b\" 2}", 2, 6),
            ("a.json", "{\"a\": 1, // no\n}", 1, 10),
            ("a.json", "{\"a\": [1,]}", 1, 9),
            ("a.json", "", 1, 1),
            ("a.json", "{\"a\": 1,\n\"a\": 2}", 2, 1),
        ] {
            let problems = parse(&Source::new(name, text)).unwrap_err();
            let at = problems.0[0].position.unwrap();
            assert_eq!((at.line, at.column), (line, column), "{text:?}: {}", problems.0[0].message);
        }
    }

    #[test]
    fn deep_nesting_is_an_error_not_a_crash() {
        let deep = 100_000;
        assert!(parse(&Source::new("a.json", "[".repeat(deep))).is_err());
        assert!(parse(&Source::new("a.json", "{\"a\":".repeat(deep))).is_err());
        assert!(parse(&Source::new("a.toml", format!("a = {}", "[".repeat(deep)))).is_err());
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in r#"([a-z]|[=\[\]{}".,:#\n\r 0-9-]|é|null|true|"a"|\[\[step\]\]\n)*"#) {
            let source = Source::new("p", text.clone());
            let wrong = !super::toml_errors::all(&source).is_empty();
            proptest::prop_assert!(parse_toml(&source).is_err() || !wrong);
            let _ = parse_json(&Source::new("p", text));
        }
    }
}
