//! What a step's work has to show before it counts as accepted, and whether it does (runner-behaviour 9). Only runner
//! configs ask for it. Values and verdicts only: what an agent reports is read by [`crate::agents`], commands are run by
//! the engine.

use std::fmt::Write as _;

/// What is asked of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acceptance {
    /// How much is asked.
    pub level: AcceptanceLevel,
    /// Somebody asked for it; a rejection of what was only guessed fails nothing.
    pub explicit: bool,
    /// Why a level was guessed.
    pub inferred: Vec<String>,
    /// What must hold.
    pub criteria: Vec<Criterion>,
    /// Kinds of evidence that the report must have.
    pub evidence: Vec<String>,
    /// Commands that must succeed.
    pub verify: Vec<Verify>,
    /// Whether somebody else has to look at it: who, at what, and whether that is needed.
    pub review: Option<Review>,
    /// When the agent is to stop.
    pub stop_rules: Vec<String>,
    /// Why nothing is asked.
    pub reason: Option<String>,
    /// Under an agent contract a report may be missing, and a rejection alone fails nothing.
    pub contract: bool,
    /// Under an agent contract: a rejection fails the step all the same.
    pub gate: bool,
}

/// How much is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AcceptanceLevel {
    /// Nothing.
    #[default]
    None,
    /// A report.
    Attested,
    /// A report that is complete.
    Checked,
    /// A report that is complete, and commands that succeed.
    Verified,
}

impl AcceptanceLevel {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::None, Self::Attested, Self::Checked, Self::Verified];

    /// The word that files use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Attested => "attested",
            Self::Checked => "checked",
            Self::Verified => "verified",
        }
    }

    /// From the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == word)
    }
}

/// Something that must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Criterion {
    /// Its id in the report.
    pub id: String,
    /// What must hold.
    pub must: String,
    /// Kinds of evidence for it.
    pub evidence: Vec<String>,
    /// It is only wished for.
    pub recommended: bool,
}

/// A command that must succeed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verify {
    /// Its id.
    pub id: String,
    /// What the shell is given.
    pub command: String,
    /// How long it may take, in milliseconds; 1 or more.
    pub timeout_ms: Option<u64>,
    /// Its folder, relative to the step's.
    pub cwd: Option<String>,
    /// Variables for it.
    pub env: Vec<(String, String)>,
    /// That it fails is no reason to reject.
    pub allow_failure: bool,
}

impl Verify {
    /// How long a command may take that says nothing else, in milliseconds.
    pub const TIMEOUT_MS: u64 = 120_000;
}

/// Somebody else has to look at the work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Review {
    /// Which agent.
    pub agent: Option<String>,
    /// At what.
    pub focus: Option<String>,
    /// It can be left out.
    pub optional: bool,
}

/// What an agent reports of its work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceptanceReport {
    /// Criteria by their ids.
    pub criteria: Vec<Claim>,
    /// Lists of words by their names in the report; a list that is not there is not reported.
    pub lists: Vec<(String, Vec<String>)>,
    /// The commands that it ran.
    pub commands: Option<Vec<Claim>>,
    /// Nothing is staged for a commit.
    pub no_staged_files: Option<bool>,
    /// What was changed, in words.
    pub diff_summary: Option<String>,
    /// What else is to be said.
    pub notes: Option<String>,
}

impl AcceptanceReport {
    /// The names of its lists (run-directory 2.2).
    pub const LISTS: [&str; 5] =
        ["changedFiles", "testsAddedOrUpdated", "validationOutput", "residualRisks", "reviewFindings"];

    fn list(&self, name: &str) -> Option<&[String]> {
        self.lists.iter().find(|(known, _)| known == name).map(|(_, list)| list.as_slice())
    }
}

/// One thing that a report says: of a criterion, or of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The criterion's id, or the command.
    pub what: String,
    /// `satisfied`, `not-satisfied` or `not-applicable`; of a command `passed`, `failed` or `not-run`.
    pub status: String,
    /// What shows it.
    pub evidence: String,
}

