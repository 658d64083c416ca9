//! Small things of events, any of them.

use proptest::prelude::*;

use crate::run::*;

pub(super) fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(1_764_000_000_000 + ms)
}

pub(super) fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-zA-Z0-9 \"\\\\{},:\n]{0,20}", any::<String>(), Just(r#""subagentSource":"child""#.to_owned())]
}

pub(super) fn maybe<T: Clone + std::fmt::Debug + 'static>(
    s: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Option<T>> {
    proptest::option::of(s).boxed()
}

pub(super) fn source() -> impl Strategy<Value = ControlSource> {
    (text(), maybe(text()), maybe(any::<u32>()), maybe(text()), maybe(text()), maybe(text()))
        .prop_map(|(via, user, pid, tty, key, reason)| ControlSource { via, user, pid, tty, key, reason })
}

pub(super) fn ending_cause() -> impl Strategy<Value = EndingCause> {
    proptest::sample::select(EndingCause::ALL.to_vec())
}

pub(super) fn target_state() -> impl Strategy<Value = TargetState> {
    proptest::sample::select(TargetState::ALL.to_vec())
}

pub(super) fn runner() -> impl Strategy<Value = RunnerKind> {
    prop_oneof![
        Just(RunnerKind::Pi),
        Just(RunnerKind::PiJson),
        Just(RunnerKind::Demo),
        (
            proptest::sample::select(Family::ALL.to_vec()),
            proptest::bool::ANY,
            proptest::sample::select(Permission::ALL.to_vec())
        )
            .prop_map(|(family, once, permission)| {
                let transport = if once { Transport::OneShot } else { Transport::Steerable };
                RunnerKind::Agent(AgentKind { family, transport, permission })
            }),
        (text(), proptest::collection::vec(text(), 0..3))
            .prop_map(|(command, args)| RunnerKind::ExternalCli { command, args }),
        text().prop_map(|provider| RunnerKind::ExternalJob { provider }),
        Just(RunnerKind::Other("goose".into())),
    ]
}

pub(super) fn amount() -> impl Strategy<Value = f64> {
    prop_oneof![(0u32..1_000_000).prop_map(f64::from), (0u32..1_000_000).prop_map(|n| f64::from(n) / 1024.0)]
}

pub(super) fn counts() -> BoxedStrategy<Option<Limit<u64>>> {
    maybe((maybe(0u64..1 << 50), maybe(0u64..1 << 50)).prop_map(|(soft, hard)| Limit { soft, hard }))
}

pub(super) fn limits() -> impl Strategy<Value = Limits> {
    let names = || proptest::collection::vec(text(), 0..3);
    let block = prop_oneof![Just(ToolBlock::All), names().prop_map(ToolBlock::Names)];
    let turns = maybe((0u64..1 << 50, 0u64..9).prop_map(|(max, grace)| TurnLimit { max, grace }));
    let cost = maybe(
        (maybe(amount()), maybe(amount()))
            .prop_map(|(soft, hard)| Limit { soft: soft.map(CostUsd), hard: hard.map(CostUsd) }),
    );
    let times = (maybe(0u64..1 << 50), maybe(0u64..1 << 50));
    (times, turns, counts(), block, counts(), cost, names(), any::<[bool; 2]>()).prop_map(
        |((idle_ms, tool_ms), turns, tool_calls, tool_block, tokens, cost, tool_exempt, flags)| {
            let [usage_spares_children, tool_calls_observed] = flags;
            Limits {
                idle_ms,
                turns,
                tool_calls,
                tool_block,
                tokens,
                cost,
                tool_ms,
                tool_exempt,
                usage_spares_children,
                tool_calls_observed,
            }
        },
    )
}

pub(super) fn thresholds() -> impl Strategy<Value = Thresholds> {
    let ms = || maybe(0u64..1 << 50);
    let tools = proptest::collection::btree_map(text(), 0u64..1 << 50, 0..3);
    let more = (ms(), ms(), ms(), proptest::collection::vec(text(), 0..3));
    (any::<bool>(), ms(), ms(), tools, ms(), ms(), ms(), more).prop_map(
        |(enabled, idle_ms, tool_open_ms, tool_open_of, long_ms, long_turns, long_tokens, more)| {
            let (failures, first_event_ms, repeats, exempt) = more;
            Thresholds {
                enabled,
                idle_ms,
                tool_open_ms,
                tool_open_of,
                exempt,
                long_ms,
                long_turns,
                long_tokens,
                failures,
                first_event_ms,
                repeats,
            }
        },
    )
}

