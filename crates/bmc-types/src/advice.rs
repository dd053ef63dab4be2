//! What went wrong around the tests (environment, plugin, collection), with what to type next.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fault that is not a test result: four parts, as every error of breakmycode has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// Stable code such as `E021`, printed as `BMC-E021`.
    pub code: String,
    /// What happened, in one line.
    pub headline: String,
    /// Where: files, lines, options. One entry a line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<String>,
    /// Why we think so: the evidence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// What to do: commands first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub help: Vec<String>,
}

/// How loud a problem is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing; the result stands.
    Note,
    /// The result is weaker than it looks.
    Warning,
    /// There is no trustworthy result.
    Error,
}

/// A remark about a scan as a whole. A list of these rides on every report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// How loud.
    pub severity: Severity,
    /// Stable word for programs, such as `engine_fallback`.
    pub kind: String,
    /// One line for people.
    pub text: String,
}

impl Problem {
    /// Makes a note: the result stands.
    pub fn note(kind: &str, text: impl Into<String>) -> Self {
        Self {
            severity: Severity::Note,
            kind: kind.to_owned(),
            text: text.into(),
        }
    }

    /// Makes a warning: the result is weaker than it looks.
    pub fn warning(kind: &str, text: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            kind: kind.to_owned(),
            text: text.into(),
        }
    }

    /// Makes an error: there is no trustworthy result.
    pub fn error(kind: &str, text: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            kind: kind.to_owned(),
            text: text.into(),
        }
    }
}
