//! The real program on a terminal, with a home of its own.

#[path = "pty.rs"]
pub mod pty;

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use portable_pty::CommandBuilder;
use pty::{PATIENCE, Pty};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_subdeck");

/// A root of its own, whose runs end with the test.
pub struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn deck(&self, arguments: &[&str], columns: u16, rows: u16) -> Pty {
        self.deck_with(arguments, &[], columns, rows)
    }

    /// The same with variables.
    pub fn deck_with(&self, arguments: &[&str], variables: &[(&str, &str)], columns: u16, rows: u16) -> Pty {
        let mut command = CommandBuilder::new(PROGRAM);
        command.args(arguments);
        command.cwd(self.path());
        command.env("HOME", self.path());
        command.env("SUBDECK_ROOT", self.path().join("root"));
        command.env("TMPDIR", self.path());
        for (name, value) in variables {
            command.env(name, value);
        }
        Pty::spawn(command, columns, rows)
    }

    /// Writes the user's configuration.
    pub fn configure(&self, text: &str) {
        let file = self.path().join(".config/subdeck/config.toml");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    pub fn subdeck(&self, arguments: &[&str]) -> String {
        let output = Command::new(PROGRAM)
            .args(arguments)
            .current_dir(self.path())
            .env("HOME", self.path())
            .env("SUBDECK_ROOT", self.path().join("root"))
            .env("TMPDIR", self.path())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Starts a run that prints something and then goes on until it is stopped.
    pub fn run(&self, columns: u16, rows: u16) -> Pty {
        let script = "echo hello from the child; echo oops >&2; exec sleep 1000";
        let pty = self.deck(&["run", "--name", "nap", "--", "sh", "-c", script], columns, rows);
        pty.wait_text("hello from the child");
        pty
    }

    pub fn wait_state(&self, state: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.subdeck(&["status", "@last"]).contains(state) {
            assert!(Instant::now() < deadline, "{}", self.subdeck(&["status", "@last"]));
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.subdeck(&["stop", "@last", "--wait"]);
    }
}
