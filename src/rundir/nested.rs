//! Runs within runs (run-directory 2.16): what a nested run tells of itself, whom a run has below it, and how those are
//! told to end. The files belong to all runs of one route; whoever knows its token may write them, so nothing in them is
//! trusted beyond that.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::json::{Json, Obj};
use super::look::Look;
use super::{open, replace, status};
use crate::plan::{NestedSelf, PathEntry, Route};
use crate::run::{RunState, StepId, StepState, Timestamp};

/// The folder of all routes of a root.
const ROUTES: &str = "nested-subagent-events";
/// The folder of all nested runs of a root.
const RUNS: &str = "nested-subagent-runs";
/// The largest event that is written or read, in bytes.
const MOST: usize = 64 * 1024;
/// How many steps a summary has at most.
const STEPS: usize = 12;
/// The largest registry that is read, in bytes.
const REGISTRY: u64 = 16 * 1024 * 1024;
/// How many events are read at most, the newest ones.
const EVENTS: usize = 10_000;
/// How many routes of one run, and how many of the newest events of each, are looked at for where its runs stand.
const ROUTES_MOST: usize = 8;
const NEWEST: usize = 64;
/// How deep runs may stand within each other.
const DEEPEST: u64 = 3;

/// The root that a route belongs to, when it is one that a run in this directory may use: its folders lie side by side
/// in the root of the run itself, and its own file has the same token.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn root_of(route: &Route, dir: &Path) -> Result<PathBuf, String> {
    let folder = |path: &str| Path::new(path).parent().map(Path::to_path_buf);
    let (events, controls) = (folder(&route.event_sink), folder(&route.control_inbox));
    let base = events.filter(|_| controls.is_some()).ok_or("its folders are no folders of a route")?;
    if controls.as_deref() != Some(base.as_path()) || route.event_sink.contains("/..") {
        return Err("its folders do not lie side by side".to_owned());
    }
    let routes = base.parent().filter(|p| p.file_name().is_some_and(|name| name == ROUTES));
    let root = routes.and_then(Path::parent).ok_or_else(|| format!("its folders do not lie in {ROUTES}"))?;
    if !dir.starts_with(root) {
        return Err(format!("it belongs to another root, {}", root.display()));
    }
    let file = base.join("route.json");
    let known = read(&file, MOST as u64).ok_or_else(|| format!("{} cannot be read", file.display()))?;
    let known = Look(&known);
    if known.str("rootRunId") != Some(&route.root_run_id)
        || known.str("capabilityToken") != Some(&route.capability_token)
    {
        return Err(format!("{} is about another route", file.display()));
    }
    Ok(root.to_path_buf())
}

/// What a run tells of itself: `kind` is `updated` or `completed`.
#[must_use]
pub fn event(route: &Route, own: &NestedSelf, dir: &Path, state: &RunState, kind: &str, at: Timestamp) -> Vec<u8> {
    let whole = |steps: bool| {
        let mut event = Obj::new();
        event.set("type", format!("subagent.nested.{kind}")).set("ts", at).set("rootRunId", &route.root_run_id);
        event.set("parentRunId", &own.parent_run_id).opt("parentStepIndex", own.parent_step_index);
        event.set("capabilityToken", &route.capability_token).set("child", summary(own, dir, state, steps));
        event.compact()
    };
    let event = whole(true);
    // Readers pass over what is larger.
    if event.len() <= MOST { event } else { whole(false) }
}

/// Writes an event so that readers find it in the order of time.
///
/// # Errors
/// What the file system says.
pub fn tell(route: &Route, event: &[u8], at: Timestamp) -> io::Result<()> {
    let name = format!("{:013}-{}.json", at.millis().max(0), uuid::Uuid::new_v4());
    replace(&Path::new(&route.event_sink).join(name), event)
}

