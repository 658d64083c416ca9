//! Messages that are being written, kept so that they outlive the deck: for its owner alone, gone once the message is sent or
//! thrown away. Each deck has a file of its own for each step, so that none writes over what another one keeps; what an
//! earlier one left unsent is taken over by the deck that goes on with it. Those for a run of ours that goes on are in
//! `subdeck/drafts/` of its directory. Those for a run of others, or one that is over, into which nothing of ours is written,
//! are in the folder of the user's state.

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
/// No more drafts than these are taken over for a step at once; the others wait for the next deck.
const TAKEN: usize = 16;
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

/// What other decks left unsent for a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsent {
    /// The message; of several one below the other, the newest last.
    pub kept: Kept,
    /// How many there are.
    pub many: usize,
    /// When the newest of them was changed last.
    pub at: Timestamp,
}

/// What other decks have written for a step since it was looked at last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// This deck has a draft of its own for it; they are beside that.
    Beside(Unsent),
    /// They stand for what this deck has, which it only read of them.
    Instead(Unsent),
    /// This deck has none in a file; they go before what it has.
    Before(Unsent),
}

/// The drafts of one run, for one deck.
#[derive(Clone, Debug)]
pub struct Drafts {
    run: RunDir,
    /// The folder for those of this run in the user's state, and that folder itself.
    aside: Option<(PathBuf, PathBuf)>,
    /// By which the files of this deck are told from those of others.
    deck: String,
    /// What was read of others, and still is in their files.
    taken: BTreeMap<StepId, Vec<Leaf>>,
}

/// A draft in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Leaf {
    /// The name of the file.
    name: String,
    /// When it was written, in milliseconds since the epoch.
    at: i64,
    kept: Kept,
}

impl Drafts {
    /// Those of a run. `state` is the folder of the user's state; without one there is no place beside the run. `deck` is
    /// a word that no other deck has.
    #[must_use]
    pub fn of(run: &RunDir, state: Option<&Path>, deck: &str) -> Self {
        let path = fs::canonicalize(run.path()).unwrap_or_else(|_| run.path().to_owned());
        let name = sha256_hex(path.as_os_str().as_encoded_bytes());
        let aside = state.map(|state| (state.join("drafts").join(name), state.to_owned()));
        Self { run: run.clone(), aside, deck: deck.to_owned(), taken: BTreeMap::new() }
    }

    /// Keeps the draft of a step, in the run where that is `open` for it and one of ours. It stands for what was read of
    /// others, which is let go of where they have not changed it since.
    ///
    /// # Errors
    /// What the file system says; `NotFound` where there is no place for it.
    pub fn keep(&mut self, open: bool, kept: &Kept, now: Timestamp) -> io::Result<()> {
        let name = self.own(kept.step);
        if open && fs::symlink_metadata(self.run.subdeck()).is_ok() {
            plain_folder(&self.run.subdeck())?;
            make(&self.run.drafts())?;
            self.write(&self.run.drafts(), &name, kept, now)?;
        } else {
            self.keep_aside(&name, kept, now)?;
        }
        self.let_go(open, kept.step, now)
    }

    /// Forgets the draft of a step, and what was read of others for it; in a run that is not `open` their files stay and
    /// count no more.
    ///
    /// # Errors
    /// What the file system says; a draft that is not there is none.
    pub fn forget(&mut self, open: bool, step: StepId, now: Timestamp) -> io::Result<()> {
        self.drop_file(open, &self.own(step), step, now)?;
        self.let_go(open, step, now)
    }

    /// What other decks left unsent, by their steps. Files of others and what is no draft are left out.
    pub fn read(&mut self) -> Vec<Unsent> {
        let mut by_step: BTreeMap<StepId, Vec<Leaf>> = BTreeMap::new();
        for leaf in self.leaves().into_values().filter(|leaf| !leaf.kept.text.is_empty()) {
            by_step.entry(leaf.kept.step).or_default().push(leaf);
        }
        for leaves in by_step.values_mut() {
            leaves.sort_by_key(|leaf| leaf.at);
            leaves.drain(..leaves.len().saturating_sub(TAKEN));
        }
        self.taken = by_step;
        self.taken.values().filter_map(|leaves| joined(leaves)).collect()
    }

