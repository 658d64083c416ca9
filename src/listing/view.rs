//! How a fleet is listed, and the words by which a person chooses that.

/// What stands together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Group {
    /// Runs of the same class.
    #[default]
    State,
    /// Runs in the same project.
    Project,
    /// Runs of the same root.
    Root,
    /// Runs of the same day.
    Day,
    /// Nothing.
    None,
}

/// What decides the order within a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// The newest first.
    #[default]
    Age,
    /// What needs a person first.
    Need,
    /// The dearest first.
    Cost,
    /// The most tokens first.
    Tokens,
    /// The longest first.
    Time,
    /// By name.
    Name,
}

/// Which runs are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Show {
    /// All.
    #[default]
    All,
    /// Those that go on.
    Living,
    /// Those that need a person.
    Needs,
    /// Those that did not end well: failed, lost, unreadable.
    Trouble,
    /// Those of today.
    Today,
}

macro_rules! words {
    ($kind:ident, $($value:ident $word:literal),*) => {
        impl $kind {
            /// All of them in their order.
            pub const ALL: &'static [Self] = &[$(Self::$value),*];

            /// Its word.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$value => $word),* }
            }

            /// The one of this word.
            #[must_use]
            pub fn named(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.word() == word)
            }

            /// The one of this word, as a command takes it.
            ///
            /// # Errors
            /// The words that there are.
            pub fn parse(word: &str) -> Result<Self, String> {
                let all: Vec<&str> = Self::ALL.iter().map(|one| one.word()).collect();
                Self::named(word).ok_or_else(|| format!("one of {}", all.join(", ")))
            }

            /// The next one, after the last the first.
            #[must_use]
            pub fn next(self) -> Self {
                let at = Self::ALL.iter().position(|one| *one == self).unwrap_or(0);
                Self::ALL.get((at + 1) % Self::ALL.len()).copied().unwrap_or(self)
            }
        }
    };
}
words!(Group, State "state", Project "project", Root "root", Day "day", None "none");
words!(Sort, Age "age", Need "need", Cost "cost", Tokens "tokens", Time "time", Name "name");
words!(Show, All "all", Living "living", Needs "needs", Trouble "trouble", Today "today");

/// How a fleet is listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// What stands together.
    pub group: Group,
    /// In what order.
    pub sort: Sort,
    /// Which runs.
    pub show: Show,
    /// Only runs that have all these words somewhere.
    pub words: String,
}
