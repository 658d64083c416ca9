//! The terminal: entering and leaving its modes, whatever happens; one write a frame; suspending.
//!
//! Leaving is one function that may be called any number of times and from any thread: from the normal end, an error,
//! the panic hook, a signal.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};

use base64::Engine;
use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste, EnableFocusChange,
    EnableMouseCapture, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::style::{Attribute, SetAttribute};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType as TerminalClear, DisableLineWrap, EnableLineWrap, EndSynchronizedUpdate,
    EnterAlternateScreen, LeaveAlternateScreen, SetTitle, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute, queue};
use ratatui::backend::{Backend, ClearType, CrosstermBackend};
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use rustix::process::Signal;
use rustix::termios::{QueueSelector, tcflush};

use super::probe::{self, Answers};
use super::sgr::Sixteen;
use super::{guard, stray};
use crate::text::{self, SafeText};

/// The modes are on.
static ENTERED: AtomicBool = AtomicBool::new(false);
/// The mouse is on too.
static MOUSE: AtomicBool = AtomicBool::new(false);
/// The exit code of a process that panicked, as the standard library has it.
const PANICKED: i32 = 101;

static HOOK: Once = Once::new();

/// A signal that is on its way is waited for so long.
const TO_BE_TOLD: Duration = Duration::from_millis(200);
/// So often a job without the terminal tries to be stopped.
const MOST_IN_VAIN: u32 = 5;

/// As much as one frame ever needs; with it a frame leaves in one write.
const FRAME_BYTES: usize = 64 * 1024;
/// Terminals refuse longer clipboards, some of them badly.
const CLIPBOARD_BYTES: usize = 100_000;

/// What was sent to the terminal's clipboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// There was nothing to send.
    Nothing,
    /// All of it.
    All,
    /// So many bytes of its beginning.
    Beginning(u64),
}

/// The screen while the deck has it.
pub struct Screen {
    backend: CrosstermBackend<BufWriter<Sixteen<File>>>,
    /// What the terminal shows.
    shown: Buffer,
    /// Where the next frame is drawn.
    next: Buffer,
    synchronized: bool,
}

