//! Where in a text something has the shape of a secret: prefixes of issuers, headers, names with their values, options,
//! addresses and blocks of private keys.

use std::ops::Range;

/// Prefixes of keys and how many characters of a key follow at least.
pub(super) const PREFIXES: &[(&str, usize)] = &[
    ("sk-", 16),
    ("sk_live_", 10),
    ("sk_test_", 10),
    ("rk_live_", 10),
    ("pk_live_", 10),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxa-", 10),
    ("xoxr-", 10),
    ("xoxs-", 10),
    ("xapp-", 10),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("ya29.", 20),
    ("eyJ", 40),
    ("npm_", 30),
    ("pypi-", 30),
    ("hf_", 20),
    ("gsk_", 20),
    ("xai-", 20),
    ("dop_v1_", 30),
    ("SG.", 30),
    ("AGE-SECRET-KEY-", 20),
];

/// Those of them that no other word begins with, whatever follows.
const SURE: &[&str] = &[
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxr-",
    "xoxs-",
];

/// Words behind which the key of a header stands.
pub(super) const HEADERS: &[(&str, usize)] = &[("Bearer ", 16), ("bearer ", 16), ("Basic ", 16)];

/// Parts of names whose values are secret.
pub(super) const NAMES: &[&str] = &[
    "api_key",
    "apikey",
    "api-key",
    "token",
    "secret",
    "password",
    "passwd",
    "private_key",
    "access_key",
    // As JSON and command lines of clouds spell them.
    "accesskey",
    "privatekey",
    "access-key",
    "private-key",
    "credential",
];
/// A value shorter than this is no secret but a word.
pub(super) const VALUE_LEAST: usize = 8;
/// So many bytes of a word that was cut are looked at.
const LOOKED_BACK: usize = 64;
/// Ends what was cut, by us or by whoever told it: of a key before it only the beginning is left, which may be short.
const CUT: &str = "…";

/// The first two bytes of words. Every row of a picture is looked at, and nearly every place in it is ruled out by two
/// bytes, which costs less than to compare.
struct Begins([u128; 128]);

// The tables are made by the compiler, which refuses what is out of range; all words here are ASCII.
#[allow(clippy::indexing_slicing)]
impl Begins {
    const fn of(mut self, word: &str) -> Self {
        if let [first, second, ..] = word.as_bytes() {
            self.0[*first as usize] |= 1 << *second;
        }
        self
    }

    const fn of_names(mut self, mut names: &[&str]) -> Self {
        while let [name, rest @ ..] = names {
            (self, names) = (self.of(name), rest);
        }
        self
    }

    const fn of_keys(mut self, mut keys: &[(&str, usize)]) -> Self {
        while let [(prefix, _), rest @ ..] = keys {
            (self, keys) = (self.of(prefix), rest);
        }
        self
    }

    /// Whether a word may begin with these two bytes.
    fn may(&self, first: u8, second: u8) -> bool {
        self.0.get(usize::from(first)).is_some_and(|seconds| second.is_ascii() && seconds >> second & 1 == 1)
    }
}

/// How keys and headers begin.
static KEYS_BEGIN: Begins = Begins([0; 128]).of_keys(PREFIXES).of_keys(HEADERS);

/// How names begin, in small letters.
static NAMES_BEGIN: Begins = Begins([0; 128]).of_names(NAMES);

/// Where secrets are in a text, in order, without overlap, at boundaries of characters.
#[must_use]
pub fn secrets(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    // This is asked of every row of a picture, so what cannot be is not looked for.
    if text.len() < VALUE_LEAST {
        return found;
    }
    let long = has_long_word(text.as_bytes());
    let cut = memchr::memmem::rfind(text.as_bytes(), CUT.as_bytes());
    if long || cut.is_some_and(|_| cuts_a_word(text.as_bytes())) {
        issued(text, &mut found);
    }
    let option = memchr::memmem::find(text.as_bytes(), b"--").is_some();
    if option && memchr::memchr2(b'=', b':', text.as_bytes()).is_none() {
        named(text, &mut found);
    }
    if let Some(at) = memchr::memchr2(b'=', b':', text.as_bytes()) {
        // Before what was cut stands a name with its value, or an option; behind it is the next column of a list.
        if option || cut.is_some_and(|cut| at < cut) || has_value(text.as_bytes()) {
            named(text, &mut found);
        }
        if memchr::memmem::find(text.as_bytes(), b"://").is_some() {
            in_address(text, &mut found);
        }
    }
    if long && memchr::memmem::find(text.as_bytes(), b"-----BEGIN ").is_some() {
        blocks(text, &mut found);
    }
    merged(found)
}

/// Whether a word was cut that may be the beginning of a key: words of talk have neither digits nor capitals in them, nor
/// the signs with which those end that no other word begins with.
fn cuts_a_word(text: &[u8]) -> bool {
    memchr::memmem::find_iter(text, CUT.as_bytes()).any(|at| {
        let before = text.get(..at).unwrap_or_default();
        let word = before.iter().rev().take_while(|byte| !byte.is_ascii_whitespace());
        word.take(LOOKED_BACK)
            .any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase() || matches!(byte, b'_' | b'-'))
    })
}

const fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+' | b'/' | b'=' | b'~')
}

/// As many bytes that a key may have stand together in each key that an issuer gives out and in the line that begins a block.
const LONG: usize = 10;

/// Whether so many of them stand together anywhere. Most text has short words, of which few bytes are looked at: a word
/// that is long enough has one at every place where one of that length could end.
fn has_long_word(bytes: &[u8]) -> bool {
    let mut at = LONG - 1;
    while let Some(byte) = bytes.get(at) {
        let before = bytes.get(..at).unwrap_or_default().iter().rev().take(LONG - 1);
        let together = if is_key(*byte) { 1 + before.take_while(|b| is_key(**b)).count() } else { 0 };
        if together >= LONG {
            return true;
        }
        at += LONG - together;
    }
    false
}

/// Whether something that is long enough for a secret value stands behind a `=` or `:` anywhere. A clock does not.
fn has_value(bytes: &[u8]) -> bool {
    memchr::memchr2_iter(b'=', b':', bytes).any(|at| {
        let rest = bytes.get(at + 1..).unwrap_or_default();
        let skip = |rest: &[u8], what: &[u8]| rest.iter().take(2).take_while(|b| what.contains(b)).count();
        let rest = rest.get(skip(rest, b" ")..).unwrap_or_default();
        let rest = rest.get(skip(rest, b"\\\"'`")..).unwrap_or_default();
        rest.iter().take(VALUE_LEAST).take_while(|b| !b.is_ascii_whitespace()).count() >= VALUE_LEAST
    })
}

/// Whether a text was cut here.
fn is_cut(bytes: &[u8], at: usize) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(CUT.as_bytes()))
}

/// How many bytes of a key there are from here on.
fn key_len(bytes: &[u8], from: usize) -> usize {
    bytes.iter().skip(from).take_while(|b| is_key(**b)).count()
}

/// Keys by the prefix of their issuer, and those behind the words of a header, where a word begins.
pub(super) fn issued(text: &str, found: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut inside = false;
    for (at, byte) in bytes.iter().enumerate() {
        let begins = !inside && byte.is_ascii_alphabetic();
        inside = byte.is_ascii_alphanumeric();
        let Some(rest @ [first, second, ..]) = bytes.get(at..).filter(|_| begins) else { continue };
        if !KEYS_BEGIN.may(*first, *second) {
            continue;
        }
        let starts = |(word, _): &&(&str, usize)| rest.starts_with(word.as_bytes());
        let issuer = PREFIXES.iter().find(starts);
        let header = HEADERS.iter().find(starts);
        let Some((prefix, least)) = issuer.or(header) else { continue };
        let from = at + prefix.len();
        let len = key_len(bytes, from);
        let key = bytes.get(from..from + len).unwrap_or_default();
        // A long name with a prefix by chance has neither digits nor capitals.
        let mixed = key.iter().any(u8::is_ascii_digit) || key.iter().any(u8::is_ascii_uppercase);
        let sure = SURE.contains(prefix);
        let cut = len > 0 && is_cut(bytes, from + len);
        if (len >= *least || cut) && (mixed || sure) {
            found.push(if issuer.is_some() { at..from + len } else { from..from + len });
        }
    }
}

/// `NAME=value`, `name: "value"`, `"name":"value"`, `--name value`, where the name says that it is secret.
pub(super) fn named(text: &str, found: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    for (at, pair) in bytes.windows(2).enumerate() {
        let [first, second] = pair else { continue };
        if !NAMES_BEGIN.may(first.to_ascii_lowercase(), second.to_ascii_lowercase()) {
            continue;
        }
        let is_here = |name: &&&str| {
            bytes.get(at..at + name.len()).is_some_and(|here| here.eq_ignore_ascii_case(name.as_bytes()))
        };
        let value = NAMES.iter().find(is_here).and_then(|name| value_of(bytes, at, at + name.len()));
        found.extend(value);
    }
}

/// The secret value of a name whose secret part is from `at` to `end`, if it is one.
fn value_of(bytes: &[u8], at: usize, end: usize) -> Option<Range<usize>> {
    // The rest of the name, `TOKEN_FILE` for one; then what stands between it and its value.
    let rest = bytes.iter().skip(end).take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')).count();
    let mut value = value_after(bytes, end + rest).or_else(|| option_value(bytes, at, end + rest))?;
    let cut = memchr::memmem::find(bytes.get(value.clone())?, CUT.as_bytes());
    value.end = cut.map_or(value.end, |at| value.start + at);
    let tail = String::from_utf8_lossy(bytes.get(end..end + rest)?).to_ascii_lowercase();
    if !matches!(tail.as_str(), "" | "s" | "_id" | "_key" | "id" | "key") && !tail.starts_with(['_', '-'])
        || ["file", "path", "name", "count", "limit", "env", "url", "type"].iter().any(|word| tail.contains(word))
    {
        return None;
    }
    let word = bytes.get(value.clone())?;
    // Words, numbers and code are talk about a secret (`token = lexer.next()`), not one.
    let quoted =
        value.start.checked_sub(1).and_then(|n| bytes.get(n)).is_some_and(|b| matches!(b, b'"' | b'\'' | b'`'));
    let letters = word.iter().any(u8::is_ascii_alphabetic);
    let others = word.iter().any(|b| b.is_ascii_digit() || quoted && !b.is_ascii_lowercase());
    let code =
        word.iter().any(|b| b.is_ascii_whitespace() || matches!(b, b'(' | b'{' | b'[')) || word.starts_with(b"$");
    // The digits of one that was cut may be among what is missing.
    let whole = value.len() >= VALUE_LEAST && letters && others;
    ((whole || cut.is_some() && letters) && !code).then_some(value)
}

