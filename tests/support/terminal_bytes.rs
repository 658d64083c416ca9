//! What a program may write to a terminal. Everything that a child, a name or a file could bring along is none of it.

/// The first thing in these bytes that the deck does not say by itself, if there is one.
pub fn foreign(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest: &str = &text;
    while let Some(ch) = rest.chars().next() {
        let told = |end: usize| Some(format!("{:?}", rest.get(..end.min(rest.len())).unwrap_or(rest)));
        if ch != '\x1b' {
            // Between two pictures there is nothing but the words of a program that has ended.
            if ch.is_control() && !matches!(ch, '\r' | '\n') {
                return told(ch.len_utf8());
            }
            rest = &rest[ch.len_utf8()..];
            continue;
        }
        let body = &rest[1..];
        let end = match body.as_bytes().first() {
            Some(b'[') => {
                let end = body[1..].find(|c: char| ('\x40'..='\x7e').contains(&c))?;
                if !is_own_csi(&body[1..end + 2]) {
                    return told(end + 3);
                }
                end + 3
            }
            Some(b']') => {
                let end = body.find(['\x07', '\x1b'])?;
                let own = body[1..end].strip_prefix("0;").map_or(&body[1..end] == "11;?", |title| {
                    title.chars().count() <= 80 && !title.chars().any(char::is_control)
                });
                if !own {
                    return told(end + 2);
                }
                end + 2 + usize::from(body[end..].starts_with("\x1b\\"))
            }
            // The bytes end in the middle of one.
            None => return None,
            _ => return told(8),
        };
        rest = &rest[end..];
    }
    None
}

/// Whether the deck says this control sequence: places, looks, its modes, its questions.
fn is_own_csi(sequence: &str) -> bool {
    let (parameters, last) = sequence.split_at(sequence.len() - 1);
    let plain = parameters.bytes().all(|b| b.is_ascii_digit() || matches!(b, b';' | b':'));
    match last {
        "H" | "m" => plain,
        "J" => matches!(parameters, "2"),
        "c" => parameters.is_empty(),
        "t" => matches!(parameters, "22;2" | "23;2"),
        "u" => matches!(parameters, ">1" | "<1"),
        "p" => parameters == "?2026$",
        "h" | "l" => matches!(
            parameters,
            "?7" | "?25" | "?1000" | "?1002" | "?1003" | "?1004" | "?1006" | "?1015" | "?1049" | "?2004" | "?2026"
        ),
        _ => false,
    }
}

#[test]
fn what_is_not_the_decks_own_is_found() {
    for own in
        ["plain ✓\r\n", "\x1b[2J\x1b[1;2H\x1b[38;5;14;49m", "\x1b[?2026h\x1b]0;subdeck\x07\x1b]11;?\x1b\\x", "\x1b[?10"]
    {
        assert_eq!(foreign(own.as_bytes()), None, "{own:?}");
    }
    for evil in [
        "\x1b]52;c;ZXZpbA==\x07",
        "\x1b]0;a\x1b[31m\x07\x1b[6n",
        "\x1bc",
        "\x1bP+q\x1b\\",
        "\x1b_x\x1b\\",
        "\x1b[6n",
        "\x1b[?5h",
        "\u{9b}6n",
        "\x07",
        "\t",
    ] {
        assert!(foreign(evil.as_bytes()).is_some(), "{evil:?}");
    }
}
