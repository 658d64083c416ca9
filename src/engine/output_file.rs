//! The file that a step's final text goes to (runner-behaviour 9, "outputPath").

use std::io::Write;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::run::{Judgement, StepPhase};
use crate::rundir::open;

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
    /// A failure is noted in the text and given back, and changes nothing else.
    #[must_use]
    pub fn settle(&self, mut judgement: Judgement) -> (Judgement, Option<String>) {
        if judgement.outcome.phase != StepPhase::Complete {
            return (judgement, None);
        }
        let after = stamp(&self.path);
        if after.is_some() && after != self.before {
            return match read(&self.path) {
                Ok(text) => {
                    judgement.text = self.tell(text);
                    (judgement, None)
                }
                Err(error) => {
                    failed(judgement, format!("the output in {} could not be read: {error}", self.path.display()))
                }
            };
        }
        let written = self
            .path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| open::overwrite_shared(&self.path))
            .and_then(|mut file| file.write_all(judgement.text.as_bytes()));
        match written {
            Ok(()) => {
                judgement.text = self.tell(judgement.text);
                (judgement, None)
            }
            Err(error) => {
                failed(judgement, format!("the output could not be saved to {}: {error}", self.path.display()))
            }
        }
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

/// Says it in the text, which others get, too.
fn failed(mut judgement: Judgement, why: String) -> (Judgement, Option<String>) {
    judgement.text.push_str(&format!("\n\n({why})"));
    (judgement, Some(why))
}

/// What the agent wrote: text in a regular file, and not without end.
fn read(path: &std::path::Path) -> std::io::Result<String> {
    let bytes = open::read_at_most(&open::regular(path)?, MOST)?;
    String::from_utf8(bytes).map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))
}

fn stamp(path: &std::path::Path) -> Option<(SystemTime, u64)> {
    let meta = std::fs::symlink_metadata(path).ok()?;
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
        assert_eq!(file.settle(done("no", StepPhase::Failed)).0.text, "no");
        assert!(!path.exists());
        assert_eq!(file.settle(done("yes", StepPhase::Complete)).0.text, "yes");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "yes");
        let file = OutputFile::watch(path.clone(), Told::Nothing);
        std::fs::write(&path, "the agent's own").unwrap();
        assert_eq!(file.settle(done("said", StepPhase::Complete)).0.text, "the agent's own");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "the agent's own");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_noted() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("file"), folder.path().join("link")).unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        for odd in ["file/below", "folder", "link", "fifo"] {
            let file = OutputFile::watch(folder.path().join(odd), Told::LineOnly);
            let (settled, why) = file.settle(done("text", StepPhase::Complete));
            let why = why.expect(odd);
            assert!(why.starts_with("the output could not be saved to "), "{odd}: {why}");
            assert_eq!(settled.text, format!("text\n\n({why})"));
            assert_eq!(settled.outcome.phase, StepPhase::Complete);
        }
        assert_eq!(std::fs::read(folder.path().join("file")).unwrap(), b"", "nothing is written through a link");
        // What an agent put there while it ran is not read without looking what it is.
        let place = folder.path().join("later");
        let file = OutputFile::watch(place.clone(), Told::Nothing);
        rustix::fs::mknodat(rustix::fs::CWD, &place, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let (_, why) = file.settle(done("text", StepPhase::Complete));
        assert!(why.is_some_and(|why| why.contains("could not be read: it is not a regular file")));
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
            assert_eq!(file.settle(done("one\ntwo\n", StepPhase::Complete)).0.text, text);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
            std::fs::remove_file(&path).unwrap();
        }
    }
}
