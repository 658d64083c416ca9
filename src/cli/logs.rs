//! `subdeck logs`: the output of a step, or of every step in their order.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::json;

use super::args::LogsArgs;
use super::find;
use super::load::World;
use crate::headless::{ANEW, Output, Piece, left_out, not_kept, text_of, unlogged};
use crate::run::{ExitCause, RunState, StepId, Stream};
use crate::rundir::{Follower, LogLine, log_absent, logs_not_read};
use crate::text::{SafeText, SecretLines};

/// Prints the output of one step or of all, and what comes.
pub fn logs(args: &LogsArgs) -> anyhow::Result<ExitCode> {
    let world = World::look()?;
    let (dir, step) = find::target(&world, args.root.root.as_deref(), &args.target)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut follower = Follower::open(dir.path()).context("cannot read the run directory")?;
        follower.poll();
        if step.is_none() && follower.state().steps.is_empty() && !args.follow {
            bail!("the run has no steps yet");
        }
        let mut pages: Vec<Page> = Vec::new();
        let mut out =
            Out { to: BufWriter::with_capacity(64 * 1024, std::io::stdout().lock()), args, shown: None, passed: false };
        loop {
            let run_is_over = follower.is_over();
            let state = follower.state();
            // A chain may grow while it is followed.
            let wanted: Vec<StepId> = match step {
                Some(step) => vec![step],
                None => state.steps.iter().map(|s| s.id).collect(),
            };
            for id in wanted.iter().skip(pages.len()) {
                let mut output = Output::open(&dir, *id, args.raw || args.json);
                if let Some(most) = args.lines {
                    output.seek_last(most);
                }
                pages.push(Page { id: *id, output, above: SecretLines::default(), cut_told: false });
            }
            let done = |id: StepId| run_is_over || state.step(id).is_none_or(|s| s.phase.is_terminal());
            let mut result = Ok(());
            for page in &mut pages {
                let last = !args.follow || done(page.id);
                result = result.and_then(|()| out.page(state, page, last, wanted.len() > 1));
            }
            let over = run_is_over || (step.is_some() && wanted.iter().all(|id| done(*id)));
            match result.and_then(|()| out.to.flush()) {
                // A reader that has seen enough is no error; any other failure is.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
                Err(error) => return Err(error.into()),
                Ok(()) if !args.follow || over => {
                    for id in &wanted {
                        if let Some(why) = log_absent(&dir, state, *id) {
                            tell!("subdeck: step {id}: {}", SafeText::line(&why));
                        }
                    }
                    let odd = wanted.iter().flat_map(|id| logs_not_read(&dir, *id));
                    return Ok(not_read(odd, "; what its step said last stands in for it"));
                }
                Ok(()) => {}
            }
            follower.wait_gathered().await;
            follower.poll();
        }
    })
}

/// Says which files were not read, and more to each, and the exit code for it.
pub(super) fn not_read(files: impl Iterator<Item = std::path::PathBuf>, more: &str) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for path in files {
        let path = SafeText::line(&path.display().to_string());
        tell!("subdeck: {path} is no regular file and is not read{more}");
        code = super::out::code(ExitCause::Failed);
    }
    code
}

/// The output of a step and how far it was printed.
struct Page {
    id: StepId,
    output: Output,
    /// What the lines before were, of which a key may have several.
    above: SecretLines,
    /// It was said that more was printed than is kept.
    cut_told: bool,
}

/// Where lines go, and whose line was the last.
struct Out<'a, W: Write> {
    to: W,
    args: &'a LogsArgs,
    shown: Option<StepId>,
    /// The line before was of the stream that is not wanted.
    passed: bool,
}

impl<W: Write> Out<'_, W> {
    /// Prints what is new of a step, below its name when there are several.
    fn page(&mut self, state: &RunState, page: &mut Page, last: bool, several: bool) -> std::io::Result<()> {
        let (id, above) = (page.id, &mut page.above);
        page.output.read(last, |piece| {
            match &piece {
                Piece::Line(line) => self.passed = self.args.stderr && line.stream != Stream::Err,
                // Standard output is data.
                Piece::LeftOut(bytes) if !self.passed => tell!("subdeck: step {id}: {}", left_out(*bytes)),
                Piece::LeftOut(_) => {}
                Piece::Anew => tell!("subdeck: step {id}: {ANEW}"),
            }
            let Piece::Line(line) = piece else { return Ok(()) };
            if self.passed {
                return Ok(());
            }
            self.head(state, id, several)?;
            self.line(id, line, above)
        })?;
        // Data is what was printed; what stands in for it is for people.
        let spoken = unlogged(state, id).filter(|_| last && page.output.is_empty() && self.shown != Some(id));
        if let (Some(message), false) = (spoken, self.args.raw || self.args.json || self.args.stderr) {
            self.head(state, id, several)?;
            let mut lines = SafeText::block(message).into_iter();
            lines.try_for_each(|line| writeln!(self.to, "{}", line.masked_below(above)))?;
        }
        self.cut(state, page, last)
    }

    /// Says whose lines follow, where there are several steps.
    fn head(&mut self, state: &RunState, id: StepId, several: bool) -> std::io::Result<()> {
        if several && !self.args.raw && !self.args.json && self.shown != Some(id) {
            let title = state.step(id).map_or("", |s| s.title());
            let gap = if self.shown.is_some() { "\n" } else { "" };
            writeln!(self.to, "{gap}==> {id} {} <==", SafeText::line(title))?;
        }
        self.shown = Some(id);
        Ok(())
    }

    /// Says at the end of a plain command's output that there was more of it; that of agents is shown in full.
    fn cut(&mut self, state: &RunState, page: &mut Page, last: bool) -> std::io::Result<()> {
        let step = state.step(page.id).filter(|step| last && !page.cut_told && !step.runner.is_agent());
        let Some(cap) = step.and_then(|step| step.truncated_at) else { return Ok(()) };
        page.cut_told = true;
        if self.args.raw || self.args.json {
            // Standard output is data there.
            tell!("subdeck: step {}: {}", page.id, not_kept(cap));
            return Ok(());
        }
        writeln!(self.to, "▲ {}", not_kept(cap))
    }

    fn line(&mut self, id: StepId, line: &LogLine, above: &mut SecretLines) -> std::io::Result<()> {
        if self.args.raw {
            self.to.write_all(&line.bytes)?;
            return self.to.write_all(if line.complete { b"\n" } else { b"" });
        }
        if self.args.json {
            let stream = crate::rundir::records::stream_word(line.stream);
            let value = json!({
                "v": crate::headless::VERSION, "step": id.number(),
                "ts": line.at.map(crate::run::Timestamp::millis), "stream": stream, "attempt": line.attempt,
                "text": String::from_utf8_lossy(&line.bytes), "cut": line.cut,
            });
            return writeln!(self.to, "{}", crate::headless::json_line(&value));
        }
        writeln!(self.to, "{}", SafeText::line(&text_of(line)).masked_below(above))
    }
}
