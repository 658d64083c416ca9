//! The loop: one place that waits, one that draws. It draws only when something visible changed, at most thirty times a
//! second, and once a second while a clock runs.

mod drawing;
mod earlier;
mod effects;
mod git;
mod hook;
mod kept;
mod looked;
mod news;
mod others;
mod remains;
mod replaying;
mod requests;
mod searching;
mod sifting;
mod telling;

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crossterm::event::Event as Input;
use jiff::tz::TimeZone;
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::Receiver;

use super::entries::Entries;
use super::feed::{Feed, StepFacts};
use super::history::History;
use super::keyboard::Keyboard;
use super::model::{Overlay, UiState};
use super::notify::{Channel, Notifier};
use super::older::Older;
use super::reading::Message;
use super::replay::{Known, Player};
use super::terminal::{self, Screen};
use super::theme::{Palette, Theme};
use super::update::{Context, clocks_run, expire, expires_at, update};
use super::view::layout;
use super::{DeckError, DeckExit, DeckOptions, GoOn, Retry, guard};
use crate::alarm::Alarm;
use crate::run::{RunState, SteerMode, StepId, StepPhase, Timestamp};
use crate::text::SafeText;

/// A frame that takes longer to be written was on the screen only when it was written.
const SLOW: Duration = Duration::from_millis(10);
/// The shortest time between two frames that no key asked for.
const FRAME: Duration = Duration::from_millis(33);

/// So long after another program had the terminal its Ctrl-C and Ctrl-Z may still be told: two threads hear of signals, and
/// one of them may take its time. The keys themselves are no signals while the deck has the terminal.
const LATE: Duration = Duration::from_secs(1);

/// A feed that can be waited for.
pub trait Source: Feed {
    /// Returns when something on disk may have changed. May be dropped at any time.
    fn wait(&mut self) -> impl Future<Output = ()>;
}

/// A picture of another moment than now.
enum Moment {
    /// It stands still.
    Frozen {
        known: Box<Known>,
        /// How long each log was: what came later is not part of the picture, but what came before can be scrolled to.
        lengths: BTreeMap<StepId, u64>,
        at: Timestamp,
    },
    /// The run plays again.
    Replay(Box<Player>),
}

impl Moment {
    /// The run then.
    const fn known(&self) -> &Known {
        match self {
            Self::Frozen { known, .. } => known,
            Self::Replay(player) => player.now(),
        }
    }
}

/// The deck at work.
pub(super) struct App<'a, S> {
    source: S,
    ui: UiState,
    history: History,
    older: Older,
    facts: (Option<StepId>, StepFacts),
    /// How far that step was: what it was asked is known only once its child was started.
    facts_then: Option<(Option<Timestamp>, Option<u32>, bool)>,
    /// What the last frame showed of the logs.
    kept: kept::Kept,
    /// The moment that is shown, where it is not the newest one.
    moment: Option<Moment>,
    theme: Theme,
    /// The colours are those that fit the background.
    asks_background: bool,
    /// How a person who looks elsewhere is told.
    channel: Channel,
    notifier: Notifier,
    /// The program that is told too; it runs from the first thing that there is to tell.
    hook_words: Vec<String>,
    hook: Option<hook::Hook>,
    read_only: Option<SafeText>,
    zone: TimeZone,
    finding: Option<searching::Finding>,
    sifting: Option<sifting::Sifting>,
    /// What the search through a tab has looked at so far.
    sifted: looked::Looked,
    /// How long the logs were whose lines were counted.
    indexed: BTreeMap<StepId, u64>,
    /// The match that was gone to in the output is not in sight any more.
    strayed: bool,
    /// What happened last, for as long as what happened before is still read.
    newest: Option<History>,
    /// Up to where the lines of each log were looked at or counted.
    counted: BTreeMap<StepId, u64>,
    /// The first look at the disk was had; what was there already counts as seen.
    looked: bool,
    title: SafeText,
    /// Starts a run that goes on with a session of this one.
    go_on: Option<GoOn<'a>>,
    /// Starts a run that does again what failed in this one.
    retry: Option<Retry<'a>>,
    /// The drafts as they are kept with the run.
    kept_drafts: BTreeMap<StepId, (String, SteerMode)>,
    /// The terminal was somebody else's until now.
    lent: bool,
    /// The second that clocks show.
    second: i64,
    /// Messages of the transcript that is visible, by the place of their records.
    messages: Arc<BTreeMap<u64, Message>>,
    /// What git says of a step's folder.
    git: git::Git,
    /// What lives on of a run that is lost.
    remains: remains::Remains,
    /// The run is played again as soon as it was looked at.
    replay: bool,
    /// The step that is selected first.
    first: Option<StepId>,
}

