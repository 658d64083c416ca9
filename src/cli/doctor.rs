//! `subdeck doctor`: which agents are there and whether they are known, and what else a run needs. Nothing is written and
//! no agent is started; their programs are asked for their version only.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use tokio::task::JoinSet;

use super::doctor_probe::{self as probe, Answer, Place, Question};
use super::load::World;
use super::{doctor_report as report, find, lines, show};
use crate::agents::families::{self, Start};
use crate::agents::pi::command;
use crate::config::Trust;
use crate::plan::Source;
use crate::plan::nearest::{nearest, one_of};
use crate::run::{AgentKind, Family, Permission};
use crate::rundir::trust;

/// Say which agents are there, whether they are known, and what else a run needs
///
/// The exit code is 0 when an agent can be run here, 1 when something is missing that was named or that every run needs,
/// 2 for a name that is no agent's.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Only these agents; one of them that is missing is an error [default: all that are known]
    #[arg(value_name = "AGENT")]
    pub agents: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub root: super::args::RootArgs,
}

/// An agent that a plan can name.
#[derive(Debug)]
pub(super) struct Agent {
    /// Its word in plans.
    pub word: &'static str,
    /// The versions that its recordings are of, the newest last.
    pub recorded: &'static [&'static str],
    /// Its program as it is named.
    pub program: String,
    /// The arguments of a step that says no more than its word.
    pub args: Vec<String>,
    /// The variable with its key, and whether it is set, where it has to be told to log in with it.
    pub key: Option<(&'static str, bool)>,
    /// What was found out.
    pub answer: Answer,
}

/// How far the version of an agent is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It is one that was recorded.
    Same,
    /// It is a newer one: what is new in it is counted as unknown.
    Newer,
    /// It is an older one.
    Older,
    /// It is not known which.
    Unknown,
}

impl Agent {
    /// How far its version is known.
    pub(super) fn known(&self) -> Known {
        let Some(version) = self.answer.version.as_ref().filter(|_| !self.recorded.is_empty()) else {
            return Known::Unknown;
        };
        let version = probe::numbers(version);
        let mut recorded = self.recorded.iter().map(|recorded| probe::numbers(recorded));
        if recorded.clone().any(|recorded| recorded == version) {
            Known::Same
        } else if recorded.all(|recorded| recorded < version) {
            Known::Newer
        } else {
            Known::Older
        }
    }
}

/// The folder that runs are kept in.
#[derive(Debug)]
pub(super) struct Root {
    pub path: PathBuf,
    pub exists: bool,
    /// Why no run can be kept there.
    pub problem: Option<String>,
    /// Bytes that are free there.
    pub free: Option<u64>,
}

/// How changes of files are noticed.
#[derive(Debug)]
pub(super) struct Watching {
    /// Limits of the kernel for one user.
    pub instances: Option<u64>,
    pub watches: Option<u64>,
    /// Why there can be no more watches now; changes are then noticed later.
    pub problem: Option<String>,
}

/// Everything that was found out.
#[derive(Debug)]
pub(super) struct Findings {
    pub agents: Vec<Agent>,
    pub root: Root,
    pub watching: Watching,
    /// Why no deck can be shown here.
    pub no_deck: Option<&'static str>,
    /// Something of the configuration cannot be used; it was told on standard error.
    pub broken_config: bool,
    /// Agents were named.
    pub named: bool,
}

impl Findings {
    /// Whether a run can begin, and with the agents that were named.
    pub(super) fn ok(&self) -> bool {
        let there = |agent: &Agent| agent.answer.file.is_some();
        let agents = if self.named { self.agents.iter().all(there) } else { self.agents.iter().any(there) };
        agents && self.root.problem.is_none() && !self.broken_config
    }
}

/// Finds out and tells.
///
/// # Errors
/// A name that is no agent's, no place for runs, and output that cannot be written.
pub fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let world = World::look()?;
    let mut agents = known(&world);
    let words: Vec<&str> = agents.iter().map(|agent| agent.word).collect();
    for name in &args.agents {
        if !words.contains(&name.as_str()) {
            let advice = nearest(name, words.iter().copied()).map_or_else(
                || format!("use {}", one_of(words.iter().copied())),
                |near| format!("did you mean `{near}`?"),
            );
            bail!("there is no agent `{name}`; {advice}");
        }
    }
    if !args.agents.is_empty() {
        agents.retain(|agent| args.agents.iter().any(|name| name == agent.word));
    }
    ask(&mut agents, &world)?;
    let root = find::own_root(&world, args.root.root.as_deref())?;
    let findings = Findings {
        agents,
        root: look_at(root.path()),
        watching: watching(),
        no_deck: show::no_deck(),
        broken_config: world.broken(),
        named: !args.agents.is_empty(),
    };
    if args.json {
        super::out::json(&report::json(&findings))?;
    } else {
        lines::out(|to| report::text(to, &findings))?;
    }
    Ok(ExitCode::from(u8::from(!findings.ok())))
}

