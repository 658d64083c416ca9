//! Printing lines that are safe. A reader that has gone away ends the printing quietly.

use std::io::Write;

use super::out::quiet;
use crate::text::SafeText;

/// Writes to standard output, buffered.
///
/// # Errors
/// Anything but a reader that has gone away.
pub(super) fn out(write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> anyhow::Result<()> {
    quietly(write, &mut std::io::BufWriter::new(std::io::stdout().lock()))
}

/// Writes to standard error, buffered.
///
/// # Errors
/// Anything but a reader that has gone away.
pub(super) fn err(write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> anyhow::Result<()> {
    quietly(write, &mut std::io::BufWriter::new(std::io::stderr().lock()))
}

fn quietly(write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>, to: &mut dyn Write) -> anyhow::Result<()> {
    Ok(quiet(write(to).and_then(|()| to.flush()))?)
}

/// One line of text from outside.
pub(super) fn line(to: &mut dyn Write, text: &str) -> std::io::Result<()> {
    writeln!(to, "{}", SafeText::line(text))
}

/// Rows with their columns aligned, two spaces between; the last column is as long as it is.
pub(super) fn table(to: &mut dyn Write, rows: &[Vec<String>]) -> std::io::Result<()> {
    let rows: Vec<Vec<SafeText>> =
        rows.iter().map(|row| row.iter().map(|cell| SafeText::line(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|i| rows.iter().filter_map(|row| row.get(i)).map(SafeText::width).max().unwrap_or(0))
        .collect();
    for row in rows {
        let mut text = String::new();
        for (i, (cell, width)) in row.iter().zip(&widths).enumerate() {
            text.push_str(cell.as_str());
            if i + 1 < row.len() {
                text.push_str(&" ".repeat(width.saturating_sub(cell.width()) + 2));
            }
        }
        writeln!(to, "{}", text.trim_end())?;
    }
    Ok(())
}