enum Wake {
    Gone(i32),
    Suspend,
    Continued,
    Interrupted,
    Resized,
    Input(Option<io::Result<Input>>),
    Source,
    Git,
    Remains(remains::Told),
    Clock,
}

enum Then {
    Stay,
    Leave(DeckExit),
}

/// Lets a test see what a fault in the deck leaves behind: debug builds panic after the first frame when they are
/// told to, here (`deck`) or on another thread (`thread`).
#[cfg(debug_assertions)]
fn panic_on_request() {
    match std::env::var("SUBDECK_TEST_PANIC").as_deref() {
        Ok("deck") => panic!("asked to"),
        Ok("thread") => drop(std::thread::spawn(|| panic!("asked to"))),
        _ => {}
    }
}

/// The wall clock, which only the loop and its door to the files read.
pub(super) fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// The run and what happened in it at the moment that is shown.
fn then<'a>(source: &'a impl Source, history: &'a History, moment: Option<&'a Moment>) -> (&'a RunState, &'a History) {
    let then = moment.map(Moment::known);
    then.map_or((source.state(), history), |then| (&then.state, &then.history))
}

impl<'a, S: Source> App<'a, S> {
    pub(super) fn new(source: S, options: DeckOptions<'a>) -> Self {
        let DeckOptions {
            read_only,
            mouse,
            keymap,
            go_on: door,
            retry,
            palette,
            ascii,
            notify,
            hook,
            from_fleet,
            replay,
            selected,
            left,
            ..
        } = options;
        let (can_go_on, can_retry) = (door.is_some(), retry.is_some());
        let remains = remains::Remains::new(left);
        let can_end_left = remains.can_end();
        Self {
            source,
            ui: UiState {
                mouse,
                keymap: keymap.drawn_in(ascii),
                can_go_on,
                can_retry,
                can_end_left,
                from_fleet,
                ..UiState::new(Screen::size())
            },
            history: History::default(),
            older: Older::default(),
            facts: (None, StepFacts::default()),
            facts_then: None,
            kept: kept::Kept::default(),
            moment: None,
            theme: Theme { palette: palette.unwrap_or_default(), ascii },
            asks_background: palette.is_none(),
            channel: notify,
            notifier: Notifier::default(),
            hook_words: hook,
            hook: None,
            read_only: read_only.map(|why| SafeText::line(&why)),
            zone: TimeZone::system(),
            finding: None,
            sifting: None,
            sifted: looked::Looked::default(),
            indexed: BTreeMap::new(),
            strayed: false,
            newest: None,
            counted: BTreeMap::new(),
            looked: false,
            title: SafeText::default(),
            go_on: door,
            retry,
            kept_drafts: BTreeMap::new(),
            lent: false,
            second: 0,
            messages: Arc::default(),
            git: git::Git::default(),
            remains,
            replay,
            first: selected,
        }
    }

    pub(super) async fn run(mut self, gone: Receiver<i32>) -> Result<DeckExit, DeckError> {
        let exit = self.watch(gone).await;
        // The terminal is the person's again; who was told something may take its time over it. A deck that has to go
        // takes them along.
        if let (Some(hook), Ok(exit)) = (self.hook.take(), &exit)
            && !matches!(exit, DeckExit::Signalled(_))
        {
            hook.finish().await;
        }
        exit
    }

