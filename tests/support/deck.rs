//! The real program on a terminal, with a home of its own.

#[path = "pty.rs"]
pub mod pty;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crossterm::event::KeyCode;
use portable_pty::CommandBuilder;
use pty::{PATIENCE, Pty};
use subdeck::deck::keymap::Key;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_subdeck");

/// The key for one level back, in the form that no key after it can change.
pub const ESCAPE: &str = "\x1b[27u";

/// What a terminal sends for the best key of an action.
pub fn bytes(key: Key) -> String {
    match key.code {
        KeyCode::Char(c) if key.ctrl => char::from(c as u8 & 0x1f).to_string(),
        KeyCode::Char(c) => c.to_string(),
        KeyCode::Enter => "\r".to_owned(),
        KeyCode::Esc => ESCAPE.to_owned(),
        KeyCode::Tab => "\t".to_owned(),
        KeyCode::Left => "\x1b[D".to_owned(),
        KeyCode::Right => "\x1b[C".to_owned(),
        KeyCode::Up => "\x1b[A".to_owned(),
        KeyCode::Down => "\x1b[B".to_owned(),
        KeyCode::PageUp => "\x1b[5~".to_owned(),
        KeyCode::PageDown => "\x1b[6~".to_owned(),
        other => panic!("no key of this kind is the best of an action: {other:?}"),
    }
}

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

    /// Writes a file that can be started, and says where it is.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        path.display().to_string()
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
