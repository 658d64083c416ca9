//! What lies above the picture: help, palette, composer, questions.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::Widget;

use super::Scene;
use super::detail::many;
use super::paint::{Edge, Piece, centred, fade, frame, piece, put, put_cut, put_right, row, wipe};
use super::secrets::wrapped;
use crate::deck::actions::{self, Section, Situation};
use crate::deck::attention::evidence;
use crate::deck::compose::candidates;
use crate::deck::left::processes;
use crate::deck::model::{Composer, Danger, Overlay, UiState, living};
use crate::deck::reading::{Found, Reading};
use crate::run::{RunnerKind, SteerMode, SteerRequest, Steerable, StepId, StepPhase, StepState};
use crate::text::{SafeText, grouped, width};

/// Draws the topmost overlay. The picture behind it stands back, except for the composer, which is written while one
/// looks at what goes on.
pub(super) fn draw(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState) {
    let Some(mut top) = ui.overlays.last() else { return };
    if super::layout::is_tiny((area.width, area.height)) {
        return;
    }
    // What is looked for in a text is typed on the line for notices, below that text.
    if let ([.., text @ Overlay::Reading(_), _], Overlay::Search { .. }) = (ui.overlays.as_slice(), top) {
        top = text;
    }
    let body = match top {
        Overlay::Reading(_) => beside_edges(area, scene, ui),
        _ => Rect { height: area.height.saturating_sub(1), ..area },
    };
    match top {
        Overlay::Help { top, query } => help(buf, body, *top, query.as_deref(), scene, ui),
        Overlay::Palette { query, index } => palette(buf, body, query, *index, scene, ui),
        // Typed on the line for notices, so that nothing of the output is covered.
        Overlay::Search { .. } | Overlay::Filter => {}
        Overlay::Composer(composer) => compose(buf, body, composer, scene, ui),
        Overlay::Confirm { what, .. } => confirm(buf, body, *what, scene, ui),
        Overlay::Quit { .. } => quit(buf, body, scene, &ui.keymap.hint(actions::Action::StopRun)),
        Overlay::Why { step, top } => why(buf, body, *step, *top, scene),
        Overlay::Budget(dialog) => super::raise::draw(buf, body, dialog, scene),
        Overlay::Answer(dialog) => super::answer::draw(buf, body, dialog, scene),
        Overlay::Reading(text) => reading(buf, body, text, scene, ui),
    }
}

/// What lies between the lines at the edges: a text that is read there never moves, whether something is typed below it or
/// not, and covers nothing that needs a person.
fn beside_edges(area: Rect, scene: &Scene<'_>, ui: &UiState) -> Rect {
    let parts = super::layout::layout(ui, scene.state);
    let top = parts.header.bottom().max(parts.attention.bottom()).min(area.bottom());
    Rect { y: top, height: area.bottom().saturating_sub(top + 2), ..area }
}

pub(super) fn dialog_box(buf: &mut Buffer, area: Rect, size: (u16, u16), title: &str, scene: &Scene<'_>) -> Rect {
    titled_box(buf, area, size, title, Vec::new(), scene)
}

/// Where a box of at most this size is.
fn boxed(area: Rect, size: (u16, u16)) -> Rect {
    // A strip of a few cells beside a dialog shows nothing but the remains of words.
    let wide = if area.width.saturating_sub(size.0) < 12 { area.width } else { size.0 };
    centred(area, wide, size.1)
}

/// What is inside of such a box.
pub(super) fn inside_box(area: Rect, size: (u16, u16)) -> Rect {
    let place = boxed(area, size);
    Rect {
        x: place.x + 2,
        y: place.y + 1,
        width: place.width.saturating_sub(4),
        height: place.height.saturating_sub(2),
    }
}

