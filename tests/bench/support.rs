//! What the benches share: children, a pump to compare with, runs in a folder of their own, and statistics.
//!
//! A bench is its own child: with [`ROLE`] in the environment the program plays that part and ends. Times between
//! processes are of the system clock, handed over in files. Nothing is asserted about speed.

// Each bench uses a part of it.
#![allow(dead_code)]

use std::fs::{self, File};
use std::io::{BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

/// The variable that makes this program a child: the part and its arguments, with spaces between.
pub const ROLE: &str = "SUBDECK_BENCH_ROLE";
/// The variable that names the folder for the times of a child.
pub const STAMPS: &str = "SUBDECK_BENCH_STAMPS";
/// The longest that anything here may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Plays a child's part and ends, if this process is one. The first line of every bench.
pub fn play() {
    let begun = now();
    let Ok(role) = std::env::var(ROLE) else { return };
    stamp_at("exec", begun);
    let words: Vec<&str> = role.split(' ').collect();
    let number = |index: usize| words[index].parse::<u64>().unwrap();
    match words[0] {
        "nothing" => {}
        "flood" => flood(number(1)),
        "noisy" => noisy(number(1), words[2]),
        "stream" => stream(Path::new(words[1])),
        "pump" => pump(Path::new(words[1])),
        "tools" => tools(number(1), number(2) == 1, number(3)),
        "wait" => wait_for_signal(),
        other => panic!("no part {other}"),
    }
    std::process::exit(0);
}

/// Nanoseconds since the epoch.
pub fn now() -> u128 {
    nanos(SystemTime::now())
}

/// A time in nanoseconds since the epoch.
pub fn nanos(time: SystemTime) -> u128 {
    time.duration_since(UNIX_EPOCH).unwrap().as_nanos()
}

fn stamp_at(name: &str, at: u128) {
    if let Some(folder) = std::env::var_os(STAMPS).map(PathBuf::from) {
        let temp = folder.join(format!(".{name}"));
        fs::write(&temp, at.to_string()).unwrap();
        fs::rename(temp, folder.join(name)).unwrap();
    }
}

/// Lines of 100 bytes as fast as the pipe takes them.
fn flood(bytes: u64) {
    let mut block = Vec::new();
    for i in 0..6500 {
        let line =
            format!("2026-01-01T12:00:00.000Z INFO worker-{:02} request {i:09} handled in 12 ms, 200 OK ", i % 16);
        block.extend_from_slice(format!("{line:.<99}\n").as_bytes());
    }
    let mut out = std::io::stdout().lock();
    let mut left = usize::try_from(bytes).unwrap();
    while left > 0 {
        let n = left.min(block.len());
        out.write_all(&block[..n]).unwrap();
        left -= n;
    }
    out.flush().unwrap();
}

/// Lines that all say this word, so many a second, for ever: ten milliseconds' worth at a time.
fn noisy(rate: u64, word: &str) {
    let mut out = std::io::stdout().lock();
    let mut due = Instant::now();
    for batch in 0_u64.. {
        let line = |n| format!("12:40:51 INFO {word} {word} {word} request {batch}.{n} handled in 12 ms, 200 OK\n");
        let lines: String = (0..rate / 100).map(line).collect();
        // Whoever read them is gone.
        if out.write_all(lines.as_bytes()).and_then(|()| out.flush()).is_err() {
            return;
        }
        due += Duration::from_millis(10);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

/// What a pi in rpc mode is told first: takes everything up to the prompt and accepts it.
fn accept_prompt() {
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        if line.contains(r#""type":"prompt""#) {
            let id = serde_json::from_str::<Value>(&line).unwrap()["id"].clone();
            let answer = serde_json::json!({ "id": id, "type": "response", "command": "prompt", "success": true });
            let mut out = std::io::stdout().lock();
            writeln!(out, "{answer}").unwrap();
            return out.flush().unwrap();
        }
    }
    panic!("no prompt came");
}

/// A pi in rpc mode stays until its input ends.
fn stay_until_told() {
    std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink()).unwrap();
}

/// A pi in rpc mode that answers with a recorded stream as fast as the pipe takes it.
fn stream(file: &Path) {
    accept_prompt();
    let mut file = File::open(file).unwrap();
    let mut out = std::io::stdout();
    let mut block = vec![0; 64 * 1024];
    loop {
        match file.read(&mut block).unwrap() {
            0 => break,
            n => out.write_all(&block[..n]).unwrap(),
        }
    }
    out.flush().unwrap();
    stay_until_told();
}

/// Reads a pipe and writes a file: the least that anybody who keeps the output has to do.
fn pump(file: &Path) {
    let mut file = File::create(file).unwrap();
    let mut block = vec![0; 64 * 1024];
    let mut input = std::io::stdin().lock();
    loop {
        match input.read(&mut block).unwrap() {
            0 => return,
            n => file.write_all(&block[..n]).unwrap(),
        }
    }
}

/// A pi that uses `count` tools, each open for a while, with words in between when it is busy; then `short` tools that
/// end at once. Writes when it opened each of the first.
fn tools(count: u64, busy: bool, short: u64) {
    accept_prompt();
    let say = |text: &str| {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes()).unwrap();
        out.flush().unwrap();
    };
    let rest = |millis: u64| {
        let until = Instant::now() + Duration::from_millis(millis);
        while Instant::now() < until {
            if busy {
                say(WORD);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    say("{\"type\":\"agent_start\"}\n{\"type\":\"turn_start\"}\n");
    rest(300);
    let mut times = String::new();
    for i in 0..count {
        let at = now();
        say(&tool_start(&format!("tool_{i}")));
        times.push_str(&format!("{at}\n"));
        // Longer than changes are gathered, so that without words in between each of these comes after a quiet time;
        // the phases are spread over any timer.
        rest(150 + i * 37 % 50);
        say(&tool_end(&format!("tool_{i}")));
        rest(150 + i * 23 % 30);
    }
    fs::write(Path::new(&std::env::var_os(STAMPS).unwrap()).join("tools"), times).unwrap();
    for i in 0..short {
        say(&(tool_start(&format!("short_{i}")) + &tool_end(&format!("short_{i}"))));
    }
    say(&end());
    stay_until_told();
}

/// Waits for SIGTERM or SIGINT and notes when it came.
fn wait_for_signal() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        use tokio::signal::unix::{SignalKind, signal};
        let mut term = signal(SignalKind::terminate()).unwrap();
        let mut int = signal(SignalKind::interrupt()).unwrap();
        stamp_at("ready", now());
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        stamp_at("signal", now());
    });
}

