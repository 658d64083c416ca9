//! Which key means which action: the table's keys, and those that the person chose instead.

use std::collections::BTreeMap;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::actions::{Action, Row, TABLE, row};

/// A key as the table of actions names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Which.
    pub code: KeyCode,
    /// With control held.
    pub ctrl: bool,
}

/// The key of a character.
pub(crate) const fn ch(c: char) -> Key {
    Key { code: KeyCode::Char(c), ctrl: false }
}

/// The key of a character with control held.
pub(crate) const fn ctrl(c: char) -> Key {
    Key { code: KeyCode::Char(c), ctrl: true }
}

/// A key that is no character.
pub(crate) const fn code(code: KeyCode) -> Key {
    Key { code, ctrl: false }
}

impl From<KeyEvent> for Key {
    fn from(event: KeyEvent) -> Self {
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        // With control held, terminals disagree about the case of a letter.
        let code = match event.code {
            KeyCode::Char(c) if ctrl => KeyCode::Char(c.to_ascii_lowercase()),
            other => other,
        };
        Self { code, ctrl }
    }
}

/// The keys that have a name, as people write them.
const NAMED: &[(&str, KeyCode)] = &[
    ("space", KeyCode::Char(' ')),
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("backtab", KeyCode::BackTab),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pgup", KeyCode::PageUp),
    ("pgdn", KeyCode::PageDown),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
];

/// How a key is shown.
#[must_use]
pub fn key_name(key: Key) -> String {
    let name = match key.code {
        KeyCode::Up => "↑".to_owned(),
        KeyCode::Down => "↓".to_owned(),
        KeyCode::Left => "←".to_owned(),
        KeyCode::Right => "→".to_owned(),
        KeyCode::F(n) => format!("F{n}"),
        code => match NAMED.iter().find(|(_, named)| *named == code) {
            Some((name, _)) => (*name).to_owned(),
            None => match code {
                KeyCode::Char(c) => c.to_string(),
                other => format!("{other:?}").to_lowercase(),
            },
        },
    };
    if key.ctrl { format!("ctrl-{name}") } else { name }
}

/// Names of keys as they are shown; arrows are written out where only ASCII may be drawn, for the letters and signs that
/// would stand for them are keys of their own.
#[must_use]
pub fn spelt(names: &str, ascii: bool) -> String {
    const ARROWS: [(&str, &str); 5] = [("↑↓", "up/down"), ("↑", "up"), ("↓", "down"), ("←", "left"), ("→", "right")];
    if !ascii {
        return names.to_owned();
    }
    ARROWS.iter().fold(names.to_owned(), |names, (arrow, word)| names.replace(arrow, word))
}

/// Reads a key as people write it: a character, a name such as `space` or `pgdn`, `F1` to `F12`, and `ctrl-` before a
/// letter or a name.
///
/// # Errors
/// A sentence part that says what to write.
fn parse_key(text: &str) -> Result<Key, String> {
    let wrong = || {
        format!("`{text}` is no key; write a character, F1 to F12, ctrl- and a letter, or one of {}", {
            let names: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
            names.join(", ")
        })
    };
    let lower = text.to_lowercase();
    let (ctrl, name, shown) = match (lower.strip_prefix("ctrl-"), text.get(5..)) {
        (Some(name), Some(shown)) if !name.is_empty() => (true, name, shown),
        _ => (false, lower.as_str(), text),
    };
    let named = NAMED.iter().find(|(known, _)| *known == name).map(|(_, code)| *code);
    let function = || {
        let number = name.strip_prefix('f')?.parse().ok()?;
        (1..=12).contains(&number).then_some(KeyCode::F(number))
    };
    let single = || {
        let mut chars = shown.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) if !c.is_control() && !c.is_whitespace() => {
                Some(KeyCode::Char(if ctrl { c.to_ascii_lowercase() } else { c }))
            }
            _ => None,
        }
    };
    let code = named.or_else(function).or_else(single).ok_or_else(wrong)?;
    Ok(Key { code, ctrl })
}

/// The keys of the person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keymap {
    /// By the name of the action: what counts instead of the table's keys.
    own: BTreeMap<&'static str, Vec<Key>>,
    /// Only ASCII may be drawn where they are named.
    pub ascii: bool,
}

