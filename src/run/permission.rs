//! Which questions need nobody: what a plan permits a tool, and what becomes of a question in a run that nobody attends.

use super::{Answer, AnsweredBy, Asking, Permission, QuestionKind};

/// What a tool may do: `Write`, `Bash(git *)`, `mcp__*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRule {
    /// The tool, and in brackets what it is used for; `*` stands for anything.
    pub pattern: String,
    /// What it may do.
    pub permission: Permission,
}

/// What becomes of a question in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnPermission {
    /// It waits for a person.
    #[default]
    Ask,
    /// Yes, where that is an answer.
    Allow,
    /// No.
    Deny,
    /// The run pauses.
    Fail,
}

impl OnPermission {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ask, Self::Allow, Self::Deny, Self::Fail];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Fail => "fail",
        }
    }

    /// From the word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|on| on.word() == word)
    }
}

/// What is to be done about a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// It is answered at once.
    Answer(Answer, AnsweredBy),
    /// A person is asked.
    Ask,
    /// A person would have to be asked and cannot be: the run pauses.
    Fail,
}

/// Decides about a question: by the rules of its step, then by what the step may do, then by who attends the run.
#[must_use]
pub fn ruling(asking: &Asking, permission: Permission, rules: &[ToolRule], on: OnPermission) -> Ruling {
    let may = match asking.kind {
        QuestionKind::Permission => permitted(asking, rules).unwrap_or(permission),
        // Rules are about tools; what an agent wants to know only a person knows.
        QuestionKind::Confirm | QuestionKind::Choice | QuestionKind::Text => Permission::Ask,
    };
    match (may, on) {
        (Permission::Allow, _) => Ruling::Answer(Answer::Allow, AnsweredBy::Rule),
        (Permission::Deny, _) => Ruling::Answer(Answer::Deny(None), AnsweredBy::Rule),
        (Permission::Ask, OnPermission::Ask) => Ruling::Ask,
        (Permission::Ask, OnPermission::Fail) => Ruling::Fail,
        (Permission::Ask, OnPermission::Allow) if asking.takes_yes() => {
            Ruling::Answer(Answer::Allow, AnsweredBy::Unattended)
        }
        (Permission::Ask, OnPermission::Deny) if asking.takes_yes() => {
            Ruling::Answer(Answer::Deny(None), AnsweredBy::Unattended)
        }
        (Permission::Ask, OnPermission::Deny) => Ruling::Answer(Answer::Dismiss, AnsweredBy::Unattended),
        // Nobody can say yes to which one, or to what.
        (Permission::Ask, OnPermission::Allow) => Ruling::Fail,
    }
}

/// What the rules say of a call: the longest pattern that fits decides, and of two of the same length the stricter one.
fn permitted(asking: &Asking, rules: &[ToolRule]) -> Option<Permission> {
    let tool = asking.tool.as_deref().unwrap_or_default();
    let strict = |permission: Permission| match permission {
        Permission::Allow => 0,
        Permission::Ask => 1,
        Permission::Deny => 2,
    };
    let fits = rules.iter().filter(|rule| fits(rule, tool, &asking.args));
    fits.max_by_key(|rule| (rule.pattern.len(), strict(rule.permission))).map(|rule| rule.permission)
}

/// What one command is no longer than; what is longer was cut.
const WHOLE: usize = super::AgentEvent::PREVIEW;

fn fits(rule: &ToolRule, tool: &str, args: &str) -> bool {
    let (name, inside) = parts(&rule.pattern);
    if !matches(&name.to_lowercase(), &tool.to_lowercase()) {
        return false;
    }
    let Some(inside) = inside else { return true };
    // A command that is more than one, or that was cut, is not what a pattern of one command speaks of: it may not be
    // allowed by it. What is denied is denied all the same.
    let one = args.len() < WHOLE && !["\n", ";", "&", "|", "`", "$(", "<", ">"].iter().any(|mark| args.contains(mark));
    (rule.permission != Permission::Allow || one) && matches(inside, args.trim())
}

/// The tool and what stands in brackets.
fn parts(pattern: &str) -> (&str, Option<&str>) {
    match pattern.split_once('(') {
        Some((name, inside)) => (name, Some(inside.strip_suffix(')').unwrap_or(inside))),
        None => (pattern, None),
    }
}

/// Whether `*` in the pattern can stand for what the text has there.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(middle) = last.replace(part) {
            match rest.find(middle) {
                Some(at) => rest = rest.get(at + middle.len()..).unwrap_or_default(),
                None => return false,
            }
        }
    }
    match last {
        Some(end) => rest.ends_with(end),
        None => rest.is_empty(),
    }
}

