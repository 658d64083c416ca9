//! The world of a command: its environment, its configuration, and the plan it loads.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;

use super::check::print_problems;
use crate::config::{Config, Env};
use crate::engine::Caps;
use crate::plan::{LoadOptions, Loaded, Plan, Problems};

/// What every command knows of the world.
pub struct World {
    /// The process's environment.
    pub env: Env,
    /// The configuration in force.
    pub config: Config,
}

impl World {
    /// Looks at the world; what is wrong with the configuration is told on stderr and left out.
    ///
    /// # Errors
    /// When the current folder is gone.
    pub fn look() -> anyhow::Result<Self> {
        let env = Env::of_process().context("the current folder cannot be used")?;
        let (config, problems) = Config::load(&env);
        print_problems(&problems)?;
        Ok(Self { env, config })
    }

    /// The options that every way to a plan shares.
    #[must_use]
    pub fn options(&self, cwd: Option<PathBuf>) -> LoadOptions {
        let mut options = self.env.load_options(&self.config);
        options.cwd = cwd.map(|path| self.env.current_dir.join(path));
        options
    }

    /// How many bytes of output a run may keep.
    #[must_use]
    pub fn caps(&self) -> Caps {
        Caps { step: self.config.capture_step(), run: self.config.capture_run() }
    }
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
                eprintln!("{line}");
            }
            Err(ExitCode::from(2))
        }
    }
}
