//! Looking into JSON objects from outside: whatever is missing, odd or of another type is absent (run-directory 10).

use serde_json::{Map, Value};

use crate::run::{StepId, Timestamp};

/// Typed looks into an object; a field of another type is as good as absent.
pub(super) struct Look<'a>(pub(super) &'a Map<String, Value>);

impl<'a> Look<'a> {
    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.str(key).map(str::to_owned)
    }
    pub(super) fn str(&self, key: &str) -> Option<&'a str> {
        self.0.get(key)?.as_str()
    }
    pub(super) fn num(&self, key: &str) -> Option<f64> {
        self.0.get(key)?.as_f64().filter(|n| n.is_finite())
    }
    /// A count: a fraction is cut, a negative one is none.
    pub(super) fn count(&self, key: &str) -> Option<u64> {
        let value = self.0.get(key)?;
        value.as_u64().or_else(|| value.as_f64().filter(|n| *n >= 0.0).map(|n| n as u64))
    }
    pub(super) fn small(&self, key: &str) -> Option<u32> {
        u32::try_from(self.count(key)?).ok()
    }
    pub(super) fn place(&self, key: &str) -> Option<usize> {
        usize::try_from(self.count(key)?).ok()
    }
    pub(super) fn code(&self, key: &str) -> Option<i32> {
        self.num(key).map(|n| n as i32)
    }
    pub(super) fn time(&self, key: &str) -> Option<Timestamp> {
        self.num(key).map(Timestamp::from_millis_f64)
    }
    pub(super) fn is(&self, key: &str) -> bool {
        self.0.get(key).and_then(Value::as_bool).unwrap_or(false)
    }
    pub(super) fn bool(&self, key: &str) -> Option<bool> {
        self.0.get(key)?.as_bool()
    }
    pub(super) fn obj(&self, key: &str) -> Option<Look<'a>> {
        self.0.get(key)?.as_object().map(Look)
    }
    pub(super) fn list(&self, key: &str) -> &'a [Value] {
        self.0.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
    /// A list of texts; `None` where there is no list.
    pub(super) fn strings(&self, key: &str) -> Option<Vec<String>> {
        let list = self.0.get(key)?.as_array()?;
        Some(list.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect())
    }
    pub(super) fn objs(&self, key: &str) -> impl Iterator<Item = Look<'a>> {
        self.list(key).iter().filter_map(|v| v.as_object().map(Look))
    }
    pub(super) fn pids(&self, key: &str) -> Vec<u32> {
        self.list(key).iter().filter_map(|v| u32::try_from(v.as_u64()?).ok()).collect()
    }
    pub(super) fn step(&self, key: &str) -> Option<StepId> {
        self.small(key).map(StepId)
    }
}
