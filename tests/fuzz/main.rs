//! Bytes from outside, changed at random: the readers of a status, of events, of control files, and the view of a log take
//! whatever comes without a panic, and what they give keeps its promises.
//!
//! Each target changes its corpus (`corpus/TARGET/`; the name of a file says what is odd in it) by a generator with a seed,
//! so that a finding can be had again. `cargo test --test fuzz` tries the corpus as it is and takes a few thousand steps of
//! each; `SUBDECK_FUZZ_SECONDS=600 cargo test --release --test fuzz NAME -- --nocapture` goes on for that long,
//! `SUBDECK_FUZZ_SEED` begins elsewhere. The input of a finding is written to the folder for temporary files and named; made
//! as small as it can be, it belongs into the corpus.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use subdeck::run::{RunState, StepId, Timestamp, reduce};
use subdeck::rundir::{
    InboxReader, LineIndex, LogSearch, RunDir, StatusContext, StepLog, decode_status, records, status,
};
use subdeck::text::{SafeText, Sanitizer, SecretLines, StyledLine};

/// Steps without a time.
const STEPS: u64 = 3_000;
/// Inputs are cut here.
const MOST: usize = 64 * 1024;

/// xorshift64*: enough for this, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n.max(1) as u64).unwrap()
    }
}

/// What tends to be interesting in JSON, in logs and at edges.
const WORDS: &[&[u8]] = &[
    b"null",
    b"true",
    b"-1",
    b"1e999",
    b"1.5",
    b"18446744073709551616",
    b"-9223372036854775808",
    b"[]",
    b"{}",
    b"\"\"",
    b"\"\\ud800\"",
    b"\\u0000",
    b"\\u001b[31m",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xae",
    b"\x00",
    b"\n",
    b"\r",
    b"\r\n",
    b"\x1b[",
    b"\x1b]8;;",
    b"\x1b[1;31m",
    b"\x1bP",
    b"\x9b",
    b"\x08",
    b"\t",
    b"\xf0\x9f\x98\x80",
    b"\xcc\x81",
    b"stepIndex",
    b"subagentSource",
    b"\"subagentSource\":\"child\"",
    b"subagentStepIndex",
    b"99999999999",
    b"type",
    b"ts",
    b"steps",
    b"state",
];

fn change(random: &mut Random, corpus: &[Vec<u8>], input: &mut Vec<u8>) {
    for _ in 0..=random.below(4) {
        let at = random.below(input.len() + 1);
        match random.below(8) {
            0 if !input.is_empty() => {
                let at = random.below(input.len());
                input[at] ^= 1 << random.below(8);
            }
            1 if !input.is_empty() => {
                let at = random.below(input.len());
                input[at] = random.next() as u8;
            }
            2 => {
                let word = WORDS[random.below(WORDS.len())];
                input.splice(at..at, word.iter().copied());
            }
            3 => {
                let end = (at + random.below(64)).min(input.len());
                input.drain(at..end);
            }
            4 => {
                let end = (at + random.below(256)).min(input.len());
                let piece = input[at..end].to_vec();
                let to = random.below(input.len() + 1);
                input.splice(to..to, piece);
            }
            5 => {
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len() + 1);
                let end = (from + random.below(512)).min(other.len());
                input.splice(at..at, other[from..end].iter().copied());
            }
            6 => input.truncate(at),
            _ => {
                let word = WORDS[random.below(WORDS.len())];
                let end = (at + word.len()).min(input.len());
                input.splice(at..end, word.iter().copied());
            }
        }
        input.truncate(MOST);
    }
}

/// Values that a field may have all of a sudden.
fn odd(random: &mut Random) -> Value {
    let numbers = [0.0, -1.0, 0.5, 1.76e12, 4_294_967_295.0, 4_294_967_296.0, 9.007_199_254_740_993e15, -1e300, 1e300];
    let texts = [
        "",
        "a",
        "running",
        "completed",
        "../../x",
        "\u{1b}[31m",
        "\u{0}",
        "\u{202e}b",
        "99999999999",
        "subdeck.slept",
    ];
    match random.below(7) {
        0 => Value::Null,
        1 => Value::Bool(random.below(2) == 0),
        2 => numbers[random.below(numbers.len())].into(),
        3 => random.next().into(),
        4 => texts[random.below(texts.len())].into(),
        5 => Value::Array(vec![Value::Null; random.below(4)]),
        _ => serde_json::json!({ "index": random.below(4), "type": "x" }),
    }
}

fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(nodes).sum(),
        Value::Object(fields) => fields.values().map(nodes).sum(),
        _ => 0,
    }
}

/// The nth node of a tree, counted from its root.
fn node<'a>(value: &'a mut Value, left: &mut usize) -> Option<&'a mut Value> {
    if *left == 0 {
        return Some(value);
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| node(item, left)),
        Value::Object(fields) => fields.values_mut().find_map(|field| node(field, left)),
        _ => None,
    }
}

/// Changes what a line of JSON says and leaves it JSON; whether there was such a line.
fn change_json(random: &mut Random, corpus: &[Vec<u8>], input: &mut Vec<u8>) -> bool {
    let mut lines: Vec<Vec<u8>> = input.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let at = random.below(lines.len());
    let Ok(mut value) = serde_json::from_slice::<Value>(&lines[at]) else { return false };
    for _ in 0..=random.below(3) {
        let other = &corpus[random.below(corpus.len())];
        let others: Vec<&[u8]> = other.split(|byte| *byte == b'\n').collect();
        let mut other = serde_json::from_slice::<Value>(others[random.below(others.len())]).unwrap_or_default();
        let mut place = random.below(nodes(&other));
        let other = node(&mut other, &mut place).cloned().unwrap_or_default();
        let mut place = random.below(nodes(&value));
        let Some(found) = node(&mut value, &mut place) else { continue };
        match (random.below(6), found) {
            (0, Value::Object(fields)) => {
                let gone = fields.keys().nth(random.below(fields.len())).cloned();
                gone.and_then(|key| fields.remove(&key));
            }
            (1, Value::Object(fields)) => {
                if let Value::Object(more) = other {
                    fields.extend(more);
                }
            }
            (2, Value::Array(items)) if !items.is_empty() => {
                let item = items[random.below(items.len())].clone();
                items.extend(vec![item; random.below(40)]);
            }
            (3, found) => *found = other,
            (_, found) => *found = odd(random),
        }
    }
    lines[at] = serde_json::to_vec(&value).unwrap();
    *input = lines.join(&b'\n');
    input.truncate(MOST);
    true
}

/// Plays a target with changed inputs until its time or its steps are over.
fn fuzz(name: &str, target: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(name);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let corpus: Vec<Vec<u8>> = files.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert!(!corpus.is_empty());
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let time = number("SUBDECK_FUZZ_SECONDS").map(Duration::from_secs);
    let seed = number("SUBDECK_FUZZ_SEED").unwrap_or(1);
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let begun = Instant::now();
    let mut steps = 0_u64;
    // What is in the corpus is tried as it is first.
    let originals = corpus.clone();
    let mut input = Vec::new();
    loop {
        let more = usize::try_from(steps).ok().and_then(|n| originals.get(n));
        match more {
            Some(original) => input.clone_from(original),
            None if time.map_or(steps >= STEPS, |time| begun.elapsed() >= time) => break,
            None => {
                // Now and then the last input is changed further.
                if random.below(4) > 0 || input.is_empty() {
                    input.clone_from(&corpus[random.below(corpus.len())]);
                }
                // What is well formed and says something else gets further than what is not.
                if random.below(3) == 0 || !change_json(&mut random, &corpus, &mut input) {
                    change(&mut random, &corpus, &mut input);
                }
            }
        }
        steps += 1;
        if catch_unwind(AssertUnwindSafe(|| target(&input))).is_err() {
            let path = std::env::temp_dir().join(format!("subdeck-fuzz-{name}-{seed}-{steps}"));
            std::fs::write(&path, &input).unwrap();
            panic!("{name}: step {steps} of seed {seed}; its input is {}", path.display());
        }
    }
    println!("{name}: {steps} steps of seed {seed} in {:.1} s", begun.elapsed().as_secs_f64());
}

