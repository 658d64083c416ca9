//! A user and a mount namespace of the test's own, in which it may mount what it likes: the test's body runs in a second
//! process. Where there can be none it prints why and does nothing.

use std::process::{Command, Stdio};

/// Says to the second process that it is the one.
const INSIDE: &str = "SUBDECK_TEST_NAMESPACE";

/// Runs the body of the test called `name` in a namespace.
pub fn in_a_namespace(name: &str, body: impl FnOnce()) {
    if std::env::var(INSIDE).is_ok_and(|inside| inside == name) {
        return body();
    }
    if let Err(why) = namespace(&["true".into()], None) {
        println!("{name}: skipped, no mount namespace here: {why}");
        return;
    }
    let own = std::env::current_exe().unwrap();
    let words = [own.to_str().unwrap(), "--exact", name, "--nocapture"].map(str::to_owned);
    if let Err(output) = namespace(&words, Some(name)) {
        panic!("{output}");
    }
}

/// Runs a command in namespaces of its own; what it printed when it fails.
fn namespace(words: &[String], inside: Option<&str>) -> Result<(), String> {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount"]).args(words).stdin(Stdio::null());
    if let Some(name) = inside {
        command.env(INSIDE, name);
    }
    let output = command.output().map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let texts = [&output.stdout, &output.stderr].map(|t| String::from_utf8_lossy(t).into_owned());
    Err(format!("{}\n{}", texts[0], texts[1]))
}
