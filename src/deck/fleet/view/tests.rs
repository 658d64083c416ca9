//! Pictures of a fixed fleet, and sizes at which nothing may panic.

use std::io;

use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyModifiers};

use super::*;
use crate::deck::fleet::AgentChoice;
use crate::deck::fleet::update::{Context, Effect, update};
use crate::deck::view::tests::pictures::planes;
use crate::deck::view::tests::{NOW, run};
use crate::listing::{arrange, broken};
use crate::run::{CostUsd, RunId, RunPhase, RunState, StepId, StepPhase, StepState, Tokens};
use crate::rundir::fleet::Project;
use crate::rundir::{Listed, RunDir};
use std::time::Duration;

fn one(id: &str, state: Result<RunState, &str>) -> FleetRun {
    let dir = RunDir::at(format!("/home/me/.local/state/subdeck/async-subagent-runs/{id}"));
    let state = state.map_err(io::Error::other);
    let listed = Listed { dir, state, lost: None, distrust: None, nested_in: None };
    FleetRun::of(listed, 0)
}

fn state(id: &str, name: Option<&str>, agent: &str, phase: RunPhase, ago: u64, usd: f64) -> RunState {
    let over = phase.is_terminal();
    let step = StepState {
        id: StepId(0),
        agent: agent.to_owned(),
        phase: if over { StepPhase::Complete } else { StepPhase::Running },
        model: Some("vendor/m-large:low".to_owned()),
        started_at: Some(NOW - Duration::from_secs(ago)),
        ended_at: over.then_some(NOW - Duration::from_secs(ago / 2)),
        cost: (usd > 0.0).then_some(CostUsd(usd)),
        tokens: Tokens { input: (usd * 100_000.0) as u64, ..Tokens::default() },
        ..StepState::default()
    };
    RunState {
        id: RunId(id.to_owned()),
        name: name.map(str::to_owned),
        cwd: "/home/me/src/pool".to_owned(),
        phase,
        started_at: step.started_at,
        ended_at: step.ended_at,
        last_update: step.ended_at.or(Some(NOW)),
        steps: vec![step],
        ..RunState::default()
    }
}

/// One of everything that a fleet can hold.
fn runs_of_a_fleet() -> Vec<FleetRun> {
    let project = |name: &str, branch: &str| Some(Project { name: name.into(), branch: Some(branch.into()) });
    let mut all = vec![
        one("7f3a2c11", Ok(RunState { cwd: "/home/me/src/pool".to_owned(), ..run() })),
        one("0aa1b2c3", Ok(state("0aa1b2c3", Some("docs"), "writer", RunPhase::Running, 95, 0.04))),
        one("1bb2c3d4", Ok(state("1bb2c3d4", None, "scout", RunPhase::Complete, 7200, 0.31))),
        one("2cc3d4e5", Ok(state("2cc3d4e5", Some("migrate"), "worker", RunPhase::Paused, 4000, 1.2))),
        one("3dd4e5f6", Ok(state("3dd4e5f6", Some("release"), "worker", RunPhase::Running, 90_000, 0.0))),
        one("4ee5f6a7", Err("it is not valid JSON: EOF while parsing a string at line 1 column 9")),
        one("5ff6a7b8", Ok(state("5ff6a7b8", None, "scout", RunPhase::Complete, 7000, 0.02))),
    ];
    all[0].project = project("pool", "fix/flaky");
    all[1].project = project("pool", "main");
    all[2].task = "Find the modules that nobody calls\nand list them".to_owned();
    all[4].listed.lost = Some("the runner (pid 4711) is gone".to_owned());
    all[6].parent = Some(RunId("1bb2c3d4".into()));
    // Of the others no folder is known.
    for run in all.iter_mut().filter(|run| run.project.is_none()) {
        run.listed.state.iter_mut().for_each(|state| state.cwd.clear());
    }
    if let Ok(failed) = &mut all[3].listed.state {
        failed.error = None;
    }
    let mut failed = state("6aa7b8c9", Some("lint"), "sh", RunPhase::Failed, 600, 0.0);
    failed.error = Some("Step failed: sh".to_owned());
    failed.cwd.clear();
    if let Some(step) = failed.steps.first_mut() {
        step.phase = StepPhase::Failed;
        step.label = Some("clippy".to_owned());
        step.runner = crate::run::RunnerKind::ExternalCli { command: "sh".to_owned(), args: Vec::new() };
        step.error = Some("unused variable x in src/a.rs:14".to_owned());
    }
    all.push(one("6aa7b8c9", Ok(failed)));
    all
}

struct Stage {
    runs: Vec<FleetRun>,
    ui: FleetUi,
    theme: Theme,
}

