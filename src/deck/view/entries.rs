//! The tabs that list things: calls, what was said, what happened. The entry that the keys are at has a mark and is
//! always in sight; only what is visible is laid out.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::paint::{Piece, piece, put, put_cut, row};
use super::secrets::wrapped;
use super::{Scene, at_end, marks, output, ticker};
use super::{calls, detail};
use crate::deck::entries::{self, Call, Earlier, Sieve};
use crate::deck::history::Entry;
use crate::deck::listed::Listed;
use crate::deck::model::{Scroll, Tab, UiState};
use crate::deck::reading::{SHOWN, UNREADABLE};
use crate::deck::said::{Said, SaidWhat};
use crate::deck::window::Windows;
use crate::run::{RunnerKind, StepState, ToolOutcome};
use crate::text::{SafeText, grouped};

type Line = (Vec<Piece>, Vec<Piece>);

/// Cells at the left for the mark.
const MARK: u16 = 2;

/// From this width on there is room beside a call for what came of it.
const WIDE: u16 = 110;

/// The entries that are visible: the place of each, and the rows of it that are drawn.
struct Shown {
    /// Place in the list and lines.
    items: Vec<(usize, Vec<Line>)>,
    /// Lines of the first one that are above the area.
    cut: usize,
}

impl Shown {
    /// The places of those that can be seen whole.
    fn whole(&self, high: usize) -> impl Iterator<Item = usize> {
        let mut end = 0;
        let ends = self.items.iter().map(move |(place, lines)| {
            let begin = end;
            end += lines.len();
            (*place, begin, end)
        });
        ends.filter(move |(_, begin, end)| *begin >= self.cut && *end <= self.cut + high).map(|(place, ..)| place)
    }

    /// Whether each entry that is listed is here, whole.
    fn all(&self, listed: &Listed<'_>, height: u16) -> bool {
        let rows: usize = self.items.iter().map(|(_, lines)| lines.len()).sum();
        self.items.len() == listed.len() && rows <= usize::from(height)
    }
}

/// Draws one of the tabs that list entries.
pub(super) fn draw(buf: &mut Buffer, area: Rect, step: &StepState, scene: &Scene<'_>, ui: &UiState, windows: &Windows) {
    let tab = ui.tab(step.id);
    let listed = scene.entries().listed(ui, step);
    let theme = scene.theme;
    if listed.is_empty() {
        let plain = matches!(step.runner, RunnerKind::ExternalCli { .. });
        let text = match (tab, listed.sieve) {
            _ if scene.entries().earlier(step, tab) == Earlier::Unread => "earlier ones are read",
            _ if scene.entries().earlier(step, tab) == Earlier::Unlisted && ui.reading.is_some() => {
                "earlier ones are being read"
            }
            _ if scene.entries().earlier(step, tab) == Earlier::Unlisted => "earlier ones are in the files only",
            (_, Sieve::Errors) => "nothing went wrong so far",
            (Tab::Tools, _) if plain => "a plain command uses no tools",
            (Tab::Tools, _) => "no tool was used yet",
            (Tab::Transcript, _) if plain => "a plain command says nothing but what it prints",
            (Tab::Transcript, _) => "nothing was said yet",
            _ => "nothing happened yet",
        };
        put_cut(buf, area, MARK, 0, &SafeText::line(text), area.width, theme.dim());
        return;
    }
    let inner = Rect { x: area.x + MARK, width: area.width.saturating_sub(MARK), ..area };
    let of = |most: usize| {
        let lines = |place: usize| lines(tab, listed.number(place)?, inner.width, most, step, scene, windows);
        visible(inner, &listed, lines)
    };
    let mut shown = of(SHOWN);
    // Where all entries are seen and rows are left, messages are not cut beside them.
    if tab == Tab::Transcript && shown.all(&listed, area.height) {
        let whole = of(usize::MAX);
        if whole.all(&listed, area.height) {
            shown = whole;
        }
    }
    let needle = ui.needle();
    let mut dy = 0;
    for (n, (place, lines)) in shown.items.into_iter().enumerate() {
        if place == listed.at && dy < area.height {
            put(buf, area, 0, dy, "›", theme.select());
        }
        let begin = dy;
        for (left, right) in lines.into_iter().skip(if n == 0 { shown.cut } else { 0 }) {
            if dy < area.height {
                row(buf, inner, dy, left, right);
            }
            dy += 1;
        }
        if let Some(needle) = &needle {
            let rows = Rect { y: inner.y.saturating_add(begin), height: dy - begin, ..inner }.intersection(inner);
            let found = ui.match_in(step.id, tab);
            let here = found.is_some() && found == listed.number(place);
            marks::matches(buf, rows, needle, here && place == listed.at, scene);
        }
    }
}

