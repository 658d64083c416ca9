//! `subdeck config [explain|path|trust]`: what is set, where it comes from, and which projects may name programs.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde_json::json;

use super::check::{print_problems, problem_json};
use super::lines;
use crate::config::{Config, Env, KEYS, Origin, Trust, Value};
use crate::plan::{Problem, Severity};

/// Show the configuration and where it comes from
#[derive(Debug, clap::Args)]
pub struct ConfigArgs {
    /// What to do; without it every value is printed, as with `explain`
    #[command(subcommand)]
    pub action: Option<Action>,
}

/// What to do with the configuration.
#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// Print every value with where it comes from
    Explain {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the files that are read
    Path,
    /// Let this project's configuration name programs and variables
    Trust {
        /// The project's folder or configuration file; by default the one of this folder
        project: Option<PathBuf>,
        /// List the projects that are trusted
        #[arg(long, conflicts_with_all = ["remove", "project"])]
        list: bool,
        /// Take the trust away
        #[arg(long)]
        remove: bool,
    },
}

/// Does it: 0, or 2 when something of the configuration is wrong.
///
/// # Errors
/// When the trust cannot be changed or the output cannot be written.
pub fn run(args: &ConfigArgs) -> anyhow::Result<ExitCode> {
    let env = Env::of_process().context("the current folder cannot be used")?;
    let (config, mut problems) = Config::load(&env);
    problems.extend(super::keys::keymap(&config).1);
    match args.action.as_ref().unwrap_or(&Action::Explain { json: false }) {
        Action::Explain { json } => explain(&config, &problems, *json),
        Action::Path => {
            lines::out(|to| {
                for file in config.user_file().into_iter().chain(config.project_file()) {
                    let there = if file.exists() { "" } else { "  (does not exist)" };
                    lines::line(to, &format!("{}{there}", file.display()))?;
                }
                Ok(())
            })?;
            Ok(ExitCode::SUCCESS)
        }
        Action::Trust { list: true, .. } => {
            let trust = Trust::open(&env);
            lines::out(|to| trust.trusted().iter().try_for_each(|t| lines::line(to, &t.path.display().to_string())))?;
            Ok(ExitCode::SUCCESS)
        }
        Action::Trust { project, remove, .. } => trust(&env, &config, project.as_ref(), *remove),
    }
}

