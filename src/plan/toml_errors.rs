//! Every syntax error of a TOML text: a person who mends one of them should not meet the next one only then (product 6).

use toml_parser::parser::{Event, EventKind, RecursionGuard, ValidateWhitespace, parse_document};
use toml_parser::{Expected, ParseError};

use super::{Problem, Source};

/// How many are told; a text that is no TOML at all has one on every line.
const MOST: usize = 10;
/// Deeper nesting is an error, as it is for the parser of plans.
const DEEPEST: u32 = 80;

/// The first error of each line, in the order of the text; empty when the syntax is right.
pub(super) fn all(source: &Source) -> Vec<Problem> {
    let text = toml_parser::Source::new(source.text());
    let tokens = text.lex().into_vec();
    let (mut events, mut errors): (Vec<Event>, Vec<ParseError>) = (Vec::new(), Vec::new());
    let mut checked = ValidateWhitespace::new(&mut events, text);
    parse_document(&tokens, &mut RecursionGuard::new(&mut checked, DEEPEST), &mut errors);
    for event in &events {
        let Some(raw) = text.get(event) else { continue };
        match event.kind() {
            EventKind::Scalar => drop(raw.decode_scalar(&mut (), &mut errors)),
            EventKind::SimpleKey => raw.decode_key(&mut (), &mut errors),
            EventKind::Comment => raw.decode_comment(&mut errors),
            EventKind::Newline => raw.decode_newline(&mut errors),
            _ => {}
        }
    }
    let mut problems: Vec<Problem> = errors.iter().map(|error| problem(source, error)).collect();
    problems.sort_by_key(|p| p.position.map(|at| (at.line, at.column)));
    problems.dedup_by_key(|p| p.position.map(|at| at.line));
    let more = problems.len().saturating_sub(MOST);
    problems.truncate(MOST);
    if let Some(last) = problems.last_mut().filter(|_| more > 0) {
        last.suggestion = Some(format!("mend these first; {more} more lines behind them are wrong too"));
    }
    problems
}

fn problem(source: &Source, error: &ParseError) -> Problem {
    let end = source.text().len();
    let span = error.unexpected().map_or(end..end, |span| span.start()..span.end());
    let mut message = format!("not valid TOML: {}", error.description());
    if let Some(expected) = error.expected() {
        let words: Vec<String> = expected.iter().map(word).collect();
        message.push_str(", expected ");
        message.push_str(&if words.is_empty() { "nothing".to_owned() } else { words.join(", ") });
    }
    Problem::at(source, span, "", message)
}

fn word(expected: &Expected) -> String {
    match expected {
        Expected::Literal("\n") => "newline".to_owned(),
        Expected::Literal(text) => format!("`{}`", text.escape_debug()),
        Expected::Description(text) => (*text).to_owned(),
        _ => "something else".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Vec<(usize, usize)> {
        let problems = all(&Source::new("a.toml", text));
        problems.iter().map(|p| p.position.map(|at| (at.line, at.column)).unwrap()).collect()
    }

    #[test]
    fn each_wrong_line_is_told_once_and_in_order() {
        for (text, want) in [
            ("a = 1\n[[step]]\ntask = 'x'\n", vec![]),
            ("a = \"x\n[[step", vec![(1, 7), (2, 7)]),
            ("a = = 2\nb = 1\nc = 'x\n[d\n", vec![(1, 5), (3, 7), (4, 3)]),
            ("a = 1.2.3\nb = \"\\q\"\nc = 4x\n", vec![(1, 8), (2, 7), (3, 5)]),
        ] {
            assert_eq!(places(text), want, "{text:?}");
        }
    }

    #[test]
    fn a_text_that_is_no_toml_does_not_fill_the_screen() {
        let problems = all(&Source::new("a.toml", "one two three\n".repeat(500)));
        assert_eq!(problems.len(), MOST);
        assert!(problems[9].suggestion.as_ref().unwrap().contains("490 more"), "{:?}", problems[9]);
    }
}
