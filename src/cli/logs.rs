//! `subdeck logs`: the output of a step.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::json;

use super::args::LogsArgs;
use super::find;
use super::load::World;
use crate::run::{RunState, StepId, Stream};
use crate::rundir::{Follower, LogLine, StepLog};
use crate::text::StyledLine;

/// Lines read at a time.
const BATCH: usize = 2000;

/// Prints the output of a step, and what comes.
pub fn logs(args: &LogsArgs) -> anyhow::Result<ExitCode> {
    let world = World::look()?;
    let (dir, step) = find::target(&world, args.root.root.as_deref(), &args.target)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut follower = Follower::open(dir.path()).context("cannot read the run directory")?;
        follower.poll();
        let step = match step {
            Some(step) => step,
            None => the_one(follower.state())?,
        };
        let mut log = StepLog::open(&dir, step);
        log.refresh();
        let mut position = match args.lines {
            None => 0,
            Some(0) => log.len(),
            Some(n) => log.lines_before(log.len(), n).first().map_or(log.len(), |l| l.start),
        };
        let mut stdout = BufWriter::with_capacity(64 * 1024, std::io::stdout().lock());
        loop {
            let over = follower.is_over() || follower.state().step(step).is_none_or(|s| s.phase.is_terminal());
            log.refresh();
            let result = print_from(&mut stdout, &mut log, &mut position, args, over || !args.follow);
            match result.and_then(|()| stdout.flush()) {
                // A reader that has seen enough is no error; any other failure is.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
                Err(error) => return Err(error.into()),
                Ok(()) if !args.follow || over => return Ok(ExitCode::SUCCESS),
                Ok(()) => {}
            }
            follower.wait_gathered().await;
            follower.poll();
        }
    })
}

/// The step that is meant when none is named.
fn the_one(state: &RunState) -> anyhow::Result<StepId> {
    match state.steps.as_slice() {
        [only] => Ok(only.id),
        [] => bail!("the run has no steps yet"),
        _ => match state.current {
            Some(current) => Ok(current),
            None => bail!("the run has {} steps; name one, such as RUN:1", state.steps.len()),
        },
    }
}

fn print_from(
    stdout: &mut impl Write,
    log: &mut StepLog,
    position: &mut u64,
    args: &LogsArgs,
    last: bool,
) -> std::io::Result<()> {
    loop {
        let lines = log.lines_since(*position, BATCH);
        let before = *position;
        for line in &lines {
            if !last && !line.complete && line.end >= log.len() {
                return Ok(());
            }
            *position = line.end;
            if args.stderr && line.stream != Stream::Err {
                continue;
            }
            print_line(stdout, line, args)?;
        }
        if *position == before {
            return Ok(());
        }
    }
}

fn print_line(stdout: &mut impl Write, line: &LogLine, args: &LogsArgs) -> std::io::Result<()> {
    if args.raw {
        stdout.write_all(&line.bytes)?;
        return stdout.write_all(if line.complete { b"\n" } else { b"" });
    }
    if args.json {
        let stream = crate::rundir::records::stream_word(line.stream);
        let value = json!({
            "v": crate::headless::VERSION, "ts": line.at.map(crate::run::Timestamp::millis), "stream": stream,
            "attempt": line.attempt, "text": String::from_utf8_lossy(&line.bytes), "cut": line.cut,
        });
        return writeln!(stdout, "{}", crate::headless::json_line(&value));
    }
    writeln!(stdout, "{}", StyledLine::parse(&line.bytes).text())
}
