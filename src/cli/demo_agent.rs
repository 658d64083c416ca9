//! The demo agent as a process: arguments, standard streams, signals, real time.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime};

use crate::agents::demo::{BUILT_IN, Input, Scene, Script, ScriptError, Session, Stage, serve};

/// The most bytes that a script may have.
const MOST: u64 = 16 * 1024 * 1024;

/// What the process is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// A scene of the built-in script; or the path of a script, with `#SCENE` behind it for one of several scenes.
    pub scene: String,
    /// The session file to begin or to go on with.
    pub session: Option<PathBuf>,
    /// How many times faster than the script says; at most a million.
    pub speed: f64,
}

/// Runs the demo agent on this process's standard streams until standard input ends or a signal comes.
#[must_use]
pub fn run(options: &Options) -> ExitCode {
    let scene = match load(&options.scene, Path::new("")) {
        Ok(scene) => scene,
        Err(error) => return fail(&error.to_string()),
    };
    let id = uuid::Uuid::new_v4().to_string();
    let kept = match &options.session {
        None => Session::in_memory(id),
        Some(path) => {
            let cwd = std::env::current_dir().unwrap_or_default();
            match session(path, id, &cwd.to_string_lossy()) {
                Ok(session) => session,
                Err(error) => return fail(&format!("the session file {} cannot be used: {error}", path.display())),
            }
        }
    };
    let (sender, input) = channel();
    if let Err(error) = watch_signals(sender.clone()) {
        return fail(&format!("signals cannot be watched: {error}"));
    }
    std::thread::spawn(move || read_input(&sender));
    let speed = if options.speed.is_finite() { options.speed.clamp(0.001, 1e6) } else { 1.0 };
    ExitCode::from(serve(&scene, kept, &mut Live { input, start: Instant::now(), speed }))
}

/// Opens a session file, or begins one.
fn session(path: &Path, new_id: String, cwd: &str) -> std::io::Result<Session> {
    let old = match std::fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    if let Some(parent) = path.parent().filter(|_| old.is_empty()) {
        std::fs::create_dir_all(parent)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    Ok(Session::over(&old, Box::new(options.open(path)?), new_id, wall_ms(), cwd))
}

fn fail(error: &str) -> ExitCode {
    tell!("demo agent: {error}");
    ExitCode::from(2)
}

/// Whether a scene can be played, as [`Options::scene`] names it; a relative script is meant from `cwd`.
///
/// # Errors
/// Why not.
pub fn check(scene: &str, cwd: &Path) -> Result<(), ScriptError> {
    load(scene, cwd).map(drop)
}

fn load(name: &str, cwd: &Path) -> Result<Scene, ScriptError> {
    let (path, scene) = name.rsplit_once('#').unwrap_or((name, ""));
    if !path.contains('/') && !path.ends_with(".toml") {
        return Script::parse(BUILT_IN).and_then(|script| script.into_scene(name));
    }
    Script::parse(&read(&cwd.join(path)).map_err(|error| ScriptError::Unreadable(path.to_owned(), error))?)
        .and_then(|script| script.into_scene(scene))
}

/// Reads a script that is a regular file: a pipe would be waited for.
fn read(path: &Path) -> std::io::Result<String> {
    let meta = std::fs::metadata(path)?;
    if !meta.is_file() || meta.len() > MOST {
        let why = format!("it is not a regular file of at most {} MiB", MOST / (1024 * 1024));
        return Err(std::io::Error::other(why));
    }
    std::fs::read_to_string(path)
}

fn read_input(sender: &Sender<Input>) {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if sender.send(Input::Line(line)).is_err() {
            return;
        }
    }
    let _ = sender.send(Input::Eof);
}

/// SIGTERM and SIGHUP end the agent in order, as they end pi; SIGINT kills it.
fn watch_signals(sender: Sender<Input>) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Registered before the thread starts, so that no signal finds the default action.
    let (mut term, mut hangup) = {
        let _guard = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?)
    };
    std::thread::spawn(move || {
        let number = runtime.block_on(async {
            tokio::select! {
                _ = term.recv() => 15,
                _ = hangup.recv() => 1,
            }
        });
        let _ = sender.send(Input::Signal(number));
    });
    Ok(())
}

fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The stage of a real process.
struct Live {
    input: Receiver<Input>,
    start: Instant,
    speed: f64,
}

impl Stage for Live {
    fn now(&self) -> Duration {
        self.start.elapsed().mul_f64(self.speed)
    }

    fn wait(&mut self, until: Option<Duration>) -> Option<Input> {
        match until {
            None => Some(self.input.recv().unwrap_or(Input::Eof)),
            Some(until) => {
                let left = until.saturating_sub(self.now()).div_f64(self.speed);
                match self.input.recv_timeout(left) {
                    Ok(input) => Some(input),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => Some(Input::Eof),
                }
            }
        }
    }

    fn out(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }

    fn err(&mut self, line: &str) {
        tell!("{line}");
    }

    fn wall_ms(&self) -> i64 {
        wall_ms()
    }
}
