//! What `subdeck export` writes, with the program: the report for programs has its schema, and a browser shows the document
//! without an error and without asking anybody for anything.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use jsonschema::Validator;
use serde_json::{Value, json};
use support::{PATIENCE, Run, World};

/// Everything that a child may print to become more than text.
const HOSTILE: &str =
    "</script><script>document.title='mine'</script> \" onload='x' <img src=http://127.0.0.1:9/x> \u{202e}back";
const KEY: &str = "sk-ant-a1B2c3D4e5F6g7H8i9J0k1L2m3N4";
/// The lines of a private key.
const BODY: &str = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtz";
const LAST: &str = "AAEC3wQFBgc=";
const PROMPT: &str = "the words of the prompt";

fn validator(subject: &str) -> Validator {
    let done = World::new().output(&["schema", subject]);
    assert_eq!(done.code, 0, "{done:?}");
    jsonschema::validator_for(&serde_json::from_str(&done.stdout).unwrap()).unwrap()
}

fn pem(newline: &str) -> String {
    ["-----BEGIN OPENSSH PRIVATE KEY-----", BODY, BODY, LAST, "-----END OPENSSH PRIVATE KEY-----"].join(newline)
}

/// A run of an agent and a command that prints what it should not.
fn played(world: &World) -> Run {
    world.file("words", &format!("{HOSTILE}\nexport ANTHROPIC_API_KEY={KEY}\n{}\n\u{1b}[31mred\u{1b}[0m\n", pem("\n")));
    // One that does not repeat what it was asked.
    let pem = pem("\\n");
    world.file("scenes.toml", &format!("[scene.quiet]\n[[scene.quiet.turn]]\nsay = \"I look.\"\ntool = [{{ name = \"bash\", args = {{ command = \"ls\", patience = 7 }}, time_ms = 1, output = \"src\" }}]\n[[scene.quiet.turn]]\nsay = \"It is\\n{pem}\"\n"));
    let plan = format!(
        "name = {}\n[[step]]\nagent = \"scout\"\nrunner = {{ type = \"demo\", script = \"scenes.toml#quiet\" }}\ntask = \"{PROMPT}\"\n\
         [[step]]\nlabel = {}\nrunner = {{ type = \"external-cli\", command = \"cat\", args = [\"words\"] }}\n",
        serde_json::to_string(HOSTILE.split(' ').next().unwrap()).unwrap(),
        serde_json::to_string("a <b>label</b>").unwrap(),
    );
    world.file("plan.toml", &plan);
    let mut command = world.subdeck(&["run", "--no-tui", "plan.toml"]);
    let done = support::Done::of(command.env("SUBDECK_DEMO_SPEED", "50").output().unwrap());
    assert_eq!(done.code, 0, "{done:?}");
    world.only_run()
}

fn export(world: &World, run: &Run, args: &[&str]) -> PathBuf {
    let out = world.project().join("taken");
    let place = out.display().to_string();
    let mut all = vec!["export", run.id(), "--force", "--out", &place];
    all.extend(args);
    let done = world.output(&all);
    assert_eq!(done.code, 0, "{done:?}");
    out
}

#[test]
fn the_report_has_its_schema_and_no_secret() {
    let world = World::new();
    let run = played(&world);
    for prompts in [false, true] {
        let out = export(&world, &run, if prompts { &["--with-prompts"] } else { &[] });
        let page = fs::read_to_string(out.with_extension("html")).unwrap();
        let text = fs::read_to_string(out.with_extension("json")).unwrap();
        let report: Value = serde_json::from_str(&text).unwrap();
        if let Err(error) = validator("report").validate(&report) {
            panic!("no report of the schema: {error} at {}", error.instance_path());
        }
        assert!(validator("status").is_valid(&report["run"]), "{:#}", report["run"]);
        let events = validator("events");
        for event in report["events"].as_array().unwrap() {
            assert!(events.is_valid(event), "no event of the schema: {event}");
        }
        for document in [&page, &text] {
            assert_eq!(document.contains(PROMPT), prompts);
            assert!(!document.contains(KEY) && !document.contains("g7H8i9J0"));
            assert!(!document.contains(&BODY[..20]) && !document.contains(LAST), "lines of a private key");
            assert!(document.contains("ANTHROPIC_API_KEY=***"), "masked, in the place where it was printed");
            assert!(!document.contains('\u{202e}'));
        }
        assert!(!report["tool_calls"].as_array().unwrap().is_empty());
    }
}

