//! The ledger of an acceptance as documents hold it (run-directory 2.2, AcceptanceLedger).

use super::json::{Json, Obj};
use super::look::Look;
use crate::run::{
    Acceptance, AcceptanceLevel, AcceptanceReport, AcceptanceStatus, Check, CheckStatus, Claim, Criterion, Ledger,
    Review, Verify, VerifyRun,
};

/// The document of a ledger.
pub(super) fn encode(ledger: &Ledger) -> Obj {
    let asked = &ledger.asked;
    let mut obj = Obj::new();
    obj.set("status", ledger.status.as_str()).set("evidenceStatus", ledger.evidence.as_str());
    obj.set("explicit", asked.explicit).set("effectiveAcceptance", acceptance(asked));
    obj.set("inferredReason", asked.inferred.iter().collect::<Json>());
    obj.set("criteria", asked.criteria.iter().map(criterion).collect::<Json>());
    obj.opt("childReport", ledger.report.as_ref().map(report));
    obj.opt("childReportParseError", ledger.report_error.as_ref());
    obj.set("runtimeChecks", ledger.checks.iter().map(check).collect::<Json>());
    obj.set("verifyRuns", ledger.runs.iter().map(run).collect::<Json>());
    if ledger.status == AcceptanceStatus::ReviewRequired {
        let mut review = Obj::new();
        review.set("status", "review-required").set("findings", Json::Arr(Vec::new()));
        obj.set("reviewResult", review);
    }
    // What an agent contract changes about it is nothing that the package's readers know.
    let mut own = Obj::new();
    own.flag("contract", asked.contract).flag("gate", asked.gate);
    obj.opt("subdeck", Some(own).filter(|o| !o.is_empty()));
    obj
}

fn acceptance(asked: &Acceptance) -> Obj {
    let mut obj = Obj::new();
    obj.set("level", asked.level.as_str()).set("explicit", asked.explicit);
    obj.set("inferredReason", asked.inferred.iter().collect::<Json>());
    obj.set("criteria", asked.criteria.iter().map(criterion).collect::<Json>());
    obj.set("evidence", asked.evidence.iter().collect::<Json>());
    let verify = asked.verify.iter().map(|v| {
        let mut entry = Obj::new();
        entry.set("id", &v.id).set("command", &v.command).opt("timeoutMs", v.timeout_ms).opt("cwd", v.cwd.as_ref());
        // Values of variables are never written.
        entry.flag("allowFailure", v.allow_failure);
        entry
    });
    obj.set("verify", verify.collect::<Json>());
    if let Some(review) = &asked.review {
        let mut entry = Obj::new();
        entry.opt("agent", review.agent.as_ref()).opt("focus", review.focus.as_ref()).set("required", !review.optional);
        obj.set("review", entry);
    }
    obj.set("stopRules", asked.stop_rules.iter().collect::<Json>()).opt("reason", asked.reason.as_ref());
    obj
}

fn criterion(criterion: &Criterion) -> Obj {
    let mut obj = Obj::new();
    obj.set("id", &criterion.id).set("must", &criterion.must);
    obj.set("evidence", criterion.evidence.iter().collect::<Json>());
    obj.set("severity", if criterion.recommended { "recommended" } else { "required" });
    obj
}

fn check(check: &Check) -> Obj {
    let mut obj = Obj::new();
    obj.set("id", &check.id).set("status", check.status.as_str()).set("message", &check.message);
    obj
}

fn run(run: &VerifyRun) -> Obj {
    let mut obj = Obj::new();
    obj.set("id", &run.id).set("command", &run.command).set("cwd", &run.cwd);
    obj.set("exitCode", run.exit_code.map_or(Json::Null, Json::from)).set("status", run.status());
    obj.opt("stdout", Some(&run.stdout).filter(|t| !t.is_empty()));
    obj.opt("stderr", Some(&run.stderr).filter(|t| !t.is_empty())).set("durationMs", run.ms);
    obj
}

fn report(report: &AcceptanceReport) -> Obj {
    let mut obj = Obj::new();
    if !report.criteria.is_empty() {
        let claims = report.criteria.iter().map(|c| {
            let mut claim = Obj::new();
            claim.set("id", &c.what).set("status", &c.status).set("evidence", &c.evidence);
            claim
        });
        obj.set("criteriaSatisfied", claims.collect::<Json>());
    }
    for (name, list) in &report.lists {
        obj.set(name, list.iter().collect::<Json>());
    }
    if let Some(commands) = &report.commands {
        let commands = commands.iter().map(|c| {
            let mut claim = Obj::new();
            claim.set("command", &c.what).set("result", &c.status).set("summary", &c.evidence);
            claim
        });
        obj.set("commandsRun", commands.collect::<Json>());
    }
    obj.opt("noStagedFiles", report.no_staged_files).opt("diffSummary", report.diff_summary.as_ref());
    obj.opt("manualNotes", report.notes.as_ref());
    obj
}

