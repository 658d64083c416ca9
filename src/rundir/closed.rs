//! The small documents of the control folder that a runner writes: the closed inbox (run-directory 3.7) and what its
//! children can take (run-directory 3.5).

use std::path::PathBuf;

use super::RunDir;
use super::json::Obj;
use super::write::Op;
use crate::run::{RunPhase, StepId, Timestamp};

/// Says that no more messages are taken.
#[must_use]
pub fn close_inbox(dir: &RunDir, phase: &RunPhase, at: Timestamp) -> Op {
    let mut obj = Obj::new();
    obj.set("version", 1).set("closedAt", at.millis()).set("state", phase.as_str());
    Op::Replace(dir.inbox_closed(), obj.pretty())
}

/// Whether the inbox is closed.
#[must_use]
pub fn is_closed(dir: &RunDir) -> bool {
    dir.inbox_closed().exists()
}

/// Says for a child whether it can be steered, for tools that look at these files.
#[must_use]
pub fn capability(dir: &RunDir, step: StepId, pid: u32, supported: bool, at: Timestamp) -> Op {
    let mut obj = Obj::new();
    obj.set("type", "steer-capability").set("protocolVersion", 1).set("index", step.flat()).set("pid", pid);
    obj.set("readyAt", at.millis()).set("supported", supported);
    let path: PathBuf = dir.control().join("steer-capabilities").join(format!("{}.json", step.flat()));
    Op::Replace(path, obj.pretty())
}

/// The answer to a request of ours (run-directory 3.9): done, or refused with the reason.
#[must_use]
pub fn answer(dir: &RunDir, request: &str, refused: Option<&str>, at: Timestamp) -> Op {
    use base64::Engine;
    let mut obj = Obj::new();
    obj.set("id", request).set("ts", at.millis());
    obj.set("state", if refused.is_some() { "refused" } else { "done" }).opt("reason", refused);
    let name = format!("{}.json", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(request));
    Op::Replace(dir.control().join("subdeck-acks").join(name), obj.pretty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Steerable;
    use crate::rundir::request;

    fn written(op: Op) -> (PathBuf, serde_json::Value) {
        match op {
            Op::Replace(path, bytes) => (path, serde_json::from_slice(&bytes).unwrap()),
            other => panic!("{other:?}"),
        }
    }

    const AT: Timestamp = Timestamp::from_millis(1_764_001_848_190);

    #[test]
    fn the_documents_are_those_of_the_specification() {
        let dir = RunDir::at("/r");
        let (path, value) = written(close_inbox(&dir, &RunPhase::Stopped, AT));
        assert_eq!(path, dir.inbox_closed());
        assert_eq!(value, serde_json::json!({"version": 1, "closedAt": 1_764_001_848_190_i64, "state": "stopped"}));
        let (path, value) = written(answer(&dir, "r1", Some("too late"), AT));
        assert!(path.ends_with("control/subdeck-acks/cjE.json"));
        assert_eq!(value["state"], "refused");
        let Op::Replace(path, bytes) = capability(&dir, StepId(3), 7, true, AT) else { panic!("a document") };
        assert!(path.ends_with("control/steer-capabilities/3.json"));
        let read = request::capability(&bytes);
        assert_eq!(read, Some(request::ControlRequest::Capability { step: StepId(3), steerable: Steerable::Yes }));
    }
}
