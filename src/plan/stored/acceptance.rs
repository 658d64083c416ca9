//! What the work of a step has to show, in the stored plan. Of variables it holds the names.

use serde::{Deserialize, Serialize};

use super::is_false;
use crate::run::{Acceptance, AcceptanceLevel, Criterion, Review, Verify};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AcceptanceDoc {
    level: String,
    #[serde(default, skip_serializing_if = "is_false")]
    explicit: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inferred: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    criteria: Vec<CriterionDoc>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    evidence: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    verify: Vec<VerifyDoc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    review: Option<ReviewDoc>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stop_rules: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    contract: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    gate: bool,
}

#[derive(Serialize, Deserialize)]
struct CriterionDoc {
    id: String,
    #[serde(default)]
    must: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    evidence: Vec<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    recommended: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct VerifyDoc {
    id: String,
    command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    env: Vec<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    allow_failure: bool,
}

#[derive(Serialize, Deserialize)]
struct ReviewDoc {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    focus: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    optional: bool,
}

/// The name under which the value of a command's variable is handed over, among those of its step.
fn secret(verify: &str, name: &str) -> String {
    format!("verify {verify} {name}")
}

/// The values that may not be on disk.
pub(super) fn secrets(asked: &Acceptance) -> impl Iterator<Item = (String, String)> {
    asked.verify.iter().flat_map(|v| v.env.iter().map(|(name, value)| (secret(&v.id, name), value.clone())))
}

impl AcceptanceDoc {
    /// `None` when nothing is asked and nothing was said.
    pub(super) fn of(asked: &Acceptance) -> Option<Self> {
        (*asked != Acceptance::default()).then(|| Self {
            level: asked.level.as_str().to_owned(),
            explicit: asked.explicit,
            inferred: asked.inferred.clone(),
            criteria: asked
                .criteria
                .iter()
                .map(|c| CriterionDoc {
                    id: c.id.clone(),
                    must: c.must.clone(),
                    evidence: c.evidence.clone(),
                    recommended: c.recommended,
                })
                .collect(),
            evidence: asked.evidence.clone(),
            verify: asked
                .verify
                .iter()
                .map(|v| VerifyDoc {
                    id: v.id.clone(),
                    command: v.command.clone(),
                    timeout_ms: v.timeout_ms,
                    cwd: v.cwd.clone(),
                    env: v.env.iter().map(|(name, _)| name.clone()).collect(),
                    allow_failure: v.allow_failure,
                })
                .collect(),
            review: asked.review.as_ref().map(|r| ReviewDoc {
                agent: r.agent.clone(),
                focus: r.focus.clone(),
                optional: r.optional,
            }),
            stop_rules: asked.stop_rules.clone(),
            reason: asked.reason.clone(),
            contract: asked.contract,
            gate: asked.gate,
        })
    }

    /// Variables whose values are not to be had are left out, and `missing` is told their names. Who has no value for the
    /// command alone may have one for the whole step.
    pub(super) fn acceptance(
        self,
        value_of: &dyn Fn(&str) -> Option<String>,
        missing: &mut dyn FnMut(String),
    ) -> Acceptance {
        let verify = self.verify.into_iter().map(|v| {
            let mut env = Vec::with_capacity(v.env.len());
            for name in v.env {
                match value_of(&secret(&v.id, &name)).or_else(|| value_of(&name)) {
                    Some(value) => env.push((name, value)),
                    None => missing(name),
                }
            }
            Verify {
                env,
                id: v.id,
                command: v.command,
                timeout_ms: v.timeout_ms,
                cwd: v.cwd,
                allow_failure: v.allow_failure,
            }
        });
        Acceptance {
            level: AcceptanceLevel::parse(&self.level).unwrap_or_default(),
            explicit: self.explicit,
            inferred: self.inferred,
            criteria: self
                .criteria
                .into_iter()
                .map(|c| Criterion { id: c.id, must: c.must, evidence: c.evidence, recommended: c.recommended })
                .collect(),
            evidence: self.evidence,
            verify: verify.collect(),
            review: self.review.map(|r| Review { agent: r.agent, focus: r.focus, optional: r.optional }),
            stop_rules: self.stop_rules,
            reason: self.reason,
            contract: self.contract,
            gate: self.gate,
        }
    }
}
