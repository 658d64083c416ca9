//! Agents that an agent started itself: what its stream tells of them, and their own numbers. What they used and called is
//! in the step's own numbers as far as its agent counts them there; nothing here is added to them.

use super::{StepState, Timestamp, ToolOutcome};

/// One of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubAgent {
    /// The agent's id of it.
    pub id: String,
    /// What kind of agent it is.
    pub name: String,
    /// What it is to do, a preview in one line; empty where it is not told.
    pub about: String,
    /// Its model, where it is told.
    pub model: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How it ended; `None` while it works.
    pub outcome: Option<ToolOutcome>,
    /// The call that it began last, while one is open.
    pub tool: Option<SubCall>,
    /// Calls that are open.
    pub open: u64,
    /// How many calls it began.
    pub tool_count: u64,
    /// Tokens that it used, as its agent counts them.
    pub tokens: Option<u64>,
    /// Its newest answer, a preview.
    pub last_message: Option<String>,
}

/// A call of a sub-agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubCall {
    /// The tool's name.
    pub tool: String,
    /// A preview of its arguments, in one line.
    pub args: String,
}

/// What a sub-agent did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubAgentDid {
    /// It began, or went on after it had ended.
    Started {
        /// What kind of agent it is.
        name: String,
        /// What it is to do (at most [`super::AgentEvent::ARGS_PREVIEW`] bytes).
        about: String,
        /// Its model, where it is told.
        model: Option<String>,
    },
    /// It began a call.
    Called(SubCall),
    /// One of its calls is over.
    Returned,
    /// It gave an answer (at most [`super::AgentEvent::PREVIEW`] bytes).
    Said(String),
    /// It has used so many tokens so far.
    Used(u64),
    /// It is over.
    Ended(ToolOutcome),
}

impl SubAgent {
    /// How many are kept of a step; more than any screen shows.
    pub const KEPT: usize = 32;

    /// Whether it works.
    #[must_use]
    pub const fn works(&self) -> bool {
        self.outcome.is_none()
    }
}

/// Takes what a sub-agent did. One whose beginning was not told begins with what it does.
pub(super) fn take(step: &mut StepState, id: &str, did: &SubAgentDid, at: Timestamp) {
    let Some(agent) = known(step, id, at) else { return };
    match did {
        SubAgentDid::Started { name, about, model } => {
            agent.name.clone_from(name);
            if !about.is_empty() {
                agent.about.clone_from(about);
            }
            agent.model = model.clone().or(agent.model.take());
            (agent.ended_at, agent.outcome) = (None, None);
        }
        SubAgentDid::Called(call) => {
            agent.tool = Some(call.clone());
            agent.open += 1;
            agent.tool_count += 1;
        }
        SubAgentDid::Returned => {
            agent.open = agent.open.saturating_sub(1);
            if agent.open == 0 {
                agent.tool = None;
            }
        }
        SubAgentDid::Said(text) => agent.last_message = Some(text.clone()),
        SubAgentDid::Used(tokens) => agent.tokens = Some(*tokens),
        SubAgentDid::Ended(outcome) => end(agent, *outcome, at),
    }
}

/// The one of this id; `None` when there is no room for another one that works.
fn known<'s>(step: &'s mut StepState, id: &str, at: Timestamp) -> Option<&'s mut SubAgent> {
    if !step.sub_agents.iter().any(|agent| agent.id == id) {
        if step.sub_agents.len() >= SubAgent::KEPT {
            let over = step.sub_agents.iter().position(|agent| !agent.works())?;
            step.sub_agents.remove(over);
        }
        step.sub_agents.push(SubAgent { id: id.to_owned(), started_at: at, ..SubAgent::default() });
    }
    step.sub_agents.iter_mut().find(|agent| agent.id == id)
}

fn end(agent: &mut SubAgent, outcome: ToolOutcome, at: Timestamp) {
    (agent.tool, agent.open) = (None, 0);
    agent.ended_at = Some(at);
    agent.outcome = Some(outcome);
}

/// Those that work when their agent is gone are gone with it.
pub(super) fn lose(step: &mut StepState, at: Timestamp) {
    for agent in step.sub_agents.iter_mut().filter(|agent| agent.works()) {
        end(agent, ToolOutcome::Lost, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn started(name: &str) -> SubAgentDid {
        SubAgentDid::Started { name: name.to_owned(), about: "look".to_owned(), model: None }
    }

    #[test]
    fn a_life() {
        let mut step = StepState::default();
        let call = |tool: &str| SubAgentDid::Called(SubCall { tool: tool.to_owned(), args: "x".to_owned() });
        for (ms, did) in [started("scout"), call("read"), call("grep"), SubAgentDid::Returned].iter().enumerate() {
            take(&mut step, "a", did, at(ms as i64));
        }
        let agent = &step.sub_agents[0];
        assert_eq!((agent.name.as_str(), agent.tool_count, agent.open), ("scout", 2, 1));
        assert_eq!(agent.tool.as_ref().map(|call| call.tool.as_str()), Some("grep"));
        for did in [SubAgentDid::Returned, SubAgentDid::Said("found".to_owned()), SubAgentDid::Used(70)] {
            take(&mut step, "a", &did, at(10));
        }
        assert_eq!((step.sub_agents[0].tool.clone(), step.sub_agents[0].tokens), (None, Some(70)));
        take(&mut step, "b", &call("bash"), at(11));
        take(&mut step, "a", &SubAgentDid::Ended(ToolOutcome::Ok), at(12));
        lose(&mut step, at(20));
        let ends: Vec<_> = step.sub_agents.iter().map(|agent| (agent.outcome, agent.ended_at)).collect();
        assert_eq!(ends, [(Some(ToolOutcome::Ok), Some(at(12))), (Some(ToolOutcome::Lost), Some(at(20)))]);
        // It may be sent on.
        take(&mut step, "a", &started("scout"), at(30));
        assert!(step.sub_agents[0].works() && step.sub_agents[0].started_at == at(0));
    }

    #[test]
    fn there_is_room_for_so_many() {
        let mut step = StepState::default();
        for n in 0..SubAgent::KEPT + 1 {
            take(&mut step, &n.to_string(), &started("x"), at(0));
        }
        assert_eq!(step.sub_agents.len(), SubAgent::KEPT);
        assert!(step.sub_agents.iter().all(|agent| agent.id != SubAgent::KEPT.to_string()));
        take(&mut step, "3", &SubAgentDid::Ended(ToolOutcome::Ok), at(1));
        take(&mut step, "new", &started("x"), at(2));
        assert!(step.sub_agents.iter().all(|agent| agent.id != "3"));
        assert_eq!(step.sub_agents.last().map(|agent| agent.id.as_str()), Some("new"));
    }
}
