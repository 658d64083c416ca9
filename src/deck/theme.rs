//! How things look: a state is a glyph, a word and a style, each enough alone.
//!
//! Foregrounds are the terminal's own, dim, cyan, green, red, magenta and blue: colours that can be read on a light and
//! on a dark ground. Red and green never differ by colour alone.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use crate::run::{RunState, StepFace};
use crate::text;

/// Which colours there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Palette {
    /// None: bold, dim, reverse, glyphs and words stay.
    Mono,
    /// Those of the sixteen that can be read on a light and on a dark ground.
    #[default]
    Sixteen,
    /// The bright ones, for a dark ground.
    Dark,
    /// The dark ones, for a light ground.
    Light,
    /// The terminal's own foreground at full strength: nothing is dim, and what is selected is reversed.
    HighContrast,
}

impl Palette {
    /// The palette of a word of the configuration; `None` for `auto`, which the terminal decides.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        match word {
            "mono" => Some(Self::Mono),
            "16" => Some(Self::Sixteen),
            "dark" => Some(Self::Dark),
            "light" => Some(Self::Light),
            "high-contrast" => Some(Self::HighContrast),
            _ => None,
        }
    }
}

/// What the person or the terminal wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    /// Which colours are used.
    pub palette: Palette,
    /// Only ASCII is drawn for everything that is ours.
    pub ascii: bool,
}

/// How one state is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Face {
    /// One cell.
    pub glyph: &'static str,
    /// At most eleven cells.
    pub word: &'static str,
    /// For both.
    pub style: Style,
}

impl Theme {
    /// A foreground by palette: for both grounds, for a dark one, for a light one.
    const fn fg(self, both: Color, dark: Color, light: Color) -> Style {
        match self.palette {
            Palette::Mono | Palette::HighContrast => Style::new(),
            Palette::Sixteen => Style::new().fg(both),
            Palette::Dark => Style::new().fg(dark),
            Palette::Light => Style::new().fg(light),
        }
    }

    /// Ordinary text.
    #[must_use]
    pub const fn plain(self) -> Style {
        Style::new()
    }

    /// What stands behind: borders, labels, what is over.
    #[must_use]
    pub const fn dim(self) -> Style {
        match self.palette {
            Palette::HighContrast => Style::new(),
            _ => Style::new().add_modifier(Modifier::DIM),
        }
    }

    /// What stands in front: titles, the selected row.
    #[must_use]
    pub const fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Activity.
    #[must_use]
    pub const fn accent(self) -> Style {
        self.fg(Color::Cyan, Color::LightCyan, Color::Blue)
    }

    /// Success.
    #[must_use]
    pub const fn good(self) -> Style {
        self.fg(Color::Green, Color::LightGreen, Color::Green)
    }

    /// Failure.
    #[must_use]
    pub const fn bad(self) -> Style {
        match self.palette {
            Palette::HighContrast => self.bold().add_modifier(Modifier::UNDERLINED),
            _ => self.fg(Color::Red, Color::LightRed, Color::Red),
        }
    }

    /// Ended by somebody.
    #[must_use]
    pub const fn halted(self) -> Style {
        self.fg(Color::Magenta, Color::LightMagenta, Color::Magenta)
    }

    /// The selection and the pane that has the keys.
    #[must_use]
    pub const fn select(self) -> Style {
        let style = self.fg(Color::Blue, Color::LightBlue, Color::Blue).add_modifier(Modifier::BOLD);
        match self.palette {
            Palette::HighContrast => style.add_modifier(Modifier::REVERSED),
            _ => style,
        }
    }

