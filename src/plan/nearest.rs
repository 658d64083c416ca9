//! The known word that somebody may have meant.

/// The nearest of `known` to `word`, when one is near enough to be meant.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let plain =
        |w: &str| w.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect::<String>();
    let wanted = plain(word);
    let allowed = (wanted.chars().count() / 3).clamp(1, 4);
    known
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&wanted, &plain(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Known words as a sentence part: `a, b or c`.
pub fn one_of<'k>(known: impl IntoIterator<Item = &'k str>) -> String {
    let mut words: Vec<String> = known.into_iter().map(|w| format!("`{w}`")).collect();
    let last = words.pop().unwrap_or_default();
    if words.is_empty() { last } else { format!("{} or {last}", words.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_or_none() {
        let known = ["task", "tools", "concurrency", "fail_fast", "cwd", "id"];
        for (word, expected) in [
            ("taks", Some("task")),
            ("failFast", Some("fail_fast")),
            ("Task", Some("task")),
            ("concurency", Some("concurrency")),
            ("tool", Some("tools")),
            ("ix", Some("id")),
            ("zz", None),
            ("directory", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
        assert_eq!(one_of(["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(one_of(["a"]), "`a`");
    }
}