impl Stage {
    fn new(width: u16, height: u16) -> Self {
        Self {
            runs: runs_of_a_fleet(),
            ui: FleetUi { size: (width, height), ..FleetUi::default() },
            theme: Theme::default(),
        }
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut FleetUi, &[FleetRun], &[Row<'_>]) -> T) -> T {
        let day = |at: Timestamp| units::when::day(at.micros(), &TimeZone::UTC);
        let midnight = Timestamp::from_micros(units::when::midnight(NOW.micros(), &TimeZone::UTC));
        let rows = arrange(self.runs.iter(), &self.ui.view, midnight, NOW, day, |_| "/home/me/root".to_owned());
        self.ui.settle(&rows);
        act(&mut self.ui, &self.runs, &rows)
    }

    fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Option<Effect> {
        self.with(|ui, _, rows| {
            let folder = std::path::Path::new("/");
            let cx = Context { rows, folder, home: None, now: NOW };
            update(ui, cx, &Input::Key(KeyEvent::new(code, modifiers)))
        })
    }

    fn keys(&mut self, text: &str) -> Option<Effect> {
        text.chars().map(|c| self.press(KeyCode::Char(c), KeyModifiers::NONE)).last().flatten()
    }

    fn buffer(&mut self) -> Buffer {
        let theme = self.theme;
        self.with(|ui, runs, rows| {
            let mut buf = Buffer::empty(Rect::new(0, 0, ui.size.0, ui.size.1));
            let waiting: Vec<&FleetRun> = runs.iter().filter(|run| Class::of(run) == Class::Needs).collect();
            let models = vec![("m-large".to_owned(), 2.1), ("m-small".to_owned(), 0.31)];
            let scene = Scene {
                rows,
                count: runs.len(),
                unread: 0,
                waiting: &waiting,
                living: runs.iter().filter(|run| run.is_living()).count(),
                broken: broken(runs.iter()),
                spent: &if runs.is_empty() {
                    Spent::default()
                } else {
                    Spent { usd: 2.41, models, unknown: 1, partial: true }
                },
                troubles: &[],
                roots: &["/home/me/root".to_owned()],
                now: NOW,
                zone: &TimeZone::UTC,
                theme,
            };
            draw(&mut buf, &scene, ui);
            buf
        })
    }

    fn text(&mut self) -> String {
        let buf = self.buffer();
        let row = |y| (0..buf.area.width).map(|x| buf[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..buf.area.height).map(|y| row(y) + "\n").collect()
    }
}

/// Compares what is drawn in every look with what was approved.
fn picture(name: &str, width: u16, height: u16, dress: impl Fn(&mut Stage)) {
    let whole = planes(name, |theme| {
        let mut stage = Stage::new(width, height);
        dress(&mut stage);
        stage.theme = theme;
        stage.buffer()
    });
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(format!("{name}-{width}x{height}"), whole);
    });
}

#[test]
fn a_fleet_at_several_sizes() {
    for (width, height) in [(200, 60), (120, 36), (80, 24), (50, 14)] {
        picture("fleet", width, height, |_| {});
    }
    let mut ascii = Stage::new(80, 24);
    ascii.theme.ascii = true;
    assert!(ascii.text().is_ascii(), "{}", ascii.text());
}

#[test]
fn a_fleet_of_nothing_and_parts_of_one() {
    for (width, height) in [(100, 30), (50, 14)] {
        picture("fleet-empty", width, height, |stage| stage.runs.clear());
        picture("fleet-filtered", width, height, |stage| drop(stage.keys("&pool")));
        picture("fleet-filtered-to-none", width, height, |stage| drop(stage.keys("&no such run")));
        picture("fleet-by-project", width, height, |stage| drop(stage.keys("v")));
    }
}

#[test]
fn a_fleet_of_which_another_run_is_selected_and_what_lies_above_it_where_there_is_little_room() {
    let down = |stage: &mut Stage, rows: &str| drop(stage.keys(rows));
    picture("fleet-unreadable-selected", 80, 24, |stage| down(stage, "jj"));
    picture("fleet-lost-selected", 80, 24, |stage| down(stage, "jjj"));
    picture("fleet-help-narrow", 50, 14, |stage| down(stage, "?"));
    // It ends where its last row is seen, and one key up moves it.
    let mut stage = Stage::new(50, 14);
    stage.keys(&format!("?{}", "j".repeat(99)));
    let end = stage.text();
    assert!(end.contains("or read yet") && end.contains(" more above "), "{end}");
    stage.keys("k");
    assert_ne!(stage.text(), end);
    picture("fleet-start-refused", 80, 24, |stage| {
        stage.keys("c");
        stage.press(KeyCode::Char('s'), KeyModifiers::CONTROL);
    });
    picture("fleet-searched", 80, 24, |stage| down(stage, "/migr"));
    picture("fleet-of-trouble", 80, 24, |stage| down(stage, "fff"));
    picture("fleet-tiny", 28, 5, |_| {});
}

