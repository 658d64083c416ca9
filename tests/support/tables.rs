//! The tables of fields of every document of a run: name, kind, whether it must be there. Each is checked field by
//! field; a field that is in no table is a mistake.
#![allow(dead_code)]

use serde_json::Value;

/// What a field may hold.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Text,
    Words(&'static [&'static str]),
    Int,
    Number,
    True,
    Bool,
    IntOrNull,
    TextOrNull,
    Path,
    List,
    Object,
    /// Whatever is there.
    Any,
    /// An object with exactly these fields, of these kinds.
    Shape(&'static [(&'static str, Kind, bool)]),
    /// Such an object, or null.
    ShapeOrNull(&'static [(&'static str, Kind, bool)]),
    /// A list of such objects.
    Shapes(&'static [(&'static str, Kind, bool)]),
}

use Kind::{
    Any, Bool, Int, IntOrNull, List, Number, Object, Path, Shape, ShapeOrNull, Shapes, Text, TextOrNull, True, Words,
};

pub type Table = &'static [(&'static str, Kind, bool)];

pub const STATES: &[&str] = &["queued", "running", "complete", "failed", "paused", "stopped", "rejected"];
pub const STEP_STATES: &[&str] = &["pending", "running", "complete", "failed", "paused", "stopped", "rejected"];

pub const TOKENS: Table = &[("input", Int, true), ("output", Int, true), ("total", Int, true)];
pub const COST: Table = &[("inputTokens", Int, true), ("outputTokens", Int, true), ("costUsd", Number, true)];
pub const USAGE: Table = &[
    ("input", Int, true),
    ("output", Int, true),
    ("cacheRead", Int, true),
    ("cacheWrite", Int, true),
    ("cost", Number, true),
    ("turns", Int, true),
];
pub const ATTEMPT: Table = &[
    ("model", Text, true),
    ("success", Bool, true),
    ("exitCode", Int, false),
    ("error", Text, false),
    ("usage", Shape(USAGE), false),
];
pub const TARGET: Table = &[
    ("index", Int, true),
    ("state", Words(&["scheduled", "routed", "queued", "delivered", "late", "failed", "recovered"]), true),
    ("routedAt", Number, false),
    ("deliveredAt", Number, false),
    ("lateDeliveredAt", Number, false),
    ("failedAt", Number, false),
    ("reason", Text, false),
];
pub const REQUEST: Table = &[
    ("id", Text, true),
    ("requestedAt", Number, true),
    ("source", Text, false),
    ("messagePreview", Text, true),
    ("targets", Shapes(TARGET), true),
    ("subdeck", Object, false),
];
pub const STEERING: Table = &[
    ("requested", Int, true),
    ("scheduled", Int, true),
    ("pending", Int, true),
    ("delivered", Int, true),
    ("failed", Int, true),
    ("recovered", Int, true),
    ("lastRequestedAt", Number, false),
    ("lastDeliveredAt", Number, false),
    ("recent", Shapes(REQUEST), true),
];
pub const CAPABILITIES: Table = &[
    ("stop", Bool, true),
    ("steer", Bool, true),
    ("resume", Bool, true),
    ("structuredOutput", Bool, true),
    ("toolEvents", Bool, true),
];
pub const RUNNER: Table = &[
    ("type", Words(&["external-cli"]), true),
    ("command", Text, true),
    ("args", List, true),
    ("promptDelivery", Words(&["stdin"]), true),
    ("capabilities", Shape(CAPABILITIES), true),
];
pub const EXTERNAL: Table = &[
    ("pid", Int, false),
    ("startedAt", Number, true),
    ("endedAt", Number, false),
    ("durationMs", Int, false),
    ("exitCode", IntOrNull, false),
    ("processSignal", TextOrNull, false),
    ("stdoutPath", Path, true),
    ("stderrPath", Path, true),
];
pub const TOOL: Table = &[("tool", Text, true), ("args", Text, true), ("endMs", Number, true)];
pub const GROUP: Table = &[("start", Int, true), ("count", Int, true), ("stepIndex", Int, true)];
pub const PROOF: Table = &[
    ("version", Int, true),
    ("state", Words(&["pending"]), true),
    ("runId", Text, true),
    ("childIndex", Int, false),
    ("runnerProcessInstanceId", Text, true),
];

