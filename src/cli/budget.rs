//! `subdeck budget`: shows limits and what was used of them, and asks the runner to change some.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};

use super::args::BudgetArgs;
use super::load::World;
use super::{acks, budget_table, find, out, source};
use crate::engine::now;
use crate::plan::Raise;
use crate::run::{ExitCause, Limits, RunState, StepId};
use crate::rundir::{Answered, Follower, Inbox};

/// `subdeck budget`.
pub fn budget(args: &BudgetArgs) -> anyhow::Result<ExitCode> {
    let world = World::look()?;
    let (dir, step) = find::target(&world, args.root.root.as_deref(), &args.target)?;
    let mut follower = Follower::open(dir.path()).context("cannot read the run directory")?;
    follower.catch_up();
    if args.changes.is_empty() {
        return budget_table::print(follower.state(), step, args.json);
    }
    let raises: Vec<Raise> =
        args.changes.iter().map(|word| Raise::parse(word)).collect::<Result<_, _>>().map_err(|e| anyhow!(e))?;
    find::writable(&dir)?;
    let raises = in_order(raises, granted(follower.state(), step))?;
    let requests = requests(&raises, follower.state(), step)?;
    let inbox = Inbox::open(&dir, source::here("cli", None, args.reason.as_deref()))?;
    let mut sent = Vec::with_capacity(requests.len());
    // The runner takes requests in the order of their times.
    for ((step, raise), nth) in requests.into_iter().zip(0..) {
        let id = inbox.budget(follower.state(), step, raise, now() + Duration::from_millis(nth))?;
        out::print(&format!("{id}\n"))?;
        sent.push(Sent { id, step, raise });
    }
    if !args.wait {
        return Ok(ExitCode::SUCCESS);
    }
    let ids: Vec<String> = sent.iter().map(|sent| sent.id.clone()).collect();
    let answers = acks::wait(&mut follower, &dir, &ids, args.timeout)?;
    Ok(told(&sent, &answers, follower.is_over()))
}

/// The limits of the run or the step as they are now.
fn granted(state: &RunState, step: Option<StepId>) -> Limits {
    step.map_or_else(|| state.limits.clone(), |id| state.step(id).map(|s| s.limits.clone()).unwrap_or_default())
}

/// The changes in an order in which each of them makes sense, however they were typed: an end that rises goes before
/// its warning, one that falls goes after it. The runner, which knows what was changed before, has the last word.
fn in_order(mut raises: Vec<Raise>, mut limits: Limits) -> anyhow::Result<Vec<Raise>> {
    let mut ordered = Vec::with_capacity(raises.len());
    while !raises.is_empty() {
        let before = raises.len();
        let mut problem = None;
        raises.retain(|raise| match raise.apply(&mut limits) {
            Ok(()) => {
                ordered.push(*raise);
                false
            }
            Err(error) => {
                problem.get_or_insert(error);
                true
            }
        });
        if let Some(problem) = problem.filter(|_| raises.len() == before) {
            bail!(problem);
        }
    }
    Ok(ordered)
}

/// A change for each place that has the limit: calls of tools are limited in the steps only.
fn requests(raises: &[Raise], state: &RunState, step: Option<StepId>) -> anyhow::Result<Vec<(Option<StepId>, Raise)>> {
    let mut requests = Vec::new();
    for raise in raises {
        if step.is_some() || !matches!(raise, Raise::ToolTimeout(_)) {
            requests.push((step, *raise));
            continue;
        }
        let open = state.steps.iter().filter(|s| !s.phase.is_terminal());
        let before = requests.len();
        requests.extend(open.map(|s| (Some(s.id), *raise)));
        if requests.len() == before {
            bail!("no step is left that calls tools");
        }
    }
    Ok(requests)
}

/// A request on its way.
struct Sent {
    id: String,
    step: Option<StepId>,
    raise: Raise,
}

/// Tells what became of each request: 0 when all were done, 1 when one was refused, 8 when one was not answered.
fn told(sent: &[Sent], answers: &[Option<Answered>], over: bool) -> ExitCode {
    let mut causes = Vec::with_capacity(sent.len());
    for (request, answer) in sent.iter().zip(answers) {
        let of = request.step.map_or_else(|| "run".to_owned(), |step| format!("step {step}"));
        let (word, cause) = acks::told(answer.as_ref(), over);
        tell!("{of}: {}: {word}", request.raise);
        causes.push(cause);
    }
    let has = |cause: &ExitCause| causes.contains(cause);
    let worst = [ExitCause::Failed, ExitCause::WaitTimeout].into_iter().find(has);
    out::code(worst.unwrap_or(ExitCause::Complete))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Limit, RunPhase, StepPhase, StepState};

    fn raises(words: &[&str]) -> Vec<Raise> {
        words.iter().map(|word| Raise::parse(word).unwrap()).collect()
    }

    #[test]
    fn changes_are_sent_in_an_order_that_makes_sense() {
        let limits = Limits { tokens: Some(Limit { soft: Some(20), hard: Some(40) }), ..Limits::default() };
        for (typed, sent) in [
            (["tokens=10", "tokens.soft=5"], ["tokens.soft=5", "tokens=10"]),
            (["tokens.soft=50", "tokens=60"], ["tokens=60", "tokens.soft=50"]),
            (["tokens.soft=30", "tokens=60"], ["tokens.soft=30", "tokens=60"]),
            (["turns.grace=3", "turns=9"], ["turns=9", "turns.grace=3"]),
        ] {
            assert_eq!(in_order(raises(&typed), limits.clone()).unwrap(), raises(&sent), "{typed:?}");
        }
        let error = in_order(raises(&["turns=5", "tokens.soft=50"]), limits).unwrap_err().to_string();
        assert!(error.contains("change `tokens` and `tokens.soft` together"), "{error}");
    }

    #[test]
    fn the_time_of_tool_calls_is_changed_in_every_step_that_has_not_ended() {
        let step = |id, phase| StepState { id: StepId(id), phase, ..StepState::default() };
        let steps = vec![step(0, StepPhase::Complete), step(1, StepPhase::Running), step(2, StepPhase::Pending)];
        let state = RunState { phase: RunPhase::Running, steps, ..RunState::default() };
        let both = raises(&["tool_timeout=5m", "tokens=5"]);
        let (tool, tokens) = (both[0], both[1]);
        let all = requests(&both, &state, None).unwrap();
        assert_eq!(all, [(Some(StepId(1)), tool), (Some(StepId(2)), tool), (None, tokens)]);
        let one = requests(&both, &state, Some(StepId(1))).unwrap();
        assert_eq!(one, [(Some(StepId(1)), tool), (Some(StepId(1)), tokens)]);
        let ended = RunState { steps: vec![step(0, StepPhase::Failed)], ..state };
        assert!(requests(&both, &ended, None).is_err());
    }
}