    async fn watch(&mut self, mut gone: Receiver<i32>) -> Result<DeckExit, DeckError> {
        let mut screen = Screen::enter().map_err(DeckError::Terminal)?;
        let answers = screen.ask(self.asks_background).map_err(DeckError::Terminal)?;
        if self.asks_background {
            self.theme.palette = match answers.light {
                Some(true) => Palette::Light,
                Some(false) => Palette::Dark,
                None => Palette::Sixteen,
            };
        }
        if self.ui.mouse {
            screen.mouse(true).map_err(DeckError::Terminal)?;
        }
        let mut keys = Keyboard::new(&answers.typed).map_err(DeckError::Terminal)?;
        let mut suspends = signal(SignalKind::from_raw(20)).map_err(DeckError::Terminal)?;
        let mut continues = signal(SignalKind::from_raw(18)).map_err(DeckError::Terminal)?;
        let mut interrupts = signal(SignalKind::interrupt()).map_err(DeckError::Terminal)?;
        let mut resizes = signal(SignalKind::window_change()).map_err(DeckError::Terminal)?;
        self.ui.size = Screen::size();
        self.take_news();
        self.select_what_runs();
        self.notifier = Notifier::new(self.source.state(), &self.ui);
        self.take_drafts();
        if self.replay {
            self.begin_replay();
        }
        if let Some(Then::Leave(exit)) = self.take_ready(None, &mut screen, &mut keys)? {
            return Ok(exit);
        }
        let mut alarm = Alarm::new();
        let mut dirty = true;
        let mut at_once = true;
        let mut last_frame = Instant::now();
        // There is something to read, but it was looked at a moment ago: however often the files change, they are
        // looked at no more often than a frame could show.
        let mut unread = false;
        let mut last_look = Instant::now();
        // When another program had the terminal last.
        let mut lent: Option<Instant> = None;
        loop {
            if std::mem::take(&mut self.lent) {
                // Ctrl-C and Ctrl-Z in another program reached this one too, and were not meant for it. They came long
                // ago, but whichever thread heard of them may not have told yet. Signals are told in the order of their
                // numbers, so once one of our own with a higher number is told, they are too.
                drain(&mut resizes).await;
                terminal::signal_self(Signal::WINCH);
                let _ = tokio::time::timeout(Duration::from_secs(1), resizes.recv()).await;
                self.ui.size = Screen::size();
                drain(&mut interrupts).await;
                drain(&mut suspends).await;
                drain(&mut continues).await;
                lent = Some(Instant::now());
            }
            if self.ui.leave_when_over && self.source.state().is_over() {
                return Ok(DeckExit::Stopped);
            }
            dirty |= expire(&mut self.ui, wall());
            dirty |= self.read_older();
            dirty |= self.find_on();
            dirty |= self.play_on();
            self.tell(&mut screen);
            self.look_for_remains();
            if unread && last_look.elapsed() >= FRAME {
                dirty |= self.take_news();
                (unread, last_look) = (false, Instant::now());
            }
            if dirty && (at_once || last_frame.elapsed() >= FRAME) {
                let begun = wall();
                match self.draw(&mut screen) {
                    Ok(()) => {}
                    Err(_) if guard::hung_up() => return Ok(DeckExit::Signalled(1)),
                    Err(error) => return Err(DeckError::Terminal(error)),
                }
                #[cfg(debug_assertions)]
                panic_on_request();
                (dirty, at_once, last_frame) = (false, false, Instant::now());
                // What has come by now was typed by nobody who has seen this picture.
                match self.take_ready(None, &mut screen, &mut keys)? {
                    Some(Then::Leave(exit)) => return Ok(exit),
                    Some(_) => {
                        // What it did is drawn without waiting for anything else.
                        (dirty, at_once) = (true, true);
                        continue;
                    }
                    // A terminal that is slow has shown it when the last byte was taken.
                    None if wall().since(begun) > SLOW => self.ui.drawn(wall()),
                    None => self.ui.drawn(begun),
                }
            }
            let due = [dirty.then_some(last_frame), unread.then_some(last_look)].into_iter().flatten().min();
            let deadline = self.deadline(due);
            // The select only names what happened; the match handles it.
            let wake = tokio::select! {
                biased;
                Some(number) = gone.recv() => Wake::Gone(number),
                _ = suspends.recv() => Wake::Suspend,
                _ = continues.recv() => Wake::Continued,
                _ = interrupts.recv() => Wake::Interrupted,
                _ = resizes.recv() => Wake::Resized,
                input = keys.next() => Wake::Input(input),
                () = self.source.wait(), if !unread => Wake::Source,
                () = self.git.answered() => Wake::Git,
                told = self.remains.told() => Wake::Remains(told),
                () = alarm.at(deadline) => Wake::Clock,
            };
            let late = || lent.is_some_and(|at| at.elapsed() < LATE);
            match wake {
                Wake::Suspend | Wake::Interrupted if late() => {}
                Wake::Gone(number) => return Ok(DeckExit::Signalled(number)),
                Wake::Suspend => {
                    self.suspend(&mut screen)?;
                    (dirty, at_once) = (true, true);
                }
                Wake::Continued => {
                    screen.retake().map_err(DeckError::Terminal)?;
                    self.repaint(&mut screen)?;
                    (dirty, at_once) = (true, true);
                }
                Wake::Resized => {
                    self.ui.size = Screen::size();
                    (dirty, at_once) = (true, true);
                }
                Wake::Interrupted => {
                    let key = crossterm::event::KeyEvent::new(
                        crossterm::event::KeyCode::Char('c'),
                        crossterm::event::KeyModifiers::CONTROL,
                    );
                    if let Then::Leave(exit) = self.take(&Input::Key(key), &mut screen)? {
                        return Ok(exit);
                    }
                    (dirty, at_once) = (true, true);
                }
                Wake::Input(Some(Ok(input))) => {
                    if let Some(Then::Leave(exit)) = self.take_ready(Some(input), &mut screen, &mut keys)? {
                        return Ok(exit);
                    }
                    (dirty, at_once) = (true, true);
                }
                Wake::Input(Some(Err(_)) | None) => {
                    // Without keys there is nobody to leave the deck any more.
                    return Ok(DeckExit::Signalled(1));
                }
                Wake::Source => unread = true,
                Wake::Git => dirty = true,
                Wake::Remains(told) => {
                    self.take_told(told);
                    dirty = true;
                }
                Wake::Clock => dirty |= self.clock_moved(),
            }
        }
    }

