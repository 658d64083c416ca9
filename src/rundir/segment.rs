//! `seg()`: how ids become names of index files (run-directory 1.3). Pure.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};

/// What `encodeURIComponent` keeps besides letters and digits.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// The longest segment in bytes, and the longest when `.json` follows.
const LONGEST: usize = 255;
const LONGEST_STEM: usize = 250;

/// The name of a folder for this value.
#[must_use]
pub fn folder(value: &str) -> String {
    segment(value, LONGEST)
}

/// The name of a file for this value, to which `.json` is added.
#[must_use]
pub fn stem(value: &str) -> String {
    segment(value, LONGEST_STEM)
}

/// The plain `encodeURIComponent`, which replay and archive names use.
#[must_use]
pub fn encoded(value: &str) -> String {
    utf8_percent_encode(value, ENCODED).to_string()
}

/// Lower-case hexadecimal SHA-256.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

fn segment(value: &str, longest: usize) -> String {
    let plain = encoded(value);
    if plain.len() <= longest && is_portable(&plain) {
        return plain;
    }
    format!("~sha256-{}", sha256_hex(value.as_bytes()))
}

fn is_portable(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    !matches!(name, "" | "." | "..")
        && !name.ends_with('.')
        && !lower.contains("%5c")
        && !is_device(lower.split('.').next().unwrap_or(&lower))
        && !has_extension(name)
}

fn is_device(stem: &str) -> bool {
    if matches!(stem, "con" | "prn" | "aux" | "nul") {
        return true;
    }
    let number = stem.strip_prefix("com").or_else(|| stem.strip_prefix("lpt"));
    number.is_some_and(|n| matches!(n.as_bytes(), [b'1'..=b'9']))
}

/// A dot, one letter and up to seven letters or digits at the end.
fn has_extension(name: &str) -> bool {
    let Some((_, tail)) = name.rsplit_once('.') else { return false };
    let mut bytes = tail.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic()) && tail.len() <= 8 && bytes.all(|b| b.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_specification() {
        let table = [
            ("0b8f2c1e-6d1f-4e57-9d0a-2f6f3f3f9a10", "0b8f2c1e-6d1f-4e57-9d0a-2f6f3f3f9a10"),
            ("sess-bare-id", "sess-bare-id"),
            ("a b", "a%20b"),
            ("/x/y", "%2Fx%2Fy"),
            ("v1.2.3", "v1.2.3"),
            (
                "/home/demo/sessions/parent.jsonl",
                "~sha256-3f867d9c13e7737350e9baa82739f884eb0b4611d0238e3783fec9cb710b42b2",
            ),
            ("name.tar2", "~sha256-77e5af96efb241c452f5f83ec72da52651b1cc8356c9ec6b49d8adcad5bcdc1a"),
            ("con", "~sha256-1143da2bc54c495c4be31d3868785d39ffdfd56df5668f0645d8f14d47647952"),
        ];
        for (value, want) in table {
            assert_eq!(folder(value), want, "{value}");
            assert_eq!(stem(value), want, "{value}");
        }
    }

    #[test]
    fn what_is_not_portable_is_hashed() {
        for value in ["", ".", "..", "a.", "a\\b", "NUL", "com1", "lpt9.x", "aux.log", "x.Z", "x.abcdefgh"] {
            assert!(folder(value).starts_with("~sha256-"), "{value:?}");
        }
        for value in ["com0", "com", "console", "x.abcdefghi", "x.1", "(a)!~*'", "Ünï"] {
            assert!(!folder(value).starts_with("~sha256-"), "{value:?}");
        }
    }

    #[test]
    fn names_that_are_too_long_are_hashed_five_bytes_earlier_for_files() {
        let (at, over) = ("a".repeat(250), "a".repeat(251));
        assert_eq!(stem(&at), at);
        assert!(stem(&over).starts_with("~sha256-"));
        assert_eq!(folder(&over), over);
        assert!(folder(&"a".repeat(256)).starts_with("~sha256-"));
    }
}
