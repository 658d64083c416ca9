//! What the rows of a pane show, at every place and with every fold.

use super::super::feed::fake::FakeFeed;
use super::*;

fn feed(lines: usize) -> FakeFeed {
    let mut feed = FakeFeed::default();
    let text: Vec<String> = (1..=lines).map(|n| format!("line {n}")).collect();
    feed.print(0, Stream::Out, &text.join("\n"));
    feed
}

fn shown(feed: &mut FakeFeed, ui: &mut UiState) -> (Vec<String>, Window) {
    let window = fetch(feed, ui, StepId(0), (20, 4), None);
    let text = |r: &Row| r.runs.iter().map(|r| r.text.as_str()).collect::<String>();
    (window.rows.iter().map(text).collect(), window)
}

#[test]
fn a_pane_follows_until_it_is_scrolled_and_again_at_the_end() {
    let mut feed = feed(10);
    let mut ui = UiState::new((20, 4));
    assert_eq!(shown(&mut feed, &mut ui).0, ["line 7", "line 8", "line 9", "line 10"]);

    ui.pane_mut(StepId(0)).asked.push(Scroll::Rows(-2));
    assert_eq!(shown(&mut feed, &mut ui).0, ["line 5", "line 6", "line 7", "line 8"]);

    feed.print(0, Stream::Out, "line 11\nline 12");
    let (rows, window) = shown(&mut feed, &mut ui);
    assert_eq!(rows, ["line 5", "line 6", "line 7", "line 8"], "content does not jump while one reads");
    assert_eq!((window.behind, window.at_end), (16, false));

    ui.pane_mut(StepId(0)).asked.push(Scroll::Start);
    assert_eq!(shown(&mut feed, &mut ui).0[0], "line 1");
    ui.pane_mut(StepId(0)).asked.push(Scroll::Rows(-5));
    assert_eq!(shown(&mut feed, &mut ui).0[0], "line 1", "there is nothing above the first line");
    ui.pane_mut(StepId(0)).asked.push(Scroll::Pages(1));
    assert_eq!(shown(&mut feed, &mut ui).0[0], "line 4");

    ui.pane_mut(StepId(0)).asked.push(Scroll::Pages(5));
    assert_eq!(shown(&mut feed, &mut ui).0[3], "line 12");
    assert_eq!(ui.pane(StepId(0)).output, Position::Follow);
}

#[test]
fn long_lines_wrap_and_scroll_by_rows() {
    let mut feed = FakeFeed::default();
    feed.print(0, Stream::Out, &"abcdefghij".repeat(10));
    let mut ui = UiState::new((20, 4));
    let (rows, window) = shown(&mut feed, &mut ui);
    assert_eq!((rows.len(), window.rows[0].anchor.row), (4, 1));
    ui.pane_mut(StepId(0)).asked.push(Scroll::Rows(-1));
    assert_eq!(shown(&mut feed, &mut ui).1.rows[0].anchor.row, 0);
    ui.wrap = false;
    assert_eq!(shown(&mut feed, &mut ui).0.len(), 1);
}

#[test]
fn marks_before_a_line_take_no_word_from_it_where_it_is_wrapped() {
    for (stream, mark) in [(Stream::Out, ""), (Stream::Err, ERR_MARK), (Stream::Own, OWN_MARK)] {
        let mut feed = FakeFeed::default();
        feed.print(0, stream, "w01 w02 w03 w04 w05 w06 w07 w08 w09");
        let (rows, _) = shown(&mut feed, &mut UiState::new((20, 4)));
        assert_eq!(rows.concat().replace(' ', ""), "w01w02w03w04w05w06w07w08w09", "{stream:?}");
        assert!(rows.iter().all(|row| width(row.trim_end()) + width(mark) <= 20), "{stream:?} {rows:?}");
    }
}

