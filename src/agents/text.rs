//! Plain commands: nothing that they print is an event, and the end of their output is their result.

use crate::run::Report;

/// How many bytes of the end of the output are kept as the result (runner-behaviour 7.1).
pub const KEPT: usize = 64 * 1024;

/// The report of a plain command from the end of its standard output; `cut` says that `tail` is not the whole of it.
#[must_use]
pub fn report(tail: &[u8], cut: bool) -> Report {
    let surplus = tail.len().saturating_sub(KEPT);
    let mut kept = tail.get(surplus..).unwrap_or_default();
    let cut = cut || surplus > 0;
    if cut {
        // At most three continuation bytes belong to a character whose start is gone.
        let stray = kept.iter().take(3).take_while(|b| (**b & 0xc0) == 0x80).count();
        kept = kept.get(stray..).unwrap_or_default();
    }
    let text = String::from_utf8_lossy(kept);
    let text = text.trim();
    let final_text = (!text.is_empty()).then(|| {
        if cut {
            format!("[the beginning of the output is left out; the last {} KiB follow]\n{text}", KEPT / 1024)
        } else {
            text.to_owned()
        }
    });
    Report { plain: true, saw_any_event: !tail.is_empty(), final_text, ..Report::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_from_the_start_of_a_character_and_says_what_it_is() {
        assert_eq!(report(b" done\n", false).final_text.as_deref(), Some("done"));
        assert_eq!(report(b"", false).final_text, None);
        assert!(!report(b"", false).saw_any_event);
        let long = "€".repeat(KEPT);
        let text = report(long.as_bytes(), false).final_text.unwrap();
        let (head, tail) = text.split_once('\n').unwrap();
        assert!(head.starts_with("[the beginning"), "{head}");
        assert!(tail.chars().all(|c| c == '€') && tail.len() > KEPT - 3 && tail.len() <= KEPT);
        assert!(report(b"x", true).final_text.unwrap().starts_with("[the beginning"));
    }
}
