//! Whether what stands in the control inbox is valid (run-directory 3.3, 3.5, 3.6, 3.9). Pure: bytes in, requests or reasons
//! out.

use serde_json::{Map, Value};

use super::look::Look;
use super::request::{Ack, ControlRequest, OwnRequest, OwnWhat, Steer};
use super::status_read::source as read_source;
use crate::run::{ControlSource, SteerMode, SteerRequest, Steerable, StepId, TargetState, Timestamp};

/// The highest flat index that a request may name (run-directory 3.3).
const HIGHEST_INDEX: f64 = 1_000_000.0;
/// The most targets of one request (run-directory 3.3).
const MOST_TARGETS: usize = 1000;

/// The JSON object in these bytes.
fn object(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("it is not a JSON object".into()),
        Err(error) => Err(format!("it is not valid JSON: {error}")),
    }
}

/// Who asked: our own object where there is one, else the words of the reference.
fn who(look: &Look<'_>) -> Option<ControlSource> {
    let own = look.obj("subdeck").map(|s| read_source(&s)).or_else(|| look.obj("source").map(|s| read_source(&s)));
    let mut source = match (own, look.text("source")) {
        (Some(own), _) => own,
        (None, Some(via)) => ControlSource { via, ..ControlSource::default() },
        (None, None) => return None,
    };
    source.reason = source.reason.or_else(|| look.text("reason"));
    Some(source)
}

/// Who asked for a stop, interrupt or timeout, as far as the content says; they act whatever it says.
pub(super) fn source_of(bytes: &[u8]) -> ControlSource {
    object(bytes).ok().and_then(|o| who(&Look(&o))).unwrap_or_default()
}

/// A request to steer.
pub(super) fn steer(bytes: &[u8]) -> Result<ControlRequest, String> {
    let object = object(bytes)?;
    let look = Look(&object);
    if look.str("type") != Some("steer") {
        return Err("its type is not \"steer\"".into());
    }
    let id = look.text("id").ok_or("it has no id")?;
    check_id(&id)?;
    let message = look.str("message").ok_or("it has no message")?.trim();
    if message.is_empty() {
        return Err("its message is empty".into());
    }
    if message.len() > SteerRequest::MAX_BYTES {
        return Err(format!("its message has {} bytes, more than {}", message.len(), SteerRequest::MAX_BYTES));
    }
    let mode = match object.get("mode") {
        None => SteerMode::Steer,
        Some(Value::String(word)) => SteerMode::parse(word).ok_or_else(|| format!("its mode {word:?} is unknown"))?,
        Some(_) => return Err("its mode is not a word".into()),
    };
    if let Some(source) = object.get("source").filter(|s| !s.is_object()) {
        let ok = source.as_str().is_some_and(|s| !s.trim().is_empty() && s.chars().count() <= 256);
        if !ok {
            return Err("its source is not a text of 1 to 256 characters".into());
        }
    }
    Ok(ControlRequest::Steer(Steer {
        id,
        at: moment(&look)?,
        message: message.to_owned(),
        mode,
        targets: targets(&object)?,
        source: who(&look),
    }))
}

fn check_id(id: &str) -> Result<(), String> {
    if id.is_empty() || id.chars().count() > 256 || id.contains(char::is_whitespace) {
        return Err("its id is not 1 to 256 characters without white space".into());
    }
    Ok(())
}

fn moment(look: &Look<'_>) -> Result<Timestamp, String> {
    match look.num("ts") {
        Some(ts) if ts > 0.0 => Ok(Timestamp::from_millis_f64(ts)),
        _ => Err("its ts is not a time in milliseconds".into()),
    }
}

fn targets(object: &Map<String, Value>) -> Result<Option<Vec<StepId>>, String> {
    match (object.get("targetIndex"), object.get("targetIndexes")) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err("it has both targetIndex and targetIndexes".into()),
        (Some(one), None) => Ok(Some(vec![index(one)?])),
        (None, Some(Value::Array(many))) if (1..=MOST_TARGETS).contains(&many.len()) => {
            let steps: Vec<StepId> = many.iter().map(index).collect::<Result<_, _>>()?;
            let mut unique = steps.clone();
            unique.sort_unstable();
            unique.dedup();
            if unique.len() == steps.len() { Ok(Some(steps)) } else { Err("its targetIndexes repeat".into()) }
        }
        (None, Some(_)) => Err("its targetIndexes are not 1 to 1000 indexes".into()),
    }
}

fn index(value: &Value) -> Result<StepId, String> {
    match value.as_f64() {
        Some(n) if n.fract() == 0.0 && (0.0..=HIGHEST_INDEX).contains(&n) => Ok(StepId(n as u32)),
        _ => Err("a target is not an index from 0 to 1000000".into()),
    }
}

