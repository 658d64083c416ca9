//! What the runner says for its children in the control folder: whether they can be steered (run-directory 3.5), and
//! the answers to requests of ours (run-directory 3.9).

use std::io;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::RunDir;
use super::control_own::{answer_name, answers};
use super::json::Obj;
use super::write::{Disk, Op, RealDisk};
use crate::run::{Steerable, StepId, TargetState, Timestamp};

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

/// The longest text of an acknowledgement, in characters (run-directory 3.6).
const WORDS: usize = 1000;

/// Says what became of a message, as the child would: into `steer-acks/<flat>/`, under a name that sorts by request,
/// time and state (run-directory 3.1, 3.6). States that no child tells are not written.
///
/// # Errors
/// What the file system says.
pub fn acknowledge(
    dir: &RunDir,
    step: StepId,
    request: &str,
    state: TargetState,
    message: Option<&str>,
    now: Timestamp,
) -> io::Result<()> {
    let (rank, status) = match state {
        TargetState::Queued => (0, Some("queued")),
        TargetState::Delivered => (1, Some("delivered")),
        TargetState::Failed => (2, None),
        _ => return Ok(()),
    };
    let mut obj = Obj::new();
    obj.set("type", "steer-ack").set("protocolVersion", 1).set("requestId", request).set("index", step.flat());
    obj.set("ts", now.millis()).set("state", state.as_str()).opt("deliveryStatus", status);
    obj.opt("message", message.map(|m| m.chars().take(WORDS).collect::<String>()));
    let folder = dir.control().join("steer-acks").join(step.flat().to_string());
    let stem = format!("{}-{:013}-{rank}-{}", URL_SAFE_NO_PAD.encode(request), now.millis().max(0), state.as_str());
    let free = |n: u32| folder.join(if n == 0 { format!("{stem}.json") } else { format!("{stem}-{n}.json") });
    let path = (0..1000).map(free).find(|path| !path.exists());
    let path = path.ok_or_else(|| io::Error::other("too many acknowledgements of one name"))?;
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
    RealDisk.perform(&Op::Replace(answers(dir).join(answer_name(request)), obj.pretty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rundir::request::{Ack, ControlRequest};
    use crate::rundir::request_read::{ack, capability};

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
    fn an_acknowledgement_is_read_back_and_its_name_is_that_of_the_reference() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path());
        let at = Timestamp::from_micros(1_760_000_000_123_700);
        let long = "x".repeat(1200);
        for state in [TargetState::Queued, TargetState::Queued, TargetState::Delivered, TargetState::Failed] {
            acknowledge(&dir, StepId(3), "r1", state, Some(&long), at).unwrap();
        }
        acknowledge(&dir, StepId(3), "r1", TargetState::Routed, None, at).unwrap();
        let folder = dir.control().join("steer-acks/3");
        let mut names: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        let want = ["0-queued-1.json", "0-queued.json", "1-delivered.json", "2-failed.json"];
        assert_eq!(names, want.map(|end| format!("cjE-1760000000123-{end}")));
        let bytes = std::fs::read(folder.join(&names[2])).unwrap();
        let want = Ack {
            id: "r1".into(),
            step: StepId(3),
            at: Timestamp::from_millis(1_760_000_000_123),
            state: TargetState::Delivered,
            message: Some("x".repeat(1000)),
        };
        assert_eq!(ack(&bytes), Some(ControlRequest::Ack(want)));
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!((&value["protocolVersion"], &value["deliveryStatus"]), (&1.into(), &"delivered".into()));
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