    /// What needs a person now.
    #[must_use]
    pub const fn alarm(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED).add_modifier(Modifier::BOLD)
    }

    /// What is looked for, where it was found; the one that was gone to has the style of an alarm.
    #[must_use]
    pub const fn found(self) -> Style {
        self.bold().add_modifier(Modifier::UNDERLINED).remove_modifier(Modifier::REVERSED)
    }

    /// A key in a hint.
    #[must_use]
    pub const fn key(self) -> Style {
        self.bold()
    }

    /// How a step's state looks.
    #[must_use]
    pub const fn face(self, face: StepFace) -> Face {
        let style = match face {
            StepFace::Queued | StepFace::Starting | StepFace::Skipped | StepFace::Unknown => self.dim(),
            StepFace::Running => self.accent(),
            StepFace::Attention => self.alarm(),
            StepFace::Paused => self.dim().add_modifier(Modifier::BOLD),
            StepFace::Stopping => self.bold(),
            StepFace::Succeeded => self.good(),
            StepFace::Failed | StepFace::Lost => self.bad().add_modifier(Modifier::BOLD),
            StepFace::TimedOut | StepFace::OverBudget => self.bad(),
            StepFace::Stopped => self.halted(),
        };
        Face { glyph: face.glyph(), word: face.word(), style }
    }

    /// How a run's state looks.
    #[must_use]
    pub fn run_face(self, state: &RunState) -> Face {
        let (face, word) = state.run_face();
        Face { word, ..self.face(face) }
    }

    /// The same on a screen with its steps: one that ended well is done, as they are.
    #[must_use]
    pub fn own_run_face(self, state: &RunState) -> Face {
        let face = self.run_face(state);
        match state.run_face().0 {
            StepFace::Succeeded => Face { word: StepFace::Succeeded.word(), ..face },
            _ => face,
        }
    }

    /// A child's colours as the screen shows them.
    #[must_use]
    pub fn ansi(self, style: text::Style) -> Style {
        let mut out = Style::new();
        if self.palette != Palette::Mono {
            if let Some(text::Ansi(n)) = style.fg {
                out = out.fg(palette(n));
            }
            if let Some(text::Ansi(n)) = style.bg {
                out = out.bg(palette(n));
            }
        }
        for (on, modifier) in [
            (style.bold, Modifier::BOLD),
            (style.dim, Modifier::DIM),
            (style.italic, Modifier::ITALIC),
            (style.underline, Modifier::UNDERLINED),
            (style.reverse, Modifier::REVERSED),
        ] {
            if on {
                out = out.add_modifier(modifier);
            }
        }
        out
    }
}

const fn palette(n: u8) -> Color {
    match n {
        0 => Color::Black,
        1 => Color::Red,
        2 => Color::Green,
        3 => Color::Yellow,
        4 => Color::Blue,
        5 => Color::Magenta,
        6 => Color::Cyan,
        7 => Color::Gray,
        8 => Color::DarkGray,
        9 => Color::LightRed,
        10 => Color::LightGreen,
        11 => Color::LightYellow,
        12 => Color::LightBlue,
        13 => Color::LightMagenta,
        14 => Color::LightCyan,
        _ => Color::White,
    }
}

/// Our glyphs and what stands for them where only ASCII may be drawn.
const ASCII: &[(&str, &str)] = &[
    // What was taken out of a text.
    ("\u{fffd}", "?"),
    ("○", "o"),
    ("◌", "."),
    ("●", "*"),
    ("✎", "%"),
    ("▲", "!"),
    ("‖", "="),
    ("◐", "~"),
    ("✓", "v"),
    ("✗", "x"),
    ("◷", "t"),
    ("†", "L"),
    ("■", "#"),
    ("–", "-"),
    ("─", "-"),
    ("│", "|"),
    ("╭", "+"),
    ("╮", "+"),
    ("╰", "+"),
    ("╯", "+"),
    ("├", "|"),
    ("┤", "|"),
    ("┌", "/"),
    ("└", "\\"),
    ("↳", "\\"),
    ("█", "#"),
    ("░", "."),
    ("…", "~"),
    ("›", ">"),
    ("‹", "<"),
    ("·", "-"),
    ("→", ">"),
    ("←", "<"),
    ("↑", "^"),
    ("↓", "v"),
    ("▼", "v"),
    ("▏", "|"),
    ("•", "*"),
    ("◆", "@"),
    ("━", "="),
    ("×", "x"),
    ("»", ">"),
    ("▸", "+"),
    ("▾", "v"),
    ("▶", ">"),
    ("┬", "+"),
    ("┴", "+"),
    ("┐", "+"),
    ("┘", "+"),
    ("┼", "+"),
];

