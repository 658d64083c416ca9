//! What the deck shows while something is wrong with the files of the run it is attached to. Each of these pictures is
//! made from what really happens to a directory, by way of the feed that reads it. Numbers with a B are those of public
//! reports about programs of this kind.

use std::fs;
use std::path::PathBuf;

use super::{Stage, run};
use crate::deck::app::wall;
use crate::deck::feed::{Feed, Hands, Request};
use crate::deck::live::LiveFeed;
use crate::run::{RunId, SteerMode, StepId};
use crate::rundir::follow::HALF_WRITTEN;
use crate::rundir::{RunDir, RunRoot, StatusContext, Watch, replace, status};
use crate::text::SafeText;

struct Attached {
    temp: tempfile::TempDir,
    dir: RunDir,
    feed: LiveFeed,
}

fn attached() -> Attached {
    let temp = tempfile::tempdir().unwrap();
    let dir = RunDir::create(&RunRoot::at(temp.path().join("root")), &RunId("7f3a2c".into())).unwrap();
    let mut state = run();
    state.pid = Some(std::process::id());
    state.last_update = Some(wall());
    replace(&dir.status(), &status::encode(&state, &StatusContext { dir: &dir, instance: None })).unwrap();
    let mut feed = LiveFeed::open(dir.path(), None, None).unwrap();
    feed.poll();
    Attached { temp, dir, feed }
}

impl Attached {
    fn aside(&self) -> PathBuf {
        self.temp.path().join("root/async-subagent-runs/aside")
    }

    /// The line about the trouble, in a picture that goes on showing the run as it was.
    fn line(&mut self) -> String {
        self.feed.poll();
        let mut stage = Stage::new(120, 36);
        stage.feed.hands = self.feed.hands();
        stage.trouble = self.feed.troubles().into_iter().next();
        if let Hands::Gone(what) = &stage.feed.hands {
            stage.read_only = Some(SafeText::line(&format!("the run's directory {what}")));
        }
        let text = stage.text();
        assert!(text.contains("fix-flaky-tests") && text.contains("reviewer"), "the last picture stays: {text}");
        let lines: Vec<&str> = text.lines().collect();
        let line = lines[lines.len() - 2].trim().to_owned();
        line.replace(&self.temp.path().display().to_string(), "")
    }
}

/// B60: a run or project directory is deleted while it is looked at.
#[test]
fn a_directory_that_is_removed_moved_or_replaced_leaves_its_last_picture_and_takes_no_key() {
    let stays = "; this is the last picture";
    let mut run = attached();
    let (dir, aside) = (run.dir.path().to_owned(), run.aside());
    fs::rename(&dir, &aside).unwrap();
    assert_eq!(run.line(), format!("the run's directory was moved to /root/async-subagent-runs/aside{stays}"));
    fs::create_dir(&dir).unwrap();
    assert_eq!(run.line(), format!("the run's directory was replaced: another one stands in its place{stays}"));
    // A key pressed in the instant before it was noticed reaches nobody.
    let request = Request::Steer { targets: vec![StepId(2)], mode: SteerMode::Steer, message: "hi".into() };
    for request in [request, Request::Stop] {
        let refused = run.feed.send(&request, "s").unwrap_err();
        assert_eq!(refused, "the run's directory was replaced: another one stands in its place");
    }
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0, "nothing was written into the other one");
    fs::remove_dir(&dir).unwrap();
    fs::rename(&aside, &dir).unwrap();
    assert!(!run.line().contains("directory"), "it came back");
    fs::remove_dir_all(&dir).unwrap();
    assert_eq!(run.line(), format!("the run's directory was removed, or moved to another folder{stays}"));
    assert!(!dir.exists(), "it is not made again");
}

/// B54: a reader meets half a document, takes it for broken and wipes it.
#[test]
fn a_status_that_is_half_written_empty_or_marked_keeps_the_last_good_picture() {
    let mut run = attached();
    let whole = fs::read(run.dir.status()).unwrap();
    let in_place = |bytes: &[u8]| fs::write(run.dir.status(), bytes).unwrap();
    in_place(&[b"\xef\xbb\xbf", whole.as_slice()].concat());
    assert_eq!(run.line(), attached().line(), "a mark at its beginning is no trouble");
    for (bytes, cause) in [(&whole[..whole.len() / 2], "EOF while parsing"), (b"", "EOF while parsing")] {
        fs::write(run.dir.status(), bytes).unwrap();
        assert_eq!(run.line(), attached().line(), "it may be in the middle of a write");
        let since = std::time::Instant::now();
        let mut line = run.line();
        while !line.contains("cannot be read") {
            assert!(since.elapsed() < HALF_WRITTEN * 10, "{line}");
            line = run.line();
        }
        let want = "the last good picture is shown, the newest status.json cannot be read: it is not valid JSON: ";
        assert!(line.strip_prefix(want).is_some_and(|rest| rest.starts_with(cause)), "{line}");
        fs::write(run.dir.status(), &whole).unwrap();
        assert_eq!(run.line(), attached().line(), "the next whole one is taken");
    }
}

