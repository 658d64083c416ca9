//! What the agents of a run were told: the messages of its user in the event log, whole. An event carries a preview of
//! each (run-directory 2.5), which is too little for who has to know them again elsewhere.

use std::collections::BTreeMap;

use super::RunDir;
use super::record::{self, Kind};
use super::tail::Tail;
use crate::run::StepId;

/// The messages to a step that are kept: of who is told more only the first ones.
const MESSAGES: usize = 256;
/// The bytes that are kept of all.
const BYTES: usize = 16 * 1024 * 1024;
/// The bytes that are read at a time.
const PIECE: u64 = 4 * 1024 * 1024;

/// The messages that each step's agent was told, each once, in their order. Text from outside.
#[must_use]
pub fn messages(dir: &RunDir) -> BTreeMap<StepId, Vec<String>> {
    let mut heard: BTreeMap<StepId, Vec<String>> = BTreeMap::new();
    let mut room = BYTES;
    let mut tail = Tail::new(dir.events());
    let mut take = |_: u64, line: &[u8]| {
        // Most lines are nothing of the kind; whoever wrote them, the role stands in each of these.
        if memchr::memmem::find(line, b"\"user\"").is_some()
            && let Some((step, text)) = message(line)
            && text.len() <= room
        {
            let known = heard.entry(step).or_default();
            if known.len() < MESSAGES && !known.contains(&text) {
                room -= text.len();
                known.push(text);
            }
        }
        true
    };
    while tail.read_on(PIECE, &mut take).behind {}
    heard
}

/// The step that is told something in a record, and what.
fn message(line: &[u8]) -> Option<(StepId, String)> {
    let value: serde_json::Value = serde_json::from_slice(line).ok()?;
    if value.get("message")?.get("role")?.as_str()? != "user" {
        return None;
    }
    let step = u32::try_from(value.get("subagentStepIndex")?.as_u64()?).ok()?;
    let said = record::parts(line).into_iter().filter(|part| part.kind == Kind::Said);
    let text = said.map(|part| part.text).collect::<Vec<_>>().join("\n");
    (!text.trim().is_empty()).then_some((StepId(step), text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::RunId;
    use crate::rundir::RunRoot;

    #[test]
    fn what_was_said_to_a_step_is_known_whole_and_once() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::create(&RunRoot::at(temp.path()), &RunId("r".into())).unwrap();
        let long = "word ".repeat(5000);
        let told = |step: u32, role: &str, text: &str| {
            let text = serde_json::to_string(text).unwrap();
            format!(
                "{{\"type\":\"message_end\",\"message\":{{\"role\":\"{role}\",\"content\":[{{\"type\":\"text\",\"text\":{text}}}]}},\"subagentSource\":\"child\",\"subagentStepIndex\":{step}}}\n"
            )
        };
        let log = [
            told(0, "user", &long),
            told(1, "assistant", "the \"user\" said"),
            "no json of a \"user\"\n".into(),
            told(1, "user", "one"),
            told(0, "user", &long),
            told(1, "user", "two\nlines"),
        ];
        std::fs::write(dir.events(), log.concat()).unwrap();
        let heard = messages(&dir);
        assert_eq!(heard[&StepId(0)], [long]);
        assert_eq!(heard[&StepId(1)], ["one", "two\nlines"]);
    }
}
