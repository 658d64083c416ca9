//! The world of a command: its environment, its configuration, and the plan it loads.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;

use super::check::print_problems;
use crate::agents::demo::ScriptError;
use crate::config::{Config, Env};
use crate::engine::Caps;
use crate::plan::{LoadOptions, Loaded, Plan, Problems, ScriptProblem, Severity};

/// What every command knows of the world.
pub struct World {
    /// The process's environment.
    pub env: Env,
    /// The configuration in force.
    pub config: Config,
    /// Something of the configuration cannot be used.
    broken: bool,
}

impl World {
    /// Looks at the world; what is wrong with the configuration is told on stderr and left out.
    ///
    /// # Errors
    /// When the problems cannot be printed.
    pub fn look() -> anyhow::Result<Self> {
        // Runs are looked for elsewhere. A path from a folder that is gone leads nowhere, which says itself.
        let env = Env::of_process_anywhere();
        let (config, mut problems) = Config::load(&env);
        problems.extend(super::keys::keymap(&config).1);
        print_problems(&problems)?;
        let broken = problems.iter().any(|p| p.severity == Severity::Error);
        Ok(Self { env, config, broken })
    }

    /// Looks at the world and tells nothing of what is wrong with the configuration.
    pub fn quietly() -> Self {
        let env = Env::of_process_anywhere();
        let (config, problems) = Config::load(&env);
        let broken = problems.iter().any(|p| p.severity == Severity::Error);
        Self { env, config, broken }
    }

    /// Whether something of the configuration cannot be used.
    pub const fn broken(&self) -> bool {
        self.broken
    }

    /// Looks at the world of a command that starts something: a value that cannot be used must not be guessed.
    ///
    /// # Errors
    /// As [`World::look`], when the current folder is gone, and when a value of the configuration is wrong.
    pub fn to_start() -> anyhow::Result<Self> {
        std::env::current_dir().context("the current folder cannot be used")?;
        let world = Self::look()?;
        if world.broken {
            anyhow::bail!("the configuration is wrong; nothing was started");
        }
        Ok(world)
    }

    /// The options that every way to a plan shares.
    #[must_use]
    pub fn options(&self, cwd: Option<PathBuf>) -> LoadOptions {
        let mut options = self.env.load_options(&self.config);
        options.cwd = cwd.map(|path| self.env.current_dir.join(path));
        options.check_script = Some(check_script);
        options
    }

    /// How many bytes of output a run may keep.
    #[must_use]
    pub fn caps(&self) -> Caps {
        Caps { step: self.config.capture_step(), run: self.config.capture_run() }
    }
}

/// What is wrong with the script of a demo step.
///
/// # Errors
/// Why it cannot be played in this folder.
pub fn check_script(script: &str, cwd: &Path) -> Result<(), ScriptProblem> {
    super::demo_agent::check(script, cwd).map_err(|error| match error {
        ScriptError::NoScene { name, known } => {
            ScriptProblem { message: format!("there is no scene `{name}`"), known, may_come: false }
        }
        ScriptError::Unreadable(ref path, ref why) => {
            let may_come = why.kind() == std::io::ErrorKind::NotFound && Path::new(path).is_relative();
            ScriptProblem { message: error.to_string(), known: Vec::new(), may_come }
        }
        other => ScriptProblem { message: other.to_string(), ..ScriptProblem::default() },
    })
}

/// What is wrong with a plan, in one line.
#[must_use]
pub fn first(problems: &Problems) -> String {
    let errors = problems.0.iter().filter(|problem| problem.severity == Severity::Error);
    let text: Vec<String> = errors
        .map(|problem| match &problem.suggestion {
            Some(what) => format!("{} ({what})", problem.message),
            None => problem.message.clone(),
        })
        .collect();
    text.join("; ")
}

/// The plan; or, after its problems have been told, the exit code.
///
/// # Errors
/// The exit code for a plan that cannot run.
pub fn settle(loaded: Result<Loaded, Problems>) -> Result<Plan, ExitCode> {
    match loaded {
        Ok(loaded) => {
            // Warnings that cannot be printed are no reason not to run.
            let _ = print_problems(&loaded.warnings);
            Ok(loaded.plan)
        }
        Err(problems) => {
            for line in problems.lines() {
                tell!("{line}");
            }
            Err(ExitCode::from(2))
        }
    }
}
