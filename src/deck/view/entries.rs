//! The tabs that list things: calls, what was said, what happened. The entry that the keys are at has a mark and is
//! always in sight; only what is visible is laid out.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::entry::{self, Line};
use super::paint::{Piece, piece, put, put_cut, row};
use super::{Scene, at_end, attempts, detail, marks, output};
use crate::deck::entries::{Earlier, Sieve};
use crate::deck::listed::Listed;
use crate::deck::model::{Scroll, Tab, UiState};
use crate::deck::reading::SHOWN;
use crate::deck::window::Windows;
use crate::run::{RunnerKind, StepState};
use crate::text::{SafeText, grouped};

/// Cells at the left for the mark.
const MARK: u16 = 2;
/// So many entries before one are looked at for what was before it: the record of one may be gone.
const LOOKED_BACK: usize = 8;

/// An entry that is drawn.
#[derive(Default)]
struct Item {
    /// Its place in the list.
    place: usize,
    /// Lines above it that are not its own.
    above: usize,
    /// All its lines.
    lines: Vec<Line>,
}

/// What a list is drawn of.
#[derive(Clone, Copy)]
struct List<'a> {
    step: &'a StepState,
    tab: Tab,
    listed: &'a Listed<'a>,
    scene: &'a Scene<'a>,
    windows: &'a Windows,
    width: u16,
    /// Of something long so many lines are shown.
    most: usize,
}

impl List<'_> {
    /// The entry at a place, with lines where another attempt begins between it and the one before it.
    fn item(&self, place: usize) -> Option<Item> {
        let Self { step, tab, listed, scene, windows, width, most } = *self;
        let mut lines = Vec::new();
        let attempts = matches!(tab, Tab::Tools | Tab::Transcript) && step.attempts.len() > 1;
        let then = if attempts { self.attempts(place) } else { None };
        if let Some(then) = then {
            let before = (place.saturating_sub(LOOKED_BACK)..place).rev().find_map(|place| self.attempts(place));
            // Of what is before the first entry nothing may be known.
            let whole = place == 0 && matches!(scene.entries().earlier(step, tab), Earlier::None | Earlier::Listed);
            let before = before.or(whole.then_some(1)).unwrap_or(then);
            lines = attempts::lines(step, before, then, width, scene);
        }
        let above = lines.len();
        lines.extend(entry::lines(tab, listed.number(place)?, width, most, step, scene, windows)?);
        if let Some(then) = then.filter(|_| place + 1 == listed.len()) {
            lines.extend(attempts::lines(step, then, step.attempts.len(), width, scene));
        }
        Some(Item { place, above, lines })
    }

    /// How many attempts had begun when the entry at a place was.
    fn attempts(&self, place: usize) -> Option<usize> {
        let Self { step, tab, listed, scene, .. } = *self;
        Some(attempts::begun(step, entry::began(tab, listed.number(place)?, step, scene)?))
    }
}

/// The entries that are visible.
struct Shown {
    /// From the first to the last.
    items: Vec<Item>,
    /// Lines of the first one that are above the area.
    cut: usize,
}

impl Shown {
    /// The places of those that can be seen whole.
    fn whole(&self, high: usize) -> impl Iterator<Item = usize> {
        let mut end = 0;
        let ends = self.items.iter().map(move |Item { place, lines, .. }| {
            let begin = end;
            end += lines.len();
            (*place, begin, end)
        });
        ends.filter(move |(_, begin, end)| *begin >= self.cut && *end <= self.cut + high).map(|(place, ..)| place)
    }

