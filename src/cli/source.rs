//! Who asks: what is recorded with every request that a command sends (product 7).

use std::io::IsTerminal;

use crate::run::ControlSource;

/// This command as the source of a request.
#[must_use]
pub fn here(via: &str, key: Option<&str>, reason: Option<&str>) -> ControlSource {
    ControlSource {
        via: via.to_owned(),
        user: Some(crate::rundir::user::own_name()),
        pid: Some(std::process::id()),
        tty: tty(),
        key: key.map(str::to_owned),
        reason: reason.map(str::to_owned),
    }
}

fn tty() -> Option<String> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return None;
    }
    let name = rustix::termios::ttyname(&stdin, Vec::new()).ok()?;
    name.into_string().ok()
}
