//! `--read-only`: which commands write into runs or start them, and are refused then before they begin (product 2).

use anyhow::bail;

use super::args::{Command, RootArgs};
use super::load::World;
use crate::config::Origin;

/// Why nothing may be written, if that was asked for: what said so, and where.
pub fn asked(world: &World, root: &RootArgs) -> Option<String> {
    if root.read_only {
        return Some("--read-only was given".to_owned());
    }
    if !world.config.read_only() {
        return None;
    }
    Some(match world.config.settings("read_only").last().map(|setting| &setting.origin) {
        Some(Origin::Environment(name)) => format!("{name} is set"),
        Some(Origin::User(file, line) | Origin::Project(file, line)) => {
            format!("`read_only` is set in {}:{line}", file.display())
        }
        Some(Origin::BuiltIn | Origin::Fallback(_)) | None => "`read_only` is set".to_owned(),
    })
}

/// Whether a command may begin.
///
/// # Errors
/// The reason why not, as a sentence.
pub fn check(command: &Command) -> anyhow::Result<()> {
    let Some((root, what)) = writes(command) else { return Ok(()) };
    // The configuration is looked at again by the command itself, which tells what is wrong with it.
    match asked(&World::quietly(), root) {
        Some(why) => bail!("read-only: {why}; {what}"),
        None => Ok(()),
    }
}

/// What a command would write; `None` for those that only look.
fn writes(command: &Command) -> Option<(&RootArgs, &'static str)> {
    const NOT_ASKED: &str = "the run was asked for nothing";
    const NOT_STARTED: &str = "no run was started";
    match command {
        Command::Run(args) => Some((&args.root, NOT_STARTED)),
        Command::Resume(args) => Some((&args.root, NOT_STARTED)),
        Command::Retry(args) => Some((&args.root, NOT_STARTED)),
        Command::Demo(args) => Some((&args.root, NOT_STARTED)),
        Command::Steer(args) => Some((&args.root, NOT_ASKED)),
        Command::Interrupt(args) | Command::Stop(args) => Some((&args.root, NOT_ASKED)),
        Command::Budget(args) if !args.changes.is_empty() => Some((&args.root, NOT_ASKED)),
        Command::Answer(args) if args.answer.is_some() || args.dismiss => Some((&args.root, NOT_ASKED)),
        Command::Prune(args) if args.yes => Some((&args.root, "no run was removed")),
        Command::Budget(_)
        | Command::Answer(_)
        | Command::Prune(_)
        | Command::Attach(_)
        | Command::Replay(_)
        | Command::Ls(_)
        | Command::Status(_)
        | Command::Events(_)
        | Command::Logs(_)
        | Command::Wait(_)
        | Command::Export(_)
        | Command::Check(_)
        | Command::Agents(_)
        | Command::Doctor(_)
        | Command::Config(_)
        | Command::Schema(_)
        | Command::Completions(_)
        | Command::Man(_) => None,
    }
}