    /// Whether each entry that is listed is here, whole.
    fn all(&self, listed: &Listed<'_>, height: u16) -> bool {
        let rows: usize = self.items.iter().map(|item| item.lines.len()).sum();
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
    let inner = inside(area);
    let of = |most: usize| {
        let list = List { step, tab, listed: &listed, scene, windows, width: inner.width, most };
        visible(inner, &listed, |place| list.item(place))
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
    if let Some(text) = missing(&shown, &listed, area.height, step, scene, ui) {
        put_cut(buf, inner, 2, 0, &SafeText::line(&text), inner.width.saturating_sub(2), theme.dim());
        dy = 1;
    }
    for (n, Item { place, above, lines }) in shown.items.into_iter().enumerate() {
        let cut = if n == 0 { shown.cut } else { 0 };
        let begin = dy + u16::try_from(above.saturating_sub(cut)).unwrap_or(u16::MAX);
        if place == listed.at && begin < area.height {
            put(buf, area, 0, begin, "›", theme.select());
        }
        for (left, right) in lines.into_iter().skip(cut) {
            if dy < area.height {
                row(buf, inner, dy, left, right);
            }
            dy += 1;
        }
        if let Some(needle) = &needle {
            let high = dy.saturating_sub(begin);
            let rows = Rect { y: inner.y.saturating_add(begin), height: high, ..inner }.intersection(inner);
            let found = ui.match_in(step.id, tab);
            let here = found.is_some() && found == listed.number(place);
            marks::matches(buf, rows, needle, here && place == listed.at, scene);
        }
    }
}

/// Where entries are drawn, beside the mark.
fn inside(area: Rect) -> Rect {
    Rect { x: area.x + MARK, width: area.width.saturating_sub(MARK), ..area }
}

/// What stands above the entries where all that are listed are seen, a row is left, and there are others before them that
/// nobody has read yet.
fn missing(
    shown: &Shown,
    listed: &Listed<'_>,
    height: u16,
    step: &StepState,
    scene: &Scene<'_>,
    ui: &UiState,
) -> Option<String> {
    let tab = ui.tab(step.id);
    let entries = scene.entries();
    let unread = entries.earlier(step, tab) == Earlier::Unread && !entries.wanted(ui, step);
    if !unread || !shown.all(listed, height.saturating_sub(1)) {
        return None;
    }
    // Only calls are counted by whoever makes them.
    let many = step.tool_count.saturating_sub(listed.len() as u64);
    let what = if tab == Tab::Tools && many > 0 {
        detail::many(many, "earlier call")
    } else {
        "there are earlier ones".to_owned()
    };
    Some(format!("{what}, {} lists them", ui.keymap.hint(crate::deck::actions::Action::First)))
}

/// The entries around the one that the keys are at that fit: that one whole, those before it, and when there are not
/// enough of them those after it.
fn visible(area: Rect, listed: &Listed<'_>, mut item: impl FnMut(usize) -> Option<Item>) -> Shown {
    let high = usize::from(area.height);
    let mut items = std::collections::VecDeque::new();
    let mut used = 0;
    let mut cut = 0;
    for place in (0..=listed.at).rev() {
        let Some(found) = item(place) else { continue };
        used += found.lines.len();
        items.push_front(found);
        if used >= high {
            cut = used - high;
            break;
        }
    }
    let mut place = listed.at + 1;
    while used < high && place < listed.len() {
        if let Some(found) = item(place) {
            used += found.lines.len();
            items.push_back(found);
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
    let inner = inside(area);
    let listed = scene.entries().listed(ui, step);
    let list = List { step, tab, listed: &listed, scene, windows, width: inner.width, most: SHOWN };
    let rows = |place: &usize| list.item(*place).map_or(0, |item| item.lines.len());
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
                let shown = visible(inner, &Listed { at, ..listed.clone() }, |place| list.item(place));
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

/// The number of the entry that is drawn in this row of the screen.
pub(super) fn at(area: Rect, y: u16, step: &StepState, scene: &Scene<'_>, ui: &UiState) -> Option<u64> {
    let tab = ui.tab(step.id);
    // What was read of messages makes them higher than they are without it.
    if tab == Tab::Transcript {
        return None;
    }
    let listed = scene.entries().listed(ui, step);
    let windows = Windows::default();
    let inner = inside(area);
    let list = List { step, tab, listed: &listed, scene, windows: &windows, width: inner.width, most: SHOWN };
    let shown = visible(inner, &listed, |place| list.item(place));
    let above = usize::from(missing(&shown, &listed, area.height, step, scene, ui).is_some());
    let row = (usize::from(y.checked_sub(area.y)?) + shown.cut).checked_sub(above)?;
    let mut rows = shown.items.iter().flat_map(|item| item.lines.iter().map(|_| item.place));
    listed.number(rows.nth(row)?)
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
