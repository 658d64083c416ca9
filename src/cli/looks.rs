//! How the deck is to look where nobody said it: what the locale can show and what the terminal has.

use super::load::World;
use crate::deck::theme::Palette;

/// Terminals without colours, by the beginnings of their names.
const PLAIN: [&str; 6] = ["vt52", "vt100", "vt102", "vt220", "vt320", "vt420"];

/// Whether only ASCII is to be drawn: where it is asked for, else where the locale says that the terminal shows nothing
/// else.
pub(super) fn ascii(world: &World, asked: bool) -> bool {
    asked || world.config.ascii().unwrap_or_else(|| is_narrow(variable))
}

/// The colours that the person wants, else none on a terminal that has none; `None` leaves it to the terminal. `NO_COLOR`
/// goes before everything else.
pub(super) fn palette(world: &World) -> Option<Palette> {
    if variable("NO_COLOR").is_some() {
        return Some(Palette::Mono);
    }
    let plain = variable("TERM").is_some_and(|term| is_plain(&term));
    Palette::named(world.config.theme()).or(plain.then_some(Palette::Mono))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whether the locale names a codeset that is not UTF-8, as C and POSIX do. Without any locale, as in containers, and
/// without a codeset in its name nothing is said of the terminal.
fn is_narrow(of: impl Fn(&str) -> Option<String>) -> bool {
    let Some(locale) = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(of) else { return false };
    let codeset = locale.split_once('.').map(|(_, rest)| rest.split('@').next().unwrap_or(rest));
    match codeset {
        Some(codeset) => !["utf-8", "utf8"].contains(&codeset.to_lowercase().as_str()),
        None => ["C", "POSIX"].contains(&locale.as_str()),
    }
}

/// Whether a terminal of this name has no colours.
fn is_plain(term: &str) -> bool {
    let mono = term.ends_with("-mono") || term.ends_with("-m");
    mono || PLAIN
        .iter()
        .any(|plain| term.strip_prefix(plain).is_some_and(|rest| rest.is_empty() || rest.starts_with('-')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_that_is_not_utf_8_is_ascii() {
        for (set, narrow) in [
            (&[][..], false),
            (&[("LANG", "C")], true),
            (&[("LANG", "POSIX")], true),
            (&[("LANG", "C.UTF-8")], false),
            (&[("LANG", "en_US.utf8")], false),
            (&[("LANG", "de_DE.ISO-8859-1")], true),
            (&[("LANG", "de_DE.UTF-8@euro")], false),
            (&[("LANG", "de_DE")], false),
            (&[("LANG", "C"), ("LC_CTYPE", "C.UTF-8")], false),
            (&[("LANG", "C.UTF-8"), ("LC_CTYPE", "C.UTF-8"), ("LC_ALL", "C")], true),
        ] {
            let of = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(is_narrow(of), narrow, "{set:?}");
        }
    }

    #[test]
    fn terminals_without_colours_are_known_by_name() {
        for term in ["vt100", "vt220", "vt100-w", "xterm-mono", "rxvt-m"] {
            assert!(is_plain(term), "{term}");
        }
        for term in ["xterm", "xterm-256color", "screen", "linux", "tmux-256color", "vt340", "vt1000"] {
            assert!(!is_plain(term), "{term}");
        }
    }
}
