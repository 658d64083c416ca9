//! The dialog that starts a run: which agent, run by what, in which folder, to do what.

use std::path::{Path, PathBuf};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_textarea::TextArea;

use super::AgentChoice;
use crate::deck::model::Draft;
use crate::run::NamedRunner;
use crate::text::{SafeText, typed};

/// What a person wants started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// The agent's name; `None` for what the runner does by itself.
    pub agent: Option<String>,
    /// The word of what runs it; `None` for what the agent's definition or the configuration says.
    pub runner: Option<String>,
    /// Where it works.
    pub folder: PathBuf,
    /// What it is to do.
    pub task: String,
}

/// The fields, in the order of the dialog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Field {
    /// Which agent.
    #[default]
    Agent,
    /// What runs it.
    Runner,
    /// Which folder.
    Folder,
    /// What to do.
    Task,
}

/// The dialog.
#[derive(Clone, Debug)]
pub struct StartDialog {
    /// The field that is typed into.
    pub field: Field,
    /// What was typed of the agent's name.
    pub agent: String,
    /// What was typed of the runner's word.
    pub runner: String,
    /// The folder as it was typed.
    pub folder: String,
    /// The task.
    pub task: TextArea<'static>,
    /// The agents that are found from the folder.
    pub agents: Vec<AgentChoice>,
    /// What is wrong with what was asked.
    pub wrong: Option<SafeText>,
}

/// What the dialog wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Nothing.
    Nothing,
    /// The agents of another folder.
    Agents(PathBuf),
    /// Start this.
    Start(Wish),
    /// The dialog goes.
    Close,
}