/// Which of the things to choose from a dialog shows at a cell.
pub(super) fn choice_at(area: Rect, scene: &Scene<'_>, ui: &UiState, x: u16, y: u16) -> Option<usize> {
    let body = Rect { height: area.height.saturating_sub(1), ..area };
    let (list, top, count) = match ui.overlays.last()? {
        Overlay::Palette { query, index } => {
            let inner = inside_box(body, palette_size(ui));
            let list = Rect { y: inner.y + 2, height: inner.height.saturating_sub(2), ..inner };
            let count = actions::search(query).len();
            (list, super::layout::list_top(*index, count, usize::from(list.height)), count)
        }
        Overlay::Answer(dialog) => super::answer::choices(body, dialog, scene)?,
        Overlay::Budget(dialog) => super::raise::choices(body, dialog, scene),
        _ => return None,
    };
    let at = list.contains(ratatui::layout::Position { x, y }).then(|| usize::from(y - list.y))?;
    Some(top + at).filter(|at| *at < count)
}

/// How large the palette is: as wide as its longest row needs, so that nothing is cut beside empty cells; the same whatever
/// is typed.
fn palette_size(ui: &UiState) -> (u16, u16) {
    let cells = |row: &actions::Row| 19 + row.help.len() + 2 + width(&ui.keymap.shown(row)) + 4;
    let wide = actions::TABLE.iter().map(cells).max().and_then(|cells| u16::try_from(cells).ok()).unwrap_or(84);
    (wide.max(84), 18)
}

/// A box with something at the right end of its upper edge too.
fn titled_box(
    buf: &mut Buffer,
    area: Rect,
    size: (u16, u16),
    title: &str,
    right: Vec<Piece>,
    scene: &Scene<'_>,
) -> Rect {
    fade(buf, area, scene.theme);
    let place = boxed(area, size);
    wipe(buf, place);
    let inner = frame(buf, place, scene.theme, Edge::Above, vec![piece(title, scene.theme.bold())], right);
    Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner }
}

fn help(buf: &mut Buffer, area: Rect, top: usize, query: Option<&str>, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let found = actions::matching(query.unwrap_or_default());
    let room = usize::from(area.width.min(76)).saturating_sub(16).max(10);
    let mut lines: Vec<(&str, String, SafeText)> = Vec::new();
    for section in Section::ALL {
        let rows: Vec<_> = found.iter().filter(|r| r.section == section).collect();
        if rows.is_empty() {
            continue;
        }
        if !lines.is_empty() {
            lines.push(("", String::new(), SafeText::default()));
        }
        lines.push((section.title(), String::new(), SafeText::default()));
        // A sentence that there is no room for goes on in the next row.
        for row in rows {
            let mut keys = ui.keymap.shown(row);
            let wrapped = SafeText::line(row.help).wrap(room);
            lines.extend(wrapped.into_iter().map(|text| ("", std::mem::take(&mut keys), text)));
        }
    }
    if query.is_none() {
        lines.push(("", String::new(), SafeText::default()));
        lines.push(("signs", String::new(), SafeText::default()));
        for (sign, what) in crate::deck::SIGNS {
            let mut sign = sign.to_owned();
            let wrapped = SafeText::line(what).wrap(room);
            lines.extend(wrapped.into_iter().map(|text| ("", std::mem::take(&mut sign), text)));
        }
    }
    let typing = u16::from(query.is_some()) * 2;
    // Two columns where one does not hold all of it and there is room beside it: they part between two sections.
    let fits = |rows: usize| rows + usize::from(2 + typing) <= usize::from(area.height);
    let half = lines.len() / 2;
    let blank = |at: &usize| {
        lines.get(*at).is_some_and(|(heading, keys, text)| heading.is_empty() && keys.is_empty() && text.is_empty())
    };
    let gap = (0..lines.len()).filter(blank).min_by_key(|at| at.abs_diff(half));
    let gap = gap.filter(|_| area.width >= 2 * COLUMN && !fits(lines.len()));
    let (left, right) = match gap {
        Some(at) => (lines.get(..at).unwrap_or_default(), lines.get(at + 1..).unwrap_or_default()),
        None => (lines.as_slice(), &[][..]),
    };
    let rows = left.len().max(right.len());
    let wide = if right.is_empty() { COLUMN } else { 2 * COLUMN };
    let high = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(2 + typing);
    let inner = dialog_box(buf, area, (wide, high), "keys", scene);
    if let Some(query) = query {
        let dx = put(buf, inner, 0, 0, "/ ", theme.key());
        let dx = put(buf, inner, dx, 0, SafeText::line(query).as_str(), theme.plain());
        put(buf, inner, dx, 0, "▏", theme.select());
        if lines.is_empty() {
            put(buf, inner, 0, 2, "no key has these words", theme.dim());
        }
    }
    let inner = Rect { y: inner.y + typing, height: inner.height.saturating_sub(typing), ..inner };
    let top = scrolled(buf, inner, top, rows, scene);
    for (column, dx) in [(left, 0), (right, COLUMN)] {
        let place = Rect { x: inner.x + dx, width: inner.width.saturating_sub(dx), ..inner };
        for ((heading, keys, text), dy) in column.iter().skip(top).zip(0_u16..place.height) {
            if heading.is_empty() {
                put_right(buf, place, 10, dy, keys, theme.key());
                put_cut(buf, place, 12, dy, text, place.width, theme.plain());
            } else {
                put(buf, place, 0, dy, heading, theme.accent());
            }
        }
    }
}

