//! Requests that the runner answers, drafts that outlive the deck, and going on with a session when the run is over.

use super::{App, Source, Then};
use crate::deck::DeckExit;
use crate::deck::feed::{Answer, News, Request, Unsent};
use crate::deck::model::{Draft, Fate, Overlay};
use crate::deck::update::say;
use crate::run::{Raise, SteerMode, StepId, Timestamp};
use crate::text::{SafeText, typed};

impl<S: Source> App<'_, S> {
    /// Asks to change a limit; what is wrong is said in the dialog, which stays then.
    pub(super) fn raise(&mut self, step: Option<StepId>, raise: Raise, now: Timestamp) {
        if self.send(&Request::Raise(step, raise), "limit", step, "+", now) {
            self.ui.overlays.pop();
            return;
        }
        let why = self.ui.notice.take().map(|notice| notice.text);
        if let Some(Overlay::Budget(dialog)) = self.ui.overlays.last_mut() {
            dialog.wrong = why;
        }
    }

    /// Answers a question; what is wrong is said in the dialog, which stays then.
    pub(super) fn answer(&mut self, step: StepId, question: String, answer: crate::run::Answer, now: Timestamp) {
        if self.send(&Request::Answer(question, answer), "answer", Some(step), "A", now) {
            self.ui.overlays.pop();
            return;
        }
        let why = self.ui.notice.take().map(|notice| notice.text);
        if let Some(Overlay::Answer(dialog)) = self.ui.overlays.last_mut() {
            dialog.wrong = why;
        }
    }

    /// Withdraws a message.
    pub(super) fn take_back(&mut self, id: String, now: Timestamp) {
        if !self.send(&Request::TakeBack(id.clone()), "take back", None, "u", now) {
            return;
        }
        self.ui.withdrawn.insert(id);
        // Without an id nothing had to be asked: its file was there still.
        if self.ui.sent.last().is_some_and(|sent| sent.id.is_none()) {
            self.ui.sent.pop();
            say(&mut self.ui, now, false, "the message was taken back; nobody had read it");
        }
    }

    /// Looks for answers to what was asked. Returns whether there is a new one.
    pub(super) fn take_answers(&mut self) -> bool {
        let mut changed = false;
        for sent in self.ui.sent.iter_mut().filter(|s| s.fate == Fate::Awaited) {
            let Some(answer) = sent.id.as_deref().and_then(|id| self.source.answer(id)) else { continue };
            sent.fate = match answer {
                Answer::Done => Fate::Done,
                Answer::Refused(why) => Fate::Refused(why),
            };
            changed = true;
        }
        changed
    }

    /// Starts a run that goes on with the session of a step, and leaves for it.
    pub(super) fn go_on(&mut self, step: StepId, message: &str, now: Timestamp) -> Then {
        let Some(door) = &self.go_on else { return Then::Stay };
        match door(step, message) {
            Ok(dir) => {
                self.ui.drafts.remove(&step);
                self.keep_drafts(now);
                Then::Leave(DeckExit::Elsewhere(dir))
            }
            Err(why) => {
                say(&mut self.ui, now, true, &why);
                Then::Stay
            }
        }
    }

    /// Starts a run that does again what failed in this one, and leaves for it.
    pub(super) fn do_again(&mut self, now: Timestamp) -> Then {
        let Some(door) = &self.retry else { return Then::Stay };
        match door() {
            Ok(dir) => Then::Leave(DeckExit::Elsewhere(dir)),
            Err(why) => {
                say(&mut self.ui, now, true, &why);
                Then::Stay
            }
        }
    }

    /// Takes in what a deck before this one left unsent.
    pub(super) fn take_drafts(&mut self) {
        for unsent in self.source.drafts() {
            self.take_draft(unsent, None);
        }
    }

    /// Takes in a draft of other decks, before what this one has itself.
    fn take_draft(&mut self, Unsent { kept, many, at }: Unsent, own: Option<String>) {
        // A draft is text that a person typed, but a file is a file.
        let text = typed(&kept.text);
        let mut draft = Draft { mode: kept.mode, found: Some((many, at)), ..Draft::default() };
        draft.text.insert_str(&text);
        if let Some(own) = own.filter(|own| !text.contains(own.trim())) {
            draft.text.insert_str(format!("\n\n{own}"));
        }
        self.kept_drafts.insert(kept.step, (text, kept.mode));
        self.ui.drafts.insert(kept.step, draft);
    }

    /// Looks again for what other decks wrote meanwhile, once the dialog for a message was opened.
    pub(super) fn look_for_drafts(&mut self, now: Timestamp) {
        let Some(Overlay::Composer(composer)) = self.ui.overlays.last() else { return };
        let step = composer.home;
        let own = self.ui.drafts.get(&step).filter(|draft| !draft.is_blank()).map(Draft::message);
        match self.source.new_drafts(step, self.kept_drafts.contains_key(&step)) {
            Some(News::Beside(_)) => {
                say(&mut self.ui, now, false, "another deck has a draft of its own for this step; it is kept");
            }
            Some(News::Instead(unsent)) => self.take_draft(unsent, None),
            Some(News::Before(unsent)) => self.take_draft(unsent, own),
            None => {}
        }
    }

    /// Keeps the drafts with the run as they are now, as far as they changed.
    pub(super) fn keep_drafts(&mut self, now: Timestamp) {
        if self.read_only.is_some() {
            return;
        }
        let drafts = self.ui.drafts.iter().filter(|(_, draft)| !draft.is_blank());
        let drafts: Vec<(StepId, (String, SteerMode))> =
            drafts.map(|(step, draft)| (*step, (draft.message(), draft.mode))).collect();
        let gone = self.kept_drafts.keys().filter(|step| drafts.iter().all(|(s, _)| s != *step)).copied();
        let gone: Vec<StepId> = gone.collect();
        let mut wrong = None;
        for (step, (text, mode)) in drafts {
            if self.kept_drafts.get(&step).is_some_and(|kept| kept.0 == text && kept.1 == mode) {
                continue;
            }
            wrong = self.source.keep_draft(step, Some((&text, mode))).err().or(wrong);
            self.kept_drafts.insert(step, (text, mode));
        }
        // At last, so that what went with its step to another place is there before it is gone here.
        for step in gone {
            wrong = self.source.keep_draft(step, None).err().or(wrong);
            self.kept_drafts.remove(&step);
        }
        if let Some(why) = wrong {
            let text = SafeText::line(&format!("the draft is only in this deck: {why}"));
            say(&mut self.ui, now, true, text.as_str());
        }
    }
}
