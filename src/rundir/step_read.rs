//! Reading the steps of a `status.json` (run-directory 2.1.1), as leniently as the rest of it.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Map;

use super::budget_read;
use super::contract;
use super::inner_run;
use super::look::Look;
use super::question_record;
use super::signal_names::signal_number;
use super::status_read::{runner, runner_of_word, steering, step_phase, tail};
use super::supervision;
use crate::run::{
    Attempt, CallFacts, CostUsd, Ending, ExitInfo, ExternalProcess, OpenCall, Retrying, RunId, Steerable, StepId,
    StepPhase, StepState, SubAgent, SubCall, Timestamp, Tokens, ToolCall, ToolOutcome, UnknownKind, Unknowns, Usage,
    Window,
};

pub(super) fn step(look: &Look<'_>, id: u32) -> StepState {
    let empty = Map::new();
    let own = look.obj("subdeck").unwrap_or(Look(&empty));
    let phase = step_phase(look.str("status").unwrap_or("unknown"));
    let usage = look.obj("tokens");
    let cache = own.obj("cache");
    let told = Tokens {
        input: usage.as_ref().and_then(|t| t.count("input")).unwrap_or(0),
        output: usage.as_ref().and_then(|t| t.count("output")).unwrap_or(0),
        cache_read: cache.as_ref().and_then(|t| t.count("read")).unwrap_or(0),
        cache_write: cache.as_ref().and_then(|t| t.count("write")).unwrap_or(0),
    };
    // A foreign status loses some of them in chains, or counts less than none; its sum does not (runner-behaviour 14.26).
    let sum = look.obj("totalCost").filter(|_| look.obj("subdeck").is_none()).map(|sum| {
        let count = |key| sum.count(key).unwrap_or(0);
        Tokens { input: count("inputTokens"), output: count("outputTokens"), ..told }
    });
    let tokens = sum.filter(|sum| sum.total() > told.total()).unwrap_or(told);
    let cost = match look.obj("subdeck") {
        Some(own) => own.num("costUsd"),
        None => look.obj("totalCost").and_then(|c| c.num("costUsd")).or_else(|| attempts_cost(look)),
    };
    // A foreign status tells the same beside its tokens.
    let window = match own.obj("window") {
        Some(window) => Window { used: window.count("used"), size: window.count("size") },
        None => Window {
            used: usage.as_ref().and_then(|t| t.count("window")).filter(|n| *n > 0),
            size: look.count("contextLimit").filter(|n| *n > 0),
        },
    };
    let mut runner = look.obj("runner").map(|r| runner(&r)).unwrap_or_default();
    if let Some(word) = own.str("runner") {
        runner = runner_of_word(word);
    }
    let open = open_calls(look, &own, &phase);
    // Where the clock was set back meanwhile an end before the beginning is none, and the duration tells more.
    let told = look.time("endedAt").filter(|at| look.time("startedAt").is_none_or(|began| *at >= began));
    let ended_at = told.or_else(|| ended(look, &phase)).or_else(|| look.time("endedAt"));
    // Ours in full, else what a foreign status says of them.
    let (limits, budget) = match look.obj("subdeck") {
        Some(own) => (supervision::read_limits(&own, "limits"), supervision::read_budget(&own, "budget")),
        None => budget_read::step(look, look.time("lastActivityAt").unwrap_or_default()),
    };
    StepState {
        id: StepId(id),
        key: own.text("key").unwrap_or_default(),
        agent: look.text("agent").unwrap_or_default(),
        label: look.text("label"),
        phase_title: look.text("phase"),
        logical: own.place("logical").unwrap_or(id as usize),
        runner,
        phase,
        started_at: look.time("startedAt"),
        ended_at,
        exit_code: look.code("exitCode"),
        error: look.text("error"),
        timed_out: look.is("timedOut"),
        stopped: look.is("stopped"),
        model: look.text("model"),
        thinking: look.text("thinking"),
        session_file: look.text("sessionFile"),
        session_id: own.text("sessionId"),
        attempts: attempts(look, &own),
        pid: own.small("pid"),
        start_ticks: own.count("startTicks"),
        exit: own.obj("exit").map(|e| ExitInfo { code: e.code("code"), signal: e.code("signal") }),
        last_activity: look.time("lastActivityAt"),
        open,
        recent_tools: recent_tools(look, &own),
        sub_agents: own.objs("subAgents").filter_map(|a| sub_agent(&a)).take(SubAgent::KEPT).collect(),
        unknown: own.obj("unknown").map(|u| unknown(&u)).unwrap_or_default(),
        // Where the step itself says nothing of them, its budget may.
        tool_count: look.count("toolCount").or_else(|| look.obj("toolBudget")?.count("toolCount")).unwrap_or(0),
        turn_count: look.count("turnCount").or_else(|| look.obj("turnBudget")?.count("turnCount")).unwrap_or(0),
        tokens,
        cost: cost.map(CostUsd),
        window,
        last_message: None,
        recent_output: tail(
            look.list("recentOutput").iter().filter_map(|v| v.as_str().map(str::to_owned)),
            StepState::KEPT_LINES,
        ),
        retrying: own.obj("retrying").map(|r| Retrying {
            attempt: r.small("attempt"),
            max: r.small("max"),
            since: r.time("since").unwrap_or_default(),
            until: r.time("until"),
            reason: r.text("reason").unwrap_or_default(),
        }),
        settled_at: own.time("settledAt"),
        ending: own.obj("ending").and_then(|e| ending(&e)),
        steerable: match own.bool("steerable") {
            Some(true) => Steerable::Yes,
            Some(false) => Steerable::No(own.text("notSteerable").unwrap_or_default()),
            None => Steerable::Unknown,
        },
        steering: look.obj("steering").map(|s| steering(&s)).unwrap_or_default(),
        external: look.obj("externalProcess").map(|p| external(&p)),
        held_by: own.pids("heldBy"),
        survivors: own.pids("survivors"),
        truncated_at: own.count("truncatedAt"),
        log_error: own.text("logError"),
        timeout_ms: own.count("timeoutMs"),
        carried_over: own.is("carriedOver"),
        has_task: look.str("description").is_some(),
        own_run: look.text("runId").filter(|_| look.is("async")).map(RunId),
        activity: look.text("activityState"),
        cwd: own.text("cwd").unwrap_or_default(),
        limits,
        thresholds: supervision::read_thresholds(&own, "thresholds"),
        budget,
        blocked_tool: look
            .is("toolBudgetBlocked")
            .then(|| look.obj("toolBudget").and_then(|b| b.text("blockedTool")).unwrap_or_default()),
        attention: own.objs("attention").filter_map(|n| supervision::read_notice(&n)).collect(),
        questions: own.objs("questions").filter_map(|q| question_record::read_question(&q)).collect(),
        inner: inner_run::read_runs(&own, "inner"),
        inner_heard: own.time("innerHeardAt"),
        unanswered: own.text("unanswered"),
        next_attempt: own.obj("nextAttempt").and_then(|n| supervision::read_next_attempt(&n)),
        contract: contract::read_step(look, &own),
        // What only the runner needs for its rules.
        ..StepState::default()
    }
}