impl Screen {
    /// Whether there is a terminal to draw on and to read keys from.
    #[must_use]
    pub fn possible() -> bool {
        io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    /// Enters the modes and takes the screen.
    ///
    /// # Errors
    /// When the terminal cannot be read or set; the modes are left again.
    pub fn enter() -> io::Result<Self> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                leave();
                before(info);
                // A screen whose terminal was just given back must not be drawn on any more, whichever thread failed.
                if std::thread::current().name() != Some("main") {
                    std::process::exit(PANICKED);
                }
            }));
        });
        come_to_the_front()?;
        enter_modes()?;
        match own_stdout() {
            Ok(out) => Ok(Self {
                backend: CrosstermBackend::new(BufWriter::with_capacity(FRAME_BYTES, Sixteen::new(out))),
                shown: Buffer::default(),
                next: Buffer::default(),
                synchronized: false,
            }),
            Err(error) => {
                leave();
                Err(error)
            }
        }
    }

    /// Learns what the terminal can do; `background` says whether its colour is wanted. It is asked once in the life of
    /// the program, before anybody reads keys.
    ///
    /// # Errors
    /// When the terminal cannot be written.
    pub fn ask(&mut self, background: bool) -> io::Result<Answers> {
        static KNOWN: OnceLock<Answers> = OnceLock::new();
        let answers = match KNOWN.get() {
            Some(known) => known.clone(),
            None => {
                let answers = probe::ask(&mut self.backend, background)?;
                KNOWN.get_or_init(|| Answers { typed: Vec::new(), ..answers.clone() });
                answers
            }
        };
        // tmux says that it can, but repaints its whole pane after each such frame, which costs more than it saves.
        self.synchronized = answers.synchronized.unwrap_or(true) && std::env::var_os("TMUX").is_none();
        Ok(answers)
    }

    /// Tells a person who looks elsewhere.
    ///
    /// # Errors
    /// When the terminal cannot be written.
    pub fn notify(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.backend.write_all(bytes)?;
        io::Write::flush(&mut self.backend)
    }

    /// The size in cells; nothing where the terminal does not tell.
    #[must_use]
    pub fn size() -> (u16, u16) {
        crossterm::terminal::size().unwrap_or_default()
    }

    /// Forgets what is on the screen, so that the next frame draws all of it.
    ///
    /// # Errors
    /// When the terminal cannot be written.
    pub fn repaint(&mut self, size: (u16, u16)) -> io::Result<()> {
        let area = Rect::new(0, 0, size.0, size.1);
        self.shown = Buffer::empty(area);
        self.next = Buffer::empty(area);
        self.backend.clear_region(ClearType::All)
    }

    /// Draws a frame: only the cells that changed, in one write. Nothing is written when none has.
    ///
    /// # Errors
    /// When the terminal cannot be written.
    pub fn frame(&mut self, size: (u16, u16), draw: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        let area = Rect::new(0, 0, size.0, size.1);
        if self.next.area != area {
            self.repaint(size)?;
        }
        // Drawn before anything is queued: a panic in a draw function leaves no half frame behind.
        self.next.reset();
        draw(&mut self.next);
        let changed = self.shown.diff(&self.next);
        if changed.is_empty() {
            return Ok(());
        }
        if self.synchronized {
            queue!(self.backend, BeginSynchronizedUpdate)?;
        }
        // Terminals do not agree on how wide a cluster is: a row that has or had one where it changed is erased and drawn
        // whole, so that nothing of it stays, and nothing that follows one is left to where the cursor is then.
        let rows = rows_of_clusters(&changed, &self.shown);
        let others = changed.iter().filter(|(_, y, _)| !rows.contains(y)).copied();
        self.backend.draw(others)?;
        for y in rows {
            queue!(self.backend, cursor::MoveTo(0, y), Clear(TerminalClear::CurrentLine))?;
            for cells in whole_row(&self.next, y).split_inclusive(|(_, _, cell)| is_cluster(cell)) {
                self.backend.draw(cells.iter().copied())?;
            }
        }
        if self.synchronized {
            queue!(self.backend, EndSynchronizedUpdate)?;
        }
        std::mem::swap(&mut self.shown, &mut self.next);
        io::Write::flush(&mut self.backend)
    }

    /// Names the window.
    ///
    /// # Errors
    /// When the terminal cannot be written.
    pub fn title(&mut self, title: &SafeText) -> io::Result<()> {
        execute!(self.backend, SetTitle(title.truncate(80)))
    }

    /// Takes the mouse or gives it back.
    ///
    /// # Errors
    /// When the terminal cannot be written.
    pub fn mouse(&mut self, on: bool) -> io::Result<()> {
        MOUSE.store(on, Ordering::SeqCst);
        if on { execute!(self.backend, EnableMouseCapture) } else { execute!(self.backend, DisableMouseCapture) }
    }

    /// Gives clean lines to the terminal's clipboard, as far as it takes them. Whether it took them cannot be known.
    ///
    /// # Errors
    /// When the terminal cannot be written.
    pub fn copy(&mut self, lines: &[SafeText]) -> io::Result<Copied> {
        let text: String = lines.iter().map(|l| format!("{l}\n")).collect();
        self.clipboard(&text)
    }

    /// The same of a line without its end, so that a shell does not run it when it is pasted.
    ///
    /// # Errors
    /// When the terminal cannot be written.
    pub fn copy_word(&mut self, word: &SafeText) -> io::Result<Copied> {
        self.clipboard(word.as_str())
    }

    fn clipboard(&mut self, text: &str) -> io::Result<Copied> {
        // An empty copy would erase what is there.
        if text.trim().is_empty() {
            return Ok(Copied::Nothing);
        }
        let part = text::prefix(text, CLIPBOARD_BYTES);
        let encoded = base64::engine::general_purpose::STANDARD.encode(part);
        write!(self.backend, "\x1b]52;c;{encoded}\x07")?;
        io::Write::flush(&mut self.backend)?;
        Ok(if part.len() < text.len() { Copied::Beginning(part.len() as u64) } else { Copied::All })
    }

    /// Gives the terminal back while `others` has it, then takes it again. The input must have been let go before.
    ///
    /// # Errors
    /// When the terminal cannot be taken again.
    pub fn lend<T>(&mut self, others: impl FnOnce() -> T) -> io::Result<T> {
        let mouse = MOUSE.load(Ordering::SeqCst);
        leave();
        let result = others();
        come_to_the_front()?;
        enter_modes()?;
        if mouse {
            self.mouse(true)?;
        }
        Ok(result)
    }

    /// Takes the modes again after somebody else stopped and continued this process.
    ///
    /// # Errors
    /// When the terminal cannot be taken.
    pub fn retake(&mut self) -> io::Result<()> {
        ENTERED.store(false, Ordering::SeqCst);
        come_to_the_front()?;
        enter_modes()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Stops this process and those that share its job, as Ctrl-Z does; returns when it goes on.
pub fn stop_self() {
    let _ = rustix::process::kill_current_process_group(Signal::STOP);
}

/// Whether the terminal is another job's. Who sets it then is stopped by the system, and again by whatever continues it,
/// so that it would never get to hear that it is to end.
fn in_background() -> bool {
    let mine = rustix::process::getpgrp();
    rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|front| front != mine)
}

