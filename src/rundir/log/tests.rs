//! Logs of agents and of commands, whole, cut and lied about.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;

use proptest::prelude::*;

use super::*;
use crate::rundir::MarkWriter;

#[test]
fn a_following_reader_gets_each_byte_once() {
    let (_temp, dir) = dir();
    let step = StepId(0);
    let path = dir.output(step);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = OpenOptions::new().create(true).append(true).open(&path).unwrap();
    let mut log = StepLog::open(&dir, step);
    let (mut position, mut got) = (0, String::new());
    for piece in ["one\ntw", "", "o", "\nthree", "", "\n"] {
        file.write_all(piece.as_bytes()).unwrap();
        log.refresh();
        for line in log.lines_since(position, 10) {
            got.push_str(std::str::from_utf8(&line.bytes).unwrap());
            got.push_str(if line.complete { "\n" } else { "" });
            position = line.end;
        }
    }
    assert_eq!(got, "one\ntwo\nthree\n");
}

fn dir() -> (tempfile::TempDir, RunDir) {
    let temp = tempfile::tempdir().unwrap();
    let dir = RunDir::at(temp.path());
    (temp, dir)
}

const STEP: StepId = StepId(0);

/// Prints on a stream of a plain command as the pump does: the mark first, then the bytes.
fn print(dir: &RunDir, marks: &mut MarkWriter, at: i64, stream: Stream, bytes: &[u8]) {
    let path = if stream == Stream::Err { dir.external_err(STEP) } else { dir.external_out(STEP) };
    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    marks.note(file.metadata().unwrap().len(), Timestamp::from_millis(at), stream, 1).unwrap();
    file.write_all(bytes).unwrap();
}

fn words(lines: &[LogLine]) -> Vec<String> {
    let one = |l: &LogLine| {
        let stream = if l.stream == Stream::Err { "!" } else { "" };
        format!("{stream}{}{}", String::from_utf8_lossy(&l.bytes), if l.cut { "~" } else { "" })
    };
    lines.iter().map(one).collect()
}

#[test]
fn the_streams_of_a_command_are_read_in_the_order_they_came() {
    let (_temp, dir) = dir();
    let mut log = StepLog::open(&dir, STEP);
    assert!(log.is_empty() && log.lines_from(0, 9).is_empty() && log.lines_before(0, 9).is_empty());
    let mut marks = MarkWriter::open(&dir.marks(STEP)).unwrap();
    print(&dir, &mut marks, 1000, Stream::Err, b"warn\n");
    print(&dir, &mut marks, 1001, Stream::Out, b"one\ntwo\nthr");
    assert!(log.refresh().grown);
    assert_eq!(words(&log.lines_from(0, 9)), ["!warn", "one", "two", "thr"]);
    print(&dir, &mut marks, 1500, Stream::Err, b"bad\n");
    print(&dir, &mut marks, 4000, Stream::Out, b"ee\nfour\n");
    print(&dir, &mut marks, 6000, Stream::Out, b"five\n");
    log.refresh();
    let all = log.lines_from(0, 99);
    assert_eq!(words(&all), ["!warn", "one", "two", "thr~", "!bad", "ee", "four", "five"]);
    assert_eq!(
        all.iter().map(|l| l.at.unwrap().millis()).collect::<Vec<_>>(),
        [1000, 1001, 1001, 1001, 1500, 4000, 4000, 6000]
    );
    assert_eq!(log.lines_before(log.len(), 3), all[5..]);
    assert_eq!(log.lines_before(all[4].start, 2), all[2..4]);
    assert_eq!(log.lines_from(all[3].start + 1, 1), all[3..4]);
    let mut bytes = vec![0; 99];
    let read = log.read_at(0, &mut bytes);
    assert_eq!(&bytes[..read], b"warn\none\ntwo\nthrbad\nee\nfour\nfive\n");
}

#[test]
fn without_marks_one_stream_follows_the_other() {
    let (_temp, dir) = dir();
    fs::write(dir.external_out(STEP), "out\n").unwrap();
    fs::write(dir.external_err(STEP), "err\n").unwrap();
    assert_eq!(words(&StepLog::open(&dir, STEP).lines_from(0, 9)), ["out", "!err"]);
    fs::write(dir.external_out(STEP), "").unwrap();
    assert_eq!(words(&StepLog::open(&dir, STEP).lines_from(0, 9)), ["!err"]);
}