/// Steps of workflows tell how long they took instead of when they ended.
fn ended(look: &Look<'_>, phase: &StepPhase) -> Option<Timestamp> {
    let (began, took) = (look.time("startedAt")?, look.count("durationMs")?);
    phase.is_terminal().then(|| began + Duration::from_millis(took))
}

pub(super) fn unreadable_step(id: u32) -> StepState {
    StepState { id: StepId(id), phase: StepPhase::Unknown("unreadable".into()), ..StepState::default() }
}

fn external(look: &Look<'_>) -> ExternalProcess {
    let exit = ExitInfo { code: look.code("exitCode"), signal: look.str("processSignal").and_then(signal_number) };
    ExternalProcess {
        pid: look.small("pid"),
        started_at: look.time("startedAt"),
        ended_at: look.time("endedAt"),
        exit: (look.0.contains_key("exitCode") || look.0.contains_key("processSignal")).then_some(exit),
        stdout_path: look.text("stdoutPath").unwrap_or_default(),
        stderr_path: look.text("stderrPath").unwrap_or_default(),
    }
}

/// Open calls: ours in full, else the one that a foreign status names. A step that does not run has none, whatever
/// its leftover fields say (runner-behaviour 14.8).
fn open_calls(look: &Look<'_>, own: &Look<'_>, phase: &StepPhase) -> Vec<OpenCall> {
    let ours = own.objs("open").filter_map(|c| {
        Some(OpenCall {
            call: c.text("call"),
            tool: c.text("tool")?,
            args: c.text("args").unwrap_or_default(),
            path: c.text("path"),
            started_at: c.time("startedAt")?,
            seq: c.count("seq").unwrap_or(0),
            about: CallFacts::default(),
            heard: c.time("heardAt"),
        })
    });
    let ours: Vec<OpenCall> = ours.collect();
    if !ours.is_empty() || *phase != StepPhase::Running {
        return ours;
    }
    let Some(tool) = look.text("currentTool") else { return ours };
    let started_at = look.time("currentToolStartedAt").or_else(|| look.time("lastActivityAt")).unwrap_or_default();
    vec![OpenCall {
        call: None,
        tool,
        args: look.text("currentToolArgs").unwrap_or_default(),
        path: look.text("currentPath"),
        started_at,
        seq: 0,
        about: CallFacts::default(),
        heard: None,
    }]
}