fn summary(own: &NestedSelf, dir: &Path, state: &RunState, with_steps: bool) -> Obj {
    let cut = |text: &str, most: usize| crate::text::prefix(text, most).to_owned();
    let mut obj = Obj::new();
    obj.set("id", state.id.as_str()).set("parentRunId", &own.parent_run_id);
    obj.opt("parentStepIndex", own.parent_step_index).set("depth", own.depth.min(DEEPEST));
    obj.set("path", path(&way(own)));
    obj.set("asyncDir", dir.to_string_lossy().into_owned()).opt("pid", state.pid);
    obj.opt("sessionId", state.session_id.as_deref().map(|id| cut(id, 256)));
    obj.set("mode", status::mode_word(&state.mode)).set("state", state.phase.as_str());
    obj.set("ownerState", if state.ended_at.is_some() { "gone" } else { "live" });
    let agents: Vec<String> = state.steps.iter().take(STEPS).map(|s| cut(&s.agent, 128)).collect();
    match agents.as_slice() {
        [only] => obj.set("agent", only),
        _ => obj.set("agents", agents.iter().collect::<Json>()),
    };
    obj.set("currentStep", state.current.map_or(0, |s| s.flat())).set("chainStepCount", state.logical_count);
    obj.opt("activityState", status::worst_activity(state).filter(|_| state.ended_at.is_none()));
    obj.opt("lastActivityAt", state.last_activity);
    if let Some(call) = status::newest_call(state) {
        obj.set("currentTool", cut(&call.tool, 128)).set("currentToolStartedAt", call.started_at);
        obj.opt("currentPath", call.path.as_deref().map(|p| cut(p, 2048)));
    }
    let (turns, tools) = state.steps.iter().fold((0, 0), |(t, c), s| (s.turn_count.max(t), c + s.tool_count));
    obj.opt("turnCount", Some(turns).filter(|n| *n > 0)).opt("toolCount", Some(tools).filter(|n| *n > 0));
    let sum = state.tokens();
    obj.opt("totalTokens", (!sum.is_zero()).then(|| status::tokens(sum)));
    obj.opt("totalCost", status::cost_summary(sum, state.cost()));
    obj.opt("startedAt", state.started_at).opt("endedAt", state.ended_at);
    obj.opt("lastUpdate", state.last_update).opt("timeoutMs", state.timeout_ms).opt("deadlineAt", state.deadline_at);
    obj.flag("timedOut", state.timed_out).flag("stopped", state.stopped);
    obj.opt("error", state.error.as_deref().map(|e| cut(e, 1024)));
    if with_steps {
        obj.set("steps", state.steps.iter().take(STEPS).map(step).collect::<Json>());
    }
    obj
}

fn step(step: &StepState) -> Obj {
    let mut obj = Obj::new();
    obj.set("agent", crate::text::prefix(&step.agent, 128)).set("status", step.phase.as_str());
    obj.opt("model", step.model.as_deref().map(|m| crate::text::prefix(m, 512)));
    obj.opt("thinking", step.thinking.as_ref()).opt("sessionFile", step.session_file.as_ref());
    obj.opt("activityState", step.activity.as_ref()).opt("lastActivityAt", step.last_activity);
    if let Some(call) = step.current_call() {
        obj.set("currentTool", crate::text::prefix(&call.tool, 128)).set("currentToolStartedAt", call.started_at);
    }
    obj.set("turnCount", step.turn_count).set("toolCount", step.tool_count);
    obj.opt("startedAt", step.started_at).opt("endedAt", step.ended_at);
    obj.opt("error", step.error.as_deref().map(|e| crate::text::prefix(e, 1024)));
    obj.flag("timedOut", step.timed_out).flag("stopped", step.stopped);
    obj
}

/// The way from the root to a nested run.
fn way(own: &NestedSelf) -> Vec<PathEntry> {
    if !own.path.is_empty() {
        return own.path.clone();
    }
    vec![PathEntry { run_id: own.parent_run_id.clone(), step_index: own.parent_step_index, agent: None }]
}

fn path(way: &[PathEntry]) -> Json {
    let entries = way.iter().map(|entry| {
        let mut obj = Obj::new();
        obj.set("runId", &entry.run_id).opt("stepIndex", entry.step_index).opt("agent", entry.agent.as_ref());
        obj
    });
    entries.collect()
}

/// What a child that may start agents of its own finds in its environment, so that they know where they stand
/// (run-directory 1.7).
#[must_use]
pub fn variables(
    route: &Route,
    own: Option<&NestedSelf>,
    run: &str,
    flat: usize,
    agent: &str,
) -> Vec<(&'static str, String)> {
    let mut way = own.map(way).unwrap_or_default();
    way.push(PathEntry { run_id: run.to_owned(), step_index: Some(flat as u64), agent: Some(agent.to_owned()) });
    // A list of texts and numbers has no way to fail.
    let path = serde_json::to_string(&path(&way)).unwrap_or_default();
    vec![
        ("PI_SUBAGENT_PARENT_EVENT_SINK", route.event_sink.clone()),
        ("PI_SUBAGENT_PARENT_CONTROL_INBOX", route.control_inbox.clone()),
        ("PI_SUBAGENT_PARENT_ROOT_RUN_ID", route.root_run_id.clone()),
        ("PI_SUBAGENT_PARENT_CAPABILITY_TOKEN", route.capability_token.clone()),
        ("PI_SUBAGENT_PARENT_RUN_ID", run.to_owned()),
        ("PI_SUBAGENT_PARENT_CHILD_INDEX", flat.to_string()),
        ("PI_SUBAGENT_PARENT_DEPTH", own.map_or(1, |own| own.depth + 1).to_string()),
        ("PI_SUBAGENT_PARENT_PATH", path),
    ]
}

