use proptest::prelude::*;

use super::shapes::*;
use super::*;

/// What is looked for only where it can be is found wherever it is.
fn looked_for_everywhere(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    issued(text, &mut found);
    named(text, &mut found);
    in_address(text, &mut found);
    blocks(text, &mut found);
    merged(found)
}

proptest! {
    #[test]
    fn what_is_ruled_out_at_a_look_is_not_there(
        parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "sk-", "ghp_", "AKIA", "SG.", "Bearer ", "token", "API_KEY", "password", "--", "=", ":", ": ", "::", "=  ", "\"",
                "\\\"", "'", " ", "  ", "\t", "\n", "a", "B1", "x9Y8z7", "abcdefgh", "1:02", "│", "日", "://", "me:pw@h",
                "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----", "0123456789", ",", "/", "-", "…",
            ]),
            0..14,
        )
    ) {
        let text = parts.concat();
        if text.len() >= VALUE_LEAST {
            prop_assert_eq!(secrets(&text), looked_for_everywhere(&text), "{:?}", text);
        }
    }
}

#[test]
fn what_looks_like_a_key_is_found() {
    let long = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0";
    for (text, want) in [
        (format!("key sk-ant-{long} end"), "key [redacted] end".to_owned()),
        (format!("ghp_{long}"), "[redacted]".to_owned()),
        ("AKIAIOSFODNN7EXAMPLE,".to_owned(), "[redacted],".to_owned()),
        (format!("Authorization: Bearer {long}"), "Authorization: Bearer [redacted]".to_owned()),
        ("OPENAI_API_KEY=abcd1234efgh ls".to_owned(), "OPENAI_API_KEY=[redacted] ls".to_owned()),
        (r#"{"password":"hunter22!x","a":1}"#.to_owned(), r#"{"password":"[redacted]","a":1}"#.to_owned()),
        (
            r#""SecretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLE1""#.to_owned(),
            r#""SecretAccessKey": "[redacted]""#.to_owned(),
        ),
        ("secretKey=Abcd1234efgh".to_owned(), "secretKey=[redacted]".to_owned()),
        (r#"{"privateKey":"abcd1234EFGH"}"#.to_owned(), r#"{"privateKey":"[redacted]"}"#.to_owned()),
        ("login --password hunter22x1 -v".to_owned(), "login --password [redacted] -v".to_owned()),
        ("x --api-key 'a1b2c3d4e5f6'; ls".to_owned(), "x --api-key '[redacted]'; ls".to_owned()),
        ("x --secret-access-key=a1b2c3d4e5f6".to_owned(), "x --secret-access-key=[redacted]".to_owned()),
        (r#"{\"apiKey\":\"Hunter22xx\"}"#.to_owned(), r#"{\"apiKey\":\"[redacted]\"}"#.to_owned()),
        ("git clone https://me:pa55word@host/x".to_owned(), "git clone https://me:[redacted]@host/x".to_owned()),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\n-----END RSA PRIVATE KEY-----".to_owned(),
            "-----BEGIN RSA PRIVATE KEY-----[redacted]-----END RSA PRIVATE KEY-----".to_owned(),
        ),
        (format!("x='eyJ{long}.{long}'"), "x='[redacted]'".to_owned()),
    ] {
        assert_eq!(redact(&text), want);
    }
}

#[test]
fn of_what_was_cut_the_beginning_is_masked_too() {
    for (text, want) in [
        ("curl -H 'Authorization: Bearer q8Zk2LmN0pR7…", "curl -H 'Authorization: Bearer [redacted]…"),
        ("Bearer q8…", "Bearer [redacted]…"),
        // Its digits are among what is missing, and nothing else begins like this.
        ("Authorization: Bearer ghp_abcdefghijklmn…", "Authorization: Bearer [redacted]…"),
        ("clone with glpat-abcdefghij…", "clone with [redacted]…"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXU…", "AWS_SECRET_ACCESS_KEY=[redacted]…"),
        (r#"{"password":"hunt… 3 s"#, r#"{"password":"[redacted]… 3 s"#),
        ("and AIzaSyA123456… 12:00", "and [redacted]… 12:00"),
        ("git clone https://me:pa55w…", "git clone https://me:[redacted]…"),
    ] {
        assert_eq!(redact(text), want);
        assert_eq!(masked_lines(&format!("a\n{text}\n")).matches('…').count(), 1);
    }
    for text in [
        "the token: …",
        "see https://host:8080…",
        "tokens: 4000…",
        "a task-list-of-ma…",
        "Basic usag…",
        "let token = lexer.n(…",
    ] {
        assert_eq!(redact(text), text);
    }
    assert_eq!(masked_lines("x\ntoken=Abcd1234\ny\n"), "x\ntoken=********\ny\n");
}

#[test]
fn every_prefix_and_every_name_is_known_in_its_place() {
    let key = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0a1B2c3D4";
    for (prefix, _) in PREFIXES {
        assert_eq!(redact(&format!("is {prefix}{key}")), "is [redacted]", "{prefix}");
    }
    for (header, _) in HEADERS {
        assert_eq!(redact(&format!("is {header}{key}")), format!("is {header}[redacted]"));
    }
    for name in NAMES {
        for name in [(*name).to_owned(), name.to_ascii_uppercase(), format!("MY_{name}")] {
            assert_eq!(redact(&format!("is {name}={key} x")), format!("is {name}=[redacted] x"));
        }
    }
}

#[test]
fn the_lines_of_a_private_key_are_found_wherever_one_begins_to_look() {
    let body = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtz";
    let lines = [
        "cat key",
        "-----BEGIN RSA PRIVATE KEY-----",
        "Proc-Type: 4,ENCRYPTED",
        "",
        body,
        body,
        "AAEC3w==",
        "-----END RSA PRIVATE KEY-----",
        "AAEC3w==",
        "done",
    ];
    let mut wanted = lines.map(str::to_owned);
    wanted[4..7].fill(REDACTED.to_owned());
    for from in 0..=5 {
        let mut above = SecretLines::default();
        let found: Vec<String> = lines[from..].iter().map(|line| above.redact(line).into_owned()).collect();
        assert_eq!(found, wanted[from..], "from line {from}");
    }
    // One that is never ended hides nothing of what comes behind it, and a digest is no key.
    let digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let mut above = SecretLines::default();
    for line in ["-----BEGIN PRIVATE KEY-----", "no more of it", "word", digest] {
        assert_eq!(above.redact(line), line);
    }
}

#[test]
fn what_is_only_talk_stays() {
    for text in [
        "the token count: 48213 of 90000",
        "password: required",
        "tokens=400000",
        "task-list-of-a-long-name-with-many-words",
        "sk-eleton-of-the-whole-crate",
        "let token = lexer.next()",
        "SSH_KEY_FILE=/home/me/.ssh/id_ed25519",
        "https://host/path:12@x",
        "API_KEY=$OTHER_API_KEY",
        "--max-tokens 40000000 --token --password required --token-file /run/secrets/t1",
        "",
        "é",
    ] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn a_mask_keeps_the_width_and_the_styles() {
    let text = SafeText::line("é token=Abcd1234 é");
    assert_eq!(text.masked().as_str(), "é token=******** é");
    let mut line = StyledLine::parse(b"x token=\x1b[31mAbcd\x1b[0m1234 y");
    line.mask(&mut SecretLines::default());
    let runs: Vec<&str> = line.runs.iter().map(|run| run.text.as_str()).collect();
    assert_eq!(runs, ["x token=", "****", "**** y"]);
    let plain = StyledLine::parse(b"nothing to hide");
    let mut same = plain.clone();
    same.mask(&mut SecretLines::default());
    assert_eq!(same, plain);
}

proptest! {
    #[test]
    fn whatever_the_text_the_ranges_are_inside_of_it(text in "\\PC{0,60}", key in "(sk-|token=|Bearer |://a:)[A-Z0-9é@]{0,30}") {
        let text = format!("{text}{key}{text}");
        let mut last = 0;
        for range in secrets(&text) {
            prop_assert!(range.start >= last && range.end > range.start);
            prop_assert!(text.get(range.clone()).is_some());
            last = range.end;
        }
    }
}
