//! The picture of the fleet. Reads no file and no clock.

use jiff::tz::TimeZone;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use super::keys::{Act, TABLE};
use super::model::{FleetUi, Over, runs};
use super::start::{Field, StartDialog};
use crate::deck::keymap::key_name;
use crate::deck::theme::{Face, Theme, asciify};
use crate::deck::view::layout::list_top;
use crate::deck::view::paint::{Piece, centred, fade, frame, piece, put, put_cut, put_right, row, wipe};
use crate::run::{StepFace, Timestamp, needs};
use crate::rundir::fleet::{Class, FleetRun, Group, Head, Row, Show, Spent};
use crate::text::{self as units, SafeText};

/// Everything that a frame shows beside the picture's own state.
pub(super) struct Scene<'a> {
    /// The list.
    pub(super) rows: &'a [Row<'a>],
    /// How many runs there are, listed or not.
    pub(super) count: usize,
    /// How many of them were not read yet.
    pub(super) unread: usize,
    /// Those that need a person, listed or not, the newest first.
    pub(super) waiting: &'a [&'a FleetRun],
    /// How many go on.
    pub(super) living: usize,
    /// What today cost.
    pub(super) spent: &'a Spent,
    /// What stands between the files and the picture.
    pub(super) troubles: &'a [SafeText],
    /// The roots, as they are shown.
    pub(super) roots: &'a [String],
    pub(super) now: Timestamp,
    pub(super) zone: &'a TimeZone,
    pub(super) theme: Theme,
}

/// Draws one frame.
pub(super) fn draw(buf: &mut Buffer, scene: &Scene<'_>, ui: &FleetUi) {
    let area = Rect { x: 0, y: 0, width: ui.size.0, height: ui.size.1 }.intersection(buf.area);
    if area.is_empty() {
        return;
    }
    let theme = scene.theme;
    if area.width < 30 || area.height < 6 {
        let text =
            format!("{} runs, {} go on, {} need you, enlarge me", scene.count, scene.living, scene.waiting.len());
        for (line, dy) in SafeText::line(&text).wrap(usize::from(area.width)).iter().zip(0_u16..area.height) {
            put_cut(buf, area, 0, dy, line, area.width, theme.plain());
        }
    } else {
        header(buf, Rect { height: 1, ..area }, scene);
        let mut top = area.y + 1;
        if !scene.waiting.is_empty() {
            waiting(buf, Rect { y: top, height: 1, ..area }, scene);
            top += 1;
        }
        let footer_at = area.bottom() - 1;
        let message_at = footer_at - 1;
        let high = message_at.saturating_sub(top);
        let preview_high = match high {
            24.. => 8,
            16.. => 5,
            _ => 0,
        };
        list(buf, Rect { y: top, height: high - preview_high, ..area }, scene, ui);
        if preview_high > 0 {
            preview(buf, Rect { y: message_at - preview_high, height: preview_high, ..area }, scene, ui);
        }
        message(buf, Rect { y: message_at, height: 1, ..area }, scene, ui);
        footer(buf, Rect { y: footer_at, height: 1, ..area }, scene, ui);
        match &ui.over {
            Some(Over::Help(top)) => help(buf, area, *top, theme),
            Some(Over::Start(dialog)) => start(buf, area, dialog, theme),
            Some(Over::Words | Over::Search(_)) | None => {}
        }
    }
    if theme.ascii {
        asciify(buf, area);
    }
}

fn header(buf: &mut Buffer, area: Rect, scene: &Scene<'_>) {
    let theme = scene.theme;
    let count = |class: Class| runs(scene.rows).filter(|run| Class::of(run) == class).count();
    let mut left = vec![piece(" fleet  ", theme.bold())];
    left.push(piece(format!("{} running", scene.living), theme.accent()));
    for (class, word) in [(Class::Unreadable, "unreadable"), (Class::Lost, "lost")] {
        match count(class) {
            0 => {}
            n => left.push(piece(format!("  {n} {word}"), theme.bad()).rank(4)),
        }
    }
    left.push(piece(format!("  {}", many(scene.count, "run")), theme.dim()).rank(3));
    if scene.unread > 0 {
        let all = units::grouped((scene.count + scene.unread) as u64);
        left.push(piece(format!("  reading {} of {all}", units::grouped(scene.count as u64)), theme.bold()));
    }
    let mut right =
        vec![piece("today ", theme.dim()).rank(5), piece(units::cost(scene.spent.usd), theme.bold()).rank(6)];
    for (at, (model, usd)) in scene.spent.models.iter().take(4).enumerate() {
        let rank = u8::try_from(4_usize.saturating_sub(at)).unwrap_or(0).min(2);
        let model = SafeText::line(model).truncate(16);
        right.push(piece(format!("  {model} {}", units::cost(*usd)), theme.dim()).rank(rank));
    }
    if scene.spent.unknown > 0 {
        right.push(piece(format!("  and {} of unknown cost", many(scene.spent.unknown, "run")), theme.dim()).rank(0));
    }
    right.push(piece(" ", theme.plain()));
    row(buf, area, 0, left, right);
}

