//! A terminal for tests: the program runs on a pseudo terminal, a parser keeps the screen that a person would see, and
//! everything waits for a condition with a deadline and never for a time.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};

/// As long as anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Between two keys of a person.
const PACE: Duration = Duration::from_millis(60);

struct Seen {
    parser: vt100::Parser,
    bytes: Vec<u8>,
    closed: bool,
    /// The terminal is to go away.
    hang_up: bool,
    /// Nobody reads what is written to the terminal.
    paused: bool,
}

/// The parser knows no terminal without cells.
fn cells(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n).unwrap_or(NonZeroU16::MIN)
}

/// How a terminal handles what is typed, in words of the system.
fn modes(master: &(dyn MasterPty + Send)) -> Option<String> {
    let modes = master.get_termios()?;
    Some(format!("{:?} {:?} {:?}", modes.input_flags, modes.output_flags, modes.local_flags))
}

/// A program on a terminal.
pub struct Pty {
    master: Option<Box<dyn MasterPty + Send>>,
    writer: Arc<Mutex<Box<dyn Write + Send>>>,
    child: Box<dyn Child + Send + Sync>,
    /// How the terminal was before the program.
    modes: Option<String>,
    seen: Arc<(Mutex<Seen>, Condvar)>,
    /// When something was typed, or seen that was waited for.
    typed: Mutex<Option<Instant>>,
}

impl Pty {
    /// Starts a program on a terminal of this size.
    pub fn spawn(mut command: CommandBuilder, columns: u16, rows: u16) -> Self {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pseudo terminal");
        // What a test sets is meant; what it only inherits is not.
        let inherited =
            |command: &CommandBuilder, name: &str| command.get_env(name) == std::env::var_os(name).as_deref();
        if inherited(&command, "TERM") {
            command.env("TERM", "xterm-256color");
        }
        for name in ["NO_COLOR", "CI", "TMUX", "COLUMNS", "LINES", "LC_ALL", "LC_CTYPE", "LANG"] {
            if inherited(&command, name) {
                command.env_remove(name);
            }
        }
        let modes = modes(pair.master.as_ref());
        let child = pair.slave.spawn_command(command).expect("the program starts");
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let writer = Arc::new(Mutex::new(pair.master.take_writer().expect("a writer")));
        let seen = Seen {
            parser: vt100::Parser::new(cells(rows), cells(columns), 0),
            bytes: Vec::new(),
            closed: false,
            hang_up: false,
            paused: false,
        };
        let seen = Arc::new((Mutex::new(seen), Condvar::new()));
        let (shared, answers) = (Arc::clone(&seen), Arc::clone(&writer));
        std::thread::spawn(move || {
            let mut chunk = [0; 65536];
            loop {
                let n = reader.read(&mut chunk).unwrap_or(0);
                let (lock, changed) = &*shared;
                let mut seen = changed.wait_while(lock.lock().unwrap(), |seen| seen.paused).unwrap();
                let before = seen.bytes.len();
                seen.bytes.extend_from_slice(&chunk[..n]);
                seen.parser.process(&chunk[..n]);
                seen.closed = n == 0;
                // Questions that a real terminal answers; the last bytes of the chunk before may begin one.
                let new = &seen.bytes[before.saturating_sub(3)..];
                let asked = |question: &[u8]| new.windows(question.len()).any(|w| w == question);
                let mut answer = Vec::new();
                if asked(b"\x1b]11;?\x1b\\") {
                    answer.extend_from_slice(b"\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\");
                }
                if asked(b"\x1b[?2026$p") {
                    answer.extend_from_slice(b"\x1b[?2026;2$y");
                }
                if asked(b"\x1b[6n") {
                    answer.extend_from_slice(b"\x1b[1;1R");
                }
                if asked(b"\x1b[c") || asked(b"\x1b[0c") {
                    answer.extend_from_slice(b"\x1b[?62;22c");
                }
                drop(seen);
                changed.notify_all();
                if !answer.is_empty() {
                    let _ = answers.lock().unwrap().write_all(&answer);
                }
                if n == 0 || shared.0.lock().unwrap().hang_up {
                    return;
                }
            }
        });
        Self { master: Some(pair.master), writer, child, modes, seen, typed: Mutex::new(None) }
    }

    /// Types as a person does, who looks before each key: keys that come at once are none that anybody pressed after
    /// looking.
    pub fn keys(&self, keys: &str) {
        let mut last = self.typed.lock().unwrap();
        let rest = last.map_or(Duration::ZERO, |at: Instant| PACE.saturating_sub(at.elapsed()));
        std::thread::sleep(rest);
        *last = Some(Instant::now());
        self.send(keys);
    }

    /// Gives the program bytes at once.
    pub fn send(&self, keys: &str) {
        let mut writer = self.writer.lock().unwrap();
        writer.write_all(keys.as_bytes()).unwrap();
        writer.flush().unwrap();
    }

    /// The rows of the screen.
    pub fn text(&self) -> String {
        self.seen.0.lock().unwrap().parser.screen().contents()
    }

    /// Everything that was written to the terminal so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.seen.0.lock().unwrap().bytes.clone()
    }

