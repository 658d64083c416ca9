//! Agent definitions: Markdown files with YAML front matter, found in the folders of a project and of the user.
//!
//! Looking never fails: what cannot be used is listed with what is wrong with it.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::SystemPromptMode;
use super::nearest::one_of;
use super::source::{open_regular, reason};
use crate::run::NamedRunner;

/// The most bytes that a definition may have.
const MAX_BYTES: u64 = 1024 * 1024;
/// The most definitions that are read from one folder.
const MAX_FILES: usize = 1000;
/// How deep folders in a folder are looked into.
const MAX_DEPTH: usize = 4;
/// Where definitions are, in a project and below the home folder; the first one wins.
const PLACES: [(&str, Flavor); 3] =
    [(".subdeck/agents", Flavor::Subdeck), (".claude/agents", Flavor::Claude), (".pi/agents", Flavor::Pi)];

/// Whose habits a definition follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// Ours: the prompt adds to the agent's own, context and skills are inherited.
    Subdeck,
    /// Claude Code's: the same, with its names of tools.
    Claude,
    /// The subagents extension of pi: the prompt takes the place of the agent's own, nothing is inherited.
    Pi,
}

/// One definition.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentDef {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// What runs it; `None` leaves it to whoever starts it.
    pub runner: Option<NamedRunner>,
    /// The tools it may use; `None` for all of the agent's own.
    pub tools: Option<Vec<String>>,
    /// The models to try, best first.
    pub models: Vec<String>,
    /// The thinking level.
    pub thinking: Option<String>,
    /// Extensions to load; `None` leaves the agent's own set.
    pub extensions: Option<Vec<String>>,
    /// The body.
    pub system_prompt: String,
    /// Whether the body adds to the agent's own system prompt.
    pub system_prompt_mode: SystemPromptMode,
    /// Whether the agent reads the project's context files.
    pub inherit_project_context: bool,
    /// Whether the agent uses the skills it finds.
    pub inherit_skills: bool,
    /// A file for the final text.
    pub output: Option<String>,
    /// The longest time a single tool call may take.
    pub tool_timeout: Option<Duration>,
    /// The file.
    pub path: PathBuf,
    /// Whose habits it follows.
    pub flavor: Flavor,
    /// What is odd about it.
    pub note: Option<String>,
    /// The nearer definition of the same name that it stands in for, because that cannot be used.
    pub instead_of: Option<Skipped>,
}

/// A file that is no usable definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The agent that it was to define, as far as that can be told: its `name`, else that of the file.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agents {
    /// The definitions in use, by name.
    pub found: BTreeMap<String, AgentDef>,
    /// Definitions that a nearer one of the same name hides.
    pub hidden: Vec<AgentDef>,
    /// What could not be used.
    pub skipped: Vec<Skipped>,
    /// Every folder that was looked for, nearest first.
    pub folders: Vec<PathBuf>,
}

/// The folders to look in, nearest first: upward from `cwd` to the root of its repository, then below `home`.
#[must_use]
pub fn folders(cwd: &Path, home: Option<&Path>) -> Vec<(PathBuf, Flavor)> {
    let mut all: Vec<(PathBuf, Flavor)> = Vec::new();
    for base in project_levels(cwd).into_iter().chain(home) {
        for (place, flavor) in PLACES {
            let folder = base.join(place);
            if all.iter().all(|(known, _)| *known != folder) {
                all.push((folder, flavor));
            }
        }
    }
    // Where pi itself keeps what a user has.
    all.extend(home.map(|home| (home.join(".pi/agent/agents"), Flavor::Pi)));
    all
}

/// A folder and those above it up to the root of its repository; only the folder itself where there is none.
#[must_use]
pub fn project_levels(cwd: &Path) -> Vec<&Path> {
    let up: Vec<&Path> = cwd.ancestors().collect();
    let levels = up.iter().position(|dir| dir.join(".git").exists()).map_or(1, |root| root + 1);
    up.into_iter().take(levels).collect()
}