fn many(n: usize, word: &str) -> String {
    format!("{} {word}{}", units::grouped(n as u64), if n == 1 { "" } else { "s" })
}

fn waiting(buf: &mut Buffer, area: Rect, scene: &Scene<'_>) {
    let theme = scene.theme;
    let Some(first) = scene.waiting.first() else { return };
    buf.set_style(area, theme.alarm());
    let text = format!("{}: {}", first.title().truncate(32), need_text(first));
    let text = SafeText::line(&text).truncate(usize::from(area.width.saturating_sub(24)));
    let (n, verb) = (scene.waiting.len(), if scene.waiting.len() == 1 { "NEEDS" } else { "NEED" });
    let left = vec![piece(format!(" ▲ {n} {verb} YOU  "), theme.alarm()), piece(text.to_string(), theme.alarm())];
    row(buf, area, 0, left, vec![piece("! jump ", theme.alarm()).rank(1)]);
}

/// Why a run needs a person.
fn need_text(run: &FleetRun) -> String {
    let Some(state) = run.state() else { return String::new() };
    let all = needs(state);
    match all.first() {
        Some(first) if all.len() > 1 => format!("{} +{}", first.line(), all.len() - 1),
        Some(first) => first.line().to_string(),
        None => "processes would not die".to_owned(),
    }
}

fn list(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &FleetUi) {
    let theme = scene.theme;
    let shown = runs(scene.rows).count();
    let mut right =
        vec![piece(format!("by {}, {} first", ui.view.group.word(), ui.view.sort.word()), theme.dim()).rank(1)];
    if ui.view.show != Show::All {
        right.push(piece(format!("  only {}", ui.view.show.word()), theme.accent()));
    }
    if !ui.view.words.is_empty() {
        let words = SafeText::line(&ui.view.words).truncate(24);
        right.push(piece(format!("  & {words}: {shown} of {}", scene.count), theme.accent()));
    }
    let inner = frame(buf, area, theme, true, vec![piece("runs", theme.bold())], right);
    if inner.is_empty() {
        return;
    }
    if scene.rows.is_empty() {
        for (line, dy) in empty(scene, ui).iter().zip(1_u16..inner.height) {
            put_cut(buf, inner, 3, dy, &SafeText::line(line), inner.width, theme.dim());
        }
        return;
    }
    let selected = scene.rows.iter().position(|row| match row {
        Row::Run { run, .. } => Some(run.dir().path()) == ui.selected.as_deref(),
        Row::Head(_) => false,
    });
    let height = usize::from(inner.height);
    let top = list_top(selected.unwrap_or(0), scene.rows.len(), height);
    let columns = Columns::of(inner.width);
    for ((at, entry), dy) in scene.rows.iter().enumerate().skip(top).take(height).zip(0_u16..) {
        match entry {
            Row::Head(head) => heading(buf, inner, dy, head, ui.view.group, theme),
            Row::Run { run, part } => columns.draw(buf, inner, dy, run, *part, selected == Some(at), scene),
        }
    }
}

