//! A followed run as lines of text: what each step prints, and what happens to the steps.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use super::output::{ANEW, Output, Piece, left_out, text_of, unlogged};
use crate::run::{AgentEvent, ControlSource, Event, RunState, StepId, Stream, TargetState, What, cause, words};
use crate::rundir::{Changes, RunDir};
use crate::text::{self as units, SafeText, SecretLines, masked_lines};

/// Prints text.
pub struct TextPrinter {
    dir: RunDir,
    /// With what the lines above were, of which a key may have several.
    logs: BTreeMap<StepId, (Output, SecretLines)>,
    /// Steps without a log whose last message was printed in its place.
    spoken: BTreeSet<StepId>,
    width: usize,
}

impl TextPrinter {
    /// A printer for this run.
    #[must_use]
    pub fn new(dir: &RunDir) -> Self {
        Self { dir: dir.clone(), logs: BTreeMap::new(), spoken: BTreeSet::new(), width: 0 }
    }

    /// Prints what is new.
    ///
    /// # Errors
    /// When the writer takes no more.
    pub fn print(&mut self, out: &mut impl Write, state: &RunState, changes: &Changes) -> io::Result<()> {
        self.measure(state);
        for event in &changes.news {
            // What a step had printed before it ended stands before the line that says so.
            if let What::StepEnded { step, .. } = &event.what {
                self.output(out, state, *step, true)?;
            }
            if let Some(line) = self.happened(state, event) {
                writeln!(out, "{}", masked_lines(&line))?;
            }
        }
        for step in &changes.output {
            self.output(out, state, *step, false)?;
        }
        out.flush()
    }

    /// Prints the rest of every step's output.
    ///
    /// # Errors
    /// When the writer takes no more.
    pub fn finish(&mut self, out: &mut impl Write, state: &RunState) -> io::Result<()> {
        self.measure(state);
        for step in &state.steps {
            self.output(out, state, step.id, true)?;
        }
        Ok(())
    }

    fn measure(&mut self, state: &RunState) {
        let widest = state.steps.iter().map(|s| SafeText::line(s.title()).width()).max();
        self.width = widest.unwrap_or(0).min(24);
    }

    fn prefix(&self, state: &RunState, id: StepId) -> String {
        let title = state.step(id).map_or("?", |s| s.title());
        let title = SafeText::line(title).truncate(self.width.max(1));
        format!("{:>3} {title}{} ", id.number(), " ".repeat(self.width.saturating_sub(title.width())))
    }

    fn output(&mut self, out: &mut impl Write, state: &RunState, id: StepId, last: bool) -> io::Result<()> {
        let prefix = self.prefix(state, id);
        let dir = &self.dir;
        let (output, above) =
            self.logs.entry(id).or_insert_with(|| (Output::open(dir, id, false), SecretLines::default()));
        output.read(last, |piece| match piece {
            Piece::Line(line) => {
                let mark = if line.stream == Stream::Err { "err│" } else { "│" };
                writeln!(out, "{prefix}{mark} {}", SafeText::line(&text_of(line)).masked_below(above))
            }
            Piece::LeftOut(bytes) => writeln!(out, "{prefix}│ {}", left_out(bytes)),
            Piece::Anew => writeln!(out, "{prefix}│ {ANEW}"),
        })?;
        let Some(message) = unlogged(state, id).filter(|_| last && output.is_empty() && self.spoken.insert(id)) else {
            return Ok(());
        };
        let mut lines = SafeText::block(message).into_iter();
        lines.try_for_each(|line| writeln!(out, "{prefix}│ {}", line.masked_below(above)))
    }

