//! The list of runs: one row each, below the headings of their groups.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::ages::age;
use super::{Scene, many, need_text};
use crate::deck::fleet::model::{FleetUi, runs};
use crate::deck::theme::{Face, Theme};
use crate::deck::view::layout::list_top;
use crate::deck::view::lost_because;
use crate::deck::view::paint::{Edge, frame, piece, put, put_cut, put_right};
use crate::listing::{Class, Group, Head, Row, Show, Sort};
use crate::run::{RunState, StepFace, StepPhase, Timestamp, cause, or_more};
use crate::rundir::fleet::FleetRun;
use crate::text::{self as units, SafeText};

/// A list of as many lines has heads.
const HEADS_FROM: u16 = 8;

/// Draws the list.
pub(super) fn draw(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &FleetUi) {
    let theme = scene.theme;
    let shown = runs(scene.rows).count();
    let selected = scene.rows.iter().position(|row| match row {
        Row::Run { run, .. } => Some(run.dir().path()) == ui.selected.as_deref(),
        Row::Head(_) => false,
    });
    // The frame, and the heads of the columns where there is room for them.
    let inside = area.height.saturating_sub(2);
    let height = usize::from(if inside >= HEADS_FROM { inside - 1 } else { inside });
    let top = list_top(selected.unwrap_or(0), scene.rows.len(), height);
    let mut right = vec![piece(order(ui.view.group, ui.view.sort), theme.dim()).rank(1)];
    if scene.rows.len() > height && height > 0 {
        let text = format!("rows {}-{} of {}", top + 1, top + height, scene.rows.len());
        right.push(piece(text, theme.plain()).gap(2));
    }
    if ui.view.show != Show::All {
        right.push(piece(format!("only {}", ui.view.show.word()), theme.accent()).gap(2));
    }
    if !ui.view.words.is_empty() {
        let words = SafeText::line(&ui.view.words).truncate(24);
        right.push(piece(format!("& {words}: {shown} of {}", scene.count), theme.accent()).gap(2));
    }
    let inner = frame(buf, area, theme, Edge::Focused, vec![piece("runs", theme.bold())], right);
    if inner.is_empty() {
        return;
    }
    if scene.rows.is_empty() {
        let room = usize::from(inner.width.saturating_sub(4)).max(1);
        let lines = empty(scene, ui);
        let rows = lines.iter().flat_map(|line| SafeText::line(line).wrap(room));
        for (line, dy) in rows.zip(1_u16..inner.height) {
            put_cut(buf, inner, 3, dy, &line, inner.width, theme.dim());
        }
        return;
    }
    let columns = Columns::of(inner.width);
    // Where there is room for few runs, what the columns are has to be seen from them.
    let inner = if inner.height >= HEADS_FROM {
        columns.heads(buf, inner, theme);
        Rect { y: inner.y + 1, height: inner.height - 1, ..inner }
    } else {
        inner
    };
    for ((at, entry), dy) in scene.rows.iter().enumerate().skip(top).take(height).zip(0_u16..) {
        match entry {
            Row::Head(head) => heading(buf, inner, dy, head, ui.view.group, theme),
            Row::Run { run, part } => columns.row(buf, inner, dy, run, *part, selected == Some(at), scene),
        }
    }
}

/// How the list is ordered, in words.
fn order(group: Group, sort: Sort) -> String {
    let first = match sort {
        Sort::Age => "the newest first",
        Sort::Need => "who needs you first",
        Sort::Cost => "the dearest first",
        Sort::Tokens => "the most tokens first",
        Sort::Time => "the longest first",
        Sort::Name => "in the order of names",
    };
    if group == Group::None { first.to_owned() } else { format!("by {}, {first}", group.word()) }
}

/// What is said where there is nothing to list.
fn empty(scene: &Scene<'_>, ui: &FleetUi) -> Vec<String> {
    if scene.unread > 0 {
        return vec!["reading…".to_owned()];
    }
    if scene.count > 0 {
        let what = match ui.view.show {
            Show::All => "",
            Show::Living => "goes on",
            Show::Needs => "needs you",
            Show::Trouble => "ended badly",
            Show::Today => "is of today",
        };
        let words = if ui.view.words.is_empty() { "" } else { "has these words" };
        let and = if what.is_empty() || words.is_empty() { "" } else { " and " };
        return vec![format!("none of {} {what}{and}{words}; esc shows them all", many(scene.count, "run"))];
    }
    let first = if scene.troubles.is_empty() {
        "no runs yet: c starts one, `subdeck demo` plays one"
    } else {
        "no runs are known, because"
    };
    let mut lines = vec![first.to_owned()];
    lines.extend(scene.troubles.iter().map(|trouble| format!("  {trouble}")));
    lines.push(String::new());
    lines.push("looked in".to_owned());
    lines.extend(scene.roots.iter().map(|root| format!("  {root}")));
    lines
}

