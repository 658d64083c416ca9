//! What people type: arguments in [`args`], one file a command, and how an outcome becomes an exit code.
//!
//! Data goes to stdout, everything else to stderr. Text from outside is printed through [`crate::text::SafeText`].

mod acks;
mod again;
mod agents_cmd;
mod answer;
pub mod args;
mod attach;
mod budget;
mod budget_table;
mod check;
mod completions;
mod config_cmd;
mod control;
mod demo;
mod demo_agent;
mod doctor;
mod doctor_probe;
mod doctor_report;
mod events;
mod exit_codes;
mod export;
mod find;
mod fleet;
mod keys;
mod launch;
mod lines;
mod load;
mod logs;
mod looks;
mod ls;
mod man;
mod out;
mod prune;
mod read_only;
mod replay;
mod run;
mod schema;
mod show;
mod shown;
mod source;
mod status;
mod wait;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Cli, Command};

/// Runs the program with these arguments; the first is its name.
#[must_use]
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    if let Some(code) = inner(&arguments) {
        return code;
    }
    let cli = match Cli::try_parse_from(behind_the_command(arguments)) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and versions are answers, not errors, and clap knows where each belongs.
            let _ = error.print();
            return ExitCode::from(u8::from(error.use_stderr()) * 2);
        }
    };
    let Some(command) = cli.command else { return answer(fleet::fleet(&cli.fleet)) };
    if let Err(refused) = read_only::check(&command) {
        return answer(Err(refused));
    }
    answer(match command {
        Command::Run(args) => run::run(args),
        Command::Attach(args) => attach::attach(&args),
        Command::Replay(args) => replay::replay(&args),
        Command::Ls(args) => ls::ls(&args),
        Command::Status(args) => status::status(&args),
        Command::Events(args) => events::events(&args),
        Command::Logs(args) => logs::logs(&args),
        Command::Wait(args) => wait::wait(&args),
        Command::Steer(args) => control::steer(&args),
        Command::Interrupt(args) => control::interrupt(&args),
        Command::Stop(args) => control::stop(&args),
        Command::Budget(args) => budget::budget(&args),
        Command::Answer(args) => answer::answer(&args),
        Command::Resume(args) => again::resume(args),
        Command::Retry(args) => again::retry(args),
        Command::Export(args) => export::export(&args),
        Command::Prune(args) => prune::prune(&args),
        Command::Demo(args) => demo::demo(args),
        Command::Check(args) => check::run(&args),
        Command::Agents(args) => agents_cmd::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Config(args) => config_cmd::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Completions(args) => completions::run(&args, Cli::command()),
        Command::Man(args) => man::run(&args, Cli::command()),
    })
}

/// The arguments with what stands before a command and belongs to it behind it: `subdeck --root DIR attach` means what
/// `subdeck attach --root DIR` does. Without a command these options are the fleet's.
fn behind_the_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let mut at = 1;
    while let Some(word) = arguments.get(at).and_then(|word| word.to_str()) {
        at += match word {
            "--root" => 2,
            "--read-only" => 1,
            other if other.starts_with("--root=") => 1,
            _ => break,
        };
    }
    let command = arguments.get(at).and_then(|word| word.to_str());
    if at > 1 && command.is_some_and(|name| Cli::command().find_subcommand(name).is_some()) {
        let command = arguments.remove(at);
        arguments.insert(1, command);
    }
    arguments
}

/// The exit code of a command; what went wrong is told.
fn answer(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        let text = format!("subdeck: {error:#}");
        let printed = lines::err(|to| crate::text::SafeText::block(&text).iter().try_for_each(|l| writeln!(to, "{l}")));
        // Nobody is left to be told when standard error is gone.
        drop(printed);
        ExitCode::from(2)
    })
}

/// The commands that processes of ours call, and the one help topic that clap does not know. They are looked at
/// before clap, because a run's first child waits for them.
fn inner(arguments: &[OsString]) -> Option<ExitCode> {
    let word = arguments.get(1)?.to_str()?;
    let path = || arguments.get(2).map(std::path::PathBuf::from);
    match word {
        "__keeper" => Some(crate::engine::keeper_main(&path()?).into()),
        "__runner" => {
            let foreground = arguments.iter().any(|a| a == "--foreground");
            Some(crate::engine::runner_main(&path()?, crate::engine::Stance { foreground }).into())
        }
        "__demo-agent" => Some(demo::agent(arguments.get(2..)?)),
        "help" if arguments.get(2).is_some_and(|topic| topic == "exit-codes") => Some(exit_codes::print().into()),
        _ => None,
    }
}
