//! What loading a plan needs from the world, and how its problems are told.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::plan::{LoadOptions, Loaded, Plan, Problems};

/// The options that every way to a plan shares.
pub fn options(cwd: Option<PathBuf>) -> anyhow::Result<LoadOptions> {
    let current_dir = std::env::current_dir()?;
    Ok(LoadOptions {
        home: std::env::home_dir(),
        path: std::env::var_os("PATH"),
        cwd: cwd.map(|path| current_dir.join(path)),
        current_dir,
        ..LoadOptions::default()
    })
}

/// The plan; or, after its problems have been told, the exit code.
///
/// # Errors
/// The exit code for a plan that cannot run.
pub fn settle(loaded: Result<Loaded, Problems>) -> Result<Plan, ExitCode> {
    match loaded {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                tell(&warning.lines());
            }
            Ok(loaded.plan)
        }
        Err(problems) => {
            tell(&problems.lines());
            Err(ExitCode::from(2))
        }
    }
}

fn tell(lines: &[crate::text::SafeText]) {
    for line in lines {
        eprintln!("{line}");
    }
}
