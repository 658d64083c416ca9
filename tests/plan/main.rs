//! Plan files as people write them: what they become, and what every mistake gets.

mod configs;
mod mistakes;
mod resolved;
mod torn;
mod warnings;

use std::path::{Path, PathBuf};
use std::time::Duration;

use subdeck::plan::{
    self, Control, Input, Limit, LoadOptions, Loaded, LogicalStep, NotifyOn, PiTransport, Problem, Problems, Rule,
    Runner, Severity, Source, Step, SystemPromptMode,
};
use subdeck::run::{CostUsd, Family, NamedRunner, RunMode, Thresholds, ToolBlock, TurnLimit};

/// A step that is right, so that a row of the table holds one mistake.
const STEP: &str = "[[step]]\nagent = \"scout\"\ntask = \"t\"\n";

/// A step that is right, and one more line, so that the mistake stands on the fifth.
const STEP_AND_BLANK: &str = "[[step]]\nagent = \"scout\"\ntask = \"t\"\n\n";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/plans")
}

fn options() -> LoadOptions {
    LoadOptions { current_dir: fixtures(), ..LoadOptions::default() }
}

fn load(name: &str) -> Result<Loaded, Problems> {
    plan::load(Input::Path(Path::new(name)), &options())
}

fn load_text(name: &str, text: &str) -> Result<Loaded, Problems> {
    plan::load_source(&Source::new(name, text), &fixtures(), &options())
}

fn steps(loaded: &Loaded) -> Vec<&Step> {
    loaded.plan.flat().collect()
}