#[test]
fn a_match_far_in_a_long_line_is_on_the_screen_and_the_line_can_be_read_to_its_end() {
    let mut feed = FakeFeed::default();
    let words = |from: usize, to: usize| (from..to).map(|n| format!("w{n:05} ")).collect::<String>();
    let text = format!("{}NEEDLE {}END", words(0, 3000), words(3000, 6000));
    feed.print(0, Stream::Out, &format!("first\n{text}\nlast"));
    let at = 6 + text.find("NEEDLE").unwrap() as u64;
    let mut ui = UiState::new((20, 4));
    let rows = shown(&mut feed, &mut ui).1.rows;
    let cut = rows.iter().find(|row| row.left > 0).unwrap();
    assert_eq!(cut.left as usize, text.len() - StyledLine::MAX_COLUMNS);
    let search = crate::deck::model::Search {
        tab: Tab::Output,
        needle: "NEEDLE".to_owned(),
        back: false,
        everywhere: false,
        found: Some((StepId(0), at)),
        count: None,
    };
    ui.search = Some(search);
    let pane = ui.pane_mut(StepId(0));
    pane.output = Position::At { top: Anchor { line: 6, row: 0 }, seen: 0 };
    pane.asked = vec![Scroll::To(at), Scroll::Rows(-2)];
    let rows = shown(&mut feed, &mut ui).0;
    assert!(rows[2].contains("NEEDLE"), "{rows:?}");
    // Not wrapped, it is in its row.
    ui.wrap = false;
    let row = shown(&mut feed, &mut ui).0.into_iter().find(|row| row.contains("NEEDLE")).unwrap();
    assert!(row.starts_with("… ") && row.find("NEEDLE").unwrap() < 16, "{}", &row[..40]);
    ui.wrap = true;
    // Without a search it stays where it is, and is read on to its last byte.
    ui.search = None;
    let place = ui.pane(StepId(0)).output;
    let Position::At { top, .. } = place else { panic!("{place:?}") };
    ui.pane_mut(StepId(0)).output = Position::At { top: Anchor { row: top.row.max(1), ..top }, seen: 0 };
    let mut read = String::new();
    for _ in 0..2000 {
        let (rows, window) = shown(&mut feed, &mut ui);
        read.push_str(&rows.join(" "));
        if window.at_end {
            break;
        }
        ui.pane_mut(StepId(0)).asked = vec![Scroll::Pages(1)];
    }
    assert!(read.contains("w05999 END") && read.ends_with("last"), "{}", &read[read.len() - 60..]);
}

#[test]
fn above_a_line_is_the_end_of_a_longer_one() {
    let mut feed = FakeFeed::default();
    let words: String = (0..6000).map(|n| format!("w{n:05} ")).collect();
    let text = format!("first\n{words}END\nshort\nNEEDLE\nlast");
    feed.print(0, Stream::Out, &text);
    let at = text.find("NEEDLE").unwrap() as u64;
    let mut ui = UiState::new((20, 4));
    ui.search = Some(crate::deck::model::Search {
        needle: "NEEDLE".to_owned(),
        found: Some((StepId(0), at)),
        ..Default::default()
    });
    let pane = ui.pane_mut(StepId(0));
    pane.output = Position::At { top: Anchor { line: at, row: 0 }, seen: 0 };
    pane.asked = vec![Scroll::To(at), Scroll::Rows(-3)];
    let rows = shown(&mut feed, &mut ui).0;
    assert_eq!(rows, ["w05997 w05998 w05999", "END", "short", "NEEDLE"]);
    // Not wrapped, a line is a row.
    ui.wrap = false;
    let pane = ui.pane_mut(StepId(0));
    pane.output = Position::At { top: Anchor { line: at, row: 0 }, seen: 0 };
    pane.asked = vec![Scroll::Rows(-2)];
    assert_eq!(shown(&mut feed, &mut ui).0[1..], ["short", "NEEDLE", "last"]);
}