/// What is said where there is nothing to list.
fn empty(scene: &Scene<'_>, ui: &FleetUi) -> Vec<String> {
    if scene.unread > 0 {
        return vec!["reading…".to_owned()];
    }
    if scene.count > 0 {
        let words = if ui.view.words.is_empty() { "" } else { " with these words" };
        return vec![format!(
            "none of {} is {}{words}; esc shows them all",
            many(scene.count, "run"),
            ui.view.show.word()
        )];
    }
    let mut lines = vec!["no runs yet: c starts one, `subdeck demo` plays one".to_owned(), String::new()];
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
    if let Some(usd) = head.usd {
        put(buf, area, dx + 2, dy, &units::cost(usd), theme.dim());
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
            word: if middle { 12 } else { 2 },
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

    #[allow(clippy::too_many_arguments)]
    fn draw(
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
            // There is nothing for the columns, and the cause needs the room.
            let id: String = run.dir().id_str().chars().take(8).collect();
            let text = SafeText::line(&format!("{id}  {error}"));
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
        let steps = state.map(|s| format!("{}/{}", s.steps_ended(), s.steps.len()));
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
        let tokens = state.map(|s| s.tokens()).filter(|t| !t.is_zero()).map(|t| units::count(t.total()));
        cell(self.tokens, &units::or_unknown(tokens), dim, true);
        let cost = state.and_then(|s| s.cost()).map(|usd| units::cost(usd.0));
        cell(self.cost, &units::or_unknown(cost), text, true);
        let rest = area.width.saturating_sub(dx + 1);
        let style = if Class::of(run) == Class::Needs { theme.alarm() } else { dim };
        put_cut(buf, area, dx + 1, dy, &SafeText::line(&now_text(run)), rest.saturating_sub(1), style);
    }
}

/// An age in few cells: seconds only below a minute.
fn age(span: std::time::Duration) -> String {
    let s = span.as_secs();
    match s {
        0..60 => format!("{s}s"),
        60..3600 => format!("{}m", s / 60),
        _ => units::span(span),
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

/// What is to be known of a run in few words: why it needs a person, what it does, why it ended.
fn now_text(run: &FleetRun) -> String {
    let state = match &run.listed.state {
        Ok(state) => state,
        Err(error) => return error.to_string(),
    };
    if let Some(why) = run.listed.lost.as_ref().or(state.lost.as_ref()) {
        return why.clone();
    }
    match Class::of(run) {
        Class::Needs => need_text(run),
        Class::Running => run.doing().unwrap_or_else(|| {
            let running = state.steps.iter().filter(|s| s.phase == crate::run::StepPhase::Running);
            running.map(|s| s.title()).next().unwrap_or("starting").to_owned()
        }),
        _ => state.error.clone().unwrap_or_default(),
    }
}

fn preview(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &FleetUi) {
    let theme = scene.theme;
    let Some(run) = runs(scene.rows).find(|run| Some(run.dir().path()) == ui.selected.as_deref()) else {
        frame(buf, area, theme, false, Vec::new(), Vec::new());
        return;
    };
    let id: String = run.dir().id_str().chars().take(8).collect();
    let title = run.title().truncate(usize::from(area.width / 2));
    let left = vec![piece(title.to_string(), theme.bold()), piece(format!("  {}", SafeText::line(&id)), theme.dim())];
    let state = run.state();
    let took = state.and_then(|s| s.elapsed(scene.now)).map(units::span);
    let right = vec![piece(units::or_unknown(took), theme.plain())];
    let inner = frame(buf, area, theme, false, left, right);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    let mut dy = 0;
    let mut line = |buf: &mut Buffer, name: &str, value: &str, style| {
        if dy >= inner.height || value.is_empty() {
            return;
        }
        put(buf, inner, 0, dy, name, theme.dim());
        put_cut(buf, inner, 9, dy, &SafeText::line(value), inner.width.saturating_sub(9), style);
        dy += 1;
    };
    if let Err(error) = &run.listed.state {
        line(buf, "cause", &error.to_string(), theme.bad());
    }
    line(buf, "task", run.task.lines().next().unwrap_or_default(), theme.plain());
    if let Some(state) = state {
        if Class::of(run) == Class::Needs {
            line(buf, "needs", &need_text(run), theme.bold());
        }
        line(buf, "error", state.error.as_deref().unwrap_or_default(), theme.bad());
        let started = state.started_at.map(|at| units::when::moment(at.micros(), scene.zone));
        let folder = format!("{}  started {}", state.cwd, units::or_unknown(started));
        line(buf, "folder", folder.trim(), theme.dim());
    }
    line(buf, "run", &run.dir().path().display().to_string(), theme.dim());
    if let Some(why) = run.listed.distrust {
        line(buf, "", &format!("read-only: {why}"), theme.halted());
    }
    for step in state.map(|s| s.steps.as_slice()).unwrap_or_default() {
        let face = theme.face(step.face());
        let model = step.model.as_deref().unwrap_or_default();
        let doing = step.current_call().map(|c| format!("{} {}", c.tool, c.path.as_deref().unwrap_or(&c.args)));
        let doing = doing.or_else(|| step.error.clone()).unwrap_or_default();
        let text = format!("{} {}  {}  {model}  {doing}", face.glyph, face.word, step.title());
        line(buf, &step.id.to_string(), text.trim(), theme.plain());
    }
}

fn message(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &FleetUi) {
    let theme = scene.theme;
    let typing = |key: &str, words: &str| {
        let words = SafeText::line(words);
        vec![
            piece(format!(" {key} "), theme.key()),
            piece(words.to_string(), theme.plain()),
            piece("▏", theme.select()),
        ]
    };
    let pieces = match (&ui.over, &ui.notice) {
        (Some(Over::Words), _) => typing("&", &ui.view.words),
        (Some(Over::Search(words)), _) => typing("/", words),
        (_, Some(notice)) => {
            vec![piece(format!(" {}", notice.text), if notice.bad { theme.bad() } else { theme.plain() })]
        }
        _ => match scene.troubles.first() {
            Some(first) => vec![piece(format!(" {first}"), theme.halted())],
            None => Vec::new(),
        },
    };
    row(buf, area, 0, pieces, Vec::new());
}

fn footer(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &FleetUi) {
    let theme = scene.theme;
    let hint = |key: &str, word: &str, rank: u8| {
        [piece(format!(" {key}"), theme.key()).rank(rank), piece(format!(" {word} "), theme.dim()).rank(rank)]
    };
    let pieces: Vec<Piece> = match &ui.over {
        Some(Over::Words) => [hint("enter", "keep them", 9), hint("esc", "all runs", 9)].concat(),
        Some(Over::Search(_)) => [hint("enter", "look", 9), hint("esc", "back", 9)].concat(),
        Some(Over::Help(_)) => [hint("jk", "scroll", 9), hint("esc", "back", 9)].concat(),
        Some(Over::Start(_)) => {
            [hint("ctrl-s", "start it", 9), hint("tab", "next field", 8), hint("esc", "back", 9)].concat()
        }
        None => {
            let mut out = hint("↑↓/jk", "select", 1).to_vec();
            for entry in TABLE.iter().filter(|entry| !entry.short.is_empty()) {
                if entry.act == Act::NextNeed && scene.waiting.is_empty() {
                    continue;
                }
                let rank = match entry.act {
                    Act::Open | Act::Quit | Act::Help => 9,
                    Act::Start | Act::NextNeed => 8,
                    Act::Words | Act::Search => 5,
                    _ => 3,
                };
                let key = entry.keys.first().copied().map(key_name).unwrap_or_default();
                out.extend(hint(&key, entry.short, rank));
            }
            out
        }
    };
    row(buf, area, 0, pieces, Vec::new());
}

fn dialog_box(buf: &mut Buffer, area: Rect, size: (u16, u16), title: &str, theme: Theme) -> Rect {
    let body = Rect { height: area.height - 1, ..area };
    fade(buf, body, theme);
    let place = centred(body, size.0, size.1);
    wipe(buf, place);
    let inner = frame(buf, place, theme, true, vec![piece(title, theme.bold())], Vec::new());
    Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner }
}

fn help(buf: &mut Buffer, area: Rect, top: usize, theme: Theme) {
    let high = u16::try_from(TABLE.len()).unwrap_or(u16::MAX).saturating_add(2);
    let inner = dialog_box(buf, area, (72, high), "keys", theme);
    let top = top.min(TABLE.len().saturating_sub(usize::from(inner.height)));
    for (entry, dy) in TABLE.iter().skip(top).zip(0_u16..inner.height) {
        let names: Vec<String> = entry.keys.iter().copied().map(key_name).collect();
        put_right(buf, inner, 14, dy, &names.join(" "), theme.key());
        put_cut(buf, inner, 16, dy, &SafeText::line(entry.help), inner.width, theme.plain());
    }
}

fn start(buf: &mut Buffer, area: Rect, dialog: &StartDialog, theme: Theme) {
    let inner = dialog_box(buf, area, (84, 18), "start a run", theme);
    let mark = |field: Field| if dialog.field == field { theme.select() } else { theme.dim() };
    let mut line = |dy: u16, field: Field, name: &str, value: &str| {
        put(buf, inner, 0, dy, name, mark(field));
        let room = usize::from(inner.width.saturating_sub(11));
        let value = SafeText::line(value).truncate_start(room);
        let dx = put(buf, inner, 9, dy, value.as_str(), theme.plain());
        if dialog.field == field {
            put(buf, inner, dx, dy, "▏", theme.select());
        }
    };
    line(0, Field::Agent, "agent", &dialog.agent);
    line(1, Field::Folder, "folder", &dialog.folder);
    put(buf, inner, 0, 2, "task", mark(Field::Task));
    let task = Rect { x: inner.x + 9, y: inner.y + 2, width: inner.width.saturating_sub(9), height: 6 };
    let task = task.intersection(inner);
    (&dialog.task).render(task, buf);
    if dialog.field != Field::Task {
        // The cursor is where one types.
        buf.set_style(task, ratatui::style::Style::reset());
    }
    let rule = "─".repeat(usize::from(inner.width));
    put(buf, inner, 0, 8, &rule, theme.dim());
    match &dialog.wrong {
        Some(wrong) => {
            for (text, dy) in wrong.wrap(usize::from(inner.width)).iter().zip(9_u16..inner.height) {
                put_cut(buf, inner, 0, dy, text, inner.width, theme.bad());
            }
        }
        None if dialog.agents.is_empty() => {
            put(buf, inner, 0, 9, "no agent definitions are found from this folder", theme.dim());
        }
        None => {
            for (agent, dy) in dialog.choices().iter().zip(9_u16..inner.height) {
                let dx = put_cut(buf, inner, 0, dy, &SafeText::line(&agent.name), 24, theme.plain());
                let about = SafeText::line(&agent.about);
                put_cut(buf, inner, dx.max(20) + 2, dy, &about, inner.width, theme.dim());
            }
        }
    }
}

#[cfg(test)]
mod tests;
