//! The runner's side of the control inbox (run-directory 3): takes requests out of the folders, in the order of
//! runner-behaviour 6.
//!
//! Nothing that lies in the inbox can delay a stop: `stop`, `timeout` and `interrupt` act on existence, before any
//! other file is looked at, and are read only when they are small regular files of ours. Everything else is opened
//! without following links or waiting, and what is no valid request is moved to `control/rejected/` with its reason.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::request::ControlRequest;
use super::request_read;
use super::{RunDir, control, open, supervisor, user, write};
use crate::run::{ControlSource, SteerRequest};

/// The largest request file in bytes: the largest message with every byte escaped, and its frame.
const REQUEST_MOST: u64 = 6 * SteerRequest::MAX_BYTES as u64 + 16 * 1024;
/// The largest stop, timeout, interrupt, capability or ack file that is read, in bytes.
const SMALL_MOST: u64 = 64 * 1024;

/// The most requests taken from one folder at one look: between two looks the runner does everything else, a stop
/// above all.
const MOST_A_LOOK: usize = 500;

/// A file that is no JSON may be written still, by somebody who does not write it beside its place; it is left alone for
/// this long (run-directory 6).
const UNFINISHED: Duration = Duration::from_secs(2);

/// Where requests to add steps to a chain lie (run-directory 3.8), and why none is granted: whoever waits for the steps is to
/// learn that they will not be run.
const APPENDS: &str = "append-requests";
const NO_APPEND: &str = "this version adds no steps to a run that goes on; start a run of their own for them";

/// What the file system says of who put a request there.
#[derive(Clone, Copy)]
struct Sender {
    owner: u32,
    what: &'static str,
}

/// Takes requests out of a run's inbox.
#[derive(Debug)]
pub struct InboxReader {
    dir: RunDir,
    /// How many steps the run has, where that is known.
    steps: Option<usize>,
    /// What could not be removed: it acts once, not at every look.
    stuck: HashSet<(u64, u64)>,
    /// Capability files as they were read last; they stay where they are.
    capabilities: HashSet<(OsString, i64, i64, u64)>,
    /// The last look left requests behind.
    behind: bool,
    /// Names of users that were asked for.
    users: HashMap<u32, String>,
    /// Files that are no JSON yet, and when that was seen first: somebody may still write them.
    unfinished: HashMap<(u64, u64), Instant>,
    /// How long they are left alone.
    grace: Duration,
}

impl InboxReader {
    /// The inbox of this run.
    #[must_use]
    pub fn new(dir: RunDir) -> Self {
        Self {
            dir,
            steps: None,
            stuck: HashSet::new(),
            capabilities: HashSet::new(),
            behind: false,
            users: HashMap::new(),
            unfinished: HashMap::new(),
            grace: UNFINISHED,
        }
    }

    /// The same for a run of so many steps: what asks for others is no valid request.
    #[must_use]
    pub const fn of_steps(mut self, steps: usize) -> Self {
        self.steps = Some(steps);
        self
    }

    /// The folders to watch.
    #[must_use]
    pub fn folders(&self) -> Vec<PathBuf> {
        let control = self.dir.control();
        let mut folders = vec![
            self.dir.steer_requests(),
            self.dir.stop_requests(),
            self.dir.subdeck_requests(),
            supervisor::requests(&self.dir),
            self.dir.path().join(APPENDS),
            control.join("steer-capabilities"),
            control.join("steer-acks"),
        ];
        folders.extend(self.ack_folders());
        folders.insert(0, control);
        folders
    }

    /// Takes out everything that is there, what acts on existence first.
    pub fn take(&mut self) -> Vec<ControlRequest> {
        let mut taken = self.take_urgent();
        taken.extend(self.take_rest());
        taken
    }

    /// Takes out what acts on existence: stop, timeout, interrupt, in this order.
    pub fn take_urgent(&mut self) -> Vec<ControlRequest> {
        let mut taken = Vec::new();
        for (name, make) in [
            ("stop.json", (|source| ControlRequest::Stop { source }) as fn(ControlSource) -> ControlRequest),
            ("timeout.json", |source| ControlRequest::TimeOut { source }),
            ("interrupt.json", |source| ControlRequest::Interrupt { source }),
        ] {
            if let Some((source, sender)) = self.existing(&self.dir.control().join(name)) {
                self.vouch(make(source), sender, &mut taken);
            }
        }
        taken
    }