fn explain(config: &Config, problems: &[Problem], json: bool) -> anyhow::Result<ExitCode> {
    if json {
        let values = KEYS.iter().map(|key| {
            let settings = config.settings(key.name).iter().rev();
            let layers: Vec<_> =
                settings.map(|s| json!({ "value": show(&s.value), "from": origin(&s.origin) })).collect();
            let value = layers.first().and_then(|l| l.get("value")).cloned();
            let built_in = Some(key.built_in).filter(|b| !b.is_empty());
            json!({
                "key": key.name,
                "value": value.or_else(|| built_in.map(Into::into)),
                "from": layers.first().and_then(|l| l.get("from")).cloned().unwrap_or_else(|| "built in".into()),
                "layers": layers,
                "note": Some(key.note).filter(|note| !note.is_empty()),
                "variables": key.variables,
            })
        });
        let variables: Vec<_> =
            config.variables().iter().map(|(name, s)| json!({ "name": name, "from": origin(&s.origin) })).collect();
        let report = json!({
            "values": values.collect::<Vec<_>>(),
            "env": variables,
            "keys": config.bindings().iter().map(|(action, s)| {
                let used = !is_refused(problems, action);
                json!({ "action": action, "keys": show(&s.value), "from": origin(&s.origin), "used": used })
            }).collect::<Vec<_>>(),
            "trusted": config.project_trusted(),
            "problems": problems.iter().map(problem_json).collect::<Vec<_>>(),
        });
        super::out::json(&report)?;
    } else {
        lines::out(|to| table(to, config, problems))?;
        print_problems(problems)?;
    }
    let wrong = problems.iter().any(|p| p.severity == Severity::Error);
    Ok(if wrong { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

/// Whether the deck does not use the keys that an action was given.
fn is_refused(problems: &[Problem], action: &str) -> bool {
    problems.iter().any(|problem| problem.key.strip_prefix("keys.") == Some(action))
}

fn table(to: &mut dyn Write, config: &Config, problems: &[Problem]) -> std::io::Result<()> {
    let mut rows = Vec::new();
    for key in KEYS {
        let settings = config.settings(key.name);
        if settings.is_empty() {
            rows.push(vec![key.name.to_owned(), key.built_in_words(), "built in".to_owned()]);
        }
        for (i, setting) in settings.iter().rev().enumerate() {
            let name = if i == 0 { key.name } else { "" };
            let hidden = if i == 0 { "" } else { " (hidden)" };
            rows.push(vec![name.to_owned(), show(&setting.value), format!("{}{hidden}", origin(&setting.origin))]);
        }
    }
    for (name, setting) in config.variables() {
        // Values may be secrets.
        rows.push(vec![format!("env.{name}"), "set".to_owned(), origin(&setting.origin)]);
    }
    for (action, setting) in config.bindings() {
        let not = if is_refused(problems, action) { " (not used)" } else { "" };
        rows.push(vec![format!("keys.{action}"), show(&setting.value), format!("{}{not}", origin(&setting.origin))]);
    }
    lines::table(to, &rows)
}

fn show(value: &Value) -> String {
    match value {
        Value::Time(span) => crate::text::written(*span),
        other => other.to_string(),
    }
}

fn origin(origin: &Origin) -> String {
    match origin {
        Origin::BuiltIn => "built in".to_owned(),
        Origin::Fallback(name) | Origin::Environment(name) => format!("environment {name}"),
        Origin::User(file, line) | Origin::Project(file, line) => format!("{}:{line}", file.display()),
    }
}

fn trust(env: &Env, config: &Config, project: Option<&PathBuf>, remove: bool) -> anyhow::Result<ExitCode> {
    let mut trust = Trust::open(env);
    if remove {
        let path = match (project, config.project_file()) {
            (Some(path), _) => env.current_dir.join(path),
            (None, Some(file)) => file.to_owned(),
            (None, None) => env.current_dir.clone(),
        };
        let removed = trust.remove(&path)?;
        let said = if removed == 0 { "was not trusted" } else { "is not trusted any more" };
        lines::out(|to| lines::line(to, &format!("{} {said}", path.display())))?;
        return Ok(ExitCode::SUCCESS);
    }
    let file = match project {
        Some(path) if env.current_dir.join(path).is_dir() => env.current_dir.join(path).join(".subdeck/config.toml"),
        Some(path) => env.current_dir.join(path),
        None => match config.project_file() {
            Some(file) => file.to_owned(),
            None => bail!("there is no .subdeck/config.toml in this folder or above it in the repository"),
        },
    };
    if !file.is_file() {
        bail!("{} is not a file", file.display());
    }
    let entry = trust.add(&file)?;
    // Read again, so that what is listed is what counts from now on.
    let (config, _) = Config::load(env);
    lines::out(|to| {
        lines::line(to, &format!("trusted {}", entry.path.display()))?;
        for key in KEYS.iter().filter(|key| key.needs_trust) {
            for setting in config.settings(key.name).iter().filter(|s| matches!(s.origin, Origin::Project(..))) {
                lines::line(to, &format!("names   {} = {}", key.name, setting.value))?;
            }
        }
        for (name, _) in config.variables().iter().filter(|(_, s)| matches!(s.origin, Origin::Project(..))) {
            lines::line(to, &format!("sets    {name}"))?;
        }
        for (action, setting) in config.bindings().iter().filter(|(_, s)| matches!(s.origin, Origin::Project(..))) {
            lines::line(to, &format!("keys    {action} = {}", setting.value))?;
        }
        lines::line(to, &format!("sha256  {}", entry.sha256))?;
        lines::line(to, "a change of the file has to be trusted again")
    })?;
    Ok(ExitCode::SUCCESS)
}
