//! `subdeck events`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;

use super::args::EventsArgs;
use super::load::World;
use super::{find, out};
use crate::headless::{Format, Printer, json_event};
use crate::run::{RunState, StepState};
use crate::rundir::{Follower, RunDir};
use crate::text::SafeText;

/// Prints the events of a run, and those that come.
pub fn events(args: &EventsArgs) -> anyhow::Result<ExitCode> {
    let world = World::look()?;
    let dir = find::run(&world, args.root.root.as_deref(), &args.run)?;
    if args.raw {
        return raw(&dir, args.follow);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut follower = Follower::open(dir.path()).context("cannot read the run directory")?;
        let format = Format::Jsonl;
        let mut printer = Printer::new(std::io::stdout(), format, &dir);
        loop {
            let changes = follower.poll();
            if args.json {
                printer.print(follower.state(), &changes);
            } else {
                let mut text = String::new();
                for event in &changes.news {
                    if let Some(value) = json_event(follower.state(), event) {
                        text.push_str(&line(follower.state(), &value));
                    }
                }
                out::print(&text)?;
            }
            if (!args.follow && !changes.behind) || follower.is_over() {
                if args.json && follower.is_over() {
                    printer.end(follower.state());
                }
                if follower.state().started_at.is_some() && std::fs::symlink_metadata(dir.events()).is_err() {
                    tell!("subdeck: this run has no events.jsonl; `subdeck status` has what its status tells");
                }
                let odd = Some(dir.events()).filter(|path| crate::rundir::open::is_odd(path));
                return Ok(super::logs::not_read(odd.into_iter(), ""));
            }
            follower.wait_gathered().await;
        }
    })
}

/// One event for people: time, step, type, and the rest as it is.
fn line(state: &RunState, value: &serde_json::Value) -> String {
    let Some(fields) = value.as_object() else { return String::new() };
    let ms = fields.get("ts").and_then(serde_json::Value::as_i64).unwrap_or(0);
    let time = jiff::Timestamp::from_millisecond(ms)
        .map(|t| t.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime("%H:%M:%S%.3f").to_string())
        .unwrap_or_default();
    let word = |name: &str| fields.get(name).and_then(serde_json::Value::as_str).unwrap_or("");
    let step = match fields.get("step").and_then(serde_json::Value::as_u64) {
        // By the name that a step has everywhere.
        Some(number) => {
            let step = state.steps.iter().find(|step| u64::from(step.id.number()) == number);
            format!("{number} {}", SafeText::line(step.map_or(word("agent"), StepState::title)))
        }
        None => "run".to_owned(),
    };
    let known = ["v", "type", "ts", "run", "step", "id", "agent"];
    let rest: Vec<String> = fields
        .iter()
        .filter(|(name, _)| !known.contains(&name.as_str()))
        .map(|(name, value)| match value {
            // What looks like a key is masked before it may be cut.
            serde_json::Value::String(text) => format!("{name}={}", SafeText::line(text).masked().truncate(80)),
            serde_json::Value::Number(number) => match number.as_f64() {
                Some(whole) if number.is_f64() && whole.fract() == 0.0 => format!("{name}={whole}"),
                _ => format!("{name}={number}"),
            },
            other => format!("{name}={}", SafeText::line(&other.to_string()).masked().truncate(120)),
        })
        .collect();
    format!("{time}  {step:<16}  {:<16}  {}", SafeText::line(word("type")), rest.join(" ")).trim_end().to_owned() + "\n"
}

/// The file as it is.
fn raw(dir: &RunDir, follow: bool) -> anyhow::Result<ExitCode> {
    use std::io::Read;
    let mut file = crate::rundir::open::regular(&dir.events()).context("the run has no events.jsonl")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut follower = Follower::open(dir.path()).context("cannot read the run directory")?;
        let mut stdout = std::io::stdout().lock();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let over = follower.is_over();
            loop {
                let n = file.read(&mut buffer)?;
                if n == 0 {
                    break;
                }
                if stdout.write_all(buffer.get(..n).unwrap_or_default()).is_err() {
                    return Ok(ExitCode::SUCCESS);
                }
            }
            out::quiet(stdout.flush())?;
            if !follow || over {
                return Ok(ExitCode::SUCCESS);
            }
            follower.wait_gathered().await;
            follower.poll();
        }
    })
}
