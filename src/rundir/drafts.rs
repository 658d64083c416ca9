//! Messages that are being written, kept in `subdeck/drafts/` of a run of ours so that they outlive the deck: one file a
//! step, for its owner alone, gone once the message is sent or thrown away.

use std::fs;
use std::io;

use serde_json::Value;

use super::control::{make, plain_folder};
use super::json::Obj;
use super::{RunDir, open, write};
use crate::run::{SteerMode, SteerRequest, StepId, Timestamp};

/// The largest draft that is read, in bytes: the largest message with every byte escaped, and its frame.
const MOST: u64 = 6 * SteerRequest::MAX_BYTES as u64 + 16 * 1024;

/// Keeps the draft of a step. A run without a folder of ours keeps none, which is no error.
///
/// # Errors
/// What the file system says.
pub fn keep(dir: &RunDir, step: StepId, mode: SteerMode, text: &str, now: Timestamp) -> io::Result<()> {
    if fs::symlink_metadata(dir.subdeck()).is_err() {
        return Ok(());
    }
    plain_folder(&dir.subdeck())?;
    make(&dir.drafts())?;
    let mut obj = Obj::new();
    obj.set("version", 1).set("step", step.flat()).set("mode", mode.as_str()).set("text", text);
    obj.set("ts", now.millis());
    write::replace(&file(dir, step), &obj.pretty())
}

/// Forgets the draft of a step.
///
/// # Errors
/// What the file system says; a draft that is not there is none.
pub fn forget(dir: &RunDir, step: StepId) -> io::Result<()> {
    match fs::remove_file(file(dir, step)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The drafts that are kept, by their steps. Files of others and what is no draft are left out.
#[must_use]
pub fn read(dir: &RunDir) -> Vec<(StepId, SteerMode, String)> {
    let Ok(entries) = fs::read_dir(dir.drafts()) else { return Vec::new() };
    let mut drafts: Vec<_> = entries.flatten().filter_map(|entry| one(&entry.path())).collect();
    drafts.sort_by_key(|(step, ..)| *step);
    drafts
}

fn one(path: &std::path::Path) -> Option<(StepId, SteerMode, String)> {
    let step: u32 = path.file_name()?.to_str()?.strip_suffix(".json")?.parse().ok()?;
    let bytes = open::read_at_most(&open::ours(path).ok()?, MOST).ok()?;
    let value: Value = serde_json::from_slice(&bytes).ok()?;
    let mode = value.get("mode").and_then(Value::as_str).and_then(SteerMode::parse).unwrap_or_default();
    Some((StepId(step), mode, value.get("text")?.as_str()?.to_owned()))
}

fn file(dir: &RunDir, step: StepId) -> std::path::PathBuf {
    dir.drafts().join(format!("{}.json", step.flat()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_764_001_848_190);

    #[test]
    fn a_draft_is_kept_for_its_owner_alone_until_it_is_forgotten() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path());
        fs::create_dir(dir.subdeck()).unwrap();
        keep(&dir, StepId(3), SteerMode::FollowUp, "one\ntwo \u{1b}[2J", NOW).unwrap();
        keep(&dir, StepId(1), SteerMode::Steer, "first", NOW).unwrap();
        keep(&dir, StepId(1), SteerMode::Steer, "second", NOW).unwrap();
        let expected = vec![
            (StepId(1), SteerMode::Steer, "second".to_owned()),
            (StepId(3), SteerMode::FollowUp, "one\ntwo \u{1b}[2J".to_owned()),
        ];
        assert_eq!(read(&dir), expected);
        let mode = |path: std::path::PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(file(&dir, StepId(3))), mode(dir.drafts())), (0o600, 0o700));
        forget(&dir, StepId(3)).unwrap();
        forget(&dir, StepId(3)).unwrap();
        assert_eq!(read(&dir).len(), 1);
    }

    #[test]
    fn what_is_no_draft_is_left_out() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path());
        keep(&dir, StepId(0), SteerMode::Steer, "a run of others", NOW).unwrap();
        assert!(!dir.subdeck().exists(), "nothing is made in a run of others");
        fs::create_dir_all(dir.drafts()).unwrap();
        for (name, text) in [
            ("0.json", "{"),
            ("1.json", "[]"),
            ("2.json", "{\"text\":5}"),
            ("x.json", "{\"text\":\"a\"}"),
            ("3.txt", ""),
        ] {
            fs::write(dir.drafts().join(name), text).unwrap();
        }
        std::os::unix::fs::symlink("0.json", dir.drafts().join("4.json")).unwrap();
        assert!(read(&dir).is_empty());
    }
}