    fn happened(&self, state: &RunState, event: &Event) -> Option<String> {
        let step = |id: &StepId| self.prefix(state, *id);
        Some(match &event.what {
            What::RunStarted(_) => format!("    run {}", SafeText::line(state.id.as_str())),
            What::StepStarted { step: id } => format!("{}● started", step(id)),
            // Why there is another one is told by the end of the one before.
            What::AttemptStarted { step: id, attempt, model, .. } if *attempt > 1 => {
                let line =
                    format!("{}● attempt {attempt}  {}", step(id), SafeText::line(model.as_deref().unwrap_or("")));
                line.trim_end().to_owned()
            }
            What::StepEnded { step: id, outcome } => {
                let found = state.step(*id)?;
                let time = match found.took(event.at) {
                    Some(_) if found.carried_over => ", taken over from an earlier run".to_owned(),
                    Some(time) => format!(" after {}", units::span(time)),
                    None => String::new(),
                };
                let error = outcome.error.as_deref().map(cause).unwrap_or_default();
                let error = error.lines().next().unwrap_or("");
                let face = found.face();
                let (glyph, word) = (face.glyph(), face.word());
                let line = format!("{}{glyph} {word}{time}  {}", step(id), SafeText::line(error));
                line.trim_end().to_owned()
            }
            What::OutputHeld { step: id, pids } => {
                let list: Vec<_> = pids.iter().map(u32::to_string).collect();
                format!("{}▲ the child has ended, but pid {} holds its output open", step(id), list.join(", "))
            }
            What::OutputTruncated { step: id, cap, .. } => {
                format!("{}▲ output beyond {} is not kept", step(id), units::bytes(*cap))
            }
            What::LogFailed { step: id, error } => {
                format!("{}▲ a log cannot be written: {}", step(id), SafeText::line(error))
            }
            What::ArtifactFailed { step: id, error, .. } => format!("{}▲ {}", step(id), SafeText::line(error)),
            What::TreeSwept { step: id, survivors, .. } if !survivors.is_empty() => {
                let list: Vec<_> = survivors.iter().map(u32::to_string).collect();
                format!("{}▲ would not die: pid {}", step(id), list.join(", "))
            }
            What::RunInterrupted { source } => {
                format!("    ‖ interrupt{}: every running step is asked to pause", by(source.as_ref()))
            }
            What::RunStopped { source, .. } => {
                format!("    ◐ stop{}: every running step is being ended", by(source.as_ref()))
            }
            What::RunTimedOut { message, .. } => format!("    ◷ {}", SafeText::line(&cause(message))),
            What::StepEnding { step: id, message, .. } if !message.is_empty() => {
                format!("{}◐ {}", step(id), SafeText::line(message))
            }
            What::SteerRequested(request) => {
                format!("    » steer {}: {}", SafeText::line(&request.id), SafeText::line(&request.preview))
            }
            What::SteerMoved { id, step: target, to, detail } => format!(
                "{}» steer {} {} {}",
                step(target),
                SafeText::line(id),
                state_word(*to),
                SafeText::line(detail.as_deref().unwrap_or(""))
            )
            .trim_end()
            .to_owned(),
            What::ControlRejected { file, reason, .. } => {
                format!("    ▲ request refused: {}: {}", SafeText::line(file), SafeText::line(reason))
            }
            What::ControlUnannounced { what, source, .. } => {
                format!(
                    "    ▲ no deck or command announced this {what}: it came from {}",
                    SafeText::line(&source.to_string())
                )
            }
            What::Agent { step: id, event: AgentEvent::Retry { attempt, max, delay_ms, reason } } => format!(
                "{}… provider retry {} of {} in {}: {}",
                step(id),
                units::or_unknown(attempt.map(|n| n.to_string())),
                units::or_unknown(max.map(|n| n.to_string())),
                units::or_unknown(delay_ms.map(|ms| units::span(std::time::Duration::from_millis(ms)))),
                SafeText::line(reason)
            ),
            What::RunLost { message } => format!("    ✗ lost: {}", SafeText::line(message)),
            other => {
                let told = words::told(other)?;
                let whose = told.step.map_or_else(|| "    ".to_owned(), |id| step(&id));
                format!("{whose}{}", SafeText::line(&told.text))
            }
        })
    }
}

/// Who asked, behind what was asked for.
fn by(source: Option<&ControlSource>) -> SafeText {
    source.map(|s| SafeText::line(&format!(" by {s}"))).unwrap_or_default()
}

const fn state_word(state: TargetState) -> &'static str {
    state.as_str()
}