/// The widest that one column of keys is, in cells with its frame.
const COLUMN: u16 = 76;

fn palette(buf: &mut Buffer, area: Rect, query: &str, index: usize, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let found = actions::search(query);
    let inner = dialog_box(buf, area, palette_size(ui), "commands", scene);
    let typed = SafeText::line(query);
    let dx = put(buf, inner, 0, 0, "› ", theme.select());
    let dx = put(buf, inner, dx, 0, typed.as_str(), theme.plain());
    put(buf, inner, dx, 0, "▏", theme.select());
    put(buf, inner, 0, 1, &"─".repeat(usize::from(inner.width)), theme.dim());
    if found.is_empty() {
        put(buf, inner, 0, 2, "no command has these letters in this order", theme.dim());
    }
    let list = Rect { y: inner.y + 2, height: inner.height.saturating_sub(2), ..inner };
    let height = usize::from(list.height);
    let top = super::layout::list_top(index, found.len(), height);
    let at = Situation { state: scene.state, read_only: scene.read_only };
    for ((n, found), dy) in found.iter().enumerate().skip(top).take(height).zip(0_u16..) {
        let possible = actions::possible(found.action, ui, at).is_ok();
        let style = match (n == index, possible) {
            (true, _) => theme.select(),
            (false, true) => theme.plain(),
            (false, false) => theme.dim(),
        };
        if n == index {
            put(buf, list, 0, dy, "›", theme.select());
        }
        put(buf, list, 2, dy, found.name, style);
        let keys = ui.keymap.shown(found);
        let taken = u16::try_from(width(&keys)).unwrap_or(11);
        let room = list.width.saturating_sub(19 + 2 + taken);
        put_cut(buf, list, 19, dy, &SafeText::line(found.help), room, theme.dim());
        put_right(buf, list, list.width, dy, &keys, theme.key());
    }
}