/// The entries around the one that the keys are at that fit: that one whole, those before it, and when there are not
/// enough of them those after it.
fn visible(area: Rect, listed: &Listed<'_>, mut lines: impl FnMut(usize) -> Option<Vec<Line>>) -> Shown {
    let high = usize::from(area.height);
    let mut items = std::collections::VecDeque::new();
    let mut used = 0;
    let mut cut = 0;
    for place in (0..=listed.at).rev() {
        let Some(found) = lines(place) else { continue };
        used += found.len();
        items.push_front((place, found));
        if used >= high {
            cut = used - high;
            break;
        }
    }
    let mut place = listed.at + 1;
    while used < high && place < listed.len() {
        if let Some(found) = lines(place) {
            used += found.len();
            items.push_back((place, found));
        }
        place += 1;
    }
    // Of an entry that is higher than the area the beginning says more than the end.
    if items.len() == 1 {
        cut = 0;
    }
    Shown { items: items.into(), cut }
}

/// How many entries further a page is, or half of one: what was not seen whole comes into sight, and nothing is passed over.
pub(super) fn page(
    area: Rect,
    step: &StepState,
    scene: &Scene<'_>,
    ui: &UiState,
    windows: &Windows,
    scroll: Scroll,
) -> i32 {
    let tab = ui.tab(step.id);
    let inner = Rect { x: area.x + MARK, width: area.width.saturating_sub(MARK), ..area };
    let listed = scene.entries().listed(ui, step);
    let of = |place: usize| lines(tab, listed.number(place)?, inner.width, SHOWN, step, scene, windows);
    let rows = |place: &usize| of(*place).map_or(0, |lines| lines.len());
    let fit = |places: &mut dyn Iterator<Item = usize>, room: usize| {
        let mut used = 0;
        places.take_while(|place| (used += rows(place), used <= room).1).count().max(1)
    };
    let high = usize::from(area.height);
    let (times, pages) = match scroll {
        Scroll::Pages(n) => (n, true),
        Scroll::Halves(n) => (n, false),
        _ => return 0,
    };
    let mut at = listed.at;
    for _ in 0..times.unsigned_abs() {
        at = match (pages, times > 0) {
            (false, true) => at + fit(&mut (at + 1..listed.len()), high / 2),
            (false, false) => at.saturating_sub(fit(&mut (0..=at).rev(), high / 2)),
            (true, on) => {
                let shown = visible(inner, &Listed { at, ..listed.clone() }, of);
                if on {
                    let last = shown.whole(high).last().unwrap_or(at).max(at);
                    last + fit(&mut (last + 1..listed.len()), high)
                } else {
                    shown.whole(high).next().unwrap_or(at).min(at).saturating_sub(1)
                }
            }
        };
    }
    // Before the first entry there may be others that were not read yet.
    if listed.at == 0 && times < 0 {
        return -i32::from(area.height);
    }
    let by = isize::try_from(at).unwrap_or(isize::MAX) - isize::try_from(listed.at).unwrap_or(isize::MAX);
    i32::try_from(by).unwrap_or(0)
}

fn lines(
    tab: Tab,
    number: u64,
    width: u16,
    most: usize,
    step: &StepState,
    scene: &Scene<'_>,
    windows: &Windows,
) -> Option<Vec<Line>> {
    match tab {
        Tab::Tools => Some(vec![call(number, width, step, scene).unwrap_or_else(|| unread(scene))]),
        Tab::Transcript => {
            if number == entries::TASK {
                return Some(task(step, scene, width, most));
            }
            let said = scene.entries().said(step.id, number);
            Some(said.map_or_else(|| vec![unread(scene)], |said| self::said(&said, width, most, scene, windows)))
        }
        Tab::Events => {
            let entry = scene.entries().told(step.id, number);
            Some(vec![entry.map_or_else(|| unread(scene), |entry| event(&entry, scene))])
        }
        Tab::Output | Tab::Budget | Tab::Changes => None,
    }
}

/// Of what cannot be read.
fn unread(scene: &Scene<'_>) -> Line {
    (vec![piece(UNREADABLE, scene.theme.dim())], Vec::new())
}