/// B57: the limit on watching looks like a full disk.
#[test]
fn the_limit_on_watching_is_named_where_people_look() {
    let refused = Watch::refused(28);
    let mut stage = Stage::new(120, 36);
    stage.trouble = refused.limit().map(SafeText::line);
    let text = stage.text();
    let want = "the limit fs.inotify.max_user_watches is reached; looking every 250 ms instead";
    assert!(text.lines().any(|line| line.trim() == want), "{text}");
}

#[test]
fn a_run_that_is_a_link_is_followed_to_its_one_place_and_links_inside_are_not_written_through() {
    let mut run = attached();
    let elsewhere = run.temp.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let control = run.dir.control();
    fs::remove_dir_all(&control).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &control).unwrap();
    for request in [Request::Stop, Request::Interrupt, Request::StopStep(StepId(2))] {
        let refused = run.feed.send(&request, "X").unwrap_err();
        assert!(refused.contains("a symbolic link") || refused.contains("cannot stop a single step"), "{refused}");
    }
    let message = Request::Steer { targets: vec![StepId(2)], mode: SteerMode::Steer, message: "hi".into() };
    assert!(run.feed.send(&message, "s").unwrap_err().contains("a symbolic link"));
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn a_directory_that_cannot_be_written_says_so() {
    let mut run = attached();
    let control = run.dir.control();
    fs::remove_dir_all(&control).unwrap();
    fs::write(&control, "").unwrap();
    let refused = run.feed.send(&Request::Stop, "X").unwrap_err();
    assert!(refused.starts_with("the request cannot be written: ") && refused.contains("is not a folder"), "{refused}");
    let mut stage = Stage::new(120, 36);
    stage.read_only = Some(SafeText::line("the run's directory cannot be written (Read-only file system)"));
    let text = stage.text();
    assert!(text.contains("read-only: the run's directory cannot be written (Read-only file system)"), "{text}");
    assert!(!text.lines().last().unwrap().contains(" s steer"), "no key is offered that does nothing: {text}");
}

#[test]
fn what_became_of_a_request_is_told_also_where_something_stays_true_beside_it() {
    use crate::deck::effect::{Fate, Sent};
    use crate::deck::feed::Hands;
    let line = SafeText::line;
    for (hands, stays) in [
        (Hands::Unknown(line("it is a day old")), "whether the runner lives is not known: it is a day old"),
        (Hands::Suspended(line("the runner (pid 7) is suspended")), "the runner (pid 7) is suspended"),
    ] {
        let mut stage = Stage::new(120, 36);
        stage.feed.hands = hands;
        assert!(stage.text().contains(stays), "{}", stage.text());
        stage.ui.sent.push(Sent { id: None, what: "stop", step: None, at: stage.now, fate: Fate::Unanswered });
        let text = stage.text();
        assert!(!text.contains(stays) && text.contains("stop"), "{text}");
        let line = text.lines().find(|line| line.contains("written")).unwrap_or_default().to_owned();
        assert!(line.contains("stop"), "the key is answered: {text}");
        // After a while what stays true is told again.
        stage.now = stage.now + std::time::Duration::from_secs(11);
        assert!(stage.text().contains(stays), "{}", stage.text());
    }
}

#[test]
fn a_clock_that_jumps_breaks_no_picture() {
    use std::time::Duration;
    let mut stage = Stage::new(120, 36);
    let before = stage.text();
    for now in [stage.now - Duration::from_secs(86_400 * 400), stage.now + Duration::from_secs(86_400 * 400)] {
        let mut stage = Stage::new(120, 36);
        stage.now = now;
        let text = stage.text();
        assert!(text.contains("fix-flaky-tests") && text.lines().count() == before.lines().count(), "{text}");
    }
    // What was armed or said before the clock was set back does not stay for the time that it was set back by.
    use crate::deck::model::{Notice, Question};
    use crate::deck::update::{NOTICE_FOR, expire};
    let now = stage.now;
    stage.ui.armed = Some(Question::new(now));
    stage.ui.notice = Some(Notice { text: SafeText::line("x"), bad: false, until: now + NOTICE_FOR });
    assert!(!expire(&mut stage.ui, now));
    assert!(expire(&mut stage.ui, now - Duration::from_secs(3600)));
    assert!(stage.ui.armed.is_none() && stage.ui.notice.is_none());
}
