//! The text that a plan or configuration was read from, and where a byte of it stands.

use std::io::Read;
use std::ops::Range;
use std::path::Path;

use super::{Problem, Problems};

/// The most bytes that a plan or configuration may have.
pub const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// A text with a name for messages.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    text: String,
    line_starts: Vec<usize>,
}

/// Where a byte stands; both from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

impl Source {
    /// From a text; a byte order mark at its start is dropped.
    #[must_use]
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let mut text: String = text.into();
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        let line_starts =
            std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|i| i + 1)).collect();
        Self { name: name.into(), text, line_starts }
    }

    /// Where there is no text: a plan that was made from a command line.
    #[must_use]
    pub fn command_line() -> Self {
        Self { name: "command line".to_owned(), text: String::new(), line_starts: Vec::new() }
    }

    /// From bytes that should be UTF-8 and not too many.
    ///
    /// # Errors
    /// One problem that says which byte is wrong, or that there are too many.
    pub fn from_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Result<Self, Problems> {
        let name = name.into();
        if bytes.len() as u64 > MAX_BYTES {
            return Err(Problem::of_file(name, format!("larger than {} MiB", MAX_BYTES / (1024 * 1024))).into());
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self::new(name, text)),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let lossy = Self::new(name, String::from_utf8_lossy(error.as_bytes()).into_owned());
                // Everything before the bad byte is the same in the lossy text, but for the dropped mark.
                let mark = if error.as_bytes().starts_with("\u{feff}".as_bytes()) { 3 } else { 0 };
                let at = at.saturating_sub(mark);
                Err(Problem::at(&lossy, at..at, "", "the file is not UTF-8 text").suggest("save it as UTF-8").into())
            }
        }
    }

    /// Reads a file, or whatever the path leads to.
    ///
    /// # Errors
    /// One problem that says why the file cannot be read.
    pub fn read(path: &Path) -> Result<Self, Problems> {
        let name = path.display().to_string();
        let fail = |error: std::io::Error| Problems::from(Problem::of_file(name.clone(), reason(&error)));
        match open_regular(path).map_err(fail)? {
            Ok(file) => Self::read_from(name, file),
            Err(Irregular::Folder) => Err(Problem::of_file(name, "this is a folder, not a file").into()),
            Err(Irregular::Other) => Err(Problem::of_file(name, "this is not a regular file")
                .suggest("a plan from a pipe is read from standard input: give `-`")
                .into()),
        }
    }

    /// Reads to the end, or to the limit.
    ///
    /// # Errors
    /// One problem that says why it cannot be read.
    pub fn read_from(name: impl Into<String>, from: impl Read) -> Result<Self, Problems> {
        let name = name.into();
        let mut bytes = Vec::new();
        match from.take(MAX_BYTES + 1).read_to_end(&mut bytes) {
            Ok(_) => Self::from_bytes(name, bytes),
            Err(error) => Err(Problem::of_file(name, reason(&error)).into()),
        }
    }

    /// The same text with another name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// What messages call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where a byte stands; `None` when there is no text at all.
    #[must_use]
    pub fn position(&self, byte: usize) -> Option<Position> {
        let line = self.line_starts.partition_point(|start| *start <= byte).checked_sub(1)?;
        let start = *self.line_starts.get(line)?;
        let before = self.text.get(start..byte.min(self.text.len())).unwrap_or_default();
        Some(Position { line: line + 1, column: before.chars().count() + 1 })
    }

    /// The text of a line from 1, without its end.
    #[must_use]
    pub fn line(&self, line: usize) -> &str {
        let at = |i: usize| self.line_starts.get(i).copied();
        let Some(start) = line.checked_sub(1).and_then(at) else { return "" };
        let end = at(line).unwrap_or(self.text.len());
        self.text.get(start..end).unwrap_or_default().trim_end_matches(['\n', '\r'])
    }

    /// The part of `span` that stands on its first line, in characters, at least 1.
    #[must_use]
    pub(super) fn width_on_line(&self, span: &Range<usize>) -> usize {
        let text = self.text.get(span.clone()).unwrap_or_default();
        text.lines().next().unwrap_or_default().chars().count().max(1)
    }
}

/// What is no regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Irregular {
    /// A folder.
    Folder,
    /// A pipe, a device, a socket.
    Other,
}

/// Opens a file that a person named, through links, but only a regular one: a pipe would be waited for and a device may
/// never end.
///
/// # Errors
/// What the file system says.
pub(crate) fn open_regular(path: &Path) -> std::io::Result<Result<std::fs::File, Irregular>> {
    use rustix::fs::{Mode, OFlags};
    // Without waiting, so that what it is can be looked at.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = std::fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let meta = file.metadata()?;
    Ok(match () {
        () if meta.is_file() => Ok(file),
        () if meta.is_dir() => Err(Irregular::Folder),
        () => Err(Irregular::Other),
    })
}

/// The reason of an I/O error, without the number of the operating system.
pub(crate) fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or_default().to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_and_lines_from_one() {
        let source = Source::new("p", "\u{feff}a = 1\r\nbé = 2\n");
        for (byte, line, column) in [(0, 1, 1), (4, 1, 5), (7, 2, 1), (10, 2, 3), (15, 3, 1), (99, 3, 1)] {
            assert_eq!(source.position(byte), Some(Position { line, column }), "{byte}");
        }
        assert_eq!((source.line(1), source.line(2), source.line(3), source.line(9)), ("a = 1", "bé = 2", "", ""));
        assert_eq!(Source::command_line().position(0), None);
    }

    #[test]
    fn bytes_that_are_not_text_are_named_with_their_position() {
        let problem = Source::from_bytes("p", b"\xef\xbb\xbfab\ncd\xff".to_vec()).unwrap_err();
        assert_eq!(problem.0[0].position, Some(Position { line: 2, column: 3 }));
        let problem = Source::from_bytes("p", vec![b'#'; MAX_BYTES as usize + 1]).unwrap_err();
        assert!(problem.0[0].message.contains("16 MiB"), "{problem:?}");
    }
}
