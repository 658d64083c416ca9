//! Cuts the bytes of a child into lines. It owns the line feed, the length limit and what becomes of a line that is
//! too long; it never looks at what a line means.
//!
//! A line over the limit is not a reason to end a child: it is reported once, with its beginning, its end and the few
//! facts that a scan in constant memory finds, and the framer is in step again at the next line feed.

use super::skim::{Facts, Skim};

/// Largest line that is kept whole, in bytes (runner-behaviour 1.5).
pub const LINE_LIMIT: usize = 16 * 1024 * 1024;
/// How many bytes of an oversize line's beginning and end are kept (runner-behaviour 1.5).
pub const EXCERPT: usize = 4096;

const BOM: &[u8] = &[0xef, 0xbb, 0xbf];

/// One line of a child's output, without its line feed and without one carriage return before it.
#[derive(Clone, Debug, PartialEq)]
pub enum Line<'a> {
    /// A line that fits.
    Text {
        /// Its bytes, not necessarily UTF-8.
        bytes: &'a [u8],
        /// Whether a line feed ended it; only the last line of a stream may lack one.
        complete: bool,
    },
    /// A line over the limit; reported once.
    Oversize(Oversize<'a>),
}

/// What is kept of a line that is too long.
#[derive(Clone, Debug, PartialEq)]
pub struct Oversize<'a> {
    /// Its first bytes, at most [`EXCERPT`].
    pub prefix: &'a [u8],
    /// Its last bytes, at most [`EXCERPT`].
    pub tail: &'a [u8],
    /// Its length in bytes.
    pub observed: u64,
    /// Whether a line feed ended it.
    pub complete: bool,
    /// What a scan of the whole line found, if it is one JSON object.
    pub facts: Option<Facts>,
}

/// Cuts bytes into lines. How the bytes are cut into chunks never changes the lines.
#[derive(Debug)]
pub struct Framer {
    limit: usize,
    tail: usize,
    started: bool,
    pending: Vec<u8>,
    long: Option<Box<Long>>,
}

/// A line that went over the limit and has not ended.
#[derive(Debug)]
struct Long {
    prefix: Vec<u8>,
    tail: Vec<u8>,
    observed: u64,
    skim: Skim,
}

impl Long {
    fn new(first: &[u8], limit: usize, tail: usize) -> Self {
        let prefix = Vec::with_capacity(EXCERPT.min(limit));
        let mut long = Self { prefix, tail: Vec::new(), observed: 0, skim: Skim::default() };
        long.take(first, limit, tail);
        long
    }

    fn take(&mut self, more: &[u8], limit: usize, tail: usize) {
        let missing = EXCERPT.min(limit).saturating_sub(self.prefix.len());
        self.prefix.extend_from_slice(more.get(..missing.min(more.len())).unwrap_or_default());
        self.observed += more.len() as u64;
        self.skim.feed(more);
        // One byte more, because a carriage return at the very end does not count.
        let tail = tail.saturating_add(1);
        let kept = more.get(more.len().saturating_sub(tail)..).unwrap_or_default();
        self.tail.extend_from_slice(kept);
        // Trimmed only now and then, so that many small chunks do not move the tail each time.
        if self.tail.len() > tail.saturating_mul(2) {
            let surplus = self.tail.len() - tail;
            self.tail.drain(..surplus);
        }
    }

    fn line(&mut self, tail: usize, complete: bool) -> Line<'_> {
        if self.tail.last() == Some(&b'\r') {
            self.tail.pop();
        }
        let start = self.tail.len().saturating_sub(tail);
        Line::Oversize(Oversize {
            prefix: &self.prefix,
            tail: self.tail.get(start..).unwrap_or_default(),
            observed: self.observed,
            complete,
            facts: self.skim.finish(),
        })
    }
}

impl Default for Framer {
    fn default() -> Self {
        Self::new()
    }
}

impl Framer {
    /// A new one, with the limit [`LINE_LIMIT`]. Blank lines are dropped.
    #[must_use]
    pub const fn new() -> Self {
        Self::with(LINE_LIMIT, EXCERPT)
    }

    const fn with(limit: usize, tail: usize) -> Self {
        Self { limit, tail, started: false, pending: Vec::new(), long: None }
    }

    /// Takes a chunk and hands out every line that it completes. A line that lies inside the chunk is not copied.
    pub fn push(&mut self, chunk: &[u8], mut emit: impl FnMut(Line<'_>)) {
        let mut rest = chunk;
        while let Some(at) = memchr::memchr(b'\n', rest) {
            let (head, tail) = rest.split_at(at);
            rest = tail.get(1..).unwrap_or_default();
            if let Some(mut long) = self.long.take() {
                long.take(head, self.limit, self.tail);
                self.started = true;
                emit(long.line(self.tail, true));
            } else if self.pending.is_empty() {
                self.emit(head, true, &mut emit);
            } else {
                let mut line = std::mem::take(&mut self.pending);
                line.extend_from_slice(head);
                self.emit(&line, true, &mut emit);
                line.clear();
                self.pending = line;
            }
        }
        if rest.is_empty() {
            return;
        }
        match &mut self.long {
            Some(long) => long.take(rest, self.limit, self.tail),
            None => {
                self.pending.extend_from_slice(rest);
                if self.pending.len() > self.limit {
                    let first = std::mem::take(&mut self.pending);
                    self.long = Some(Box::new(Long::new(self.without_bom(&first), self.limit, self.tail)));
                }
            }
        }
    }

    /// Hands out what the stream left without a line feed. The framer can then be used for another stream.
    pub fn finish(&mut self, mut emit: impl FnMut(Line<'_>)) {
        if let Some(mut long) = self.long.take() {
            emit(long.line(self.tail, false));
        } else if !self.pending.is_empty() {
            let line = std::mem::take(&mut self.pending);
            self.emit(&line, false, &mut emit);
        }
        self.started = false;
    }

    /// How many bytes wait for their line feed.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.long.as_ref().map_or(self.pending.len() as u64, |long| long.observed)
    }

    fn without_bom<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        if self.started { line } else { line.strip_prefix(BOM).unwrap_or(line) }
    }