pub const TURN_BUDGET: Table = &[
    ("maxTurns", Int, true),
    ("graceTurns", Int, true),
    ("turnCount", Int, true),
    ("outcome", Words(&["within-budget", "wrap-up-requested", "termination-deferred", "exceeded"]), true),
    ("wrapUpRequestedAtTurn", Int, false),
    ("terminationDeferredAtTurn", Int, false),
    ("exceededAtTurn", Int, false),
];
pub const TOOL_BUDGET: Table = &[
    ("hard", Int, true),
    ("soft", Int, false),
    ("block", Any, true),
    ("toolCount", Int, true),
    ("outcome", Words(&["within-budget", "soft-reached", "hard-blocked"]), true),
    ("softReachedAt", Int, false),
    ("hardReachedAt", Int, false),
    ("blockedTool", Text, false),
];
pub const METRIC: Table = &[
    ("soft", Number, false),
    ("hard", Number, true),
    ("used", Number, true),
    ("outcome", Words(&["within-budget", "soft-exceeded", "hard-exceeded"]), true),
];
pub const USAGE_BUDGET: Table = &[
    ("version", Int, true),
    ("source", Words(&["reported"]), true),
    ("tokens", Shape(METRIC), false),
    ("costUsd", Shape(METRIC), false),
    ("exhausted", Bool, true),
    ("reason", Words(&["tokens", "costUsd"]), false),
];
const ACTIVITY: Kind = Words(&["needs_attention", "active_long_running"]);

/// run-directory 2.1.1
pub const STEP: Table = &[
    ("agent", Text, true),
    ("status", Words(STEP_STATES), true),
    ("description", Words(&["[prompt redacted]"]), false),
    ("phase", Text, false),
    ("label", Text, false),
    ("runner", Shape(RUNNER), false),
    ("externalProcess", Shape(EXTERNAL), false),
    ("sessionFile", Path, false),
    ("activityState", ACTIVITY, false),
    ("lastActivityAt", Number, false),
    ("currentTool", Text, false),
    ("currentToolArgs", Text, false),
    ("currentToolStartedAt", Number, false),
    ("currentPath", Text, false),
    ("recentTools", Shapes(TOOL), false),
    ("recentOutput", List, false),
    ("turnCount", Int, false),
    ("toolCount", Int, false),
    ("startedAt", Number, false),
    ("endedAt", Number, false),
    ("durationMs", Int, false),
    ("exitCode", Int, false),
    ("timedOut", True, false),
    ("stopped", True, false),
    ("turnBudgetExceeded", True, false),
    ("wrapUpRequested", True, false),
    ("toolBudgetBlocked", True, false),
    ("turnBudget", Shape(TURN_BUDGET), false),
    ("toolBudget", Shape(TOOL_BUDGET), false),
    ("tokens", Shape(TOKENS), false),
    ("totalCost", Shape(COST), false),
    ("model", Text, false),
    ("thinking", Text, false),
    ("attemptedModels", List, false),
    ("modelAttempts", Shapes(ATTEMPT), false),
    ("steering", Shape(STEERING), false),
    ("error", Text, false),
    ("processTerminal", Shape(PROOF), false),
    ("subdeck", Object, false),
];

