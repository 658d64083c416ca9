//! The published schema of plans agrees with what the program reads.

use std::path::Path;

use serde_json::{Map, Value, json};
use subdeck::plan::tree::{self, Kind, Node};
use subdeck::plan::{Source, keys};

const SCHEMA: &str = include_str!("../assets/schema/plan.json");

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

fn value(node: &Node) -> Value {
    match &node.kind {
        Kind::Table(entries) => {
            Value::Object(entries.iter().map(|e| (e.key.clone(), value(&e.node))).collect::<Map<_, _>>())
        }
        Kind::Array(elements) => elements.iter().map(value).collect(),
        Kind::String(text) => json!(text),
        Kind::Int(number) => json!(number),
        Kind::Float(number) => json!(number),
        Kind::Bool(truth) => json!(truth),
        Kind::Null | Kind::Date => Value::Null,
    }
}

fn plan(path: &str) -> Value {
    value(&tree::parse(&Source::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()).unwrap())
}

#[test]
fn every_key_of_the_reader_is_in_the_schema_and_no_other() {
    let schema = schema();
    let at = |pointer: &str| {
        let table = schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer}"));
        let mut keys: Vec<&str> = table["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(table["additionalProperties"], json!(false), "{pointer}");
        keys.sort_unstable();
        keys
    };
    let tables: [(&str, &[&str]); 10] = [
        ("", keys::PLAN),
        ("/$defs/step", keys::STEP),
        ("/$defs/group", keys::GROUP),
        ("/$defs/budget", keys::BUDGET),
        ("/$defs/limit/oneOf/1", keys::LIMIT),
        ("/$defs/tool_calls/oneOf/1", keys::TOOL_CALLS),
        ("/$defs/attention", keys::ATTENTION),
        ("/$defs/turns/oneOf/1", keys::TURNS),
        ("/$defs/runner/oneOf/1", keys::RUNNER),
        ("/$defs/runner/oneOf/1/properties/permission/anyOf/1", keys::PERMISSION),
    ];
    for (pointer, known) in tables {
        let mut known = known.to_vec();
        known.sort_unstable();
        assert_eq!(at(pointer), known, "{pointer}");
    }
    assert_eq!(schema.pointer("/$defs/runner/oneOf/1/properties/type/enum").unwrap(), &json!(keys::RUNNERS));
}

#[test]
fn good_plans_are_valid_and_bad_ones_are_not() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for path in [
        "tests/fixtures/plans/full.toml",
        "tests/fixtures/plans/small.toml",
        "tests/fixtures/plans/small.json",
        "assets/demo-plan.toml",
    ] {
        let errors: Vec<String> =
            validator.iter_errors(&plan(path)).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{path}: {errors:#?}");
    }
    assert!(!validator.is_valid(&plan("tests/fixtures/plans/mistakes.toml")));
    let good = json!({ "agent": "a", "task": "t" });
    for change in [
        json!({ "id": "2" }),
        json!({ "id": "a b" }),
        json!({ "task": " " }),
        json!({ "prompt": "x" }),
        json!({ "model": "a", "models": ["b"] }),
        json!({ "budget": { "time": 5 } }),
        json!({ "budget": { "time": "5" } }),
        json!({ "budget": { "tokens": {} } }),
        json!({ "budget": { "turns": { "grace": 1 } } }),
        json!({ "budget": { "tool_calls": { "block": "*" } } }),
        json!({ "budget": { "tool_calls": { "soft": 1, "block": "*" } } }),
        json!({ "budget": { "tool_calls": { "hard": 1, "block": [] } } }),
        json!({ "budget": { "tool_calls": { "hard": 1, "block": "read" } } }),
        json!({ "attention": { "idle": true } }),
        json!({ "attention": { "idle": 5 } }),
        json!({ "attention": { "tool_failures": 0 } }),
        json!({ "attention": { "tools": ["bash"] } }),
        json!({ "tool_timeout_exempt": "ask" }),
        json!({ "runner": "cursor-agent" }),
        json!({ "question_timeout": 5 }),
        json!({ "runner": { "type": "claude", "permission": "maybe" } }),
        json!({ "runner": { "type": "claude", "permission": { "tools": { "Write": true } } } }),
        json!({ "runner": { "type": "claude", "permission": { "tools": { "(x)": "deny" } } } }),
        json!({ "runner": {} }),
        json!({ "parallel": [] }),
        json!({ "parallel": [{}], "agent": "a" }),
        json!({ "fail_fast": true }),
        json!({ "env": { "A=B": "x" } }),
    ] {
        let mut step = good.as_object().unwrap().clone();
        step.extend(change.as_object().unwrap().clone());
        assert!(!validator.is_valid(&json!({ "step": [step] })), "{change}");
    }
    let rules = json!({ "default": "deny", "tools": { "Bash(git *)": "allow", "mcp__*": "ask" } });
    let ruled = json!({ "task": "t", "runner": { "type": "claude", "permission": rules } });
    assert!(validator.is_valid(&json!({ "question_timeout": "5m", "step": [good, ruled] })));
    assert!(!validator.is_valid(&json!({ "step": [] })));
}