fn recent_tools(look: &Look<'_>, own: &Look<'_>) -> VecDeque<ToolCall> {
    let mut extras = own.objs("tools");
    let calls = look.objs("recentTools").filter_map(move |t| {
        let extra = extras.next();
        Some(ToolCall {
            call: extra.as_ref().and_then(|e| e.text("call")),
            tool: t.text("tool")?,
            args: t.text("args").unwrap_or_default(),
            path: extra.as_ref().and_then(|e| e.text("path")),
            started_at: extra.as_ref().and_then(|e| e.time("startedAt")),
            ended_at: t.time("endMs").unwrap_or_default(),
            outcome: extra.as_ref().and_then(|e| e.str("outcome")).and_then(ToolOutcome::of_word),
            preview: String::new(),
        })
    });
    tail(calls, StepState::KEPT_TOOLS)
}

fn sub_agent(look: &Look<'_>) -> Option<SubAgent> {
    Some(SubAgent {
        id: look.text("id")?,
        name: look.text("name").unwrap_or_default(),
        about: look.text("about").unwrap_or_default(),
        model: look.text("model"),
        started_at: look.time("startedAt")?,
        ended_at: look.time("endedAt"),
        outcome: look.str("outcome").and_then(ToolOutcome::of_word),
        tool: look
            .obj("tool")
            .and_then(|call| Some(SubCall { tool: call.text("tool")?, args: call.text("args").unwrap_or_default() })),
        open: look.count("open").unwrap_or(0),
        tool_count: look.count("toolCount").unwrap_or(0),
        tokens: look.count("tokens"),
        last_message: look.text("lastMessage"),
    })
}

fn unknown(look: &Look<'_>) -> Unknowns {
    let kinds = look.objs("kinds").filter_map(|kind| {
        Some(UnknownKind { name: Unknowns::name(kind.str("kind")?), count: kind.count("count").unwrap_or(0) })
    });
    Unknowns { total: look.count("total").unwrap_or(0), kinds: kinds.take(Unknowns::KEPT).collect() }
}

fn attempts(look: &Look<'_>, own: &Look<'_>) -> Vec<Attempt> {
    if !own.list("attempts").is_empty() {
        return own
            .objs("attempts")
            .map(|a| Attempt {
                reason: a.text("reason"),
                started_at: a.time("startedAt"),
                ended_at: a.time("endedAt"),
                success: a.bool("success"),
                ..attempt(&a)
            })
            .collect();
    }
    look.objs("modelAttempts").map(|a| Attempt { success: a.bool("success"), ..attempt(&a) }).collect()
}

fn attempt(look: &Look<'_>) -> Attempt {
    let empty = Map::new();
    let usage = look.obj("usage").unwrap_or(Look(&empty));
    let count = |key| usage.count(key).unwrap_or(0);
    Attempt {
        model: look.text("model"),
        exit_code: look.code("exitCode"),
        error: look.text("error"),
        usage: Usage {
            tokens: Tokens {
                input: count("input"),
                output: count("output"),
                cache_read: count("cacheRead"),
                cache_write: count("cacheWrite"),
            },
            cost: usage.num("cost").filter(|_| !look.is("free")).and_then(CostUsd::reported),
        },
        turns: count("turns"),
        ..Attempt::default()
    }
}

fn attempts_cost(look: &Look<'_>) -> Option<f64> {
    let costs: Vec<f64> = look.objs("modelAttempts").filter_map(|a| a.obj("usage")?.num("cost")).collect();
    (!costs.is_empty()).then(|| costs.iter().sum())
}

fn ending(look: &Look<'_>) -> Option<Ending> {
    Some(Ending {
        cause: crate::run::EndingCause::parse(look.str("cause")?)?,
        since: look.time("since")?,
        message: look.text("message").unwrap_or_default(),
        abort_at: look.time("abortAt"),
        int_at: look.time("intAt"),
        term_at: look.time("termAt"),
        kill_at: look.time("killAt"),
    })
}
