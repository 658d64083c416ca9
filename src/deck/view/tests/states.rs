//! States that the views at all sizes do not show, each at the size at which it matters; and lines at the edges, of which
//! the rest of the picture says nothing new.

use std::time::Duration;

use crossterm::event::KeyCode;

use super::cast;
use super::pictures::picture_at;
use super::stage::{NOW, Stage, ago};
use crate::deck::changes::Diff;
use crate::deck::effect::{Fate, Sent};
use crate::deck::feed::Hands;
use crate::deck::model::{Position, ViewMode};
use crate::run::{
    CostUsd, Limit, RunId, RunPhase, RunState, SteerMode, SteerRequest, SteerTarget, StepId, StepPhase, Stream,
    TargetState, Timestamp,
};
use crate::text::SafeText;

const WIDE: (u16, u16) = (120, 36);
const MIDDLE: (u16, u16) = (80, 24);
const NARROW: (u16, u16) = (50, 14);
/// Without a ticker and without a second line.
const LOW: (u16, u16) = (120, 18);
const MIDDLE_LOW: (u16, u16) = (80, 18);
/// The smallest that is more than a sentence.
const LEAST: (u16, u16) = (30, 8);

macro_rules! pictures {
    ($($name:ident at $sizes:expr, $dress:expr;)*) => {
        $(#[test] fn $name() { picture_at(&stringify!($name).replace('_', "-"), &$sizes, $dress); })*
    };
}

/// All steps have ended well.
fn done(stage: &mut Stage) {
    cast::over(stage);
    let state = &mut stage.feed.state;
    state.phase = RunPhase::Complete;
    for step in &mut state.steps {
        step.phase = StepPhase::Complete;
        step.error = None;
        step.exit_code = Some(0);
        step.started_at.get_or_insert(ago(20));
        step.ended_at.get_or_insert(NOW);
    }
    stage.history = Default::default();
}

/// A run with limits of its own; `used` up.
fn limited(stage: &mut Stage, used: bool) {
    let state = &mut stage.feed.state;
    state.timeout_ms = Some(1_800_000);
    let cost = if used { 0.80 } else { 2.0 };
    state.limits.cost = Some(Limit { soft: Some(CostUsd(cost * 0.8)), hard: Some(CostUsd(cost)) });
    state.limits.tokens = Some(Limit { soft: None, hard: Some(2_000_000) });
}

/// The newest message to the worker has come as far as this.
fn message(stage: &mut Stage, to: TargetState, reason: Option<&str>) {
    let moment = Some(ago(12));
    let at = |reached: bool| moment.filter(|_| reached);
    let target = SteerTarget {
        step: StepId(2),
        routed_at: at(to != TargetState::Scheduled),
        delivered_at: at(to == TargetState::Delivered),
        failed_at: at(to == TargetState::Failed),
        reason: reason.map(str::to_owned),
        state: to,
    };
    let request = SteerRequest {
        id: "6a10-b3c4".to_owned(),
        requested_at: ago(13),
        source: None,
        mode: SteerMode::Steer,
        message: String::new(),
        preview: "Look at the queue first.".to_owned(),
        targets: vec![target],
    };
    stage.feed.state.steering.add(request.clone());
    stage.feed.state.steps[2].steering.add(request);
}

pictures! {
    question_waits at [WIDE, MIDDLE, NARROW], |s| cast::asked(s, "permission");
    need_noted at [MIDDLE], |s| s.keys("ja");
    low at [LOW, MIDDLE_LOW, (40, 12)], |_| {};
    low_zoomed at [MIDDLE_LOW], |s| s.keys("z");
    least at [LEAST], |_| {};
    least_with_a_question at [LEAST], |s| cast::asked(s, "permission");
    least_zoomed at [LEAST], |s| s.keys("z");
    edge_of_a_shape at [(69, 24), (119, 36)], |_| {};
    every_state_from_the_first at [MIDDLE, NARROW], |s| { cast::every_state(s); s.ui.selected = StepId(0); };
    every_state_to_the_last at [MIDDLE, NARROW], |s| { cast::every_state(s); s.ui.selected = StepId(14); };
    step_that_retries at [WIDE, MIDDLE], |s| { cast::every_state(s); s.ui.selected = StepId(4); };
    budget_of_attempts at [MIDDLE], |s| { cast::every_state(s); s.keys("4"); };
    run_done at [WIDE, NARROW], done;
    run_stopped at [MIDDLE, NARROW], |s| {
        cast::over(s);
        s.feed.state.phase = RunPhase::Stopped;
        s.feed.state.stopped = true;
        let step = &mut s.feed.state.steps[2];
        (step.phase, step.error) = (StepPhase::Stopped, None);
    };
    run_paused at [MIDDLE, NARROW], |s| {
        cast::over(s);
        s.feed.state.phase = RunPhase::Paused;
        s.feed.state.interrupted = true;
        let step = &mut s.feed.state.steps[2];
        (step.phase, step.error, step.exit_code) = (StepPhase::Paused, None, Some(0));
        (s.ui.can_go_on, s.ui.can_retry) = (true, true);
    };
    run_with_limits at [WIDE, MIDDLE, NARROW], |s| limited(s, false);
    run_over_its_budget at [MIDDLE], |s| limited(s, true);
    raise_of_the_run at [MIDDLE], |s| { limited(s, false); s.keys("+"); s.key(KeyCode::Tab); s.keys("45m"); };
    message_queued at [MIDDLE], |s| message(s, TargetState::Queued, None);
    message_failed at [MIDDLE], |s| message(s, TargetState::Failed, Some("its turn ended before it could be told"));
    happening_read at [WIDE, NARROW], |s| s.ui.reading = Some(37);
    tools_at_the_oldest at [MIDDLE], |s| s.keys("2g");
    transcript_at_the_oldest at [NARROW], |s| s.keys("3g");
    output_at_its_beginning at [MIDDLE], |s| { cast::long_log(s); s.keys("zg"); };
    output_not_wrapped at [NARROW], |s| s.keys("zW");
    output_folded at [MIDDLE], |s| { for _ in 0..12 { s.feed.print(2, Stream::Out, "waiting for the lock"); } s.keys("z"); };
    output_of_stderr at [MIDDLE], |s| s.keys("z&");
    output_of_nothing_yet at [MIDDLE], |s| { s.feed.logs.clear(); s.keys("z"); };
    search_goes_on at [MIDDLE, NARROW], |s| { s.keys("z"); cast::searched(s); s.ui.searching = Some(37); };
    search_found_nothing at [WIDE, NARROW], |s| {
        s.keys("z");
        cast::searched(s);
        if let Some(search) = &mut s.ui.search {
            (search.needle, search.found) = ("gone".to_owned(), None);
            if let Some(count) = &mut search.count { (count.nth, count.total) = (0, 0); }
        }
        s.ui.pane_mut(StepId(2)).output = Position::Follow;
    };
    filter_of_none at [MIDDLE], |s| s.keys("&nobody");
    filter_kept at [MIDDLE, NARROW], |s| { s.keys("&work"); s.key(KeyCode::Enter); };
    frozen_zoomed at [MIDDLE], |s| { s.keys("z "); s.ui.frozen = Some(NOW - Duration::from_secs(12)); };
    armed_zoomed at [NARROW], |s| s.keys("zi");
    notice_zoomed at [NARROW], |s| { s.ui.selected = StepId(5); s.keys("zx"); };
    help_without_a_match at [MIDDLE], |s| s.keys("?/zebra");
    help_at_its_end at [MIDDLE], |s| s.keys("?G");
    palette_without_a_match at [NARROW], |s| s.keys(":zebra");
    composer_of_a_long_message at [MIDDLE, NARROW], |s| {
        s.keys("s");
        for n in 1..20 { s.keys(&format!("line {n}")); s.key(KeyCode::Enter); }
        s.keys("and the last one");
    };
    answer_of_nothing at [MIDDLE], |s| { cast::asked(s, "text"); s.keys("A"); s.key(KeyCode::Enter); };
    answered_meanwhile at [MIDDLE], |s| { cast::asked(s, "permission"); s.keys("A"); s.feed.state.steps[2].questions.clear(); };
    changes_without_git at [MIDDLE], |s| {
        s.diff = Some(Diff::failed(StepId(2), "/home/someone/pool", "it is no git repository"));
        s.keys("5");
    };
    changes_of_none at [MIDDLE], |s| { s.diff = Some(Diff::parse(StepId(2), "/home/someone/pool", b"", b"", b"")); s.keys("5"); };
    lost_with_processes at [WIDE], |s| { cast::lost(s); cast::left_behind(s); s.ui.selected = StepId(3); };
    sub_agents_zoomed at [MIDDLE], |s| { s.feed.state.steps[2].sub_agents = super::sub_agents(); s.keys("z"); };
    replay_in_low_rooms at [LOW, LEAST], cast::replayed;
    flow_low at [MIDDLE_LOW], |s| s.ui.mode = ViewMode::Flow;
}

/// The rows at the edges of a picture, at three widths.
fn edges(rows: &[usize], dress: impl Fn(&mut Stage)) -> String {
    let mut out = String::new();
    for (width, height) in [WIDE, MIDDLE, NARROW] {
        let mut stage = Stage::new(width, height);
        dress(&mut stage);
        let text = stage.text();
        let lines: Vec<&str> = text.lines().collect();
        for row in rows {
            out.push_str(lines[lines.len() - row]);
            out.push('\n');
        }
    }
    out
}

/// Compares such rows with what was approved, each below what they are about.
fn compared(name: &str, rows: &[(&str, String)]) {
    let whole: String = rows.iter().map(|(what, rows)| format!("# {what}\n{rows}\n")).collect();
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false, snapshot_path => "../snapshots" }, {
        insta::assert_snapshot!(name, whole);
    });
}

