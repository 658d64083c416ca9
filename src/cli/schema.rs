//! `subdeck schema plan|events|status|report`: prints a JSON schema.

use std::process::ExitCode;

use super::lines;

/// Print a JSON schema
#[derive(Debug, clap::Args)]
pub struct SchemaArgs {
    /// Of what
    #[arg(value_enum)]
    pub of: Subject,
}

/// What there is a schema of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Subject {
    /// Plan files.
    Plan,
    /// The lines of `--output jsonl` and `events --json`.
    Events,
    /// What `status --json`, `ls --json` and `--output json` print of a run.
    Status,
    /// What `export --format json` writes.
    Report,
}

impl Subject {
    /// The schema.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Plan => include_str!("../../assets/schema/plan.json"),
            Self::Events => include_str!("../../assets/schema/events.json"),
            Self::Status => include_str!("../../assets/schema/status.json"),
            Self::Report => include_str!("../../assets/schema/report.json"),
        }
    }
}

/// Prints the schema.
///
/// # Errors
/// When the output cannot be written.
pub fn run(args: &SchemaArgs) -> anyhow::Result<ExitCode> {
    lines::out(|to| to.write_all(args.of.text().as_bytes()))?;
    Ok(ExitCode::SUCCESS)
}
