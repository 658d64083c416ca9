//! Words as a shell reads them.

/// The word in quotes, unless it means itself without.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "_-./=:,@%+{}".contains(c));
    if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stays_one_word() {
        for (word, expected) in [
            ("a-1.b/c", "a-1.b/c"),
            ("", "''"),
            ("a b", "'a b'"),
            ("$(x)", "'$(x)'"),
            ("it's", r"'it'\''s'"),
            ("~/x", "'~/x'"),
            ("漢", "漢"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
