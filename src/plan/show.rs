//! Problems as people read them: what, where, the line with a mark below it, and what to do.

use super::{Problem, Problems, Severity};
use crate::text::{SafeText, width};

/// The most cells of a source line that are shown.
const LINE: usize = 100;

impl Problem {
    /// The problem as lines that can be displayed.
    #[must_use]
    pub fn lines(&self) -> Vec<SafeText> {
        let word = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let mut lines = vec![SafeText::line(&format!("{word}: {}", self.message))];
        let mut gutter = 1;
        let place = if self.key.is_empty() { self.location() } else { format!("{}  {}", self.location(), self.key) };
        match (&self.position, &self.excerpt) {
            (Some(at), Some((line, marked))) => {
                let number = at.line.to_string();
                gutter = number.len();
                let pad = " ".repeat(gutter);
                lines.push(SafeText::line(&format!("{pad}--> {place}")));
                let (text, before, marks) = excerpt(line, at.column, *marked);
                lines.push(SafeText::line(&format!("{pad} |")));
                lines.push(SafeText::line(&format!("{number} | {text}")));
                lines.push(SafeText::line(&format!("{pad} | {}{}", " ".repeat(before), "^".repeat(marks))));
            }
            _ => lines.push(SafeText::line(&format!(" --> {place}"))),
        }
        if let Some(suggestion) = &self.suggestion {
            lines.push(SafeText::line(&format!("{} = help: {suggestion}", " ".repeat(gutter))));
        }
        lines
    }
}

impl Problems {
    /// All of them as lines that can be displayed, with their count at the end.
    #[must_use]
    pub fn lines(&self) -> Vec<SafeText> {
        let mut lines = Vec::new();
        for problem in &self.0 {
            lines.extend(problem.lines());
            lines.push(SafeText::line(""));
        }
        lines.push(SafeText::line(&format!("{self}, nothing was started")));
        lines
    }
}

/// The part of a line around a column, the cells before the mark, and the cells of the mark.
fn excerpt(line: &str, column: usize, marked: usize) -> (String, usize, usize) {
    // The last character keeps spaces at the end from being dropped.
    let cells = |text: &str| width(SafeText::line(&format!("{text}x")).as_str()).saturating_sub(1);
    let chars: Vec<char> = line.chars().map(|c| if c == '\t' { ' ' } else { c }).collect();
    let at = column.saturating_sub(1).min(chars.len());
    // A long line is cut so that the mark is in what is left.
    let start = if at > LINE * 3 / 4 { at - LINE / 2 } else { 0 };
    let end = chars.len().min(start + LINE);
    let part = |from: usize, to: usize| chars.get(from..to.max(from)).unwrap_or_default().iter().collect::<String>();
    let (head, tail) = (if start > 0 { "…" } else { "" }, if end < chars.len() { "…" } else { "" });
    let before = cells(&part(start, at)) + head.chars().count();
    let marks = cells(&part(at, end.min(at.saturating_add(marked)))).max(1);
    (format!("{head}{}{tail}", part(start, end)), before, marks)
}

#[cfg(test)]
mod tests {
    use super::super::Source;
    use super::*;

    fn shown(problem: &Problem) -> String {
        problem.lines().iter().map(SafeText::as_str).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_mark_stands_below_what_is_meant() {
        let source = Source::new("plan.toml", "name = \"n\"\n\tä日 = \x1b[31m5\n");
        let problem = Problem::at(&source, 12..17, "step[1].x", "bad \x1b[2Jthing").suggest("do it");
        assert_eq!(
            shown(&problem),
            "error: bad \u{fffd}thing\n --> plan.toml:2:2  step[1].x\n  |\n2 |  ä日 = 5\n  |  ^^^\n  = help: do it"
        );
    }

    #[test]
    fn without_a_place_only_the_file_is_named() {
        let problem = Problem::of_file("plan.toml", "no such file").warning();
        assert_eq!(shown(&problem), "warning: no such file\n --> plan.toml");
    }

    #[test]
    fn long_lines_are_cut_around_the_mark() {
        let text = format!("{}X{}", "a".repeat(500), "b".repeat(500));
        let source = Source::new("p", text);
        let lines = Problem::at(&source, 500..501, "", "x").lines();
        let (line, mark) = (lines[3].as_str(), lines[4].as_str());
        assert!(line.chars().count() < 120, "{line}");
        let at = mark.chars().position(|c| c == '^').unwrap();
        assert_eq!(line.chars().nth(at), Some('X'), "{line}\n{mark}");
    }
}
