//! Messages that are being written, kept so that they outlive the deck: one file a step, for its owner alone, gone once the
//! message is sent or thrown away. Those for a run of ours that goes on are in `subdeck/drafts/` of its directory. Those for
//! a run of others, or one that is over, into which nothing of ours is written, are in the folder of the user's state.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::control::{make, plain_folder};
use super::json::Obj;
use super::paths::private_dir;
use super::segment::sha256_hex;
use super::{RunDir, open, write};
use crate::run::{SteerMode, SteerRequest, StepId, Timestamp};

/// The largest draft that is read, in bytes: the largest message with every byte escaped, and its frame.
const MOST: u64 = 6 * SteerRequest::MAX_BYTES as u64 + 16 * 1024;
/// Drafts that are kept aside are let go when nobody has touched them for this long.
const STALE: Duration = Duration::from_secs(90 * 24 * 3600);
/// No more runs than these are looked at for stale drafts.
const LOOKED_AT: usize = 1000;

/// A message that is being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// For which step.
    pub step: StepId,
    /// How it is to arrive.
    pub mode: SteerMode,
    /// What it says so far.
    pub text: String,
}

/// The drafts of one run.
#[derive(Clone, Debug)]
pub struct Drafts {
    run: RunDir,
    /// The folder for those of this run in the user's state, and that folder itself.
    aside: Option<(PathBuf, PathBuf)>,
}

impl Drafts {
    /// Those of a run. `state` is the folder of the user's state; without one there is no place beside the run.
    #[must_use]
    pub fn of(run: &RunDir, state: Option<&Path>) -> Self {
        let path = fs::canonicalize(run.path()).unwrap_or_else(|_| run.path().to_owned());
        let name = sha256_hex(path.as_os_str().as_encoded_bytes());
        let aside = state.map(|state| (state.join("drafts").join(name), state.to_owned()));
        Self { run: run.clone(), aside }
    }

    /// Keeps the draft of a step, in the run where that is `open` for it and one of ours.
    ///
    /// # Errors
    /// What the file system says; `NotFound` where there is no place for it.
    pub fn keep(&self, open: bool, kept: &Kept, now: Timestamp) -> io::Result<()> {
        if open && fs::symlink_metadata(self.run.subdeck()).is_ok() {
            plain_folder(&self.run.subdeck())?;
            make(&self.run.drafts())?;
            return self.write(&self.run.drafts(), kept, now);
        }
        self.keep_aside(kept, now)
    }

    /// Forgets the draft of a step; in a run that is not `open` its file stays and counts no more.
    ///
    /// # Errors
    /// What the file system says; a draft that is not there is none.
    pub fn forget(&self, open: bool, step: StepId, now: Timestamp) -> io::Result<()> {
        if let Some((folder, _)) = &self.aside {
            remove(folder, step)?;
        }
        if open {
            return remove(&self.run.drafts(), step);
        }
        if self.aside.is_none() || one(&file(&self.run.drafts(), step)).is_none() {
            return Ok(());
        }
        self.keep_aside(&Kept { step, mode: SteerMode::default(), text: String::new() }, now)
    }

    /// The drafts that are kept, by their steps; the newer one where there are two. Files of others and what is no draft
    /// are left out.
    #[must_use]
    pub fn read(&self) -> Vec<Kept> {
        let aside = self.aside.as_ref().map(|(folder, _)| folder.clone());
        let mut newest: BTreeMap<StepId, (i64, Kept)> = BTreeMap::new();
        for folder in aside.into_iter().chain([self.run.drafts()]) {
            let Ok(entries) = fs::read_dir(folder) else { continue };
            for (at, kept) in entries.flatten().filter_map(|entry| one(&entry.path())) {
                if newest.get(&kept.step).is_none_or(|(known, _)| *known < at) {
                    newest.insert(kept.step, (at, kept));
                }
            }
        }
        newest.into_values().map(|(_, kept)| kept).filter(|kept| !kept.text.is_empty()).collect()
    }