#[test]
fn the_match_that_was_gone_to_has_its_place_on_the_screen() {
    let mut feed = FakeFeed::default();
    feed.print(0, Stream::Out, "aa one aa\nshort");
    feed.print(0, Stream::Err, "alpha beta gamma aa delta aa");
    let mut ui = UiState::new((20, 6));
    let mut look = |at: u64, wrap: bool| {
        ui.wrap = wrap;
        ui.search = Some(crate::deck::model::Search {
            needle: "aa".to_owned(),
            found: Some((StepId(0), at)),
            ..Default::default()
        });
        fetch(&mut feed, &mut ui, StepId(0), (20, 6), None).here
    };
    assert_eq!(look(0, true), Some((0, 0)));
    assert_eq!(look(7, true), Some((0, 7)));
    let third = "aa one aa\nshort\n".len() as u64;
    // Of the wrapped line: `alpha beta`, `gamma aa delta`, `aa`.
    assert_eq!(look(third + 17, true), Some((3, 6)));
    assert_eq!(look(third + 26, true), Some((4, 0)));
    // Not wrapped, what is before it is left out.
    assert_eq!(look(third + 26, false), Some((2, CUT + 7)));
    assert_eq!(look(9_000, true), None);
}

#[test]
fn a_limit_hides_what_came_later_and_nothing_else() {
    let mut feed = feed(10);
    let mut ui = UiState::new((20, 4));
    let limit = feed.log_len(StepId(0));
    feed.print(0, Stream::Out, "line 11");
    let mut last = |ui: &mut UiState, scroll| {
        ui.pane_mut(StepId(0)).asked.push(scroll);
        let window = fetch(&mut feed, ui, StepId(0), (20, 4), Some(limit));
        window.rows.last().map(|r| r.runs[0].text.to_string())
    };
    assert_eq!(last(&mut ui, Scroll::End).as_deref(), Some("line 10"));
    assert_eq!(last(&mut ui, Scroll::Rows(-3)).as_deref(), Some("line 7"));
    assert_eq!(last(&mut ui, Scroll::Pages(2)).as_deref(), Some("line 10"));
}

#[test]
fn lines_that_come_again_are_folded_and_can_be_scrolled_over() {
    let mut feed = FakeFeed::default();
    feed.print(0, Stream::Out, "begin");
    for _ in 0..42 {
        feed.print(0, Stream::Out, "waiting");
    }
    feed.print(0, Stream::Out, "end");
    let mut ui = UiState::new((20, 4));
    let mut seen = |ui: &mut UiState| {
        let window = fetch(&mut feed, ui, StepId(0), (20, 4), None);
        let text = |r: &Row| match r.again {
            Some(again) => format!("x{}{}", again.times, if again.or_more { "+" } else { "" }),
            None => r.runs.iter().map(|r| r.text.as_str()).collect(),
        };
        (window.rows.iter().map(text).collect::<Vec<String>>(), window.at_end)
    };
    assert_eq!(seen(&mut ui), (["begin", "waiting", "x41", "end"].map(str::to_owned).to_vec(), true));
    ui.pane_mut(StepId(0)).asked = vec![Scroll::Start];
    assert_eq!(seen(&mut ui).0[2], "x41");
    ui.pane_mut(StepId(0)).asked = vec![Scroll::Rows(3)];
    seen(&mut ui);
    assert_eq!(ui.pane(StepId(0)).output, Position::Follow);
    // Unfolded they are all there.
    ui.fold = false;
    assert_eq!(seen(&mut ui).0, ["waiting", "waiting", "waiting", "end"]);
    ui.pane_mut(StepId(0)).asked = vec![Scroll::Rows(-41)];
    assert_eq!(seen(&mut ui).0[0], "begin");
}

#[test]
fn a_log_that_only_repeats_itself_is_not_read_to_its_start() {
    let mut feed = FakeFeed::default();
    for _ in 0..20_000 {
        feed.print(0, Stream::Out, "flooded");
    }
    let mut looks = 0;
    let mut look = |ui: &mut UiState| {
        looks += 1;
        fetch(&mut feed, ui, StepId(0), (20, 10), None).rows
    };
    let mut ui = UiState::new((20, 10));
    let rows = look(&mut ui);
    assert_eq!(rows[1].again, Some(Again { times: MOST_LINES - 1, or_more: true }));
    // Each screen up is further up, and the first line is reached in the end.
    let mut last = u64::MAX;
    while last > 0 {
        ui.pane_mut(StepId(0)).asked = vec![Scroll::Rows(-2)];
        let first = look(&mut ui)[0].anchor.line;
        assert!(first < last, "{first} {last}");
        last = first;
    }
    assert!(looks < 20, "{looks}");
}

