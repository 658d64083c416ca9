//! A run as a graph of named stages, for those who draw it (run-directory 2.2, WorkflowGraphSnapshot). The launcher makes
//! it; the runner keeps its states true.

use serde_json::Value;

use super::{RunState, StepId, StepPhase, StepState};

/// The graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// The shape of the run, in the launcher's word.
    pub mode: String,
    /// Phases in their order, with the ids of their nodes.
    pub phases: Vec<(String, Vec<String>)>,
    /// The stages in their order.
    pub nodes: Vec<Node>,
    /// The node that is worked on.
    pub current: Option<String>,
}

/// A stage: a step, or a group of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// Unique in the graph.
    pub id: String,
    /// What it is: `step`, `parallel-group`, `dynamic-parallel-group` or `agent`.
    pub kind: String,
    /// The agent's name.
    pub agent: Option<String>,
    /// The phase it belongs to.
    pub phase: Option<String>,
    /// What people call it.
    pub label: String,
    /// Where it stands, in the graph's words: a step that is complete is `completed` here.
    pub status: String,
    /// The step.
    pub step: Option<StepId>,
    /// The logical step.
    pub logical: Option<usize>,
    /// The members of a group.
    pub children: Vec<Self>,
    /// Where the members of a group come from that grows, as the launcher wrote it.
    pub dynamic: Option<Value>,
    /// The key of a member of such a group.
    pub item_key: Option<String>,
    /// The name of its output.
    pub output_name: Option<String>,
    /// Its output has a schema.
    pub structured: Option<bool>,
    /// How its acceptance went.
    pub acceptance: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
}

impl Graph {
    /// The graph as the run is now.
    #[must_use]
    pub fn now(&self, state: &RunState) -> Self {
        let nodes: Vec<Node> = self.nodes.iter().map(|node| node.now(state)).collect();
        let current = state.current.and_then(|step| nodes.iter().find_map(|node| node.of(step)));
        let current = current.or_else(|| self.current.clone());
        Self { mode: self.mode.clone(), phases: self.phases.clone(), nodes, current }
    }
}

impl Node {
    fn now(&self, state: &RunState) -> Self {
        let mut node = self.clone();
        if let Some(step) = self.step.and_then(|id| state.step(id)) {
            node.status = word(step).to_owned();
            node.error.clone_from(&step.error);
            node.acceptance = step.contract.acceptance.as_ref().map(|ledger| ledger.status.as_str().to_owned());
        } else if !self.children.is_empty() {
            node.children = self.children.iter().map(|child| child.now(state)).collect();
            node.status = of_group(&node.children).to_owned();
        }
        if node.error.is_some() && !matches!(node.status.as_str(), "stopped" | "rejected") {
            node.status = "failed".to_owned();
        }
        node
    }

    /// The id of the node of a step, in here.
    fn of(&self, step: StepId) -> Option<String> {
        if self.step == Some(step) {
            return Some(self.id.clone());
        }
        self.children.iter().find_map(|child| child.of(step))
    }
}

/// The graph's word for where a step stands.
fn word(step: &StepState) -> &str {
    match &step.phase {
        StepPhase::Complete => "completed",
        phase => phase.as_str(),
    }
}

/// Where a group stands: at its end once all members are, else at the worst of what they are at.
fn of_group(members: &[Node]) -> &'static str {
    let any = |status: &str| members.iter().any(|m| m.status == status);
    if members.iter().all(|m| m.status == "completed") {
        return "completed";
    }
    let worst = ["running", "stopped", "rejected", "failed", "paused"].into_iter().find(|status| any(status));
    // Between two of its members a group is at work.
    worst.unwrap_or(if any("completed") { "running" } else { "pending" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(id: &str, step: u32) -> Node {
        let (id, kind, status) = (id.to_owned(), "agent".to_owned(), "pending".to_owned());
        Node { id, kind, status, step: Some(StepId(step)), ..Node::default() }
    }

    fn state(phases: &[StepPhase]) -> RunState {
        let step = |(id, phase): (u32, &StepPhase)| StepState {
            id: StepId(id),
            phase: phase.clone(),
            error: (*phase == StepPhase::Failed).then(|| "no".to_owned()),
            ..StepState::default()
        };
        RunState { steps: (0..).zip(phases).map(step).collect(), ..RunState::default() }
    }

    #[test]
    fn a_group_stands_where_its_members_do() {
        use StepPhase::{Complete, Failed, Paused, Pending, Rejected, Running, Stopped};
        let graph = Graph {
            nodes: vec![Node { id: "g".into(), children: vec![leaf("a", 0), leaf("b", 1)], ..Node::default() }],
            ..Graph::default()
        };
        for (members, group) in [
            ([Pending, Pending], "pending"),
            ([Running, Failed], "running"),
            ([Complete, Pending], "running"),
            ([Complete, Complete], "completed"),
            ([Complete, Failed], "failed"),
            ([Stopped, Failed], "stopped"),
            ([Rejected, Failed], "rejected"),
            ([Paused, Complete], "paused"),
        ] {
            let now = graph.now(&state(&members));
            assert_eq!(now.nodes[0].status, group, "{members:?}");
        }
    }

    #[test]
    fn a_node_says_what_its_step_says_and_an_unknown_one_what_it_said() {
        let graph =
            Graph { nodes: vec![leaf("a", 0), leaf("x", 9)], current: Some("start".into()), ..Graph::default() };
        let mut run = state(&[StepPhase::Failed]);
        assert_eq!(graph.now(&run).current.as_deref(), Some("start"));
        run.current = Some(StepId(0));
        let now = graph.now(&run);
        assert_eq!(now.current.as_deref(), Some("a"));
        assert_eq!((now.nodes[0].status.as_str(), now.nodes[0].error.as_deref()), ("failed", Some("no")));
        assert_eq!(now.nodes[1], graph.nodes[1]);
    }
}
