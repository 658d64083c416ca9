//! Other fixed runs for the stage.

use std::collections::VecDeque;
use std::time::Duration;

use super::stage::{NOW, Stage, ago, notice, step};
use crate::deck::changes::Diff;
use crate::deck::feed::Hands;
use crate::deck::left::Left;
use crate::deck::model::{Anchor, Count, Position, Search, Tab};
use crate::deck::replay::Replay;
use crate::run::{
    AgentEvent, Asking, Attempt, Choice, CostUsd, Ending, EndingCause, Event, ExitInfo, Group, Question, QuestionKind,
    Reason, Retrying, RunPhase, RunnerKind, Steerable, StepId, StepOutcome, StepPhase, StepState, Stream, Tokens, What,
};
use crate::text::SafeText;

/// Sixty steps in groups of ten, most of them over.
pub(super) fn many(stage: &mut Stage) {
    let names = ["scout", "planner", "worker", "reviewer", "acceptance"];
    let make = |n: u32| {
        let phase = match n {
            0..40 => StepPhase::Complete,
            40..48 => StepPhase::Running,
            _ => StepPhase::Pending,
        };
        let at = n as usize;
        let mut step = step(n, &format!("{}-{}", names[at % names.len()], at / names.len()), at / 10, phase.clone());
        if phase != StepPhase::Pending {
            step.started_at = Some(ago(760 - 12 * u64::from(n)));
            step.cost = Some(CostUsd(0.01 * f64::from(n % 7 + 1)));
            step.tokens = Tokens { input: 1000 * u64::from(n + 1), output: 90, ..Tokens::default() };
            step.turn_count = 3;
        }
        if phase == StepPhase::Complete {
            step.ended_at = Some(ago(700 - 12 * u64::from(n)));
            step.exit_code = Some(0);
            step.last_message = Some("All of it is done.".to_owned());
        } else if phase == StepPhase::Running {
            step.pid = Some(50_000 + n);
            step.last_activity = Some(ago(2));
        }
        step
    };
    stage.feed.state.steps = (0..60).map(make).collect();
    stage.feed.state.groups = (0..6).map(|g| Group { start: g * 10, count: 10, logical: g }).collect();
    stage.feed.state.logical_count = 6;
    for n in 40..48 {
        stage.feed.print(n, Stream::Out, &format!("working on part {n}"));
    }
    stage.ui.selected = StepId(42);
    stage.ui.unread = [(StepId(43), 7), (StepId(44), 12_345), (StepId(45), 0)].into_iter().collect();
}

/// A step in each state that there is.
pub(super) fn every_state(stage: &mut Stage) {
    let base = |n: u32, name: &str, phase: StepPhase| {
        let mut step = step(n, name, n as usize, phase);
        step.started_at = Some(ago(300 - u64::from(n)));
        if step.phase.is_terminal() {
            step.ended_at = Some(ago(100));
        }
        step
    };
    let mut steps: Vec<StepState> = Vec::new();
    steps.push(step(0, "queued", 0, StepPhase::Pending));
    let mut starting = base(1, "starting", StepPhase::Running);
    starting.started_at = Some(ago(1));
    steps.push(starting);
    let mut running = base(2, "running", StepPhase::Running);
    running.pid = Some(100);
    running.last_activity = Some(ago(1));
    running.turn_count = 2;
    steps.push(running);
    let mut attention = stage.feed.state.steps[3].clone();
    attention.id = StepId(3);
    steps.push(attention);
    let mut retrying = base(4, "retrying", StepPhase::Running);
    retrying.pid = Some(101);
    retrying.last_activity = Some(ago(5));
    retrying.retrying = Some(Retrying {
        attempt: Some(2),
        max: Some(5),
        since: ago(4),
        until: Some(NOW + Duration::from_secs(8)),
        reason: "529: the provider is overloaded".to_owned(),
    });
    steps.push(retrying);
    steps.push(base(5, "paused", StepPhase::Paused));
    let mut stopping = base(6, "stopping", StepPhase::Running);
    stopping.ending = Some(Ending {
        cause: EndingCause::StepStop,
        since: ago(3),
        message: "Stopped by the person.".to_owned(),
        abort_at: None,
        int_at: None,
        term_at: Some(ago(2)),
        kill_at: None,
    });
    steps.push(stopping);
    let mut done = base(7, "done", StepPhase::Complete);
    done.last_message = Some("It is done.".to_owned());
    done.exit_code = Some(0);
    steps.push(done);
    let mut failed = base(8, "failed", StepPhase::Failed);
    failed.error = Some("the tests still fail: 3 of 40".to_owned());
    failed.exit_code = Some(1);
    failed.attempts = vec![
        Attempt {
            model: Some("m-large".into()),
            success: Some(false),
            error: Some("429".into()),
            ..Attempt::default()
        },
        Attempt { model: Some("m-small".into()), success: Some(false), ..Attempt::default() },
    ];
    steps.push(failed);
    let mut late = base(9, "timed-out", StepPhase::Failed);
    late.timed_out = true;
    late.error = Some("Subagent timed out after 200000ms.".to_owned());
    steps.push(late);
    let mut over = base(10, "over-budget", StepPhase::Failed);
    over.budget.exceeded = Some(crate::run::Metric::Cost);
    over.error = Some("Cost budget exceeded: $1.02 of $1.00.".to_owned());
    steps.push(over);
    let mut stopped = base(11, "stopped", StepPhase::Stopped);
    stopped.exit = Some(ExitInfo { signal: Some(15), code: None });
    steps.push(stopped);
    let mut skipped = base(12, "skipped", StepPhase::Failed);
    skipped.exit_code = Some(-1);
    skipped.started_at = None;
    skipped.ended_at = None;
    steps.push(skipped);
    steps.push(base(13, "lost", StepPhase::Lost));
    let mut unknown = base(14, "unknown", StepPhase::Unknown("dreaming".to_owned()));
    unknown.ended_at = None;
    steps.push(unknown);
    stage.feed.state.steps = steps;
    stage.feed.state.groups.clear();
    stage.feed.state.logical_count = 15;
    stage.ui.selected = StepId(8);
}

