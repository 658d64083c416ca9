//! The file that a step's final text goes to (runner-behaviour 9, "outputPath").

use std::path::PathBuf;
use std::time::SystemTime;

use crate::run::{Judgement, StepPhase};

/// The most bytes of an output that are taken into the result.
const MOST: u64 = 64 * 1024 * 1024;

/// The file, and how it was before the step began.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    before: Option<(SystemTime, u64)>,
    told: Told,
}

/// What others are told of the file (runner-behaviour 9, "outputMode").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Told {
    /// Nothing: they get the text.
    #[default]
    Nothing,
    /// Where it is, behind the text.
    Line,
    /// Only where it is.
    LineOnly,
}

impl OutputFile {
    /// Looks at the file before the step begins.
    #[must_use]
    pub fn watch(path: PathBuf, told: Told) -> Self {
        let before = stamp(&path);
        Self { path, before, told }
    }

    /// After a success: what the agent wrote to the file itself is the output; otherwise the text is written there.
    /// A failure to write is noted in the text and changes nothing else.
    #[must_use]
    pub fn settle(&self, mut judgement: Judgement) -> Judgement {
        if judgement.outcome.phase != StepPhase::Complete {
            return judgement;
        }
        let after = stamp(&self.path);
        if after.is_some() && after != self.before {
            match read(&self.path) {
                Ok(text) => judgement.text = self.tell(text),
                Err(error) => {
                    let path = self.path.display();
                    judgement.text.push_str(&format!("\n\n(the output in {path} could not be read: {error})"));
                }
            }
            return judgement;
        }
        let written = self
            .path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&self.path, &judgement.text));
        match written {
            Ok(()) => judgement.text = self.tell(judgement.text),
            Err(error) => {
                let path = self.path.display();
                judgement.text.push_str(&format!("\n\n(the output could not be saved to {path}: {error})"));
            }
        }
        judgement
    }

    /// The text as others get it.
    fn tell(&self, text: String) -> String {
        let line =
            || format!("[output: {}, {} bytes, {} lines]", self.path.display(), text.len(), text.lines().count());
        match self.told {
            Told::Nothing => text,
            Told::Line => format!("{}\n\n{}", text.trim_end(), line()),
            Told::LineOnly => line(),
        }
    }
}

/// What the agent wrote: text in a regular file, and not without end.
fn read(path: &std::path::Path) -> std::io::Result<String> {
    let other = std::io::Error::other::<String>;
    let meta = std::fs::metadata(path)?;
    if !meta.is_file() {
        return Err(other("it is not a regular file".to_owned()));
    }
    if meta.len() > MOST {
        return Err(other(format!("it has more than {} MiB", MOST / (1024 * 1024))));
    }
    std::fs::read_to_string(path)
}

fn stamp(path: &std::path::Path) -> Option<(SystemTime, u64)> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(text: &str, phase: StepPhase) -> Judgement {
        let mut judgement = Judgement { text: text.into(), ..Judgement::default() };
        judgement.outcome.phase = phase;
        judgement
    }

    #[test]
    fn the_text_is_saved_only_after_a_success_and_never_over_what_the_agent_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/out.md");
        let file = OutputFile::watch(path.clone(), Told::Nothing);
        assert_eq!(file.settle(done("no", StepPhase::Failed)).text, "no");
        assert!(!path.exists());
        assert_eq!(file.settle(done("yes", StepPhase::Complete)).text, "yes");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "yes");
        let file = OutputFile::watch(path.clone(), Told::Nothing);
        std::fs::write(&path, "the agent's own").unwrap();
        assert_eq!(file.settle(done("said", StepPhase::Complete)).text, "the agent's own");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "the agent's own");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_noted() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let file = OutputFile::watch(folder.path().join("file/below"), Told::LineOnly);
        let settled = file.settle(done("text", StepPhase::Complete));
        assert!(settled.text.starts_with("text\n\n(the output could not be saved"), "{}", settled.text);
        assert_eq!(settled.outcome.phase, StepPhase::Complete);
    }

    #[test]
    fn others_are_told_where_the_output_is_as_they_want_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.md");
        let line = format!("[output: {}, 8 bytes, 2 lines]", path.display());
        for (told, text) in [
            (Told::Nothing, "one\ntwo\n".to_owned()),
            (Told::Line, format!("one\ntwo\n\n{line}")),
            (Told::LineOnly, line),
        ] {
            let file = OutputFile::watch(path.clone(), told);
            assert_eq!(file.settle(done("one\ntwo\n", StepPhase::Complete)).text, text);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
            std::fs::remove_file(&path).unwrap();
        }
    }
}
