//! A fixed run, its logs and its history, and a picture of it of any size: what the tests of the deck play on.

use std::collections::BTreeMap;
use std::time::Duration;

use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyModifiers};
use jiff::tz::TimeZone;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::super::*;
use crate::deck::changes::Diff;
use crate::deck::entries::{self, Entries};
use crate::deck::feed::{Feed as _, fake::FakeFeed};
use crate::deck::model::{Overlay, Position, UiEffect};
use crate::deck::older::Older;
use crate::deck::reading::{self, Message};
use crate::deck::update::{Context, update};
use crate::deck::window;
use crate::run::replay::Spot;
use crate::run::{
    AgentEvent, Amount, Condition, CostUsd, Event, Group, Limit, Limits, Notice, OpenCall, Reason, RunId, RunPhase,
    SteerMode, SteerRequest, SteerTarget, Steerable, StepOutcome, StepPhase, Stream, TargetState, Tokens, ToolCall,
    ToolOutcome, TurnLimit, What, Window,
};

static UTC: TimeZone = TimeZone::UTC;

/// 12:40:51 of a day.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_764_420_051_000);

pub(super) fn ago(seconds: u64) -> Timestamp {
    NOW - Duration::from_secs(seconds)
}

pub(super) fn step(id: u32, title: &str, logical: usize, phase: StepPhase) -> StepState {
    StepState {
        id: StepId(id),
        key: title.to_owned(),
        agent: title.to_owned(),
        logical,
        phase,
        has_task: true,
        steerable: Steerable::Yes,
        ..StepState::default()
    }
}

pub(super) fn call(tool: &str, args: &str, started: u64) -> OpenCall {
    OpenCall {
        call: None,
        tool: tool.to_owned(),
        args: args.to_owned(),
        path: None,
        started_at: ago(started),
        seq: started,
        about: Default::default(),
        heard: None,
    }
}

pub(super) fn ended(
    tool: &str,
    args: &str,
    started: u64,
    took_ms: u64,
    outcome: ToolOutcome,
    preview: &str,
) -> ToolCall {
    ToolCall {
        call: None,
        tool: tool.to_owned(),
        args: args.to_owned(),
        path: (tool != "bash").then(|| args.to_owned()),
        started_at: Some(ago(started)),
        ended_at: ago(started) + Duration::from_millis(took_ms),
        outcome: Some(outcome),
        preview: preview.to_owned(),
    }
}

pub(super) fn notice(step: u32, reason: Reason, subject: &str, since: u64, evidence: &str) -> Notice {
    let condition = Condition {
        reason,
        subject: subject.to_owned(),
        since: ago(since),
        threshold: Some(Amount::Millis(240_000)),
        amount: Some(Amount::Millis(240_000)),
        evidence: evidence.to_owned(),
    };
    Notice::new(StepId(step), condition, ago(since) + Duration::from_millis(240_000))
}

/// The reviewer's call is open for long.
fn long_open() -> Notice {
    notice(3, Reason::ToolOpen, "372", 372, "tool 'bash' open for 4m00s")
}

