//! What one run showed about one test.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Outcome of one test in one run. A crash or a timeout is an outcome, not an error of ours.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Setup, call and teardown went well.
    Passed,
    /// The call failed.
    Failed,
    /// Setup or teardown failed.
    Error,
    /// Skipped by mark or call.
    Skipped,
    /// Failed as its `xfail` mark expects.
    Xfailed,
    /// Passed against its `xfail` mark.
    Xpassed,
    /// Passed against a strict `xfail` mark: pytest counts it as a failure.
    XpassedStrict,
    /// Killed after the time limit.
    TimedOut,
    /// Its process died: a signal, or an exit that skipped the rest of the session.
    Crashed,
    /// Collected, but its turn never came.
    NotRun,
    /// Not among the collected tests of that run.
    Missing,
}

impl Outcome {
    /// All outcomes, in the order of their stored codes.
    pub const ALL: [Outcome; 11] = [
        Outcome::Passed,
        Outcome::Failed,
        Outcome::Error,
        Outcome::Skipped,
        Outcome::Xfailed,
        Outcome::Xpassed,
        Outcome::XpassedStrict,
        Outcome::TimedOut,
        Outcome::Crashed,
        Outcome::NotRun,
        Outcome::Missing,
    ];

    /// The byte stored in the database.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Reads the stored byte.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The word used on the wire, on screen and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::Error => "error",
            Outcome::Skipped => "skipped",
            Outcome::Xfailed => "xfailed",
            Outcome::Xpassed => "xpassed",
            Outcome::XpassedStrict => "xpassed_strict",
            Outcome::TimedOut => "timed_out",
            Outcome::Crashed => "crashed",
            Outcome::NotRun => "not_run",
            Outcome::Missing => "missing",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|o| o.as_str() == word)
    }

    /// Counts as a failure in the failure rate.
    pub fn is_failure(self) -> bool {
        match self {
            Outcome::Failed
            | Outcome::Error
            | Outcome::XpassedStrict
            | Outcome::TimedOut
            | Outcome::Crashed => true,
            Outcome::Passed
            | Outcome::Skipped
            | Outcome::Xfailed
            | Outcome::Xpassed
            | Outcome::NotRun
            | Outcome::Missing => false,
        }
    }
}

/// The part of a test in which it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Fixtures before the test.
    Setup,
    /// The test itself.
    Call,
    /// Fixtures after the test.
    Teardown,
}

/// How a test failed, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// In which part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Exception type, or `timeout`, `crash`.
    #[serde(default, rename = "type")]
    pub kind: String,
    /// First lines of the message.
    #[serde(default)]
    pub message: String,
    /// File in which it was raised, relative to the root where it lies below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Line in that file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// pytest's own long text, shortened.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub longrepr: String,
    /// A plugin had run the failing test again; the failure is counted all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rerun: bool,
    /// Further failures of the same test in the same run (subtests, call and teardown).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<Failure>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_words_round_trip() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::from_code(outcome.code()), Some(outcome));
            assert_eq!(Outcome::parse(outcome.as_str()), Some(outcome));
        }
        assert_eq!(Outcome::from_code(11), None);
        assert_eq!(Outcome::parse("PASSED"), None);
    }
}
