//! What one picture costs: sixteen noisy panes at 200x60, from the rows of their logs to the bytes for the terminal, in
//! CPU time of this thread, in bytes, and when asked for in instructions.

#[path = "counted.rs"]
mod counted;
#[path = "support.rs"]
mod support;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::Command;
use std::rc::Rc;

use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use rustix::time::{ClockId, clock_gettime};
use subdeck::deck::feed::{Hands, StepFacts};
use subdeck::deck::history::History;
use subdeck::deck::model::{Anchor, UiState, ViewMode};
use subdeck::deck::older::Older;
use subdeck::deck::theme::Theme;
use subdeck::deck::view::{self, Scene, layout};
use subdeck::deck::window::{Row, Window, Windows};
use subdeck::run::{RunPhase, RunState, StepId, StepPhase, StepState, Stream, Timestamp};
use subdeck::text::StyledLine;
use support::{Samples, rounds};

const SIZE: (u16, u16) = (200, 60);
const PANES: u32 = 16;
/// The variable that makes this program the one whose instructions are counted.
const COUNTED: &str = "SUBDECK_BENCH_COUNTED";
/// Pictures that fill caches before what is measured.
const WARM: u64 = 100;

fn state() -> RunState {
    let step = |n: u32| StepState {
        id: StepId(n),
        key: format!("worker-{n}"),
        agent: "worker".to_owned(),
        phase: StepPhase::Running,
        started_at: Some(Timestamp::from_millis(1_000)),
        last_activity: Some(Timestamp::from_millis(1_000)),
        pid: Some(1000 + n),
        turn_count: 7,
        tool_count: 21,
        ..StepState::default()
    };
    RunState { phase: RunPhase::Running, steps: (0..PANES).map(step).collect(), ..RunState::default() }
}

/// The rows of a pane at some moment: each picture shows other lines than the one before.
fn window(step: u32, frame: u64, (wide, high): (u16, u16)) -> Window {
    let row = |n: u64| {
        let line = frame * u64::from(high) + n;
        let text = format!(
            "\x1b[2m12:40:{:02}\x1b[0m \x1b[32mINFO\x1b[0m worker-{step} request {line:09} handled in {} ms, été and 日本",
            line % 60,
            line * 7 % 90
        );
        let StyledLine { runs, .. } = StyledLine::parse(text.as_bytes());
        Row {
            anchor: Anchor { line, row: 0 },
            stream: if n.is_multiple_of(9) { Stream::Err } else { Stream::Out },
            at: None,
            runs,
            cut: usize::from(wide) < text.len(),
            left: 0,
            again: None,
            end: line + 1,
        }
    };
    Window { rows: (0..u64::from(high)).map(row).collect(), len: 1 << 20, ..Window::default() }
}

/// Counts what is written.
struct Counter(Rc<Cell<usize>>);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.set(self.0.get() + bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Draws pictures one after the other; gives the CPU time of each in milliseconds, and its bytes. The last one
/// has its marks where instructions are counted.
fn draw(count: u64, counted: bool) -> (Samples, Samples) {
    let state = state();
    let mut ui = UiState::new(SIZE);
    ui.mode = ViewMode::Grid;
    let (history, older, facts) = (History::default(), Older::default(), StepFacts::default());
    let area = Rect::new(0, 0, SIZE.0, SIZE.1);
    let (mut shown, mut next) = (Buffer::empty(area), Buffer::empty(area));
    let written = Rc::new(Cell::new(0));
    let mut out = CrosstermBackend::new(Counter(Rc::clone(&written)));
    let (mut times, mut sizes) = (Samples::default(), Samples::default());
    for frame in 0..count {
        let mut logs = BTreeMap::new();
        for (id, size) in layout::visible_logs(&ui, &state) {
            logs.insert(id, window(id.0, frame, size));
        }
        let windows = Windows { logs, ..Windows::default() };
        let now = Timestamp::from_millis(100_000 + i64::try_from(frame).unwrap() * 33);
        let scene = Scene {
            state: &state,
            hands: &Hands::Live,
            read_only: None,
            now,
            wall: now,
            theme: Theme::default(),
            history: &history,
            older: &older,
            facts: &facts,
            facts_of: None,
            trouble: None,
            reveal: false,
            zone: &jiff::tz::TimeZone::UTC,
        };
        let marked = counted && frame + 1 == count;
        written.set(0);
        if marked {
            counted::mark();
        }
        let begun = cpu();
        next.reset();
        view::draw(&mut next, &scene, &ui, &windows);
        let changed = shown.diff(&next);
        out.draw(changed.into_iter()).unwrap();
        if marked {
            counted::mark();
        }
        times.push((cpu() - begun) * 1e3);
        sizes.push(written.get() as f64 / 1024.0);
        std::mem::swap(&mut shown, &mut next);
    }
    (times, sizes)
}

/// Seconds of CPU that this thread has used.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() {
    support::play();
    if std::env::var_os(COUNTED).is_some() {
        draw(WARM, true);
        return;
    }
    let count = u64::from(rounds(2000));
    // The first pictures fill caches.
    draw(count.min(WARM), false);
    let (times, sizes) = draw(count, false);
    let name = format!("frame: {PANES} panes, {}x{}", SIZE.0, SIZE.1);
    times.print_p95(&name, "ms CPU", "");
    sizes.print_p95(&format!("{name}, written"), "KiB", "");
    // Step by step it takes minutes.
    if !std::env::args().any(|argument| argument == "instructions") {
        return;
    }
    let exe = std::env::current_exe().unwrap();
    match counted::instructions(Command::new(exe).env(COUNTED, "1")) {
        Some(all) => println!("{name}: {:.2} million instructions", all as f64 / 1e6),
        None => println!("{name}: instructions are not counted here (nobody may trace a program)"),
    }
}