pub(super) fn notice() -> impl Strategy<Value = Box<Notice>> {
    let measure =
        || maybe(prop_oneof![(0u64..1 << 50).prop_map(Amount::Millis), (0u64..1 << 50).prop_map(Amount::Count)]);
    let reason = proptest::sample::select(Reason::ALL.to_vec());
    let condition = (reason, text(), 0i64..9999, measure(), measure(), text());
    (text(), condition, 0i64..9999, 1u32..9, maybe(0i64..9999)).prop_map(|(id, condition, raised, times, known)| {
        let (reason, subject, since, threshold, amount, evidence) = condition;
        let condition = Condition { reason, subject, since: at(since), threshold, amount, evidence };
        Box::new(Notice { id, condition, raised_at: at(raised), times, acknowledged: known.map(at) })
    })
}

pub(super) fn metric() -> impl Strategy<Value = Metric> {
    proptest::sample::select(Metric::ALL.to_vec())
}

pub(super) fn raise() -> impl Strategy<Value = Raise> {
    let time = || (1u64..1 << 31).prop_map(std::time::Duration::from_millis);
    let end = || proptest::sample::select(vec![End::Soft, End::Hard]);
    prop_oneof![
        time().prop_map(Raise::Time),
        time().prop_map(Raise::Idle),
        (1u64..Limits::TOOL_MOST).prop_map(|ms| Raise::ToolTimeout(std::time::Duration::from_millis(ms))),
        (1u64..1 << 50).prop_map(Raise::Turns),
        (0u64..1 << 50).prop_map(Raise::TurnsGrace),
        (end(), 1u64..1 << 50).prop_map(|(end, n)| Raise::ToolCalls(end, n)),
        (end(), 1u64..1 << 50).prop_map(|(end, n)| Raise::Tokens(end, n)),
        (end(), amount()).prop_map(|(end, n)| Raise::Cost(end, CostUsd(n + 0.5))),
    ]
}

pub(super) fn question() -> impl Strategy<Value = Box<Question>> {
    let choice = (text(), text(), text()).prop_map(|(id, label, kind)| Choice { id, label, kind });
    let kind = proptest::sample::select(QuestionKind::ALL.to_vec());
    let asking = (text(), kind, text(), maybe(text()), text(), maybe(text()), any::<bool>(), any::<bool>());
    let asking = (asking, text(), any::<bool>());
    let choices = proptest::collection::vec(choice, 0..3);
    (text(), asking, choices, 0i64..9999, maybe(0i64..9999)).prop_map(|(name, asking, choices, asked, until)| {
        let ((id, kind, text, tool, args, call, free, by_file), detail, many) = asking;
        let (within_ms, repeat) = (None, None);
        let asking =
            Asking { id, kind, text, tool, args, detail, call, choices, many, free, within_ms, by_file, repeat };
        Box::new(Question { id: name, asking, asked_at: at(asked), until: until.map(at) })
    })
}

pub(super) fn answered() -> impl Strategy<Value = What> {
    let answer = prop_oneof![
        Just(Answer::Allow),
        Just(Answer::Dismiss),
        maybe(text()).prop_map(Answer::Deny),
        text().prop_map(Answer::Text),
        "o[a-z]{0,5}".prop_map(Answer::Choose),
        (proptest::collection::vec("o[a-z]{0,5}", 1..4), maybe(text()))
            .prop_map(|(ids, text)| Answer::Several(ids, text)),
    ];
    let by = proptest::sample::select(AnsweredBy::ALL.to_vec());
    ((0u32..9).prop_map(StepId), text(), text(), answer, by, maybe(source()))
        .prop_map(|(step, id, text, answer, by, source)| What::QuestionAnswered { step, id, text, answer, by, source })
}