/// Names, paths and messages that are longer than their places, in scripts that are wider than their letters.
pub(super) fn long_names(stage: &mut Stage) {
    let state = &mut stage.feed.state;
    state.name = Some("mend-every-flaky-test-of-the-whole-workspace-and-then-some-more-of-them".to_owned());
    state.cwd = "/home/someone/projects/a-very-long-name-of-a-folder/below/another/one/src".to_owned();
    let names = [
        "look for every test that ever failed on any branch",
        "плановик",
        "直してください、すべてのテスト",
        "reviewer 👩‍🔬 of flags 🇩🇪",
        "worker-b",
        "acceptance-of-everything-that-was-changed-here",
    ];
    for (step, name) in state.steps.iter_mut().zip(names) {
        step.label = Some(name.to_owned());
    }
    let call = &mut state.steps[2].open[0];
    call.args =
        "src/a/very/deep/folder/structure/with/many/levels/of/nesting/and/a/long/file_name_at_the_end.rs".into();
    call.path = Some(call.args.clone());
}

/// A run of plain commands, which have no turns, tokens or money.
pub(super) fn commands(stage: &mut Stage) {
    let state = &mut stage.feed.state;
    state.name = None;
    for step in &mut state.steps {
        step.runner = RunnerKind::ExternalCli {
            command: "/usr/bin/make".to_owned(),
            args: vec!["-j8".to_owned(), "all".to_owned()],
        };
        step.steerable = Steerable::No("it is a plain command".to_owned());
        step.tokens = Tokens::default();
        step.cost = None;
        (step.turn_count, step.tool_count) = (0, 0);
        step.open.clear();
        step.recent_tools.clear();
        step.last_message = None;
        step.limits = Default::default();
        step.steering = Default::default();
        step.attention.clear();
        step.activity = None;
        step.last_activity = step.started_at;
        step.recent_output = VecDeque::from([format!("cc -c part-{}.c", step.id)]);
    }
    state.steering = Default::default();
}

/// Two hundred more lines, so that there is something to scroll in.
pub(super) fn long_log(stage: &mut Stage) {
    for n in 0..200 {
        stage.feed.print(2, Stream::Out, &format!("line {n} of the longer part"));
    }
}

/// A search that found something.
pub(super) fn searched(stage: &mut Stage) {
    let start = stage.feed.logs[&StepId(2)][7].start + "test pool::".len() as u64;
    stage.ui.search = Some(Search {
        tab: Tab::Output,
        needle: "drain".to_owned(),
        back: true,
        everywhere: false,
        found: Some((StepId(2), start)),
        count: Some(Count { step: StepId(2), nth: 1, total: 3, upto: 10_000 }),
    });
    stage.ui.pane_mut(StepId(2)).output = Position::At { top: Anchor { line: 0, row: 0 }, seen: 200 };
}