fn call(number: u64, width: u16, step: &StepState, scene: &Scene<'_>) -> Option<Line> {
    // All rows tell when, or none does.
    let time = |left: &mut Vec<Piece>, at| {
        if width >= 50 {
            left.insert(0, piece(scene.time_of_day(at), scene.theme.dim()));
        }
    };
    match scene.entries().call(step, number)? {
        Call::Ended(call, _) => {
            let (mut left, mut right) = calls::ended_pieces(&call, usize::from(width), scene);
            if width >= WIDE {
                let first = SafeText::block(&call.preview).into_iter().find(|line| !line.is_empty());
                let came = first.filter(|_| matches!(call.outcome, Some(ToolOutcome::Ok))).unwrap_or_default();
                right = vec![aside(&right, 6, &came, width, scene.theme.dim())];
            }
            time(&mut left, call.started_at.unwrap_or(call.ended_at));
            Some((left, right))
        }
        Call::Open(call) => {
            let (mut left, mut right) = calls::open_pieces(call, usize::from(width), step, scene);
            if width >= WIDE {
                right = vec![aside(&right, 0, &SafeText::default(), width, scene.theme.bold())];
            }
            left.insert(0, piece("●", scene.theme.accent()).gap(2));
            time(&mut left, call.started_at);
            Some((left, right))
        }
    }
}

/// In a wide pane how long a call took stands in one column for all of them, and what came of it behind that: what is
/// compared stands below each other.
fn aside(time: &[Piece], digits: usize, came: &SafeText, width: u16, style: Style) -> Piece {
    let time: String = time.iter().map(Piece::spaced).collect();
    let cells = usize::from(if width < 150 { width * 2 / 5 } else { width / 2 });
    let text = SafeText::line(&format!("{time:>digits$}   {came}")).truncate(cells);
    piece(format!("{text}{}", " ".repeat(cells.saturating_sub(text.width()))), style)
}

fn event(entry: &Entry, scene: &Scene<'_>) -> Line {
    let text = piece(entry.text.to_string(), ticker::tone(entry.tone, scene)).gap(2);
    (vec![piece(scene.time_of_day(entry.at), scene.theme.dim()), text], Vec::new())
}

/// What was asked of a step, before anything was said.
fn task(step: &StepState, scene: &Scene<'_>, width: u16, most: usize) -> Vec<Line> {
    let theme = scene.theme;
    let mut out = vec![(vec![piece("task", theme.bold())], Vec::new())];
    let task = if scene.facts_of == Some(step.id) { scene.facts.task.as_slice() } else { &[] };
    if task.is_empty() {
        out.push((vec![piece("  its runner keeps it to itself", theme.dim())], Vec::new()));
    }
    let wrapped: Vec<SafeText> =
        task.iter().flat_map(|l| wrapped(l, usize::from(width.saturating_sub(2)), scene.reveal)).collect();
    out.extend(wrapped.iter().take(most).map(|line| (vec![piece(format!("  {line}"), theme.plain())], Vec::new())));
    out.extend(more_lines(wrapped.len().saturating_sub(most), scene));
    out.push((Vec::new(), Vec::new()));
    out
}

/// That there are more lines than are shown.
fn more_lines(hidden: usize, scene: &Scene<'_>) -> Option<Line> {
    let text = format!("  … {}", detail::many(hidden as u64, "more line"));
    (hidden > 0).then(|| (vec![piece(text, scene.theme.dim())], Vec::new()))
}

