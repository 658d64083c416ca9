//! The records of the runner.

use super::Kind::{
    Bool, Int, IntOrNull, List, Number, Object, Path, Shape, ShapeOrNull, Shapes, Text, TextOrNull, Words,
};
use super::Table;
use super::status::{ACTIVITY, COST, TOKENS, USAGE_BUDGET};

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

pub const TURNS: Table = &[
    ("stepIndex", Int, true),
    ("agent", Text, true),
    ("turnCount", Int, true),
    ("maxTurns", Int, true),
    ("graceTurns", Int, true),
    ("message", Text, true),
    ("subdeck", Object, true),
];
pub const NOTICE: Table = &[
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
pub const CONTROL: Table = &[
    ("event", Shape(NOTICE), true),
    ("channels", List, true),
    ("childIntercomTarget", Text, false),
    ("noticeText", Text, true),
    ("intercom", Object, false),
    ("subdeck", Object, false),
];
pub const OF_STEP: Table = &[("stepIndex", Int, true), ("agent", Text, true)];
pub const STEERED: Table = &[("requestId", Text, true), ("index", Int, true)];
pub const ASKED: Table = &[("index", Int, true), ("state", Text, true), ("reason", Text, false)];
pub const STEP_ENDED: Table = &[
    ("stepIndex", Int, true),
    ("agent", Text, true),
    ("exitCode", Int, true),
    ("durationMs", Int, true),
    ("tokens", ShapeOrNull(TOKENS), false),
    ("subdeck", Object, false),
];
