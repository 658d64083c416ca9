//! What scripts see: a followed run as text, JSON lines or one JSON document, and the summary at the end.
//!
//! Data goes to the writer it is given; a writer that is closed ends the printing quietly, never the run. Text passes
//! [`crate::text::SafeText`]; JSON is escaped by its encoder.

mod json;
mod jsonl;
mod status_json;
mod summary;
mod text;

pub use json::{document as json_document, line as json_line};
pub use jsonl::{VERSION, event as json_event};
pub use status_json::{document as status_document, run as status_json, unreadable as unreadable_json};
pub use summary::summary;
pub use text::TextPrinter;

use std::io::{self, Write};

use crate::run::RunState;
use crate::rundir::{Changes, RunDir};

/// How a followed run is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object a line, as things happen.
    Jsonl,
    /// One JSON document at the end.
    Json,
}

/// Prints a followed run.
pub struct Printer<W: Write> {
    /// What is printed together leaves together.
    out: io::BufWriter<W>,
    format: Format,
    text: TextPrinter,
    closed: bool,
}

impl<W: Write> Printer<W> {
    /// A printer that writes to `out`.
    #[must_use]
    pub fn new(out: W, format: Format, dir: &RunDir) -> Self {
        Self { out: io::BufWriter::with_capacity(64 * 1024, out), format, text: TextPrinter::new(dir), closed: false }
    }

    /// Prints what is new.
    pub fn print(&mut self, state: &RunState, changes: &Changes) {
        if self.closed {
            return;
        }
        let result = match self.format {
            Format::Text => self.text.print(&mut self.out, state, changes),
            Format::Jsonl => self.lines(state, changes),
            Format::Json => Ok(()),
        };
        self.note(result);
    }

    /// Prints what stands at the end.
    pub fn end(&mut self, state: &RunState) {
        if self.closed {
            return;
        }
        let result = match self.format {
            Format::Text => self.text.finish(&mut self.out, state),
            Format::Jsonl => Ok(()),
            Format::Json => writeln!(self.out, "{}", json_document(&status_json(state))),
        };
        let result = result.and_then(|()| self.out.flush());
        self.note(result);
    }

    fn lines(&mut self, state: &RunState, changes: &Changes) -> io::Result<()> {
        for event in &changes.news {
            if let Some(value) = json_event(state, event) {
                writeln!(self.out, "{}", json_line(&value))?;
            }
        }
        self.out.flush()
    }

    /// A closed or full standard output ends the printing; what becomes of the run is not its business.
    fn note(&mut self, result: io::Result<()>) {
        self.closed |= result.is_err();
    }
}