fn compose(buf: &mut Buffer, area: Rect, composer: &Composer, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let high = (area.height * 2 / 5).clamp(7, 16).min(area.height);
    let above = Rect { height: area.height - high, ..area };
    fade(buf, above, theme);
    let place = Rect { y: area.y + above.height, height: high, ..area };
    wipe(buf, place);
    let mut right =
        vec![piece("esc keep draft", theme.dim()).rank(2).gap(3), piece("ctrl-c discard", theme.dim()).rank(1).gap(3)];
    if composer.refused.is_none() {
        right.insert(0, piece("ctrl-s send", theme.bold()));
    }
    let inner = frame(
        buf,
        place,
        theme,
        Edge::Above,
        vec![piece(if composer.goes_on { "go on" } else { "steer" }, theme.bold())],
        right,
    );
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    let draft = ui.drafts.get(&composer.home);
    if composer.goes_on {
        let name = scene.state.step(composer.home).map(|s| SafeText::line(s.title()).truncate(30)).unwrap_or_default();
        let left = vec![piece("to    ", theme.dim()), piece(format!("{} {name}", composer.home), theme.bold())];
        row(buf, inner, 0, left, Vec::new());
        put(buf, inner, 0, 1, "begins a new run that goes on with its session", theme.dim());
    } else {
        targets(buf, inner, composer, scene);
        match &composer.refused {
            Some(why) => {
                let at = Situation { state: scene.state, read_only: scene.read_only };
                let others = actions::possible(actions::Action::SteerAll, ui, at).is_ok();
                let other = if others { "; tab chooses another step" } else { "" };
                let text = format!("cannot be sent: {why}{other}");
                put_cut(buf, inner, 0, 1, &SafeText::line(&text), inner.width, theme.bad());
            }
            None => modes(buf, inner, draft.map(|d| d.mode).unwrap_or_default(), scene),
        }
    }
    put(buf, inner, 0, 2, &"─".repeat(usize::from(inner.width)), theme.dim());
    let text = Rect { y: inner.y + 3, height: inner.height.saturating_sub(4), ..inner };
    if let Some(draft) = draft {
        (&draft.text).render(text, buf);
    }
    let size = draft.map_or(0, |d| d.message().len());
    let over = size > SteerRequest::MAX_BYTES;
    let count = format!("{} of {} bytes", grouped(size as u64), grouped(SteerRequest::MAX_BYTES as u64));
    let mut left = vec![piece(count, if over { theme.bad() } else { theme.dim() })];
    let mut right = vec![piece(capability(composer, scene), theme.dim()).rank(1)];
    // The line for notices lies below the composer, so what it has to say is said here.
    if let Some(notice) = &ui.notice {
        left = vec![piece(notice.text.to_string(), if notice.bad { theme.bad() } else { theme.plain() })];
        right.clear();
    }
    row(buf, inner, inner.height.saturating_sub(1), left, right);
}

/// Who gets the message.
fn targets(buf: &mut Buffer, inner: Rect, composer: &Composer, scene: &Scene<'_>) {
    let theme = scene.theme;
    let mut left = vec![piece("to ", theme.dim())];
    let steps = candidates(scene.state);
    let all = steps.len() > 1 && steps.iter().all(|s| composer.targets.contains(s));
    let mut shown = steps.clone();
    // The one it was begun for is named even when it cannot be told anything; those that ended meanwhile are not.
    shown.extend(composer.targets.iter().filter(|t| composer.targets.len() == 1 && !steps.contains(t)));
    for (id, place) in shown.into_iter().zip(0_u8..) {
        let chosen = composer.targets.contains(&id) && !all;
        let name = scene.state.step(id).map(|s| SafeText::line(s.title()).truncate(16)).unwrap_or_default();
        let mark = if chosen { "[x]" } else { "[ ]" };
        let style = if chosen { theme.bold() } else { theme.dim() };
        // Where not all fit the first ones are kept.
        let rank = if chosen { u8::MAX } else { 100_u8.saturating_sub(place) };
        left.push(piece(format!("{mark} {id} {name}"), style).rank(rank).gap(3));
    }
    if steps.len() > 1 {
        let mark = if all { "[x]" } else { "[ ]" };
        let style = if all { theme.bold() } else { theme.dim() };
        let rank = if all { u8::MAX } else { 101 };
        left.push(piece(format!("{mark} all {} running", steps.len()), style).rank(rank).gap(3));
    }
    row(buf, inner, 0, left, vec![piece("tab", theme.key()).rank(1), piece(" target", theme.dim()).rank(1)]);
}