/// What is wrong with a pattern, if something is.
///
/// # Errors
/// The sentence.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    let (name, inside) = parts(pattern);
    if name.trim().is_empty() {
        return Err("a tool needs a name, like \"Write\" or \"Bash(git *)\"".to_owned());
    }
    if inside.is_some() && !pattern.ends_with(')') {
        return Err(format!("`{pattern}` has no closing bracket"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(words: &[(&str, Permission)]) -> Vec<ToolRule> {
        words
            .iter()
            .map(|(pattern, permission)| ToolRule { pattern: (*pattern).into(), permission: *permission })
            .collect()
    }

    fn asks(tool: &str, args: &str) -> Asking {
        Asking { tool: Some(tool.into()), args: args.into(), ..Asking::default() }
    }

    #[test]
    fn the_most_precise_rule_decides() {
        use Permission::{Allow, Ask, Deny};
        let rules = rules(&[
            ("Bash", Ask),
            ("Bash(git *)", Allow),
            ("Bash(git push*)", Deny),
            ("mcp__*", Deny),
            ("mcp__files__read", Allow),
            ("Edit", Allow),
            ("edit", Deny),
        ]);
        for (tool, args, expected) in [
            ("Bash", "make", Some(Ask)),
            ("bash", "git status", Some(Allow)),
            ("Bash", "git push --force", Some(Deny)),
            // More than one command is not what the pattern allows.
            ("Bash", "git status; rm -rf x", Some(Ask)),
            ("Bash", "git log && make", Some(Ask)),
            ("Bash", "git log $(make)", Some(Ask)),
            ("Bash", "git log > x", Some(Ask)),
            ("Bash", "git log\nmake", Some(Ask)),
            // But it is what the pattern denies.
            ("Bash", "git push; true", Some(Deny)),
            ("Bash", &format!("git {}", "x".repeat(WHOLE)), Some(Ask)),
            ("mcp__files__read", "x", Some(Allow)),
            ("mcp__web", "x", Some(Deny)),
            // Of the same length the stricter one.
            ("Edit", "x", Some(Deny)),
            ("Write", "x", None),
            ("", "x", None),
        ] {
            assert_eq!(permitted(&asks(tool, args), &rules), expected, "{tool} {args:.40}");
        }
    }

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("", "", true),
            ("", "x", false),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "abd", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "acb", false),
            ("*b", "ab", true),
            ("ab*b", "ab", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        assert!(check_pattern("Bash(git *)").is_ok() && check_pattern("mcp__*").is_ok());
        assert!(check_pattern("(x)").is_err() && check_pattern("Bash(git").is_err() && check_pattern(" ").is_err());
    }

    #[test]
    fn who_attends_a_run_decides_about_what_no_rule_does() {
        use OnPermission as On;
        let kind = |kind| Asking { kind, ..Asking::default() };
        let unattended = |answer| Ruling::Answer(answer, AnsweredBy::Unattended);
        let by_rule = |answer| Ruling::Answer(answer, AnsweredBy::Rule);
        let permission = kind(QuestionKind::Permission);
        let table = [
            (&permission, Permission::Allow, On::Fail, by_rule(Answer::Allow)),
            (&permission, Permission::Deny, On::Allow, by_rule(Answer::Deny(None))),
            (&permission, Permission::Ask, On::Ask, Ruling::Ask),
            (&permission, Permission::Ask, On::Allow, unattended(Answer::Allow)),
            (&permission, Permission::Ask, On::Deny, unattended(Answer::Deny(None))),
            (&permission, Permission::Ask, On::Fail, Ruling::Fail),
            // What a step may do says nothing of what its agent wants to know.
            (&kind(QuestionKind::Confirm), Permission::Allow, On::Ask, Ruling::Ask),
            (&kind(QuestionKind::Confirm), Permission::Deny, On::Allow, unattended(Answer::Allow)),
            (&kind(QuestionKind::Text), Permission::Allow, On::Ask, Ruling::Ask),
            (&kind(QuestionKind::Text), Permission::Ask, On::Allow, Ruling::Fail),
            (&kind(QuestionKind::Choice), Permission::Ask, On::Deny, unattended(Answer::Dismiss)),
        ];
        for (asking, may, on, expected) in table {
            assert_eq!(ruling(asking, may, &[], on), expected, "{:?} {may:?} {on:?}", asking.kind);
        }
        let rules = rules(&[("*", Permission::Deny)]);
        assert_eq!(ruling(&asks("x", ""), Permission::Ask, &rules, On::Ask), by_rule(Answer::Deny(None)));
        for word in OnPermission::ALL.map(OnPermission::word) {
            assert_eq!(OnPermission::of_word(word).map(OnPermission::word), Some(word));
        }
    }
}