const WORD: &str = "{\"type\":\"message_update\",\"assistantMessageEvent\":{\"type\":\"text_delta\",\"contentIndex\":0,\"delta\":\"word \"}}\n";

fn tool_start(name: &str) -> String {
    format!(
        "{{\"type\":\"tool_execution_start\",\"toolCallId\":\"{name}\",\"toolName\":\"{name}\",\"args\":{{\"command\":\"true\"}}}}\n"
    )
}

fn tool_end(name: &str) -> String {
    format!(
        "{{\"type\":\"tool_execution_end\",\"toolCallId\":\"{name}\",\"toolName\":\"{name}\",\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"ok\"}}]}},\"isError\":false}}\n"
    )
}

fn message(text: &str, stop: &str) -> String {
    let message = serde_json::json!({
        "type": "message_end",
        "message": {
            "role": "assistant", "content": [{ "type": "text", "text": text }], "provider": "p", "model": "m",
            "usage": { "input": 120, "output": 20, "cacheRead": 0, "cacheWrite": 0, "cost": { "total": 0.0002 } },
            "stopReason": stop,
        },
    });
    format!("{message}\n")
}

fn end() -> String {
    let last = "{\"type\":\"turn_end\"}\n{\"type\":\"agent_end\",\"messages\":[],\"willRetry\":false}\n{\"type\":\"agent_settled\"}\n";
    message("All is well.", "stop") + last
}

