use super::*;

fn asked(level: AcceptanceLevel) -> Acceptance {
    let criterion =
        |id: &str, recommended| Criterion { id: id.into(), must: "hold".into(), recommended, ..Criterion::default() };
    Acceptance {
        level,
        explicit: true,
        criteria: vec![criterion("criterion-1", false), criterion("nice", true)],
        evidence: vec!["changed-files".into(), "commands-run".into(), "no-staged-files".into()],
        ..Acceptance::default()
    }
}

fn full() -> AcceptanceReport {
    let claim = |what: &str, status: &str| Claim { what: what.into(), status: status.into(), evidence: "so".into() };
    AcceptanceReport {
        criteria: vec![claim("Criterion 1", "satisfied")],
        lists: vec![("changedFiles".into(), Vec::new())],
        commands: Some(vec![claim("make", "passed")]),
        no_staged_files: Some(true),
        ..AcceptanceReport::default()
    }
}

fn status(asked: &Acceptance, reported: Reported, staged: Option<&[String]>) -> AcceptanceStatus {
    Ledger::judge(asked, reported, staged).verified(Vec::new()).status
}

#[test]
fn a_level_asks_for_what_it_says() {
    use AcceptanceLevel as L;
    use AcceptanceStatus as S;
    let missing = || Err("no report".to_owned());
    let poor = || Ok(AcceptanceReport { notes: Some("done".into()), ..AcceptanceReport::default() });
    for (level, none, some, all) in [
        (L::None, S::NotRequired, S::NotRequired, S::NotRequired),
        (L::Attested, S::Rejected, S::Attested, S::Attested),
        (L::Checked, S::Rejected, S::Rejected, S::Checked),
        // To be verified without a command is not to be verified.
        (L::Verified, S::Rejected, S::Rejected, S::Rejected),
    ] {
        let asked = asked(level);
        let of = |reported| status(&asked, reported, Some(&[]));
        assert_eq!((of(missing()), of(poor()), of(Ok(full()))), (none, some, all), "{level:?}");
    }
}

#[test]
fn every_part_of_a_complete_report_counts() {
    let asked = asked(AcceptanceLevel::Checked);
    type Change = fn(&mut AcceptanceReport);
    let changes: [(Change, &str); 6] = [
        (|r| r.criteria.clear(), "not in the report"),
        (|r| r.criteria[0].status = "not-satisfied".into(), "reported as not-satisfied"),
        (|r| r.lists.clear(), "lacks changed-files"),
        (|r| r.commands = Some(Vec::new()), "lacks commands-run"),
        (|r| r.no_staged_files = Some(false), "lacks no-staged-files"),
        (|r| r.no_staged_files = None, "lacks no-staged-files"),
    ];
    for (change, why) in changes {
        let mut report = full();
        change(&mut report);
        let error = Ledger::judge(&asked, Ok(report), Some(&[])).verified(Vec::new()).failure().unwrap();
        assert!(error.starts_with("Acceptance rejected: ") && error.contains(why), "{error}");
    }
    let staged = ["a.rs".to_owned()];
    let error = Ledger::judge(&asked, Ok(full()), Some(&staged)).failure().unwrap();
    assert!(error.contains("files are staged: a.rs"), "{error}");
    // Where it cannot be known the report's word is taken.
    assert_eq!(status(&asked, Ok(full()), None), AcceptanceStatus::Checked);
}

#[test]
fn commands_and_reviews_have_the_last_word() {
    let asked = Acceptance { review: Some(Review::default()), ..asked(AcceptanceLevel::Verified) };
    let run = |code, timed_out, allow_failure| VerifyRun {
        command: "make".into(),
        exit_code: code,
        timed_out,
        allow_failure,
        ..VerifyRun::default()
    };
    for (runs, evidence, words) in [
        (vec![run(Some(0), false, false)], AcceptanceStatus::Verified, ["passed"].as_slice()),
        (vec![run(Some(2), false, false)], AcceptanceStatus::Rejected, &["failed"]),
        (vec![run(None, true, false)], AcceptanceStatus::Rejected, &["timed-out"]),
        (
            vec![run(Some(0), false, false), run(Some(1), false, true)],
            AcceptanceStatus::Verified,
            &["passed", "allowed-failure"],
        ),
    ] {
        assert_eq!(runs.iter().map(VerifyRun::status).collect::<Vec<_>>(), words);
        let ledger = Ledger::judge(&asked, Ok(full()), Some(&[])).verified(runs);
        assert_eq!(ledger.evidence, evidence);
        let reviewed = evidence == AcceptanceStatus::Verified;
        let status = if reviewed { AcceptanceStatus::ReviewRequired } else { AcceptanceStatus::Rejected };
        assert_eq!((ledger.status, ledger.failure().is_some()), (status, !reviewed));
    }
}

#[test]
fn only_what_somebody_asked_for_fails_a_step() {
    let rejected = |change: fn(&mut Acceptance)| {
        let mut asked = asked(AcceptanceLevel::Checked);
        change(&mut asked);
        Ledger::judge(&asked, Err("no report".into()), None).failure()
    };
    assert_eq!(rejected(|_| {}).as_deref(), Some("Acceptance rejected: no report"));
    assert_eq!(rejected(|a| a.explicit = false), None);
    assert_eq!(rejected(|a| a.contract = true), None);
    assert!(rejected(|a| (a.contract, a.gate) = (true, true)).is_some());
    let stopped = Ledger::skipped(&asked(AcceptanceLevel::Checked), "stopped", "it was stopped");
    assert_eq!((stopped.status, stopped.checks[0].id.as_str()), (AcceptanceStatus::Rejected, "stopped"));
    // Under a contract that asks for nothing a report may be missing.
    let mut nothing = asked(AcceptanceLevel::Attested);
    (nothing.contract, nothing.criteria, nothing.evidence) = (true, Vec::new(), Vec::new());
    assert_eq!(status(&nothing, Err("none".into()), None), AcceptanceStatus::Claimed);
    assert_eq!(prompt(&nothing), "");
}

#[test]
fn the_agent_is_told_what_is_asked_of_it() {
    let mut asked = asked(AcceptanceLevel::Verified);
    asked.verify = vec![Verify { id: "t".into(), command: "make test".into(), ..Verify::default() }];
    let text = prompt(&asked);
    for part in
        ["criterion-1: hold", "nice: hold (wished for)", "changed-files", "- t: make test", "```acceptance-report"]
    {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert_eq!(prompt(&Acceptance::default()), "");
}