/// A search that found something in the tab that is shown of the worker.
pub(super) fn searched_in(stage: &mut Stage, needle: &str, at: u64, nth: u64, total: u64) {
    let step = StepId(2);
    let tab = stage.ui.tab(step);
    stage.ui.search = Some(Search {
        tab,
        needle: needle.to_owned(),
        back: true,
        everywhere: false,
        found: Some((step, at)),
        count: Some(Count { step, nth, total, upto: u64::MAX }),
    });
    let pane = stage.ui.pane_mut(step);
    if crate::deck::entries::lists(tab) {
        pane.cursor.insert(tab, at);
    } else {
        pane.lines.entry(tab).or_default().go_to(usize::try_from(at).unwrap());
    }
}

/// The runner is gone.
pub(super) fn lost(stage: &mut Stage) {
    let gone = "the runner (pid 48200) is gone";
    stage.feed.hands = Hands::Lost(SafeText::line(gone));
    stage.read_only = Some(SafeText::line(gone));
    stage.feed.state.lost = Some(gone.to_owned());
    stage.feed.state.last_update = Some(NOW - Duration::from_secs(5));
    for step in stage.feed.state.steps.iter_mut().filter(|step| step.phase == StepPhase::Running) {
        step.phase = StepPhase::Lost;
        step.open.clear();
        step.activity = None;
    }
}

/// Processes of its steps live on.
pub(super) fn left_behind(stage: &mut Stage) {
    let left = |pid: u32, step: u32, command: &str| Left { pid, step: StepId(step), command: SafeText::line(command) };
    stage.ui.left = vec![
        left(48_213, 2, "pi --mode rpc --session /runs/session.jsonl"),
        left(48_214, 3, "pi --mode rpc"),
        left(48_230, 3, "cargo test"),
        left(48_231, 3, "/target/debug/deps/pool-5f0ca91f --test-threads 1\u{1b}[2J"),
        left(48_215, 4, "pi --mode rpc"),
    ];
    stage.ui.can_end_left = true;
}

/// Everything has ended, in different ways.
pub(super) fn over(stage: &mut Stage) {
    let state = &mut stage.feed.state;
    state.phase = RunPhase::Failed;
    state.ended_at = Some(NOW);
    for (at, phase) in [(2, StepPhase::Failed), (3, StepPhase::Stopped), (4, StepPhase::Paused), (5, StepPhase::Failed)]
    {
        let step = &mut state.steps[at];
        step.phase = phase;
        step.activity = None;
        step.open.clear();
        step.attention.clear();
        step.ended_at = Some(NOW);
        step.exit_code = Some(1);
        step.session_file = Some("/runs/session.jsonl".to_owned());
    }
    state.steps[2].error = Some("the tests still fail".to_owned());
    state.steps[4].exit_code = Some(0);
    state.steps[5].exit_code = Some(-1);
    state.steps[5].ended_at = None;
    let ended = |step: u32, phase, error: Option<&str>| {
        let outcome = StepOutcome { phase, exit_code: 1, error: error.map(str::to_owned), ..StepOutcome::default() };
        Event { at: NOW, what: What::StepEnded { step: StepId(step), outcome: Box::new(outcome) } }
    };
    let events = [
        ended(2, StepPhase::Failed, Some("the tests still fail")),
        ended(3, StepPhase::Stopped, None),
        ended(4, StepPhase::Paused, None),
        Event { at: NOW, what: What::RunEnded { state: RunPhase::Failed, error: None } },
    ];
    stage.history.add(&stage.feed.state, &events, &[]);
    stage.feed.hands = Hands::Over;
}

/// The run is over and plays again; the moment that is shown is the one of the stage.
pub(super) fn replayed(stage: &mut Stage) {
    let mut replay = Replay::default();
    let tool = |step: u32| What::Agent {
        step: StepId(step),
        event: AgentEvent::ToolStarted {
            call: None,
            tool: "bash".to_owned(),
            args: String::new(),
            path: None,
            about: Default::default(),
        },
    };
    let ended = |step: u32| What::StepEnded { step: StepId(step), outcome: Box::default() };
    let needs = What::AttentionNoted { step: StepId(3), reason: Reason::ToolOpen, message: String::new() };
    let asked = What::ControlRejected { file: String::new(), reason: String::new(), set_aside: false };
    let happened = [
        (0, What::RunStarted(Box::default())),
        (1, What::StepStarted { step: StepId(0) }),
        (20, tool(0)),
        (48, ended(0)),
        (128, ended(1)),
        (389, tool(3)),
        (629, needs),
        (701, tool(2)),
        (706, asked),
        (754, tool(2)),
        (802, tool(2)),
        (1_100, ended(2)),
        (1_101, ended(3)),
        (1_400, ended(4)),
        (1_460, What::RunEnded { state: RunPhase::Complete, error: None }),
    ];
    for ((seconds, what), place) in happened.into_iter().zip(0..) {
        replay.line.push(&Event { at: ago(761) + Duration::from_secs(seconds), what }, place);
    }
    replay.cursor.seek(&replay.line, Duration::from_secs(761));
    replay.cursor.change_speed(true);
    replay.cursor.change_speed(true);
    replay.cursor.play(&replay.line, NOW);
    stage.ui.begin_replay(replay);
    stage.read_only = Some(SafeText::line("this plays again what happened"));
}