fn said(said: &Said, width: u16, most: usize, scene: &Scene<'_>, windows: &Windows) -> Vec<Line> {
    let theme = scene.theme;
    let time = piece(scene.time_of_day(said.at), theme.dim()).rank(1);
    match &said.what {
        SaidWhat::Message { told, text, error } => {
            let name = if *told { piece("told", theme.bold()) } else { piece("assistant", theme.accent()) };
            let mut out = vec![(vec![name], vec![time])];
            let full =
                said.place.and_then(|place| windows.messages.get(&place)).filter(|m| m.lines > 0 || m.thought > 0);
            if let Some(thought) = full.map(|m| m.thought).filter(|n| *n > 0) {
                let text = format!("▸ thought for {}", detail::many(thought as u64, "line"));
                out.push((vec![piece(format!("  {text}"), theme.dim())], Vec::new()));
            }
            let (text, all) = full.map_or((text, text.len()), |m| (&m.text, m.lines));
            let wrapped: Vec<SafeText> =
                text.iter().flat_map(|l| wrapped(l, usize::from(width.saturating_sub(2)), scene.reveal)).collect();
            out.extend(
                wrapped.iter().take(most).map(|line| (vec![piece(format!("  {line}"), theme.plain())], Vec::new())),
            );
            let hidden = all.saturating_sub(text.len()) + wrapped.len().saturating_sub(most);
            out.extend(more_lines(hidden, scene));
            out.extend(error.iter().map(|e| (vec![piece(format!("  ✗ {e}"), theme.bad())], Vec::new())));
            out
        }
        SaidWhat::Call { tool, args, .. } => {
            let left = vec![piece(format!("  › {tool}"), theme.accent()), piece(args.to_string(), theme.dim()).gap(1)];
            vec![(left, vec![time])]
        }
        SaidWhat::Result { tool, outcome, text, .. } => {
            let (glyph, style) = calls::outcome_mark(Some(*outcome), scene);
            let word = calls::outcome_word(Some(*outcome)).map(|word| format!(" {word}")).unwrap_or_default();
            let first = text.iter().find(|l| !l.is_empty()).map(SafeText::to_string).unwrap_or_default();
            let more = if text.len() > 1 {
                format!(
                    "{} lines",
                    if text.len() >= SHOWN { format!("{SHOWN} or more") } else { text.len().to_string() }
                )
            } else {
                String::new()
            };
            let rest = if *outcome == ToolOutcome::Ok { theme.dim() } else { theme.bad() };
            let left = vec![
                piece(format!("  {glyph}"), style),
                piece(format!("{tool}{word}"), theme.dim()).gap(1),
                piece(first, rest).gap(2),
            ];
            vec![(left, vec![piece(more, theme.dim()).rank(2), time.gap(2)])]
        }
    }
}

/// The number of the entry that is drawn in this row of the screen.
pub(super) fn at(area: Rect, y: u16, step: &StepState, scene: &Scene<'_>, ui: &UiState) -> Option<u64> {
    let tab = ui.tab(step.id);
    // What was read of messages makes them higher than they are without it.
    if tab == Tab::Transcript {
        return None;
    }
    let listed = scene.entries().listed(ui, step);
    let windows = Windows::default();
    let inner = Rect { x: area.x + MARK, width: area.width.saturating_sub(MARK), ..area };
    let shown =
        visible(inner, &listed, |place| lines(tab, listed.number(place)?, inner.width, SHOWN, step, scene, &windows));
    let row = usize::from(y.checked_sub(area.y)?) + shown.cut;
    listed.number(shown.items.get(row)?.0)
}

/// Where the keys are among all entries. Of those that were not read nobody knows how many there are, but of calls.
fn place(step: &StepState, tab: Tab, earlier: Earlier, listed: &Listed<'_>) -> String {
    let unknown = matches!(earlier, Earlier::Unread | Earlier::Unlisted);
    let (mut at, mut of) = (listed.at as u64, listed.len() as u64);
    if unknown && tab == Tab::Tools && listed.sieve == Sieve::All {
        // Those that are listed are the last ones.
        at += step.tool_count.max(of) - of;
        of = step.tool_count.max(of);
        return format!("{} of {}", grouped(at + 1), grouped(of));
    }
    format!("{} of {}{}", grouped(at + 1), grouped(of), if unknown { "+" } else { "" })
}

/// What is listed and where the keys are, for the frame.
pub(super) fn whereabouts(step: &StepState, scene: &Scene<'_>, ui: &UiState) -> Vec<Piece> {
    let theme = scene.theme;
    let listed = scene.entries().listed(ui, step);
    let mut out: Vec<Piece> = Vec::new();
    out.extend(listed.sieve.word().map(|word| piece(word, theme.accent())));
    let tab = ui.tab(step.id);
    let earlier = scene.entries().earlier(step, tab);
    let percent = scene.older.reading().filter(|_| scene.entries().wanted(ui, step));
    out.extend(percent.map(|done| piece(format!("reading earlier ones {done}%"), theme.accent()).rank(4).gap(2)));
    if earlier == Earlier::Unlisted {
        // While what happened is still read from its beginning, they come by themselves.
        let text =
            if ui.reading.is_some() { "earlier ones are being read" } else { "earlier ones are in the files only" };
        out.push(piece(text, theme.dim()).rank(3).gap(2));
    }
    out.extend(output::matches(step, tab, listed.newest().unwrap_or_default(), ui, scene));
    if listed.is_empty() {
        return out;
    }
    if listed.follows {
        let word = if step.phase.is_terminal() { "end" } else { at_end(scene, ui) };
        out.push(piece(word, theme.dim()).gap(2));
    } else {
        out.push(piece(place(step, tab, earlier, &listed), theme.plain()).gap(2));
        let key = ui.keymap.hint(crate::deck::actions::Action::Follow);
        out.push(piece(format!("{key} follow"), theme.bold()).rank(5).gap(2));
    }
    out
}
