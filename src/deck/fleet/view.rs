//! The picture of the fleet. Reads no file and no clock.

mod ages;
mod list;
mod over;

use jiff::tz::TimeZone;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

pub(super) use self::ages::reads_differently_at;
pub(super) use self::over::help_end;
use super::keys::{Act, TABLE};
use super::model::{FleetUi, Over, runs};
use crate::deck::attention::needs_person;
use crate::deck::keymap::{key_name, spelt};
use crate::deck::theme::{Theme, asciify};
use crate::deck::view::paint::{Edge, Piece, frame, piece, put, put_cut, put_right, row};
use crate::deck::view::secrets;
use crate::listing::{Class, Row, Spent};
use crate::run::{RunState, StepFace, StepPhase, StepState, Timestamp, cause, needs, or_more};
use crate::rundir::fleet::FleetRun;
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
    /// How many go on, listed or not.
    pub(super) living: usize,
    /// How many cannot be read, and of how many the runner died; listed or not.
    pub(super) broken: (usize, usize),
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

impl Scene<'_> {
    /// How many go on and need nobody.
    fn running(&self) -> usize {
        let waiting = self.waiting.iter().filter(|run| run.is_living()).count();
        self.living.saturating_sub(waiting)
    }
}

/// Rows at most of what is told of the selected run.
const PREVIEW: u16 = 20;

/// Draws one frame.
pub(super) fn draw(buf: &mut Buffer, scene: &Scene<'_>, ui: &FleetUi) {
    let area = Rect { x: 0, y: 0, width: ui.size.0, height: ui.size.1 }.intersection(buf.area);
    if area.is_empty() {
        return;
    }
    let theme = scene.theme;
    if area.width < 30 || area.height < 6 {
        let (runs, waiting) = (many(scene.count, "run"), scene.waiting.len());
        let verb = if waiting == 1 { "needs" } else { "need" };
        let text = format!("{runs}, {} running, {waiting} {verb} you, enlarge me", scene.running());
        for (line, dy) in SafeText::line(&text).wrap(usize::from(area.width)).iter().zip(0_u16..area.height) {
            put_cut(buf, area, 0, dy, line, area.width, theme.plain());
        }
    } else {
        header(buf, Rect { height: 1, ..area }, scene);
        let mut top = area.y + 1;
        if !scene.waiting.is_empty() {
            waiting(buf, Rect { y: top, height: 1, ..area }, scene, ui);
            top += 1;
        }
        let footer_at = area.bottom() - 1;
        let message_at = footer_at - 1;
        let high = message_at.saturating_sub(top);
        let least = match high {
            // Where none is listed there is nothing to be told of one.
            _ if scene.rows.is_empty() => 0,
            40.. => 14,
            24.. => 8,
            16.. => 5,
            _ => 0,
        };
        // What all runs together leave free is for the selected one. Those that are filtered out keep their rows, so that
        // nothing moves while words are typed.
        let listed = u16::try_from(scene.rows.len().max(scene.count)).unwrap_or(u16::MAX).saturating_add(3);
        let preview_high = if least == 0 { 0 } else { high.saturating_sub(listed).min(PREVIEW).max(least) };
        list::draw(buf, Rect { y: top, height: high - preview_high, ..area }, scene, ui);
        if preview_high > 0 {
            preview(buf, Rect { y: message_at - preview_high, height: preview_high, ..area }, scene, ui);
        }
        // Who wants to see what looks like a key opens its run.
        secrets::mask(buf, area);
        message(buf, Rect { y: message_at, height: 1, ..area }, scene, ui);
        footer(buf, Rect { y: footer_at, height: 1, ..area }, scene, ui);
        match &ui.over {
            Some(Over::Help(top)) => over::help(buf, area, *top, theme),
            Some(Over::Start(dialog)) => over::start(buf, area, dialog, theme),
            Some(Over::Words | Over::Search(_)) | None => {}
        }
    }
    if theme.ascii {
        asciify(buf, area);
    }
}

