//! Which calls named which files: of each step the places of its calls by path and tool. The words are kept once for all
//! steps, and four bytes a call.

use std::collections::BTreeMap;

/// The words that calls are told apart by.
#[derive(Debug, Default)]
pub(super) struct Words {
    numbers: BTreeMap<Box<str>, u32>,
    all: Vec<Box<str>>,
}

impl Words {
    /// The number of a word, and how many bytes it takes where it is a new one.
    fn number(&mut self, word: &str) -> (u32, usize) {
        if let Some(number) = self.numbers.get(word) {
            return (*number, 0);
        }
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.numbers.insert(word.into(), number);
        self.all.push(word.into());
        (number, 2 * word.len() + 64)
    }

    fn word(&self, number: u32) -> &str {
        self.all.get(number as usize).map_or("", |word| word)
    }
}

/// A file that a call named, and its tool.
pub(super) type Touch = (u32, u32);

/// The calls of a step that named a file.
#[derive(Debug, Default)]
pub(super) struct Touched {
    places: BTreeMap<Touch, Vec<u32>>,
}

impl Touched {
    /// The file and the tool of a call that begins; `None` where it names no file. How many bytes that takes, too.
    pub(super) fn begins(words: &mut Words, path: Option<&str>, tool: &str) -> (Option<Touch>, usize) {
        let Some(path) = path else { return (None, 0) };
        let ((path, one), (tool, other)) = (words.number(path), words.number(tool));
        (Some((path, tool)), one + other)
    }

    /// Notes that such a call ended at a place among those that ended.
    pub(super) fn ended(&mut self, touch: Touch, place: usize) {
        self.places.entry(touch).or_default().push(u32::try_from(place).unwrap_or(u32::MAX));
    }

    /// The files that the first `many` calls named, with the tool and how often it did.
    pub(super) fn counts<'a>(
        &'a self,
        words: &'a Words,
        many: usize,
    ) -> impl Iterator<Item = (&'a str, &'a str, usize)> {
        let counts = self.places.iter().map(move |((path, tool), places)| {
            let among = places.partition_point(|place| (*place as usize) < many);
            (words.word(*path), words.word(*tool), among)
        });
        counts.filter(|(.., among)| *among > 0)
    }

    /// The places of those of the first `many` calls that named a file with such a name, in their order.
    pub(super) fn places(&self, words: &Words, many: usize, names: impl Fn(&str) -> bool) -> Vec<usize> {
        let of = self.places.iter().filter(|((path, _), _)| names(words.word(*path)));
        let places = of.flat_map(|(_, places)| places.iter().map(|place| *place as usize));
        let mut places: Vec<usize> = places.filter(|place| *place < many).collect();
        places.sort_unstable();
        places
    }
}