/// run-directory 2.1
pub const RUN: Table = &[
    ("lifecycleArtifactVersion", Int, true),
    ("runId", Text, true),
    ("sessionId", Text, false),
    ("completionOwnerId", Text, false),
    ("mode", Words(&["single", "parallel", "chain"]), true),
    ("state", Words(STATES), true),
    ("error", Text, false),
    ("activityState", ACTIVITY, false),
    ("lastActivityAt", Number, true),
    ("currentTool", Text, false),
    ("currentToolStartedAt", Number, false),
    ("currentPath", Text, false),
    ("turnCount", Int, false),
    ("toolCount", Int, false),
    ("steering", Shape(STEERING), true),
    ("startedAt", Number, true),
    ("endedAt", Number, false),
    ("lastUpdate", Number, true),
    ("timeoutMs", Int, false),
    ("deadlineAt", Number, false),
    ("timedOut", True, false),
    ("stopped", True, false),
    ("turnBudgetExceeded", True, false),
    ("wrapUpRequested", True, false),
    ("toolBudgetBlocked", True, false),
    ("turnBudget", Shape(TURN_BUDGET), false),
    ("toolBudget", Shape(TOOL_BUDGET), false),
    ("usageBudget", Shape(USAGE_BUDGET), false),
    ("pid", Int, true),
    ("cwd", Path, true),
    ("currentStep", Int, true),
    ("chainStepCount", Int, true),
    ("parallelGroups", Shapes(GROUP), true),
    ("processTerminal", Shape(PROOF), false),
    ("steps", Shapes(STEP), true),
    ("outputFile", Path, true),
    ("totalTokens", Shape(TOKENS), false),
    ("totalCost", Shape(COST), false),
    ("sessionFile", Path, false),
    ("outputs", Object, false),
    ("subdeck", Object, false),
];

pub const RESULT_ENTRY: Table = &[
    ("agent", Text, true),
    ("output", Text, true),
    ("outputState", Words(&["present", "absent", "unknown"]), false),
    ("success", Bool, true),
    ("error", Text, false),
    ("skipped", True, false),
    ("interrupted", True, false),
    ("timedOut", True, false),
    ("stopped", True, false),
    ("turnBudgetExceeded", True, false),
    ("wrapUpRequested", True, false),
    ("toolBudgetBlocked", True, false),
    ("turnBudget", Shape(TURN_BUDGET), false),
    ("toolBudget", Shape(TOOL_BUDGET), false),
    ("sessionFile", Path, false),
    ("model", Text, false),
    ("attemptedModels", List, false),
    ("modelAttempts", Shapes(ATTEMPT), false),
    ("totalCost", Shape(COST), false),
    ("runner", Shape(RUNNER), false),
    ("externalProcess", Shape(EXTERNAL), false),
    ("subdeck", Object, false),
];

/// run-directory 5
pub const RESULT: Table = &[
    ("lifecycleArtifactVersion", Int, true),
    ("id", Text, true),
    ("agent", Text, true),
    ("mode", Text, true),
    ("success", Bool, true),
    ("state", Words(&["complete", "failed", "paused", "stopped"]), true),
    ("summary", Text, true),
    ("error", Text, false),
    ("timedOut", True, false),
    ("stopped", True, false),
    ("timeoutMs", Int, false),
    ("deadlineAt", Number, false),
    ("turnBudgetExceeded", True, false),
    ("wrapUpRequested", True, false),
    ("toolBudgetBlocked", True, false),
    ("turnBudget", Shape(TURN_BUDGET), false),
    ("toolBudget", Shape(TOOL_BUDGET), false),
    ("usageBudget", Shape(USAGE_BUDGET), false),
    ("results", Shapes(RESULT_ENTRY), true),
    ("outputs", Object, true),
    ("exitCode", Int, true),
    ("timestamp", Number, true),
    ("durationMs", Int, true),
    ("totalTokens", Shape(TOKENS), false),
    ("totalCost", Shape(COST), false),
    ("truncated", Bool, true),
    ("cwd", Path, true),
    ("asyncDir", Path, true),
    ("sessionId", Text, true),
    ("completionOwnerId", Text, false),
    ("sessionFile", Path, false),
    ("runId", Text, false),
];

