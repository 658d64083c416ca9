//! Breaking a line of a log into rows.

use unicode_segmentation::UnicodeSegmentation;

use crate::text::{self, SafeText, width};

/// Breaks runs into rows of at most `room` cells: at the last space when it is near the end of the row, so that prose
/// can be read, and else where the row is full, so that a long word or a table does not leave half a row empty.
#[must_use]
pub fn wrap(runs: Vec<text::Run>, room: usize) -> Vec<Vec<text::Run>> {
    if runs.iter().map(|r| r.text.width()).sum::<usize>() <= room {
        return vec![runs];
    }
    let mut rows = Vec::new();
    let mut row: Vec<(&str, text::Style)> = Vec::new();
    let mut used = 0;
    for run in &runs {
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