fn header(buf: &mut Buffer, area: Rect, scene: &Scene<'_>) {
    let theme = scene.theme;
    let mut left = vec![piece(" fleet  ", theme.bold())];
    // Who needs somebody is told on the line below.
    left.push(piece(format!("{} running", scene.running()), theme.accent()));
    for (count, word) in [(scene.broken.0, "unreadable"), (scene.broken.1, "lost")] {
        match count {
            0 => {}
            n => left.push(piece(format!("  {n} {word}"), theme.bad()).rank(4)),
        }
    }
    left.push(piece(format!("  {}", many(scene.count, "run")), theme.dim()).rank(3));
    if scene.unread > 0 {
        let all = units::grouped((scene.count + scene.unread) as u64);
        left.push(piece(format!("  reading {} of {all}", units::grouped(scene.count as u64)), theme.bold()));
    }
    // What is told is at least what it was where some of it is not.
    let least = or_more(scene.spent.is_partial());
    // What is wrong is worth more than the word for what was spent.
    let mut right = vec![
        piece("today ", theme.dim()).rank(3),
        piece(format!("{}{least}", units::cost(scene.spent.usd)), theme.bold()).rank(6),
    ];
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

fn waiting(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &FleetUi) {
    let theme = scene.theme;
    let Some(first) = scene.waiting.first() else { return };
    buf.set_style(area, theme.alarm());
    let narrow = area.width < 70;
    let mut room = usize::from(area.width.saturating_sub(if narrow { 17 } else { 24 }));
    let title = first.title().truncate(usize::from(area.width / 4).clamp(12, 32));
    let need = need_text(first, room.saturating_sub(title.width() + 2), scene.now);
    let text = SafeText::line(&format!("{title}: {need}")).truncate(room);
    room -= text.width();
    let (n, verb) = (scene.waiting.len(), if scene.waiting.len() == 1 { "NEEDS" } else { "NEED" });
    let mut left = vec![piece(format!(" ▲ {n} {verb} YOU  "), theme.alarm()), piece(text.to_string(), theme.alarm())];
    // Who else needs somebody, while there is room.
    for other in scene.waiting.iter().skip(1) {
        let title = other.title().truncate(24);
        let need = need_text(other, OTHER.saturating_sub(title.width() + 2), scene.now);
        let text = SafeText::line(&format!("{title}: {need}"));
        let Some(rest) = room.checked_sub(text.width() + 3) else { break };
        room = rest;
        left.push(piece(text.to_string(), theme.alarm()).gap(3));
    }
    // What lies above takes the keys.
    let jump = ui.over.is_none().then(|| piece("! jump ", theme.alarm()).rank(1));
    row(buf, area, 0, left, jump.into_iter().collect());
}

/// Cells of what another run needs somebody for, on the line that is about the first one.
const OTHER: usize = 56;

/// Why a run needs a person, in so many cells: as its own deck says it. For how long is never cut.
fn need_text(run: &FleetRun, cells: usize, now: Timestamp) -> SafeText {
    let Some(state) = run.state() else { return SafeText::default() };
    let all = needs(state);
    let Some(first) = all.first() else { return SafeText::line("processes would not die").truncate(cells) };
    let more = if all.len() > 1 { format!(" +{}", all.len() - 1) } else { String::new() };
    let room = cells.saturating_sub(more.len());
    let told = match needs_person(first.step) {
        Some(found) => found.line(&first.step.id.to_string(), first.step.title(), room, now),
        None => first.line(state, now).truncate(room),
    };
    SafeText::line(&format!("{told}{more}"))
}

/// So few rows about a run are not used for what stands above the list as well.
const FEW: u16 = 3;

fn preview(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &FleetUi) {
    let theme = scene.theme;
    let Some(run) = runs(scene.rows).find(|run| Some(run.dir().path()) == ui.selected.as_deref()) else {
        frame(buf, area, theme, Edge::Plain, Vec::new(), Vec::new());
        return;
    };
    let id = run.short_id();
    let title = run.title().truncate(usize::from(area.width / 2));
    let left = vec![piece(title.to_string(), theme.bold()), piece(format!("  {id}"), theme.dim())];
    let state = run.state();
    // Of a run whose runner is gone it is known for how long it was heard of, if that.
    let took = match (state, run.is_lost()) {
        (Some(state), true) => {
            state.started_at.zip(state.last_update).map(|(from, to)| format!("{}+", units::clock(to.since(from))))
        }
        (state, _) => state.and_then(|s| s.elapsed(scene.now)).map(units::clock),
    };
    let right = vec![piece(units::or_unknown(took), theme.plain())];
    let inner = frame(buf, area, theme, Edge::Plain, left, right);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    let mut facts: Vec<(&str, String, Style)> = Vec::new();
    if let Err(error) = &run.listed.state {
        facts.push(("cause", error.to_string(), theme.bad()));
    }
    facts.push(("task", run.task.lines().next().unwrap_or_default().to_owned(), theme.plain()));
    if let Some(state) = state {
        // Where there are few rows the line above the list has said it.
        if Class::of(run) == Class::Needs && inner.height > FEW {
            let room = usize::from(inner.width.saturating_sub(9));
            facts.push(("needs", need_text(run, room, scene.now).to_string(), theme.bold()));
        }
        facts.push(("error", state.error.as_deref().map(cause).unwrap_or_default().into_owned(), theme.bad()));
    }
    let mut about: Vec<(&str, String, Style)> = Vec::new();
    if let Some(state) = state {
        let started = state.started_at.map(|at| units::when::moment(at.micros(), scene.zone));
        let folder = if state.cwd.is_empty() { units::UNKNOWN } else { state.cwd.as_str() };
        about.push(("folder", format!("{folder}  started {}", units::or_unknown(started)), theme.dim()));
    }
    about.push(("run", run.dir().path().display().to_string(), theme.dim()));
    about.extend(run.listed.distrust.map(|why| ("", format!("read-only: {why}"), theme.halted())));
    // Where there are few rows who works on it is worth more than where it is.
    if inner.height > FEW {
        facts.append(&mut about);
    }
    facts.retain(|(_, value, _)| !value.is_empty());
    let line = |buf: &mut Buffer, dy: u16, name: &str, value: &str, style| {
        put(buf, inner, 0, dy, name, theme.dim());
        put_cut(buf, inner, 9, dy, &SafeText::line(value), inner.width.saturating_sub(9), style);
    };
    let mut dy = 0;
    for (name, value, style) in facts.iter().take(usize::from(inner.height)) {
        line(buf, dy, name, value, *style);
        dy += 1;
    }
    let (shown, more) = state.map(|state| foremost(state, usize::from(inner.height - dy))).unwrap_or_default();
    if let Some(state) = state {
        let columns = StepColumns::of(&shown, |step| face_of(run, state, step));
        for step in shown {
            let place = Rect { y: inner.y + dy, height: 1, ..inner };
            columns.row(buf, place, step, face_of(run, state, step), scene);
            dy += 1;
        }
    }
    if more > 0 {
        put(buf, inner, 0, dy, &format!("… {more} more"), theme.dim());
        dy += 1;
    }
    about.retain(|(_, value, _)| !value.is_empty());
    for ((name, value, style), dy) in about.iter().zip(dy..inner.height) {
        line(buf, dy, name, value, *style);
    }
}

/// How a step of a run stands: what worked when the runner died is lost, whatever the status says.
fn face_of(run: &FleetRun, state: &RunState, step: &StepState) -> StepFace {
    if run.is_lost() && step.phase == StepPhase::Running { StepFace::Lost } else { state.face(step) }
}

/// Where what is told of steps stands, each in a row.
struct StepColumns {
    number: u16,
    title: u16,
    word: u16,
    model: u16,
}

impl StepColumns {
    fn of(steps: &[&StepState], face: impl Fn(&StepState) -> StepFace) -> Self {
        let longest = |text: &dyn Fn(&StepState) -> usize, most: usize| {
            u16::try_from(steps.iter().map(|step| text(step)).max().unwrap_or(0).min(most)).unwrap_or(0)
        };
        Self {
            number: longest(&|step| step.id.to_string().len(), 5),
            title: longest(&|step| SafeText::line(step.title()).width(), 20),
            word: longest(&|step| face(step).word().len(), 11),
            model: longest(&|step| step.model.as_deref().map_or(0, |model| SafeText::line(model).width()), 16),
        }
    }

    fn row(&self, buf: &mut Buffer, area: Rect, step: &StepState, face: StepFace, scene: &Scene<'_>) {
        let theme = scene.theme;
        let lost = face == StepFace::Lost && step.ended_at.is_none();
        let face = theme.face(face);
        put_right(buf, area, self.number, 0, &step.id.to_string(), theme.dim());
        let mut dx = self.number + 1;
        put_cut(buf, area, dx, 0, &SafeText::line(step.title()), self.title, theme.plain());
        dx += self.title + 2;
        put(buf, area, dx, 0, &format!("{} {}", face.glyph, face.word), face.style);
        dx += self.word + 4;
        if self.model > 0 {
            let model = SafeText::line(step.model.as_deref().unwrap_or_default());
            put_cut(buf, area, dx, 0, &model, self.model, theme.dim());
            dx += self.model + 2;
        }
        let took = units::or_unknown(step.took(scene.now).filter(|_| !lost).map(units::clock));
        put_right(buf, area, area.width, 0, &took, theme.plain());
        let mut end = area.width.saturating_sub(u16::try_from(took.chars().count()).unwrap_or(5).max(5) + 1);
        if area.width >= 70 {
            let cost = units::or_unknown(step.cost.map(|usd| units::cost(usd.0)));
            put_right(buf, area, end, 0, &cost, theme.dim());
            end = end.saturating_sub(8);
        }
        let doing = step.current_call().map(|c| format!("{} {}", c.tool, c.path.as_deref().unwrap_or(&c.args)));
        let doing = doing.or_else(|| step.error.as_deref().map(|error| cause(error).into_owned())).unwrap_or_default();
        put_cut(buf, area, dx, 0, &SafeText::line(&doing), end.saturating_sub(dx), theme.plain());
    }
}

/// The steps of a run that so many rows show, in their order, and how many more there are: where not all fit those that need
/// somebody, then those that go on, then those that went wrong.
fn foremost(state: &RunState, rows: usize) -> (Vec<&StepState>, usize) {
    if state.steps.len() <= rows {
        return (state.steps.iter().collect(), 0);
    }
    // The last row says how many more there are, where there is another one.
    let fit = if rows > 1 { rows - 1 } else { rows };
    let rank = |step: &StepState| match state.face(step) {
        StepFace::Attention => 0,
        StepFace::Running | StepFace::Starting | StepFace::Stopping => 1,
        StepFace::Failed | StepFace::TimedOut | StepFace::OverBudget | StepFace::Lost => 2,
        StepFace::Succeeded | StepFace::Skipped | StepFace::Queued => 4,
        _ => 3,
    };
    let mut places: Vec<(u8, usize)> = state.steps.iter().map(rank).zip(0..).collect();
    places.sort_unstable();
    places.truncate(fit);
    places.sort_unstable_by_key(|(_, place)| *place);
    let shown = places.into_iter().filter_map(|(_, place)| state.steps.get(place)).collect();
    (shown, if rows > 1 { state.steps.len() - fit } else { 0 })
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
        let key = spelt(key, theme.ascii);
        [piece(format!(" {key}"), theme.key()).rank(rank), piece(format!(" {word} "), theme.dim()).rank(rank)]
    };
    let pieces: Vec<Piece> = match &ui.over {
        Some(Over::Words) => [hint("enter", "keep them", 9), hint("esc", "all runs", 9)].concat(),
        Some(Over::Search(_)) => [hint("enter", "look", 9), hint("esc", "back", 9)].concat(),
        Some(Over::Help(_)) => [hint("jk", "scroll", 9), hint("esc", "back", 9)].concat(),
        Some(Over::Start(dialog)) => {
            let tab = if dialog.completes() { "take it, next field" } else { "next field" };
            [hint("ctrl-s", "start it", 9), hint("tab", tab, 8), hint("esc", "back", 9)].concat()
        }
        None => {
            // Without a run there is nothing to choose or to order.
            let none = scene.count == 0;
            let mut out = if none { Vec::new() } else { hint("↑↓/jk", "select", 1).to_vec() };
            for entry in TABLE.iter().filter(|entry| !entry.short.is_empty()) {
                let about_runs = !matches!(entry.act, Act::Start | Act::Help | Act::Quit);
                if (entry.act == Act::NextNeed && scene.waiting.is_empty()) || (none && about_runs) {
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

#[cfg(test)]
mod tests;
