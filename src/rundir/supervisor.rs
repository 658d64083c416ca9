//! The folder that children of pi-subagents reach their supervisor by (run-directory 1.1): a request is a file in
//! `requests/`, the reply to it one in `replies/` under the same name. One folder serves all children of a run; each of
//! them is told of it by a variable.

use std::io;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::RunDir;
use super::json::Obj;
use super::look::Look;
use super::request::ControlRequest;
use super::write::{Disk, Op, RealDisk};
use crate::run::{StepId, Timestamp};

/// The longest name of a request, in characters.
const LONGEST_ID: usize = 128;

/// What a child wants from its supervisor. Texts from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SupervisorRequest {
    /// Its id, which can be part of a file name.
    pub id: String,
    /// Which child says that it asks.
    pub step: StepId,
    /// What it says.
    pub message: String,
    /// It waits for a reply.
    pub waits: bool,
    /// It goes on without one then.
    pub until: Option<Timestamp>,
    /// The call that waits, where it says so.
    pub call: Option<String>,
}

/// The folder that a child is told of.
#[must_use]
pub fn channel(dir: &RunDir) -> PathBuf {
    dir.subdeck().join("supervisor")
}

/// Where its requests come in.
pub(super) fn requests(dir: &RunDir) -> PathBuf {
    channel(dir).join("requests")
}

/// Reads a request.
pub(super) fn read(bytes: &[u8]) -> Result<ControlRequest, String> {
    let object: Map<String, Value> =
        serde_json::from_slice(bytes).map_err(|error| format!("it is no JSON object: {error}"))?;
    let look = Look(&object);
    if look.str("type") != Some("subagent.supervisor.request") {
        return Err("its type is not \"subagent.supervisor.request\"".into());
    }
    let id = look.text("id").filter(|id| is_name(id)).ok_or("its id cannot be the name of a file")?;
    let reason = look.str("reason").unwrap_or_default();
    let waits = match reason {
        "need_decision" | "interview_request" => true,
        "progress_update" => false,
        other => return Err(format!("its reason {other:?} is unknown")),
    };
    let mut message = told(look.str("message").unwrap_or_default()).to_owned();
    if let Some(interview) = object.get("interview").filter(|_| reason == "interview_request") {
        // It wants an answer of this shape, so whoever answers has to see it.
        message = format!("{message}\nAnswer with JSON for: {interview}").trim_start().to_owned();
    }
    if message.is_empty() {
        return Err("it says nothing".into());
    }
    let until = look.time("expiresAt").filter(|_| waits);
    let step = look.step("childIndex").ok_or("it names no child")?;
    let call = look.text("toolCallId").filter(|call| !call.is_empty());
    Ok(ControlRequest::Supervisor(SupervisorRequest { id, step, message, waits, until, call }))
}

fn is_name(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=LONGEST_ID).contains(&id.len()) && id.chars().all(plain) && !id.starts_with(['.', '-'])
}

/// Older children put a head of several lines in front, which says who they are; that is known.
fn told(message: &str) -> &str {
    let head = message.starts_with("Subagent ") && message.contains("\nChild index: ");
    let body = head.then(|| message.split_once("\n\n")).flatten().map_or(message, |(_, body)| body);
    body.trim()
}

/// Writes the reply to a request.
///
/// # Errors
/// What the file system says.
pub fn reply(dir: &RunDir, id: &str, message: &str, now: Timestamp) -> io::Result<()> {
    let mut obj = Obj::new();
    obj.set("type", "subagent.supervisor.reply").set("requestId", id).set("createdAt", now.millis());
    obj.set("message", message);
    let path = channel(dir).join("replies").join(format!("{id}.json"));
    RealDisk.perform(&Op::Replace(path, obj.pretty()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(change: impl FnOnce(&mut Map<String, Value>)) -> Result<SupervisorRequest, String> {
        let mut value = json!({
            "type": "subagent.supervisor.request", "id": "0a-1", "createdAt": 1, "expiresAt": 600_001,
            "reason": "need_decision", "message": "Which one?", "expectsReply": true, "runId": "r", "agent": "worker",
            "childIndex": 2,
        });
        change(value.as_object_mut().unwrap());
        match read(value.to_string().as_bytes())? {
            ControlRequest::Supervisor(request) => Ok(request),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn requests_are_read() {
        let plain = request(|_| {}).unwrap();
        let expected = SupervisorRequest {
            id: "0a-1".into(),
            step: StepId(2),
            message: "Which one?".into(),
            waits: true,
            until: Some(Timestamp::from_millis(600_001)),
            call: None,
        };
        assert_eq!(plain, expected);
        let told = request(|o| drop(o.insert("reason".into(), json!("progress_update")))).unwrap();
        assert!(!told.waits && told.until.is_none());
        let old = "Subagent needs a supervisor decision.\nRun: r\nAgent: worker\nChild index: 2\n\nWhich\n\none?";
        assert_eq!(request(|o| drop(o.insert("message".into(), json!(old)))).unwrap().message, "Which\n\none?");
        let interview = request(|o| {
            o.insert("reason".into(), json!("interview_request"));
            o.insert("message".into(), json!(""));
            o.insert("interview".into(), json!({"title": "Scope"}));
            o.insert("toolCallId".into(), json!("c1"));
        });
        let interview = interview.unwrap();
        assert_eq!(interview.message, r#"Answer with JSON for: {"title":"Scope"}"#);
        assert_eq!(interview.call.as_deref(), Some("c1"));
    }

    #[test]
    fn what_is_no_request_says_why() {
        let wrong = |key: &str, value: Value| request(|o| drop(o.insert(key.into(), value))).unwrap_err();
        assert!(wrong("type", json!("steer")).contains("type"));
        assert!(wrong("reason", json!("boredom")).contains("boredom"));
        assert!(wrong("message", json!("  ")).contains("says nothing"));
        assert!(wrong("childIndex", json!("two")).contains("no child"));
        for id in ["", "../up", "a/b", ".hidden", "-x", "a b", &"x".repeat(129)] {
            assert!(wrong("id", json!(id)).contains("name of a file"), "{id}");
        }
        assert!(read(b"[]").is_err() && read(b"{").is_err());
    }

    #[test]
    fn a_reply_lies_where_the_child_looks_for_it() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path().join("run"));
        dir.make_folders().unwrap();
        reply(&dir, "0a-1", "the \"left\" one", Timestamp::from_millis(5)).unwrap();
        let text = std::fs::read_to_string(channel(&dir).join("replies/0a-1.json")).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            value,
            json!({"type": "subagent.supervisor.reply", "requestId": "0a-1", "createdAt": 5, "message": "the \"left\" one"})
        );
    }
}
