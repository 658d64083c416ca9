//! How the findings of `subdeck doctor` are told.

use std::io::Write;

use serde_json::{Value, json};

use super::check::command_line;
use super::doctor::{Agent, Findings, Known, Root};
use super::lines;
use crate::text::{self as units, SafeText};

/// With fewer watches or instances than this a user with many programs runs out of them.
const FEW_INSTANCES: u64 = 64;
const FEW_WATCHES: u64 = 8192;

pub(super) fn text(to: &mut dyn Write, findings: &Findings) -> std::io::Result<()> {
    let header = ["AGENT", "VERSION", "TRIED WITH", "PROGRAM"].map(str::to_owned).to_vec();
    let rows = findings.agents.iter().map(|agent| {
        let program = agent.answer.file.as_ref().map(|file| file.display().to_string());
        vec![
            agent.word.to_owned(),
            agent.answer.version.clone().unwrap_or_else(|| "–".to_owned()),
            if agent.recorded.is_empty() { "–".to_owned() } else { agent.recorded.join(", ") },
            program.unwrap_or_else(|| "–".to_owned()),
        ]
    });
    lines::table(to, &std::iter::once(header).chain(rows).collect::<Vec<_>>())?;
    for agent in &findings.agents {
        for note in notes(agent) {
            lines::line(to, &format!("{}: {note}", agent.word))?;
        }
    }
    let found: Vec<&Agent> = findings.agents.iter().filter(|agent| agent.answer.file.is_some()).collect();
    if !found.is_empty() {
        writeln!(to, "\nA step is started as")?;
        for agent in found {
            lines::line(to, &format!("  {}", command_line(&agent.program, &agent.args)))?;
        }
    }
    writeln!(to)?;
    for (what, told) in rest(findings) {
        lines::line(to, &format!("{what:<10}{told}"))?;
    }
    Ok(())
}

/// What is to be said of an agent.
fn notes(agent: &Agent) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(problem) = &agent.answer.problem {
        let program = SafeText::line(&agent.program).to_string();
        notes.push(match agent.answer.file {
            Some(_) => problem.clone(),
            None => format!("the program `{program}` {problem}"),
        });
    }
    match agent.known() {
        Known::Newer => {
            notes.push("newer than what it was tried with; what is new in it is counted as unknown".to_owned())
        }
        Known::Older => notes.push("older than what it was tried with; it may lack what a step needs, and is given one prompt where it cannot be steered".to_owned()),
        Known::Same | Known::Unknown => {}
    }
    if agent.recorded.is_empty() && agent.answer.file.is_some() {
        notes.push("it was never tried; how it is started is what its own documents say".to_owned());
    }
    if let (Some(_), Some((name, false))) = (&agent.answer.file, agent.key) {
        notes.push(format!("{name} is not set, so it uses the way to log in that it has chosen itself"));
    }
    notes
}

/// What does not belong to one agent: what it is about, and what is to be said.
fn rest(findings: &Findings) -> Vec<(&'static str, String)> {
    let watching = &findings.watching;
    let limit = |n: Option<u64>| units::or_unknown(n.map(units::grouped));
    let watched = match &watching.problem {
        Some(problem) => format!("no more watches: {problem}; changes are noticed later"),
        None if cfg!(target_os = "linux") => {
            let few = watching.instances.is_some_and(|n| n < FEW_INSTANCES)
                || watching.watches.is_some_and(|n| n < FEW_WATCHES);
            let (instances, watches) = (limit(watching.instances), limit(watching.watches));
            let word = if few { "; that is few" } else { "" };
            format!("inotify, {instances} instances and {watches} watches for a user{word}")
        }
        None => "by the system's own means".to_owned(),
    };
    let deck = match findings.no_deck {
        Some(why) => format!("{why}, so runs are printed here"),
        None => "the deck can be shown here".to_owned(),
    };
    let platform = if cfg!(target_os = "linux") {
        "Linux: all that is promised"
    } else {
        "no subreaper: a tool that leaves its parent is found by its mark only"
    };
    let mut rest = vec![
        ("runs", root(&findings.root)),
        ("watching", watched),
        ("terminal", deck),
        ("platform", platform.to_owned()),
    ];
    if findings.broken_config {
        rest.push(("config", "something in it cannot be used; nothing is started with it".to_owned()));
    }
    rest
}

fn root(root: &Root) -> String {
    let path = root.path.display();
    match (&root.problem, root.free) {
        (Some(problem), _) => format!("{path}: {problem}; choose another one with --root or SUBDECK_ROOT"),
        (None, free) => {
            let made = if root.exists { "can be written" } else { "will be made" };
            let free = free.map_or_else(String::new, |free| format!(", {} free", units::bytes(free)));
            format!("{path}: {made}{free}")
        }
    }
}

pub(super) fn json(findings: &Findings) -> Value {
    let agent = |agent: &Agent| {
        json!({
            "agent": agent.word,
            "program": agent.program,
            "file": agent.answer.file.as_ref().map(|file| file.to_string_lossy()),
            "version": agent.answer.version,
            "tried_with": agent.recorded,
            "known": match agent.known() {
                Known::Same => "same",
                Known::Newer => "newer",
                Known::Older => "older",
                Known::Unknown => "unknown",
            },
            "problem": agent.answer.problem,
            "started_as": std::iter::once(&agent.program).chain(&agent.args).collect::<Vec<_>>(),
            "key": agent.key.map(|(name, set)| json!({"variable": name, "set": set})),
        })
    };
    let root = &findings.root;
    json!({
        "v": 1,
        "ok": findings.ok(),
        "agents": findings.agents.iter().map(agent).collect::<Vec<_>>(),
        "root": {
            "path": root.path.to_string_lossy(),
            "exists": root.exists,
            "problem": root.problem,
            "free_bytes": root.free,
        },
        "watching": {
            "max_user_instances": findings.watching.instances,
            "max_user_watches": findings.watching.watches,
            "problem": findings.watching.problem,
        },
        "deck": { "possible": findings.no_deck.is_none(), "problem": findings.no_deck },
        "config": { "broken": findings.broken_config },
        "platform": { "os": std::env::consts::OS, "complete": cfg!(target_os = "linux") },
    })
}