#[test]
fn those_that_need_somebody_are_not_counted_among_those_that_run() {
    let text = Stage::new(120, 36).text();
    let header = text.lines().next().unwrap();
    assert!(header.contains("fleet  1 running  1 unreadable  1 lost  8 runs"), "{header}");
    assert!(text.contains("NEEDS YOU") && text.contains("running 1"), "{text}");
    // Which keys there are is told by words where signs would be other keys.
    let mut ascii = Stage::new(120, 36);
    ascii.theme.ascii = true;
    assert!(ascii.text().contains("up/down/jk select"), "{}", ascii.text());
}

#[test]
fn why_a_run_needs_somebody_is_seen_wherever_there_is_a_column_for_it() {
    for (width, height) in [(200, 60), (120, 36), (80, 24)] {
        let text = Stage::new(width, height).text();
        let line = |n: usize| text.lines().nth(n).unwrap_or_default().to_owned();
        assert!(line(1).contains("4 reviewer: bash") && line(1).contains("open 6:12"), "{}", line(1));
        let row = text.lines().find(|row| row.contains("▲ attention")).unwrap();
        assert!(row.contains("bash") && row.contains("open 6:12"), "{row}");
    }
    assert!(Stage::new(50, 14).text().lines().nth(1).unwrap().contains("open 6:12"));
}

#[test]
fn what_lies_above_the_list() {
    let mut stage = Stage::new(100, 30);
    stage.keys("?");
    insta::assert_snapshot!("fleet-help", stage.text());
    let mut stage = Stage::new(100, 30);
    assert_eq!(stage.keys("c"), Some(Effect::Agents("/".into())));
    if let Some(Over::Start(dialog)) = &mut stage.ui.over {
        let agent =
            |name: &str, about: &str| AgentChoice { name: name.into(), about: about.into(), runner: "pi".into() };
        dialog.agents = vec![agent("scout", "looks around"), agent("worker", "changes \u{1b}[31mfiles")];
    }
    stage.keys("o");
    insta::assert_snapshot!("fleet-start", stage.text());
}

#[test]
fn the_list_is_grouped_filtered_and_searched_by_keys() {
    let mut stage = Stage::new(100, 30);
    stage.keys("v");
    assert!(stage.text().contains("by project, the newest first"), "{}", stage.text());
    stage.keys("vvvv&migr");
    let text = stage.text();
    assert!(text.contains("& migr: 1 of 8") && text.contains("migrate") && !text.contains("docs"), "{text}");
    stage.press(KeyCode::Esc, KeyModifiers::NONE);
    stage.keys("/nobody calls");
    stage.press(KeyCode::Enter, KeyModifiers::NONE);
    assert!(stage.ui.selected.as_ref().unwrap().ends_with("1bb2c3d4"), "{:?}", stage.ui.selected);
    stage.keys("!");
    assert!(stage.ui.selected.as_ref().unwrap().ends_with("7f3a2c11"));
    assert_eq!(stage.press(KeyCode::Enter, KeyModifiers::NONE), stage.ui.selected.clone().map(Effect::Open));
    stage.keys("&nothing at all");
    assert!(stage.text().contains("none of 8 runs has these words; esc shows them all"), "{}", stage.text());
}

#[test]
fn the_selection_stays_on_its_run_and_on_its_place_when_that_goes() {
    let mut stage = Stage::new(100, 30);
    stage.keys("jj");
    let before = stage.ui.selected.clone();
    stage.keys("s");
    assert_eq!(stage.ui.selected, before, "another order");
    let place = stage.with(|ui, _, _| ui.place);
    stage.runs.retain(|run| Some(run.dir().path()) != before.as_deref());
    assert_eq!(stage.with(|ui, _, _| ui.place), place);
    assert_ne!(stage.ui.selected, before);
    stage.runs.clear();
    assert_eq!(stage.with(|ui, _, _| ui.selected.clone()), None);
    assert!(stage.text().contains("no runs yet"));
    assert_eq!(stage.press(KeyCode::Enter, KeyModifiers::NONE), None);
}

#[test]
fn no_size_panics() {
    for width in (0..140).step_by(7) {
        for height in (0..40).step_by(3) {
            for keys in ["", "?", "c", "&x"] {
                let mut stage = Stage::new(width, height);
                stage.keys(keys);
                stage.text();
            }
        }
    }
}

#[test]
fn the_run_on_top_is_selected_until_a_key_is_pressed() {
    let mut stage = Stage::new(100, 30);
    let all = std::mem::take(&mut stage.runs);
    let mut on_top = Vec::new();
    // The ones that are read later belong above those that were read first.
    for run in all.into_iter().rev() {
        stage.runs.push(run);
        let first =
            stage.with(|ui, _, rows| (ui.selected.clone(), runs(rows).next().map(|r| r.dir().path().to_owned())));
        assert_eq!(first.0, first.1);
        on_top.push(first.0);
    }
    on_top.dedup();
    assert!(on_top.len() > 1, "{on_top:?}");
    stage.keys("j");
    let chosen = stage.ui.selected.clone();
    assert_ne!(Some(&chosen), on_top.last());
    stage.text();
    assert_eq!(stage.ui.selected, chosen);
}
