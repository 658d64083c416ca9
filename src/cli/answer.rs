//! `subdeck answer`: lists what agents ask, and answers it.

use std::io::Read;
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::json;

use super::args::AnswerArgs;
use super::load::World;
use super::{acks, find, lines, out, source};
use crate::engine::now;
use crate::headless::{json_document, question_json};
use crate::run::{Answer, Question, RunState, StepId, StepState};
use crate::rundir::{Follower, Inbox};
use crate::text::{SafeText, SecretLines, span};

/// `subdeck answer`.
pub fn answer(args: &AnswerArgs) -> anyhow::Result<ExitCode> {
    let world = World::look()?;
    let (dir, step) = find::target(&world, args.root.root.as_deref(), &args.target)?;
    let mut follower = Follower::open(dir.path()).context("cannot read the run directory")?;
    follower.catch_up();
    let open = open(follower.state(), step);
    if args.answer.is_none() && !args.dismiss {
        let open = open.into_iter().filter(|(_, q)| args.question.as_ref().is_none_or(|name| *name == q.id));
        return list(&open.collect::<Vec<_>>(), args.json);
    }
    find::writable(&dir)?;
    let question = chosen(&open, args.question.as_deref())?;
    let answer = match &args.answer {
        None => Answer::Dismiss,
        Some(words) => {
            let words = if words == "-" { from_input()? } else { words.clone() };
            match (question.asking.typed(&words).map_err(anyhow::Error::msg)?, &args.reason) {
                (Answer::Deny(_), Some(why)) => Answer::Deny(Some(why.clone())),
                (answer, None) => answer,
                (_, Some(_)) => bail!("--reason says why not; it goes with deny"),
            }
        }
    };
    let name = question.id.clone();
    let inbox = Inbox::open(&dir, source::here("cli", None, None))?;
    let id = inbox.answer(follower.state(), &name, &answer, now())?;
    out::print(&format!("{id}\n"))?;
    if !args.wait {
        return Ok(ExitCode::SUCCESS);
    }
    let found = acks::wait(&mut follower, &dir, &[id], args.timeout)?;
    let (words, cause) = acks::told(found.first().and_then(Option::as_ref), follower.is_over());
    tell!("{}: {words}", SafeText::line(&name));
    Ok(out::code(cause))
}

/// The open questions of the run or the step, the oldest first.
fn open(state: &RunState, step: Option<StepId>) -> Vec<(&StepState, &Question)> {
    let steps = state.steps.iter().filter(|s| step.is_none_or(|id| s.id == id));
    let mut open: Vec<_> = steps.flat_map(|s| s.questions.iter().map(move |q| (s, q))).collect();
    open.sort_by_key(|(step, question)| (question.asked_at, step.id));
    open
}

/// The question that is meant.
fn chosen<'s>(open: &[(&'s StepState, &'s Question)], name: Option<&str>) -> anyhow::Result<&'s Question> {
    if let Some(name) = name {
        let Some((_, question)) = open.iter().find(|(_, q)| q.id == name) else {
            bail!("the question {name} is not open: it was answered, or its agent waits no more");
        };
        return Ok(question);
    }
    match open {
        [(_, question)] => Ok(question),
        [] => bail!("no agent asks anything"),
        several => {
            let names: Vec<String> = several.iter().map(|(step, q)| line(step, q).to_string()).collect();
            bail!("{} questions are open; name one with --question:\n  {}", several.len(), names.join("\n  "))
        }
    }
}

/// `q3  2 worker: May it use Bash? make`.
fn line(step: &StepState, question: &Question) -> SafeText {
    SafeText::line(&format!(
        "{}  {} {}: {}",
        question.id,
        step.id.number(),
        step.title(),
        question.asking.text.replace('\n', " ")
    ))
    .masked()
}

fn list(open: &[(&StepState, &Question)], json: bool) -> anyhow::Result<ExitCode> {
    if json {
        let all: Vec<_> = open
            .iter()
            .map(|(step, question)| {
                let mut value = question_json(question);
                if let Some(fields) = value.as_object_mut() {
                    fields.insert("step".to_owned(), json!(step.id.number()));
                    fields.insert("id".to_owned(), json!(step.key));
                }
                value
            })
            .collect();
        out::print(&format!("{}\n", json_document(&json!(all))))?;
        return Ok(ExitCode::SUCCESS);
    }
    lines::out(|to| {
        for (step, question) in open {
            writeln!(to, "{}", line(step, question))?;
            let waits = span(now().since(question.asked_at));
            let until = question.until.map(|until| format!(", refused in {}", span(until.since(now()))));
            writeln!(to, "    asked {waits} ago{}", until.unwrap_or_default())?;
            let mut above = SecretLines::default();
            for line in SafeText::block(&question.asking.detail) {
                writeln!(to, "    {}", line.masked_below(&mut above))?;
            }
            writeln!(to, "    {}", SafeText::line(&question.asking.instead()))?;
        }
        Ok(())
    })?;
    if open.is_empty() {
        tell!("subdeck: no agent asks anything");
    }
    Ok(ExitCode::SUCCESS)
}

/// The answer from standard input, no longer than one may be.
fn from_input() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let most = Answer::MOST as u64 + 1;
    std::io::stdin().lock().take(most).read_to_end(&mut bytes).context("cannot read standard input")?;
    if bytes.len() > Answer::MOST {
        bail!("the answer has more than {} bytes", Answer::MOST);
    }
    String::from_utf8(bytes).context("the answer is no UTF-8 text")
}