    /// Takes out everything else that is there: requests to steer in the order of their times, requests of ours, stops
    /// of steps, what children ask their supervisor, capabilities, answers of children. Of a folder that is flooded only so many are taken at a time;
    /// [`InboxReader::is_behind`] tells.
    pub fn take_rest(&mut self) -> Vec<ControlRequest> {
        let mut taken = Vec::new();
        self.behind = false;
        let mut steers = self.requests(&self.dir.steer_requests(), |_, bytes| request_read::steer(bytes));
        // Rejections have no time and keep the order of their names, after what is valid.
        steers.sort_by(|a, b| match (a, b) {
            (ControlRequest::Steer(a), ControlRequest::Steer(b)) => (a.at, &a.id).cmp(&(b.at, &b.id)),
            (ControlRequest::Steer(_), _) => std::cmp::Ordering::Less,
            (_, ControlRequest::Steer(_)) => std::cmp::Ordering::Greater,
            _ => std::cmp::Ordering::Equal,
        });
        let own = self.requests(&self.dir.subdeck_requests(), |_, bytes| request_read::own(bytes));
        let steps = self.steps;
        let stops = self.requests(&self.dir.stop_requests(), |file, bytes| request_read::stop(file, bytes, steps));
        // Only files of ours are read as requests.
        let owner = rustix::process::geteuid().as_raw();
        for request in steers.into_iter().chain(own).chain(stops) {
            self.vouch(request, Sender { owner, what: "a file" }, &mut taken);
        }
        taken.extend(self.requests(&supervisor::requests(&self.dir), |_, bytes| supervisor::read(bytes)));
        let appends = self.dir.path().join(APPENDS);
        taken.extend(self.requests(&appends, |_, _| Err(NO_APPEND.to_owned())));
        taken.extend(self.changed_capabilities());
        for folder in self.ack_folders() {
            taken.extend(self.acks(&folder));
        }
        taken
    }

    /// Whether the last look left requests behind, so that another one is due at once.
    #[must_use]
    pub const fn is_behind(&self) -> bool {
        self.behind
    }

    /// Notes who asked: the user is the file's owner, whatever the file says. What no deck or command of ours signed is
    /// preceded by [`ControlRequest::Unannounced`] (product 7).
    fn vouch(&mut self, mut request: ControlRequest, sender: Sender, taken: &mut Vec<ControlRequest>) {
        let (words, about) = (request.words(), request.about());
        let Some(source) = request.source_mut() else { return taken.push(request) };
        let user = self.users.entry(sender.owner).or_insert_with(|| user::name(sender.owner)).clone();
        if source.via.trim().is_empty() {
            source.via = format!("unknown ({} owned by {user})", sender.what);
        }
        source.user = Some(user);
        // Ours always say which process asks.
        let unannounced = source.pid.is_none().then(|| source.clone());
        // Before what it asks for has changed what it is about.
        taken.extend(unannounced.map(|source| ControlRequest::Unannounced { what: words, about, source }));
        taken.push(request);
    }

    /// Whether one of the three files that act on existence is there, and who put it there. It is gone afterwards.
    fn existing(&mut self, path: &Path) -> Option<(ControlSource, Sender)> {
        let meta = fs::symlink_metadata(path).ok()?;
        let identity = (meta.dev(), meta.ino());
        if self.stuck.contains(&identity) {
            return None;
        }
        // Only what is certain not to block is opened.
        let small = meta.is_file() && meta.len() <= SMALL_MOST;
        let source = small.then(|| read(path, SMALL_MOST).ok()).flatten();
        let source = source.map(|bytes| request_read::source_of(&bytes)).unwrap_or_default();
        if fs::remove_file(path).is_err() && self.set_aside(path, "it is not a file").is_err() {
            self.stuck.insert(identity);
        }
        let what = match () {
            () if meta.is_symlink() => "a link",
            () if !meta.is_file() => "something that is no file",
            () if meta.len() == 0 => "an empty file",
            () => "a file",
        };
        Some((source, Sender { owner: meta.uid(), what }))
    }

