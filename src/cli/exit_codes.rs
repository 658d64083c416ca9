//! `subdeck help exit-codes`.

use std::io::Write;

use crate::run::ExitCause;

/// Prints the table.
pub fn print() -> u8 {
    let mut out = std::io::stdout().lock();
    // A reader that has seen enough is no error.
    let _ = write!(out, "{}", table());
    0
}

/// The table of exit codes, which `run --no-tui`, `attach --no-tui` and `wait` share.
#[must_use]
pub fn table() -> String {
    let mut text = String::from("Exit codes of `run --no-tui`, `attach --no-tui` and `wait`:\n\n");
    for cause in ExitCause::ALL {
        text.push_str(&format!("  {}  {}\n", cause.code(), cause.meaning()));
    }
    text.push_str(
        "\nOf several causes the order is: stopped, timed out, over budget, failed, waiting for a person, paused;\n\
         lost only where no end was recorded.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_code_has_its_line() {
        let table = super::table();
        for (code, word) in [(0, "complete"), (4, "paused"), (8, "`wait` ran out"), (9, "waiting for a person")] {
            assert!(table.contains(&format!("  {code}  {word}")), "{table}");
        }
    }
}