/// The value behind a name: after `=` or `:`, in quotes or not.
fn value_after(bytes: &[u8], from: usize) -> Option<Range<usize>> {
    let mut at = from;
    let quote = |b: &u8| matches!(b, b'"' | b'\'' | b'`');
    // No more than a few, so that what stands in another column is nobody's value.
    let skip = |at: &mut usize, what: &dyn Fn(&u8) -> bool| {
        let begun = *at;
        while *at < begun + 2 && bytes.get(*at).is_some_and(what) {
            *at += 1;
        }
        *at > begun
    };
    // A name inside of JSON inside of JSON has its quote escaped.
    skip(&mut at, &|b| *b == b'\\' || quote(b));
    skip(&mut at, &|b| *b == b' ');
    if !skip(&mut at, &|b| matches!(b, b'=' | b':')) {
        return None;
    }
    skip(&mut at, &|b| *b == b' ');
    let quoted = skip(&mut at, &|b| *b == b'\\' || quote(b));
    let ends = |b: &u8| {
        if quoted {
            quote(b) || *b == b'\\'
        } else {
            b.is_ascii_whitespace() || matches!(b, b',' | b';' | b'&' | b'"' | b'\'' | b')' | b'}' | b']')
        }
    };
    let len = bytes.iter().skip(at).take_while(|b| !ends(b) && **b != b'\n').count();
    Some(at..at + len)
}

/// The word behind an option whose name ends at `end` and has something secret at `at`: `--password WORD`.
fn option_value(bytes: &[u8], at: usize, end: usize) -> Option<Range<usize>> {
    let is_name = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let before = bytes.get(..at)?.iter().rev().take_while(is_name).count();
    let name = bytes.get(at - before..end)?;
    let gap = bytes.get(end..)?.iter().take(2).take_while(|b| **b == b' ').count();
    let quoted = bytes.get(end + gap).is_some_and(|b| matches!(b, b'"' | b'\''));
    let from = end + gap + usize::from(quoted);
    let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`' | b';' | b'&' | b'|' | b')');
    let len = bytes.get(from..)?.iter().take_while(|b| !ends(b)).count();
    // Another option behind it is no value.
    (name.starts_with(b"--") && gap > 0 && bytes.get(from) != Some(&b'-')).then_some(from..from + len)
}

/// The password of an address: `https://user:password@host`.
pub(super) fn in_address(text: &str, found: &mut Vec<Range<usize>>) {
    for (at, _) in text.match_indices("://") {
        let from = at + 3;
        let Some(rest) = text.get(from..) else { continue };
        let end =
            rest.find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '?' | '#')).unwrap_or(rest.len());
        let Some(part) = rest.get(..end) else { continue };
        // What was cut before its host may be a host with its port as well.
        let cut = || {
            let (who, _) = part.split_once(CUT)?;
            who.split_once(':').is_some_and(|(_, port)| port.bytes().any(|b| !b.is_ascii_digit())).then_some(who)
        };
        let Some(who) = part.rsplit_once('@').map(|(who, _)| who).or_else(cut) else { continue };
        if let Some((user, password)) = who.split_once(':').filter(|(_, password)| !password.is_empty()) {
            found.push(from + user.len() + 1..from + user.len() + 1 + password.len());
        }
    }
}

/// The body of a private key, up to its end or that of the text.
pub(super) fn blocks(text: &str, found: &mut Vec<Range<usize>>) {
    for (at, _) in text.match_indices("-----BEGIN ") {
        let Some(head) = text.get(at..) else { continue };
        let Some(title) = head.find("PRIVATE KEY-----").filter(|n| *n < 40) else { continue };
        let from = at + title + "PRIVATE KEY-----".len();
        let end = text.get(from..).and_then(|rest| rest.find("-----END ")).map_or(text.len(), |n| from + n);
        if end > from {
            found.push(from..end);
        }
    }
}

/// The ranges in order, without overlap.
pub(super) fn merged(mut found: Vec<Range<usize>>) -> Vec<Range<usize>> {
    found.sort_by_key(|range| range.start);
    let mut out: Vec<Range<usize>> = Vec::with_capacity(found.len());
    for range in found {
        match out.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}
