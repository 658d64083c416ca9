//! The loop of the fleet: one place that waits, one that draws. It wakes for keys, for changed files, and for a clock
//! that is on the screen; nothing else.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyModifiers};
use jiff::tz::TimeZone;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::Receiver;

use super::model::{FleetUi, Over};
use super::update::{Context, Effect, say, update};
use super::view::{self, Scene};
use super::{Doors, FleetExit, FleetOptions};
use crate::alarm::Alarm;
use crate::deck::app::wall;
use crate::deck::keyboard::Keyboard;
use crate::deck::terminal::{Copied, Screen, stop_self};
use crate::deck::theme::{Palette, Theme};
use crate::deck::update::NOTICE_FOR;
use crate::deck::{DeckError, guard};
use crate::listing::{Row, Spent, arrange, broken, spent_since, waiting};
use crate::run::Timestamp;
use crate::rundir::fleet::Fleet;
use crate::text::{SafeText, when};

/// The shortest time between two frames that no key asked for.
const FRAME: Duration = Duration::from_millis(33);
/// How long the disk is looked at before the keys are.
const SLICE: Duration = Duration::from_millis(20);

pub(super) struct App<'a> {
    fleet: &'a mut Fleet,
    ui: &'a mut FleetUi,
    options: &'a FleetOptions,
    doors: &'a Doors<'a>,
    theme: Theme,
    zone: TimeZone,
    home: Option<PathBuf>,
    roots: Vec<String>,
    troubles: Vec<SafeText>,
    /// What today cost, and which day that is.
    spent: (Timestamp, Spent),
    /// When the picture reads differently though nothing happens.
    differs_at: Timestamp,
}

enum Wake {
    Gone(i32),
    Suspend,
    Continued,
    Interrupted,
    Resized,
    Input(Option<std::io::Result<Input>>),
    Files,
    Clock,
}

impl<'a> App<'a> {
    pub(super) fn new(
        fleet: &'a mut Fleet,
        ui: &'a mut FleetUi,
        options: &'a FleetOptions,
        doors: &'a Doors<'a>,
    ) -> Self {
        let roots = fleet.roots().iter().map(|root| root.path().display().to_string()).collect();
        let theme = Theme { palette: options.palette.unwrap_or_default(), ascii: options.ascii };
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let spent = (Timestamp::default(), Spent::default());
        let (zone, troubles, differs_at) = (TimeZone::system(), Vec::new(), Timestamp::default());
        Self { fleet, ui, options, doors, theme, zone, home, roots, troubles, spent, differs_at }
    }