/// A request in `stop-requests/`, of one step with `targetIndex`, else of the run. `steps` is how many steps there are,
/// where that is known.
pub(super) fn stop(file: &str, bytes: &[u8], steps: Option<usize>) -> Result<ControlRequest, String> {
    let object = object(bytes)?;
    let look = Look(&object);
    if look.str("type") != Some("stop") {
        return Err("its type is not \"stop\"".into());
    }
    let source = who(&look).unwrap_or_default();
    Ok(match object.get("targetIndex") {
        Some(target) => {
            let step = index(target)?;
            if let Some(count) = steps.filter(|count| step.flat() >= *count) {
                return Err(format!("there is no step {step}; the run has {count}"));
            }
            ControlRequest::StopStep { step, source, file: file.to_owned() }
        }
        None => ControlRequest::Stop { source },
    })
}

/// One of our own requests.
pub(super) fn own(bytes: &[u8]) -> Result<ControlRequest, String> {
    let object = object(bytes)?;
    let look = Look(&object);
    let need = |key: &str| look.text(key).ok_or_else(|| format!("it has no {key}"));
    let what = match look.str("type") {
        Some("budget") => {
            OwnWhat::Budget { key: need("key")?, value: object.get("value").cloned().ok_or("it has no value")? }
        }
        Some("answer") => {
            let (choice, text) = (look.text("choice"), look.text("text"));
            let choices = look.strings("choices").unwrap_or_default();
            if choice.is_none() && choices.is_empty() && text.is_none() {
                return Err("it has neither choice nor choices nor text".into());
            }
            OwnWhat::Answer { request: need("requestId")?, choice, choices, text }
        }
        Some("acknowledge") => OwnWhat::Acknowledge { attention: need("attentionId")? },
        Some("retract") => OwnWhat::Retract { request: need("requestId")? },
        Some("kill") => OwnWhat::Kill,
        Some(other) => return Err(format!("its type {other:?} is unknown")),
        None => return Err("it has no type".into()),
    };
    let id = need("id")?;
    check_id(&id)?;
    Ok(ControlRequest::Own(OwnRequest {
        id,
        at: moment(&look)?,
        source: who(&look).unwrap_or_default(),
        step: object.get("target").map(index).transpose()?,
        what,
    }))
}

/// A child's capability file; `None` for what is to be ignored.
pub(super) fn capability(bytes: &[u8]) -> Option<ControlRequest> {
    let object = object(bytes).ok()?;
    let look = Look(&object);
    if look.str("type") != Some("steer-capability") {
        return None;
    }
    let steerable = if look.bool("supported")? {
        Steerable::Yes
    } else {
        Steerable::No("child Pi session does not support steering".into())
    };
    Some(ControlRequest::Capability { step: index(object.get("index")?).ok()?, steerable })
}

