//! The scanner below all cleaning: bytes in, safe characters and a few named controls out.
//!
//! A state machine of our own and not a terminal parser, for three reasons: it keeps no sequence in memory, so an
//! unterminated one costs nothing; it is told apart what a terminal would *do* from what a reader may *see*; and it
//! starts afresh at every newline, so that a stray introducer cannot swallow the rest of a log.

/// What the scanner finds. Everything that is not one of these is gone, which a sink may want to know.
pub(super) trait Sink {
    /// A character that is safe to show.
    fn text(&mut self, ch: char);
    /// Several characters that are safe to show, all of them printable ASCII.
    fn printable(&mut self, run: &str) {
        run.chars().for_each(|ch| self.text(ch));
    }
    /// One of the four controls that have a meaning for a line.
    fn control(&mut self, control: Control);
    /// The parameters of an SGR sequence.
    fn sgr(&mut self, _params: &[u16]) {}
    /// What is told as removed too would have done something beyond this line: reached a clipboard, asked the terminal
    /// something, reset it, or spoken to a program in between.
    fn acted(&mut self) {}
    /// Something stood here that is not passed on: a control, a sequence, a character that must not be shown. One
    /// sequence may be told twice.
    fn removed(&mut self) {}
}

/// The controls that are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    Newline,
    Return,
    Backspace,
    Tab,
}

/// A string sequence (OSC, DCS, ...) longer than this was never meant to end; what follows is text again.
const STRING_CAP: u32 = 64 * 1024;
/// Operating system commands that many programs say and nobody misses: names of windows, folders, links, progress, marks
/// of prompts.
const QUIET: [u16; 8] = [0, 1, 2, 7, 8, 9, 133, 633];
/// As many parameters of an SGR sequence are looked at.
const PARAMS: usize = 32;
/// As many zero-width characters may follow each other; more are a way to stall a terminal, not writing.
const ZERO_WIDTH_RUN: u8 = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    EscapeIntermediate,
    Csi,
    /// A CSI with a private mark or an intermediate byte: skipped to its end.
    CsiIgnore,
    /// The body of OSC, DCS, SOS, PM or APC.
    String,
    /// An ESC inside of such a body; a backslash would end it.
    StringEscape,
}

/// The state that is kept between two chunks of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Scanner {
    state: State,
    utf8: [u8; 4],
    utf8_have: u8,
    utf8_need: u8,
    params: [u16; PARAMS],
    param_count: usize,
    string_len: u32,
    /// The number of an operating system command, while it is read.
    command: Option<u16>,
    zero_run: u8,
}

/// One decoded unit of the input.
enum Unit {
    Char(char),
    /// A C1 control, raw or as UTF-8.
    C1(u8),
    Invalid,
}

impl Scanner {
    pub(super) fn push(&mut self, bytes: &[u8], sink: &mut impl Sink) {
        let mut rest = bytes;
        while let [byte, tail @ ..] = rest {
            if matches!(self.state, State::Ground) && self.utf8_have == 0 {
                // Most of what is printed is runs of plain characters, which need no look at each of them.
                let (run, other) = split_printable(rest);
                if !run.is_empty() {
                    self.zero_run = 0;
                    sink.printable(run);
                    rest = other;
                    continue;
                }
            }
            self.byte(*byte, sink);
            rest = tail;
        }
    }

    /// The input is over: what is left of a character is shown as unreadable, an open sequence is dropped.
    pub(super) fn finish(&mut self, sink: &mut impl Sink) {
        if self.utf8_have > 0 {
            self.utf8_have = 0;
            self.unit(Unit::Invalid, sink);
        }
        self.break_off(sink);
        *self = Self::default();
    }

    fn byte(&mut self, byte: u8, sink: &mut impl Sink) {
        if self.utf8_have > 0 {
            if self.continues(byte) {
                if let Some(slot) = self.utf8.get_mut(usize::from(self.utf8_have)) {
                    *slot = byte;
                }
                self.utf8_have += 1;
                if self.utf8_have == self.utf8_need {
                    let have = usize::from(self.utf8_have);
                    self.utf8_have = 0;
                    let text = self.utf8.get(..have).and_then(|b| std::str::from_utf8(b).ok());
                    match text.and_then(|t| t.chars().next()) {
                        Some(ch @ '\u{80}'..='\u{9f}') => self.unit(Unit::C1(ch as u8), sink),
                        Some(ch) => self.unit(Unit::Char(ch), sink),
                        None => self.unit(Unit::Invalid, sink),
                    }
                }
                return;
            }
            self.utf8_have = 0;
            self.unit(Unit::Invalid, sink);
        }
        match byte {
            0..=0x7f => self.unit(Unit::Char(char::from(byte)), sink),
            0x80..=0x9f => self.unit(Unit::C1(byte), sink),
            0xc2..=0xf4 => {
                self.utf8_need = match byte {
                    0..=0xdf => 2,
                    0xe0..=0xef => 3,
                    _ => 4,
                };
                self.utf8 = [byte, 0, 0, 0];
                self.utf8_have = 1;
            }
            _ => self.unit(Unit::Invalid, sink),
        }
    }

