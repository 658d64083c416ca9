//! Words to the runner's own log. It may lie on a full disk, and that must never cost a run its life, which is what the
//! printing macros do.

use std::io::Write;

/// Writes one line to standard error, if that can be done.
pub fn complain(who: &str, what: &dyn std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "subdeck {who}: {what}");
}