/// The run of the mock-ups.
pub(crate) fn run() -> RunState {
    let mut scout = step(0, "scout", 0, StepPhase::Complete);
    scout.started_at = Some(ago(761));
    scout.ended_at = Some(ago(713));
    scout.exit_code = Some(0);
    scout.last_message = Some("Three tests are flaky: drain, steal, resize.".to_owned());
    scout.tool_count = 9;
    scout.cost = Some(CostUsd(0.08));
    scout.tokens = Tokens { input: 41_000, output: 2_100, ..Tokens::default() };
    let mut planner = step(1, "planner", 1, StepPhase::Complete);
    planner.started_at = Some(ago(713));
    planner.ended_at = Some(ago(633));
    planner.exit_code = Some(0);
    planner.last_message = Some("plan.md holds the plan.".to_owned());
    planner.cost = Some(CostUsd(0.13));
    planner.tokens = Tokens { input: 60_000, output: 4_000, ..Tokens::default() };
    let mut worker = step(2, "worker", 2, StepPhase::Running);
    worker.started_at = Some(ago(242));
    worker.pid = Some(48_213);
    worker.model = Some("m-large".to_owned());
    worker.last_activity = Some(ago(1));
    worker.open = vec![OpenCall { path: Some("src/pool.rs".to_owned()), ..call("edit", "src/pool.rs", 7) }];
    worker.turn_count = 14;
    worker.tool_count = 23;
    worker.timeout_ms = Some(600_000);
    worker.limits = Limits {
        turns: Some(TurnLimit { max: 40, grace: 2 }),
        tokens: Some(Limit { soft: Some(180_000), hard: Some(400_000) }),
        tool_ms: Some(600_000),
        ..Limits::default()
    };
    worker.cost = Some(CostUsd(0.31));
    worker.tokens = Tokens { input: 182_000, output: 9_400, cache_read: 1_100_000, cache_write: 0 };
    worker.window = Window { used: Some(122_000), size: Some(200_000) };
    worker.recent_tools.extend([
        ended("read", "src/pool.rs", 60, 100, ToolOutcome::Ok, ""),
        ended("bash", "cargo test pool::", 50, 18_440, ToolOutcome::Ok, ""),
        ended("edit", "src/pool.rs", 20, 20, ToolOutcome::Error, "no match"),
    ]);
    worker.last_message = Some(
        "The deadlock comes from holding the shard lock while draining. I will drop the guard first and then re-run \
         the two failing tests."
            .to_owned(),
    );
    worker.steering.add(SteerRequest {
        id: "5f0c-a91f".to_owned(),
        requested_at: ago(56),
        source: None,
        mode: SteerMode::Steer,
        message: String::new(),
        preview: "Do not hold the shard lock across drain().".to_owned(),
        targets: vec![SteerTarget {
            step: StepId(2),
            state: TargetState::Delivered,
            routed_at: Some(ago(56)),
            delivered_at: Some(ago(55)),
            failed_at: None,
            reason: None,
        }],
    });
    let mut reviewer = step(3, "reviewer", 2, StepPhase::Running);
    reviewer.started_at = Some(ago(380));
    reviewer.pid = Some(48_214);
    reviewer.last_activity = Some(ago(372));
    reviewer.open = vec![call("bash", "cargo test", 372)];
    reviewer.tool_count = 4;
    reviewer.turn_count = 3;
    // Nothing was told of what it used yet.
    reviewer.limits.tokens = Some(Limit { soft: None, hard: Some(100_000) });
    reviewer.activity = Some("needs_attention".to_owned());
    reviewer.attention = vec![notice(3, Reason::TimeThreshold, "", 380, "still active after 4m00s"), long_open()];
    let mut second = step(4, "worker", 2, StepPhase::Running);
    second.label = Some("worker-b".to_owned());
    second.started_at = Some(ago(175));
    second.pid = Some(48_215);
    second.last_activity = Some(ago(3));
    second.turn_count = 5;
    second.cost = Some(CostUsd(0.32));
    second.tokens = Tokens { input: 112_000, output: 2_000, ..Tokens::default() };
    let acceptance = step(5, "acceptance", 3, StepPhase::Pending);
    let steering = worker.steering.clone();
    RunState {
        id: RunId("7f3a2c81-0b7e-4c55-9a6e-1f2d3c4b5a69".to_owned()),
        name: Some("fix-flaky-tests".to_owned()),
        phase: RunPhase::Running,
        started_at: Some(ago(761)),
        steps: vec![scout, planner, worker, reviewer, second, acceptance],
        groups: vec![Group { start: 2, count: 3, logical: 2 }],
        logical_count: 4,
        steering,
        ..RunState::default()
    }
}

const LOG: &str = "\
$ cargo test pool::
   Compiling pool v0.3.1 (~/src/pool)
