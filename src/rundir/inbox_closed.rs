//! `steer-inbox-closed.json`: the marker that no more messages are taken (run-directory 3.7).

use super::RunDir;
use super::json::Obj;
use crate::run::Timestamp;

/// The document; `state` is the word of the final state.
#[must_use]
pub fn encode(at: Timestamp, state: &str) -> Vec<u8> {
    let mut obj = Obj::new();
    obj.set("version", 1).set("closedAt", at.millis()).set("state", state);
    obj.pretty()
}

/// Whether the inbox is closed.
#[must_use]
pub fn is_closed(dir: &RunDir) -> bool {
    dir.inbox_closed().exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_is_that_of_the_specification() {
        let text = String::from_utf8(encode(Timestamp::from_millis(1_764_001_848_190), "stopped")).unwrap();
        assert_eq!(text, "{\n  \"version\": 1,\n  \"closedAt\": 1764001848190,\n  \"state\": \"stopped\"\n}");
    }
}