/// How an acceptance went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// What it came to.
    pub status: AcceptanceStatus,
    /// What the evidence alone came to, before anybody reviewed it.
    pub evidence: AcceptanceStatus,
    /// What was asked.
    pub asked: Acceptance,
    /// What the agent reports.
    pub report: Option<AcceptanceReport>,
    /// Why there is no report.
    pub report_error: Option<String>,
    /// What the runner looked at.
    pub checks: Vec<Check>,
    /// The commands that the runner ran.
    pub runs: Vec<VerifyRun>,
}

/// What an acceptance came to (run-directory 2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AcceptanceStatus {
    #[default]
    Pending,
    NotRequired,
    Claimed,
    Attested,
    Checked,
    Verified,
    Rejected,
    ReviewRequired,
    Reviewed,
    Accepted,
}

impl AcceptanceStatus {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Pending,
        Self::NotRequired,
        Self::Claimed,
        Self::Attested,
        Self::Checked,
        Self::Verified,
        Self::Rejected,
        Self::ReviewRequired,
        Self::Reviewed,
        Self::Accepted,
    ];

    /// The word that files use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::NotRequired => "not-required",
            Self::Claimed => "claimed",
            Self::Attested => "attested",
            Self::Checked => "checked",
            Self::Verified => "verified",
            Self::Rejected => "rejected",
            Self::ReviewRequired => "review-required",
            Self::Reviewed => "reviewed",
            Self::Accepted => "accepted",
        }
    }

    /// From the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// Something that the runner looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// What.
    pub id: String,
    /// How it went.
    pub status: CheckStatus,
    /// The same in words.
    pub message: String,
}

/// How a check went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CheckStatus {
    #[default]
    Passed,
    Failed,
    NotApplicable,
}

impl CheckStatus {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Passed, Self::Failed, Self::NotApplicable];

    /// The word that files use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::NotApplicable => "not-applicable",
        }
    }

    /// From the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// A command that the runner ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyRun {
    /// Its id.
    pub id: String,
    /// What the shell was given.
    pub command: String,
    /// Its folder.
    pub cwd: String,
    /// Its exit code; `None` when it was ended or could not be started.
    pub exit_code: Option<i32>,
    /// Its time was over.
    pub timed_out: bool,
    /// That it fails is no reason to reject.
    pub allow_failure: bool,
    /// What it printed, cut and without secrets.
    pub stdout: String,
    /// What it printed as errors, cut and without secrets.
    pub stderr: String,
    /// How long it took, in milliseconds.
    pub ms: u64,
}

impl VerifyRun {
    /// The most characters of each stream that are kept.
    pub const KEPT: usize = 12_000;

    /// The word that files use for how it went.
    #[must_use]
    pub const fn status(&self) -> &'static str {
        match (self.exit_code, self.timed_out, self.allow_failure) {
            (Some(0), false, _) => "passed",
            (_, _, true) => "allowed-failure",
            (_, true, false) => "timed-out",
            _ => "failed",
        }
    }

    const fn is_good(&self) -> bool {
        self.allow_failure || matches!(self.exit_code, Some(0))
    }
}

/// What a report came to, or why there is none.
pub type Reported = Result<AcceptanceReport, String>;

impl Ledger {
    /// The ledger of a step that was ended before it could show anything; `why` is `stopped`, `timeout` or `turn-budget`.
    #[must_use]
    pub fn skipped(asked: &Acceptance, why: &str, message: &str) -> Self {
        if asked.level == AcceptanceLevel::None {
            return Self::not_required(asked);
        }
        let check = Check { id: why.to_owned(), status: CheckStatus::Failed, message: message.to_owned() };
        Self { checks: vec![check], ..Self::of(asked, AcceptanceStatus::Rejected) }
    }

    /// What a report and a look at the folder come to; `staged` are the files staged there, `None` where that cannot be
    /// known. The commands are still to be run when this is not rejected.
    #[must_use]
    pub fn judge(asked: &Acceptance, reported: Reported, staged: Option<&[String]>) -> Self {
        if asked.level == AcceptanceLevel::None {
            return Self::not_required(asked);
        }
        let report = match reported {
            Ok(report) => report,
            Err(_) if asked.contract && asked.criteria.is_empty() && asked.evidence.is_empty() => {
                return Self::of(asked, AcceptanceStatus::Claimed);
            }
            Err(error) => return Self { report_error: Some(error), ..Self::of(asked, AcceptanceStatus::Rejected) },
        };
        let (status, checks) = if asked.level == AcceptanceLevel::Attested {
            (AcceptanceStatus::Attested, Vec::new())
        } else {
            let checks = checks(asked, &report, staged);
            let failed = checks.iter().any(|check| check.status == CheckStatus::Failed);
            (if failed { AcceptanceStatus::Rejected } else { AcceptanceStatus::Checked }, checks)
        };
        Self { report: Some(report), checks, ..Self::of(asked, status) }
    }

