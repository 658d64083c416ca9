//! The status and the result (run-directory 2.2, 2.3, 2.6).

use super::Kind::{
    Any, Bool, Int, IntOrNull, List, Number, Object, Path, Shape, Shapes, Text, TextOrNull, True, Words,
};
use super::{Kind, Table};

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
pub const ACTIVITY: Kind = Words(&["needs_attention", "active_long_running"]);

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