pub fn check(value: &Value, kind: Kind, at: &str) {
    let ok = match kind {
        Text => value.is_string(),
        Words(words) => value.as_str().is_some_and(|w| words.contains(&w)),
        Int => value.is_i64() || value.is_u64(),
        Number => value.is_number(),
        True => value == &Value::Bool(true),
        Bool => value.is_boolean(),
        IntOrNull => value.is_null() || value.is_i64(),
        TextOrNull => value.is_null() || value.is_string(),
        Path => value.as_str().is_some_and(|p| p.starts_with('/')),
        List => value.is_array(),
        Object => value.is_object(),
        Any => true,
        Shape(table) => {
            check_table(value, table, at);
            true
        }
        ShapeOrNull(table) => {
            if !value.is_null() {
                check_table(value, table, at);
            }
            true
        }
        Shapes(table) => {
            for (n, item) in value.as_array().unwrap().iter().enumerate() {
                check_table(item, table, &format!("{at}[{n}]"));
            }
            true
        }
    };
    assert!(ok, "{at} is not {kind:?}: {value}");
}

pub fn check_table(value: &Value, table: Table, at: &str) {
    let object = value.as_object().unwrap_or_else(|| panic!("{at} is no object: {value}"));
    for (name, value) in object {
        let known = table.iter().find(|(n, ..)| n == name);
        let (_, kind, _) = known.unwrap_or_else(|| panic!("{at}.{name} is not in the table"));
        check(value, *kind, &format!("{at}.{name}"));
    }
    for (name, _, required) in table {
        assert!(!required || object.contains_key(*name), "{at}.{name} is missing");
    }
}

/// Checks the fields of the table and leaves all others alone.
pub fn check_open(value: &Value, table: Table, at: &str) {
    for (name, kind, required) in table {
        match value.get(*name) {
            Some(value) => check(value, *kind, &format!("{at}.{name}")),
            None => assert!(!required, "{at}.{name} is missing"),
        }
    }
}