    /// The same once its commands have been run.
    #[must_use]
    pub fn verified(mut self, runs: Vec<VerifyRun>) -> Self {
        if self.status != AcceptanceStatus::Rejected && !runs.is_empty() {
            let good = runs.iter().all(VerifyRun::is_good);
            self.status = if good { AcceptanceStatus::Verified } else { AcceptanceStatus::Rejected };
        } else if self.status == AcceptanceStatus::Checked && self.asked.level == AcceptanceLevel::Verified {
            let message = "it is to be verified, and there is no command for it".to_owned();
            self.checks.push(Check { id: "verify".to_owned(), status: CheckStatus::Failed, message });
            self.status = AcceptanceStatus::Rejected;
        }
        self.evidence = self.status;
        self.runs = runs;
        let needed = self.asked.review.as_ref().is_some_and(|review| !review.optional);
        if needed && !matches!(self.status, AcceptanceStatus::Rejected | AcceptanceStatus::NotRequired) {
            self.status = AcceptanceStatus::ReviewRequired;
        }
        self
    }

    /// Why the step fails for it; `None` when it does not.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        let fails = if self.asked.contract { self.asked.gate } else { self.asked.explicit };
        if self.status != AcceptanceStatus::Rejected || !fails {
            return None;
        }
        let failed = self.checks.iter().filter(|check| check.status == CheckStatus::Failed);
        let mut why: Vec<String> = self.report_error.clone().into_iter().collect();
        why.extend(failed.map(|check| check.message.clone()));
        let runs = self.runs.iter().filter(|run| !run.is_good());
        why.extend(runs.map(|run| format!("`{}` {}", run.command, run.status().replace('-', " "))));
        Some(format!("Acceptance rejected: {}", why.join("; ")))
    }

    fn not_required(asked: &Acceptance) -> Self {
        Self::of(asked, AcceptanceStatus::NotRequired)
    }

    fn of(asked: &Acceptance, status: AcceptanceStatus) -> Self {
        Self { status, evidence: status, asked: asked.clone(), ..Self::default() }
    }
}

/// Whether a report has all that is asked of it.
fn checks(asked: &Acceptance, report: &AcceptanceReport, staged: Option<&[String]>) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut add = |id: String, status, message| checks.push(Check { id, status, message });
    for criterion in asked.criteria.iter().filter(|c| !c.recommended) {
        let id = format!("criterion:{}", criterion.id);
        let claim = report.criteria.iter().find(|claim| token(&claim.what) == token(&criterion.id));
        let (status, message) = match claim {
            None => (CheckStatus::Failed, format!("the criterion `{}` is not in the report", criterion.id)),
            Some(claim) if claim.status == "satisfied" => {
                (CheckStatus::Passed, format!("the criterion `{}` is satisfied", criterion.id))
            }
            Some(claim) => {
                (CheckStatus::Failed, format!("the criterion `{}` is reported as {}", criterion.id, claim.status))
            }
        };
        add(id, status, message);
    }
    for kind in &asked.evidence {
        let status = evidence(report, kind);
        let message = match status {
            CheckStatus::Passed => format!("the report has {kind}"),
            CheckStatus::NotApplicable => format!("the report says that there is nothing of {kind}"),
            CheckStatus::Failed => format!("the report lacks {kind}"),
        };
        add(format!("evidence:{kind}"), status, message);
        if kind == "no-staged-files" {
            let (status, message) = match staged {
                None => (CheckStatus::NotApplicable, "whether files are staged is not known here".to_owned()),
                Some([]) => (CheckStatus::Passed, "no files are staged".to_owned()),
                Some(files) => (CheckStatus::Failed, format!("files are staged: {}", files.join(", "))),
            };
            add(kind.clone(), status, message);
        }
    }
    checks
}