#[test]
fn the_life_of_a_request() {
    let sent = |what: &'static str, step: Option<u32>, fate: Fate| {
        edges(&[2, 1], move |stage: &mut Stage| {
            let (step, fate) = (step.map(StepId), fate.clone());
            stage.ui.sent.push(Sent { id: Some("6a10-b3c4".to_owned()), what, step, at: NOW, fate });
        })
    };
    let of_message = |to: TargetState, why: Option<&'static str>| edges(&[2, 1], move |s| message(s, to, why));
    let refused = || Fate::Refused(SafeText::line("the queue of step 3 is full (20 of 20)"));
    compared(
        "requests",
        &[
            ("stop, written", sent("stop", Some(2), Fate::Unanswered)),
            ("steer, awaited", sent("steer", Some(2), Fate::Awaited)),
            ("steer, refused", sent("steer", Some(2), refused())),
            ("interrupt, done", sent("interrupt", None, Fate::Done)),
            ("message scheduled", of_message(TargetState::Scheduled, None)),
            ("message routed", of_message(TargetState::Routed, None)),
            ("message queued", of_message(TargetState::Queued, None)),
            ("message delivered", of_message(TargetState::Delivered, None)),
            ("message failed", of_message(TargetState::Failed, Some("its turn ended before it could be told"))),
        ],
    );
}

