//! What scripts see: a followed run as text, JSON lines or one JSON document, and the summary at the end.
//!
//! Data goes to the writer it is given; a writer that is closed ends the printing quietly, never the run. Text passes
//! [`crate::text::SafeText`]; JSON is escaped by its encoder.

mod inner_runs;
mod json;
mod jsonl;
mod limits;
mod output;
mod status_json;
mod status_watch;
mod sub_agents;
mod summary;
mod text;

pub use json::{document as json_document, line as json_line, without_nulls};
pub use jsonl::{VERSION, event as json_event, output as json_output, question_json};
pub use limits::{Amount, Gauge, counted as limits_counted, of_run as limits_of_run, of_step as limits_of_step};
pub use output::{ANEW, Output, Piece, left_out, text_of, unlogged};
pub use status_json::{document as status_document, run as status_json, unreadable as unreadable_json};
pub use summary::{not_kept, summary};
pub use text::TextPrinter;

pub use crate::run::{Need, needs};

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::run::{RunState, StepId, What};
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
    dir: RunDir,
    /// What plain commands print, of those that were said to have started.
    outputs: BTreeMap<StepId, Output>,
    closed: bool,
    trouble: Option<io::Error>,
}

impl<W: Write> Printer<W> {
    /// A printer that writes to `out`.
    #[must_use]
    pub fn new(out: W, format: Format, dir: &RunDir) -> Self {
        Self {
            out: io::BufWriter::with_capacity(64 * 1024, out),
            format,
            text: TextPrinter::new(dir),
            dir: dir.clone(),
            outputs: BTreeMap::new(),
            closed: false,
            trouble: None,
        }
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
            Format::Jsonl => self.rest(state),
            Format::Json => writeln!(self.out, "{}", json_document(&status_json(state))),
        };
        let result = result.and_then(|()| self.out.flush());
        self.note(result);
    }

    fn lines(&mut self, state: &RunState, changes: &Changes) -> io::Result<()> {
        for event in &changes.news {
            // What a step had printed before it ended stands before the line that says so.
            if let What::StepEnded { step, .. } = &event.what {
                self.output(state, *step, true)?;
            }
            if let Some(value) = json_event(state, event) {
                writeln!(self.out, "{}", json_line(&value))?;
            }
            if let What::StepStarted { step } = &event.what
                && state.step(*step).is_some_and(|s| !s.runner.is_agent())
            {
                self.outputs.entry(*step).or_insert_with(|| Output::open(&self.dir, *step, true));
            }
        }
        for step in &changes.output {
            self.output(state, *step, false)?;
        }
        self.out.flush()
    }

    fn rest(&mut self, state: &RunState) -> io::Result<()> {
        let steps: Vec<StepId> = self.outputs.keys().copied().collect();
        steps.into_iter().try_for_each(|step| self.output(state, step, true))
    }

    /// The new lines of a plain command.
    fn output(&mut self, state: &RunState, step: StepId, last: bool) -> io::Result<()> {
        let Some(output) = self.outputs.get_mut(&step) else { return Ok(()) };
        let out = &mut self.out;
        output.read(last, |piece| match piece {
            Piece::Line(line) => writeln!(out, "{}", json_line(&json_output(state, step, line))),
            Piece::LeftOut(_) | Piece::Anew => Ok(()),
        })
    }

    /// Why the printing ended before the run did, told once; a reader that has seen enough is no trouble.
    pub fn trouble(&mut self) -> Option<io::Error> {
        self.trouble.take()
    }

    /// A closed or full standard output ends the printing; what becomes of the run is not its business.
    fn note(&mut self, result: io::Result<()>) {
        let Err(error) = result else { return };
        self.closed = true;
        if error.kind() != io::ErrorKind::BrokenPipe {
            self.trouble = Some(error);
        }
    }
}
