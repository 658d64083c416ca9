//! What a call that waits for a permission would write, told in a few lines (product 4): a person who is asked whether a
//! file may be changed has to see how.

use crate::run::Asking;
use crate::text::prefix;

/// Before a line that goes.
pub(super) const GOES: char = '-';
/// Before a line that comes.
pub(super) const COMES: char = '+';
/// The most of one line, in bytes.
const LINE: usize = 300;
/// What the row about what is left out may take, in bytes.
const LEFT: usize = 48;

/// The old and the new texts in their order, line by line behind their marks. Each has the same share of
/// [`Asking::DETAIL`] bytes, so that a long old text leaves room for the new one; how many lines are left out stands where
/// they would have been.
pub(super) fn written<'t>(parts: impl Iterator<Item = (char, &'t str)>) -> String {
    let parts: Vec<(char, &str)> = parts.filter(|(_, text)| !text.is_empty()).collect();
    let mut told = String::new();
    let mut left_parts = 0_usize;
    for (n, (mark, text)) in parts.iter().enumerate() {
        // What the parts before did not use is for those that come.
        let share = (Asking::DETAIL.saturating_sub(told.len())) / (parts.len() - n);
        if share < 2 * LEFT {
            left_parts = parts.len() - n;
            break;
        }
        let end = told.len() + share - LEFT;
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let kept = prefix(line, LINE);
            let cut = if kept.len() < line.len() { "…" } else { "" };
            if told.len() + kept.len() + cut.len() + 3 > end {
                let left = lines.count() + 1;
                let word = if left == 1 { "line" } else { "lines" };
                // Without a mark: it stands in no file.
                let does = if *mark == GOES { "go" } else { "come" };
                told.push_str(&format!("… {left} more {word} that {does}\n"));
                break;
            }
            told.push_str(&format!("{mark} {kept}{cut}\n"));
        }
    }
    if left_parts > 0 {
        told.push_str(&format!("… {left_parts} more changes\n"));
    }
    told.truncate(told.trim_end_matches('\n').len());
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_lines_have_their_marks() {
        let told = written([(GOES, "a\n\nb"), (COMES, "c"), (COMES, "")].into_iter());
        assert_eq!(told, "- a\n- \n- b\n+ c");
        assert_eq!(written(std::iter::empty()), "");
    }

    #[test]
    fn what_is_left_out_is_counted_and_each_part_has_its_share() {
        let long = "line\n".repeat(5000);
        let told = written([(GOES, long.as_str()), (COMES, long.as_str())].into_iter());
        assert!(told.len() <= Asking::DETAIL, "{}", told.len());
        let shown = |mark: &str| told.lines().filter(|line| *line == format!("{mark} line")).count();
        for (mark, does) in [("-", "go"), ("+", "come")] {
            assert!(shown(mark) > 300, "{told}");
            assert!(told.contains(&format!("\n… {} more lines that {does}", 5000 - shown(mark))), "{told}");
        }
        let wide = written([(COMES, "é".repeat(5000).as_str())].into_iter());
        assert!(wide.ends_with('…') && wide.len() < LINE + 10, "{wide}");
        let many = written(std::iter::repeat_n((COMES, long.as_str()), 100));
        assert!(many.len() <= Asking::DETAIL && many.ends_with("more changes"), "{} {many}", many.len());
        assert!(written([(COMES, "x\n".repeat(5000).as_str())].into_iter()).len() > Asking::DETAIL / 2);
    }
}