    pub(super) async fn run(mut self, mut gone: Receiver<i32>) -> Result<FleetExit, DeckError> {
        let mut screen = Screen::enter().map_err(DeckError::Terminal)?;
        let asks = self.options.palette.is_none();
        let answers = screen.ask(asks).map_err(DeckError::Terminal)?;
        if asks {
            self.theme.palette = match answers.light {
                Some(true) => Palette::Light,
                Some(false) => Palette::Dark,
                None => Palette::Sixteen,
            };
        }
        let mut keys = Keyboard::new(&answers.typed).map_err(DeckError::Terminal)?;
        let mut suspends = signal(SignalKind::from_raw(20)).map_err(DeckError::Terminal)?;
        let mut continues = signal(SignalKind::from_raw(18)).map_err(DeckError::Terminal)?;
        let mut interrupts = signal(SignalKind::interrupt()).map_err(DeckError::Terminal)?;
        let mut resizes = signal(SignalKind::window_change()).map_err(DeckError::Terminal)?;
        self.ui.size = Screen::size();
        screen.title(&SafeText::line("subdeck fleet")).map_err(DeckError::Terminal)?;
        let (_, mut behind) = self.look();
        while let Some(input) = keys.ready() {
            if let Some(exit) = self.take(&input, &mut screen)? {
                return Ok(exit);
            }
        }
        let (mut dirty, mut at_once) = (true, true);
        let mut last_frame = Instant::now();
        let mut unread = false;
        let mut last_look = Instant::now();
        let mut alarm = Alarm::new();
        loop {
            let now = wall();
            // A clock that was set back must not keep it.
            if self.ui.notice.as_ref().is_some_and(|n| n.until <= now || n.until.since(now) > NOTICE_FOR) {
                self.ui.notice = None;
                dirty = true;
            }
            // However often files change, they are looked at no more often than a frame could show.
            if behind || (unread && last_look.elapsed() >= FRAME) {
                let changed;
                (changed, behind) = self.look();
                dirty |= changed;
                (unread, last_look) = (false, Instant::now());
            }
            if dirty && (at_once || last_frame.elapsed() >= FRAME) {
                match self.draw(&mut screen) {
                    Ok(()) => {}
                    Err(_) if guard::hung_up() => return Ok(FleetExit::Signalled(1)),
                    Err(error) => return Err(DeckError::Terminal(error)),
                }
                (dirty, at_once, last_frame) = (false, false, Instant::now());
            }
            let deadline = self.deadline(now, dirty.then_some(last_frame), unread.then_some(last_look), behind);
            let wake = tokio::select! {
                biased;
                Some(number) = gone.recv() => Wake::Gone(number),
                _ = suspends.recv() => Wake::Suspend,
                _ = continues.recv() => Wake::Continued,
                _ = interrupts.recv() => Wake::Interrupted,
                _ = resizes.recv() => Wake::Resized,
                input = keys.next() => Wake::Input(input),
                () = self.fleet.wait(), if !unread && !behind => Wake::Files,
                () = alarm.at(deadline) => Wake::Clock,
            };
            let mut inputs = Vec::new();
            match wake {
                Wake::Gone(number) => return Ok(FleetExit::Signalled(number)),
                Wake::Suspend => self.suspend(&mut screen)?,
                Wake::Continued => {
                    screen.retake().map_err(DeckError::Terminal)?;
                    self.repaint(&mut screen)?;
                }
                Wake::Resized => self.ui.size = Screen::size(),
                Wake::Interrupted => {
                    inputs.push(Input::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
                }
                Wake::Input(Some(Ok(input))) => {
                    inputs.push(input);
                    inputs.extend(std::iter::from_fn(|| keys.ready()));
                }
                // Without keys there is nobody to leave the fleet any more.
                Wake::Input(Some(Err(_)) | None) => return Ok(FleetExit::Signalled(1)),
                Wake::Files => {
                    unread = true;
                    continue;
                }
                Wake::Clock => {
                    dirty |= wall() >= self.differs_at;
                    continue;
                }
            }
            for input in inputs {
                if let Some(exit) = self.take(&input, &mut screen)? {
                    return Ok(exit);
                }
            }
            (dirty, at_once) = (true, true);
        }
    }

    /// Looks at the disk. Returns whether the picture is another, and whether there is more to look at.
    fn look(&mut self) -> (bool, bool) {
        let before = self.fleet.unread();
        let changes = self.fleet.poll(SLICE);
        let troubles: Vec<SafeText> = self.fleet.notices().iter().map(|text| SafeText::line(text)).collect();
        let changed = changes.changed || before != self.fleet.unread() || troubles != self.troubles;
        self.troubles = troubles;
        if changed {
            self.count_money();
        }
        (changed, changes.behind)
    }

    fn count_money(&mut self) {
        let midnight = self.midnight();
        self.spent = (midnight, spent_since(self.fleet.runs(), midnight));
    }

    /// When today began, where the person is.
    fn midnight(&self) -> Timestamp {
        Timestamp::from_micros(when::midnight(wall().micros(), &self.zone))
    }

    /// When something has to be done without being woken. A picture of runs that are long over has a day or two to wait.
    fn deadline(
        &self,
        now: Timestamp,
        dirty_since: Option<Instant>,
        unread_since: Option<Instant>,
        behind: bool,
    ) -> Option<Instant> {
        if behind {
            return Some(Instant::now());
        }
        let frame = [dirty_since, unread_since].into_iter().flatten().min().map(|at| at + FRAME);
        let notice = self.ui.notice.as_ref().map(|notice| Instant::now() + notice.until.since(now));
        // What is a moment away is not asked for twice.
        let tick = Instant::now() + self.differs_at.since(now).max(Duration::from_millis(1));
        [frame, notice, Some(tick)].into_iter().flatten().min()
    }

    /// The list as it is ordered now.
    fn rows<'f>(
        fleet: &'f Fleet,
        ui: &FleetUi,
        midnight: Timestamp,
        now: Timestamp,
        zone: &TimeZone,
        roots: &[String],
    ) -> Vec<Row<'f>> {
        let today = when::day(now.micros(), zone);
        let day = |at: Timestamp| {
            let name = when::day(at.micros(), zone);
            if name == today { "today".to_owned() } else { name }
        };
        let root = |at: usize| roots.get(at).cloned().unwrap_or_default();
        arrange(fleet.runs(), &ui.view, midnight, now, day, root)
    }

    fn draw(&mut self, screen: &mut Screen) -> std::io::Result<()> {
        let now = wall();
        let midnight = self.midnight();
        if midnight != self.spent.0 {
            self.count_money();
        }
        let rows = Self::rows(self.fleet, self.ui, midnight, now, &self.zone, &self.roots);
        self.ui.settle(&rows);
        let tomorrow = Timestamp::from_micros(when::next_midnight(now.micros(), &self.zone));
        self.differs_at = view::reads_differently_at(&rows, self.ui, now).map_or(tomorrow, |at| at.min(tomorrow));
        let waiting = waiting(self.fleet.runs());
        let scene = Scene {
            rows: &rows,
            count: self.fleet.runs().count(),
            unread: self.fleet.unread(),
            waiting: &waiting,
            living: self.fleet.runs().filter(|run| run.is_living()).count(),
            broken: broken(self.fleet.runs()),
            spent: &self.spent.1,
            troubles: &self.troubles,
            roots: &self.roots,
            now,
            zone: &self.zone,
            theme: self.theme,
        };
        screen.frame(self.ui.size, |buf| view::draw(buf, &scene, self.ui))
    }

    fn take(&mut self, input: &Input, screen: &mut Screen) -> Result<Option<FleetExit>, DeckError> {
        let now = wall();
        let effect = {
            let rows = Self::rows(self.fleet, self.ui, self.midnight(), now, &self.zone, &self.roots);
            let cx = Context { rows: &rows, folder: &self.options.folder, home: self.home.as_deref(), now };
            update(self.ui, cx, input)
        };
        match effect {
            None => {}
            Some(Effect::Open(path)) => return Ok(Some(FleetExit::Open(path))),
            Some(Effect::Replay(path)) => return Ok(Some(FleetExit::Replay(path))),
            Some(Effect::Quit) => return Ok(Some(FleetExit::Quit)),
            Some(Effect::Agents(folder)) => {
                let agents = (self.doors.agents)(&folder);
                if let Some(Over::Start(dialog)) = &mut self.ui.over {
                    dialog.agents = agents;
                }
            }
            Some(Effect::Start(wish)) => match (self.doors.start)(&wish) {
                Ok(path) => {
                    self.ui.over = None;
                    self.ui.selected = Some(path.clone());
                    return Ok(Some(FleetExit::Open(path)));
                }
                Err(why) => {
                    if let Some(Over::Start(dialog)) = &mut self.ui.over {
                        dialog.wrong = Some(SafeText::line(&why));
                    }
                }
            },
            Some(Effect::Copy(path)) => {
                let path = SafeText::line(&path.display().to_string());
                let sent = screen.copy(&[path]).map_err(DeckError::Terminal)? == Copied::All;
                let text = if sent { "the path was sent to the terminal's clipboard" } else { "nothing was copied" };
                say(self.ui, now, !sent, text);
            }
            Some(Effect::Repaint) => self.repaint(screen)?,
            Some(Effect::Suspend) => self.suspend(screen)?,
        }
        Ok(None)
    }

    fn suspend(&mut self, screen: &mut Screen) -> Result<(), DeckError> {
        screen.lend(stop_self).map_err(DeckError::Terminal)?;
        self.repaint(screen)
    }

    fn repaint(&mut self, screen: &mut Screen) -> Result<(), DeckError> {
        self.ui.size = Screen::size();
        screen.repaint(self.ui.size).map_err(DeckError::Terminal)
    }
}
