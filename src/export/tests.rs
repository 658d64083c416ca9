//! Whatever a run says, the document is ours: its tags and its attributes are those that are made here, and its texts
//! say what was said.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use serde_json::Value;

use super::*;
use crate::run::{Event, RunId, RunMeta, RunPhase, RunState, StepId, StepMeta, Timestamp, What, reduce};
use crate::rundir::records::{self, ChildContext, RecordContext};
use crate::rundir::{RunDir, RunRoot, StatusContext, status};

const HOSTILE: &[&str] = &[
    "</script><script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "<!-- --><![CDATA[ ]]>",
    "</pre></div></section><h1>mine</h1>",
    "</title></style><style>*{display:none}</style>",
    "&lt;b&gt; &amp; &#60;i&#62;",
    "\u{202e}evil\u{1b}]0;t\u{7}\u{1b}[31mred",
    "`${alert(1)}` javascript:alert(1)",
];
const KEY: &str = "sk-ant-a1B2c3D4e5F6g7H8i9J0k1L2m3N4";
const PROMPT: &str = "the words of the prompt";

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(1_760_000_000_000 + ms)
}

/// A finished run of which every text is the one that is given.
fn run(text: &str) -> (tempfile::TempDir, RunDir) {
    let temp = tempfile::tempdir().unwrap();
    let root = RunRoot::at(temp.path());
    let dir = RunDir::create(&root, &RunId("hostile".into())).unwrap();
    let text_of = || text.to_owned();
    let step = StepMeta {
        key: text_of(),
        agent: text_of(),
        label: Some(text_of()),
        model: Some(text_of()),
        ..StepMeta::default()
    };
    let meta = RunMeta {
        id: RunId("hostile".into()),
        name: Some(text_of()),
        cwd: text_of(),
        steps: vec![step],
        logical_count: 1,
        ..RunMeta::default()
    };
    let (mut state, mut log) = (RunState::default(), Vec::new());
    let happen = |state: &mut RunState, log: &mut Vec<u8>, ms: i64, what: What| {
        let event = Event { at: at(ms), what };
        log.extend(records::encode(&event, &RecordContext { state }).unwrap_or_default());
        reduce(state, &event);
    };
    let step = StepId(0);
    happen(&mut state, &mut log, 0, What::RunStarted(Box::new(meta)));
    happen(&mut state, &mut log, 1, What::StepStarted { step });
    let child = ChildContext { run_id: "hostile", step, agent: "a" };
    let said = serde_json::to_string(text).unwrap();
    let content = |text: &str| format!(r#"[{{"type":"text","text":{text}}}]"#);
    let lines = [
        format!(
            r#"{{"type":"message_end","message":{{"role":"user","content":{}}}}}"#,
            content(&format!("\"{PROMPT}\""))
        ),
        format!(r#"{{"type":"tool_execution_start","toolCallId":"c","toolName":{said},"args":{{"command":{said}}}}}"#),
        format!(
            r#"{{"type":"tool_execution_end","toolCallId":"c","toolName":{said},"result":{{"content":{}}},"isError":true}}"#,
            content(&said)
        ),
        format!(
            r#"{{"type":"message_end","message":{{"role":"assistant","content":{},"stopReason":"stop"}}}}"#,
            content(&said)
        ),
    ];
    for (line, ms) in lines.iter().zip(2..) {
        assert!(records::annotate(line.as_bytes(), &child, at(ms), &mut log));
    }
    let outcome = crate::run::StepOutcome {
        phase: crate::run::StepPhase::Failed,
        exit_code: 1,
        error: Some(text_of()),
        ..Default::default()
    };
    happen(&mut state, &mut log, 60_000, What::StepEnded { step, outcome: Box::new(outcome) });
    happen(&mut state, &mut log, 61_000, What::RunEnded { state: RunPhase::Failed, error: Some(text_of()) });
    std::fs::write(dir.events(), log).unwrap();
    let status = status::encode(&state, &StatusContext { dir: &dir, instance: None });
    crate::rundir::replace(&dir.status(), &status).unwrap();
    std::fs::write(dir.output(step), format!("{text}\n\x1b[1;31m{text}\x1b[0m\n")).unwrap();
    (temp, dir)
}

/// What a call was given and what was thought stands in the records in full, masked, and in both documents.
#[test]
fn arguments_and_thoughts_are_there_in_full() {
    let (_temp, dir) = run("said");
    let child = ChildContext { run_id: "hostile", step: StepId(0), agent: "a" };
    let mut log = std::fs::read(dir.events()).unwrap();
    let end = log.iter().rposition(|b| *b == b'{').unwrap();
    let long = "word ".repeat(200);
    let mut more = Vec::new();
    for line in [
        format!(
            r#"{{"type":"tool_execution_start","toolCallId":"d","toolName":"edit","args":{{"command":"word"}},"subdeckArgs":{{"old":"{long}","new":"API_KEY={KEY}\nlast"}}}}"#
        ),
        format!(
            r#"{{"type":"message_end","message":{{"role":"assistant","content":[{{"type":"thinking","thinking":"I wonder\nabout {KEY}"}},{{"type":"text","text":"So it is."}}]}}}}"#
        ),
        r#"{"type":"tool_execution_start","toolCallId":"e","toolName":"bash","args":{"command":"ls"}}"#.to_owned(),
    ] {
        assert!(records::annotate(line.as_bytes(), &child, at(59_000), &mut more));
    }
    let at = log[..end].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    log.splice(at..at, more);
    std::fs::write(dir.events(), log).unwrap();
    let report = gather(&dir, Bounds::default(), |_, _| {}).unwrap();
    let (page, value) = (html(&report, false, &TimeZone::UTC), json(&report, false));
    assert!(!page.contains(KEY) && !value.to_string().contains(KEY));
    let arguments: Vec<&Value> =
        value["tool_calls"].as_array().unwrap().iter().map(|call| &call["arguments"]).collect();
    let whole = arguments[1].as_str().unwrap();
    assert!(whole.contains("word word") && whole.ends_with(" last") && whole.len() > 1000, "{whole}");
    assert_eq!((arguments[0], arguments[2]), (&Value::Null, &Value::Null), "a line says it all");
    assert_eq!(value["thoughts"].as_array().map(Vec::len), Some(1));
    assert!(value["thoughts"][0]["text"].as_str().unwrap().starts_with("I wonder\nabout "));
    assert!(page.contains(&format!("<summary>arguments, {} lines</summary>", whole.lines().count())), "{page}");
    let (thought, spoken) = (page.find("1 thinking, 2 lines").unwrap(), page.rfind("So it is.").unwrap());
    assert!(thought < spoken, "what was thought stands before what was said");
    let none = gather(&dir, Bounds { wholes: 0, ..Bounds::default() }, |_, _| {}).unwrap();
    assert!(none.thoughts.is_empty() && none.calls.iter().all(|call| call.whole.is_none()));
}

fn made(text: &str, prompts: bool) -> (String, Value) {
    let (_temp, dir) = run(text);
    let report = gather(&dir, Bounds { prompts, ..Bounds::default() }, |_, _| {}).unwrap();
    (html(&report, prompts, &TimeZone::UTC), json(&report, prompts))
}

/// The tags of a document with the names of their attributes, as a browser would take it apart.
fn tags(page: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some(open) = rest.find('<') {
        rest = &rest[open + 1..];
        let name: String = rest.chars().take_while(|c| !c.is_whitespace() && *c != '>').collect();
        let mut attributes = Vec::new();
        let (mut quoted, mut word, mut end) = (false, String::new(), rest.len());
        for (at, ch) in rest.char_indices() {
            match ch {
                '"' => quoted = !quoted,
                _ if quoted => {}
                '>' => {
                    end = at;
                    break;
                }
                '=' => attributes.push(std::mem::take(&mut word)),
                c if c.is_whitespace() => word.clear(),
                c => word.push(c),
            }
        }
        found.push((name.clone(), attributes));
        rest = &rest[end..];
        // What is in these is no markup.
        if matches!(name.as_str(), "script" | "style") {
            rest = &rest[rest.find(&format!("</{name}>")).unwrap()..];
        }
    }
    found
}

#[test]
fn no_text_of_a_run_becomes_markup() {
    // Plain texts of the same shape: the ones with a colour in them have a coloured run more.
    let shape = |page: &str| tags(page).into_iter().collect::<BTreeSet<_>>();
    let known = shape(&made("plain", false).0);
    for text in HOSTILE {
        let (page, _) = made(text, false);
        for tag in shape(&page) {
            assert!(known.contains(&tag), "{text:?} made {tag:?}");
        }
        assert_eq!(page.matches("<script").count(), 1, "{text:?}");
        assert_eq!(page.matches("</script").count(), 1, "{text:?}");
        for forbidden in ["<img", "<!--", "\u{202e}", "\u{1b}", "<h1>mine"] {
            assert!(!page.contains(forbidden), "{text:?}: {forbidden:?}");
        }
    }
}

#[test]
fn the_text_says_what_was_said() {
    let (page, _) = made("a < b && \"c\"", false);
    assert!(page.contains("a &#60; b &#38;&#38; &#34;c&#34;"), "{page}");
}

#[test]
fn the_policy_names_the_only_script_and_lets_nothing_be_fetched() {
    use base64::Engine;
    use sha2::Digest;
    let (page, _) = made("plain", false);
    let script = page.split("<script>").nth(1).unwrap().split("</script>").next().unwrap();
    let digest = base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(script.as_bytes()));
    assert!(page.contains(&format!("script-src 'sha256-{digest}'")));
    assert!(page.contains("default-src 'none'"));
    for fetched in ["http:", "https:", "//cdn", "url(", "@import", " src="] {
        assert!(!page.contains(fetched), "{fetched}");
    }
}

#[test]
fn the_timeline_says_what_its_signs_mean_and_where_it_ends() {
    let (page, _) = made("said", false);
    let steps = page.split("<section id=\"steps\">").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(steps.contains("<span>0:00</span><span>1:01</span>"), "{steps}");
    assert!(steps.contains("</i> something fails or needs somebody</span>"), "{steps}");
    assert!(!steps.contains("a request"), "none that is not there: {steps}");
    assert!(steps.contains("title=\"1:00 failed with exit 1 in 0:59: said\""), "{steps}");
}

#[test]
fn a_lane_has_as_many_signs_as_it_has_places() {
    let (_temp, dir) = run("said");
    let mut log = std::fs::read(dir.events()).unwrap();
    let child = ChildContext { run_id: "hostile", step: StepId(0), agent: "a" };
    for n in 0..3000_i64 {
        let line = format!(r#"{{"type":"tool_execution_start","toolCallId":"d{n}","toolName":"more","args":{{}}}}"#);
        assert!(records::annotate(line.as_bytes(), &child, at(20 * n), &mut log));
    }
    std::fs::write(dir.events(), &log).unwrap();
    let page = html(&gather(&dir, Bounds::default(), |_, _| {}).unwrap(), false, &TimeZone::UTC);
    let signs = page.matches("title=\"").count();
    assert!((900..=1001).contains(&signs), "{signs}");
    assert!(page.contains("</i> a tool call begins</span>"));
}

#[test]
fn what_each_model_cost_is_told_where_there_are_several() {
    let (_temp, dir) = run("said");
    let mut report = gather(&dir, Bounds::default(), |_, _| {}).unwrap();
    let mut step = report.state.steps[0].clone();
    (step.model, step.cost) = (Some("small".into()), Some(crate::run::CostUsd(0.5)));
    report.state.steps[0].cost = Some(crate::run::CostUsd(0.25));
    assert!(!html(&report, false, &TimeZone::UTC).contains("cost by model"));
    report.state.steps.push(step);
    report.outputs.clear();
    let page = html(&report, false, &TimeZone::UTC);
    assert!(page.contains("<dt>cost by model</dt><dd>small $0.50, said $0.25</dd>"), "{page}");
}

#[test]
fn prompts_and_keys_stay_out() {
    for prompts in [false, true] {
        let (page, report) = made(KEY, prompts);
        let report = report.to_string();
        assert_eq!((page.contains(PROMPT), report.contains(PROMPT)), (prompts, false), "{prompts}");
        for text in [&page, &report] {
            assert!(!text.contains(KEY) && !text.contains("g7H8i9J0"), "{text}");
        }
        assert!(page.contains("[redacted]") && report.contains("[redacted]"));
    }
}

/// pi-subagents begins the log of a step with its task.
#[test]
fn the_task_that_a_foreign_log_begins_with_stays_out_too() {
    let (_temp, dir) = run("said");
    let task = format!("Task: {PROMPT}\nof two lines");
    let message = serde_json::json!({"type": "message_end", "message": {"role": "user", "content": task},
        "subagentSource": "child", "subagentRunId": "hostile", "subagentStepIndex": 0, "observedAt": 1});
    let log = [std::fs::read(dir.events()).unwrap(), format!("{message}\n").into_bytes()].concat();
    std::fs::write(dir.events(), log).unwrap();
    std::fs::write(dir.output(StepId(0)), format!("{task}\nan answer\n")).unwrap();
    for prompts in [false, true] {
        let report = gather(&dir, Bounds { prompts, ..Bounds::default() }, |_, _| {}).unwrap();
        for document in [html(&report, prompts, &TimeZone::UTC), json(&report, prompts).to_string()] {
            assert_eq!(document.contains("of two lines"), prompts, "{document}");
            assert!(document.contains("an answer"), "{document}");
        }
    }
}

#[test]
fn the_report_for_programs_has_the_run_its_calls_and_its_output() {
    let (_, report) = made("said", false);
    assert_eq!(report["run"]["state"], "failed");
    assert_eq!(report["tool_calls"][0]["tool"], "said");
    assert_eq!(report["tool_calls"][0]["outcome"], "error");
    assert_eq!(report["outputs"][0]["lines"][1]["text"], "said");
    assert_eq!(report["outputs"][0]["bytes_left_out"], 0);
    let kinds: Vec<&str> = report["events"].as_array().unwrap().iter().filter_map(|e| e["type"].as_str()).collect();
    assert!(kinds.starts_with(&["run_started", "step_started", "tool_started"]), "{kinds:?}");
    assert!(kinds.ends_with(&["step_ended", "run_ended"]), "{kinds:?}");
}

#[test]
fn what_is_too_much_is_left_out_and_told() {
    let (_temp, dir) = run("said");
    let lines: String = (0..1000).map(|n| format!("line {n}\n")).collect();
    std::fs::write(dir.output(StepId(0)), &lines).unwrap();
    let bounds = Bounds { events: 3, calls: 0, output: 100, ..Bounds::default() };
    let report = gather(&dir, bounds, |_, _| {}).unwrap();
    assert_eq!((report.events.len(), report.calls.len(), report.calls_left_out), (3, 0, 1));
    assert!(report.events_left_out > 0);
    let part = &report.outputs[0];
    let shown: u64 = part.lines.iter().map(|(_, line)| line.end - line.start).sum();
    assert_eq!(part.left_out + shown, lines.len() as u64);
    assert!(shown <= 100 && shown > 80, "{shown}");
    let page = html(&report, false, &TimeZone::UTC);
    for told in ["older events are left out", "older tool calls are left out", "left out</summary>"] {
        assert!(page.contains(told), "{told}");
    }
}

#[test]
fn of_a_long_log_the_newest_is_kept_and_what_is_rare_with_it() {
    let (_temp, dir) = run("said");
    let mut log = std::fs::read(dir.events()).unwrap();
    let child = ChildContext { run_id: "hostile", step: StepId(0), agent: "a" };
    let mut more = Vec::new();
    for n in 0..200_i64 {
        let line = format!(
            r#"{{"type":"message_end","message":{{"role":"assistant","content":[{{"type":"text","text":"thing {n}"}}]}}}}"#
        );
        assert!(records::annotate(line.as_bytes(), &child, at(62_000 + n), &mut more));
    }
    log.extend(&more);
    std::fs::write(dir.events(), &log).unwrap();
    let mut progress = Vec::new();
    let report =
        gather(&dir, Bounds { events: 40, ..Bounds::default() }, |done, all| progress.push((done, all))).unwrap();
    assert!(progress.iter().all(|(done, all)| done <= all && *all == log.len() as u64), "{progress:?}");
    let kinds: Vec<&str> = report.events.iter().filter_map(|e| e["type"].as_str()).collect();
    assert!(kinds.len() as u64 + report.events_left_out >= 200, "{}", report.events_left_out);
    assert!(kinds.starts_with(&["run_started", "step_started"]), "{kinds:?}");
    assert!(report.events.back().unwrap().to_string().contains("thing 199"), "{:?}", report.events.back());
    assert!(kinds.len() <= 40, "{}", kinds.len());
}
