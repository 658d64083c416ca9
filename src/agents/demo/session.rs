//! The session of the demo agent, in the form of pi's: a header, then one entry a message. It is what lets a demo step go
//! on after an interrupt. Where the lines are kept is known to who opens it.

use std::io::Write;

use serde_json::{Value, json};

/// A session, kept somewhere or only in memory.
pub struct Session {
    kept: Option<Box<dyn Write>>,
    /// The id of the session.
    pub id: String,
    /// How many turns of the scene earlier processes finished; `None` in a new session.
    pub resumed_at: Option<usize>,
    entries: u64,
}

impl Session {
    /// A session that nobody keeps.
    #[must_use]
    pub const fn in_memory(id: String) -> Self {
        Self { kept: None, id, resumed_at: None, entries: 0 }
    }

    /// Goes on with the session whose lines these are, or begins one where there are none; more lines are written to `kept`.
    /// What cannot be read in an old one is skipped.
    #[must_use]
    pub fn over(old: &str, kept: Box<dyn Write>, new_id: String, now_ms: i64, cwd: &str) -> Self {
        let mut session = Self { kept: Some(kept), id: new_id, resumed_at: None, entries: 0 };
        for entry in old.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            session.entries += 1;
            match entry.get("type").and_then(Value::as_str) {
                Some("session") => {
                    if let Some(id) = entry.get("id").and_then(Value::as_str) {
                        id.clone_into(&mut session.id);
                    }
                }
                Some("message") => {
                    session.resumed_at.get_or_insert(0);
                }
                Some("custom") => {
                    let turn = entry.pointer("/data/turn").and_then(Value::as_u64);
                    session.resumed_at = turn.and_then(|turn| usize::try_from(turn).ok()).or(session.resumed_at);
                }
                _ => {}
            }
        }
        if session.entries == 0 {
            let at = iso(now_ms);
            session.append(json!({"type": "session", "version": 3, "id": session.id, "timestamp": at, "cwd": cwd}));
        }
        session
    }

    /// Adds a message.
    pub(super) fn message(&mut self, message: &Value, now_ms: i64) {
        self.entry(json!({"type": "message", "message": message}), now_ms);
    }

    /// Notes that a turn is finished.
    pub(super) fn turn_done(&mut self, turns: usize, now_ms: i64) {
        self.entry(json!({"type": "custom", "customType": "demo", "data": {"turn": turns}}), now_ms);
    }

    fn entry(&mut self, mut entry: Value, now_ms: i64) {
        if let Some(map) = entry.as_object_mut() {
            let parent = if self.entries > 1 { json!(format!("e{}", self.entries - 1)) } else { Value::Null };
            map.insert("id".into(), json!(format!("e{}", self.entries)));
            map.insert("parentId".into(), parent);
            map.insert("timestamp".into(), json!(iso(now_ms)));
        }
        self.append(entry);
    }

    fn append(&mut self, entry: Value) {
        self.entries += 1;
        if let Some(kept) = &mut self.kept {
            // The demo goes on without its memory when the disk is full.
            let _ = kept.write_all(format!("{entry}\n").as_bytes());
        }
    }
}

fn iso(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
}
