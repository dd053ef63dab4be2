//! The whole result of a scan: what every renderer prints and the trace keeps (`breakmycode.scan/1`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::advice::{Advice, Problem};

/// Name and version of the report's shape.
pub const SCAN_SCHEMA: &str = "breakmycode.scan/1";

/// How a scan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScanStatus {
    /// Still being written, or its process died: the finished runs are in the trace.
    Running,
    /// All planned runs are in.
    Complete,
    /// Stopped by the user; it can be resumed.
    Interrupted,
    /// Stopped because the project's files changed; what was measured before is kept.
    CodeChanged,
    /// No run could be started or trusted.
    NoResult,
}

impl ScanStatus {
    /// The word used on screen and in the trace.
    pub fn as_str(self) -> &'static str {
        match self {
            ScanStatus::Running => "running",
            ScanStatus::Complete => "complete",
            ScanStatus::Interrupted => "interrupted",
            ScanStatus::CodeChanged => "code_changed",
            ScanStatus::NoResult => "no_result",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        [
            Self::Running,
            Self::Complete,
            Self::Interrupted,
            Self::CodeChanged,
            Self::NoResult,
        ]
        .into_iter()
        .find(|s| s.as_str() == word)
    }
}

/// The whole result of a scan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScanReport {
    /// Always `breakmycode.scan/1`.
    pub schema: String,
    /// Version of breakmycode that made it.
    pub tool_version: String,
    /// Name of the scan.
    pub scan_id: String,
    /// How it ended.
    pub status: ScanStatus,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// Wall-clock seconds, over all sittings if it was resumed.
    pub seconds: f64,
    /// The project.
    pub project: ProjectFacts,
    /// Interpreter, pytest, isolation; absent when none was found.
    pub environment: Option<EnvironmentFacts>,
    /// What was planned; absent when it never came to a plan.
    pub plan: Option<PlanFacts>,
    /// Sums.
    pub totals: Totals,
    /// With which probability a failure rate would have been seen at least once.
    pub power: Vec<Power>,
    /// The same for what is decided at process start (import time, hash seed, address layout): only fresh starts count.
    pub start_power: Vec<Power>,
    /// Every test, worst first.
    pub tests: Vec<TestReport>,
    /// Remarks about the scan as a whole.
    pub problems: Vec<Problem>,
    /// Why there is no result, when there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
    /// Exit code under the default gate (`failing,flaky`).
    pub exit_code: i32,
}

/// The project and the state of its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectFacts {
    /// Absolute path of the root (lossy where it is not UTF-8).
    pub root: String,
    /// Commit of HEAD, if it is a git work tree.
    pub commit: Option<String>,
    /// Branch, if HEAD is on one.
    pub branch: Option<String>,
    /// Whether tracked files differ from HEAD.
    pub dirty: Option<bool>,
    /// Digest over the files that matter, `sha256:` and 64 hexadecimal digits.
    pub tree_digest: String,
}

/// Interpreter, pytest and isolation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentFacts {
    /// Version of Python.
    pub python: String,
    /// `cpython`, `pypy`, …
    pub implementation: String,
    /// The interpreter, as found.
    pub executable: String,
    /// How it was found.
    pub found_by: String,
    /// Version of pytest.
    pub pytest: String,
    /// pytest plugins: name and version.
    pub plugins: Vec<(String, String)>,
    /// What was switched off while scanning, and why.
    pub switched_off: Vec<(String, String)>,
    /// `full`, `files-only` or `copy`.
    pub isolation: String,
    /// What that means here, in words.
    pub isolation_detail: String,
    /// `loopback` or `host`.
    pub network: String,
}