/// A browser, by its variable or on the PATH.
fn chromium() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("SUBDECK_CHROMIUM") {
        return Some(path.into());
    }
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome", "headless_shell", "chrome-headless-shell"];
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    names.iter().flat_map(|name| folders.iter().map(move |f| f.join(name))).find(|path| path.is_file())
}

/// A browser that is told what to do over two pipes, one JSON text after the other with a zero byte behind each.
struct Browser {
    child: Child,
    to: fs::File,
    said: Receiver<Value>,
    sent: u64,
    /// Everything that it told without being asked.
    told: Vec<Value>,
}

impl Browser {
    fn start(program: &Path, folder: &Path) -> Self {
        let pipe = |name: &str| {
            let path = folder.join(name);
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            path
        };
        let (to, from) = (pipe("to"), pipe("from"));
        // It looks for them at 3 and 4.
        let child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<\"$TO\" 4>\"$FROM\""])
            .arg(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args(["--disable-background-networking", "--hide-scrollbars", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .env("TO", &to)
            .env("FROM", &from)
            .env("HOME", folder)
            .env("TMPDIR", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = fs::OpenOptions::new().write(true).open(to).unwrap();
        let from = BufReader::new(fs::File::open(from).unwrap());
        let (give, said) = channel();
        std::thread::spawn(move || {
            for text in from.split(0).map_while(Result::ok) {
                if give.send(serde_json::from_slice(&text).unwrap()).is_err() {
                    return;
                }
            }
        });
        Self { child, to, said, sent: 0, told: Vec::new() }
    }

    fn next(&self) -> Value {
        self.said.recv_timeout(PATIENCE * 2).expect("the browser says something")
    }

    /// Asks for something and waits for what comes of it.
    fn ask(&mut self, session: Option<&str>, method: &str, params: Value) -> Value {
        self.sent += 1;
        let mut request = json!({ "id": self.sent, "method": method, "params": params });
        if let Some(session) = session {
            request["sessionId"] = session.into();
        }
        self.to.write_all(&[request.to_string().as_bytes(), &[0]].concat()).unwrap();
        loop {
            let said = self.next();
            if said["id"] == self.sent {
                assert!(said.get("error").is_none(), "{method}: {said}");
                return said["result"].clone();
            }
            self.told.push(said);
        }
    }

    /// Waits until it tells of this.
    fn wait(&mut self, method: &str) {
        while !self.told.iter().any(|said| said["method"] == method) {
            let said = self.next();
            self.told.push(said);
        }
    }

    fn told(&self, method: &str) -> Vec<&Value> {
        self.told.iter().filter(|said| said["method"] == method).map(|said| &said["params"]).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_browser_shows_the_document_without_an_error_and_asks_nobody() {
    let Some(program) = chromium() else {
        println!("skipped: no Chromium is on the PATH, and SUBDECK_CHROMIUM names none");
        return;
    };
    let world = World::new();
    let run = played(&world);
    let page = export(&world, &run, &[]).with_extension("html");
    let folder = tempfile::tempdir().unwrap();
    let mut browser = Browser::start(&program, folder.path());
    let target = browser.ask(None, "Target.createTarget", json!({ "url": "about:blank" }));
    let attached =
        browser.ask(None, "Target.attachToTarget", json!({ "targetId": target["targetId"], "flatten": true }));
    let session = attached["sessionId"].as_str().unwrap().to_owned();
    let session = Some(session.as_str());
    for domain in ["Page", "Runtime", "Log", "Network"] {
        browser.ask(session, &format!("{domain}.enable"), json!({}));
    }
    let size = |width: u64| json!({ "width": width, "height": 1600, "deviceScaleFactor": 1, "mobile": false });
    browser.ask(session, "Emulation.setDeviceMetricsOverride", size(1280));
    let address = format!("file://{}", page.display());
    browser.ask(session, "Page.navigate", json!({ "url": address }));
    browser.wait("Page.loadEventFired");
    let mut look = |expression: &str| {
        let params = json!({ "expression": expression, "returnByValue": true });
        browser.ask(session, "Runtime.evaluate", params)["result"]["value"].clone()
    };
    // The script has run, and none but it.
    assert_eq!(look("document.documentElement.dataset.ready"), "yes");
    assert_eq!(look("document.scripts.length + document.images.length"), 1);
    assert_eq!(look("document.title"), HOSTILE.split(' ').next().unwrap());
    assert_eq!(look("document.querySelectorAll('section.pane').length"), 2);
    // The search finds what was printed, and only shows that.
    look("const f = document.getElementById('find'); f.value = 'onload='; f.dispatchEvent(new Event('input'))");
    let deadline = Instant::now() + PATIENCE;
    while look("document.getElementById('found').textContent") == "" {
        assert!(Instant::now() < deadline, "the search finds nothing");
    }
    let seen = look("Array.from(document.querySelectorAll('.l:not(.gone)')).map(l => l.textContent).join('|')");
    assert!(seen.as_str().unwrap().contains("127.0.0.1:9/x"), "{seen}");
    assert_eq!(look("CSS.highlights.get('found').size"), 1, "and what was looked for is marked");
    let empty = "Array.from(document.querySelectorAll('details:not(.gone)')).filter(d => !d.querySelector('.l:not(.gone)')).length";
    assert_eq!(look(empty), 0, "no fold is shown that has nothing in it");
    // What was found in the arguments of a call stands below the call.
    look("f.value = 'patience'; f.dispatchEvent(new Event('input'))");
    let shown = "Array.from(document.querySelectorAll('.pane .l:not(.gone)')).map(l => l.textContent).join('|')";
    while !look(shown).as_str().unwrap().contains("patience") {
        assert!(Instant::now() < deadline, "the search finds no argument");
    }
    let seen = look(shown);
    let (call, arguments) = seen.as_str().unwrap().split_once('|').unwrap();
    assert!(call.contains("ok bash ls"), "{seen}");
    assert!(arguments.contains("patience") && !arguments.contains('|'), "{seen}");
    assert_eq!(look("document.getElementById('found').textContent"), "1 line", "the call itself is no match");
    look("f.value = ''; f.dispatchEvent(new Event('input'))");
    while look("document.getElementById('found').textContent") != "" {
        assert!(Instant::now() < deadline, "the search does not end");
    }
    assert_eq!(look("document.querySelectorAll('.gone').length + CSS.highlights.get('found').size"), 0);
    // On a narrow screen the table scrolls in its own place.
    browser.ask(session, "Emulation.setDeviceMetricsOverride", size(420));
    let mut look = |expression: &str| {
        let params = json!({ "expression": expression, "returnByValue": true });
        browser.ask(session, "Runtime.evaluate", params)["result"]["value"].clone()
    };
    assert_eq!(look("document.documentElement.scrollWidth"), look("document.documentElement.clientWidth"));
    browser.ask(session, "Emulation.setDeviceMetricsOverride", size(1280));
    // For who wants to see it.
    if let Some(to) = std::env::var_os("SUBDECK_SCREENSHOT") {
        let whole = json!({ "format": "png", "captureBeyondViewport": true });
        let picture = browser.ask(session, "Page.captureScreenshot", whole);
        let bytes =
            base64::Engine::decode(&base64::engine::general_purpose::STANDARD, picture["data"].as_str().unwrap());
        fs::write(to, bytes.unwrap()).unwrap();
    }
    for told in ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"] {
        assert_eq!(browser.told(told), Vec::<&Value>::new(), "{told}");
    }
    let asked: Vec<&str> = browser
        .told("Network.requestWillBeSent")
        .iter()
        .filter_map(|params| params["request"]["url"].as_str())
        .filter(|url| !url.starts_with("data:"))
        .collect();
    assert_eq!(asked, [address.as_str()]);
}
