//! The dialog that starts a run: which agent, in which folder, to do what.

use std::path::{Path, PathBuf};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_textarea::TextArea;

use super::AgentChoice;
use crate::deck::model::Draft;
use crate::text::SafeText;

/// What a person wants started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// The agent's name.
    pub agent: String,
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
            KeyCode::Up if self.field == Field::Folder => return self.go(false, home),
            KeyCode::Enter if self.field != Field::Task => return self.go(true, home),
            _ => {}
        }
        let line = match self.field {
            Field::Agent => &mut self.agent,
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
            Field::Folder => self.folder.push_str(SafeText::line(text.trim()).as_str()),
            Field::Task => {
                let clean: String = text
                    .replace("\r\n", "\n")
                    .replace('\r', "\n")
                    .chars()
                    .filter(|c| matches!(c, '\n' | '\t') || !c.is_control())
                    .collect();
                self.task.insert_str(clean);
            }
        }
    }

    /// To the next field, or to the one before. An agent that was only begun is completed; another folder may have
    /// other agents.
    fn go(&mut self, on: bool, home: Option<&Path>) -> Ask {
        let left = self.field;
        if left == Field::Agent && on {
            self.complete();
        }
        self.field = match (left, on) {
            (Field::Agent, true) | (Field::Task, false) => Field::Folder,
            (Field::Folder, true) | (Field::Agent, false) => Field::Task,
            (Field::Task, true) | (Field::Folder, false) => Field::Agent,
        };
        if left == Field::Folder { Ask::Agents(self.folder(home)) } else { Ask::Nothing }
    }

    fn complete(&mut self) {
        if self.agents.iter().all(|agent| agent.name != self.agent)
            && let Some(name) = self.choices().first().map(|agent| agent.name.clone())
        {
            self.agent = name;
        }
    }

    fn folder(&self, home: Option<&Path>) -> PathBuf {
        let typed = self.folder.trim();
        match (typed.strip_prefix('~'), home) {
            (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
            _ => PathBuf::from(typed),
        }
    }

    fn finish(&mut self, home: Option<&Path>) -> Ask {
        if self.field == Field::Agent {
            self.complete();
        }
        let task = self.task.lines().join("\n").trim().to_owned();
        let folder = self.folder(home);
        let (wrong, field) = if self.agent.trim().is_empty() {
            ("which agent?".to_owned(), Field::Agent)
        } else if !folder.is_dir() {
            (format!("there is no folder {}", folder.display()), Field::Folder)
        } else if task.is_empty() {
            ("what is it to do?".to_owned(), Field::Task)
        } else {
            return Ask::Start(Wish { agent: self.agent.trim().to_owned(), folder, task });
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
        let agent = |name: &str| AgentChoice { name: name.into(), about: String::new() };
        StartDialog { agents: vec![agent("my-worker"), agent("worker"), agent("scout")], ..StartDialog::new(folder) }
    }

    #[test]
    fn an_agent_a_folder_and_a_task_make_a_run() {
        let temp = tempfile::tempdir().unwrap();
        let mut dialog = dialog(temp.path());
        type_in(&mut dialog, "wo");
        assert_eq!(dialog.choices().iter().map(|a| a.name.as_str()).collect::<Vec<_>>(), ["worker", "my-worker"]);
        assert_eq!(dialog.on_key(key(KeyCode::Enter), None), Ask::Nothing);
        assert_eq!((dialog.agent.as_str(), dialog.field), ("worker", Field::Folder));
        assert_eq!(dialog.on_key(key(KeyCode::Tab), None), Ask::Agents(temp.path().to_owned()));
        type_in(&mut dialog, "Fix it");
        dialog.on_key(key(KeyCode::Enter), None);
        dialog.paste("really\u{1b}[31m\r\n");
        let asked = dialog.on_key(KeyEvent::new(KeyCode::Char('s'), KeyModifiers::CONTROL), None);
        let folder = temp.path().to_owned();
        assert_eq!(asked, Ask::Start(Wish { agent: "worker".into(), folder, task: "Fix it\nreally[31m".into() }));
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
        assert_eq!(wrong(&mut dialog), ("which agent?".into(), Field::Agent));
        type_in(&mut dialog, "anybody");
        dialog.folder = "~/none".into();
        let (text, field) = wrong(&mut dialog);
        assert!(text.starts_with("there is no folder") && text.ends_with("none"), "{text}");
        assert_eq!(field, Field::Folder);
        dialog.folder = "~".into();
        assert_eq!(wrong(&mut dialog), ("what is it to do?".into(), Field::Task));
    }
}