/// Reads every definition in the folders.
#[must_use]
pub fn find(folders: &[(PathBuf, Flavor)]) -> Agents {
    let mut agents = Agents { folders: folders.iter().map(|(path, _)| path.clone()).collect(), ..Agents::default() };
    for (folder, flavor) in folders {
        let mut files = Vec::new();
        list(folder, 0, &mut files, &mut agents.skipped);
        files.sort();
        for path in files {
            match read(&path, *flavor) {
                Ok(agent) if agents.found.contains_key(&agent.name) => agents.hidden.push(agent),
                Ok(mut agent) => {
                    agent.instead_of = agents.skipped.iter().find(|skipped| skipped.name == agent.name).cloned();
                    agents.found.insert(agent.name.clone(), agent);
                }
                Err((name, reason)) => {
                    agents.skipped.push(Skipped { name: name.unwrap_or_else(|| stem(&path)), path, reason })
                }
            }
        }
    }
    agents
}

fn list(folder: &Path, depth: usize, files: &mut Vec<PathBuf>, skipped: &mut Vec<Skipped>) {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => {
            skipped.push(Skipped { name: String::new(), path: folder.to_owned(), reason: reason(&error) });
            return;
        }
    };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if name.starts_with('.') {
            continue;
        }
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            if depth < MAX_DEPTH {
                list(&path, depth + 1, files, skipped);
            }
        } else if name.ends_with(".md") && !name.ends_with(".chain.md") {
            if files.len() >= MAX_FILES {
                let reason = format!("more than {MAX_FILES} files in the folder");
                skipped.push(Skipped { name: stem(&path), path, reason });
                return;
            }
            files.push(path);
        }
    }
}

/// The name of a file without its end.
fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Reads a definition; of one that cannot be used its name, where it tells one, and what is wrong with it.
fn read(path: &Path, flavor: Flavor) -> Result<AgentDef, (Option<String>, String)> {
    let text = contents(path).map_err(|reason| (None, reason))?;
    parse(&text, path, flavor).map_err(|reason| (named(&text), reason))
}

fn contents(path: &Path) -> Result<String, String> {
    let file = open_regular(path).map_err(|e| reason(&e))?.map_err(|_| "not a regular file")?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|e| reason(&e))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("larger than {} KiB", MAX_BYTES / 1024));
    }
    Ok(String::from_utf8(bytes).ok().filter(|t| !t.contains('\0')).ok_or("not UTF-8 text")?)
}

/// The name in front matter that may be broken elsewhere.
fn named(text: &str) -> Option<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let matter = match split(text) {
        Ok((matter, _)) => matter,
        // It has no end.
        Err(_) => text.strip_prefix("---")?,
    };
    by_line(matter).get("name")?.as_str().map(str::to_owned).filter(|name| !name.is_empty())
}