impl StartDialog {
    /// A dialog for this folder.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        let Draft { text: task, .. } = Draft::default();
        Self {
            field: Field::Agent,
            agent: String::new(),
            runner: String::new(),
            folder: folder.display().to_string(),
            task,
            agents: Vec::new(),
            wrong: None,
        }
    }

    /// The agents that have what was typed in their name, those that begin with it first.
    #[must_use]
    pub fn choices(&self) -> Vec<&AgentChoice> {
        let typed = self.agent.to_lowercase();
        let mut found: Vec<&AgentChoice> =
            self.agents.iter().filter(|agent| agent.name.to_lowercase().contains(&typed)).collect();
        found.sort_by_key(|agent| !agent.name.to_lowercase().starts_with(&typed));
        found
    }

    /// The runners that have what was typed in their word, those that begin with it first.
    #[must_use]
    pub fn runners(&self) -> Vec<&'static str> {
        let typed = self.runner.to_lowercase();
        let mut found: Vec<&str> = NamedRunner::WORDS.iter().copied().filter(|word| word.contains(&typed)).collect();
        found.sort_by_key(|word| !word.starts_with(&typed));
        found
    }

    /// What runs the agent when no runner is typed, as far as that is known.
    #[must_use]
    pub fn usual_runner(&self) -> Option<&str> {
        self.agents.iter().find(|agent| agent.name == self.agent).map(|agent| agent.runner.as_str())
    }

    /// Takes a key; `home` is what a tilde means.
    pub fn on_key(&mut self, key: KeyEvent, home: Option<&Path>) -> Ask {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        self.wrong = None;
        match key.code {
            KeyCode::Esc => return Ask::Close,
            KeyCode::Char('c') if ctrl => return Ask::Close,
            KeyCode::Char('s') if ctrl => return self.finish(home),
            KeyCode::Enter if ctrl => return self.finish(home),
            KeyCode::Tab | KeyCode::Down if self.field != Field::Task || key.code == KeyCode::Tab => {
                return self.go(true, home);
            }
            KeyCode::BackTab => return self.go(false, home),
            KeyCode::Up if matches!(self.field, Field::Runner | Field::Folder) => return self.go(false, home),
            KeyCode::Enter if self.field != Field::Task => return self.go(true, home),
            _ => {}
        }
        let line = match self.field {
            Field::Agent => &mut self.agent,
            Field::Runner => &mut self.runner,
            Field::Folder => &mut self.folder,
            Field::Task => {
                self.task.input(key);
                return Ask::Nothing;
            }
        };
        match key.code {
            KeyCode::Char('u') if ctrl => line.clear(),
            KeyCode::Char(c) if !ctrl => line.push(c),
            KeyCode::Backspace => drop(line.pop()),
            _ => {}
        }
        Ask::Nothing
    }

    /// Takes a paste; it is text and never a key.
    pub fn paste(&mut self, text: &str) {
        match self.field {
            Field::Agent => self.agent.push_str(SafeText::line(text).as_str()),
            Field::Runner => self.runner.push_str(SafeText::line(text.trim()).as_str()),
            Field::Folder => self.folder.push_str(SafeText::line(text.trim()).as_str()),
            Field::Task => {
                self.task.insert_str(typed(text));
            }
        }
    }

    /// To the next field, or to the one before. What was only begun is completed; another folder may have other agents.
    fn go(&mut self, on: bool, home: Option<&Path>) -> Ask {
        let left = self.field;
        if on {
            self.complete();
        }
        self.field = match (left, on) {
            (Field::Agent, true) | (Field::Folder, false) => Field::Runner,
            (Field::Runner, true) | (Field::Task, false) => Field::Folder,
            (Field::Folder, true) | (Field::Agent, false) => Field::Task,
            (Field::Task, true) | (Field::Runner, false) => Field::Agent,
        };
        if left == Field::Folder { Ask::Agents(self.folder(home)) } else { Ask::Nothing }
    }

    /// Completes what was begun in the field that is typed into.
    fn complete(&mut self) {
        match (self.field, self.completed()) {
            (Field::Runner, Some(word)) => self.runner = word,
            (Field::Agent, Some(name)) => self.agent = name,
            _ => {}
        }
    }

    /// What completes what was begun, where anything does. No runner is what the agent says, and no agent is what a runner
    /// does by itself.
    fn completed(&self) -> Option<String> {
        match self.field {
            Field::Runner => {
                let begun = !self.runner.is_empty() && !NamedRunner::WORDS.contains(&self.runner.as_str());
                self.runners().first().filter(|_| begun).map(|word| (*word).to_owned())
            }
            Field::Agent => {
                let by_itself = self.agent.is_empty() && !self.runner.is_empty();
                let begun = !by_itself && self.agents.iter().all(|agent| agent.name != self.agent);
                self.choices().first().filter(|_| begun).map(|agent| agent.name.clone())
            }
            Field::Folder | Field::Task => None,
        }
    }

    /// Whether the first of what is offered is taken when the field is left.
    #[must_use]
    pub fn completes(&self) -> bool {
        self.completed().is_some()
    }

    fn folder(&self, home: Option<&Path>) -> PathBuf {
        let typed = self.folder.trim();
        match (typed.strip_prefix('~'), home) {
            (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
            _ => PathBuf::from(typed),
        }
    }

    fn finish(&mut self, home: Option<&Path>) -> Ask {
        self.complete();
        let (agent, runner) = (self.agent.trim().to_owned(), self.runner.trim().to_owned());
        let task = self.task.lines().join("\n").trim().to_owned();
        let folder = self.folder(home);
        let (wrong, field) = if agent.is_empty() && runner.is_empty() {
            ("which agent? None is needed when a runner is named".to_owned(), Field::Agent)
        } else if !runner.is_empty() && NamedRunner::of_word(&runner).is_none() {
            (format!("there is no runner `{runner}`"), Field::Runner)
        } else if !folder.is_dir() {
            (format!("there is no folder {}", folder.display()), Field::Folder)
        } else if task.is_empty() {
            ("what is it to do?".to_owned(), Field::Task)
        } else {
            let named = |word: String| Some(word).filter(|word| !word.is_empty());
            return Ask::Start(Wish { agent: named(agent), runner: named(runner), folder, task });
        };
        self.wrong = Some(SafeText::line(&wrong));
        self.field = field;
        Ask::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    fn type_in(dialog: &mut StartDialog, text: &str) {
        for c in text.chars() {
            dialog.on_key(key(KeyCode::Char(c)), None);
        }
    }

    fn dialog(folder: &Path) -> StartDialog {
        let agent = |name: &str| AgentChoice { name: name.into(), runner: "pi".into(), ..AgentChoice::default() };
        StartDialog { agents: vec![agent("my-worker"), agent("worker"), agent("scout")], ..StartDialog::new(folder) }
    }

    #[test]
    fn an_agent_a_folder_and_a_task_make_a_run() {
        let temp = tempfile::tempdir().unwrap();
        let mut dialog = dialog(temp.path());
        type_in(&mut dialog, "wo");
        assert_eq!(dialog.choices().iter().map(|a| a.name.as_str()).collect::<Vec<_>>(), ["worker", "my-worker"]);
        assert_eq!(dialog.on_key(key(KeyCode::Enter), None), Ask::Nothing);
        assert_eq!((dialog.agent.as_str(), dialog.field), ("worker", Field::Runner));
        assert_eq!(dialog.usual_runner(), Some("pi"));
        type_in(&mut dialog, "co");
        assert_eq!(dialog.runners(), ["codex", "copilot", "opencode"]);
        assert_eq!(dialog.on_key(key(KeyCode::Enter), None), Ask::Nothing);
        assert_eq!((dialog.runner.as_str(), dialog.field), ("codex", Field::Folder));
        assert_eq!(dialog.on_key(key(KeyCode::Tab), None), Ask::Agents(temp.path().to_owned()));
        type_in(&mut dialog, "Fix it");
        dialog.on_key(key(KeyCode::Enter), None);
        dialog.paste("really\u{1b}[31m\r\n");
        let asked = dialog.on_key(KeyEvent::new(KeyCode::Char('s'), KeyModifiers::CONTROL), None);
        let folder = temp.path().to_owned();
        assert_eq!(
            asked,
            Ask::Start(Wish {
                agent: Some("worker".into()),
                runner: Some("codex".into()),
                folder,
                task: "Fix it\nreally[31m".into()
            })
        );
        // A runner needs no agent, and an agent needs no runner.
        for (agent, runner) in [("", "claude"), ("scout", "")] {
            (dialog.agent, dialog.runner, dialog.field) = (agent.into(), runner.into(), Field::Agent);
            let Ask::Start(wish) = dialog.on_key(KeyEvent::new(KeyCode::Char('s'), KeyModifiers::CONTROL), None) else {
                panic!("{:?}", dialog.wrong)
            };
            assert_eq!((wish.agent.as_deref().unwrap_or(""), wish.runner.as_deref().unwrap_or("")), (agent, runner));
        }
    }

    #[test]
    fn what_is_missing_is_asked_for() {
        let temp = tempfile::tempdir().unwrap();
        let send = KeyEvent::new(KeyCode::Char('s'), KeyModifiers::CONTROL);
        let mut dialog = StartDialog::new(temp.path());
        let wrong = |dialog: &mut StartDialog| {
            assert_eq!(dialog.on_key(send, Some(temp.path())), Ask::Nothing);
            (dialog.wrong.clone().unwrap().to_string(), dialog.field)
        };
        assert_eq!(wrong(&mut dialog), ("which agent? None is needed when a runner is named".into(), Field::Agent));
        type_in(&mut dialog, "anybody");
        (dialog.runner, dialog.field) = ("word".into(), Field::Task);
        assert_eq!(wrong(&mut dialog), ("there is no runner `word`".into(), Field::Runner));
        dialog.runner.clear();
        dialog.folder = "~/none".into();
        let (text, field) = wrong(&mut dialog);
        assert!(text.starts_with("there is no folder") && text.ends_with("none"), "{text}");
        assert_eq!(field, Field::Folder);
        dialog.folder = "~".into();
        assert_eq!(wrong(&mut dialog), ("what is it to do?".into(), Field::Task));
    }
}
