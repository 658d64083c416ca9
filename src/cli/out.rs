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

/// Writes a JSON document to stdout.
///
/// # Errors
/// A failure of the stream other than a closed pipe.
pub fn json(value: &serde_json::Value) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(io::Error::other)?;
    print(&format!("{}\n", escape(&text)))
}

/// The same JSON without the characters that could drive a terminal or turn its text around; serializing escapes
/// those below a space only.
fn escape(json: &str) -> String {
    let drives = |c: char| {
        matches!(c, '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        // All of them lie in the basic plane, so that one escape is enough.
        if drives(c) { text.push_str(&format!("\\u{:04x}", u32::from(c))) } else { text.push(c) }
    }
    text
}

/// The exit code for a cause.
#[must_use]
pub fn code(cause: crate::run::ExitCause) -> ExitCode {
    ExitCode::from(cause.code())
}

#[cfg(test)]
mod tests {
    #[test]
    fn json_keeps_its_meaning_and_drives_nothing() {
        let text = "a\u{1b}[31m\u{9b}31m\u{7f}\u{202e}\u{200b}é日";
        let json = super::escape(&serde_json::to_string(text).unwrap());
        assert!(json.chars().all(|c| !c.is_control() && !matches!(c, '\u{202e}' | '\u{200b}')), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        assert!(json.contains("é日"), "{json}");
    }
}