/// How it is to arrive.
fn modes(buf: &mut Buffer, inner: Rect, mode: SteerMode, scene: &Scene<'_>) {
    let theme = scene.theme;
    let choice = |which: SteerMode, text: &str| {
        let (mark, style) = if mode == which { ("(•)", theme.bold()) } else { ("( )", theme.dim()) };
        piece(format!("{mark} {text}"), style).rank(if mode == which { u8::MAX } else { 2 }).gap(2)
    };
    let left = vec![
        piece("mode", theme.dim()),
        choice(SteerMode::Steer, "steer now"),
        choice(SteerMode::FollowUp, "follow up after this turn"),
        choice(SteerMode::Auto, "auto"),
    ];
    row(buf, inner, 1, left, vec![piece("ctrl-t", theme.key()).rank(1), piece(" mode", theme.dim()).rank(1)]);
}

/// What is known of whether the target can be told anything.
fn capability(composer: &Composer, scene: &Scene<'_>) -> String {
    if composer.goes_on || composer.refused.is_some() {
        return String::new();
    }
    let mut targets = composer.targets.iter().filter_map(|id| scene.state.step(*id));
    match (targets.next(), targets.next()) {
        (Some(step), None) => {
            let word = match &step.steerable {
                Steerable::Yes => match &step.runner {
                    RunnerKind::Agent(agent) => format!("yes, {}", agent.family.arrival()),
                    _ => "yes".to_owned(),
                },
                Steerable::Unknown => "not known yet".to_owned(),
                Steerable::No(why) => format!("no, {}", SafeText::line(why)),
            };
            let queue = step.steering.open_for(step.id).count();
            let name = SafeText::line(step.title()).truncate(16);
            format!("{} {name} accepts steering: {word}   queue {queue} of {}", step.id, SteerRequest::QUEUE_LIMIT)
        }
        (Some(_), Some(_)) => {
            let steps = composer.targets.iter().filter_map(|id| scene.state.step(*id));
            let deaf = steps.filter(|step| matches!(step.steerable, Steerable::No(_))).count();
            let all = composer.targets.len();
            if deaf == 0 { format!("{all} steps") } else { format!("{all} steps, of which {deaf} cannot be steered") }
        }
        _ => String::new(),
    }
}

/// So many steps are named in a question about several.
const NAMED: usize = 6;

/// Sentences that are wrapped into a dialog, from a row on. Returns the row after them.
fn sentences(buf: &mut Buffer, inner: Rect, dy: u16, text: &str, style: Style) -> u16 {
    let lines = SafeText::line(text).wrap(usize::from(inner.width));
    for (line, at) in lines.iter().zip(dy..) {
        put(buf, inner, 0, at, line.as_str(), style);
    }
    dy.saturating_add(u16::try_from(lines.len()).unwrap_or(1))
}

