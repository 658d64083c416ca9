//! `subdeck agents`: the agent definitions that were found, where, and what is wrong with the others.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::json;

use super::lines;
use crate::config::Env;
use crate::plan::agents::Flavor;
use crate::plan::agents::{self, AgentDef, Agents};
use crate::run::NamedRunner;
use crate::text::SafeText;

/// List the agent definitions and what is wrong with them
#[derive(Debug, clap::Args)]
pub struct AgentsArgs {
    /// Look from this folder
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Lists the definitions.
///
/// # Errors
/// When the current folder is gone or the output cannot be written.
pub fn run(args: &AgentsArgs) -> anyhow::Result<ExitCode> {
    let env = Env::of_process().context("the current folder cannot be used")?;
    let cwd = args.cwd.as_ref().map_or_else(|| env.current_dir.clone(), |cwd| env.current_dir.join(cwd));
    let home = env.home();
    let agents = agents::find(&agents::folders(&cwd, home.as_deref()));
    if args.json {
        super::out::json(&report(&agents))?;
    } else {
        lines::out(|to| show(to, &agents, &cwd, home.as_deref()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn report(agents: &Agents) -> serde_json::Value {
    let agent = |a: &AgentDef, used: bool| {
        json!({
            "name": a.name,
            "used": used,
            "description": a.description,
            "runner": a.runner.map(NamedRunner::word),
            "tools": a.tools,
            "models": a.models,
            "thinking": a.thinking,
            "path": a.path.to_string_lossy(),
            "kind": match a.flavor { Flavor::Subdeck => "subdeck", Flavor::Claude => "claude", Flavor::Pi => "pi" },
            "note": a.note,
            "instead_of": a.instead_of.as_ref().map(|nearer| nearer.path.to_string_lossy()),
        })
    };
    let used = agents.found.values().map(|a| agent(a, true));
    json!({
        "agents": used.chain(agents.hidden.iter().map(|a| agent(a, false))).collect::<Vec<_>>(),
        "skipped": agents.skipped.iter().map(|s| json!({ "name": s.name, "path": s.path.to_string_lossy(), "reason": s.reason })).collect::<Vec<_>>(),
        "folders": agents.folders.iter().map(|f| f.to_string_lossy()).collect::<Vec<_>>(),
    })
}

fn show(to: &mut dyn Write, agents: &Agents, cwd: &Path, home: Option<&Path>) -> std::io::Result<()> {
    let short = |path: &Path| match (path.strip_prefix(cwd), home.and_then(|h| path.strip_prefix(h).ok())) {
        (Ok(rest), _) => rest.display().to_string(),
        (_, Some(rest)) => format!("~/{}", rest.display()),
        _ => path.display().to_string(),
    };
    if agents.found.is_empty() {
        lines::line(to, "no agent definitions were found; looked in")?;
        for folder in &agents.folders {
            lines::line(to, &format!("  {}", short(folder)))?;
        }
    }
    let header = ["AGENT", "RUNNER", "MODEL", "TOOLS", "FILE", "FOR"].map(str::to_owned).to_vec();
    let rows = agents.found.values().map(|agent| {
        let tools = match &agent.tools {
            None => "all".to_owned(),
            Some(tools) if tools.is_empty() => "none".to_owned(),
            Some(tools) => tools.join(","),
        };
        vec![
            agent.name.clone(),
            agent.runner.map_or("usual", NamedRunner::word).to_owned(),
            agent.models.first().cloned().unwrap_or_else(|| "own".to_owned()),
            SafeText::line(&tools).truncate(30).to_string(),
            short(&agent.path),
            SafeText::line(agent.description.as_deref().unwrap_or_default()).truncate(60).to_string(),
        ]
    });
    if !agents.found.is_empty() {
        lines::table(to, &std::iter::once(header).chain(rows).collect::<Vec<_>>())?;
    }
    for agent in agents.found.values() {
        if let Some(note) = &agent.note {
            lines::line(to, &format!("note: {}: {note}", short(&agent.path)))?;
        }
    }
    for agent in agents.found.values() {
        if let Some(nearer) = &agent.instead_of {
            let (used, wrong) = (short(&agent.path), short(&nearer.path));
            lines::line(to, &format!("note: {used} stands in for {wrong}, which cannot be used"))?;
        }
    }
    for agent in &agents.hidden {
        lines::line(
            to,
            &format!("hidden: {}, a nearer definition is called `{}` too", short(&agent.path), agent.name),
        )?;
    }
    for skipped in &agents.skipped {
        lines::line(to, &format!("skipped: {}: {}", short(&skipped.path), skipped.reason))?;
    }
    Ok(())
}