    /// Looks again for what other decks keep for a step. `held`: this deck has a draft of it that was in a file. What is
    /// given is taken over as what was read at first is, unless this deck has its own.
    pub fn look(&mut self, step: StepId, held: bool) -> Option<News> {
        let (name, leaves) = (self.own(step), self.leaves());
        let filled = |leaf: &&Leaf| leaf.kept.step == step && !leaf.kept.text.is_empty();
        let own = leaves.get(&name).filter(filled).is_some();
        let mut others: Vec<Leaf> = leaves.into_values().filter(|leaf| filled(&leaf) && leaf.name != name).collect();
        others.sort_by_key(|leaf| leaf.at);
        let taken = self.taken.get(&step).map(Vec::as_slice).unwrap_or_default();
        let new: Vec<Leaf> = others.iter().filter(|leaf| !taken.contains(leaf)).take(TAKEN).cloned().collect();
        let unsent = joined(&new)?;
        if own {
            return Some(News::Beside(unsent));
        }
        if held && !taken.is_empty() {
            let unsent = joined(&others)?;
            self.taken.insert(step, others);
            return Some(News::Instead(unsent));
        }
        self.taken.entry(step).or_default().extend(new);
        Some(News::Before(unsent))
    }

    /// All files by their names; of one that is in both folders the newer.
    fn leaves(&self) -> BTreeMap<String, Leaf> {
        let aside = self.aside.as_ref().map(|(folder, _)| folder.clone());
        let mut newest: BTreeMap<String, Leaf> = BTreeMap::new();
        for folder in aside.into_iter().chain([self.run.drafts()]) {
            let Ok(entries) = fs::read_dir(folder) else { continue };
            for leaf in entries.flatten().filter_map(|entry| one(&entry.path())) {
                if newest.get(&leaf.name).is_none_or(|known| known.at < leaf.at) {
                    newest.insert(leaf.name.clone(), leaf);
                }
            }
        }
        newest
    }

    /// Lets go of what was read of others for a step. What somebody has changed since is a draft of its own and stays.
    fn let_go(&mut self, open: bool, step: StepId, now: Timestamp) -> io::Result<()> {
        let taken = self.taken.get(&step).cloned().unwrap_or_default();
        if !taken.is_empty() {
            let known = self.leaves();
            let same = |leaf: &&Leaf| known.get(&leaf.name).is_some_and(|now| now.kept == leaf.kept);
            for leaf in taken.iter().filter(same) {
                self.drop_file(open, &leaf.name, step, now)?;
            }
        }
        self.taken.remove(&step);
        Ok(())
    }

    /// Removes a file, or says beside it that it counts no more.
    fn drop_file(&self, open: bool, name: &str, step: StepId, now: Timestamp) -> io::Result<()> {
        if let Some((folder, _)) = &self.aside {
            remove(&folder.join(name))?;
        }
        if open {
            return remove(&self.run.drafts().join(name));
        }
        if self.aside.is_none() || one(&self.run.drafts().join(name)).is_none() {
            return Ok(());
        }
        self.keep_aside(name, &Kept { step, mode: SteerMode::default(), text: String::new() }, now)
    }

    fn keep_aside(&self, name: &str, kept: &Kept, now: Timestamp) -> io::Result<()> {
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
        self.write(folder, name, kept, now)
    }

    fn write(&self, folder: &Path, name: &str, kept: &Kept, now: Timestamp) -> io::Result<()> {
        let mut obj = Obj::new();
        obj.set("version", 1).set("run", self.run.path().display().to_string()).set("step", kept.step.flat());
        obj.set("mode", kept.mode.as_str()).set("text", kept.text.as_str()).set("ts", now.millis());
        write::replace(&folder.join(name), &obj.pretty())
    }

    /// The file of this deck for a step.
    fn own(&self, step: StepId) -> String {
        format!("{}-{}.json", step.flat(), self.deck)
    }
}

