//! `subdeck completions SHELL`: prints what a shell needs to complete the command line.

use std::process::ExitCode;

use super::lines;

/// Print completions for a shell
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Prints the completions of `command`.
///
/// # Errors
/// When the output cannot be written.
pub fn run(args: &CompletionsArgs, mut command: clap::Command) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut text);
    lines::out(|to| to.write_all(&text))?;
    Ok(ExitCode::SUCCESS)
}