/// The same at its end, where all steps have ended.
pub(super) fn replayed_to_the_end(stage: &mut Stage) {
    replayed(stage);
    stage.now = ago(761) + Duration::from_secs(1_460);
    let state = &mut stage.feed.state;
    (state.phase, state.ended_at) = (RunPhase::Complete, Some(stage.now));
    for (at, seconds) in [(2, 1_100), (3, 1_101), (4, 1_400), (5, 1_459)] {
        let step = &mut state.steps[at];
        step.phase = StepPhase::Complete;
        step.started_at.get_or_insert(ago(761) + Duration::from_secs(1_401));
        step.ended_at = Some(ago(761) + Duration::from_secs(seconds));
        step.exit_code = Some(0);
        step.activity = None;
        step.open.clear();
        step.attention.clear();
    }
    let done = |step: u32| {
        let outcome = StepOutcome { phase: StepPhase::Complete, ..StepOutcome::default() };
        What::StepEnded { step: StepId(step), outcome: Box::new(outcome) }
    };
    let ended = What::RunEnded { state: RunPhase::Complete, error: None };
    let late = [(1_100, done(2)), (1_101, done(3)), (1_400, done(4)), (1_459, done(5)), (1_460, ended)];
    let at = |seconds| ago(761) + Duration::from_secs(seconds);
    let late = late.map(|(seconds, what)| Event { at: at(seconds), what });
    stage.history.add(&stage.feed.state, &late, &[]);
    stage.keys("E");
}

/// What git says of the worker's folder.
pub(super) fn changed(stage: &mut Stage) {
    let text = b"diff --git a/src/pool.rs b/src/pool.rs
index 5f0c..a91f 100644
--- a/src/pool.rs
+++ b/src/pool.rs
@@ -212,8 +212,8 @@ impl Pool {
     pub fn close(&self) {
-        let guard = self.lock();
-        self.drain(guard);
+        let length = self.lock().len();
+        self.drain(length);
     }
";
    let status = b" M src/pool.rs\0?? notes.md\0";
    stage.diff = Some(Diff::parse(StepId(2), "/home/someone/pool", status, b"2\t2\tsrc/pool.rs\0", text));
}

/// A step whose agent asks: for a permission, for a choice or for a text.
pub(crate) fn asked(stage: &mut Stage, kind: &str) {
    let choice = |id: &str, label: &str| Choice { id: id.into(), label: label.into(), kind: String::new() };
    let command = "rm -rf target/debug\u{1b}[31m";
    let asking = match kind {
        "permission" => Asking {
            text: format!("May it use Bash? {command}"),
            tool: Some("Bash".into()),
            args: command.into(),
            ..Asking::default()
        },
        "choice" => Asking {
            kind: QuestionKind::Choice,
            text: "Which colour is it to be?".into(),
            choices: vec![choice("red", "Red: warm"), choice("blue", "Blue")],
            free: true,
            ..Asking::default()
        },
        "several" => Asking {
            kind: QuestionKind::Choice,
            text: "Which of these are to be mended?".into(),
            choices: vec![choice("a", "The parser: it loops"), choice("b", "The cache"), choice("c", "The readme")],
            many: true,
            free: true,
            ..Asking::default()
        },
        "edit" => Asking {
            text: "May it use Edit? /srv/pool/src/config.rs".into(),
            tool: Some("Edit".into()),
            args: "/srv/pool/src/config.rs".into(),
            detail: "- let key = env(\"POOL_KEY\");\n- connect(key)\n+ // for now\n+ let api_key = \"sk-abcdefghijklmnopqrstuvwxyz012345\";\n+ connect(api_key)\u{1b}[31m\n… 12 more lines that come".into(),
            ..Asking::default()
        },
        _ => Asking {
            kind: QuestionKind::Text,
            text: (1..60).map(|n| format!("line {n} of what it wants to know\n")).collect(),
            ..Asking::default()
        },
    };
    let until = (kind == "permission").then(|| NOW + Duration::from_secs(90));
    let evidence = asking.text.clone();
    stage.feed.state.steps[2].questions = vec![Question { id: "q1".into(), asking, asked_at: ago(65), until }];
    stage.feed.state.steps[2].attention = vec![notice(2, Reason::Question, "q1", 65, &evidence)];
    stage.feed.state.steps[2].activity = Some("needs_attention".to_owned());
}