/// Parses one definition.
///
/// # Errors
/// A sentence part that says what is wrong.
pub fn parse(text: &str, path: &Path, flavor: Flavor) -> Result<AgentDef, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (matter, body) = split(text)?;
    let mut note = None;
    let fields = match serde_saphyr::from_str::<Value>(matter) {
        Ok(Value::Object(fields)) => fields,
        Ok(Value::Null) => return Err("the front matter is empty".to_owned()),
        Ok(_) => return Err("the front matter is not a list of `key: value`".to_owned()),
        Err(error) => {
            // Descriptions with an unquoted colon are common and meant literally.
            let fields = by_line(matter);
            if !fields.contains_key("name") {
                let text = error.without_snippet().to_string();
                return Err(format!("the front matter is not YAML: {}", text.lines().next().unwrap_or_default()));
            }
            note = Some("the front matter is not YAML and was read line by line".to_owned());
            fields
        }
    };
    let text_of = |key: &str| match fields.get(key) {
        Some(Value::String(text)) => Some(text.trim().to_owned()).filter(|t| !t.is_empty()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let name = text_of("name").ok_or("the front matter has no `name`")?;
    if name.contains(|c: char| c.is_control() || c == '/') || name.chars().count() > 128 {
        return Err("the `name` is longer than 128 characters or holds a slash or a control character".to_owned());
    }
    let model = text_of("model").filter(|m| m != "inherit" && m != "default");
    let models = model.into_iter().chain(list_of(&fields, "fallbackModels")?.unwrap_or_default()).collect();
    let bare = flavor == Flavor::Pi && name != "delegate";
    let system_prompt_mode = match text_of("systemPromptMode").as_deref() {
        Some("append") => SystemPromptMode::Append,
        Some("replace") => SystemPromptMode::Replace,
        Some(other) => return Err(format!("`systemPromptMode` is `{other}`, not `append` or `replace`")),
        None if bare => SystemPromptMode::Replace,
        None => SystemPromptMode::Append,
    };
    let tools = list_of(&fields, "tools")?.filter(|t| !matches!(t.as_slice(), [one] if one == "*" || one == "all"));
    let runner = match fields.get("runner") {
        None | Some(Value::Null) => None,
        Some(value) => {
            let word = value.as_str().map(str::trim).unwrap_or_default();
            Some(NamedRunner::of_word(word).ok_or_else(|| {
                format!(
                    "`runner` is `{}`, not {}",
                    value.as_str().unwrap_or("no word"),
                    one_of(NamedRunner::WORDS.iter().copied())
                )
            })?)
        }
    };
    let tool_timeout = match fields.get("toolTimeoutMs") {
        None | Some(Value::Null) => None,
        Some(value) => {
            let ms = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
            let ms = ms.filter(|ms| (1..=2_147_483_647).contains(ms));
            Some(Duration::from_millis(ms.ok_or("`toolTimeoutMs` is not a number of milliseconds")?))
        }
    };
    Ok(AgentDef {
        name,
        description: text_of("description"),
        runner,
        tools,
        models,
        thinking: text_of("thinking"),
        extensions: list_of(&fields, "extensions")?,
        system_prompt: body.trim().to_owned(),
        system_prompt_mode,
        inherit_project_context: truth(&fields, "inheritProjectContext")?.unwrap_or(!bare),
        inherit_skills: truth(&fields, "inheritSkills")?.unwrap_or(flavor != Flavor::Pi),
        output: text_of("output").filter(|o| o != "false"),
        tool_timeout,
        path: path.to_owned(),
        flavor,
        note,
        instead_of: None,
    })
}

/// The front matter and the body.
fn split(text: &str) -> Result<(&str, &str), String> {
    let missing = "there is no front matter between `---` lines at the top";
    let first = text.lines().next().filter(|l| l.trim_end() == "---").ok_or(missing)?;
    let rest = text.get(first.len()..).unwrap_or_default().trim_start_matches(['\r', '\n']);
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Ok((rest.get(..at).unwrap_or_default(), rest.get(at + line.len()..).unwrap_or_default()));
        }
        at += line.len();
    }
    Err("the front matter is not closed by a `---` line".to_owned())
}

fn by_line(matter: &str) -> serde_json::Map<String, Value> {
    let keys = matter.lines().filter(|line| !line.starts_with([' ', '\t', '#', '-']));
    let pairs = keys.filter_map(|line| line.split_once(':'));
    pairs
        .map(|(key, value)| {
            let value = value.trim();
            let bare = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value);
            (key.trim().to_owned(), Value::String(bare.to_owned()))
        })
        .collect()
}

/// A list, or a text with commas.
fn list_of(fields: &serde_json::Map<String, Value>, key: &str) -> Result<Option<Vec<String>>, String> {
    let bad = || format!("`{key}` is not a list of texts");
    match fields.get(key) {
        None | Some(Value::Null | Value::Bool(false)) => Ok(None),
        Some(Value::String(text)) => {
            let text = text.trim();
            // What `by_line` leaves of a list in brackets.
            let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
            let words = inner.unwrap_or(text).split(',').map(|t| t.trim().trim_matches(['"', '\'']).to_owned());
            let words: Vec<String> = words.filter(|t| !t.is_empty()).collect();
            Ok(Some(words).filter(|w| !w.is_empty() || inner.is_some()))
        }
        Some(Value::Array(values)) => {
            values.iter().map(|v| v.as_str().map(str::to_owned).ok_or_else(bad)).collect::<Result<_, _>>().map(Some)
        }
        Some(_) => Err(bad()),
    }
}

fn truth(fields: &serde_json::Map<String, Value>, key: &str) -> Result<Option<bool>, String> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(truth)) => Ok(Some(*truth)),
        Some(Value::String(word)) if word == "true" => Ok(Some(true)),
        Some(Value::String(word)) if word == "false" => Ok(Some(false)),
        Some(_) => Err(format!("`{key}` is not true or false")),
    }
}

/// The tools of Claude Code that stand for tools of pi; other names are left as they are.
#[must_use]
pub fn tools_for_claude(tools: &[String]) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    for tool in tools {
        let name = match tool.as_str() {
            "read" => "Read",
            "write" => "Write",
            "edit" => "Edit",
            "bash" => "Bash",
            "grep" => "Grep",
            "find" | "ls" => "Glob",
            other => other,
        };
        if known.iter().all(|k| k != name) {
            known.push(name.to_owned());
        }
    }
    known
}