    /// Whether the byte goes on with the character that has begun (table 3-7 of the Unicode standard).
    fn continues(&self, byte: u8) -> bool {
        if self.utf8_have > 1 {
            return (0x80..=0xbf).contains(&byte);
        }
        match self.utf8 {
            [0xe0, ..] => (0xa0..=0xbf).contains(&byte),
            [0xed, ..] => (0x80..=0x9f).contains(&byte),
            [0xf0, ..] => (0x90..=0xbf).contains(&byte),
            [0xf4, ..] => (0x80..=0x8f).contains(&byte),
            _ => (0x80..=0xbf).contains(&byte),
        }
    }

    fn unit(&mut self, unit: Unit, sink: &mut impl Sink) {
        let ch = match unit {
            Unit::Char('\n') => {
                self.break_off(sink);
                self.zero_run = 0;
                return sink.control(Control::Newline);
            }
            Unit::Char('\u{18}' | '\u{1a}') => {
                self.state = State::Ground;
                return sink.removed();
            }
            Unit::Char('\u{1b}') => {
                self.commanded(sink);
                if self.state == State::String {
                    self.state = State::StringEscape;
                } else {
                    self.break_off(sink);
                    self.state = State::Escape;
                }
                return;
            }
            Unit::C1(code) => return self.c1(code, sink),
            Unit::Char(ch) => ch,
            Unit::Invalid => char::REPLACEMENT_CHARACTER,
        };
        match self.state {
            State::Ground => self.print(ch, sink),
            State::Escape | State::StringEscape => self.escape(ch, sink),
            State::EscapeIntermediate => match ch {
                '\u{20}'..='\u{2f}' | '\0'..='\u{1f}' => {}
                '\u{30}'..='\u{7e}' => self.end(sink),
                _ => self.resume(ch, sink),
            },
            State::Csi => self.csi(ch, sink),
            State::CsiIgnore => match ch {
                '\u{40}'..='\u{7e}' => {
                    if matches!(ch, 'c' | 'n' | 'p') {
                        sink.acted();
                    }
                    self.end(sink);
                }
                '\0'..='\u{3f}' | '\u{7f}' => {}
                _ => self.resume(ch, sink),
            },
            State::String => {
                match (self.command, ch.to_digit(10)) {
                    (Some(number), Some(digit)) => {
                        let digit = u16::try_from(digit).unwrap_or(0);
                        self.command = Some(number.saturating_mul(10).saturating_add(digit));
                    }
                    _ => self.commanded(sink),
                }
                self.string_len = self.string_len.saturating_add(1);
                if ch == '\u{07}' || self.string_len > STRING_CAP {
                    self.state = State::Ground;
                }
            }
        }
    }

    /// A sequence was broken off by something that cannot be part of it, which is text then.
    fn resume(&mut self, ch: char, sink: &mut impl Sink) {
        self.break_off(sink);
        self.print(ch, sink);
    }

    /// A sequence that does more than colour text is over.
    fn end(&mut self, sink: &mut impl Sink) {
        self.state = State::Ground;
        sink.removed();
    }

    /// Whatever has begun does not go on.
    fn break_off(&mut self, sink: &mut impl Sink) {
        if self.state != State::Ground {
            self.end(sink);
        }
    }

    fn escape(&mut self, ch: char, sink: &mut impl Sink) {
        match ch {
            '[' => self.begin_csi(),
            ']' | 'P' | 'X' | '^' | '_' => self.begin_string(ch == ']', sink),
            '\u{20}'..='\u{2f}' => self.state = State::EscapeIntermediate,
            '\u{30}'..='\u{7e}' => {
                if ch == 'c' {
                    sink.acted();
                }
                self.end(sink);
            }
            // A control inside of a sequence is carried out by terminals and leaves the sequence open.
            '\0'..='\u{1f}' | '\u{7f}' => {}
            _ => self.resume(ch, sink),
        }
    }