#[test]
fn a_match_among_lines_that_come_again_is_in_sight_and_has_its_number() {
    let mut feed = FakeFeed::default();
    let same = "same\n".repeat(3 * MOST_LINES);
    feed.print(0, Stream::Out, &format!("{same}NEEDLE\n{same}the same last"));
    let same = same.len() as u64;
    let ending = feed.log_len(StepId(0)) - 14;
    let mut ui = UiState::new((20, 10));
    let mut look = |at: u64, needle: &str| {
        ui.search = Some(crate::deck::model::Search {
            tab: Tab::Output,
            needle: needle.to_owned(),
            back: true,
            everywhere: false,
            found: Some((StepId(0), at)),
            count: None,
        });
        let line = feed.lines_from(StepId(0), at, 1)[0].start;
        let pane = ui.pane_mut(StepId(0));
        pane.output = Position::At { top: Anchor { line, row: 0 }, seen: 0 };
        pane.asked = vec![Scroll::To(at), Scroll::Rows(-3)];
        let window = fetch(&mut feed, &mut ui, StepId(0), (20, 10), None);
        let told = window.told_by(Some(at)).unwrap();
        let number = feed.line_number(StepId(0), told).unwrap().0;
        let text = |r: &Row| r.runs.iter().map(|r| r.text.as_str()).collect::<String>();
        let rows: Vec<String> = window.rows.iter().filter(|row| row.again.is_none()).map(text).collect();
        (rows, number as usize)
    };
    assert_eq!(look(same, "NEEDLE"), (["same", "NEEDLE", "same"].map(str::to_owned).to_vec(), 3 * MOST_LINES + 1));
    let (rows, number) = look(ending, "last");
    assert_eq!((rows.last().map(String::as_str), number), (Some("the same last"), 6 * MOST_LINES + 2));
    // Also one of those that say the same, which is shown by itself then.
    let (rows, number) = look(same + 7 + 5 * 4000, "same");
    assert_eq!((rows.len(), number), (2, 3 * MOST_LINES + 4002), "{rows:?}");
    // Scrolled away from it, the last visible line counts, also where a note stands for it.
    ui.search = None;
    ui.pane_mut(StepId(0)).asked = vec![Scroll::Start];
    let window = fetch(&mut feed, &mut ui, StepId(0), (20, 2), None);
    let told = window.told_by(Some(same)).unwrap();
    assert_eq!(feed.line_number(StepId(0), told).unwrap().0 as usize, window.rows[1].again.unwrap().times + 1);
}

#[test]
fn pieces_of_a_line_that_the_next_ones_write_over_are_left_out() {
    let line = |start: u64, bytes: &[u8], cut: bool| LogLine {
        start,
        end: start + bytes.len() as u64 + u64::from(!cut),
        stream: Stream::Out,
        at: None,
        attempt: 1,
        bytes: bytes.to_vec(),
        cut,
    };
    let left = |mut lines: Vec<LogLine>| {
        drop_overwritten(&mut lines);
        lines.iter().map(|line| line.start).collect::<Vec<_>>()
    };
    let progress =
        vec![line(0, b"begin", false), line(6, b"\r1%\r2%", true), line(12, b"\r3%", true), line(15, b"\r4%", false)];
    assert_eq!(left(progress), [0, 15]);
    // Without a carriage return, or with one at the very end, nothing was written over.
    assert_eq!(left(vec![line(0, b"long", true), line(4, b"er\r", false)]), [0, 4]);
    // The other stream came in between.
    let mut other = vec![line(0, b"long", true), line(4, b"\rx", false)];
    other[1].stream = Stream::Err;
    assert_eq!(left(other), [0, 4]);
}

#[test]
fn an_empty_log_has_no_rows() {
    let mut feed = FakeFeed::default();
    let mut ui = UiState::new((20, 4));
    for scroll in [Scroll::Rows(-1), Scroll::Rows(1), Scroll::Start, Scroll::End, Scroll::Halves(1)] {
        ui.pane_mut(StepId(0)).asked.push(scroll);
        assert!(shown(&mut feed, &mut ui).0.is_empty());
    }
    assert!(fetch(&mut feed, &mut ui, StepId(0), (0, 0), None).rows.is_empty());
}
