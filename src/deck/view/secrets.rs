//! A mask over what looks like a key (product 7): before a text is wrapped, because no row has the whole of a key then,
//! and over the finished picture for all that stands in one row.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::text::{SafeText, secrets};

/// A text in rows, masked unless the person wants to see it.
pub(super) fn wrapped(text: &SafeText, cells: usize, reveal: bool) -> Vec<SafeText> {
    if reveal { text.wrap(cells) } else { text.masked().wrap(cells) }
}

/// Masks what looks like a key in each row of a picture.
pub fn mask(buf: &mut Buffer, area: Rect) {
    let area = area.intersection(buf.area);
    let mut text = String::new();
    // To which column each byte of the text belongs.
    let mut columns = Vec::new();
    for y in area.top()..area.bottom() {
        text.clear();
        columns.clear();
        for x in area.left()..area.right() {
            let symbol = buf.cell((x, y)).map_or("", |cell| cell.symbol());
            columns.extend(std::iter::repeat_n(x, symbol.len()));
            text.push_str(symbol);
        }
        // What stands in another box is no part of a secret in this one.
        let mut begin = 0;
        let found = text.split_inclusive(['│', '|', '┃']).flat_map(|part| {
            let from = begin;
            begin += part.len();
            let inside = part.trim_end_matches(['│', '|', '┃']);
            secrets(inside).into_iter().map(move |range| from + range.start..from + range.end)
        });
        for range in found {
            for x in columns.get(range).unwrap_or_default() {
                if let Some(cell) = buf.cell_mut((*x, y)).filter(|cell| cell.symbol() != " ") {
                    cell.set_symbol("*");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deck::view::tests::Stage;
    use crate::run::{Asking, Question, Timestamp};

    #[test]
    fn a_row_that_shows_a_key_is_masked_and_others_are_not() {
        let area = Rect::new(0, 0, 40, 3);
        let mut buf = Buffer::empty(area);
        buf.set_string(0, 0, "│ 日 API_KEY=Abcd1234 │ done", ratatui::style::Style::new());
        buf.set_string(0, 1, "│ token count: 12345678", ratatui::style::Style::new());
        buf.set_string(0, 2, "│ -----BEGIN PRIVATE KEY-----x │ next", ratatui::style::Style::new());
        let before = buf.clone();
        mask(&mut buf, area);
        let row = |buf: &Buffer, y: u16| (0..40).map(|x| buf[(x, y)].symbol().to_owned()).collect::<String>();
        assert!(row(&buf, 0).contains("API_KEY=******** │ done"), "{}", row(&buf, 0));
        assert_eq!(row(&buf, 1), row(&before, 1));
        assert!(row(&buf, 2).contains("KEY-----* │ next"), "{}", row(&buf, 2));
    }

    /// What is asked, what is called and what was called with a key in it, at sizes where it is cut here or there: on the
    /// line about who needs somebody, in the list, with the tools, in what happened and in the dialog.
    #[test]
    fn a_key_is_seen_nowhere_before_it_is_revealed_wherever_it_is_cut() {
        let key = "q8Zk2LmN0pR7sT4vW9xYb3Cd6Ef1Gh5J";
        let command = format!("curl -H 'Authorization: Bearer {key}' https://example.com/a/very/long/path");
        for wide in (30..=200).step_by(7) {
            let mut stage = Stage::new(wide, 36);
            let text = format!("May it use Bash? {command}");
            let asking = Asking { text, args: command.clone(), ..Asking::default() };
            let question = Question { id: "q1".into(), asking, asked_at: Timestamp::from_millis(5), until: None };
            stage.feed.state.steps[2].questions.push(question);
            for step in &mut stage.feed.state.steps {
                step.error = step.error.as_ref().map(|_| command.clone());
                step.open.iter_mut().for_each(|call| (call.args, call.path) = (command.clone(), None));
                step.recent_tools.iter_mut().for_each(|call| (call.args, call.path) = (command.clone(), None));
            }
            for keys in ["", "w", "A", "z"] {
                stage.ui.overlays.clear();
                stage.keys(keys);
                let text = stage.text();
                assert!(!text.contains("q8") && !text.contains("sT4vW9"), "{wide} {keys:?}\n{text}");
            }
            stage.keys("zM");
            assert!(wide < 120 || stage.text().contains("q8Zk"), "{wide}\n{}", stage.text());
        }
    }

    #[test]
    fn a_key_that_is_wrapped_is_masked_as_a_whole() {
        let text = SafeText::line("the key is sk-abcdefghijklmnopqrstuvwxyz0123456789 as it was");
        let rows = wrapped(&text, 20, false);
        assert!(rows.iter().all(|row| !row.as_str().contains("ghij") && !row.as_str().contains("789")), "{rows:?}");
        assert_eq!(wrapped(&text, 20, true), text.wrap(20));
    }
}