fn heading(buf: &mut Buffer, area: Rect, dy: u16, head: &Head, group: Group, theme: Theme) {
    let title = SafeText::line(&head.title);
    // A root tells itself by its end.
    let room = usize::from(area.width.saturating_sub(24));
    let title = if group == Group::Root { title.truncate_start(room) } else { title.truncate(room) };
    let dx = put(buf, area, 1, dy, title.as_str(), theme.accent());
    let dx = put(buf, area, dx + 1, dy, &head.count.to_string(), theme.dim());
    // What is paid for is counted.
    let dx = match head.inside {
        0 => dx,
        inside => put(buf, area, dx, dy, &format!(" +{inside} inside"), theme.dim()),
    };
    if let Some(usd) = head.usd {
        let told = format!("{}{}", units::cost(usd), or_more(head.partial));
        put(buf, area, dx + 2, dy, &told, theme.dim());
    }
}

/// Where the columns begin, by the width; a column of no cells is not there.
struct Columns {
    word: u16,
    steps: u16,
    title: u16,
    agents: u16,
    place: u16,
    age: u16,
    tokens: u16,
    cost: u16,
}

impl Columns {
    fn of(width: u16) -> Self {
        let wide = width >= 118;
        let middle = width >= 78;
        Self {
            word: if middle { 13 } else { 2 },
            steps: if middle { 5 } else { 0 },
            title: match width {
                118.. => width / 5 + 1,
                78.. => width / 4,
                _ => width.saturating_sub(24).max(8),
            },
            agents: if wide { 11 } else { 0 },
            place: if wide { 16 } else { 0 },
            age: 6,
            tokens: if wide { 5 } else { 0 },
            cost: 7,
        }
    }

    /// What each column is.
    fn heads(&self, buf: &mut Buffer, area: Rect, theme: Theme) {
        let mut dx = 3;
        let mut head = |cells: u16, name: &str, right: bool| {
            if cells == 0 {
                return;
            }
            let name = SafeText::line(name).truncate(usize::from(cells));
            if right {
                put_right(buf, area, dx + cells, 0, name.as_str(), theme.dim());
            } else {
                put(buf, area, dx, 0, name.as_str(), theme.dim());
            }
            dx += cells + 1;
        };
        head(self.word, if self.word > 2 { "state" } else { "" }, false);
        head(self.steps, "steps", false);
        head(self.title, "run", false);
        head(self.agents, "agents", false);
        head(self.place, "where", false);
        head(self.age, "age", true);
        head(self.tokens, "tok", true);
        head(self.cost, "cost", true);
        let rest = area.width.saturating_sub(dx + 1);
        put_cut(buf, area, dx + 1, 0, &SafeText::line("now"), rest.saturating_sub(1), theme.dim());
    }