    /// How often this was written to the terminal so far.
    pub fn count(&self, part: &[u8]) -> usize {
        self.seen.0.lock().unwrap().bytes.windows(part.len()).filter(|w| *w == part).count()
    }

    /// Waits until the screen is as wanted.
    pub fn wait_for(&self, what: &str, wanted: impl Fn(&vt100::Screen) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        let (lock, changed) = &*self.seen;
        let mut seen = lock.lock().unwrap();
        while !wanted(seen.parser.screen()) {
            let left = deadline.saturating_duration_since(Instant::now());
            let hopeless = seen.closed && left < PATIENCE - Duration::from_secs(1);
            assert!(
                !left.is_zero() && !hopeless,
                "never saw {what}; the screen is\n{}",
                seen.parser.screen().contents()
            );
            seen = changed.wait_timeout(seen, left.min(Duration::from_millis(500))).unwrap().0;
        }
        *self.typed.lock().unwrap() = Some(Instant::now());
    }

    /// Waits until a frame has come whole: its last bytes end the synchronized update.
    pub fn wait_frame(&self) {
        let (lock, changed) = &*self.seen;
        let whole = |seen: &mut Seen| !seen.bytes.ends_with(b"\x1b[?2026l");
        let (seen, late) = changed.wait_timeout_while(lock.lock().unwrap(), PATIENCE, whole).unwrap();
        drop(seen);
        assert!(!late.timed_out(), "the frame never ended");
    }

    /// Waits until the screen has a text.
    pub fn wait_text(&self, text: &str) {
        self.wait_for(text, |screen| screen.contents().contains(text));
    }

    /// Waits until the screen has a text no longer.
    pub fn wait_gone(&self, text: &str) {
        self.wait_for(&format!("{text} to go"), |screen| !screen.contents().contains(text));
    }

    /// Changes the size of the terminal.
    pub fn resize(&self, columns: u16, rows: u16) {
        self.seen.0.lock().unwrap().parser.screen_mut().set_size(cells(rows), cells(columns));
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        self.master.as_ref().unwrap().resize(size).unwrap();
    }

    /// The program's process id.
    pub fn pid(&self) -> u32 {
        self.child.process_id().expect("the program runs")
    }

    /// Takes the terminal away, as closing its window does. The reader lets go of it with the next bytes it sees, so
    /// the size is changed to have something drawn.
    pub fn hang_up(&mut self) {
        self.seen.0.lock().unwrap().hang_up = true;
        self.resize(79, 23);
        self.master = None;
        *self.writer.lock().unwrap() = Box::new(std::io::sink());
    }

    /// Reads no more of what is written to the terminal.
    pub fn pause(&self) {
        self.seen.0.lock().unwrap().paused = true;
    }

    /// Whether the terminal reads keys as it did before the program.
    pub fn is_as_before(&self) -> bool {
        modes(self.master.as_deref().unwrap()) == self.modes
    }

    /// Waits until the program has ended.
    pub fn wait_exit(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it did not end; the screen is\n{}", self.text());
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    /// Waits until nobody has the terminal any more and everything that was written to it was read.
    pub fn wait_closed(&self) {
        let (lock, changed) = &*self.seen;
        let open = |seen: &mut Seen| !seen.closed;
        let (_seen, late) = changed.wait_timeout_while(lock.lock().unwrap(), PATIENCE, open).unwrap();
        assert!(!late.timed_out(), "somebody still has the terminal");
    }

    /// Whether the terminal is as it was before the program: no alternate screen, no mouse, no paste mode, a cursor. Waits
    /// for what the program wrote last: it may have ended before that was read.
    pub fn is_sane(&self) -> bool {
        let (lock, changed) = &*self.seen;
        let odd = |seen: &mut Seen| {
            let screen = seen.parser.screen();
            screen.alternate_screen()
                || screen.hide_cursor()
                || screen.bracketed_paste()
                || screen.mouse_protocol_mode() != vt100::MouseProtocolMode::None
        };
        let (_seen, late) = changed.wait_timeout_while(lock.lock().unwrap(), PATIENCE, odd).unwrap();
        !late.timed_out()
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // Also after a test has failed while it looked.
        self.seen.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).paused = false;
        self.seen.1.notify_all();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