    fn keep_aside(&self, kept: &Kept, now: Timestamp) -> io::Result<()> {
        let Some((folder, state)) = &self.aside else {
            let what = "there is no home folder to keep it in; set HOME or XDG_STATE_HOME";
            return Err(io::Error::new(io::ErrorKind::NotFound, what));
        };
        if !folder.is_dir() {
            private_dir(state)?;
            make(&state.join("drafts"))?;
            let_go_of_old(&state.join("drafts"));
            make(folder)?;
        }
        self.write(folder, kept, now)
    }

    fn write(&self, folder: &Path, kept: &Kept, now: Timestamp) -> io::Result<()> {
        let mut obj = Obj::new();
        obj.set("version", 1).set("run", self.run.path().display().to_string()).set("step", kept.step.flat());
        obj.set("mode", kept.mode.as_str()).set("text", kept.text.as_str()).set("ts", now.millis());
        write::replace(&file(folder, kept.step), &obj.pretty())
    }
}

/// Removes the drafts of runs for which nobody wrote anything in a long time: of runs that are gone nobody else would.
fn let_go_of_old(drafts: &Path) {
    let Ok(entries) = fs::read_dir(drafts) else { return };
    for entry in entries.flatten().take(LOOKED_AT) {
        let touched = entry.metadata().and_then(|meta| meta.modified());
        let age = touched.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        if age.is_some_and(|age| age > STALE) {
            // What cannot be removed stays until somebody can.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn remove(folder: &Path, step: StepId) -> io::Result<()> {
    match fs::remove_file(file(folder, step)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A draft and when it was written, in milliseconds since the epoch.
fn one(path: &Path) -> Option<(i64, Kept)> {
    let step: u32 = path.file_name()?.to_str()?.strip_suffix(".json")?.parse().ok()?;
    let bytes = open::read_at_most(&open::ours(path).ok()?, MOST).ok()?;
    let value: Value = serde_json::from_slice(&bytes).ok()?;
    let mode = value.get("mode").and_then(Value::as_str).and_then(SteerMode::parse).unwrap_or_default();
    let at = value.get("ts").and_then(Value::as_i64).unwrap_or_default();
    Some((at, Kept { step: StepId(step), mode, text: value.get("text")?.as_str()?.to_owned() }))
}

fn file(folder: &Path, step: StepId) -> PathBuf {
    folder.join(format!("{}.json", step.flat()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_764_001_848_190);
    const LATER: Timestamp = Timestamp::from_millis(1_764_001_848_191);

    fn draft(step: u32, text: &str) -> Kept {
        Kept { step: StepId(step), mode: SteerMode::FollowUp, text: text.to_owned() }
    }

    struct Place {
        temp: tempfile::TempDir,
        run: RunDir,
        drafts: Drafts,
    }

    /// A run of ours or of others, and a folder for the user's state that is not made yet.
    fn place(ours: bool) -> Place {
        let temp = tempfile::tempdir().unwrap();
        let run = RunDir::at(temp.path().join("run"));
        fs::create_dir(run.path()).unwrap();
        if ours {
            fs::create_dir(run.subdeck()).unwrap();
        }
        let drafts = Drafts::of(&run, Some(&temp.path().join("state/subdeck")));
        Place { temp, run, drafts }
    }

    fn aside(place: &Place) -> Vec<PathBuf> {
        let folders = fs::read_dir(place.temp.path().join("state/subdeck/drafts")).into_iter().flatten();
        folders.map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn a_draft_is_kept_for_its_owner_alone_until_it_is_forgotten() {
        let Place { temp, run, drafts } = place(true);
        drafts.keep(true, &draft(3, "one\ntwo \u{1b}[2J"), NOW).unwrap();
        drafts.keep(true, &draft(1, "first"), NOW).unwrap();
        drafts.keep(true, &draft(1, "second"), NOW).unwrap();
        assert_eq!(drafts.read(), [draft(1, "second"), draft(3, "one\ntwo \u{1b}[2J")]);
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(file(&run.drafts(), StepId(3))), mode(run.drafts())), (0o600, 0o700));
        drafts.forget(true, StepId(3), NOW).unwrap();
        drafts.forget(true, StepId(3), NOW).unwrap();
        assert_eq!(drafts.read().len(), 1);
        assert!(!temp.path().join("state").exists(), "it is with the run and nowhere else");
    }

    #[test]
    fn a_run_of_others_gets_none_but_it_is_kept_aside() {
        let place = place(false);
        place.drafts.keep(true, &draft(0, "for others"), NOW).unwrap();
        assert_eq!(fs::read_dir(place.run.path()).unwrap().count(), 0, "nothing is made in a run of others");
        let [folder] = aside(&place).try_into().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&file(&folder, StepId(0)))), (0o700, 0o600));
        // Also by another way to the same directory.
        std::os::unix::fs::symlink(place.run.path(), place.temp.path().join("link")).unwrap();
        let state = place.temp.path().join("state/subdeck");
        let linked = Drafts::of(&RunDir::at(place.temp.path().join("link")), Some(&state));
        assert_eq!(linked.read(), [draft(0, "for others")]);
        let other = Drafts::of(&RunDir::at(place.temp.path().join("other")), Some(&state));
        assert!(other.read().is_empty());
        place.drafts.forget(true, StepId(0), LATER).unwrap();
        assert!(place.drafts.read().is_empty());
        // Without a folder for the state there is no place for it.
        let nowhere = Drafts::of(&place.run, None);
        assert_eq!(nowhere.keep(true, &draft(0, "x"), NOW).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(nowhere.read().is_empty());
    }

    #[test]
    fn what_was_kept_in_a_run_is_changed_and_forgotten_aside_once_that_is_over() {
        let place = place(true);
        place.drafts.keep(true, &draft(0, "begun"), NOW).unwrap();
        let before = fs::read(file(&place.run.drafts(), StepId(0))).unwrap();
        place.drafts.keep(false, &draft(0, "begun and more"), LATER).unwrap();
        assert_eq!(place.drafts.read(), [draft(0, "begun and more")]);
        place.drafts.forget(false, StepId(0), LATER).unwrap();
        assert!(place.drafts.read().is_empty(), "what is in the run does not come back");
        assert_eq!(fs::read(file(&place.run.drafts(), StepId(0))).unwrap(), before);
    }

    #[test]
    fn what_nobody_touched_for_long_is_let_go() {
        let place = place(false);
        place.drafts.keep(true, &draft(0, "new"), NOW).unwrap();
        let [folder] = aside(&place).try_into().unwrap();
        fs::File::open(&folder).unwrap().set_modified(SystemTime::now() - STALE - Duration::from_secs(60)).unwrap();
        let state = place.temp.path().join("state/subdeck");
        Drafts::of(&RunDir::at("/another"), Some(&state)).keep(true, &draft(0, "x"), NOW).unwrap();
        assert!(place.drafts.read().is_empty());
        assert_eq!(aside(&place).len(), 1);
    }

    #[test]
    fn what_is_no_draft_is_left_out() {
        let Place { run, drafts, .. } = place(true);
        fs::create_dir_all(run.drafts()).unwrap();
        for (name, text) in [
            ("0.json", "{"),
            ("1.json", "[]"),
            ("2.json", "{\"text\":5}"),
            ("x.json", "{\"text\":\"a\"}"),
            ("3.txt", ""),
        ] {
            fs::write(run.drafts().join(name), text).unwrap();
        }
        std::os::unix::fs::symlink("0.json", run.drafts().join("4.json")).unwrap();
        assert!(drafts.read().is_empty());
    }
}