/// A child's answer; `None` for what is to be ignored.
pub(super) fn ack(bytes: &[u8]) -> Option<ControlRequest> {
    let object = object(bytes).ok()?;
    let look = Look(&object);
    if look.str("type") != Some("steer-ack") {
        return None;
    }
    let state = match look.str("state")? {
        "delivered" => TargetState::Delivered,
        "queued" => TargetState::Queued,
        "failed" => TargetState::Failed,
        _ => return None,
    };
    Some(ControlRequest::Ack(Ack {
        id: look.text("requestId")?,
        step: index(object.get("index")?).ok()?,
        at: look.time("ts").unwrap_or_default(),
        state,
        message: look.text("message"),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn base() -> Value {
        json!({"type": "steer", "id": "r1", "ts": 1_764_000_694_800_i64, "message": " hello\n world ", "source": "operator-tui"})
    }

    fn read(change: impl FnOnce(&mut Map<String, Value>)) -> Result<Steer, String> {
        let mut value = base();
        change(value.as_object_mut().unwrap());
        match steer(value.to_string().as_bytes())? {
            ControlRequest::Steer(steer) => Ok(steer),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn valid_requests_are_read() {
        let plain = read(|_| {}).unwrap();
        assert_eq!(
            (plain.message.as_str(), plain.mode, plain.targets.clone()),
            ("hello\n world", SteerMode::Steer, None)
        );
        assert_eq!(plain.preview(), "hello world");
        assert_eq!(plain.source.unwrap().via, "operator-tui");
        let many = read(|o| drop(o.insert("targetIndexes".into(), json!([2, 0])))).unwrap();
        assert_eq!(many.targets, Some(vec![StepId(2), StepId(0)]));
        let one = read(|o| {
            o.insert("targetIndex".into(), json!(1.0));
            o.insert("mode".into(), json!("follow_up"));
        });
        let one = one.unwrap();
        assert_eq!((one.targets, one.mode), (Some(vec![StepId(1)]), SteerMode::FollowUp));
        let most = read(|o| drop(o.insert("message".into(), json!("x".repeat(131_072))))).unwrap();
        assert_eq!(most.preview().len(), 160);
    }

    #[test]
    fn every_rule_of_the_table_is_checked() {
        let table: Vec<(&str, Value)> = vec![
            ("type", json!("stop")),
            ("id", json!("")),
            ("id", json!("a b")),
            ("id", json!("x".repeat(257))),
            ("id", json!(7)),
            ("ts", json!(0)),
            ("ts", json!("1")),
            ("message", json!("  \n")),
            ("message", json!("x".repeat(131_073))),
            ("mode", json!("shout")),
            ("mode", json!(null)),
            ("targetIndex", json!(-1)),
            ("targetIndex", json!(0.5)),
            ("targetIndex", json!(1_000_001)),
            ("targetIndexes", json!([])),
            ("targetIndexes", json!([1, 1])),
            ("targetIndexes", json!((0..1001).collect::<Vec<_>>())),
            ("source", json!("  ")),
            ("source", json!("s".repeat(257))),
        ];
        for (key, value) in table {
            assert!(read(|o| drop(o.insert(key.into(), value.clone()))).is_err(), "{key}: {value}");
        }
        assert!(
            read(|o| {
                o.insert("targetIndex".into(), json!(1));
                o.insert("targetIndexes".into(), json!([1]));
            })
            .is_err()
        );
        for bytes in [&b""[..], b"[]", b"{", b"\xff"] {
            assert!(steer(bytes).is_err());
        }
    }

    #[test]
    fn stops_of_a_step_and_of_the_run_are_told_apart() {
        let source = ControlSource { via: "x".into(), ..ControlSource::default() };
        let third = br#"{"type":"stop","ts":1,"targetIndex":2,"childId":"step:2","source":"x"}"#;
        let want = ControlRequest::StopStep { step: StepId(2), source: source.clone(), file: "a.json".into() };
        for steps in [None, Some(3)] {
            assert_eq!(stop("a.json", third, steps), Ok(want.clone()));
        }
        assert_eq!(stop("a.json", third, Some(2)), Err("there is no step 3; the run has 2".into()));
        let stop = |bytes: &[u8]| stop("a.json", bytes, None);
        assert_eq!(stop(br#"{"type":"stop","source":"x"}"#).unwrap(), ControlRequest::Stop { source });
        assert!(stop(br#"{"type":"stop","targetIndex":"2"}"#).is_err());
        assert!(stop(b"").is_err());
    }

    #[test]
    fn own_requests_name_what_they_lack() {
        let ok = own(
            br#"{"type":"budget","id":"b","ts":5,"key":"tokens","value":9,"target":1,"source":{"via":"deck","pid":3}}"#,
        );
        let Ok(ControlRequest::Own(request)) = ok else { panic!("{ok:?}") };
        assert_eq!((request.step, request.source.via.as_str(), request.source.pid), (Some(StepId(1)), "deck", Some(3)));
        assert_eq!(request.what, OwnWhat::Budget { key: "tokens".into(), value: json!(9) });
        for (bytes, word) in [
            (&br#"{"type":"budget","id":"b","ts":5,"key":"tokens"}"#[..], "value"),
            (br#"{"type":"answer","id":"b","ts":5,"requestId":"q"}"#, "choice"),
            (br#"{"type":"dance","id":"b","ts":5}"#, "dance"),
            (br#"{"type":"kill","id":"b"}"#, "ts"),
            (br#"{"id":"b","ts":5}"#, "type"),
        ] {
            assert!(own(bytes).unwrap_err().contains(word), "{word}");
        }
    }

    #[test]
    fn children_are_understood_or_ignored() {
        let ack_of = |state: &str| {
            ack(json!({"type":"steer-ack","requestId":"r","index":1,"ts":9,"state":state}).to_string().as_bytes())
        };
        assert!(matches!(ack_of("queued"), Some(ControlRequest::Ack(Ack { state: TargetState::Queued, .. }))));
        assert_eq!(ack_of("lost"), None);
        let can =
            |v: &str| capability(format!(r#"{{"type":"steer-capability","index":0,"supported":{v}}}"#).as_bytes());
        assert!(matches!(can("true"), Some(ControlRequest::Capability { steerable: Steerable::Yes, .. })));
        assert!(matches!(can("false"), Some(ControlRequest::Capability { steerable: Steerable::No(_), .. })));
        assert_eq!(can("1"), None);
    }
}