/// Replaces our glyphs by ASCII in a drawn buffer. Doing it at the end keeps one set of draw functions; the widths of
/// both sets are one cell.
pub fn asciify(buf: &mut Buffer, area: Rect) {
    for position in area.intersection(buf.area).positions() {
        if let Some(cell) = buf.cell_mut(position)
            && !cell.symbol().is_ascii()
            && let Some((_, ascii)) = ASCII.iter().find(|(glyph, _)| *glyph == cell.symbol())
        {
            cell.set_symbol(ascii);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const ALL: [StepFace; 14] = StepFace::ALL;

    #[test]
    fn glyph_and_word_are_each_enough_alone() {
        let theme = Theme::default();
        let ascii =
            |glyph: &str| ASCII.iter().find(|(g, _)| *g == glyph).map_or(glyph.to_owned(), |(_, a)| (*a).to_owned());
        let faces = ALL.map(|f| theme.face(f));
        assert_eq!(faces.iter().map(|f| f.glyph).collect::<HashSet<_>>().len(), ALL.len());
        assert_eq!(faces.iter().map(|f| f.word).collect::<HashSet<_>>().len(), ALL.len());
        assert_eq!(faces.iter().map(|f| ascii(f.glyph)).collect::<HashSet<_>>().len(), ALL.len());
        for face in faces {
            assert_eq!(text::width(face.glyph), 1, "{}", face.glyph);
            assert!(text::width(face.word) <= 11 && ascii(face.glyph).is_ascii());
        }
    }

    #[test]
    fn without_colour_no_colour_is_set() {
        let theme = Theme { palette: Palette::Mono, ascii: false };
        for style in ALL.map(|f| theme.face(f).style).into_iter().chain([theme.select(), theme.bad(), theme.accent()]) {
            assert_eq!((style.fg, style.bg), (None, None));
        }
        let red = text::Style { fg: Some(text::Ansi(1)), bold: true, ..text::Style::default() };
        assert_eq!(theme.ansi(red), Style::new().add_modifier(Modifier::BOLD));
    }

    #[test]
    fn in_high_contrast_nothing_is_dim_and_states_are_told_apart_without_colour() {
        let theme = Theme { palette: Palette::HighContrast, ascii: false };
        for style in ALL.map(|f| theme.face(f).style).into_iter().chain([theme.dim(), theme.select(), theme.accent()]) {
            assert_eq!((style.fg, style.bg), (None, None));
            assert!(!style.add_modifier.contains(Modifier::DIM), "{style:?}");
        }
        assert_ne!(theme.select(), theme.plain());
        assert_ne!(theme.bad(), theme.good());
    }

    #[test]
    fn a_light_ground_gets_no_bright_colour_and_a_dark_one_no_dark_blue() {
        let [light, dark] = [Palette::Light, Palette::Dark].map(|palette| Theme { palette, ascii: false });
        let of =
            |theme: Theme| [theme.accent(), theme.good(), theme.bad(), theme.halted(), theme.select()].map(|s| s.fg);
        let bright = [Color::LightCyan, Color::LightGreen, Color::LightRed, Color::LightMagenta, Color::LightBlue];
        assert!(of(light).iter().all(|fg| bright.iter().all(|b| *fg != Some(*b)) && *fg != Some(Color::Cyan)));
        assert_eq!(of(dark), bright.map(Some));
    }

    #[test]
    fn every_word_of_the_configuration_is_a_palette() {
        let key = crate::config::Key::named("ui.theme").unwrap();
        let crate::config::Kind::Word(words) = key.kind else { panic!() };
        let unknown: Vec<_> = words.iter().filter(|word| Palette::named(word).is_none()).collect();
        assert_eq!(unknown, [&"auto"]);
    }
}