/// A wish: an action by its name, and its keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    /// The name, as the person wrote it; `_` and `-` stand for spaces.
    pub action: String,
    /// The keys, the best one first; none takes its keys away.
    pub keys: Vec<String>,
}

/// What is wrong with a wish, which is left out then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which, by its place in the list.
    pub at: usize,
    /// Why.
    pub message: String,
    /// What to do.
    pub suggestion: Option<String>,
}

impl Keymap {
    /// The table's keys with these instead; and the wishes that cannot be met.
    #[must_use]
    pub fn with(bindings: &[Binding]) -> (Self, Vec<Refused>) {
        let mut refused = Vec::new();
        let mut wanted: Vec<(usize, &'static Row, Vec<Key>)> = Vec::new();
        for (at, binding) in bindings.iter().enumerate() {
            match wish(at, binding) {
                Ok((row, keys)) => wanted.push((at, row, keys)),
                Err(why) => refused.push(why),
            }
        }
        // A wish is met only beside those before it and the table's keys of everything that nobody wished for.
        let mut map = Self::default();
        for (at, row, keys) in &wanted {
            let standing = TABLE.iter().filter(|other| other.action != row.action).find_map(|other| {
                let waits =
                    wanted.iter().any(|(_, w, _)| w.action == other.action) && !map.own.contains_key(other.name);
                let taken = if waits { &[] } else { map.keys(other) };
                keys.iter().find(|key| taken.contains(key)).map(|key| (*key, other))
            });
            match standing {
                Some((key, other)) => refused.push(Refused {
                    at: *at,
                    message: format!("`{}` is the key of `{}` already", key_name(key), config_name(other)),
                    suggestion: Some(format!("give `{}` another key too, or [] for none", config_name(other))),
                }),
                None => drop(map.own.insert(row.name, keys.clone())),
            }
        }
        refused.sort_by_key(|r| r.at);
        (map, refused)
    }

    /// The keys of a row, the best one first.
    #[must_use]
    pub fn keys(&self, row: &Row) -> &[Key] {
        self.own.get(row.name).map_or(row.keys, Vec::as_slice)
    }

    /// What a key press means where keys are commands.
    #[must_use]
    pub fn lookup(&self, event: KeyEvent) -> Option<Action> {
        // With anything else held it is another key, which means nothing.
        if event
            .modifiers
            .intersects(KeyModifiers::ALT | KeyModifiers::SUPER | KeyModifiers::META | KeyModifiers::HYPER)
        {
            return None;
        }
        let key = Key::from(event);
        TABLE.iter().find(|r| self.keys(r).contains(&key)).map(|r| r.action)
    }

    /// The best key of an action as it is shown; empty when it has none.
    #[must_use]
    pub fn hint(&self, action: Action) -> String {
        row(action).and_then(|r| self.keys(r).first()).map(|key| self.spelt(&key_name(*key))).unwrap_or_default()
    }

    /// All keys of a row as they are shown.
    #[must_use]
    pub fn shown(&self, row: &Row) -> String {
        self.spelt(&self.keys(row).iter().copied().map(key_name).collect::<Vec<_>>().join(" "))
    }

    /// The same keys, named where only ASCII may be drawn, or not.
    #[must_use]
    pub fn drawn_in(self, ascii: bool) -> Self {
        Self { ascii, ..self }
    }

    /// Names of keys as they are shown.
    #[must_use]
    pub fn spelt(&self, names: &str) -> String {
        spelt(names, self.ascii)
    }
}

/// The name of an action in the configuration.
#[must_use]
pub fn config_name(row: &Row) -> String {
    row.name.replace(' ', "_")
}

fn wish(at: usize, binding: &Binding) -> Result<(&'static Row, Vec<Key>), Refused> {
    let refused = |message: String| Refused { at, message, suggestion: None };
    let name = binding.action.trim().replace(['_', '-'], " ").to_lowercase();
    let Some(row) = TABLE.iter().find(|r| r.name == name) else {
        let near = TABLE
            .iter()
            .map(|r| (strsim::damerau_levenshtein(&name, r.name), r))
            .min_by_key(|(distance, _)| *distance)
            .filter(|(distance, r)| *distance <= (r.name.len() / 3).max(2));
        let suggestion = near.map(|(_, r)| format!("did you mean `{}`?", config_name(r)));
        return Err(Refused { suggestion, ..refused(format!("there is no action `{}`", binding.action)) });
    };
    let keys = binding.keys.iter().map(|text| parse_key(text)).collect::<Result<Vec<_>, _>>().map_err(refused)?;
    if let Some((key, other)) = keys.iter().find_map(|key| Some((key, sent_as(*key)?))) {
        let message = format!("a terminal sends `{}` as `{other}`, so nobody can tell them apart", key_name(*key));
        return Err(refused(message));
    }
    if let Some(key) = keys.iter().find(|key| fixed(row.action, **key)) {
        return Err(refused(format!("`{}` keeps its meaning: it is how one gets out", key_name(*key))));
    }
    let confirmed = matches!(row.action, Action::StopStep | Action::StopRun);
    if let Some(key) = keys.iter().find(|key| confirmed && matches!(key.code, KeyCode::Char('y' | 'Y')) && !key.ctrl) {
        let key = key_name(*key);
        return Err(refused(format!("`{key}` answers the question of `{}`, so it cannot put it", config_name(row))));
    }
    if keys.is_empty() && matches!(row.action, Action::Quit | Action::Back) {
        return Err(refused(format!("`{}` needs a key", config_name(row))));
    }
    Ok((row, keys))
}

/// The key that a terminal sends in place of another one.
const fn sent_as(key: Key) -> Option<&'static str> {
    match key {
        Key { code: KeyCode::Char('i'), ctrl: true } => Some("tab"),
        Key { code: KeyCode::Char('m'), ctrl: true } => Some("enter"),
        Key { code: KeyCode::Char('['), ctrl: true } => Some("esc"),
        _ => None,
    }
}