    fn begin_csi(&mut self) {
        self.state = State::Csi;
        self.params = [0; PARAMS];
        self.param_count = 0;
    }

    /// Told at its beginning, because its body may be as long as the rest of the text.
    fn begin_string(&mut self, command: bool, sink: &mut impl Sink) {
        sink.removed();
        self.command = command.then_some(0);
        if !command {
            sink.acted();
        }
        self.state = State::String;
        self.string_len = 0;
    }

    /// The number of an operating system command is known.
    fn commanded(&mut self, sink: &mut impl Sink) {
        if self.command.take().is_some_and(|number| !QUIET.contains(&number)) {
            sink.acted();
        }
    }

    fn csi(&mut self, ch: char, sink: &mut impl Sink) {
        match ch {
            '0'..='9' => {
                let digit = u16::try_from(u32::from(ch) - u32::from('0')).unwrap_or(0);
                let at = self.param_count.max(1) - 1;
                self.param_count = self.param_count.max(1);
                if let Some(param) = self.params.get_mut(at) {
                    *param = param.saturating_mul(10).saturating_add(digit);
                }
            }
            ';' | ':' => self.param_count = (self.param_count.max(1) + 1).min(PARAMS + 1),
            'm' => {
                self.state = State::Ground;
                let count = self.param_count.clamp(1, PARAMS);
                if let Some(params) = self.params.get(..count) {
                    sink.sgr(params);
                }
            }
            '\u{40}'..='\u{7e}' => {
                // Questions, which the terminal would answer on standard input, the printer, the window.
                if matches!(ch, 'c' | 'i' | 'n' | 't' | 'x') {
                    sink.acted();
                }
                self.end(sink);
            }
            '\u{20}'..='\u{2f}' | '\u{3c}'..='\u{3f}' => self.state = State::CsiIgnore,
            '\0'..='\u{1f}' | '\u{7f}' => {}
            _ => self.resume(ch, sink),
        }
    }

    fn c1(&mut self, code: u8, sink: &mut impl Sink) {
        match code {
            0x9b => {
                self.break_off(sink);
                self.begin_csi();
            }
            0x90 | 0x98 | 0x9d | 0x9e | 0x9f => self.begin_string(code == 0x9d, sink),
            0x9c => {
                self.commanded(sink);
                self.end(sink);
            }
            _ if matches!(self.state, State::String) => {}
            _ => self.end(sink),
        }
    }

    fn print(&mut self, ch: char, sink: &mut impl Sink) {
        match ch {
            '\u{20}'..='\u{7e}' => {
                self.zero_run = 0;
                sink.text(ch);
            }
            '\t' => sink.control(Control::Tab),
            '\r' => sink.control(Control::Return),
            '\u{08}' => sink.control(Control::Backspace),
            _ if is_unsafe(ch) => sink.removed(),
            _ => {
                if unicode_width::UnicodeWidthChar::width(ch).unwrap_or(0) == 0 {
                    self.zero_run = self.zero_run.saturating_add(1);
                    if self.zero_run > ZERO_WIDTH_RUN {
                        return sink.removed();
                    }
                } else {
                    self.zero_run = 0;
                }
                sink.text(ch);
            }
        }
    }
}

/// Whether there is nothing but printable ASCII.
pub(super) fn is_printable(bytes: &[u8]) -> bool {
    split_printable(bytes).1.is_empty()
}

/// The printable ASCII that the bytes begin with, and what follows it.
pub(super) fn split_printable(bytes: &[u8]) -> (&str, &[u8]) {
    const BLOCK: usize = 32;
    let plain = |byte: &u8| (0x20..=0x7e).contains(byte);
    // Whole blocks without a branch for each byte, which the compiler turns into a few instructions.
    let blocks = bytes.chunks_exact(BLOCK).take_while(|block| block.iter().fold(true, |all, b| all & plain(b))).count();
    let rest = bytes.get(blocks * BLOCK..).unwrap_or_default();
    let end = blocks * BLOCK + rest.iter().take_while(|b| plain(b)).count();
    let (run, other) = bytes.split_at_checked(end).unwrap_or((bytes, &[]));
    match std::str::from_utf8(run) {
        Ok(run) => (run, other),
        // ASCII is always UTF-8.
        Err(_) => ("", bytes),
    }
}

/// Whether a character must never be shown: controls, what changes the direction of text, line and paragraph
/// separators, and invisible format characters other than the joiners that scripts and emoji need.
pub(super) fn is_unsafe(ch: char) -> bool {
    ch.is_control()
        || matches!(ch,
            '\u{061c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
