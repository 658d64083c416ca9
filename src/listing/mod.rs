//! Lists of runs as people read them: which runs, in what order, under which headings, what they cost together. Pure over
//! what `rundir::fleet` has read: it looks at no file and no clock.

mod arrange;
mod class;
mod cost;
mod shown;
#[cfg(test)]
mod tests;
mod view;
mod words;

pub use arrange::{Head, Row, arrange};
pub use class::{Class, broken, waiting};
pub use cost::{Spent, spent_since};
pub use view::{Group, Show, Sort, View};
pub use words::has_words;