#[test]
fn marks_of_an_agent_tell_stream_time_and_attempt() {
    let (_temp, dir) = dir();
    fs::write(dir.output(STEP), "a\nb\nc\n").unwrap();
    let mut marks = MarkWriter::open(&dir.marks(STEP)).unwrap();
    marks.note(0, Timestamp::from_millis(1), Stream::Out, 1).unwrap();
    marks.note(2, Timestamp::from_millis(2), Stream::Err, 1).unwrap();
    marks.note(4, Timestamp::from_millis(3), Stream::Own, 2).unwrap();
    let lines = StepLog::open(&dir, STEP).lines_from(0, 9);
    let seen: Vec<_> = lines.iter().map(|l| (l.stream, l.at.unwrap().millis(), l.attempt)).collect();
    assert_eq!(seen, [(Stream::Out, 1, 1), (Stream::Err, 2, 1), (Stream::Own, 3, 2)]);
}

fn only(dir: &RunDir, stream: Stream) -> Vec<String> {
    let log = StepLog::open_only(dir, STEP, stream);
    let all = words(&log.lines_from(0, 99));
    assert_eq!(words(&log.lines_before(log.len(), 99)), all);
    let mut bytes = vec![0; usize::try_from(log.len()).unwrap() + 9];
    assert_eq!(log.read_at(0, &mut bytes) as u64, log.len());
    all
}

#[test]
fn one_stream_of_a_command_is_read_by_itself() {
    let (_temp, dir) = dir();
    let mut marks = MarkWriter::open(&dir.marks(STEP)).unwrap();
    let (mut out, mut err) = (StepLog::open_only(&dir, STEP, Stream::Out), StepLog::open_only(&dir, STEP, Stream::Err));
    assert!(out.is_empty() && err.is_empty());
    for (at, stream, text) in [
        (1, Stream::Out, "one\nha"),
        (2, Stream::Err, "bad\n"),
        (3, Stream::Out, "lf\n"),
        (4, Stream::Err, "wor"),
        (5, Stream::Out, "two\n"),
        (6, Stream::Err, "se\n"),
    ] {
        print(&dir, &mut marks, at * 1000, stream, text.as_bytes());
        out.refresh();
        err.refresh();
    }
    // Cut where the other stream came in between, as in the whole log.
    assert_eq!(words(&out.lines_from(0, 9)).concat().replace('~', ""), "onehalftwo");
    assert_eq!(words(&err.lines_from(0, 9)).concat().replace(['~', '!'], ""), "badworse");
    assert_eq!(only(&dir, Stream::Err), words(&err.lines_from(0, 9)), "the same at once as piece by piece");
    assert_eq!(only(&dir, Stream::Out), words(&out.lines_from(0, 9)));
    let line = err.lines_from(0, 1).pop().unwrap();
    assert_eq!((line.at, line.stream), (Some(Timestamp::from_millis(2000)), Stream::Err));
    let mut search = LogSearch::new("worse").unwrap();
    while search.advance(&err) {}
    assert_eq!(search.total(), 1, "also across what the other stream printed in between");
}

#[test]
fn one_stream_of_an_agent_and_of_a_log_without_marks_is_read_by_itself() {
    let (_temp, dir) = dir();
    let path = dir.output(STEP);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "a\nb\n").unwrap();
    assert_eq!((only(&dir, Stream::Out), only(&dir, Stream::Err).len()), (vec!["a".into(), "b".into()], 0));
    let mut marks = MarkWriter::open(&dir.marks(STEP)).unwrap();
    let mut size = 4;
    for (at, stream, text) in
        [(1, Stream::Err, "e1\n"), (2, Stream::Own, "own\n"), (3, Stream::Out, "c\n"), (4, Stream::Err, "e2\n")]
    {
        marks.note(size, Timestamp::from_millis(at * 1000), stream, 1).unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(text.as_bytes()).unwrap();
        size += text.len() as u64;
    }
    assert_eq!(only(&dir, Stream::Err), ["!e1", "!e2"]);
    assert_eq!(only(&dir, Stream::Out), ["a", "b", "own", "c"]);
}

