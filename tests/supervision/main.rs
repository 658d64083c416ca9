//! Limits, attention and attempts by the real binary with a scripted agent, beyond the numbered checks of
//! `checks_supervision`: what ends a child, what only tells, what is tried again, and what the files say of it.
//!
//! # The traps of runner-behaviour 14 that concern supervision
//!
//! | trap | where it is tried, or why it cannot occur |
//! |---|---|
//! | 1 arrays per step that do not grow | steps are state in one list; open calls belong to their step |
//! | 2 exceptions in a step | `what_goes_wrong_beside_a_child...`, `check_50`; a status that cannot be written: `check_10` |
//! | 3 logs that cannot be written | `what_goes_wrong_beside_a_child...`, `output_on_a_full_disk...` of checks_persistence |
//! | 4 a full disk | checks 4 to 6 and 11 to 13 of checks_persistence, `a_run_can_be_stopped_on_a_full_disk` |
//! | 5 exit is not close | `check_23`; `run::decide::rules_tests` (no limit for a child that is gone); tests/children |
//! | 7 an interrupt blocks a later stop | `run::decide::tests` (a stop after an interrupt); a KILL ends each ladder |
//! | 8 attention that stays, tools of steps that are over | `check_14`, `check_23`, `check_27`, `silence_is_told_and_taken_back...` |
//! | 9 calls that began at the same time | `run::reduce::tests` (the first of a tie) |
//! | 10 the same id twice | `run::decide::rules_tests` (its time begins anew), `run::reduce::tests` |
//! | 11 an end with an unknown id | `check_26`, `run::reduce::tests` (matched by id, then by name, then alone) |
//! | 12 the same cause again | one notice for a cause: `run::reduce::prop_tests`; told outside once: `a_cause_that_comes_again...`; another call is another one: `rules_tests` |
//! | 13 flat and logical numbers | tests/differential.rs (a chain with a group) |
//! | 14 pending steps, short results | `usage_is_looked_at_before_each_step...`, tests/documents.rs |
//! | 15 the time of a tool is no time of the run | `check_14` |
//! | 16 no answer is retried, a failed tool never | `a_failed_tool_is_no_reason...`, `run::retry` |
//! | 17 starts that fail | `a_child_that_never_began...`, `run::retry` (late, or with a word, it did start) |
//! | 18 the drain | `an_agent_that_goes_on_after_its_last_word...`; `run::decide::tests` (it goes on, moving output), `run::judge` (what is a success) |
//! | 19 lines of 16 MiB | tests/children (`long-line`), agents::framing |
//! | 20 prompts | `check_30`, tests/documents.rs (`check_prompts`), tests/package.rs (artifacts and transcripts) |
//! | 21 variables of nested runs | agents::pi::command, tests/package.rs (empty, and set for who may start agents) |
//! | 22 usage never ends a child of a runner config | `the_usage_of_a_runner_config_spares_who_runs...` |
//! | 23 turns wait for an open tool, the last word may come | `turns_beyond_the_last_one...`, `run::decide::rules_tests` |
//! | 24 a stop that lies there already | `a_stop_that_lies_there_already...` (what is told first); `run::reduce::tests` (either order is read) |
//! | 26 sums that disagree | one sum over the steps, for tokens and for money |
//! | 27 no session | `check_02`; `engine::recorder::tests` |
//! | 29 long output of plain commands | the streams are files; tests/children |
//! | 30 fail-fast | tests/runs (a skipped member is no failure of its own, and its end is an event) |
//! | 31 the order of a write | `engine::recorder::tests` (result, status, those above); `check_50` (the graph is of the same write) |
//! | 32 killed from outside | tests/children (`kill KILL`: failed) |
//! | 33 clean when shown | tests/children (`assert_clean`) |
//! | 35 times of what is over | an end is final: `run::reduce::prop_tests`; that of a pause until its child is gone: `run::reduce::tests` |
//!
//! Time that the machine sleeps (product 5) is tried in the core, where time is an argument: `run::decide::rules_tests`,
//! `run::reduce::prop_tests`. By the binary it cannot be tried without a machine that sleeps: the runner asks the kernel how
//! long that was, a stopped process is not asleep, and a namespace of times has one difference between its clocks from its
//! first process on to its last.
//!
//! 25, 28: there are neither groups that grow nor external jobs. 6, 34: nothing
//! runs `ps`, and there are no numbers of tabs in files.

#[allow(dead_code)]
#[path = "../support/scripted.rs"]
mod scripted;
#[allow(dead_code)]
#[path = "../support/runs.rs"]
mod support;

mod attempts;
mod attention;
mod ends;
mod limits;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use scripted::{Scene, step};
use serde_json::{Value, json};
use support::{Run, signal, wait_for};

const JSON: &str = "[[step]]\nid = \"one\"\ntask = \"Do it.\"\nrunner = { type = \"pi\", transport = \"json\" }\n";

/// The statuses of all steps.
fn states(status: &Value) -> Vec<&str> {
    status["steps"].as_array().unwrap().iter().map(|s| s["status"].as_str().unwrap()).collect()
}

/// The notices that were raised, by their reasons in order.
fn raised(run: &Run) -> Vec<String> {
    let raised = run.events_of("subdeck.attention.raised");
    raised.iter().map(|e| e["notice"]["reason"].as_str().unwrap().to_owned()).collect()
}

fn usage(tokens: u64) -> Value {
    json!({ "usageBudget": { "tokens": { "hard": tokens } } })
}
