//! The graph of a run as documents hold it (run-directory 2.2, WorkflowGraphSnapshot).

use serde_json::{Map, Value};

use super::json::{Json, Obj};
use super::look::Look;
use crate::run::{Graph, GraphNode, StepId};

/// The document of a graph.
pub(super) fn encode(graph: &Graph, run: &str) -> Obj {
    let mut obj = Obj::new();
    obj.set("runId", run).set("mode", &graph.mode);
    let phases = graph.phases.iter().map(|(title, nodes)| {
        let mut phase = Obj::new();
        phase.set("title", title).set("nodeIds", nodes.iter().collect::<Json>());
        phase
    });
    obj.set("phases", phases.collect::<Json>());
    obj.set("nodes", graph.nodes.iter().map(node).collect::<Json>());
    obj.opt("currentNodeId", graph.current.as_ref());
    obj
}

fn node(node: &GraphNode) -> Obj {
    let mut obj = Obj::new();
    obj.set("id", &node.id).set("kind", &node.kind).opt("agent", node.agent.as_ref());
    obj.opt("phase", node.phase.as_ref()).set("label", &node.label).set("status", &node.status);
    obj.opt("flatIndex", node.step.map(|s| s.flat())).opt("stepIndex", node.logical);
    obj.opt("itemKey", node.item_key.as_ref()).opt("outputName", node.output_name.as_ref());
    obj.opt("structured", node.structured).opt("acceptanceStatus", node.acceptance.as_ref());
    obj.opt("error", node.error.as_ref()).opt("dynamic", node.dynamic.as_ref());
    if !node.children.is_empty() {
        obj.set("children", node.children.iter().map(self::node).collect::<Json>());
    }
    obj
}

/// The deepest group within a group that is read.
const DEEPEST: usize = 8;

/// A graph from a document; `None` for what is none.
#[must_use]
pub fn read(value: &Value) -> Option<Graph> {
    let look = Look(value.as_object()?);
    Some(Graph {
        mode: look.text("mode").unwrap_or_default(),
        phases: look
            .objs("phases")
            .map(|p| (p.text("title").unwrap_or_default(), p.strings("nodeIds").unwrap_or_default()))
            .collect(),
        nodes: look.objs("nodes").filter_map(|n| read_node(&n, 0)).collect(),
        current: look.text("currentNodeId"),
    })
}

fn read_node(look: &Look<'_>, depth: usize) -> Option<GraphNode> {
    Some(GraphNode {
        id: look.text("id")?,
        kind: look.text("kind").unwrap_or_default(),
        agent: look.text("agent"),
        phase: look.text("phase"),
        label: look.text("label").unwrap_or_default(),
        status: look.text("status").unwrap_or_default(),
        step: look.small("flatIndex").map(StepId),
        logical: look.place("stepIndex"),
        children: look.objs("children").filter(|_| depth < DEEPEST).filter_map(|n| read_node(&n, depth + 1)).collect(),
        dynamic: look.0.get("dynamic").filter(|v| v.is_object()).cloned(),
        item_key: look.text("itemKey"),
        output_name: look.text("outputName"),
        structured: look.bool("structured"),
        acceptance: look.text("acceptanceStatus"),
        error: look.text("error"),
    })
}

/// The graph that an object holds.
pub(super) fn of(doc: &Map<String, Value>) -> Option<Graph> {
    doc.get("workflowGraph").and_then(read)
}