    /// Takes this input and all that are there already; nothing when there is none.
    fn take_ready(
        &mut self,
        first: Option<Input>,
        screen: &mut Screen,
        keys: &mut Keyboard,
    ) -> Result<Option<Then>, DeckError> {
        let mut then = None;
        let mut next = first.or_else(|| keys.ready());
        while let Some(input) = next {
            then = Some(self.take(&input, screen)?);
            if let Some(Then::Leave(_)) = then {
                break;
            }
            next = keys.ready();
            if next.is_some() {
                // Where the picture stands after one key the next one begins, though nobody has seen it.
                self.settle_picture();
            }
        }
        if then.is_some() {
            self.keep_drafts(wall());
        }
        Ok(then)
    }

    /// The state that is on the screen: a picture that stands still has its own, and the layout and the sums that are
    /// known are of that one.
    pub(super) fn shown(&self) -> &RunState {
        self.moment.as_ref().map_or(self.source.state(), |moment| &moment.known().state)
    }

    /// The first look is at what goes on, not at what is over; where all is over, at what failed. A replay begins with the
    /// first step, as the run did.
    fn select_what_runs(&mut self) {
        let state = self.source.state();
        let first = |phase| state.steps.iter().find(|s| s.phase == phase);
        let failed = first(StepPhase::Failed).filter(|_| !self.replay);
        let asked = self.first.and_then(|id| state.step(id));
        let worth = asked.or_else(|| first(StepPhase::Running)).or(failed);
        if let Some(step) = worth.or_else(|| state.steps.first()) {
            self.ui.selected = step.id;
        }
    }

    /// Whether the clocks show another second than they did when they were drawn last.
    fn clock_moved(&mut self) -> bool {
        let second = wall().millis() / 1000;
        let moved = second != self.second && clocks_run(self.source.state(), &self.ui);
        self.second = second;
        self.take_answers() || moved
    }

    /// When something has to be done without being woken.
    fn deadline(&self, due_since: Option<Instant>) -> Option<Instant> {
        if self.finding.is_some() || self.sifting.is_some() || self.to_index().is_some() || self.wants_older() {
            return Some(Instant::now());
        }
        let now = wall();
        let frame = due_since.map(|last| last + FRAME);
        let expiry = expires_at(&self.ui).map(|at| Instant::now() + at.since(now));
        let telling = self.notifier.due_at().map(|at| Instant::now() + at.since(now));
        let second = clocks_run(self.source.state(), &self.ui).then(|| {
            let into = now.micros().rem_euclid(1_000_000);
            Instant::now() + Duration::from_micros(u64::try_from(1_000_000 - into).unwrap_or(1_000_000))
        });
        let replay = self.replay_due().map(|due| Instant::now() + due.max(FRAME));
        [frame, expiry, telling, second, replay, self.remains_due()].into_iter().flatten().min()
    }

    fn take(&mut self, input: &Input, screen: &mut Screen) -> Result<Then, DeckError> {
        if let Input::FocusGained | Input::FocusLost = input {
            self.notifier.focus(matches!(input, Input::FocusGained));
        }
        let read_only = self.why_read_only(&self.source.hands());
        let now = wall();
        let (state, history) = then(&self.source, &self.history, self.moment.as_ref());
        let entries = Entries { history, older: &self.older };
        let cx = Context { state, read_only: read_only.as_ref(), entries, now };
        let writes = |ui: &UiState| matches!(ui.overlays.last(), Some(Overlay::Composer(_)));
        let wrote = writes(&self.ui);
        for effect in update(&mut self.ui, cx, input) {
            if let Then::Leave(exit) = self.perform(effect, now, screen)? {
                return Ok(Then::Leave(exit));
            }
        }
        if !wrote && writes(&self.ui) {
            self.look_for_drafts(now);
        }
        Ok(Then::Stay)
    }

    fn repaint(&mut self, screen: &mut Screen) -> Result<(), DeckError> {
        self.ui.size = Screen::size();
        screen.repaint(self.ui.size).map_err(DeckError::Terminal)
    }
}

/// Forgets what a signal has said so far.
async fn drain(signal: &mut tokio::signal::unix::Signal) {
    std::future::poll_fn(|cx| {
        while signal.poll_recv(cx).is_ready() {}
        Poll::Ready(())
    })
    .await;
}