/// Whether a report has this kind of evidence.
fn evidence(report: &AcceptanceReport, kind: &str) -> CheckStatus {
    let passed = |good: bool| if good { CheckStatus::Passed } else { CheckStatus::Failed };
    let text = |text: &Option<String>| passed(text.as_ref().is_some_and(|t| !t.trim().is_empty()));
    // An empty list says that there was nothing, which of changes and tests may be true.
    let named = |name: &str| match report.list(name) {
        None => CheckStatus::Failed,
        Some([]) => CheckStatus::NotApplicable,
        Some(_) => CheckStatus::Passed,
    };
    match kind {
        "changed-files" => named("changedFiles"),
        "tests-added" => named("testsAddedOrUpdated"),
        "commands-run" => passed(report.commands.as_ref().is_some_and(|c| !c.is_empty())),
        "validation-output" => passed(report.list("validationOutput").is_some_and(|l| !l.is_empty())),
        "residual-risks" => passed(report.list("residualRisks").is_some()),
        "review-findings" => passed(report.list("reviewFindings").is_some()),
        "no-staged-files" => passed(report.no_staged_files == Some(true)),
        "diff-summary" => text(&report.diff_summary),
        "manual-notes" => text(&report.notes),
        _ => CheckStatus::NotApplicable,
    }
}

/// Ids are the same in any case and with any of the usual separators.
fn token(id: &str) -> String {
    let words = id.split(|c: char| c.is_whitespace() || matches!(c, '_' | '-')).filter(|w| !w.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("-")
}

/// What the agent is told at the end of its task; empty when nothing is asked.
#[must_use]
pub fn prompt(asked: &Acceptance) -> String {
    if asked.level == AcceptanceLevel::None
        || (asked.contract && asked.criteria.is_empty() && asked.evidence.is_empty())
    {
        return String::new();
    }
    let mut text = format!("\n\n## Acceptance\n\nLevel: {}. Words alone are not enough: ", asked.level.as_str());
    text.push_str("end your final answer with a report of what you did.\n\nWhat must hold:\n");
    for criterion in &asked.criteria {
        let wish = if criterion.recommended { " (wished for)" } else { "" };
        let _ = writeln!(text, "- {}: {}{wish}", criterion.id, criterion.must);
    }
    if asked.criteria.is_empty() {
        text.push_str("- what was asked is done\n");
    }
    if !asked.evidence.is_empty() {
        let _ = writeln!(text, "\nEvidence that the report needs: {}.", asked.evidence.join(", "));
    }
    if !asked.verify.is_empty() {
        text.push_str("\nThese commands are run when you are done, and must succeed:\n");
        for verify in &asked.verify {
            let _ = writeln!(text, "- {}: {}", verify.id, verify.command);
        }
    }
    if !asked.stop_rules.is_empty() {
        text.push_str("\nStop when:\n");
        for rule in &asked.stop_rules {
            let _ = writeln!(text, "- {rule}");
        }
    }
    let first = asked.criteria.iter().find(|c| !c.recommended).map_or("criterion-1", |c| c.id.as_str());
    let _ = write!(
        text,
        "\nThe report is a block of JSON as below. A list may be empty; `status` is satisfied, not-satisfied or \
         not-applicable, `result` is passed, failed or not-run.\n\n```acceptance-report\n{{\n  \"criteriaSatisfied\": \
         [{{ \"id\": {}, \"status\": \"satisfied\", \"evidence\": \"what shows it\" }}],\n  \"changedFiles\": [],\n  \
         \"testsAddedOrUpdated\": [],\n  \"commandsRun\": [{{ \"command\": \"...\", \"result\": \"passed\", \"summary\": \
         \"...\" }}],\n  \"validationOutput\": [],\n  \"residualRisks\": [],\n  \"noStagedFiles\": true,\n  \
         \"diffSummary\": \"...\",\n  \"reviewFindings\": [],\n  \"manualNotes\": \"...\"\n}}\n```\n",
        serde_json::Value::from(first)
    );
    text
}

#[cfg(test)]
mod tests;