/// A run below another one that has not ended, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descendant {
    /// Its id.
    pub id: String,
    /// Its directory, where the route's own root has it.
    pub dir: PathBuf,
}

/// The runs below `run` that have not ended. What says that it lies anywhere else than in the root's folder for nested
/// runs is passed over.
///
/// # Errors
/// When the folder of events cannot be read.
pub fn descendants(route: &Route, root: &Path, run: &str) -> io::Result<Vec<Descendant>> {
    let mut known: BTreeMap<String, Known> = BTreeMap::new();
    let registry = Path::new(&route.event_sink).with_file_name("registry.json");
    if let Some(registry) = read(&registry, REGISTRY).filter(|r| Look(r).str("rootRunId") == Some(&route.root_run_id)) {
        for child in Look(&registry).objs("children") {
            learn(&child, &mut known, 0);
        }
    }
    let mut names: Vec<_> = std::fs::read_dir(&route.event_sink)?
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".json") && !name.starts_with('.'))
        .collect();
    names.sort_unstable();
    for name in names.iter().skip(names.len().saturating_sub(EVENTS)) {
        let Some(event) = read(&Path::new(&route.event_sink).join(name), MOST as u64) else { continue };
        let look = Look(&event);
        let ours = look.str("rootRunId") == Some(&route.root_run_id)
            && look.str("capabilityToken") == Some(&route.capability_token);
        if let (true, Some(child)) = (ours, look.obj("child")) {
            learn(&child, &mut known, 0);
        }
    }
    let place = root.join(RUNS).join(&route.root_run_id);
    let live = known.into_iter().filter(|(id, k)| k.live && id != run && k.below.iter().any(|above| above == run));
    Ok(live.map(|(id, _)| Descendant { dir: place.join(&id), id }).filter(|d| d.dir.is_dir()).collect())
}

/// In which steps of a run those below it were started, as they told it to whoever listens on its routes: by their ids.
/// Only names are taken from there, of runs that are looked for elsewhere.
#[must_use]
pub fn steps_of(root: &Path, run: &str) -> BTreeMap<String, StepId> {
    let mut steps = BTreeMap::new();
    let routes = std::fs::read_dir(root.join(ROUTES)).into_iter().flatten().flatten().filter(|entry| {
        let name = entry.file_name();
        name.to_str().and_then(|name| name.strip_prefix(run)).is_some_and(|rest| rest.starts_with('-'))
    });
    for route in routes.take(ROUTES_MOST) {
        let events = std::fs::read_dir(route.path().join("events")).into_iter().flatten().flatten();
        let mut names: Vec<PathBuf> = events.map(|entry| entry.path()).collect();
        names.sort_unstable();
        names.drain(..names.len().saturating_sub(NEWEST));
        for event in names.iter().filter_map(|path| read(path, MOST as u64)) {
            if let Some(child) = Look(&event).obj("child") {
                place(&child, run, &mut steps, 0);
            }
        }
        if let Some(registry) = read(&route.path().join("registry.json"), REGISTRY) {
            Look(&registry).objs("children").for_each(|child| place(&child, run, &mut steps, 0));
        }
    }
    steps
}

/// Takes in where a nested run, and those below it, stand.
fn place(child: &Look<'_>, run: &str, steps: &mut BTreeMap<String, StepId>, depth: u64) {
    if depth > DEEPEST || steps.len() >= EVENTS {
        return;
    }
    let own = child.step("parentStepIndex").filter(|_| child.str("parentRunId") == Some(run));
    let way = || child.objs("path").find(|entry| entry.str("runId") == Some(run)).and_then(|e| e.step("stepIndex"));
    if let (Some(id), Some(step)) = (child.text("id").filter(|id| is_safe(id)), own.or_else(way)) {
        steps.insert(id, step);
    }
    for below in child.objs("children").chain(child.objs("steps").flat_map(|s| children_of(&s))) {
        place(&below, run, steps, depth + 1);
    }
}

/// What is known of a nested run.
#[derive(Debug)]
struct Known {
    live: bool,
    updated: f64,
    /// The runs above it.
    below: Vec<String>,
}

