//! How a run is shown.

use clap::{Args, ValueEnum};

use crate::config::Config;
use crate::headless::Format;

/// `--output`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum Output {
    #[default]
    Text,
    Jsonl,
    Json,
}

impl From<Output> for Format {
    fn from(output: Output) -> Self {
        match output {
            Output::Text => Self::Text,
            Output::Jsonl => Self::Jsonl,
            Output::Json => Self::Json,
        }
    }
}

/// How a launched or attached run is shown.
#[derive(Clone, Debug, Default, Args)]
pub struct ShowArgs {
    /// Print to stdout instead of opening the deck. A run that is started in this way ends with the command that prints it.
    #[arg(long)]
    pub no_tui: bool,
    /// What --no-tui prints [default: `defaults.output` of the configuration, else text].
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub output: Option<Output>,
    /// Draw with ASCII characters only.
    #[arg(long)]
    pub ascii: bool,
}

impl ShowArgs {
    /// What is printed without a deck: by the flag, else by the configuration.
    #[must_use]
    pub fn output(&self, config: &Config) -> Output {
        self.output.unwrap_or(if config.output() == "jsonl" { Output::Jsonl } else { Output::Text })
    }
}
