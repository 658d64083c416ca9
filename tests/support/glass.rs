//! The deck on a run of a world, on a terminal.

#[allow(dead_code)]
#[path = "pty.rs"]
pub mod pty;

use portable_pty::CommandBuilder;
use pty::Pty;

use crate::support::{Run, World};

/// Attaches to the run.
pub fn deck(world: &World, run: &Run, columns: u16, rows: u16) -> Pty {
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_subdeck"));
    command.args(["attach", run.dir.to_str().unwrap()]);
    command.cwd(world.project());
    command.env("HOME", world.root().parent().unwrap());
    command.env("SUBDECK_ROOT", world.root());
    command.env("SUBDECK_TEST", world.root().parent().unwrap());
    Pty::spawn(command, columns, rows)
}
