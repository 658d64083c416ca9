//! The picture of the deck in the README and in assets/ is the program's own, on the demo run.
//!
//! `SUBDECK_WRITE_README=1 cargo test --test capture` takes it anew: the screen of a pseudo terminal as text and, with its
//! colours, as SVG.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

use std::cell::RefCell;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use support::Home;

const COLUMNS: u16 = 120;
const ROWS: u16 = 36;
/// What stands in the picture in the place of a folder for tests.
const FOLDER: &str = "/home/me/tide";

/// How a cell looks: foreground, background, weight.
#[derive(Clone, Copy, PartialEq)]
struct Look {
    front: vt100::Color,
    back: vt100::Color,
    bold: bool,
    dim: bool,
    underline: bool,
}

type Row = Vec<(String, Look)>;

fn rows(screen: &vt100::Screen) -> Vec<Row> {
    let cell = |row, column| {
        let cell = screen.cell(row, column)?;
        let (mut front, mut back) = (cell.fgcolor(), cell.bgcolor());
        if cell.inverse() {
            (front, back) = (back, front);
            if front == vt100::Color::Default {
                front = vt100::Color::Rgb(0x1e, 0x1e, 0x1e);
            }
            if back == vt100::Color::Default {
                back = vt100::Color::Rgb(0xd4, 0xd4, 0xd4);
            }
        }
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let look = Look { front, back, bold: cell.bold(), dim: cell.dim(), underline: cell.underline() };
        (!cell.is_wide_continuation()).then(|| (text.to_owned(), look))
    };
    (0..ROWS).map(|row| (0..COLUMNS).filter_map(|column| cell(row, column)).collect()).collect()
}

fn text(row: &Row) -> String {
    let all: String = row.iter().map(|(text, _)| text.as_str()).collect();
    all.trim_end().to_owned()
}

/// Puts another folder in the place of the one of the test, cell by cell.
fn rename(row: &mut Row, folder: &str) {
    let wanted: Vec<String> = folder.chars().map(String::from).collect();
    let is_here = |cells: &[(String, Look)]| cells.iter().map(|(text, _)| text).eq(wanted.iter());
    let Some(at) = row.windows(wanted.len()).position(is_here) else { return };
    let new = FOLDER.chars().map(String::from).chain(std::iter::repeat(" ".to_owned()));
    for (cell, text) in row[at..].iter_mut().zip(new.take(wanted.len().max(FOLDER.len()))) {
        cell.0 = text;
    }
}

fn colour(colour: vt100::Color, default: &str) -> String {
    const NAMED: [&str; 16] = [
        "#3b3b3b", "#f14c4c", "#23d18b", "#e5e510", "#3b8eea", "#d670d6", "#29b8db", "#d4d4d4", "#7f7f7f", "#f14c4c",
        "#23d18b", "#f5f543", "#3b8eea", "#d670d6", "#29b8db", "#ffffff",
    ];
    match colour {
        vt100::Color::Default => default.to_owned(),
        vt100::Color::Idx(n @ 0..16) => NAMED[usize::from(n)].to_owned(),
        vt100::Color::Idx(n @ 16..232) => {
            let level = |part: u8| if part == 0 { 0 } else { 55 + 40 * part };
            let n = n - 16;
            format!("#{:02x}{:02x}{:02x}", level(n / 36), level(n / 6 % 6), level(n % 6))
        }
        vt100::Color::Idx(n) => format!("#{0:02x}{0:02x}{0:02x}", 8 + 10 * (n - 232)),
        vt100::Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
    }
}

fn svg(rows: &[Row]) -> String {
    const WIDE: f64 = 8.4;
    const HIGH: f64 = 18.0;
    let (width, height) = (f64::from(COLUMNS) * WIDE + 16.0, f64::from(ROWS) * HIGH + 16.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-label=\"The deck on the demo run\">\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#1e1e1e\"/>\n\
         <g font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\">\n"
    );
    for (number, row) in rows.iter().enumerate() {
        let y = 8.0 + HIGH * number as f64;
        let mut column = 0;
        for run in row.chunk_by(|a, b| a.1 == b.1) {
            let (look, from) = (run[0].1, 8.0 + WIDE * column as f64);
            let begin = column;
            column += run.len();
            if look.back != vt100::Color::Default {
                let (fill, long) = (colour(look.back, ""), WIDE * run.len() as f64);
                writeln!(
                    out,
                    "<rect x=\"{from:.1}\" y=\"{y:.0}\" width=\"{long:.1}\" height=\"{HIGH}\" fill=\"{fill}\"/>"
                )
                .unwrap();
            }
            let mut style = format!("fill=\"{}\"", colour(look.front, "#d4d4d4"));
            for (on, what) in [
                (look.bold, " font-weight=\"bold\""),
                (look.dim, " opacity=\".6\""),
                (look.underline, " text-decoration=\"underline\""),
            ] {
                style.push_str(if on { what } else { "" });
            }
            // Each word at its place: who shows it may make one blank of several.
            let mut at = begin;
            for word in run.chunk_by(|a, b| (a.0 == " ") == (b.0 == " ")) {
                let x = 8.0 + WIDE * at as f64;
                at += word.len();
                if word[0].0 == " " {
                    continue;
                }
                let text: String = word.iter().map(|(text, _)| text.as_str()).collect();
                let text = text.replace('&', "&amp;").replace('<', "&lt;");
                let (base, long) = (y + 13.5, WIDE * word.len() as f64);
                writeln!(out, "<text x=\"{x:.1}\" y=\"{base:.1}\" textLength=\"{long:.1}\" {style}>{text}</text>")
                    .unwrap();
            }
        }
    }
    out + "</g>\n</svg>\n"
}