/// The agents that can be looked for: all but those whose program only a plan names.
fn known(world: &World) -> Vec<Agent> {
    let var = |name: &str| world.env.get(name).map(str::to_owned);
    let pi = Agent {
        word: "pi",
        recorded: command::RECORDED,
        program: command::program(world.config.pi_program(), var),
        args: command::arguments(&command::Command {
            session_file: Some(Path::new("SESSION")),
            ..command::Command::new(command::Mode::Rpc)
        }),
        key: None,
        answer: Answer::default(),
    };
    let others = Family::ALL.into_iter().filter(|family| !family.needs_command()).map(|family| {
        let kind = AgentKind { family, transport: family.transport(), permission: Permission::default() };
        let agents = families::of(family);
        Agent {
            word: family.word(),
            recorded: family.recorded(),
            program: family.program().to_owned(),
            args: agents.arguments(&Start::new(kind)),
            key: agents.key().map(|name| (name, world.env.get(name).is_some())),
            answer: Answer::default(),
        }
    });
    std::iter::once(pi).chain(others).collect()
}

/// Asks all of them at once.
fn ask(agents: &mut [Agent], world: &World) -> anyhow::Result<()> {
    let place = std::sync::Arc::new(Place {
        cwd: world.env.current_dir.clone(),
        path: world.env.path.clone().unwrap_or_default(),
        home: world.env.home(),
        trusted: is_trusted(world),
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answers = runtime.block_on(async {
        let mut asked = JoinSet::new();
        for (at, agent) in agents.iter().enumerate() {
            let env = Family::of_word(agent.word).map_or_else(Vec::new, |family| {
                let kind = AgentKind { family, transport: family.transport(), permission: Permission::default() };
                families::of(family).variables(&Start::new(kind))
            });
            let question = Question { program: agent.program.clone(), env };
            let place = std::sync::Arc::clone(&place);
            asked.spawn(async move { (at, probe::ask(&question, &place).await) });
        }
        asked.join_all().await
    });
    for (at, answer) in answers {
        if let Some(agent) = agents.get_mut(at) {
            agent.answer = answer;
        }
    }
    Ok(())
}

/// Whether the project that one stands in was trusted as it is now.
fn is_trusted(world: &World) -> bool {
    let Some(file) = world.config.project_file() else { return false };
    let Ok(source) = Source::read(file) else { return false };
    Trust::open(&world.env).is_trusted(file, source.text().as_bytes())
}

/// Looks at a root, or at the folder in which it would be made.
fn look_at(path: &Path) -> Root {
    let exists = std::fs::symlink_metadata(path).is_ok();
    let near = path.ancestors().find(|folder| std::fs::symlink_metadata(folder).is_ok()).unwrap_or(path);
    let refused = if exists { trust::check(path).err().map(|why| why.to_string()) } else { None };
    let writable = rustix::fs::access(near, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK);
    let unwritable = || {
        let error = std::io::Error::from(writable.err()?);
        let near = if exists { "it".to_owned() } else { near.display().to_string() };
        Some(format!("{near} cannot be written: {error}"))
    };
    let free = rustix::fs::statvfs(near).ok().map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize));
    Root { path: path.to_owned(), exists, problem: refused.or_else(unwritable), free }
}

#[cfg(target_os = "linux")]
fn watching() -> Watching {
    let limit = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/fs/inotify/max_user_{name}")).ok()?;
        text.trim().parse().ok()
    };
    let tried = rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::CLOEXEC).and_then(|one| {
        rustix::fs::inotify::add_watch(&one, "/", rustix::fs::inotify::WatchFlags::DELETE_SELF).map(|_| ())
    });
    let problem = tried.err().map(|error| std::io::Error::from(error).to_string());
    Watching { instances: limit("instances"), watches: limit("watches"), problem }
}

#[cfg(not(target_os = "linux"))]
fn watching() -> Watching {
    Watching { instances: None, watches: None, problem: None }
}