\x1b[33mwarning\x1b[0m: unused variable: `guard`
  --> src/pool.rs:214:13
    Finished `test` profile in 6.11s

running 2 tests
test pool::drain_under_load ... \x1b[31mFAILED\x1b[0m
test pool::steal_is_fair ... \x1b[32mok\x1b[0m

failures:

---- pool::drain_under_load stdout ----
thread 'pool::drain_under_load' panicked at src/pool.rs:331:9:
assertion `left == right` failed
  left: 63
 right: 64";

/// Records of what the worker said and did, by their places.
const RECORDS: &[(u64, &str)] = &[
    (
        3,
        r#"{"type":"message_end","message":{"role":"assistant","content":[
            {"type":"thinking","thinking":"Where is the lock taken?\nAnd who holds it meanwhile?"},
            {"type":"text","text":"I read the pool first.\nThen the two tests that fail."},
            {"type":"toolCall","name":"read","arguments":{"path":"src/pool.rs"}}]}}"#,
    ),
    (
        4,
        r#"{"type":"tool_execution_start","toolName":"read","toolCallId":"c1","args":{"path":"src/pool.rs","limit":200}}"#,
    ),
    (
        6,
        r#"{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14"}]}}"#,
    ),
    (
        7,
        r#"{"type":"tool_execution_start","toolName":"edit","toolCallId":"c2","args":{"path":"src/pool.rs","old":"let guard = self.lock();\nself.drain(guard);","new":"let length = self.lock().len();\nself.drain(length);"}}"#,
    ),
];

/// A feed, its history, and a picture of one size.
pub(crate) struct Stage {
    pub feed: FakeFeed,
    pub history: History,
    pub older: Older,
    pub ui: UiState,
    pub theme: Theme,
    pub read_only: Option<SafeText>,
    /// What stands between the files and the picture.
    pub trouble: Option<SafeText>,
    pub now: Timestamp,
    pub facts: StepFacts,
    pub messages: BTreeMap<u64, Message>,
    pub diff: Option<Diff>,
}

impl Stage {
    pub(crate) fn new(width: u16, height: u16) -> Self {
        let mut feed = FakeFeed { state: run(), hands: Hands::Live, ..FakeFeed::default() };
        feed.print(0, Stream::Out, "found 3 flaky tests");
        feed.print(2, Stream::Out, LOG);
        feed.print(2, Stream::Err, "note: run with `RUST_BACKTRACE=1`");
        feed.print(2, Stream::Out, "edit: src/pool.rs");
        feed.print(3, Stream::Out, "   Compiling pool v0.3.1\n\x1b]0;evil\x07running 40 tests");
        feed.print(4, Stream::Out, "reading docs/design.md");
        let mut history = History::default();
        let tool = |s: u32, tool: &str, args: &str| What::Agent {
            step: StepId(s),
            event: AgentEvent::ToolStarted {
                call: None,
                tool: tool.to_owned(),
                args: args.to_owned(),
                path: None,
                about: Default::default(),
            },
        };
        let said = |text: &str| What::Agent {
            step: StepId(2),
            event: AgentEvent::Message {
                role: crate::run::MessageRole::Assistant,
                preview: text.to_owned(),
                model: Some("m-large".to_owned()),
                stop: None,
                usage: None,
                error: None,
                calls_tools: true,
            },
        };
        let spot = |(number, record)| Spot { number: Some(number), record: Some(record) };
        let done = || StepOutcome { phase: StepPhase::Complete, ..StepOutcome::default() };
        history.add(
            &feed.state,
            &[
                Event { at: ago(713), what: What::StepEnded { step: StepId(0), outcome: Box::new(done()) } },
                Event { at: ago(633), what: What::StepEnded { step: StepId(1), outcome: Box::new(done()) } },
                Event { at: ago(372), what: tool(3, "bash", "cargo test") },
                Event { at: ago(132), what: What::AttentionRaised { step: StepId(3), notice: Box::new(long_open()) } },
                Event {
                    at: ago(70),
                    what: What::BudgetReached {
                        step: Some(StepId(2)),
                        metric: crate::run::Metric::Tokens,
                        stage: crate::run::Stage::Soft,
                        used: crate::run::Used::all(180_412.0),
                        message: String::new(),
                    },
                },
                Event { at: ago(61), what: said("I read the pool first.\nThen the two tests that fail.") },
                Event { at: ago(60), what: tool(2, "read", "src/pool.rs") },
                Event {
                    at: ago(55),
                    what: What::SteerMoved {
                        id: "5f0c-a91f".to_owned(),
                        step: StepId(2),
                        to: TargetState::Delivered,
                        detail: None,
                    },
                },
                Event { at: ago(8), what: said("The deadlock comes from holding the shard lock while draining.") },
                Event { at: ago(7), what: tool(2, "edit", "src/pool.rs") },
            ],
            &(1..).zip([0, 8, 1, 9, 2, 3, 4, 5, 6, 7]).map(spot).collect::<Vec<_>>(),
        );
        feed.records = RECORDS.iter().map(|(place, record)| (*place, (*record).to_owned())).collect();
        let messages = [3, 6].map(|place| (place, reading::message(&feed, place))).into_iter().collect();
        let mut ui = UiState::new((width, height));
        ui.selected = StepId(2);
        ui.unread = [(StepId(3), 0), (StepId(4), 128)].into_iter().collect();
        let theme = Theme::default();
        let facts = StepFacts {
            task: SafeText::block("Mend the flaky tests that the scout found.\n\nKeep the public API as it is."),
            limits: vec![
                ("turns", "40, 2 more to finish".to_owned()),
                ("tokens", "180k warns, 400k ends".to_owned()),
                ("time", "10m".to_owned()),
            ],
        };
        let older = Older::default();
        Self { feed, history, older, ui, theme, read_only: None, trouble: None, now: NOW, facts, messages, diff: None }
    }

    pub(crate) fn entries(&self) -> Entries<'_> {
        Entries { history: &self.history, older: &self.older }
    }

    pub(crate) fn key(&mut self, code: KeyCode) -> Vec<UiEffect> {
        self.press(KeyEvent::new(code, KeyModifiers::NONE))
    }

    /// What is on the screen was read, and no key came for a while.
    pub(crate) fn seen(&mut self) {
        self.ui.drawn(Timestamp::from_millis(self.now.millis() - 1000));
        self.ui.typed = None;
    }

    pub(crate) fn keys(&mut self, text: &str) {
        for c in text.chars() {
            // A person sees what the key before has done.
            self.seen();
            self.key(KeyCode::Char(c));
        }
    }

    pub(crate) fn press(&mut self, key: KeyEvent) -> Vec<UiEffect> {
        let (state, entries) = (&self.feed.state, Entries { history: &self.history, older: &self.older });
        let cx = Context { state, read_only: self.read_only.as_ref(), entries, now: self.now };
        let effects = update(&mut self.ui, cx, &Input::Key(key));
        if let [UiEffect::Open(step)] = effects.as_slice() {
            let found = state.step(*step).unwrap();
            let listed = entries.listed(&self.ui, found);
            let reader = reading::Reader { state, entries, zone: &TimeZone::UTC };
            let text = if entries::lists(self.ui.tab(*step)) {
                reader.open(&self.feed, &self.facts, *step, self.ui.tab(*step), &listed)
            } else {
                let windows = Windows { diff: self.diff.clone().map(Into::into), ..Windows::default() };
                let what = opens(&self.scene(), &self.ui, &windows);
                reader.behind(&self.feed, *step, &what, self.diff.as_ref())
            };
            self.ui.overlays.extend(text.map(Overlay::Reading));
        }
        effects
    }

    pub(crate) fn buffer(&mut self) -> Buffer {
        let mut logs = BTreeMap::new();
        for (id, size) in layout::visible_logs(&self.ui, &self.feed.state.clone()) {
            let mut log = window::fetch(&mut self.feed, &mut self.ui, id, size, None);
            if id == self.ui.selected && (self.ui.zoom || self.ui.pane(id).output != Position::Follow) {
                log.line = log.told_by(None).and_then(|told| self.feed.line_number(id, told));
            }
            logs.insert(id, log);
        }
        let windows = Windows {
            logs,
            messages: std::sync::Arc::new(self.messages.clone()),
            diff: self.diff.clone().map(Into::into),
        };
        let mut buf = Buffer::empty(Rect::new(0, 0, self.ui.size.0, self.ui.size.1));
        self.ui.keymap.ascii = self.theme.ascii;
        // Limits change nothing that a scene shows.
        let mut ui = std::mem::take(&mut self.ui);
        let scene = self.scene_of(&ui);
        limit(&scene, &mut ui, &windows);
        draw(&mut buf, &scene, &ui, &windows);
        self.ui = ui;
        buf
    }

    /// The entry of a list that is drawn in a row of the screen.
    pub(super) fn entry_at(&self, y: u16) -> Option<u64> {
        entry_at(&self.scene(), &self.ui, 10, y)
    }

    pub(super) fn scene(&self) -> Scene<'_> {
        self.scene_of(&self.ui)
    }

    fn scene_of(&self, ui: &UiState) -> Scene<'_> {
        Scene {
            state: &self.feed.state,
            hands: &self.feed.hands,
            read_only: self.read_only.as_ref(),
            trouble: self.trouble.as_ref(),
            now: self.now,
            wall: self.now,
            reveal: ui.reveal,
            theme: self.theme,
            history: &self.history,
            older: &self.older,
            facts: &self.facts,
            facts_of: Some(ui.selected),
            zone: &UTC,
        }
    }

    pub(crate) fn text(&mut self) -> String {
        let buf = self.buffer();
        let mut out = String::new();
        for y in 0..buf.area.height {
            let row: String = (0..buf.area.width).map(|x| buf[(x, y)].symbol()).collect();
            out.push_str(row.trim_end());
            out.push('\n');
        }
        out
    }
}