#[test]
fn what_stays_true_is_said_below() {
    let hands = |hands: Hands| edges(&[2, 1], move |stage: &mut Stage| stage.feed.hands = hands.clone());
    let line = SafeText::line;
    let trouble = |text: &'static str| edges(&[2, 1], move |s: &mut Stage| s.trouble = Some(line(text)));
    let read_only = "the run's directory cannot be written (Read-only file system)";
    compared(
        "standing",
        &[
            ("hands unknown", hands(Hands::Unknown(line("its last sign is a day old")))),
            ("suspended", hands(Hands::Suspended(line("the runner (pid 48200) is suspended; fg or SIGCONT wakes it")))),
            ("not writable", edges(&[2, 1], move |s: &mut Stage| s.read_only = Some(line(read_only)))),
            ("watching", trouble("the limit fs.inotify.max_user_watches is reached; looking every 250 ms instead")),
        ],
    );
}

#[test]
fn where_a_run_comes_from_and_what_was_started_in_it_is_said_above() {
    use crate::deck::feed::InnerRun;
    let head = |change: &dyn Fn(&mut Stage)| {
        let mut out = String::new();
        for (width, height) in [(200, 60), WIDE, MIDDLE, NARROW] {
            let mut stage = Stage::new(width, height);
            change(&mut stage);
            out.push_str(stage.text().lines().next().unwrap());
            out.push('\n');
        }
        out
    };
    let inner = |needs: bool| InnerRun {
        path: Default::default(),
        step: Some(StepId(2)),
        title: SafeText::line("nightly"),
        living: true,
        needs,
        started: Timestamp::default(),
    };
    compared(
        "headers",
        &[
            ("goes on", head(&|s| s.feed.state.resumed_from = Some(RunId("5ee1a0b4-11".into())))),
            ("runs inside", head(&|s| s.ui.inside = vec![inner(false), inner(false)])),
            ("one of them needs somebody", head(&|s| s.ui.inside = vec![inner(true), inner(false)])),
            ("read-only", head(&|s| s.read_only = Some(SafeText::line("its root belongs to another user")))),
            ("with limits", head(&|s| limited(s, false))),
        ],
    );
}

#[test]
fn where_there_is_room_for_a_sentence_only_it_says_how_the_run_stands() {
    let tiny = |dress: &dyn Fn(&mut Stage)| {
        let mut stage = Stage::new(29, 6);
        dress(&mut stage);
        stage.text()
    };
    compared(
        "tiny",
        &[
            ("goes on", tiny(&|_| {})),
            ("a question", tiny(&|s| cast::asked(s, "permission"))),
            ("over", tiny(&cast::over)),
            ("lost", tiny(&cast::lost)),
            (
                "processes live on",
                tiny(&|s| {
                    cast::lost(s);
                    cast::left_behind(s);
                }),
            ),
            ("gone", tiny(&|s| s.feed.hands = Hands::Gone(SafeText::line("was removed")))),
            ("played again", tiny(&cast::replayed)),
            ("without steps", tiny(&|s| s.feed.state = RunState { phase: RunPhase::Running, ..RunState::default() })),
        ],
    );
}
