//! Signals by the names that files give them.

/// The name of a signal, such as `SIGTERM`; unknown ones by number.
pub(super) fn signal_name(number: i32) -> String {
    SIGNALS.iter().find(|(n, _)| *n == number).map_or_else(|| format!("SIG{number}"), |(_, name)| (*name).to_owned())
}

/// The number of a signal from its name.
pub(super) fn signal_number(name: &str) -> Option<i32> {
    SIGNALS.iter().find(|(_, n)| *n == name).map(|(n, _)| *n).or_else(|| name.strip_prefix("SIG")?.parse().ok())
}

/// The signals that a supervisor meets and whose numbers are the same on Linux and macOS.
pub(super) const SIGNALS: [(i32, &str); 12] = [
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
];