#[test]
fn a_status() {
    let temp = tempfile::tempdir().unwrap();
    let dir = RunDir::at(temp.path());
    fuzz("status", |bytes| {
        let Ok(state) = decode_status(bytes) else { return };
        // What was read can be written, and is read as the same again.
        let context = StatusContext { dir: &dir, instance: None };
        let written = status::encode(&state, &context);
        let again = decode_status(&written).expect("what is written is read");
        assert_eq!(again.steps.len(), state.steps.len());
        assert_eq!((&again.id, &again.phase), (&state.id, &state.phase));
        // Whoever shows it adds up what it says, however large that is.
        let now = Timestamp::from_millis(1_764_000_000_000);
        let shown = subdeck::headless::summary(&state, now);
        assert!(shown.lines().all(|line| !line.chars().any(char::is_control)), "{shown:?}");
        let document = subdeck::headless::status_json(&state);
        assert_eq!(document["steps"].as_array().map(Vec::len), Some(state.steps.len()));
        let sums = subdeck::deck::sums::Sums::of(&state);
        assert!(sums.progress.0 <= state.steps.len());
    });
}

#[test]
fn event_lines() {
    fuzz("events", |bytes| {
        let mut state = RunState::default();
        let mut found = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            records::decode(line, &mut found);
        }
        for event in &found {
            reduce(&mut state, event);
        }
        // A file of a few kilobytes makes no state of a gigabyte.
        assert!(state.steps.len() <= bytes.len() + 1);
        let _ = (state.tokens(), state.cost(), state.elapsed(Timestamp::from_millis(i64::MAX / 2000)));
    });
}

#[test]
fn control_files() {
    let temp = tempfile::tempdir().unwrap();
    let dir = RunDir::at(temp.path());
    dir.make_folders().unwrap();
    let mut inbox = InboxReader::new(dir.clone());
    // Every folder that is looked into, the ones of steps among them.
    let folders = inbox.folders();
    let inbox = std::cell::RefCell::new(&mut inbox);
    fuzz("control", |bytes| {
        for (folder, n) in folders.iter().zip(0..) {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join(format!("file-{n}.json")), bytes).unwrap();
        }
        std::fs::write(dir.control().join("stop.json"), bytes).unwrap();
        let taken = inbox.borrow_mut().take();
        // A stop acts because it is there, whatever is in it (product 7).
        assert!(taken.iter().any(|request| matches!(request, subdeck::rundir::ControlRequest::Stop { .. })));
        let _ = std::fs::remove_dir_all(dir.rejected());
    });
}

#[test]
fn a_log() {
    let temp = tempfile::tempdir().unwrap();
    let dir = RunDir::at(temp.path());
    let step = StepId(0);
    fuzz("log", |bytes| {
        std::fs::write(dir.output(step), bytes).unwrap();
        let log = StepLog::open(&dir, step);
        // The lines, forwards and backwards, are the whole log.
        let lines = log.lines_from(0, usize::MAX);
        assert_eq!(lines.last().map_or(0, |line| line.end), bytes.len() as u64);
        assert!(lines.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!(log.lines_before(log.len(), usize::MAX), lines);
        let safe = |text: &SafeText| assert!(!text.as_str().chars().any(|c| c.is_control() || c == '\u{202e}'));
        let mut above = SecretLines::default();
        for line in &lines {
            let mut styled = StyledLine::parse(&line.bytes);
            styled.runs.iter().for_each(|run| safe(&run.text));
            let width: usize = styled.runs.iter().map(|run| run.text.width()).sum();
            styled.mask(&mut above);
            assert_eq!(
                styled.runs.iter().map(|run| run.text.as_str().chars().count()).sum::<usize>() == 0,
                width == 0 && styled.runs.is_empty()
            );
        }
        let mut cleaner = Sanitizer::default();
        cleaner.push(bytes, |line| safe(&line));
        let mut search = LogSearch::new("needle").unwrap();
        while search.advance(&log) {}
        let mut found = 0;
        let mut from = 0;
        while let Some(next) = search.from(&log, from) {
            found += 1;
            assert!(next.at >= from && next.nth == found);
            from = next.at + 1;
        }
        assert_eq!(found, search.total());
        let mut index = LineIndex::default();
        while index.advance(&log) {}
        assert_eq!(index.feeds(), bytes.iter().filter(|byte| **byte == b'\n').count() as u64);
    });
}