/// A ledger from the object that `key` names.
pub(super) fn read(look: &Look<'_>, key: &str) -> Option<Ledger> {
    let look = look.obj(key)?;
    let status = |key| look.str(key).and_then(AcceptanceStatus::parse);
    let mut asked = look.obj("effectiveAcceptance").map(|a| read_acceptance(&a)).unwrap_or_default();
    if let Some(own) = look.obj("subdeck") {
        (asked.contract, asked.gate) = (own.is("contract"), own.is("gate"));
    }
    let status_now = status("status")?;
    Some(Ledger {
        status: status_now,
        evidence: status("evidenceStatus").unwrap_or(status_now),
        asked,
        report: look.obj("childReport").map(|r| read_report(&r)),
        report_error: look.text("childReportParseError"),
        checks: look
            .objs("runtimeChecks")
            .filter_map(|c| {
                let status = c.str("status").and_then(CheckStatus::parse)?;
                Some(Check { id: c.text("id")?, status, message: c.text("message").unwrap_or_default() })
            })
            .collect(),
        runs: look.objs("verifyRuns").filter_map(|r| read_run(&r)).collect(),
    })
}

fn read_acceptance(look: &Look<'_>) -> Acceptance {
    let strings = |key| look.strings(key).unwrap_or_default();
    Acceptance {
        level: look.str("level").and_then(AcceptanceLevel::parse).unwrap_or_default(),
        explicit: look.is("explicit"),
        inferred: strings("inferredReason"),
        criteria: look
            .objs("criteria")
            .filter_map(|c| {
                Some(Criterion {
                    id: c.text("id")?,
                    must: c.text("must").unwrap_or_default(),
                    evidence: c.strings("evidence").unwrap_or_default(),
                    recommended: c.str("severity") == Some("recommended"),
                })
            })
            .collect(),
        evidence: strings("evidence"),
        verify: look
            .objs("verify")
            .filter_map(|v| {
                Some(Verify {
                    id: v.text("id")?,
                    command: v.text("command")?,
                    timeout_ms: v.count("timeoutMs"),
                    cwd: v.text("cwd"),
                    env: Vec::new(),
                    allow_failure: v.is("allowFailure"),
                })
            })
            .collect(),
        review: look.obj("review").map(|r| Review {
            agent: r.text("agent"),
            focus: r.text("focus"),
            optional: r.bool("required") == Some(false),
        }),
        stop_rules: strings("stopRules"),
        reason: look.text("reason"),
        contract: false,
        gate: false,
    }
}

fn read_run(look: &Look<'_>) -> Option<VerifyRun> {
    let status = look.str("status");
    Some(VerifyRun {
        id: look.text("id")?,
        command: look.text("command").unwrap_or_default(),
        cwd: look.text("cwd").unwrap_or_default(),
        exit_code: look.code("exitCode"),
        timed_out: status == Some("timed-out"),
        allow_failure: status == Some("allowed-failure"),
        stdout: look.text("stdout").unwrap_or_default(),
        stderr: look.text("stderr").unwrap_or_default(),
        ms: look.count("durationMs").unwrap_or(0),
    })
}

fn read_report(look: &Look<'_>) -> AcceptanceReport {
    let claims = |key: &str, what: &str, status: &str, evidence: &str| {
        look.objs(key)
            .map(|c| Claim {
                what: c.text(what).unwrap_or_default(),
                status: c.text(status).unwrap_or_default(),
                evidence: c.text(evidence).unwrap_or_default(),
            })
            .collect()
    };
    AcceptanceReport {
        criteria: claims("criteriaSatisfied", "id", "status", "evidence"),
        lists: AcceptanceReport::LISTS
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), look.strings(name)?)))
            .collect(),
        commands: look.0.contains_key("commandsRun").then(|| claims("commandsRun", "command", "result", "summary")),
        no_staged_files: look.bool("noStagedFiles"),
        diff_summary: look.text("diffSummary"),
        notes: look.text("manualNotes").or_else(|| look.text("notes")),
    }
}