    /// All requests of a folder, in the order of their names. Each file is gone afterwards.
    fn requests(
        &mut self,
        folder: &Path,
        parse: impl Fn(&str, &[u8]) -> Result<ControlRequest, String>,
    ) -> Vec<ControlRequest> {
        let mut found = Vec::new();
        for path in json_files(folder) {
            if found.len() >= MOST_A_LOOK {
                self.behind = true;
                break;
            }
            let file = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            let request = match read(&path, REQUEST_MOST) {
                Ok(bytes) if self.may_grow(&path, &bytes) => continue,
                Ok(bytes) => parse(&file, &bytes),
                // Somebody took it back.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => Err(error.to_string()),
            };
            match request {
                Ok(request) => match fs::remove_file(&path) {
                    Ok(()) => found.push(request),
                    // Taken back between reading and removing.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(_) if self.is_stuck(&path) => {}
                    Err(_) => found.push(request),
                },
                Err(reason) => {
                    if self.set_aside(&path, &reason).is_err() && self.is_stuck(&path) {
                        continue;
                    }
                    found.push(ControlRequest::Rejected { file, reason });
                }
            }
        }
        found
    }

    /// Whether a file is to be left alone for now, because it looks as if it were not written to its end.
    fn may_grow(&mut self, path: &Path, bytes: &[u8]) -> bool {
        if serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok() {
            return false;
        }
        let Ok(meta) = fs::symlink_metadata(path) else { return false };
        let seen = self.unfinished.entry((meta.dev(), meta.ino())).or_insert_with(Instant::now);
        seen.elapsed() < self.grace
    }

    /// When to look again, if the last look left files alone that may be written still.
    #[must_use]
    pub fn look_again(&mut self) -> Option<Duration> {
        let grace = self.grace;
        self.unfinished.retain(|_, seen| seen.elapsed() <= grace * 2);
        let waits = self.unfinished.values().map(|seen| grace.saturating_sub(seen.elapsed()));
        waits.filter(|left| !left.is_zero()).min()
    }

    /// Notes that a file cannot be removed; true when that was known.
    fn is_stuck(&mut self, path: &Path) -> bool {
        fs::symlink_metadata(path).map_or(true, |meta| !self.stuck.insert((meta.dev(), meta.ino())))
    }

    /// Moves a file to `control/rejected/` and writes the reason beside it.
    fn set_aside(&self, path: &Path, reason: &str) -> io::Result<()> {
        let rejected = self.dir.rejected();
        control::plain_folder(&self.dir.control())?;
        control::make(&rejected)?;
        let name = path.file_name().unwrap_or_default();
        let free = (0..1000).map(|n| {
            let mut free = name.to_owned();
            if n > 0 {
                free.push(format!(".{n}"));
            }
            rejected.join(free)
        });
        let place = free.into_iter().find(|p| fs::symlink_metadata(p).is_err());
        let place = place.ok_or_else(|| io::Error::other("too many rejected files of one name"))?;
        fs::rename(path, &place)?;
        let mut beside = place.into_os_string();
        beside.push(".reason");
        // The file itself is safe already; without room for the reason the event log still has it.
        let _ = write::replace(Path::new(&beside), format!("{reason}\n").as_bytes());
        Ok(())
    }

    /// Capabilities that are new or were written again; malformed ones are ignored (run-directory 3.5).
    fn changed_capabilities(&mut self) -> Vec<ControlRequest> {
        let mut found = Vec::new();
        for path in json_files(&self.dir.control().join("steer-capabilities")) {
            let Ok(meta) = fs::symlink_metadata(&path) else { continue };
            let name = path.file_name().unwrap_or_default().to_owned();
            let version = (name, meta.mtime(), meta.mtime_nsec(), meta.ino());
            if !self.capabilities.insert(version) {
                continue;
            }
            found.extend(read(&path, SMALL_MOST).ok().and_then(|bytes| request_read::capability(&bytes)));
        }
        found
    }

