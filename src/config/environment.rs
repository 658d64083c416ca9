//! What configuration needs to know of the process it runs in, as a value that tests can make.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::plan::{Budget, LoadOptions};

use super::Config;

/// The variables and the folder of a process.
#[derive(Clone, Debug, Default)]
pub struct Env {
    /// The variables. Those whose name or value is not UTF-8 are left out.
    pub vars: BTreeMap<String, String>,
    /// PATH as it is.
    pub path: Option<OsString>,
    /// The folder; absolute.
    pub current_dir: PathBuf,
}

impl Env {
    /// Of this process.
    ///
    /// # Errors
    /// When the current folder does not exist any more.
    pub fn of_process() -> std::io::Result<Self> {
        let current_dir = std::env::current_dir()?;
        Ok(Self { current_dir, ..Self::of_process_anywhere() })
    }

    /// Of this process, for what needs no folder: one that does not exist any more is named by where it was.
    #[must_use]
    pub fn of_process_anywhere() -> Self {
        let vars = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
        let mut vars: BTreeMap<String, String> = vars.collect();
        // Without HOME the system's list of users knows.
        if let (false, Some(home)) =
            (vars.contains_key("HOME"), std::env::home_dir().and_then(|h| h.to_str().map(str::to_owned)))
        {
            vars.insert("HOME".to_owned(), home);
        }
        let was = || vars.get("PWD").map(PathBuf::from).filter(|p| p.is_absolute()).unwrap_or_else(|| "/".into());
        let current_dir = std::env::current_dir().unwrap_or_else(|_| was());
        Self { vars, path: std::env::var_os("PATH"), current_dir }
    }

    /// A variable that is set and not empty.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str).filter(|v| !v.trim().is_empty())
    }

    /// The home folder.
    #[must_use]
    pub fn home(&self) -> Option<PathBuf> {
        self.get("HOME").map(PathBuf::from).filter(|p| p.is_absolute())
    }

    /// The folder of the user's configuration.
    #[must_use]
    pub fn config_dir(&self) -> Option<PathBuf> {
        self.base("XDG_CONFIG_HOME", ".config")
    }

    /// The folder of the user's state.
    #[must_use]
    pub fn state_dir(&self) -> Option<PathBuf> {
        self.base("XDG_STATE_HOME", ".local/state")
    }

    /// A relative path in such a variable is to be ignored, says the XDG base directory specification.
    fn base(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let set = self.get(variable).map(PathBuf::from).filter(|p| p.is_absolute());
        Some(set.or_else(|| Some(self.home()?.join(below_home)))?.join("subdeck"))
    }

    /// A written path made absolute from `base`, with `~/`.
    #[must_use]
    pub fn path_from(&self, base: &Path, text: &str) -> PathBuf {
        match (text.strip_prefix("~/"), self.home()) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => base.join(text),
        }
    }

    /// What loading a plan needs of this process and of the configuration.
    #[must_use]
    pub fn load_options(&self, config: &Config) -> LoadOptions {
        LoadOptions {
            runner: None,
            current_dir: self.current_dir.clone(),
            home: self.home(),
            path: self.path.clone(),
            cwd: None,
            name: None,
            task: None,
            budget: Budget::default(),
            agent_folders: None,
            pi_program: config.pi_program().map(str::to_owned),
            defaults: config.defaults(),
            check_script: None,
        }
    }
}
