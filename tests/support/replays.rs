//! The event log of a run that has ended, told to the reducer again, gives the state that its status has.

use std::path::Path;

use serde_json::Value;
use subdeck::run::{RunState, reduce};
use subdeck::rundir::{RunDir, StatusContext, records, status};

/// What a status says that no record says: what a child prints as it comes is in logs of its own, and so is when the newest
/// of that came.
const NEVER_RECORDED: [&str; 5] = ["recentOutput", "lastActivityAt", "lastUpdate", "currentStep", "current"];

/// Fails unless the log of the run in this directory says all that its status says.
pub fn assert_told_by_the_log(dir: &Path) {
    let log = std::fs::read(dir.join("events.jsonl")).unwrap();
    let mut events = Vec::new();
    for line in log.split(|byte| *byte == b'\n') {
        assert!(records::decode(line, &mut events), "{}", String::from_utf8_lossy(line));
    }
    let mut state = RunState::default();
    events.iter().for_each(|event| reduce(&mut state, event));
    let own = RunDir::at(dir);
    let told = status::encode(&state, &StatusContext { dir: &own, instance: None });
    let written = std::fs::read(dir.join("status.json")).unwrap();
    let mut found = Vec::new();
    let [told, written] = [told, written].map(|bytes| serde_json::from_slice(&bytes).unwrap());
    differences(&told, &written, "", &mut found);
    assert!(found.is_empty(), "{}: {found:#?}", dir.display());
}

fn differences(told: &Value, written: &Value, at: &str, found: &mut Vec<String>) {
    match (told, written) {
        (Value::Object(one), Value::Object(two)) => {
            let mut keys: Vec<_> =
                one.keys().chain(two.keys()).filter(|k| !NEVER_RECORDED.contains(&k.as_str())).collect();
            keys.sort_unstable();
            keys.dedup();
            keys.into_iter().for_each(|key| differences(&told[key], &written[key], &format!("{at}.{key}"), found));
        }
        (Value::Array(one), Value::Array(two)) if one.len() == two.len() => {
            one.iter().zip(two).enumerate().for_each(|(n, (a, b))| differences(a, b, &format!("{at}[{n}]"), found));
        }
        _ if told == written => {}
        _ => found.push(format!("{at}: {told} by the log, {written} by the status")),
    }
}
