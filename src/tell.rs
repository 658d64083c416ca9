//! One line to standard error, for whoever started a command.

/// Writes a line to standard error. That nobody can read it is no reason to end, which is what the printing macros of
/// the standard library make of it.
macro_rules! tell {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}
