//! Printing data to stdout: a reader that has seen enough ends the printing, never with an error.

use std::io::{self, Write};
use std::process::ExitCode;

/// Writes `text` to stdout. A closed pipe is no error.
///
/// # Errors
/// Any other failure of the stream.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    quiet(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Turns a closed pipe into success.
///
/// # Errors
/// Any other failure.
pub fn quiet(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Says that standard output cannot be written. What a run printed is in its logs in any case.
pub fn complain(error: &io::Error) {
    tell!("subdeck: standard output cannot be written: {error}; the logs of the run have everything");
}

/// Writes a JSON document to stdout.
///
/// # Errors
/// A failure of the stream other than a closed pipe.
pub fn json(value: &serde_json::Value) -> io::Result<()> {
    print(&format!("{}\n", crate::headless::json_document(value)))
}

/// The exit code for a cause.
#[must_use]
pub fn code(cause: crate::run::ExitCause) -> ExitCode {
    ExitCode::from(cause.code())
}