#[test]
fn a_log_that_was_cut_is_noticed() {
    let (_temp, dir) = dir();
    fs::write(dir.output(STEP), "first attempt\n").unwrap();
    let mut log = StepLog::open(&dir, STEP);
    fs::write(dir.output(STEP), "2nd\n").unwrap();
    assert_eq!(log.refresh(), LogChange { grown: false, shrunk: true });
    assert_eq!(words(&log.lines_before(log.len(), 9)), ["2nd"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_log_that_rests_has_no_file_open_and_goes_on_where_it_was() {
    let (_temp, dir) = dir();
    let mut marks = MarkWriter::open(&dir.marks(StepId(0))).unwrap();
    print(&dir, &mut marks, 1, Stream::Out, b"one\n");
    print(&dir, &mut marks, 2, Stream::Err, b"two\n");
    let mut log = StepLog::open(&dir, StepId(0));
    let begins = dir.path().canonicalize().unwrap();
    let open = || {
        let fds = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let below = |e: std::fs::DirEntry| {
            std::fs::read_link(e.path())
                .ok()
                .filter(|p| p.starts_with(&begins))
                .filter(|p| !p.ends_with("output-0.marks"))
        };
        fds.filter_map(below).count()
    };
    assert_eq!((words(&log.lines_from(0, 9)).len(), open()), (2, 2));
    log.rest();
    assert_eq!((log.len(), open(), log.is_resting()), (8, 0, true));
    print(&dir, &mut marks, 3, Stream::Out, b"three\n");
    assert!(log.refresh().grown);
    assert_eq!(log.lines_from(0, 9).len(), 3);
}

#[test]
fn a_gigabyte_is_read_at_its_ends_without_being_read_through() {
    let (_temp, dir) = dir();
    let file = fs::File::create(dir.output(STEP)).unwrap();
    file.set_len(1 << 30).unwrap();
    file.write_all_at(b"first\n", 0).unwrap();
    file.write_all_at(b"\nlast\n", (1 << 30) - 6).unwrap();
    let log = StepLog::open(&dir, STEP);
    let before = reads();
    assert_eq!(words(&log.lines_before(log.len(), 1)), ["last"]);
    assert_eq!(words(&log.lines_from(0, 1)), ["first"]);
    let middle = log.lines_from(500_000_000, 3);
    assert!(middle.iter().all(|l| l.cut && l.bytes.len() as u64 == BLOCK));
    let (_, bytes) = since(before);
    assert!(bytes < 2_000_000, "{bytes} bytes were read");
}

#[test]
fn the_last_lines_are_read_together() {
    let (_temp, dir) = dir();
    let text: String = (0..20_000).map(|n| format!("12:40:51 INFO request {n} handled\n")).collect();
    fs::write(dir.output(STEP), &text).unwrap();
    let log = StepLog::open(&dir, STEP);
    let before = reads();
    let lines = log.lines_before(log.len(), 60);
    let (calls, bytes) = since(before);
    assert_eq!((lines.len(), words(&lines)[59].as_str()), (60, "12:40:51 INFO request 19999 handled"));
    // The count itself reads a small file.
    assert!(calls <= 6 && bytes <= 12_000, "{calls} reads of {bytes} bytes");
}

/// How often this thread has read, and how many bytes.
fn reads() -> (u64, u64) {
    let io = fs::read_to_string("/proc/thread-self/io").unwrap();
    let of = |name: &str| io.lines().find_map(|l| l.strip_prefix(name)).unwrap().trim().parse::<u64>().unwrap();
    (of("syscr:"), of("rchar:"))
}

/// The same since then.
fn since(before: (u64, u64)) -> (u64, u64) {
    let now = reads();
    (now.0 - before.0, now.1 - before.1)
}

#[test]
fn lies_in_the_marks_do_not_hang_or_lose_bytes() {
    let (_temp, dir) = dir();
    fs::write(dir.external_out(STEP), "a\nb\n").unwrap();
    fs::write(dir.external_err(STEP), "c\n").unwrap();
    let mut marks = MarkWriter::open(&dir.marks(STEP)).unwrap();
    for (offset, stream) in
        [(2, Stream::Out), (0, Stream::Err), (0, Stream::Out), (1 << 60, Stream::Err), (4, Stream::Out)]
    {
        marks.note(offset, Timestamp::from_millis(0), stream, 1).unwrap();
    }
    let log = StepLog::open(&dir, STEP);
    let lines = log.lines_from(0, 99);
    assert_eq!(lines.iter().map(|l| l.bytes.len() + 1).sum::<usize>(), 6, "{:?}", words(&lines));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn forwards_and_backwards_see_the_same_lines(
        pieces in proptest::collection::vec((any::<bool>(), 0usize..3, 0usize..100_000), 0..12),
        plain: bool,
        probe: u32,
    ) {
        let (_temp, dir) = dir();
        let mut marks = MarkWriter::open(&dir.marks(STEP)).unwrap();
        let mut whole = Vec::new();
        for (n, (err, feeds, length)) in pieces.into_iter().enumerate() {
            let mut bytes = vec![b'a' + (n % 26) as u8; length];
            for feed in 0..feeds.min(length) {
                bytes[feed * 7919 % length] = b'\n';
            }
            whole.extend_from_slice(&bytes);
            if plain {
                print(&dir, &mut marks, n as i64, if err { Stream::Err } else { Stream::Out }, &bytes);
            } else {
                OpenOptions::new().append(true).create(true).open(dir.output(STEP)).unwrap().write_all(&bytes).unwrap();
            }
        }
        let log = StepLog::open(&dir, STEP);
        prop_assert_eq!(log.len(), whole.len() as u64);
        let forwards = log.lines_from(0, usize::MAX);
        prop_assert_eq!(&log.lines_before(log.len(), usize::MAX), &forwards);
        let mut at = 0;
        for line in &forwards {
            prop_assert_eq!(line.start, at);
            prop_assert!((line.end - line.start) < 2 * BLOCK);
            let bytes = &whole[line.start as usize..line.end as usize];
            prop_assert_eq!(bytes.strip_suffix(b"\n").unwrap_or(bytes), &line.bytes[..]);
            at = line.end;
        }
        prop_assert_eq!(at, log.len());
        if let Some(line) = forwards.iter().find(|l| l.start <= u64::from(probe) && u64::from(probe) < l.end) {
            prop_assert_eq!(&log.lines_from(u64::from(probe), 1)[..], std::slice::from_ref(line));
        }
    }
}

proptest! {
    /// The lines are the same as those found by looking at whole blocks at once: behind every line feed, and at the end
    /// of every block that holds none.
    #[test]
    fn lines_of_any_length_end_where_they_should(
        lengths in proptest::collection::vec(prop_oneof![0usize..20, 4000usize..4200, 60_000usize..140_000], 1..6),
        unfinished in any::<bool>(),
    ) {
        let (_temp, dir) = dir();
        let mut bytes = Vec::new();
        for length in &lengths {
            bytes.extend(std::iter::repeat_n(b'x', *length));
            bytes.push(b'\n');
        }
        if unfinished {
            bytes.pop();
        }
        fs::write(dir.output(StepId(0)), &bytes).unwrap();
        let log = StepLog::open(&dir, StepId(0));
        let found: Vec<u64> = log.lines_from(0, 10_000).iter().map(|l| l.end).collect();
        let mut want = Vec::new();
        let mut start = 0;
        while start < bytes.len() {
            let mut block_from = start;
            let end = loop {
                let edge = ((block_from / BLOCK as usize + 1) * BLOCK as usize).min(bytes.len());
                if let Some(at) = bytes[block_from..edge].iter().position(|b| *b == b'\n') {
                    break block_from + at + 1;
                }
                if edge == bytes.len() || edge - block_from == BLOCK as usize {
                    break edge;
                }
                block_from = edge;
            };
            want.push(end as u64);
            start = end;
        }
        prop_assert_eq!(found, want);
    }
}