/// Takes a summary in: a newer one wins, and an end is an end.
fn learn(look: &Look<'_>, known: &mut BTreeMap<String, Known>, depth: u64) {
    if depth > DEEPEST {
        return;
    }
    for child in look.objs("children").chain(look.objs("steps").flat_map(|s| children_of(&s))) {
        learn(&child, known, depth + 1);
    }
    let Some(id) = look.text("id").filter(|id| is_safe(id)) else { return };
    let live = !matches!(look.str("state"), Some("complete" | "failed" | "paused" | "stopped" | "rejected"));
    let updated = look.num("lastUpdate").unwrap_or(0.0);
    let mut below: Vec<String> = look.objs("path").filter_map(|entry| entry.text("runId")).collect();
    below.extend(look.text("parentRunId"));
    match known.get_mut(&id) {
        Some(before) if updated < before.updated || (!before.live && live) => {}
        Some(before) => *before = Known { live, updated, below },
        None => drop(known.insert(id, Known { live, updated, below })),
    }
}

fn children_of<'a>(step: &Look<'a>) -> Vec<Look<'a>> {
    step.objs("children").collect()
}

/// An id that can be the name of a folder.
fn is_safe(id: &str) -> bool {
    !id.is_empty() && id.len() <= 128 && !id.contains(['/', '\\']) && !id.contains("..") && id != "."
}

/// Tells a nested run to end: `kind` is `interrupt`, `stop` or `timeout`, and its source says that a run above was told so
/// (run-directory 3.2).
///
/// # Errors
/// What the file system says.
pub fn pass_down(to: &Descendant, kind: &str, at: Timestamp) -> io::Result<()> {
    let mut request = Obj::new();
    request.set("type", kind).set("ts", at).set("source", format!("ancestor-{kind}"));
    let control = to.dir.join("control");
    // A run that was removed is not made again.
    super::control::plain_folder(&to.dir)?;
    super::control::make(&control)?;
    replace(&control.join(format!("{kind}.json")), &request.pretty())
}

/// The record that a nested run could not be told so (run-directory 2.5).
#[must_use]
pub fn failed(run: &str, kind: &str, target: Option<&str>, message: &str, at: Timestamp) -> Vec<u8> {
    let mut obj = Obj::new();
    obj.set("type", format!("subagent.nested.{kind}_failed")).set("ts", at).set("runId", run);
    obj.opt("targetRunId", target).set("message", message);
    obj.line()
}

