//! The real deck on a terminal: what it uses under sixteen noisy panes and over fifty quiet steps, how soon a key is on
//! the screen, how much it writes, what memory it takes over 1 GB of logs, and how soon the first picture is there.
//!
//! `SUBDECK_BENCH_SECONDS` is how long each of the two uses is looked at, `SUBDECK_BENCH_LOG_MB` how long the logs are.

#[path = "support.rs"]
mod support;

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use support::{ROLE, Samples, World, rounds, status, wait};

/// The deck on a terminal that only keeps what is written to it.
struct Deck {
    child: Box<dyn Child + Send + Sync>,
    writer: Box<dyn Write + Send>,
    seen: Arc<Mutex<Seen>>,
    _master: Box<dyn MasterPty + Send>,
}

#[derive(Default)]
struct Seen {
    bytes: usize,
    frames: usize,
    /// The newest bytes, to look for texts in.
    tail: Vec<u8>,
    /// One of these texts is waited for.
    wanted: Vec<Vec<u8>>,
    /// When it came.
    came: Option<Instant>,
}

const FRAME_END: &[u8] = b"\x1b[?2026l";

fn count(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).filter(|w| *w == part).count()
}

impl Deck {
    fn attach(world: &World, dir: &Path, (columns, rows): (u16, u16)) -> Self {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_subdeck"));
        command.args(["attach".as_ref(), dir.as_os_str()]);
        command.env("HOME", world.path(""));
        command.env("TERM", "xterm-256color");
        for name in ["TMUX", "CI", "NO_COLOR"] {
            command.env_remove(name);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        let mut reader = pair.master.try_clone_reader().unwrap();
        let mut answers = pair.master.take_writer().unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let shared = Arc::clone(&seen);
        let (sender, keys) = std::sync::mpsc::channel::<Vec<u8>>();
        let typed = sender.clone();
        std::thread::spawn(move || {
            for bytes in keys {
                let _ = answers.write_all(&bytes).and_then(|()| answers.flush());
            }
        });
        std::thread::spawn(move || {
            let mut chunk = vec![0; 1 << 16];
            while let Ok(n) = reader.read(&mut chunk) {
                if n == 0 {
                    return;
                }
                let new = &chunk[..n];
                for (question, answer) in [
                    (&b"\x1b]11;?"[..], &b"\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\"[..]),
                    (b"\x1b[?2026$p", b"\x1b[?2026;2$y"),
                    (b"\x1b[c", b"\x1b[?62;22c"),
                ] {
                    if count(new, question) > 0 {
                        let _ = sender.send(answer.to_vec());
                    }
                }
                let read = Instant::now();
                let mut seen = shared.lock().unwrap();
                seen.bytes += n;
                seen.frames += count(new, FRAME_END);
                seen.tail.extend_from_slice(new);
                let over = seen.tail.len().saturating_sub(1 << 17);
                seen.tail.drain(..over);
                if seen.came.is_none() && seen.wanted.iter().any(|text| count(&seen.tail, text) > 0) {
                    seen.came = Some(read);
                }
            }
        });
        let writer = Box::new(Typed(typed));
        Self { child, writer, seen, _master: pair.master }
    }

    fn keys(&mut self, keys: &[u8]) {
        self.writer.write_all(keys).unwrap();
    }

    fn has(&self, text: &[u8]) -> bool {
        count(&self.seen.lock().unwrap().tail, text) > 0
    }

    /// Presses keys; how many milliseconds later the first bytes that hold one of these texts were read.
    fn answer(&mut self, keys: &[u8], texts: &[&[u8]]) -> f64 {
        {
            let mut seen = self.seen.lock().unwrap();
            seen.tail.clear();
            (seen.wanted, seen.came) = (texts.iter().map(|text| text.to_vec()).collect(), None);
        }
        let begun = Instant::now();
        self.keys(keys);
        let came = wait("what the key shows", || self.seen.lock().unwrap().came);
        self.seen.lock().unwrap().wanted.clear();
        came.duration_since(begun).as_secs_f64() * 1e3
    }

    fn pid(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// Seconds of CPU so far.
    fn cpu(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
        ticks / procfs::ticks_per_second() as f64
    }

    /// How often its threads were put to sleep by themselves, which is how often they woke.
    fn wakes(&self) -> u64 {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        let of = |path: PathBuf| {
            let status = fs::read_to_string(path.join("status")).unwrap_or_default();
            let line = status.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:")).unwrap_or("0");
            line.trim().parse::<u64>().unwrap_or(0)
        };
        threads.map(|t| of(t.unwrap().path())).sum()
    }

    /// Its memory in MiB: now, and at most so far.
    fn memory(&self) -> (f64, f64) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let of = |name: &str| {
            let line = status.lines().find_map(|l| l.strip_prefix(name)).unwrap();
            line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap() / 1024.0
        };
        (of("VmRSS:"), of("VmHWM:"))
    }
}

struct Typed(std::sync::mpsc::Sender<Vec<u8>>);

impl Write for Typed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.send(bytes.to_vec()).map_err(std::io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for Deck {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A detached run of so many steps side by side that each run this script.
fn run(world: &mut World, steps: usize, script: &str) -> PathBuf {
    fs::write(world.path("step.sh"), script).unwrap();
    let step = |_| "runner = { type = \"external-cli\", command = \"sh\", args = [\"step.sh\"] }".to_owned();
    side_by_side(world, steps, step)
}

/// A detached run of so many steps side by side, each written by this.
fn side_by_side(world: &mut World, steps: usize, step: impl Fn(usize) -> String) -> PathBuf {
    let steps: String = (0..steps).map(|n| format!("  {{ {} }},\n", step(n))).collect();
    let plan = format!("[[step]]\nconcurrency = 20\nparallel = [\n{steps}]\n");
    fs::write(world.path("plan.toml"), plan).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_subdeck"));
    command.args(["run", "--detach", "--root"]).arg(world.path("root")).arg(world.path("plan.toml"));
    command.current_dir(world.path("")).env("HOME", world.path("")).env_remove("XDG_CONFIG_HOME");
    world.detach(command)
}

fn seconds(usual: f64) -> f64 {
    std::env::var("SUBDECK_BENCH_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn rest(seconds: f64) {
    std::thread::sleep(Duration::from_secs_f64(seconds));
}

/// What the step of this number says in every line, and no other step.
fn word(step: usize) -> String {
    let (low, high) = (b'a' + u8::try_from(step).unwrap(), b'A' + u8::try_from(step).unwrap());
    [low, high, low, high].map(char::from).iter().collect()
}

/// Sixteen panes of a thousand lines a second each.
fn noisy() {
    let mut world = World::new();
    let exe = std::env::current_exe().unwrap();
    let dir = side_by_side(&mut world, 16, |n| {
        let role = format!("noisy 1000 {}", word(n));
        format!("env = {{ {ROLE} = {role:?} }}, runner = {{ type = \"external-cli\", command = {exe:?} }}")
    });
    let mut deck = Deck::attach(&world, &dir, (200, 60));
    wait("the first lines", || deck.has(b"handled").then_some(()));
    deck.keys(b"v");
    rest(1.0);
    let (cpu, begun) = (deck.cpu(), Instant::now());
    let (bytes, frames) = {
        let seen = deck.seen.lock().unwrap();
        (seen.bytes, seen.frames)
    };
    rest(seconds(10.0));
    let time = begun.elapsed().as_secs_f64();
    let used = deck.cpu() - cpu;
    let seen = deck.seen.lock().unwrap();
    let (bytes, frames) = (seen.bytes - bytes, seen.frames - frames);
    drop(seen);
    println!("deck: 16 panes of 1,000 lines a second at 200x60, {time:.0} s");
    println!("  CPU {:.1} % of a core, {:.2} ms a frame", used / time * 100.0, used / frames.max(1) as f64 * 1e3);
    println!(
        "  {:.1} frames a second, {:.1} KiB a frame",
        frames as f64 / time,
        bytes as f64 / 1024.0 / frames.max(1) as f64
    );
    let mut help = Samples::default();
    // Any of its headings: a letter that stood there before is not written again.
    let headings: [&[u8]; 4] = [b"control", b"look", b"move", b"deck"];
    for _ in 0..rounds(100) {
        help.push(deck.answer(b"?", &headings));
        rest(0.07);
        deck.keys(b"\x1b[27u");
        rest(0.07);
    }
    help.print_p95("deck: key to screen, noisy, the help over the panes", "ms", "");
    // Back to the list, whose detail shows what the selected step says.
    deck.keys(b"vvg");
    rest(0.2);
    let mut next = Samples::default();
    for round in 0..rounds(200) {
        let (step, back) = (1 + usize::try_from(round % 15).unwrap(), round % 15 == 14);
        next.push(deck.answer(b"j", &[word(step).as_bytes()]));
        // Not in step with the frames.
        rest(0.1 + f64::from(round * 37 % 100) / 1e3);
        if back {
            deck.keys(b"g");
            rest(0.1);
        }
    }
    next.print_p95("deck: key to screen, noisy, the next step", "ms", "");
    stop(&world, &dir);
}

/// Fifty steps that say nothing.
fn quiet() {
    let mut world = World::new();
    let dir = run(&mut world, 50, "echo up; exec sleep 1000");
    let deck = Deck::attach(&world, &dir, (120, 36));
    wait("the first picture", || deck.has(b"running").then_some(()));
    rest(2.0);
    let (cpu, wakes, begun) = (deck.cpu(), deck.wakes(), Instant::now());
    let bytes = deck.seen.lock().unwrap().bytes;
    rest(seconds(30.0));
    let time = begun.elapsed().as_secs_f64();
    let bytes = deck.seen.lock().unwrap().bytes - bytes;
    println!("deck: 50 quiet steps with a running clock at 120x36, {time:.0} s");
    println!(
        "  {:.1} wakes a second, CPU {:.2} % of a core, {:.0} bytes a second, {:.1} MiB of memory",
        (deck.wakes() - wakes) as f64 / time,
        (deck.cpu() - cpu) / time * 100.0,
        bytes as f64 / time,
        deck.memory().0
    );
    stop(&world, &dir);
}

/// Sixty-four steps whose logs are 1 GB together; and how soon the first picture of them is there.
fn large() {
    let mb: usize = std::env::var("SUBDECK_BENCH_LOG_MB").ok().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let mut world = World::new();
    let script = format!(
        "yes '2026-01-01T12:00:00.000Z INFO worker request handled in 12 ms, 200 OK ........................' | head -c {}",
        mb * 1_000_000 / 64
    );
    let dir = run(&mut world, 64, &script);
    world.wait_result(&dir);
    let mut first = Samples::default();
    for _ in 0..rounds(20) {
        let begun = Instant::now();
        let deck = Deck::attach(&world, &dir, (200, 60));
        wait("the first picture", || deck.has(b"worker request").then_some(()));
        first.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    first.print_p95("deck: start to first picture", "ms", &format!(", logs of {mb} MB"));
    let mut deck = Deck::attach(&world, &dir, (200, 60));
    wait("the first picture", || deck.has(b"worker request").then_some(()));
    // Through the steps, to the start of a log, and through it for something that is not there.
    for _ in 0..63 {
        deck.keys(b"j");
        rest(0.005);
    }
    deck.keys(b"zg");
    rest(0.2);
    deck.keys(b"/nowhere at all\r");
    wait("the end of the search", || deck.has(b"nothing found").then_some(()));
    let (now, most) = deck.memory();
    println!("deck: 64 steps with logs of {mb} MB: {now:.1} MiB of memory, {most:.1} at most");
}

fn stop(world: &World, dir: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_subdeck"));
    let done = command.arg("stop").arg(dir).arg("--wait").env("HOME", world.path("")).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(status(dir)["state"], "stopped");
}

fn main() {
    support::play();
    noisy();
    quiet();
    large();
}