fn readme() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")
}

/// The screen in the README: what stands before it, itself, and what stands behind it.
fn parts(readme: &str) -> (&str, &str, &str) {
    let (before, rest) = readme.split_once("```text\n").unwrap();
    let (screen, after) = rest.split_once("```\n").unwrap();
    (before, screen, after)
}

#[test]
fn the_screen_of_the_readme_is_what_the_demo_shows() {
    let write = std::env::var_os("SUBDECK_WRITE_README").is_some();
    let home = Home::new();
    // Slower it is only nicer to look at.
    let pty = home.deck(&["demo", "--speed", if write { "1" } else { "3" }], COLUMNS, ROWS);
    pty.wait_text("mend the test");
    pty.keys("jj");
    // In the middle of it, with something that went wrong and three steps that go on.
    let is_it = |rows: &[Row]| {
        let lines: Vec<String> = rows.iter().map(text).collect();
        let has = |part: &str| lines.iter().any(|line| line.contains(part));
        has("─ 3 mend the test ─") && has("✗ bash cargo test") && has("2/7 ended") && has("retry 1 of 3 in")
    };
    let seen = RefCell::new(Vec::new());
    let look = |screen: &vt100::Screen| {
        *seen.borrow_mut() = rows(screen);
        is_it(&seen.borrow())
    };
    loop {
        pty.wait_for("the third step at work", look);
        // Of a frame that came in pieces the first ones may be there: what is looked at has come whole.
        pty.wait_frame();
        let before = pty.count(b"\x1b[?2026l");
        pty.wait_for("the screen", |screen| {
            *seen.borrow_mut() = rows(screen);
            true
        });
        if is_it(&seen.borrow()) && pty.bytes().ends_with(b"\x1b[?2026l") && pty.count(b"\x1b[?2026l") == before {
            break;
        }
    }
    let mut rows = seen.into_inner();
    let folder = home.path().display().to_string();
    rows.iter_mut().for_each(|row| rename(row, &folder));
    let lines: Vec<String> = rows.iter().map(text).collect();
    let text = std::fs::read_to_string(readme()).unwrap();
    let (before, screen, after) = parts(&text);
    if write {
        std::fs::write(readme(), format!("{before}```text\n{}\n```\n{after}", lines.join("\n"))).unwrap();
        std::fs::write(readme().with_file_name("assets/deck.svg"), svg(&rows)).unwrap();
        return;
    }
    // What is the same whenever one looks: the words that the deck itself puts there. The rest is the run's.
    let shown: Vec<&str> = screen.lines().collect();
    let fixed = |lines: &[String]| {
        let label = |line: &String| {
            let words = line.split("││").nth(1)?.trim_start().split("  ").next()?.to_owned();
            ["used", "context", "time", "turns", "tokens"].contains(&words.as_str()).then_some(words)
        };
        let frames = lines.iter().filter(|line| line.contains('╭')).map(|line| {
            let words = line.split(['─', '╭', '╮', ' ', '›']).filter(|word| !word.is_empty());
            words.collect::<Vec<_>>().join(" ")
        });
        let facts = lines.iter().filter_map(|line| line.split_whitespace().nth(1));
        let facts = facts.filter(|word| ["folder", "started", "work", "tokens"].contains(word)).map(str::to_owned);
        let head = lines[0].split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        let keys = lines.last().unwrap().clone();
        let labels = lines.iter().filter_map(label);
        [head].into_iter().chain(frames).chain(labels).chain(facts).chain([keys]).collect::<Vec<_>>()
    };
    let shown: Vec<String> = shown.into_iter().map(str::to_owned).collect();
    assert_eq!(fixed(&shown), fixed(&lines), "`SUBDECK_WRITE_README=1 cargo test --test capture` takes it anew");
    let svg = std::fs::read_to_string(readme().with_file_name("assets/deck.svg")).unwrap();
    // The two pictures are of one moment: the same run, which began at the same second.
    let told = |line: &str, at: usize| format!(">{}</text>", line.split_whitespace().nth(at).unwrap());
    let began = shown.iter().find(|line| line.contains(" started ")).unwrap();
    for word in [told(&shown[0], 2), told(began, 2)] {
        assert!(svg.contains(&word), "{word}");
    }
}
