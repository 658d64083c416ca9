//! Events of an agent that this version does not know: how many came, and the names of the first few kinds. They change
//! nothing else (law 10, agent-streams 0.13).

use crate::text::{SafeText, prefix};

/// What came and was not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknowns {
    /// How many came, of whatever kind.
    pub total: u64,
    /// The kinds that came first, at most [`Unknowns::KEPT`], and how many came of each.
    pub kinds: Vec<UnknownKind>,
}

/// Events of one unknown kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownKind {
    /// Its name, made harmless, at most [`Unknowns::NAME`] bytes.
    pub name: String,
    /// How many came.
    pub count: u64,
}

impl Unknowns {
    /// How many kinds are kept: an agent may make a name for every event.
    pub const KEPT: usize = 8;
    /// Longest name of a kind, in bytes.
    pub const NAME: usize = 64;

    /// Counts an event.
    pub(super) fn take(&mut self, kind: &str) {
        self.total = self.total.saturating_add(1);
        let name = Self::name(kind);
        if let Some(known) = self.kinds.iter_mut().find(|known| known.name == name) {
            known.count = known.count.saturating_add(1);
        } else if self.kinds.len() < Self::KEPT {
            self.kinds.push(UnknownKind { name, count: 1 });
        }
    }

    /// The name of a kind as it is kept.
    #[must_use]
    pub fn name(kind: &str) -> String {
        prefix(SafeText::line(kind).as_str(), Self::NAME).to_owned()
    }

    /// One line for people; `None` when nothing came that was not known.
    #[must_use]
    pub fn told(&self) -> Option<String> {
        let events = match self.total {
            0 => return None,
            1 => "1 event".to_owned(),
            n => format!("{} events", crate::text::grouped(n)),
        };
        let mut kinds: Vec<String> = self.kinds.iter().map(|kind| format!("{} ×{}", kind.name, kind.count)).collect();
        if self.kinds.iter().fold(0_u64, |sum, kind| sum.saturating_add(kind.count)) < self.total {
            kinds.push("…".to_owned());
        }
        Some(format!("{events}: {}", kinds.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_the_names_of_the_first_kinds_kept() {
        let mut unknown = Unknowns::default();
        assert_eq!(unknown.told(), None);
        unknown.take("a");
        assert_eq!(unknown.told().as_deref(), Some("1 event: a ×1"));
        unknown.take("a");
        for n in 0..1000 {
            unknown.take(&format!("k{n}"));
        }
        assert_eq!((unknown.total, unknown.kinds.len()), (1002, Unknowns::KEPT));
        assert_eq!(unknown.kinds[0], UnknownKind { name: "a".to_owned(), count: 2 });
        let told = unknown.told().unwrap();
        assert!(told.starts_with("1,002 events: a ×2, k0 ×1") && told.ends_with(", …"), "{told}");
    }

    #[test]
    fn a_name_is_harmless_and_short() {
        let mut unknown = Unknowns::default();
        let hostile = format!("\u{1b}]0;x\u{7}{}\n漢", "字".repeat(100));
        unknown.take(&hostile);
        unknown.take(&hostile);
        let [kind] = unknown.kinds.as_slice() else { panic!("{unknown:?}") };
        assert!(kind.name.len() <= Unknowns::NAME && !kind.name.contains(char::is_control), "{:?}", kind.name);
        assert_eq!(kind.count, 2);
    }
}