fn confirm(buf: &mut Buffer, area: Rect, what: Danger, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let (title, question, consequence) = match what {
        Danger::Step(id) => {
            let name = scene.state.step(id).map(|s| SafeText::line(s.title()).truncate(30)).unwrap_or_default();
            let question = format!("End step {id} {name} and every process below it?");
            ("stop step", question, stopped_alone(scene, id))
        }
        Danger::Run | Danger::Everything => {
            let many = living(scene.state);
            let children = if many == 1 { "1 child ends".to_owned() } else { format!("{many} children end") };
            let waiting = scene.state.steps.iter().filter(|s| s.phase == StepPhase::Pending).count();
            let never = match waiting {
                0 => String::new(),
                1 => ", 1 never starts".to_owned(),
                n => format!(", {n} never start"),
            };
            let leaves = if what == Danger::Everything { " The deck leaves when all have ended." } else { "" };
            ("stop run", "End the whole run?".to_owned(), format!("{children}{never}.{leaves}"))
        }
        Danger::Left(step) => {
            let of: Vec<_> = ui.left.iter().filter(|left| step.is_none_or(|step| step == left.step)).collect();
            let mut named: Vec<String> = of
                .iter()
                .take(NAMED)
                .map(|left| format!("pid {} of step {} ({})", left.pid, left.step, left.command.truncate(24)))
                .collect();
            if of.len() > NAMED {
                named.push(format!("and {} more", of.len() - NAMED));
            }
            let whose = step.map(|step| format!(" of step {step}")).unwrap_or_default();
            let question = format!("End {}{whose} that nobody supervises any more?", processes(of.len()));
            ("end what lives on", question, format!("{}. Asked to end first, killed after 3 s.", named.join(", ")))
        }
        Danger::Retry => {
            let left: Vec<&StepState> = scene.state.steps.iter().filter(|s| s.phase != StepPhase::Complete).collect();
            let mut names: Vec<String> = left
                .iter()
                .take(NAMED)
                .map(|step| {
                    let name = SafeText::line(step.title()).truncate(24);
                    format!("{} {name} {}", step.id, scene.theme.face(scene.state.face(step)).word)
                })
                .collect();
            if left.len() > NAMED {
                names.push(format!("and {} more", left.len() - NAMED));
            }
            let spent = left.iter().filter_map(|step| step.cost).map(|usd| usd.0).reduce(|a, b| a + b);
            let least = if left.iter().any(|step| step.worked() && step.cost.is_none()) { "at least " } else { "" };
            let cost = spent.map_or_else(
                || "It may cost as much again.".to_owned(),
                |usd| format!("Before, they cost {least}{}.", crate::text::cost(usd)),
            );
            let question = format!("Do {} again? {}.", many(left.len() as u64, "step"), names.join(", "));
            ("retry", question, format!("In a new run, which takes over what is done. {cost}"))
        }
    };
    let (yes, no) = match what {
        Danger::Retry => ("do it again", "no (default)"),
        Danger::Left(_) => ("end them", "no, leave them (default)"),
        Danger::Step(_) | Danger::Run | Danger::Everything => ("stop it", "no, let it run (default)"),
    };
    // As high as its sentences need.
    let wide = usize::from(area.width.min(66)).saturating_sub(4).max(1);
    let rows = [&question, &consequence].map(|text| SafeText::line(text).wrap(wide).len()).iter().sum::<usize>();
    let high = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(5).max(9);
    let inner = dialog_box(buf, area, (66, high), title, scene);
    let dy = sentences(buf, inner, 1, &question, theme.bold());
    let dy = sentences(buf, inner, dy, &consequence, theme.plain());
    let left = vec![
        piece("y", theme.key()),
        piece(yes, theme.bad()).gap(1),
        piece("esc", theme.key()).gap(6),
        piece(no, theme.plain()).gap(1),
    ];
    row(buf, inner, dy + 1, left, Vec::new());
}

/// What comes of ending one step: those beside it go on, those behind it start only where it ends well.
fn stopped_alone(scene: &Scene<'_>, id: StepId) -> String {
    let Some(step) = scene.state.step(id) else { return String::new() };
    let others = scene.state.steps.iter().filter(|other| other.id != id && !other.phase.is_terminal());
    let mut behind = others.clone().filter(|other| other.logical > step.logical);
    let mut names: Vec<String> = behind
        .by_ref()
        .take(NAMED)
        .map(|step| format!("{} {}", step.id, SafeText::line(step.title()).truncate(24)))
        .collect();
    let more = behind.count();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    let beside = if others.clone().any(|other| other.logical == step.logical) { "Its siblings go on. " } else { "" };
    match names.as_slice() {
        [] => format!("{beside}No step waits for it."),
        [only] => format!("{beside}{only} waits for it and will never start."),
        all => format!("{beside}{} wait for it and will never start.", all.join(", ")),
    }
}

fn quit(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, stop: &str) {
    let theme = scene.theme;
    let many = living(scene.state);
    let inner = dialog_box(buf, area, (66, 9), "leave the deck", scene);
    let text = match many {
        0 => "The run is not over yet.".to_owned(),
        1 => "1 child is alive.".to_owned(),
        n => format!("{n} children are alive."),
    };
    put(buf, inner, 0, 1, &text, theme.bold());
    let room = inner.width >= 60;
    let choices = [
        (
            "l",
            if room { "leave it running (default); subdeck attach comes back" } else { "leave it running (default)" },
        ),
        (stop, "stop everything, then leave"),
        ("esc", "stay here"),
    ];
    for ((key, text), dy) in choices.into_iter().zip(3_u16..) {
        put_right(buf, inner, 3, dy, key, theme.key());
        let style = if key == stop { theme.bad() } else { theme.plain() };
        put_cut(buf, inner, 5, dy, &SafeText::line(text), inner.width, style);
    }
}