/// Waits, stopped, until a shell gives this job the terminal; ends with the process where it is asked to go meanwhile.
///
/// # Errors
/// When it cannot be stopped, as where no shell is there that could continue it.
fn come_to_the_front() -> io::Result<()> {
    let mut in_vain = 0;
    while in_background() {
        // Whoever continues a job only to end it sends both signals together; which comes first nobody knows.
        if let Some(number) = guard::asked_within(TO_BE_TOLD) {
            guard::die_by(number);
        }
        let begun = Instant::now();
        let _ = rustix::process::kill_current_process_group(Signal::TTOU);
        in_vain = if begun.elapsed() < TO_BE_TOLD { in_vain + 1 } else { 0 };
        if in_vain == MOST_IN_VAIN {
            return Err(io::Error::other("the terminal is another program's"));
        }
    }
    Ok(())
}

/// Sends this process a signal that it listens to.
pub fn signal_self(signal: Signal) {
    let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
}

/// Whether a cell holds a character that is made of several.
fn is_cluster(cell: &Cell) -> bool {
    !cell.symbol().is_ascii() && cell.symbol().chars().nth(1).is_some()
}

/// The rows that change where there is a cluster, or was one.
fn rows_of_clusters(changed: &[(u16, u16, &Cell)], shown: &Buffer) -> BTreeSet<u16> {
    let odd = |(x, y, cell): &&(u16, u16, &Cell)| is_cluster(cell) || shown.cell((*x, *y)).is_some_and(is_cluster);
    changed.iter().filter(odd).map(|(_, y, _)| *y).collect()
}

/// The cells of a row that are no blank, without those that stand behind a wide character.
fn whole_row(next: &Buffer, y: u16) -> Vec<(u16, u16, &Cell)> {
    let mut out = Vec::new();
    let mut x = 0;
    while let Some(cell) = next.cell((x, y)).filter(|_| x < next.area.right()) {
        if *cell != Cell::EMPTY {
            out.push((x, y, cell));
        }
        x += u16::try_from(crate::text::width(cell.symbol())).unwrap_or(1).max(1);
    }
    out
}

fn own_stdout() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

fn enter_modes() -> io::Result<()> {
    enable_raw_mode()?;
    ENTERED.store(true, Ordering::SeqCst);
    stray::put_aside();
    let mut out = own_stdout()?;
    let mut bytes = Vec::new();
    // 22;2t puts the window's title aside.
    bytes.extend_from_slice(b"\x1b[22;2t");
    queue!(
        bytes,
        EnterAlternateScreen,
        cursor::Hide,
        DisableLineWrap,
        EnableBracketedPaste,
        EnableFocusChange,
        PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES)
    )?;
    out.write_all(&bytes)
}

/// Leaves every mode, each even when another fails. Does nothing when the modes are off.
pub fn leave() {
    if !ENTERED.swap(false, Ordering::SeqCst) || in_background() {
        return;
    }
    let mut bytes = Vec::new();
    if MOUSE.load(Ordering::SeqCst) {
        let _ = queue!(bytes, DisableMouseCapture);
    }
    let _ = queue!(
        bytes,
        EndSynchronizedUpdate,
        PopKeyboardEnhancementFlags,
        DisableFocusChange,
        DisableBracketedPaste,
        EnableLineWrap,
        SetAttribute(Attribute::Reset),
        cursor::Show,
        LeaveAlternateScreen
    );
    bytes.extend_from_slice(b"\x1b[23;2t");
    if let Ok(mut out) = own_stdout() {
        let _ = out.write_all(&bytes);
    }
    // What the terminal still sent, such as mouse reports, is not for the shell.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    let _ = disable_raw_mode();
    stray::give_back();
}

/// Leaves the modes without a write that could block: for a terminal that does not read.
pub fn leave_without_writing() {
    if ENTERED.swap(false, Ordering::SeqCst) && !in_background() {
        let _ = disable_raw_mode();
    }
}