    #[allow(clippy::too_many_arguments)]
    fn row(
        &self,
        buf: &mut Buffer,
        area: Rect,
        dy: u16,
        run: &FleetRun,
        part: bool,
        selected: bool,
        scene: &Scene<'_>,
    ) {
        let theme = scene.theme;
        let face = face(run, theme);
        let text = if selected { theme.select() } else { theme.plain() };
        let dim = if selected { theme.select() } else { theme.dim() };
        put(buf, area, 1, dy, if selected { "›" } else { " " }, theme.select());
        let mut dx = 3;
        let indent = if part { 2 } else { 0 };
        if part {
            put(buf, area, dx, dy, "└", theme.dim());
        }
        let word = if self.word > 2 { format!("{} {}", face.glyph, face.word) } else { face.glyph.to_owned() };
        let room = self.word.saturating_sub(indent);
        put_cut(buf, area, dx + indent, dy, &SafeText::line(&word), room.max(1), face.style);
        dx += self.word.max(indent + 1) + 1;
        if let Err(error) = &run.listed.state {
            // There is nothing for the columns behind its id, and the cause needs the room.
            if self.steps > 0 {
                put(buf, area, dx, dy, units::UNKNOWN, dim);
                dx += self.steps + 1;
            }
            let text = SafeText::line(&format!("{}  {error}", run.short_id()));
            put_cut(buf, area, dx, dy, &text, area.width.saturating_sub(dx + 1), dim);
            return;
        }
        let mut cell = |cells: u16, value: &str, style, right: bool| {
            if cells == 0 {
                return;
            }
            let value = SafeText::line(value).truncate(usize::from(cells));
            if right {
                put_right(buf, area, dx + cells, dy, value.as_str(), style);
            } else {
                put(buf, area, dx, dy, value.as_str(), style);
            }
            dx += cells + 1;
        };
        let state = run.state();
        let steps = state.map(|s| format!("{}/{}", s.progress(run.is_lost()).0, s.steps.len()));
        cell(self.steps, &units::or_unknown(steps), dim, false);
        let bold = if selected {
            theme.select()
        } else if run.is_living() {
            theme.bold()
        } else {
            theme.plain()
        };
        cell(self.title, run.title().as_str(), bold, false);
        cell(self.agents, &agents(run), dim, false);
        cell(self.place, &place(run), dim, false);
        let age = state.and_then(|s| s.started_at).map(|at| age(scene.now.since(at)));
        cell(self.age, &units::or_unknown(age), text, true);
        cell(self.tokens, &run.or_nothing(state.and_then(RunState::tokens_told)), dim, true);
        cell(self.cost, &run.or_nothing(state.and_then(RunState::cost_told)), text, true);
        let rest = area.width.saturating_sub(dx + 1);
        let style = if Class::of(run) == Class::Needs { theme.alarm() } else { dim };
        let rest = rest.saturating_sub(1);
        put_cut(buf, area, dx + 1, dy, &now_text(run, usize::from(rest), scene.now), rest, style);
    }
}

fn agents(run: &FleetRun) -> String {
    let all = run.agents();
    match all.as_slice() {
        [] => "–".to_owned(),
        [only] => (*only).to_owned(),
        [first, rest @ ..] => format!("{first} +{}", rest.len()),
    }
}

fn place(run: &FleetRun) -> String {
    match &run.project {
        None => "–".to_owned(),
        Some(project) => match &project.branch {
            Some(branch) => format!("{} {branch}", project.name),
            None => project.name.clone(),
        },
    }
}

fn face(run: &FleetRun, theme: Theme) -> Face {
    match Class::of(run) {
        Class::Unreadable => Face { word: "unreadable", ..theme.face(StepFace::Unknown) },
        Class::Lost => theme.face(StepFace::Lost),
        Class::Needs => theme.face(StepFace::Attention),
        _ => run.state().map_or_else(|| theme.face(StepFace::Unknown), |state| theme.run_face(state)),
    }
}

/// What is to be known of a run in so many cells: why it needs a person, what it does, why it ended.
fn now_text(run: &FleetRun, cells: usize, now: Timestamp) -> SafeText {
    let state = match &run.listed.state {
        Ok(state) => state,
        Err(error) => return SafeText::line(&error.to_string()),
    };
    if let Some(why) = run.listed.lost.as_ref().or(state.lost.as_ref()) {
        return SafeText::line(lost_because(why));
    }
    match Class::of(run) {
        Class::Needs => need_text(run, cells, now),
        Class::Running => SafeText::line(&run.doing().unwrap_or_else(|| {
            let running = state.steps.iter().filter(|s| s.phase == StepPhase::Running);
            running.map(|s| s.title()).next().unwrap_or("starting").to_owned()
        })),
        _ => SafeText::line(&why_ended(state)),
    }
}

/// Why a run ended as it did. Its own sentence about a step that failed names the agent and nothing else.
fn why_ended(state: &RunState) -> String {
    let error = state.error.as_deref().unwrap_or_default();
    let failed = state.steps.iter().filter(|s| s.phase == StepPhase::Failed);
    let told = failed.filter_map(|s| Some((s.title(), s.error.as_deref()?))).next();
    match told.filter(|_| error.starts_with("Step failed")) {
        Some((title, why)) => format!("{title}: {}", cause(why)),
        None => cause(error).into_owned(),
    }
}