    fn emit(&mut self, line: &[u8], complete: bool, emit: &mut impl FnMut(Line<'_>)) {
        // The limit is on the bytes that were pending, the byte order mark and the carriage return included, so
        // that a chunk's end in the middle of a line makes no difference.
        let too_long = line.len() > self.limit;
        let line = self.without_bom(line);
        self.started = true;
        if too_long {
            emit(Long::new(line, self.limit, self.tail).line(self.tail, complete));
            return;
        }
        let bytes = line.strip_suffix(b"\r").unwrap_or(line);
        if !bytes.iter().all(u8::is_ascii_whitespace) {
            emit(Line::Text { bytes, complete });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A line in a form that outlives the framer.
    #[derive(Clone, Debug, PartialEq)]
    enum Owned {
        Text(Vec<u8>, bool),
        Long { prefix: Vec<u8>, tail: Vec<u8>, observed: u64, complete: bool, facts: Option<Facts> },
    }

    fn own(line: Line<'_>) -> Owned {
        match line {
            Line::Text { bytes, complete } => Owned::Text(bytes.to_vec(), complete),
            Line::Oversize(o) => Owned::Long {
                prefix: o.prefix.to_vec(),
                tail: o.tail.to_vec(),
                observed: o.observed,
                complete: o.complete,
                facts: o.facts,
            },
        }
    }

    fn lines(mut framer: Framer, chunks: &[&[u8]]) -> Vec<Owned> {
        let mut out = Vec::new();
        for chunk in chunks {
            framer.push(chunk, |line| out.push(own(line)));
        }
        framer.finish(|line| out.push(own(line)));
        out
    }

    fn text(bytes: &[u8], complete: bool) -> Owned {
        Owned::Text(bytes.to_vec(), complete)
    }

    #[test]
    fn lines_of_a_stream() {
        let table: &[(&[u8], Vec<Owned>)] = &[
            (b"", vec![]),
            (b"a\nb\n", vec![text(b"a", true), text(b"b", true)]),
            (b"a\r\nb\r\r\n", vec![text(b"a", true), text(b"b\r", true)]),
            (b"\n \t\r\n\na", vec![text(b"a", false)]),
            (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", vec![text(b"a", true), text(b"\xef\xbb\xbfb", true)]),
            (b"caf\xc3\xa9 \xff\n", vec![text(b"caf\xc3\xa9 \xff", true)]),
            // A line separator of Unicode and a form feed are not line feeds.
            ("a\u{2028}b\u{85}c\x0cd\n".as_bytes(), vec![text("a\u{2028}b\u{85}c\x0cd".as_bytes(), true)]),
        ];
        for (input, expected) in table {
            assert_eq!(&lines(Framer::new(), &[input]), expected, "{input:?}");
        }
    }

    #[test]
    fn the_limit_is_exact_and_the_stream_goes_on() {
        let fits = vec![b'x'; LINE_LIMIT];
        let mut stream = fits.clone();
        stream.extend_from_slice(b"\n");
        stream.extend(std::iter::repeat_n(b'y', LINE_LIMIT + 1));
        stream.extend_from_slice(b"\nafter\n");
        for size in [65_536, 1 << 20, stream.len()] {
            let chunks: Vec<&[u8]> = stream.chunks(size).collect();
            let out = lines(Framer::new(), &chunks);
            assert_eq!(out.len(), 3);
            assert_eq!(out[0], text(&fits, true));
            assert_eq!(
                out[1],
                Owned::Long {
                    prefix: vec![b'y'; EXCERPT],
                    tail: vec![b'y'; EXCERPT],
                    observed: LINE_LIMIT as u64 + 1,
                    complete: true,
                    facts: None,
                }
            );
            assert_eq!(out[2], text(b"after", true));
        }
    }

    fn piece() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            Just(b"\n".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(BOM.to_vec()),
            Just(br#"{"type":"agent_end","messages":[{"a":"\"]}"}],"willRetry":true}"#.to_vec()),
            proptest::collection::vec(any::<u8>(), 0..12),
        ]
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_lines(
            pieces in proptest::collection::vec(piece(), 0..20),
            cuts in proptest::collection::vec(0usize..200, 0..12),
            limit in 4usize..80,
        ) {
            let stream = pieces.concat();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(stream.len())).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &stream[w[0]..w[1]]).collect();
            let make = || Framer::with(limit, 8);
            let whole = lines(make(), &[&stream]);
            let bytes: Vec<&[u8]> = stream.chunks(1).collect();
            prop_assert_eq!(&lines(make(), &chunks), &whole);
            prop_assert_eq!(&lines(make(), &bytes), &whole);
        }
    }
}
