//! Other programs on the deck's terminal: the pager, the editor, a shell. The deck gives the terminal away, waits, and
//! takes it again.

use std::io;
use std::path::Path;
use std::process::Command;

use crossterm::event::EventStream;
use rustix::process::{Pid, WaitOptions, waitpid};

use super::{App, Source};
use crate::deck::model::current_path;
use crate::deck::terminal::{self, Screen};
use crate::deck::update::say;
use crate::deck::{DeckError, guard};
use crate::run::{StepId, Timestamp};

/// The terminal, and the input that goes with it.
type Keys = Option<EventStream>;

impl<S: Source> App<'_, S> {
    /// The log of a step in the person's pager.
    pub(super) fn page(
        &mut self,
        step: StepId,
        screen: &mut Screen,
        keys: &mut Keys,
        now: Timestamp,
    ) -> Result<(), DeckError> {
        let Some(path) = self.source.log_path(step) else {
            say(&mut self.ui, now, true, "this step has no log yet");
            return Ok(());
        };
        let mut command = chosen(&["PAGER"], "less");
        command.arg("--").arg(path);
        self.lend(command, screen, keys, now)
    }

    /// The path that a step works on in the person's editor.
    pub(super) fn edit(
        &mut self,
        step: StepId,
        screen: &mut Screen,
        keys: &mut Keys,
        now: Timestamp,
    ) -> Result<(), DeckError> {
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
        self.lend(command, screen, keys, now)
    }

    /// A shell in the folder of a step.
    pub(super) fn shell(
        &mut self,
        step: StepId,
        screen: &mut Screen,
        keys: &mut Keys,
        now: Timestamp,
    ) -> Result<(), DeckError> {
        let Some(folder) = self.source.folder(step) else {
            say(&mut self.ui, now, true, "the folder of this step is gone");
            return Ok(());
        };
        let shell =
            std::env::var_os("SHELL").filter(|s| Path::new(s).is_absolute()).unwrap_or_else(|| "/bin/sh".into());
        let mut command = Command::new(shell);
        command.current_dir(folder);
        self.lend(command, screen, keys, now)
    }

    fn lend(
        &mut self,
        mut command: Command,
        screen: &mut Screen,
        keys: &mut Keys,
        now: Timestamp,
    ) -> Result<(), DeckError> {
        // An event stream reads even when nobody polls it, so it has to go first.
        *keys = None;
        self.lent = true;
        let ended = screen.lend(|| wait_for(&mut command)).map_err(DeckError::Terminal)?;
        *keys = Some(EventStream::new());
        if let Err(error) = ended {
            let program = command.get_program().to_string_lossy();
            say(&mut self.ui, now, true, &format!("{program} could not be started: {error}"));
        }
        self.repaint(screen)
    }
}

/// Runs a program to its end. When it is suspended this process suspends itself too, so that the shell that both were
/// started from has its terminal again; when the shell goes on with them, both do.
fn wait_for(command: &mut Command) -> io::Result<()> {
    let child = command.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    guard::lend(true);
    let ended = loop {
        match waitpid(pid, WaitOptions::UNTRACED) {
            Ok(Some((_, status))) if status.stopped() => terminal::stop_self(),
            Ok(_) => break Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => break Err(errno.into()),
        }
    };
    guard::lend(false);
    ended
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

    #[test]
    fn a_program_is_named_with_its_arguments_or_there_is_another() {
        // No test may change the environment of the others, so a variable that is there is asked for.
        let home = std::env::var("PATH").unwrap();
        let command = chosen(&["SUBDECK_NO_SUCH_VARIABLE", "PATH"], "vi");
        assert_eq!(command.get_program().to_string_lossy(), home.split_whitespace().next().unwrap());
        assert_eq!(chosen(&["SUBDECK_NO_SUCH_VARIABLE"], "vi").get_program(), "vi");
    }
}
