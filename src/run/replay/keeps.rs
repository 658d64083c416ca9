//! States that are kept on the way, so that no place is reached only from the beginning.

/// What was known after so many events, at places that lie evenly however long the tape turns out to be: where there are
/// too many, every other one goes, and the next ones lie twice as far apart.
#[derive(Clone, Debug)]
pub struct Keeps<T> {
    kept: Vec<(usize, T)>,
    apart: usize,
}

/// Fewer events than these are played again sooner than a state is copied.
const NEAREST: usize = 512;

impl<T> Default for Keeps<T> {
    fn default() -> Self {
        Self { kept: Vec::new(), apart: NEAREST }
    }
}

impl<T> Keeps<T> {
    /// Whether what is known after `events` events is to be kept.
    #[must_use]
    pub fn wants(&self, events: usize) -> bool {
        self.kept.last().is_none_or(|(last, _)| events >= last + self.apart)
    }

    /// Keeps it; of all at most `most`, and always one.
    pub fn keep(&mut self, events: usize, known: T, most: usize) {
        self.kept.push((events, known));
        while self.kept.len() > most.max(1) {
            let mut number = 0;
            // The first one stays: before it there is nothing.
            self.kept.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.apart = self.apart.saturating_mul(2);
        }
    }

    /// The last one that is not behind `events`.
    #[must_use]
    pub fn before(&self, events: usize) -> Option<(usize, &T)> {
        let at = self.kept.partition_point(|(kept, _)| *kept <= events);
        self.kept.get(at.checked_sub(1)?).map(|(kept, known)| (*kept, known))
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_lie_evenly_and_never_too_many_of_them() {
        let mut keeps = Keeps::default();
        for events in 0..100_000 {
            if keeps.wants(events) {
                keeps.keep(events, events, 16);
            }
            assert!(keeps.len() <= 16);
        }
        assert!(keeps.len() >= 8, "{}", keeps.len());
        assert_eq!(keeps.before(0), Some((0, &0)));
        for asked in [1, 5_000, 77_777, 99_999] {
            let (kept, known) = keeps.before(asked).unwrap();
            assert_eq!(kept, *known);
            assert!(kept <= asked && asked - kept <= 100_000 / 8, "{asked}: {kept}");
        }
        assert_eq!(Keeps::<()>::default().before(9), None);
    }
}