/// Writes a pi stream of about this many MiB, in the shape of the recorded ones (`tests/fixtures/streams`): turns of
/// many small deltas and a tool call that reports its growing output and whose result is told three times. Five of six
/// lines are deltas, and a line has 1.5 kB on average.
pub fn write_stream(file: &Path, mib: usize) -> u64 {
    let zero = serde_json::json!({ "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0,
        "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0 } });
    let said = "the run reads a file and checks every branch of it, été and 日本 too, ".repeat(14);
    let body = "a line of what the tool printed while it ran, with a \"quoted\" word\n".repeat(240);
    let mut turn = String::new();
    let mut line = |json: &str| {
        turn.push_str(json);
        turn.push('\n');
    };
    line(r#"{"type":"turn_start"}"#);
    line(r#"{"type":"message_start","message":{"role":"assistant","content":[]}}"#);
    for piece in said.chars().collect::<Vec<_>>().chunks(15).take(60) {
        let text = Value::from(piece.iter().collect::<String>());
        line(&format!(
            r#"{{"type":"message_update","usage":{zero},"assistantMessageEvent":{{"type":"text_delta","contentIndex":0,"delta":{text}}}}}"#
        ));
    }
    let answer = message(&said.chars().take(900).collect::<String>(), "toolUse");
    line(answer.trim_end());
    line(tool_start("bash").trim_end());
    for part in 1..5 {
        let text = Value::from(&body[..part * 2000]);
        line(&format!(
            r#"{{"type":"tool_execution_update","toolCallId":"bash","toolName":"bash","args":{{"command":"true"}},"partialResult":{{"content":[{{"type":"text","text":{text}}}]}}}}"#
        ));
    }
    let content = format!(r#"[{{"type":"text","text":{}}}]"#, Value::from(body));
    let result =
        format!(r#"{{"role":"toolResult","toolCallId":"bash","toolName":"bash","content":{content},"isError":false}}"#);
    line(&format!(
        r#"{{"type":"tool_execution_end","toolCallId":"bash","toolName":"bash","result":{{"content":{content}}},"isError":false}}"#
    ));
    line(&format!(r#"{{"type":"message_start","message":{result}}}"#));
    line(&format!(r#"{{"type":"message_end","message":{result}}}"#));
    line(&format!(r#"{{"type":"turn_end","message":{{}},"toolResults":[{result}]}}"#));
    let mut text = String::from("{\"type\":\"agent_start\"}\n");
    while text.len() < mib << 20 {
        text.push_str(&turn);
    }
    text.push_str("{\"type\":\"turn_start\"}\n");
    text.push_str(&end());
    fs::write(file, &text).unwrap();
    text.len() as u64
}

/// This program as a child.
pub fn child(role: &str, stamps: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(ROLE, role).env(STAMPS, stamps);
    command
}

/// A folder with a run root, for one sample.
pub struct World {
    folder: tempfile::TempDir,
    runs: Vec<u32>,
}

impl World {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("stamps")).unwrap();
        Self { folder, runs: Vec::new() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn stamps(&self) -> PathBuf {
        self.path("stamps")
    }

    /// Starts a detached run of one step that plays this part, as a pi or as a plain command. Returns its directory.
    pub fn start(&mut self, role: &str, pi: bool) -> PathBuf {
        let command = self.command("--detach", role, pi);
        self.detach(command)
    }

    /// Starts a detached run with this command. Returns its directory.
    pub fn detach(&mut self, mut command: Command) -> PathBuf {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let id = String::from_utf8(output.stdout).unwrap();
        let dir = self.path("root/async-subagent-runs").join(id.trim());
        self.runs.extend(status(&dir)["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()));
        dir
    }

    /// The command that runs one step that plays this part; its plan is written.
    pub fn command(&self, how: &str, role: &str, pi: bool) -> Command {
        let exe = std::env::current_exe().unwrap();
        let runner =
            if pi { "type = \"pi\"".to_owned() } else { format!("type = \"external-cli\", command = {exe:?}") };
        let plan = format!(
            "[[step]]\nid = \"one\"\nagent = \"one\"\nsystem_prompt = \"s\"\ntask = \"t\"\nrunner = {{ {runner} }}\nenv = {{ {ROLE} = {role:?}, {STAMPS} = {:?} }}\n",
            self.stamps()
        );
        let plan = if pi { plan } else { plan.replace("system_prompt = \"s\"\n", "").replace("agent = \"one\"\n", "") };
        let file = self.path("plan.toml");
        fs::write(&file, plan).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_subdeck"));
        command.args(["run", how, "--root"]).arg(self.path("root")).arg(&file);
        command.current_dir(self.folder.path()).env("HOME", self.folder.path()).env("SUBDECK_PI", &exe);
        command.env_remove("XDG_CONFIG_HOME").stdin(Stdio::null());
        command
    }

    /// Waits until the result of a run is there; returns when it was written.
    pub fn wait_result(&self, dir: &Path) -> u128 {
        let mut name = dir.file_name().unwrap().to_owned();
        name.push(".json");
        let path = self.path("root/async-subagent-results").join(name);
        wait("the result", || fs::metadata(&path).ok()?.modified().ok().map(nanos))
    }

    /// Takes a stamp of an earlier run away.
    pub fn forget_stamp(&self, name: &str) {
        let _ = fs::remove_file(self.stamps().join(name));
    }

    /// Waits for a time that a child notes.
    pub fn wait_stamp(&self, name: &str) -> u128 {
        let path = self.stamps().join(name);
        wait(name, || fs::read_to_string(&path).ok()?.trim().parse().ok())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Whatever a panic left behind: a runner that is told to stop ends its child.
        for pid in &self.runs {
            let stat = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            if stat.contains(&*self.folder.path().to_string_lossy()) {
                let _ = Command::new("sh").args(["-c", &format!("kill {pid}")]).stderr(Stdio::null()).status();
            }
        }
    }
}

/// status.json as it is.
pub fn status(dir: &Path) -> Value {
    let path = dir.join("status.json");
    wait("a status", || serde_json::from_slice(&fs::read(&path).ok()?).ok())
}

/// The run has completed.
pub fn check_complete(dir: &Path) {
    let status = status(dir);
    assert_eq!(status["state"], "complete", "{}", status["error"]);
}

/// Waits for a condition.
pub fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// One child's output through the pump into a file; returns the seconds from the child's first instruction to the
/// pump's end.
pub fn pumped(world: &World, role: &str, input: &[u8]) -> f64 {
    let mut child: Child = child(role, &world.stamps()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let mut pump = Command::new(std::env::current_exe().unwrap());
    pump.env(ROLE, format!("pump {}", world.path("pumped").display())).env_remove(STAMPS);
    let mut pump = pump.stdin(child.stdout.take().unwrap()).spawn().unwrap();
    assert!(pump.wait().unwrap().success());
    let ended = now();
    assert!(child.wait().unwrap().success());
    seconds(world.wait_stamp("exec"), ended)
}

/// Between two times, in seconds.
pub fn seconds(from: u128, to: u128) -> f64 {
    to.saturating_sub(from) as f64 / 1e9
}

/// Samples of one thing.
#[derive(Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// The value below which this part of the samples lies.
    pub fn quantile(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[((sorted.len() - 1) as f64 * part).round() as usize]
    }

    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    fn range(&self) -> String {
        format!("[{:.1}..{:.1}]", self.quantile(0.0), self.quantile(1.0))
    }

    /// Median, range and number; `more` stands behind.
    pub fn print(&self, name: &str, unit: &str, more: &str) {
        println!("{name:<28} {:>9.1} {unit:<6} {:<20} n={:<4}{more}", self.median(), self.range(), self.0.len());
    }

    /// The same with the 95th percentile.
    pub fn print_p95(&self, name: &str, unit: &str, more: &str) {
        self.print(name, unit, &format!("p95 {:.1}{more}", self.quantile(0.95)));
    }
}

/// How many rounds there are; the variable `SUBDECK_BENCH_ROUNDS` says otherwise.
pub fn rounds(usual: u32) -> u32 {
    std::env::var("SUBDECK_BENCH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