fn why(buf: &mut Buffer, area: Rect, step: StepId, top: usize, scene: &Scene<'_>) {
    let theme = scene.theme;
    let mut lines = evidence(scene.state, step, scene.now);
    if lines.is_empty() {
        lines.push(("over".to_owned(), "nothing is wrong with this step any more".to_owned()));
    }
    // Values are wrapped, so that evidence is never cut.
    let room = usize::from(area.width.min(76)).saturating_sub(19).max(10);
    let lines: Vec<(String, SafeText)> = lines
        .iter()
        .flat_map(|(name, value)| {
            let mut name = Some(name.clone());
            let values = if value.is_empty() { vec![SafeText::default()] } else { SafeText::line(value).wrap(room) };
            values.into_iter().map(move |value| (name.take().unwrap_or_default(), value)).collect::<Vec<_>>()
        })
        .collect();
    let high = u16::try_from(lines.len()).unwrap_or(20).saturating_add(2);
    let name = scene.state.step(step).map(|s| SafeText::line(s.title()).truncate(30)).unwrap_or_default();
    let inner = dialog_box(buf, area, (76, high), &format!("why step {step} {name} needs you"), scene);
    let top = scrolled(buf, inner, top, lines.len(), scene);
    for ((name, value), dy) in lines.iter().skip(top).zip(0_u16..inner.height) {
        put(buf, inner, 0, dy, name, theme.dim());
        put(buf, inner, 15, dy, value.as_str(), theme.plain());
    }
}

/// An entry in full.
fn reading(buf: &mut Buffer, area: Rect, text: &Reading, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let wide = Reading::room(area.width);
    let rows = |(n, line): (usize, &SafeText)| -> Vec<(usize, SafeText)> {
        wrapped(line, wide, scene.reveal).into_iter().map(|row| (n, row)).collect()
    };
    let lines: Vec<(usize, SafeText)> = text.lines.iter().enumerate().flat_map(rows).collect();
    let high = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(2).max(6);
    let found = text.found.map(|Found { nth, total, .. }| match total {
        0 => piece("nothing found", theme.bad()),
        _ => piece(format!("match {nth}/{total}"), theme.accent()),
    });
    let inner = titled_box(buf, area, (110, high), text.title.as_str(), found.into_iter().collect(), scene);
    let top = scrolled(buf, inner, text.top, lines.len(), scene);
    let needle = ui.needle().filter(|_| text.found.is_some());
    for ((n, line), dy) in lines.iter().skip(top).zip(0_u16..inner.height) {
        let differs = text.diff.is_some_and(|from| *n >= from);
        let whole = text.lines.get(*n).filter(|_| differs);
        let style = whole.map_or(theme.plain(), |whole| super::sections::difference(whole, scene));
        put(buf, inner, 0, dy, line.as_str(), style);
        if let Some(needle) = &needle {
            let row = Rect { y: inner.y + dy, height: 1, ..inner };
            super::marks::matches(buf, row, needle, text.found.is_some_and(|found| found.line == *n), scene);
        }
    }
}

/// The first row of a text in a box, which says in its lower edge when there is more.
fn scrolled(buf: &mut Buffer, inner: Rect, top: usize, lines: usize, scene: &Scene<'_>) -> usize {
    let shown = usize::from(inner.height);
    let top = top.min(lines.saturating_sub(shown));
    let told = match (top > 0, top + shown < lines) {
        (true, true) => " ↑↓ more ",
        (true, false) => " ↑ more ",
        (false, true) => " ↓ more ",
        (false, false) => return top,
    };
    let edge = Rect { y: inner.bottom(), height: 1, ..inner };
    put_right(buf, edge, edge.width, 0, told, scene.theme.accent());
    top
}