/// The tools of pi that stand for tools of Claude Code, and those that stand for none.
#[must_use]
pub fn tools_for_pi(tools: &[String]) -> (Vec<String>, Vec<String>) {
    let mut known: Vec<String> = Vec::new();
    let mut unknown = Vec::new();
    for tool in tools {
        let name = match tool.as_str() {
            "Read" => "read",
            "Write" => "write",
            "Edit" | "MultiEdit" => "edit",
            "Bash" => "bash",
            "Grep" => "grep",
            "Glob" => "find",
            "LS" => "ls",
            own if own.starts_with(|c: char| c.is_ascii_lowercase()) && !own.starts_with("mcp__") => own,
            _ => {
                unknown.push(tool.clone());
                continue;
            }
        };
        if known.iter().all(|k| k != name) {
            known.push(name.to_owned());
        }
    }
    (known, unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn def(text: &str) -> Result<AgentDef, String> {
        parse(text, Path::new("a.md"), Flavor::Subdeck)
    }

    #[test]
    fn a_definition_is_read_in_every_way_people_write_it() {
        let agent = def(
            "\u{feff}---\r\nname: scout\r\ndescription: Finds things\r\ntools: read, grep\r\nmodel: fast\r\n\
             fallbackModels: [b, c]\r\nthinking: low\r\ninheritSkills: false\r\ntoolTimeoutMs: 5000\r\n---\r\n\r\nYou find.\r\n",
        )
        .unwrap();
        assert_eq!(agent.name, "scout");
        assert_eq!(agent.description.as_deref(), Some("Finds things"));
        assert_eq!(agent.tools, Some(vec!["read".to_owned(), "grep".to_owned()]));
        assert_eq!(agent.models, ["fast", "b", "c"]);
        assert_eq!(agent.thinking.as_deref(), Some("low"));
        assert_eq!(agent.system_prompt, "You find.");
        assert_eq!((agent.inherit_skills, agent.inherit_project_context), (false, true));
        assert_eq!(agent.tool_timeout, Some(Duration::from_secs(5)));
        assert_eq!(agent.note, None);
    }

    #[test]
    fn tools_are_a_list_or_a_text() {
        let tools = |line: &str| def(&format!("---\nname: a\n{line}\n---\n")).map(|a| a.tools);
        let two = Some(vec!["read".to_owned(), "bash".to_owned()]);
        for (line, expected) in [
            ("tools: read, bash", Ok(two.clone())),
            ("tools: [read, bash]", Ok(two.clone())),
            ("tools:\n  - read\n  - bash", Ok(two)),
            ("tools: []", Ok(Some(vec![]))),
            ("tools:", Ok(None)),
            ("tools: '*'", Ok(None)),
            ("other: 1", Ok(None)),
            ("tools: 5", Err("`tools` is not a list of texts".to_owned())),
            ("tools: [1]", Err("`tools` is not a list of texts".to_owned())),
        ] {
            assert_eq!(tools(line), expected, "{line}");
        }
    }

    #[test]
    fn the_habits_of_pi_differ() {
        let text = "---\nname: a\n---\nbody";
        let pi = parse(text, Path::new("a.md"), Flavor::Pi).unwrap();
        assert_eq!((pi.system_prompt_mode, pi.inherit_project_context), (SystemPromptMode::Replace, false));
        let ours = def(text).unwrap();
        assert_eq!((ours.system_prompt_mode, ours.inherit_project_context), (SystemPromptMode::Append, true));
    }

    #[test]
    fn an_unquoted_colon_is_meant_literally() {
        let agent = def("---\nname: a\ndescription: Use it when: always. user: hi\ntools: [read, ls]\n---\nb").unwrap();
        assert_eq!(agent.description.as_deref(), Some("Use it when: always. user: hi"));
        assert_eq!(agent.tools, Some(vec!["read".to_owned(), "ls".to_owned()]));
        assert!(agent.note.is_some());
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        for (text, reason) in [
            ("no front matter", "no front matter"),
            ("", "no front matter"),
            ("---\nname: a\nbody", "not closed"),
            ("---\n---\nbody", "empty"),
            ("---\n- a\n---\n", "not a list of `key: value`"),
            ("---\ndescription: d\n---\n", "no `name`"),
            ("---\nname: a/b\n---\n", "slash"),
            ("---\na: [\n---\n", "not YAML"),
            ("---\nname: a\ninheritSkills: maybe\n---\n", "`inheritSkills` is not true or false"),
            ("---\nname: a\nsystemPromptMode: mix\n---\n", "`mix`"),
            ("---\nname: a\ntoolTimeoutMs: soon\n---\n", "milliseconds"),
        ] {
            let error = def(text).unwrap_err();
            assert!(error.contains(reason), "{text:?}: {error}");
        }
    }

    #[test]
    fn the_nearest_definition_wins_and_bad_files_are_listed() {
        let temp = tempfile::tempdir().unwrap();
        let (repo, home) = (temp.path().join("repo"), temp.path().join("home"));
        let cwd = repo.join("deep/er");
        let put = |path: PathBuf, text: &[u8]| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        std::fs::create_dir_all(&cwd).unwrap();
        put(repo.join(".git/HEAD"), b"");
        put(temp.path().join(".subdeck/agents/outside.md"), b"---\nname: outside\n---\n");
        put(home.join(".pi/agents/a.md"), b"---\nname: a\n---\nhome");
        put(home.join(".pi/agent/agents/b.md"), b"---\nname: b\n---\nhome");
        put(repo.join(".claude/agents/sub/a.md"), b"---\nname: a\n---\nrepo");
        put(cwd.join(".pi/agents/a.md"), b"---\nname: a\n---\nnear");
        put(cwd.join(".pi/agents/bin.md"), b"---\nname: x\n---\n\xff\0");
        put(cwd.join(".pi/agents/big.md"), &vec![b'#'; 2 << 20]);
        put(cwd.join(".pi/agents/notes.txt"), b"no");
        let fifo = cwd.join(".pi/agents/pipe.md");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let agents = find(&folders(&cwd, Some(&home)));
        assert_eq!(agents.found.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(agents.found["a"].system_prompt, "near");
        assert_eq!(agents.hidden.iter().map(|a| a.system_prompt.as_str()).collect::<Vec<_>>(), ["repo", "home"]);
        assert_eq!(agents.found["b"].instead_of, None);
        let reasons: Vec<_> = agents.skipped.iter().map(|s| s.reason.as_str()).collect();
        assert_eq!(reasons, ["larger than 1024 KiB", "not UTF-8 text", "not a regular file"]);
    }

    #[test]
    fn one_that_stands_in_for_a_nearer_one_says_so() {
        let temp = tempfile::tempdir().unwrap();
        let put = |folder: &str, file: &str, text: &str| {
            std::fs::create_dir_all(temp.path().join(folder)).unwrap();
            std::fs::write(temp.path().join(folder).join(file), text).unwrap();
        };
        for (file, near) in [
            ("one.md", "---\nname: said\nrunner: nobody\n---\n"),
            ("two.md", "---\nname: \"open\"\nnot closed"),
            ("three.md", "no front matter"),
            ("four.md", "---\nname: near\n---\n"),
        ] {
            put("near", file, near);
        }
        for name in ["said", "open", "three", "near", "far"] {
            put("far", &format!("{name}.md"), &format!("---\nname: {name}\n---\n"));
        }
        let folders = ["near", "far"].map(|folder| (temp.path().join(folder), Flavor::Subdeck));
        let agents = find(&folders);
        let instead: Vec<_> = agents
            .found
            .values()
            .filter_map(|agent| Some((agent.name.as_str(), agent.instead_of.as_ref()?.path.file_name()?.to_str()?)))
            .collect();
        assert_eq!(instead, [("open", "two.md"), ("said", "one.md"), ("three", "three.md")]);
        assert_eq!(agents.hidden.len(), 1);
    }

    #[test]
    fn tools_of_another_program_get_our_names() {
        let tools: Vec<String> =
            ["Read", "Glob", "Bash(git:*)", "mcp__x", "MultiEdit", "Edit", "custom"].map(str::to_owned).into();
        let (known, unknown) = tools_for_pi(&tools);
        assert_eq!(known, ["read", "find", "edit", "custom"]);
        assert_eq!(unknown, ["Bash(git:*)", "mcp__x"]);
    }
}
