//! Breaking a line of a log into rows.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::text::{self, SafeText, is_plain, width};

/// Breaks runs into rows of at most `room` cells: at the last space when it is near the end of the row, so that prose
/// can be read, and else where the row is full, so that a long word or a table does not leave half a row empty.
#[must_use]
pub fn wrap(runs: Vec<text::Run>, room: usize) -> Vec<Vec<text::Run>> {
    if runs.iter().map(|r| r.text.width()).sum::<usize>() <= room {
        return vec![runs];
    }
    // Most of what is printed, and half of what a picture of busy panes costs where each character is looked at.
    if room > 0 && runs.iter().all(|run| is_plain(run.text.as_str())) {
        let text: String = runs.iter().map(|run| run.text.as_str()).collect();
        return breaks(text.as_bytes(), room).into_iter().map(|row| cut(&runs, row)).collect();
    }
    by_clusters(&runs, room)
}

/// The rows of a text whose bytes take a cell each.
fn breaks(text: &[u8], room: usize) -> Vec<Range<usize>> {
    let mut rows = Vec::new();
    let mut begin = 0;
    while let Some(next) = text.get(begin + room) {
        let full = begin + room;
        let near = begin + room - room / 3;
        let space = text.get(near..full).and_then(|end| end.iter().rposition(|byte| *byte == b' '));
        // A space at the edge ends the row and is not needed on either side.
        let (end, rest) = match space {
            _ if *next == b' ' => (full, full + 1),
            Some(at) => (near + at + 1, near + at + 1),
            None => (full, full),
        };
        rows.push(begin..end);
        begin = rest;
    }
    rows.push(begin..text.len());
    rows
}

/// A part of runs, by the bytes of all their texts together.
fn cut(runs: &[text::Run], part: Range<usize>) -> Vec<text::Run> {
    let mut at = 0;
    let mut out = Vec::new();
    for run in runs {
        let (begin, end) = (at, at + run.text.as_str().len());
        at = end;
        let inside = part.start.max(begin)..part.end.min(end);
        if !inside.is_empty() {
            out.push(text::Run { text: run.text.part(inside.start - begin..inside.end - begin), style: run.style });
        }
    }
    out
}

/// The same for texts of any characters.
fn by_clusters(runs: &[text::Run], room: usize) -> Vec<Vec<text::Run>> {
    let mut rows = Vec::new();
    let mut row: Vec<(&str, text::Style)> = Vec::new();
    let mut used = 0;
    for run in runs {
        for cluster in run.text.as_str().graphemes(true) {
            let wide = width(cluster);
            // A space at the edge ends the row and is not needed on either side.
            if used + wide > room && used > 0 {
                let near = room - room / 3;
                let space = row.iter().rposition(|(c, _)| *c == " ").filter(|at| *at >= near && cluster != " ");
                let rest = space.map(|at| row.split_off(at + 1)).unwrap_or_default();
                rows.push(joined(&row));
                used = rest.iter().map(|(c, _)| width(c)).sum();
                row = rest;
                if cluster == " " && row.is_empty() {
                    continue;
                }
            }
            row.push((cluster, run.style));
            used += wide;
        }
    }
    rows.push(joined(&row));
    rows
}

/// Clusters as runs: neighbours of one style together.
fn joined(clusters: &[(&str, text::Style)]) -> Vec<text::Run> {
    clusters
        .chunk_by(|a, b| a.1 == b.1)
        .map(|part| {
            let text: String = part.iter().map(|(c, _)| *c).collect();
            text::Run { text: SafeText::line(&text), style: part.first().map(|p| p.1).unwrap_or_default() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::Style;

    /// Runs of texts, neighbours in two styles.
    fn runs(texts: &[String]) -> Vec<text::Run> {
        let style = |n: usize| Style { bold: n % 2 == 1, ..Style::default() };
        let run = |(n, text): (usize, &String)| text::Run { text: SafeText::line(text), style: style(n) };
        texts.iter().filter(|text| !text.is_empty()).enumerate().map(run).collect()
    }

    proptest! {
        #[test]
        fn plain_text_breaks_where_any_text_does(
            texts in proptest::collection::vec("[a-z0-9/.]{0,12} {0,2}", 0..12),
            room in 1_usize..40,
        ) {
            let runs = runs(&texts);
            prop_assume!(runs.iter().map(|r| r.text.width()).sum::<usize>() > room);
            prop_assert_eq!(wrap(runs.clone(), room), by_clusters(&runs, room));
        }
    }
}