    fn ack_folders(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.dir.control().join("steer-acks")) else { return Vec::new() };
        let folders = entries.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
        let mut folders: Vec<PathBuf> = folders.map(|e| e.path()).collect();
        folders.sort();
        folders
    }

    /// Answers of children; malformed ones are removed as well (run-directory 3.6).
    fn acks(&mut self, folder: &Path) -> Vec<ControlRequest> {
        let mut found = Vec::new();
        for path in json_files(folder) {
            if found.len() >= MOST_A_LOOK {
                self.behind = true;
                break;
            }
            let ack = read(&path, SMALL_MOST).ok().and_then(|bytes| request_read::ack(&bytes));
            if fs::remove_file(&path).is_err() && self.is_stuck(&path) {
                continue;
            }
            found.extend(ack);
        }
        found
    }
}

/// The files of a folder whose names end in `.json`, in the order of their names.
fn json_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.flatten().map(|e| e.file_name());
    let mut names: Vec<OsString> = names.filter(|n| n.as_encoded_bytes().ends_with(b".json")).collect();
    names.sort();
    names.into_iter().map(|name| folder.join(name)).collect()
}

fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    open::read_at_most(&open::ours(path)?, most)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::os::unix::fs::symlink;

    use super::*;

    fn inbox() -> (tempfile::TempDir, RunDir, InboxReader) {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path().join("run"));
        dir.make_folders().unwrap();
        // What is no JSON is no request, at once; that it gets time is a test of its own.
        let mut reader = InboxReader::new(dir.clone());
        reader.grace = Duration::ZERO;
        (temp, dir, reader)
    }

    fn steer_json(id: &str, ts: i64) -> String {
        format!(r#"{{"type":"steer","id":"{id}","ts":{ts},"message":"m","targetIndex":0}}"#)
    }

    fn words(taken: &[ControlRequest]) -> Vec<String> {
        taken
            .iter()
            .filter(|r| !matches!(r, ControlRequest::Unannounced { .. }))
            .map(|r| match r {
                ControlRequest::Unannounced { .. } => unreachable!(),
                ControlRequest::Stop { source } => format!("stop {}", source.via),
                ControlRequest::TimeOut { .. } => "timeout".into(),
                ControlRequest::Interrupt { .. } => "interrupt".into(),
                ControlRequest::StopStep { step, .. } => format!("stop step {step}"),
                ControlRequest::Steer(s) => format!("steer {}", s.id),
                ControlRequest::Own(o) => format!("own {}", o.id),
                ControlRequest::Supervisor(s) => format!("supervisor {}", s.id),
                ControlRequest::Capability { step, .. } => format!("capability {step}"),
                ControlRequest::Ack(a) => format!("ack {}", a.id),
                ControlRequest::Rejected { file, .. } => format!("rejected {file}"),
            })
            .collect()
    }

    #[test]
    fn everything_is_taken_once_and_in_order() {
        let (_temp, dir, mut reader) = inbox();
        let control = dir.control();
        fs::write(control.join("interrupt.json"), "").unwrap();
        fs::write(control.join("stop.json"), r#"{"type":"stop","source":"herdr"}"#).unwrap();
        fs::write(control.join("timeout.json"), "{").unwrap();
        fs::write(control.join("unknown.json"), "{}").unwrap();
        let steers = dir.steer_requests();
        fs::write(steers.join("1.json"), steer_json("late", 9)).unwrap();
        fs::write(steers.join("2.json"), steer_json("b", 5)).unwrap();
        fs::write(steers.join("3.json"), steer_json("a", 5)).unwrap();
        fs::write(steers.join(".4.json.1.2.tmp"), steer_json("hidden", 1)).unwrap();
        fs::write(dir.subdeck_requests().join("1.json"), r#"{"type":"kill","id":"k","ts":1}"#).unwrap();
        fs::write(dir.stop_requests().join("1.json"), r#"{"type":"stop","targetIndex":1}"#).unwrap();
        let capability = r#"{"type":"steer-capability","index":1,"supported":true}"#;
        fs::write(control.join("steer-capabilities/1.json"), capability).unwrap();
        fs::create_dir(control.join("steer-acks/0")).unwrap();
        let ack = r#"{"type":"steer-ack","requestId":"a","index":0,"ts":1,"state":"delivered"}"#;
        fs::write(control.join("steer-acks/0/x.json"), ack).unwrap();
        fs::write(control.join("steer-acks/0/y.json"), "junk").unwrap();
        let want = [
            "stop herdr",
            "timeout",
            "interrupt",
            "steer a",
            "steer b",
            "steer late",
            "own k",
            "stop step 2",
            "capability 2",
            "ack a",
        ];
        assert_eq!(words(&reader.take()), want);
        assert!(reader.take().is_empty());
        assert!(control.join("unknown.json").exists());
        assert!(!control.join("steer-acks/0/y.json").exists());
    }

    #[test]
    fn steps_that_are_to_be_added_are_refused_with_the_reason() {
        let (_temp, dir, mut reader) = inbox();
        let folder = dir.path().join(APPENDS);
        assert!(reader.folders().contains(&folder));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("5-x.json"), r#"{"id":"x","createdAt":5,"steps":[]}"#).unwrap();
        let taken = reader.take();
        let [ControlRequest::Rejected { file, reason }] = taken.as_slice() else { panic!("{taken:?}") };
        assert!(file == "5-x.json" && reason.contains("adds no steps"), "{reason}");
        assert!(!folder.join("5-x.json").exists() && dir.rejected().join("5-x.json").exists());
        assert!(fs::read_to_string(dir.rejected().join("5-x.json.reason")).unwrap().contains("adds no steps"));
        assert!(reader.take().is_empty());
    }

    #[test]
    fn stop_acts_on_existence_whatever_it_is() {
        let (temp, dir, mut reader) = inbox();
        let stop = dir.control().join("stop.json");
        let huge = temp.path().join("huge");
        fs::File::create(&huge).unwrap().set_len(1 << 40).unwrap();
        let make: [(&str, &str, &dyn Fn()); 6] = [
            ("empty", "an empty file", &|| fs::write(&stop, "").unwrap()),
            ("fifo", "something that is no file", &|| mknodat(CWD, &stop, FileType::Fifo, Mode::RWXU, 0).unwrap()),
            ("link to nothing", "a link", &|| symlink("/nowhere", &stop).unwrap()),
            ("link to a huge file", "a link", &|| symlink(&huge, &stop).unwrap()),
            ("huge file", "a file", &|| fs::File::create(&stop).unwrap().set_len(1 << 40).unwrap()),
            ("folder with something in it", "something that is no file", &|| {
                fs::create_dir_all(stop.join("x")).unwrap()
            }),
        ];
        for (what, says, make) in make {
            make();
            let begun = Instant::now();
            let said = format!("stop unknown ({says} owned by {})", user::own_name());
            assert_eq!(words(&reader.take()), [said], "{what}");
            // To read a terabyte, or to wait for somebody who writes, would take longer on any machine.
            assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
            assert!(reader.take().is_empty(), "{what}");
            assert!(fs::symlink_metadata(&stop).is_err(), "{what}");
        }
    }

    #[test]
    fn the_user_is_the_owner_and_what_nobody_signed_is_told() {
        let (_temp, dir, mut reader) = inbox();
        let me = user::own_name();
        let signed = r#"{"type":"stop","source":"subdeck-cli","subdeck":{"via":"cli","user":"somebody else","pid":7}}"#;
        fs::write(dir.control().join("stop.json"), signed).unwrap();
        fs::write(dir.control().join("interrupt.json"), r#"{"source":"  "}"#).unwrap();
        fs::write(dir.steer_requests().join("1.json"), steer_json("a", 5)).unwrap();
        fs::write(dir.stop_requests().join("1.json"), r#"{"type":"stop","targetIndex":1,"source":"herdr"}"#).unwrap();
        let unknown = format!("unknown (a file owned by {me})");
        let taken = reader.take();
        let told: Vec<_> = taken
            .iter()
            .filter_map(|r| match r {
                ControlRequest::Unannounced { what, source, .. } => Some((what.as_str(), source.via.as_str())),
                _ => None,
            })
            .collect();
        assert_eq!(told, [("interrupt", unknown.as_str()), ("message", &unknown), ("stop of step 2", "herdr")]);
        assert_eq!(taken.len(), 7, "each comes right before its request");
        let mut users = taken.into_iter().filter_map(|mut r| r.source_mut().cloned());
        assert!(users.all(|source| source.user.as_ref() == Some(&me)));
    }

    #[test]
    fn what_is_no_request_is_set_aside_with_its_reason() {
        let (_temp, dir, mut reader) = inbox();
        let steers = dir.steer_requests();
        fs::write(steers.join("bad.json"), r#"{"type":"steer"}"#).unwrap();
        fs::File::create(steers.join("huge.json")).unwrap().set_len(1 << 40).unwrap();
        mknodat(CWD, steers.join("pipe.json"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        symlink("/etc/hostname", steers.join("link.json")).unwrap();
        fs::create_dir(steers.join("folder.json")).unwrap();
        fs::write(steers.join("good.json"), steer_json("g", 1)).unwrap();
        let taken = reader.take();
        let names = [
            "steer g",
            "rejected bad.json",
            "rejected folder.json",
            "rejected huge.json",
            "rejected link.json",
            "rejected pipe.json",
        ];
        assert_eq!(words(&taken), names);
        assert!(reader.take().is_empty());
        assert_eq!(fs::read_dir(&steers).unwrap().count(), 0);
        let reason = fs::read_to_string(dir.rejected().join("bad.json.reason")).unwrap();
        assert_eq!(reason, "it has no id\n");
        fs::write(steers.join("bad.json"), "again").unwrap();
        assert_eq!(words(&reader.take()), ["rejected bad.json"]);
        assert!(dir.rejected().join("bad.json.1").exists() && dir.rejected().join("bad.json.1.reason").exists());
    }

    #[test]
    fn a_stop_of_a_step_that_does_not_exist_is_set_aside() {
        let (_temp, dir, reader) = inbox();
        let mut reader = reader.of_steps(2);
        for (name, target) in [("a.json", 1), ("b.json", 99)] {
            let text = format!(r#"{{"type":"stop","targetIndex":{target}}}"#);
            fs::write(dir.stop_requests().join(name), text).unwrap();
        }
        assert_eq!(words(&reader.take()), ["stop step 2", "rejected b.json"]);
        assert!(dir.rejected().join("b.json").exists());
        let reason = fs::read_to_string(dir.rejected().join("b.json.reason")).unwrap();
        assert_eq!(reason, "there is no step 100; the run has 2\n");
    }

    #[test]
    fn a_capability_that_is_written_again_is_read_again() {
        let (_temp, dir, mut reader) = inbox();
        let path = dir.control().join("steer-capabilities/0.json");
        super::write::replace(&path, br#"{"type":"steer-capability","index":0,"supported":true}"#).unwrap();
        assert_eq!(reader.take().len(), 1);
        assert!(reader.take().is_empty());
        super::write::replace(&path, br#"{"type":"steer-capability","index":0,"supported":false}"#).unwrap();
        assert_eq!(reader.take().len(), 1);
    }

    #[test]
    fn an_inbox_that_is_gone_is_empty() {
        let (temp, _dir, mut reader) = inbox();
        drop(temp);
        assert!(reader.take().is_empty());
    }

    #[test]
    fn a_request_that_is_still_being_written_is_waited_for() {
        let (_temp, dir, mut reader) = inbox();
        reader.grace = Duration::from_secs(3600);
        let path = dir.stop_requests().join("slow.json");
        for part in ["", "{\"type\":\"stop\",", "{\"type\":\"stop\",\"targetIndex\":"] {
            fs::write(&path, part).unwrap();
            assert!(reader.take().is_empty(), "{part:?}");
            assert!(reader.look_again().is_some_and(|wait| wait <= reader.grace), "{part:?}");
        }
        fs::write(&path, "{\"type\":\"stop\",\"targetIndex\":7,\"source\":{\"via\":\"cli\",\"pid\":1}}").unwrap();
        let taken = reader.take();
        assert!(matches!(taken.as_slice(), [ControlRequest::StopStep { .. }]), "{taken:?}");
        // What stays as it is, is refused when its time is over.
        fs::write(dir.stop_requests().join("half.json"), "{").unwrap();
        assert!(reader.take().is_empty());
        reader.grace = Duration::ZERO;
        assert!(matches!(reader.take().as_slice(), [ControlRequest::Rejected { .. }]));
    }
}
