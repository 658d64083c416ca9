//! The dialog that answers a question of an agent.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Scene;
use super::overlay::{dialog_box, inside_box};
use super::paint::{piece, put, put_cut, row};
use super::secrets::wrapped;
use crate::deck::answer_dialog::{does, lines, question};
use crate::deck::model::AnswerDialog;
use crate::run::Question;
use crate::text::{SafeText, SecretLines, clock};

/// The widest dialog, in cells with its frame.
const WIDE: u16 = 92;
/// How many rows of one's own words are seen; the end of them.
const WORDS: usize = 4;

/// So long before a question is refused by itself, that is an alarm.
const SOON: std::time::Duration = std::time::Duration::from_secs(30);

/// The dialog before it is drawn.
struct Sheet {
    /// What is asked, each row with the mark of what would be written, or of what is left out of it.
    text: Vec<(SafeText, Option<char>)>,
    /// The end of one's own words.
    typed: Vec<SafeText>,
    /// How many rows there are for what is asked; with the one that says how much there is, where it is too long.
    room: usize,
    /// A row about the answers, which is only there where there is room for it.
    foot: bool,
    /// A blank row on either side of the answers, where there is room for these too.
    air: bool,
}

impl Sheet {
    fn new((wide, high): (u16, u16), dialog: &AnswerDialog, question: &Question, reveal: bool) -> Self {
        let asking = &question.asking;
        let wide = usize::from(WIDE.min(wide).saturating_sub(4)).max(1);
        let rows = |text: &str| {
            SafeText::block(text).iter().flat_map(|line| wrapped(line, wide, reveal)).map(|row| (row, None)).collect()
        };
        let mut text: Vec<(SafeText, Option<char>)> = rows(&asking.text);
        // What it is about in full, where the question itself does not say it.
        if !asking.args.is_empty() && !asking.text.contains(asking.args.trim()) {
            let args: Vec<_> = rows(&asking.args);
            text.extend(args);
        }
        let mut above = SecretLines::default();
        for line in asking.detail.lines() {
            let mark = line.chars().next().filter(|mark| matches!(mark, '+' | '-' | '…'));
            let signed = mark.filter(|mark| *mark != '…');
            let behind = SafeText::line(if signed.is_some() { line.get(2..).unwrap_or_default() } else { line });
            let behind = match mark {
                _ if reveal => behind,
                // How much is left out is no line of what is written, so it is no part of a key that goes over lines.
                Some('…') => behind.masked(),
                _ => behind.masked_below(&mut above),
            };
            let line = match signed {
                Some(sign) => SafeText::line(&format!("{sign} {behind}")),
                None => behind,
            };
            text.extend(line.wrap(wide).into_iter().map(|row| (row, mark)));
        }
        let typed: Vec<SafeText> = if asking.takes_text() {
            // One mark at a time: the cursor is where what is typed goes.
            let own = if dialog.index.is_none() { format!("{}▏", dialog.text) } else { dialog.text.clone() };
            let wide = wide.saturating_sub(2 + beside(question).len());
            let all: Vec<SafeText> = SafeText::block(&own).iter().flat_map(|l| l.wrap(wide)).collect();
            all.get(all.len().saturating_sub(WORDS)..).unwrap_or_default().to_vec()
        } else {
            Vec::new()
        };
        // The frame is two of them.
        let answers = lines(question).len() + typed.len() + 2;
        let high = usize::from(high);
        // Where one would have to page for it, the rows are for what is asked.
        let (foot, air) = (high > text.len() + answers, high >= text.len() + answers + 3);
        let sheet = Self { text, typed, room: 0, foot, air };
        let room = high.saturating_sub(answers + sheet.spare()).max(1);
        Self { room, ..sheet }
    }

    /// Rows that are only there where there is room for them.
    fn spare(&self) -> usize {
        usize::from(self.foot) + usize::from(self.air) * 2
    }

    /// Whether a row says how much of what is asked there is.
    fn tells(&self) -> bool {
        self.text.len() > self.seen() && self.room > 1
    }

    /// How high the dialog is.
    fn high(&self, question: &Question) -> u16 {
        let answers = lines(question).len() + self.typed.len() + 2;
        u16::try_from(self.text.len().min(self.room) + answers + self.spare()).unwrap_or(u16::MAX)
    }

    /// The rows of what is asked that are seen at once.
    fn seen(&self) -> usize {
        if self.text.len() > self.room { self.room.saturating_sub(1).max(1) } else { self.text.len() }
    }
}

/// Where the choices are, which of them is the first visible one, and how many there are.
pub(super) fn choices(area: Rect, dialog: &AnswerDialog, scene: &Scene<'_>) -> Option<(Rect, usize, usize)> {
    let (area, question) = (room(area), question(scene.state, dialog)?);
    let sheet = Sheet::new((area.width, area.height), dialog, question, scene.reveal);
    let inner = inside_box(area, (WIDE, sheet.high(question)));
    let count = lines(question).len();
    let above = sheet.seen() + usize::from(sheet.tells()) + usize::from(sheet.air);
    let above = u16::try_from(above).unwrap_or(u16::MAX);
    let height = inner.height.saturating_sub(above).min(u16::try_from(count).unwrap_or(u16::MAX));
    Some((Rect { y: inner.y.saturating_add(above), height, ..inner }, 0, count))
}

/// What stands before one's own words where there are choices too.
fn beside(question: &Question) -> &'static str {
    match (lines(question).is_empty(), question.asking.many) {
        (true, _) => "",
        (false, true) => "and type: ",
        (false, false) => "or type: ",
    }
}