/// Every record of the runner: its type, and its fields beside `type`, `ts` and `runId` (run-directory 2.5 and 3.9).
pub const RECORDS: &[(&str, Table)] = &[
    (
        "subagent.run.started",
        &[
            ("lifecycleArtifactVersion", Int, true),
            ("mode", Words(&["single", "parallel", "chain"]), true),
            ("cwd", Path, true),
            ("pid", Int, true),
            ("subdeck", Object, true),
        ],
    ),
    ("subagent.step.started", OF_STEP),
    ("subagent.step.completed", STEP_ENDED),
    ("subagent.step.failed", STEP_ENDED),
    ("subagent.step.paused", STEP_ENDED),
    ("subagent.step.stopped", STEP_ENDED),
    ("subagent.parallel.started", &[("stepIndex", Int, true), ("agents", List, true), ("count", Int, true)]),
    ("subagent.parallel.completed", &[("stepIndex", Int, true), ("success", Bool, true)]),
    (
        "subagent.steer.requested",
        &[("requestId", Text, true), ("targets", Shapes(ASKED), true), ("subdeck", Object, true)],
    ),
    ("subagent.steer.scheduled", STEERED),
    ("subagent.steer.routed", STEERED),
    (
        "subagent.steer.queued",
        &[
            ("requestId", Text, true),
            ("index", Int, true),
            ("deliveryStatus", Words(&["queued"]), true),
            ("message", Text, false),
        ],
    ),
    (
        "subagent.steer.delivered",
        &[
            ("requestId", Text, true),
            ("index", Int, true),
            ("late", Bool, true),
            ("deliveryStatus", Words(&["delivered"]), true),
            ("message", Text, false),
        ],
    ),
    ("subagent.steer.failed", &[("requestId", Text, true), ("index", Int, true), ("reason", Text, true)]),
    (
        "subagent.steering.notice",
        &[("requestId", Text, true), ("state", Words(&["failed", "partial"]), true), ("message", Text, true)],
    ),
    ("subagent.run.paused", &[("subdeck", Object, false)]),
    ("subagent.run.stopped", &[("message", Text, true), ("subdeck", Object, false)]),
    (
        "subagent.run.timed_out",
        &[
            ("timeoutMs", Int, false),
            ("deadlineAt", Number, false),
            ("message", Text, true),
            ("subdeck", Object, false),
        ],
    ),
    (
        "subagent.run.completed",
        &[
            ("lifecycleArtifactVersion", Int, true),
            ("status", Words(&["complete", "failed", "paused", "stopped"]), true),
            ("durationMs", Int, true),
            ("totalTokens", Shape(TOKENS), false),
            ("totalCost", Shape(COST), false),
            ("usageBudget", Shape(USAGE_BUDGET), false),
            ("subdeck", Object, false),
        ],
    ),
    ("subagent.run.repaired_stale", &[("pid", Int, true), ("message", Text, true)]),
    (
        "subdeck.attempt.started",
        &[
            ("stepIndex", Int, true),
            ("agent", Text, true),
            ("attempt", Int, true),
            ("model", Text, false),
            ("reason", Text, false),
        ],
    ),
    (
        "subdeck.child.spawned",
        &[("stepIndex", Int, true), ("agent", Text, true), ("pid", Int, true), ("startTicks", Int, false)],
    ),
    (
        "subdeck.child.exited",
        &[("stepIndex", Int, true), ("agent", Text, true), ("exitCode", IntOrNull, true), ("signal", TextOrNull, true)],
    ),
    ("subdeck.output.held", &[("stepIndex", Int, true), ("agent", Text, true), ("pids", List, true)]),
    (
        "subdeck.step.ending",
        &[
            ("stepIndex", Int, true),
            ("agent", Text, true),
            ("cause", Text, true),
            ("message", Text, false),
            ("source", Object, false),
        ],
    ),
    (
        "subdeck.capability",
        &[("stepIndex", Int, true), ("agent", Text, true), ("steerable", Bool, true), ("reason", Text, false)],
    ),
    ("subdeck.control.rejected", &[("file", Text, true), ("reason", Text, true)]),
    (
        "subdeck.control.unannounced",
        &[("stepIndex", Int, false), ("agent", Text, false), ("what", Text, true), ("source", Object, true)],
    ),
    (
        "subdeck.signal.sent",
        &[
            ("stepIndex", Int, true),
            ("agent", Text, true),
            ("signal", Text, true),
            ("pid", Int, true),
            ("group", Bool, true),
            ("cause", Text, true),
        ],
    ),
    ("subdeck.abort.sent", OF_STEP),
    (
        "subdeck.attempt.ended",
        &[
            ("stepIndex", Int, true),
            ("agent", Text, true),
            ("exitCode", Int, true),
            ("error", Text, true),
            ("next", Object, true),
        ],
    ),
    ("subdeck.attention.raised", &[("stepIndex", Int, true), ("agent", Text, true), ("notice", Object, true)]),
    ("subdeck.attention.cleared", &[("stepIndex", Int, true), ("agent", Text, true), ("id", Text, true)]),
    (
        "subdeck.budget.reached",
        &[("stepIndex", Int, false), ("agent", Text, false), ("message", Text, true), ("subdeck", Object, true)],
    ),
    ("subagent.step.turn_budget_deferred", TURNS),
    ("subagent.step.turn_budget_exceeded", TURNS),
    (
        "subdeck.tree.swept",
        &[("stepIndex", Int, true), ("agent", Text, true), ("ended", List, true), ("survivors", List, true)],
    ),
];

