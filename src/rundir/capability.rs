//! What the runner says for its children in the control folder: whether they can be steered (run-directory 3.5), and
//! the answers to requests of ours (run-directory 3.9).

use std::io;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::RunDir;
use super::json::Obj;
use super::write::{Disk, Op, RealDisk};
use crate::run::{Steerable, StepId, Timestamp};

/// Says whether a child can be steered, for tools that look at these files; what is not known is not said.
///
/// # Errors
/// What the file system says.
pub fn write(dir: &RunDir, step: StepId, pid: u32, steerable: &Steerable, now: Timestamp) -> io::Result<()> {
    let supported = match steerable {
        Steerable::Unknown => return Ok(()),
        Steerable::Yes => true,
        Steerable::No(_) => false,
    };
    let mut obj = Obj::new();
    obj.set("type", "steer-capability").set("protocolVersion", 1).set("index", step.flat()).set("pid", pid);
    obj.set("readyAt", now.millis()).set("supported", supported);
    let path = dir.control().join("steer-capabilities").join(format!("{}.json", step.flat()));
    RealDisk.perform(&Op::Replace(path, obj.pretty()))
}

/// Answers a request of ours: done, or refused with the reason.
///
/// # Errors
/// What the file system says.
pub fn answer(dir: &RunDir, request: &str, refused: Option<&str>, now: Timestamp) -> io::Result<()> {
    let mut obj = Obj::new();
    obj.set("id", request).set("ts", now.millis());
    obj.set("state", if refused.is_some() { "refused" } else { "done" }).opt("reason", refused);
    let name = format!("{}.json", URL_SAFE_NO_PAD.encode(request));
    RealDisk.perform(&Op::Replace(dir.control().join("subdeck-acks").join(name), obj.pretty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rundir::request::{ControlRequest, capability};

    const NOW: Timestamp = Timestamp::from_millis(1_764_001_848_190);

    #[test]
    fn a_capability_is_read_back() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path());
        write(&dir, StepId(3), 7, &Steerable::Yes, NOW).unwrap();
        write(&dir, StepId(4), 7, &Steerable::Unknown, NOW).unwrap();
        let folder = dir.control().join("steer-capabilities");
        let read = capability(&std::fs::read(folder.join("3.json")).unwrap());
        assert_eq!(read, Some(ControlRequest::Capability { step: StepId(3), steerable: Steerable::Yes }));
        assert!(!folder.join("4.json").exists());
    }

    #[test]
    fn a_request_of_ours_is_answered() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path());
        answer(&dir, "r1", Some("too late"), NOW).unwrap();
        let bytes = std::fs::read(dir.control().join("subdeck-acks/cjE.json")).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let want =
            serde_json::json!({"id": "r1", "ts": 1_764_001_848_190_i64, "state": "refused", "reason": "too late"});
        assert_eq!(value, want);
    }
}