/// How many rows of what is asked a page has on a screen of this size, so that no row is passed over, and how far it can
/// be scrolled.
#[must_use]
pub fn pages(size: (u16, u16), dialog: &AnswerDialog, question: &Question, reveal: bool) -> (usize, usize) {
    let area = room(Rect { x: 0, y: 0, width: size.0, height: size.1.saturating_sub(1) });
    let sheet = Sheet::new((area.width, area.height), dialog, question, reveal);
    let seen = sheet.seen();
    (seen, sheet.text.len().saturating_sub(seen))
}

/// Where the dialog may be: below the lines about the run and about who needs somebody, where there is room for both.
fn room(area: Rect) -> Rect {
    let above = if area.height >= 19 { 2 } else { 0 };
    Rect { y: area.y + above, height: area.height - above, ..area }
}

/// Draws it. Of what is asked a part is seen where there is more than fits, of the answers always all: who answers has to
/// see what will be done.
pub(super) fn draw(buf: &mut Buffer, area: Rect, dialog: &AnswerDialog, scene: &Scene<'_>) {
    let theme = scene.theme;
    let area = room(area);
    let name = scene.state.step(dialog.step).map(|s| SafeText::line(s.title()).truncate(30)).unwrap_or_default();
    let title = format!("step {} {name} asks", dialog.step);
    let Some(question) = question(scene.state, dialog) else {
        let inner = dialog_box(buf, area, (WIDE.min(60), 5), &title, scene);
        put(buf, inner, 0, 1, "the question is not open any more; any key closes this", theme.plain());
        return;
    };
    let asking = &question.asking;
    let choices = lines(question);
    let sheet = Sheet::new((area.width, area.height), dialog, question, scene.reveal);
    let (seen, all) = (sheet.seen(), sheet.text.len());
    let time = match question.until.map(|until| until.since(scene.now)) {
        // The one figure that presses.
        Some(left) => {
            let style = if left < SOON { theme.alarm() } else { theme.bold() };
            piece(format!("refused in {}", clock(left)), style)
        }
        None => piece(format!("asked {} ago", clock(scene.now.since(question.asked_at))), theme.dim()),
    };
    let time = vec![time.rank(2)];
    let typed = &sheet.typed;
    let inner = dialog_box(buf, area, (WIDE, sheet.high(question)), &title, scene);
    let mut dy = 0;
    let top = dialog.top.min(all.saturating_sub(seen));
    for (line, mark) in sheet.text.iter().skip(top).take(seen) {
        let style = match mark {
            Some('+') => theme.good(),
            Some('…') => theme.dim(),
            Some(_) => theme.bad(),
            None => theme.bold(),
        };
        put_cut(buf, inner, 0, dy, line, inner.width, style);
        dy += 1;
    }
    if sheet.tells() {
        let lines = if inner.width < 40 { "" } else { "lines " };
        let text = format!("{lines}{}-{} of {all}   pgup pgdn", top + 1, top + seen);
        row(buf, inner, dy, vec![piece(text, theme.dim())], if sheet.foot { Vec::new() } else { time.clone() });
        dy += 1;
    }
    // Where there is no row about the answers, what is wrong stands above them.
    let told = if sheet.tells() && !sheet.foot { dy.saturating_sub(1) } else { inner.height.saturating_sub(1) };
    dy += u16::from(sheet.air);
    for (n, line) in choices.iter().enumerate() {
        let chosen = dialog.index == Some(n);
        if chosen {
            put(buf, inner, 0, dy, "›", theme.select());
        }
        let key = line.key.map_or_else(String::new, |key| key.to_string());
        put(buf, inner, 2, dy, &key, theme.key());
        let style = if chosen { theme.select() } else { theme.plain() };
        let tick = if dialog.ticked.contains(&n) { "[x] " } else { "[ ] " };
        let text = SafeText::line(&format!("{}{}", if asking.many { tick } else { "" }, line.text));
        put_cut(buf, inner, 4, dy, &text, inner.width.saturating_sub(4), style);
        dy += 1;
    }
    for (n, line) in typed.iter().enumerate() {
        let meant = dialog.index.is_none();
        put(buf, inner, 0, dy, if n == 0 && meant { "›" } else { " " }, theme.select());
        // Where words stand beside choices, the text says what it is, and stands back while a choice is marked.
        let dx = if n == 0 { put(buf, inner, 2, dy, beside(question), theme.dim()) } else { 2 };
        let style = if meant || asking.many { theme.plain() } else { theme.dim() };
        put_cut(buf, inner, dx, dy, line, inner.width.saturating_sub(dx), style);
        dy += 1;
    }
    if let Some(wrong) = &dialog.wrong {
        let blank = " ".repeat(usize::from(inner.width));
        put(buf, inner, 0, told, &blank, theme.plain());
        put_cut(buf, inner, 0, told, wrong, inner.width, theme.bad());
        return;
    }
    if !sheet.foot {
        return;
    }
    let mut left = Vec::new();
    // The key of a choice stands beside it.
    let stands = |key: &str| choices.iter().any(|line| line.key.is_some_and(|own| key == own.to_string()));
    for (key, word) in does(question, dialog).into_iter().filter(|(key, _)| !stands(key)) {
        left.push(piece(key, theme.key()).gap(3));
        left.push(piece(word, theme.dim()).gap(1));
    }
    left.extend([piece("esc", theme.key()).rank(1).gap(3), piece("later", theme.dim()).rank(1).gap(1)]);
    if asking.many {
        left.extend([piece("space", theme.key()).gap(3), piece("tick several", theme.dim()).gap(1)]);
    }
    row(buf, inner, inner.height.saturating_sub(1), left, time);
}