fn read(path: &Path, most: u64) -> Option<Map<String, Value>> {
    let file = open::regular(path).ok()?;
    match serde_json::from_slice(&open::read_at_most(&file, most).ok()?).ok()? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RunId, RunPhase};

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(1_764_000_000_000 + ms)
    }

    fn route(root: &Path) -> Route {
        let base = root.join(ROUTES).join("top-secret");
        std::fs::create_dir_all(base.join("events")).unwrap();
        std::fs::create_dir_all(base.join("controls")).unwrap();
        std::fs::write(base.join("route.json"), r#"{"rootRunId":"top","capabilityToken":"secret","createdAt":1}"#)
            .unwrap();
        Route {
            root_run_id: "top".into(),
            event_sink: base.join("events").display().to_string(),
            control_inbox: base.join("controls").display().to_string(),
            capability_token: "secret".into(),
        }
    }

    #[test]
    fn a_route_has_to_be_of_the_same_root_and_token() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        let good = route(&root);
        let dir = root.join("async-subagent-runs/r");
        assert_eq!(root_of(&good, &dir), Ok(root.clone()));
        let away = folder.path().join("elsewhere");
        for (bad, dir, why) in [
            (Route { capability_token: "guess".into(), ..good.clone() }, &dir, "another route"),
            (Route { root_run_id: "else".into(), ..good.clone() }, &dir, "another route"),
            (Route { control_inbox: "/tmp/controls".into(), ..good.clone() }, &dir, "side by side"),
            (good.clone(), &away, "another root"),
            (Route { event_sink: "/x/e".into(), control_inbox: "/x/c".into(), ..good.clone() }, &dir, ROUTES),
        ] {
            let error = root_of(&bad, dir).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    fn state(id: &str, phase: RunPhase) -> RunState {
        let step = StepState { id: StepId(0), agent: "scout".into(), ..StepState::default() };
        RunState { id: RunId(id.into()), phase, steps: vec![step], last_update: Some(at(5)), ..RunState::default() }
    }

    #[test]
    fn who_is_below_and_lives_is_found_by_what_they_told() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_path_buf();
        let route = route(&root);
        let own = |parent: &str| NestedSelf { parent_run_id: parent.into(), depth: 1, ..NestedSelf::default() };
        let place = root.join(RUNS).join("top");
        for id in ["live", "over", "other", "deep", "gone"] {
            std::fs::create_dir_all(place.join(id)).unwrap();
        }
        std::fs::remove_dir(place.join("gone")).unwrap();
        let say = |id: &str, parent: &str, phase, ms| {
            let bytes = event(&route, &own(parent), &place.join(id), &state(id, phase), "updated", at(ms));
            tell(&route, &bytes, at(ms)).unwrap();
        };
        say("live", "r", RunPhase::Running, 1);
        say("over", "r", RunPhase::Running, 2);
        say("over", "r", RunPhase::Complete, 3);
        say("over", "r", RunPhase::Running, 4);
        say("other", "s", RunPhase::Running, 5);
        say("gone", "r", RunPhase::Running, 6);
        // One that lies two below says so by its way.
        let deep = NestedSelf {
            path: vec![
                PathEntry { run_id: "r".into(), ..PathEntry::default() },
                PathEntry { run_id: "live".into(), ..PathEntry::default() },
            ],
            ..own("live")
        };
        let bytes = event(&route, &deep, &place.join("deep"), &state("deep", RunPhase::Running), "updated", at(7));
        tell(&route, &bytes, at(7)).unwrap();
        // What does not know the token says nothing, nor does what is no event.
        let forged = Route { capability_token: "guess".into(), ..route.clone() };
        let bytes = event(&forged, &own("r"), &place, &state("other", RunPhase::Running), "updated", at(8));
        tell(&route, &bytes, at(8)).unwrap();
        std::fs::write(Path::new(&route.event_sink).join("9.json"), "{ torn").unwrap();
        std::fs::write(Path::new(&route.event_sink).join("9-evil.json"), bytes_of_evil(&route)).unwrap();
        let found = descendants(&route, &root, "r").unwrap();
        assert_eq!(found.iter().map(|d| d.id.as_str()).collect::<Vec<_>>(), ["deep", "live"]);
        pass_down(&found[1], "stop", at(9)).unwrap();
        let told: Value =
            serde_json::from_slice(&std::fs::read(place.join("live/control/stop.json")).unwrap()).unwrap();
        assert_eq!((&told["type"], &told["source"]), (&"stop".into(), &"ancestor-stop".into()));
    }

    /// One whose id leads out of the folder.
    fn bytes_of_evil(route: &Route) -> Vec<u8> {
        serde_json::to_vec(&serde_json::json!({
            "type": "subagent.nested.updated", "ts": 1, "rootRunId": route.root_run_id, "parentRunId": "r",
            "capabilityToken": route.capability_token,
            "child": { "id": "../../async-subagent-runs", "parentRunId": "r", "state": "running", "path": [] },
        }))
        .unwrap()
    }

    #[test]
    fn an_event_that_would_be_too_large_leaves_the_steps_out() {
        let folder = tempfile::tempdir().unwrap();
        let route = route(folder.path());
        let mut large = state("r", RunPhase::Running);
        let step = StepState { session_file: Some("x".repeat(MOST)), ..large.steps[0].clone() };
        let read = |state: &RunState| -> Value {
            let own = NestedSelf { parent_run_id: "p".into(), depth: 9, ..NestedSelf::default() };
            let bytes = event(&route, &own, Path::new("/d"), state, "completed", at(1));
            assert!(bytes.len() <= MOST && !bytes.contains(&b'\n'));
            serde_json::from_slice(&bytes).unwrap()
        };
        assert_eq!(read(&large)["child"]["steps"][0]["agent"], "scout");
        large.steps[0] = step;
        let event = read(&large);
        assert_eq!((event["child"].get("steps"), &event["type"]), (None, &"subagent.nested.completed".into()));
        assert_eq!((&event["child"]["depth"], &event["child"]["path"][0]["runId"]), (&3.into(), &"p".into()));
    }

    #[test]
    fn a_child_finds_the_way_to_those_above_it() {
        let folder = tempfile::tempdir().unwrap();
        let route = route(folder.path());
        let own = NestedSelf { parent_run_id: "top".into(), parent_step_index: Some(2), depth: 1, path: Vec::new() };
        let get = |own: Option<&NestedSelf>, name: &str| {
            let all = variables(&route, own, "r", 3, "scout");
            all.into_iter().find(|(known, _)| known.ends_with(name)).unwrap().1
        };
        assert_eq!((get(None, "_DEPTH"), get(Some(&own), "_DEPTH")), ("1".into(), "2".into()));
        let path: Value = serde_json::from_str(&get(Some(&own), "_PATH")).unwrap();
        let expected = serde_json::json!([
            { "runId": "top", "stepIndex": 2 }, { "runId": "r", "stepIndex": 3, "agent": "scout" },
        ]);
        assert_eq!(path, expected);
    }
}
