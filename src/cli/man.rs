//! `subdeck man [COMMAND]`: prints a manual page in roff.

use std::process::ExitCode;

use anyhow::bail;

use super::{exit_codes, lines};

/// Print the manual page
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Of one command instead of the whole program
    pub command: Option<String>,
}

/// Prints the page of `command`, or of one below it.
///
/// # Errors
/// When there is no such command or the output cannot be written.
pub fn run(args: &ManArgs, mut command: clap::Command) -> anyhow::Result<ExitCode> {
    command.build();
    let page = match &args.command {
        None => command.after_long_help(exit_codes::table()),
        Some(name) => match command.find_subcommand(name).filter(|c| !c.is_hide_set()) {
            // Building gave it the name that its page has, with dashes for spaces.
            Some(found) => found.clone(),
            None => bail!("there is no command `{name}`"),
        },
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    lines::out(|to| to.write_all(&text))?;
    Ok(ExitCode::SUCCESS)
}