/// What was planned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanFacts {
    /// Runs asked for (or reached, with `--until` and `--duration`).
    pub runs: u32,
    /// Fresh starts of the interpreter among them.
    pub fresh_starts: u32,
    /// `hybrid` or `fresh`.
    pub engine: String,
    /// Why it is not `hybrid`, when it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_why: Option<String>,
    /// Runs at a time.
    pub jobs: u32,
    /// Seed of the scan, as `0x…`.
    pub seed: String,
    /// Order of the tests.
    pub order: String,
    /// Seconds after which a test is killed; absent until durations are known.
    pub test_timeout_s: Option<f64>,
    /// Arguments that went to pytest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pytest_args: Vec<String>,
    /// Node ids the scan was limited to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// Scan whose suspects were taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// Sums over all tests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Finished scan runs.
    pub runs: u32,
    /// Those of them that were made by a fresh process.
    pub fresh_runs: u32,
    /// Fresh starts that were seen.
    pub fresh_starts: u32,
    /// Fresh processes that confirmed or refuted what forked children showed.
    pub confirm_runs: u32,
    /// Tests seen in any run.
    pub tests: u64,
    /// Outcomes recorded in scan runs.
    pub outcomes: u64,
    /// Tests that failed every time.
    pub consistent_failures: u64,
    /// Tests that passed and failed.
    pub flaky: u64,
    /// Tests that passed every time.
    pub clean: u64,
    /// Tests that are sometimes skipped, missing, or change sides of `xfail`.
    pub unstable: u64,
    /// Tests that were skipped or xfailed every time.
    pub not_judged: u64,
    /// Tests about which nothing can be said.
    pub unsure: u64,
    /// Tests that fail only inside the isolation.
    pub isolation_dependent: u64,
    /// Timed-out outcomes.
    pub timeouts: u64,
    /// Crashed outcomes.
    pub crashes: u64,
}

/// Detection power at one failure rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Power {
    /// True failure rate of a test, 0 to 1.
    pub rate: f64,
    /// Probability that it would have failed at least once, 0 to 1.
    pub caught_with: f64,
}

/// The verdict on a test.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TestClass {
    /// Failed every time.
    Failing,
    /// Passed and failed on identical code.
    Flaky,
    /// Fails inside the isolation, passes outside.
    IsolationDependent,
    /// Sometimes skipped, sometimes missing, or sometimes xfailed and sometimes xpassed; never failed.
    Unstable,
    /// Not enough was seen.
    Unsure,
    /// Passed every time.
    Clean,
    /// Never judged: skipped or xfailed every time.
    NotJudged,
}

impl TestClass {
    /// The word used on screen, on the command line and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            TestClass::Failing => "failing",
            TestClass::Flaky => "flaky",
            TestClass::IsolationDependent => "isolation_dependent",
            TestClass::Unstable => "unstable",
            TestClass::Unsure => "unsure",
            TestClass::Clean => "clean",
            TestClass::NotJudged => "not_judged",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        [
            Self::Failing,
            Self::Flaky,
            Self::IsolationDependent,
            Self::Unstable,
            Self::Unsure,
            Self::Clean,
            Self::NotJudged,
        ]
        .into_iter()
        .find(|c| c.as_str() == word)
    }
}

/// How often each outcome was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Passed.
    pub passed: u32,
    /// Failed, error, strict xpass, timed out or crashed.
    pub failed: u32,
    /// Skipped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u32,
    /// Expected failures.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub xfailed: u32,
    /// Unexpected passes (not strict).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub xpassed: u32,
    /// Collected, but its turn never came.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_run: u32,
    /// Not collected in a run in which others were.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// One test and everything the scan saw of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestReport {
    /// Node id.
    pub id: String,
    /// Which of several items with that id, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub occurrence: u32,
    /// The verdict.
    pub class: TestClass,
    /// Counts the verdict rests on.
    #[serde(flatten)]
    pub counts: Counts,
    /// Runs that count: passed + failed.
    pub runs: u32,
    /// failed / runs; absent when no run counts.
    pub rate: Option<f64>,
    /// Wilson 95 % interval of the rate.
    pub ci95: Option<(f64, f64)>,
    /// One-sided 95 % upper bound of the rate when nothing failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// Counts in fresh processes (scan and confirming runs).
    pub fresh: Counts,
    /// Counts in forked children.
    pub forked: Counts,
    /// Scan runs in which it failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing_runs: Vec<u32>,
    /// Failed in some fresh starts and passed in others, and never both within one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub start_up: bool,
    /// What is special about the verdict, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// The different ways in which it failed, most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<SignatureReport>,
    /// Median duration in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_s: Option<f64>,
    /// Longest duration in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_s: Option<f64>,
}

/// One way of failing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SignatureReport {
    /// First 16 hexadecimal digits of the digest over the normalised failure.
    pub digest: String,
    /// Exception type, or `timeout`, `crash`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The first message seen with it.
    pub message: String,
    /// `file:line`, if known.
    pub location: Option<String>,
    /// How often.
    pub count: u32,
    /// The outcome it led to.
    pub outcome: String,
}
