//! Other programs on the deck's terminal: the pager, the editor, a shell. The deck gives the terminal away, waits, and
//! takes it again.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions, waitpid};

use super::{App, Source};
use crate::deck::allowed::current_path;
use crate::deck::terminal::{self, Screen};
use crate::deck::update::say;
use crate::deck::window::ERR_MARK;
use crate::deck::{DeckError, guard};
use crate::run::{StepId, Stream, Timestamp};
use crate::rundir::StepLog;
use crate::text::{SecretLines, StyledLine};

/// Lines of a log that are read at once for a pager.
const LINES: usize = 512;

/// Whoever is done with a log sooner than this has not shown it to anybody: it was printed and not paged.
const MOMENT: Duration = Duration::from_secs(1);

/// What a program reads.
struct Input {
    log: StepLog,
    /// What looks like a key is masked in it.
    masks: bool,
}

impl<S: Source> App<'_, S> {
    /// The log of a step in the person's pager.
    pub(super) fn page(&mut self, step: StepId, screen: &mut Screen, now: Timestamp) -> Result<(), DeckError> {
        let Some(log) = self.source.whole_log(step) else {
            say(&mut self.ui, now, true, "this step has no log yet");
            return Ok(());
        };
        let command = chosen(&["PAGER"], "less");
        let input = Input { log, masks: !self.ui.reveal };
        self.lend(command, Some(input), screen, now)
    }

    /// The path that a step works on in the person's editor.
    pub(super) fn edit(&mut self, step: StepId, screen: &mut Screen, now: Timestamp) -> Result<(), DeckError> {
        let path = self.source.state().step(step).and_then(current_path).map(str::to_owned);
        let (Some(path), Some(folder)) = (path, self.source.folder(step)) else {
            say(&mut self.ui, now, true, "the folder of this step is gone");
            return Ok(());
        };
        // Absolute, so that it cannot be taken for an option.
        let path = folder.join(path);
        if !path.is_file() {
            say(&mut self.ui, now, true, &format!("there is no file {}", path.display()));
            return Ok(());
        }
        let mut command = chosen(&["VISUAL", "EDITOR"], "vi");
        command.arg(&path).current_dir(folder);
        self.lend(command, None, screen, now)
    }

    /// A shell in the folder of a step.
    pub(super) fn shell(&mut self, step: StepId, screen: &mut Screen, now: Timestamp) -> Result<(), DeckError> {
        let Some(folder) = self.source.folder(step) else {
            say(&mut self.ui, now, true, "the folder of this step is gone");
            return Ok(());
        };
        let shell =
            std::env::var_os("SHELL").filter(|s| Path::new(s).is_absolute()).unwrap_or_else(|| "/bin/sh".into());
        let mut command = Command::new(shell);
        command.current_dir(folder);
        self.lend(command, None, screen, now)
    }

    fn lend(
        &mut self,
        mut command: Command,
        input: Option<Input>,
        screen: &mut Screen,
        now: Timestamp,
    ) -> Result<(), DeckError> {
        self.lent = true;
        let paged = input.is_some();
        let begun = Instant::now();
        let ended = screen.lend(|| wait_for(&mut command, input)).map_err(DeckError::Terminal)?;
        let program = command.get_program().to_string_lossy();
        if paged && ended.is_ok() && begun.elapsed() < MOMENT {
            let told = format!(
                "{program} ended at once; if nothing was to be seen, let $PAGER name one that stays, such as less"
            );
            say(&mut self.ui, now, false, &told);
        }
        if let Err(error) = ended {
            say(&mut self.ui, now, true, &format!("{program} could not be started: {error}"));
        }
        self.repaint(screen)
    }
}

/// Runs a program to its end. When it is suspended this process suspends itself too, so that the shell that both were
/// started from has its terminal again; when the shell goes on with them, both do. A log is given to it on its input.
fn wait_for(command: &mut Command, input: Option<Input>) -> io::Result<()> {
    if input.is_some() {
        command.stdin(Stdio::piped());
    }
    // From before it is there: the keys that end something are its own from its first moment on.
    guard::lend(true);
    let ended = run(command, input);
    guard::lend(false);
    ended
}

fn run(command: &mut Command, input: Option<Input>) -> io::Result<()> {
    let mut child = command.spawn()?;
    if let (Some(input), Some(to)) = (input, child.stdin.take()) {
        // Whoever has seen enough closes the pipe, which ends the thread.
        std::thread::Builder::new().name("deck-pager".to_owned()).spawn(move || clean(&input, to))?;
    }
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    loop {
        match waitpid(pid, WaitOptions::UNTRACED) {
            Ok(Some((_, status))) if status.stopped() => terminal::stop_self(),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Writes a log as text: what would act on the terminal is no more in it than on the screen.
fn clean(input: &Input, to: impl Write) -> io::Result<()> {
    let mut to = io::BufWriter::with_capacity(64 * 1024, to);
    let (mut at, mut goes_on) = (0, false);
    let mut above = SecretLines::default();
    loop {
        let lines = input.log.lines_since(at, LINES);
        let Some(last) = lines.last() else { return to.flush() };
        at = last.end;
        for line in lines {
            let mark = if line.stream == Stream::Err && !goes_on { ERR_MARK } else { "" };
            // As on the screen, but no line is too long here.
            let mut styled = StyledLine::whole(&line.bytes);
            if input.masks {
                styled.mask(&mut above);
            }
            write!(to, "{mark}{}", styled.text())?;
            goes_on = line.is_piece();
            if !goes_on {
                to.write_all(b"\n")?;
            }
        }
        to.flush()?;
    }
}

/// The program that the first of these variables names, with its arguments.
fn chosen(variables: &[&str], otherwise: &str) -> Command {
    let named = variables.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.trim().is_empty()));
    let line = named.unwrap_or_else(|| otherwise.to_owned());
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(otherwise));
    command.args(words);
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rundir::RunDir;

    #[test]
    fn a_pager_gets_text_and_nothing_that_acts() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path());
        let long = "x".repeat(300_000);
        let key = "API_KEY=Abcd1234efgh";
        let raw = format!("{key}\none\x1b]52;c;UFdO\x07\x1b[31m red\x1b[0m\x1bc\n10%\r20%\nnul\0\n{long}\nlast");
        std::fs::write(dir.output(StepId(0)), raw).unwrap();
        let paged = |masks: bool| {
            let mut out = Vec::new();
            clean(&Input { log: StepLog::open(&dir, StepId(0)), masks }, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let text = paged(true);
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{:?}", &text[..80]);
        assert!(text.starts_with("API_KEY=************\none") && paged(false).starts_with(key));
        assert!(text.contains(" red") && text.contains("\n20%\n") && !text.contains("10%"));
        assert!(text.ends_with(&format!("\n{long}\nlast\n")));
    }

    #[test]
    fn a_program_is_named_with_its_arguments_or_there_is_another() {
        // No test may change the environment of the others, so a variable that is there is asked for.
        let home = std::env::var("PATH").unwrap();
        let command = chosen(&["SUBDECK_NO_SUCH_VARIABLE", "PATH"], "vi");
        assert_eq!(command.get_program().to_string_lossy(), home.split_whitespace().next().unwrap());
        assert_eq!(chosen(&["SUBDECK_NO_SUCH_VARIABLE"], "vi").get_program(), "vi");
    }
}
