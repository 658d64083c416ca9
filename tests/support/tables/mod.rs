//! The tables of fields of every document of a run: name, kind, whether it must be there. Each is checked field by
//! field; a field that is in no table is a mistake.
#![allow(dead_code)]

mod others;
mod records;
mod status;

use serde_json::Value;

// Each user takes a part of them.
#[allow(unused_imports)]
pub use {others::*, records::*, status::*};

/// What a field may hold.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Text,
    Words(&'static [&'static str]),
    Int,
    Number,
    True,
    Bool,
    IntOrNull,
    TextOrNull,
    Path,
    List,
    Object,
    /// Whatever is there.
    Any,
    /// An object with exactly these fields, of these kinds.
    Shape(&'static [(&'static str, Kind, bool)]),
    /// Such an object, or null.
    ShapeOrNull(&'static [(&'static str, Kind, bool)]),
    /// A list of such objects.
    Shapes(&'static [(&'static str, Kind, bool)]),
}

use Kind::{
    Any, Bool, Int, IntOrNull, List, Number, Object, Path, Shape, ShapeOrNull, Shapes, Text, TextOrNull, True, Words,
};

pub type Table = &'static [(&'static str, Kind, bool)];

pub fn check(value: &Value, kind: Kind, at: &str) {
    let ok = match kind {
        Text => value.is_string(),
        Words(words) => value.as_str().is_some_and(|w| words.contains(&w)),
        Int => value.is_i64() || value.is_u64(),
        Number => value.is_number(),
        True => value == &Value::Bool(true),
        Bool => value.is_boolean(),
        IntOrNull => value.is_null() || value.is_i64(),
        TextOrNull => value.is_null() || value.is_string(),
        Path => value.as_str().is_some_and(|p| p.starts_with('/')),
        List => value.is_array(),
        Object => value.is_object(),
        Any => true,
        Shape(table) => {
            check_table(value, table, at);
            true
        }
        ShapeOrNull(table) => {
            if !value.is_null() {
                check_table(value, table, at);
            }
            true
        }
        Shapes(table) => {
            for (n, item) in value.as_array().unwrap().iter().enumerate() {
                check_table(item, table, &format!("{at}[{n}]"));
            }
            true
        }
    };
    assert!(ok, "{at} is not {kind:?}: {value}");
}

pub fn check_table(value: &Value, table: Table, at: &str) {
    let object = value.as_object().unwrap_or_else(|| panic!("{at} is no object: {value}"));
    for (name, value) in object {
        let known = table.iter().find(|(n, ..)| n == name);
        let (_, kind, _) = known.unwrap_or_else(|| panic!("{at}.{name} is not in the table"));
        check(value, *kind, &format!("{at}.{name}"));
    }
    for (name, _, required) in table {
        assert!(!required || object.contains_key(*name), "{at}.{name} is missing");
    }
}

/// Checks the fields of the table and leaves all others alone.
pub fn check_open(value: &Value, table: Table, at: &str) {
    for (name, kind, required) in table {
        match value.get(*name) {
            Some(value) => check(value, *kind, &format!("{at}.{name}")),
            None => assert!(!required, "{at}.{name} is missing"),
        }
    }
}

/// What the runner adds to every record of a child (run-directory 2.5).
pub const CHILD: Table = &[
    ("type", Text, true),
    ("subagentSource", Words(&["child"]), true),
    ("subagentRunId", Text, true),
    ("subagentStepIndex", Int, true),
    ("subagentAgent", Text, true),
    ("observedAt", Number, true),
];

/// Checks one line of events.jsonl.
pub fn check_record(value: &Value, run: &str) {
    let kind = value["type"].as_str().unwrap_or_else(|| panic!("a record without a type: {value}"));
    if value.get("subagentSource").is_some() {
        check_open(value, CHILD, kind);
        assert_eq!(value["subagentRunId"], run, "{kind}");
        return;
    }
    if kind == "subagent.control" {
        let mut rest = value.clone();
        rest.as_object_mut().unwrap().remove("type");
        assert_eq!(value["event"]["runId"], run);
        return check_table(&rest, CONTROL, kind);
    }
    let (_, table) = RECORDS.iter().find(|(k, _)| *k == kind).unwrap_or_else(|| panic!("{kind} is not in the table"));
    let mut rest = value.clone();
    let fields = rest.as_object_mut().unwrap();
    fields.remove("type");
    assert!(fields.remove("ts").is_some_and(|ts| ts.is_number()), "{kind}.ts");
    assert_eq!(fields.remove("runId").unwrap(), run, "{kind}.runId");
    check_table(&rest, table, kind);
}