const TURNS: Table = &[
    ("stepIndex", Int, true),
    ("agent", Text, true),
    ("turnCount", Int, true),
    ("maxTurns", Int, true),
    ("graceTurns", Int, true),
    ("message", Text, true),
    ("subdeck", Object, true),
];
const NOTICE: Table = &[
    ("type", ACTIVITY, true),
    ("from", ACTIVITY, false),
    ("to", ACTIVITY, true),
    ("ts", Number, true),
    ("runId", Text, true),
    ("agent", Text, true),
    ("index", Int, true),
    ("message", Text, true),
    ("reason", Text, true),
    ("turns", Int, false),
    ("tokens", Int, false),
    ("toolCount", Int, false),
    ("currentTool", Text, false),
    ("currentToolDurationMs", Number, false),
    ("currentPath", Text, false),
    ("elapsedMs", Number, false),
    ("recentFailureSummary", Text, false),
    ("workflowKey", Text, false),
    ("phase", Text, false),
    ("label", Text, false),
    ("taskPreview", Words(&["[prompt redacted]"]), false),
];
/// `subagent.control`, which carries its time and its run inside (run-directory 2.5).
const CONTROL: Table = &[
    ("event", Shape(NOTICE), true),
    ("channels", List, true),
    ("childIntercomTarget", Text, false),
    ("noticeText", Text, true),
    ("intercom", Object, false),
    ("subdeck", Object, false),
];
const OF_STEP: Table = &[("stepIndex", Int, true), ("agent", Text, true)];
const STEERED: Table = &[("requestId", Text, true), ("index", Int, true)];
const ASKED: Table = &[("index", Int, true), ("state", Text, true), ("reason", Text, false)];
const STEP_ENDED: Table = &[
    ("stepIndex", Int, true),
    ("agent", Text, true),
    ("exitCode", Int, true),
    ("durationMs", Int, true),
    ("tokens", ShapeOrNull(TOKENS), false),
    ("subdeck", Object, false),
];

/// What the runner adds to every record of a child (run-directory 2.5).
pub const CHILD: Table = &[
    ("type", Text, true),
    ("subagentSource", Words(&["child"]), true),
    ("subagentRunId", Text, true),
    ("subagentStepIndex", Int, true),
    ("subagentAgent", Text, true),
    ("observedAt", Number, true),
];

/// An entry of the finished runs (run-directory 1.5).
pub const TERMINAL_ENTRY: Table =
    &[("version", Int, true), ("runId", Text, true), ("sessionId", Text, true), ("endedAt", Number, true)];

/// An entry of a result (run-directory 5).
pub const RESULT_INDEX: Table = &[
    ("version", Int, true),
    ("runId", Text, true),
    ("sessionId", Text, true),
    ("file", Text, true),
    ("writtenAt", Number, true),
    ("asyncDir", Path, false),
];

/// `control/steer-capabilities/<flat>.json` (run-directory 3.5).
pub const CAPABILITY: Table = &[
    ("type", Words(&["steer-capability"]), true),
    ("protocolVersion", Int, true),
    ("index", Int, true),
    ("pid", Int, true),
    ("readyAt", Number, true),
    ("supported", Bool, true),
];

/// `control/steer-inbox-closed.json` (run-directory 3.7).
pub const INBOX_CLOSED: Table = &[("version", Int, true), ("closedAt", Number, true), ("state", Words(STATES), true)];

/// `subdeck/runner.json`.
pub const RUNNER_JSON: Table = &[
    ("pid", Int, true),
    ("startTicks", Int, false),
    ("bootId", Text, false),
    ("host", Text, true),
    ("uid", Int, true),
    ("version", Text, true),
    ("keeperPid", Int, false),
    ("keeperStartTicks", Int, false),
];

/// Checks one line of events.jsonl.
pub fn check_record(value: &Value, run: &str) {
    let kind = value["type"].as_str().unwrap_or_else(|| panic!("a record without a type: {value}"));
    if value.get("subagentSource").is_some() {
        check_open(value, CHILD, kind);
        assert_eq!(value["subagentRunId"], run, "{kind}");
        return;
    }
    if kind == "subagent.control" {
        let mut rest = value.clone();
        rest.as_object_mut().unwrap().remove("type");
        assert_eq!(value["event"]["runId"], run);
        return check_table(&rest, CONTROL, kind);
    }
    let (_, table) = RECORDS.iter().find(|(k, _)| *k == kind).unwrap_or_else(|| panic!("{kind} is not in the table"));
    let mut rest = value.clone();
    let fields = rest.as_object_mut().unwrap();
    fields.remove("type");
    assert!(fields.remove("ts").is_some_and(|ts| ts.is_number()), "{kind}.ts");
    assert_eq!(fields.remove("runId").unwrap(), run, "{kind}.runId");
    check_table(&rest, table, kind);
}