/// Keys that everybody must be able to rely on cannot be given to another action.
fn fixed(action: Action, key: Key) -> bool {
    let leaves = key == Key { code: KeyCode::Char('c'), ctrl: true };
    let back = key == Key { code: KeyCode::Esc, ctrl: false };
    leaves && action != Action::Quit || back && action != Action::Back
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bindings(wishes: &[(&str, &[&str])]) -> Vec<Binding> {
        let one = |(action, keys): &(&str, &[&str])| Binding {
            action: (*action).to_owned(),
            keys: keys.iter().map(|k| (*k).to_owned()).collect(),
        };
        wishes.iter().map(one).collect()
    }

    fn press(text: &str) -> KeyEvent {
        let key = parse_key(text).unwrap();
        KeyEvent::new(key.code, if key.ctrl { KeyModifiers::CONTROL } else { KeyModifiers::NONE })
    }

    #[test]
    fn a_key_with_alt_is_another_key_than_the_one_without() {
        let keymap = Keymap::default();
        for letter in ['x', 'X', 'i', 'q'] {
            assert!(keymap.lookup(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE)).is_some(), "{letter}");
            for with in [KeyModifiers::ALT, KeyModifiers::SUPER, KeyModifiers::ALT | KeyModifiers::CONTROL] {
                assert_eq!(keymap.lookup(KeyEvent::new(KeyCode::Char(letter), with)), None, "{letter}");
            }
        }
    }

    #[test]
    fn a_key_is_read_as_it_is_written() {
        for (text, code, ctrl) in [
            ("x", KeyCode::Char('x'), false),
            ("X", KeyCode::Char('X'), false),
            ("+", KeyCode::Char('+'), false),
            ("ctrl-X", KeyCode::Char('x'), true),
            ("ctrl-space", KeyCode::Char(' '), true),
            ("Space", KeyCode::Char(' '), false),
            ("F5", KeyCode::F(5), false),
            ("f", KeyCode::Char('f'), false),
            ("pgdn", KeyCode::PageDown, false),
            ("ctrl--", KeyCode::Char('-'), true),
            ("é", KeyCode::Char('é'), false),
        ] {
            assert_eq!(parse_key(text), Ok(Key { code, ctrl }), "{text}");
        }
        for text in ["", "xx", "F0", "F13", "ctrl-", "alt-x", " ", "\t", "\x1b", "ctrl-é日"] {
            let error = parse_key(text).unwrap_err();
            assert!(error.contains("pgdn"), "{text:?}: {error}");
        }
    }

    #[test]
    fn every_key_of_the_table_can_be_written_in_a_configuration() {
        for row in TABLE {
            for key in row.keys {
                let arrows = [("↑", "up"), ("↓", "down"), ("←", "left"), ("→", "right")];
                let name = key_name(*key);
                let name = arrows.iter().find(|(a, _)| *a == name).map_or(name.clone(), |(_, n)| (*n).to_owned());
                assert_eq!(parse_key(&name), Ok(*key), "{}", row.name);
            }
        }
    }

    #[test]
    fn an_own_key_counts_instead_of_the_tables() {
        let (map, refused) = Keymap::with(&bindings(&[("stop_step", &["K", "F8"]), ("half-page-down", &["ctrl-f"])]));
        assert!(refused.is_empty(), "{refused:?}");
        assert_eq!(map.lookup(press("K")), Some(Action::StopStep));
        assert_eq!(map.lookup(press("F8")), Some(Action::StopStep));
        assert_eq!(map.lookup(press("x")), None);
        assert_eq!(map.lookup(press("ctrl-f")), Some(Action::HalfDown));
        assert_eq!(map.lookup(press("j")), Some(Action::Down));
        assert_eq!(map.hint(Action::StopStep), "K");
    }

    #[test]
    fn where_only_ascii_may_be_drawn_no_key_is_shown_as_another_one() {
        let map = Keymap { ascii: true, ..Keymap::default() };
        let shown: Vec<String> = TABLE.iter().flat_map(|row| row.keys).map(|key| map.spelt(&key_name(*key))).collect();
        let mut different = shown.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), shown.len());
        assert!(shown.iter().all(|name| name.is_ascii()), "{shown:?}");
        assert_eq!(map.hint(Action::Down), "j");
        assert_eq!(map.shown(row(Action::Down).unwrap()), "j down");
        assert_eq!(map.spelt("↑↓/jk"), "up/down/jk");
    }

    #[test]
    fn keys_can_be_swapped_and_taken_away() {
        let (map, refused) = Keymap::with(&bindings(&[("steer", &["x"]), ("stop step", &["s"]), ("freeze", &[])]));
        assert!(refused.is_empty(), "{refused:?}");
        assert_eq!(map.lookup(press("x")), Some(Action::Steer));
        assert_eq!(map.lookup(press("s")), Some(Action::StopStep));
        assert_eq!(map.lookup(press("space")), None);
        assert_eq!(map.hint(Action::Freeze), "");
    }

    #[test]
    fn what_cannot_be_meant_is_refused_and_leaves_the_table_as_it_is() {
        for (wishes, at, part) in [
            (&[("stpo_step", &["K"][..])][..], 0, "no action `stpo_step`"),
            (&[("steer", &["j"])], 0, "`j` is the key of `down` already"),
            (&[("steer", &["Q"]), ("zoom", &["Q"])], 1, "`Q` is the key of `steer` already"),
            (&[("steer", &["nokey"])], 0, "`nokey` is no key"),
            (&[("steer", &["ctrl-c"])], 0, "`ctrl-c` keeps its meaning"),
            (&[("quit", &[])], 0, "`quit` needs a key"),
            (&[("zoom", &["ctrl-i"])], 0, "a terminal sends `ctrl-i` as `tab`"),
            (&[("open", &["F2", "ctrl-m"])], 0, "a terminal sends `ctrl-m` as `enter`"),
            (&[("back", &["ctrl-["])], 0, "a terminal sends `ctrl-[` as `esc`"),
            (&[("copy", &[]), ("stop_run", &["y"])], 1, "`y` answers the question of `stop_run`"),
        ] {
            let (map, refused) = Keymap::with(&bindings(wishes));
            let [refused] = refused.as_slice() else { panic!("{wishes:?}: {refused:?}") };
            assert_eq!(refused.at, at, "{wishes:?}");
            assert!(refused.message.contains(part), "{}", refused.message);
            assert_eq!(map.lookup(press("j")), Some(Action::Down));
        }
        let (_, refused) = Keymap::with(&bindings(&[("stpo_step", &["K"])]));
        assert_eq!(refused[0].suggestion.as_deref(), Some("did you mean `stop_step`?"));
    }
}