/// Drafts of one step as one message, oldest first; what two of them say alike is there once.
fn joined(leaves: &[Leaf]) -> Option<Unsent> {
    let newest = leaves.last()?;
    let mut texts: Vec<&str> = Vec::new();
    for leaf in leaves {
        let text = leaf.kept.text.as_str();
        texts.retain(|known| *known != text);
        texts.push(text);
    }
    let kept = Kept { text: texts.join("\n\n"), ..newest.kept.clone() };
    Some(Unsent { kept, many: texts.len(), at: Timestamp::from_millis(newest.at) })
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

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The draft in a file, whose name begins with the number of its step.
fn one(path: &Path) -> Option<Leaf> {
    let name = path.file_name()?.to_str()?;
    let step: u32 = name.strip_suffix(".json")?.split('-').next()?.parse().ok()?;
    let bytes = open::read_at_most(&open::ours(path).ok()?, MOST).ok()?;
    let value: Value = serde_json::from_slice(&bytes).ok()?;
    let mode = value.get("mode").and_then(Value::as_str).and_then(SteerMode::parse).unwrap_or_default();
    let at = value.get("ts").and_then(Value::as_i64).unwrap_or_default();
    let text = value.get("text")?.as_str()?.to_owned();
    Some(Leaf { name: name.to_owned(), at, kept: Kept { step: StepId(step), mode, text } })
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

    impl Place {
        /// Another deck on the same run.
        fn another(&self, name: &str) -> Drafts {
            Drafts::of(&self.run, Some(&self.temp.path().join("state/subdeck")), name)
        }

        /// What a deck that comes now finds.
        fn found(&self) -> Vec<Kept> {
            self.another("later").read().into_iter().map(|unsent| unsent.kept).collect()
        }
    }

    /// A run of ours or of others, and a folder for the user's state that is not made yet.
    fn place(ours: bool) -> Place {
        let temp = tempfile::tempdir().unwrap();
        let run = RunDir::at(temp.path().join("run"));
        fs::create_dir(run.path()).unwrap();
        if ours {
            fs::create_dir(run.subdeck()).unwrap();
        }
        let drafts = Drafts::of(&run, Some(&temp.path().join("state/subdeck")), "a");
        Place { temp, run, drafts }
    }

    fn aside(place: &Place) -> Vec<PathBuf> {
        let folders = fs::read_dir(place.temp.path().join("state/subdeck/drafts")).into_iter().flatten();
        folders.map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn a_draft_is_kept_for_its_owner_alone_until_it_is_forgotten() {
        let mut place = place(true);
        place.drafts.keep(true, &draft(3, "one\ntwo \u{1b}[2J"), NOW).unwrap();
        place.drafts.keep(true, &draft(1, "first"), NOW).unwrap();
        place.drafts.keep(true, &draft(1, "second"), NOW).unwrap();
        assert_eq!(place.found(), [draft(1, "second"), draft(3, "one\ntwo \u{1b}[2J")]);
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = place.run.drafts();
        assert_eq!((mode(folder.join("3-a.json")), mode(folder)), (0o600, 0o700));
        place.drafts.forget(true, StepId(3), NOW).unwrap();
        place.drafts.forget(true, StepId(3), NOW).unwrap();
        assert_eq!(place.found().len(), 1);
        assert!(!place.temp.path().join("state").exists(), "it is with the run and nowhere else");
    }

    #[test]
    fn no_deck_writes_over_what_another_one_keeps() {
        for open in [true, false] {
            let mut place = place(true);
            let mut other = place.another("b");
            assert!(place.drafts.read().is_empty() && other.read().is_empty());
            place.drafts.keep(open, &draft(0, "of one"), NOW).unwrap();
            other.keep(open, &draft(0, "of the other"), LATER).unwrap();
            // Whoever comes later has both, the newer one last.
            let mut later = place.another("c");
            let both = draft(0, "of one\n\nof the other");
            assert_eq!(later.read(), [Unsent { kept: both.clone(), many: 2, at: LATER }]);
            // What is only read stays where it is.
            assert_eq!(place.found(), [both]);
            // One of them goes on with his own meanwhile: that is another draft than the one that was read.
            other.keep(open, &draft(0, "of the other, and more"), LATER).unwrap();
            later.keep(open, &draft(0, "of both"), LATER + Duration::from_millis(1)).unwrap();
            assert_eq!(place.found(), [draft(0, "of the other, and more\n\nof both")]);
            // What is sent takes along what was read for it, and nothing else.
            later.forget(open, StepId(0), LATER).unwrap();
            assert_eq!(place.found(), [draft(0, "of the other, and more")]);
            other.forget(open, StepId(0), LATER).unwrap();
            assert!(place.found().is_empty());
        }
    }

    #[test]
    fn what_another_deck_wrote_meanwhile_is_found_again() {
        let mut one = place(true);
        let mut other = one.another("b");
        let of = |text: &str, at| Unsent { kept: draft(0, text), many: 1, at };
        assert_eq!(one.drafts.look(StepId(0), false), None);
        one.drafts.keep(true, &draft(0, "thanks"), NOW).unwrap();
        assert_eq!(one.drafts.look(StepId(0), true), None, "its own is no news");
        // The other one goes on with it.
        other.read();
        other.keep(true, &draft(0, "thanks, and more"), LATER).unwrap();
        assert_eq!(one.drafts.look(StepId(0), true), Some(News::Before(of("thanks, and more", LATER))));
        assert_eq!(one.drafts.look(StepId(0), true), None, "it was told");
        // What was only read of it changes with it.
        other.keep(true, &draft(0, "no thanks"), LATER).unwrap();
        assert_eq!(one.drafts.look(StepId(0), true), Some(News::Instead(of("no thanks", LATER))));
        one.drafts.keep(true, &draft(0, "no thanks at all"), LATER).unwrap();
        assert_eq!(one.found(), [draft(0, "no thanks at all")]);
        // Both write.
        other.keep(true, &draft(0, "nothing"), LATER).unwrap();
        assert_eq!(one.drafts.look(StepId(0), true), Some(News::Beside(of("nothing", LATER))));
        one.drafts.forget(true, StepId(0), LATER).unwrap();
        assert_eq!(one.found(), [draft(0, "nothing")]);
    }

    #[test]
    fn what_an_earlier_deck_left_is_thrown_away_by_the_one_that_read_it() {
        let mut place = place(true);
        // As decks before this one called it, and as two that said the same.
        fs::create_dir(place.run.drafts()).unwrap();
        let old = "{\"text\": \"of old\", \"mode\": \"follow_up\", \"ts\": 5}";
        fs::write(place.run.drafts().join("2.json"), old).unwrap();
        place.another("b").keep(true, &draft(2, "of old"), NOW).unwrap();
        let unsent = place.drafts.read();
        assert_eq!((unsent[0].kept.text.as_str(), unsent[0].many, unsent.len()), ("of old", 1, 1));
        place.drafts.forget(true, StepId(2), LATER).unwrap();
        assert!(place.found().is_empty());
        assert_eq!(fs::read_dir(place.run.drafts()).unwrap().count(), 0);
    }

    #[test]
    fn a_run_of_others_gets_none_but_it_is_kept_aside() {
        let mut place = place(false);
        place.drafts.keep(true, &draft(0, "for others"), NOW).unwrap();
        assert_eq!(fs::read_dir(place.run.path()).unwrap().count(), 0, "nothing is made in a run of others");
        let [folder] = aside(&place).try_into().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join("0-a.json"))), (0o700, 0o600));
        // Also by another way to the same directory.
        std::os::unix::fs::symlink(place.run.path(), place.temp.path().join("link")).unwrap();
        let state = place.temp.path().join("state/subdeck");
        let at = |name: &str| Drafts::of(&RunDir::at(place.temp.path().join(name)), Some(&state), "b").read();
        assert_eq!(at("link")[0].kept, draft(0, "for others"));
        assert!(at("other").is_empty());
        place.drafts.forget(true, StepId(0), LATER).unwrap();
        assert!(place.found().is_empty());
        // Without a folder for the state there is no place for it.
        let mut nowhere = Drafts::of(&place.run, None, "b");
        assert_eq!(nowhere.keep(true, &draft(0, "x"), NOW).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(nowhere.read().is_empty());
    }

    #[test]
    fn what_was_kept_in_a_run_is_changed_and_forgotten_aside_once_that_is_over() {
        let mut place = place(true);
        place.drafts.keep(true, &draft(0, "begun"), NOW).unwrap();
        let before = fs::read(place.run.drafts().join("0-a.json")).unwrap();
        place.drafts.keep(false, &draft(0, "begun and more"), LATER).unwrap();
        assert_eq!(place.found(), [draft(0, "begun and more")]);
        // Also by another deck.
        let mut other = place.another("b");
        other.read();
        other.forget(false, StepId(0), LATER).unwrap();
        assert!(place.found().is_empty(), "what is in the run does not come back");
        assert_eq!(fs::read(place.run.drafts().join("0-a.json")).unwrap(), before);
    }

    #[test]
    fn what_nobody_touched_for_long_is_let_go() {
        let mut place = place(false);
        place.drafts.keep(true, &draft(0, "new"), NOW).unwrap();
        let [folder] = aside(&place).try_into().unwrap();
        fs::File::open(&folder).unwrap().set_modified(SystemTime::now() - STALE - Duration::from_secs(60)).unwrap();
        let state = place.temp.path().join("state/subdeck");
        Drafts::of(&RunDir::at("/another"), Some(&state), "b").keep(true, &draft(0, "x"), NOW).unwrap();
        assert!(place.found().is_empty());
        assert_eq!(aside(&place).len(), 1);
    }

    #[test]
    fn what_is_no_draft_is_left_out() {
        let place = place(true);
        fs::create_dir_all(place.run.drafts()).unwrap();
        for (name, text) in [
            ("0.json", "{"),
            ("1.json", "[]"),
            ("2.json", "{\"text\":5}"),
            ("x.json", "{\"text\":\"a\"}"),
            ("-1.json", "{\"text\":\"a\"}"),
            ("3.txt", ""),
        ] {
            fs::write(place.run.drafts().join(name), text).unwrap();
        }
        std::os::unix::fs::symlink("0.json", place.run.drafts().join("4.json")).unwrap();
        assert!(place.found().is_empty());
    }
}
