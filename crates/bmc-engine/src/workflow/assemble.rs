//! From what was seen to the report: the same function for a scan that just ended and for one read back from the trace.

use bmc_types::report::{EnvironmentFacts, PlanFacts, ProjectFacts, SCAN_SCHEMA};
use bmc_types::{Advice, Problem, ScanId, ScanReport, ScanStatus, TestClass};

use crate::history::History;
use crate::lab::classify::judge;
use crate::store::ScanRow;

/// What makes the exit code non-zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    /// Tests that fail every time.
    pub failing: bool,
    /// Flaky tests.
    pub flaky: bool,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            failing: true,
            flaky: true,
        }
    }
}

/// The parts of a report that are not judged.
pub struct Facts {
    /// Name.
    pub id: ScanId,
    /// How it ended.
    pub status: ScanStatus,
    /// Start, RFC 3339.
    pub started_at: String,
    /// Version that made the scan.
    pub tool_version: String,
    /// Seconds.
    pub seconds: f64,
    /// The project.
    pub project: ProjectFacts,
    /// Interpreter, pytest, isolation.
    pub environment: Option<EnvironmentFacts>,
    /// The plan.
    pub plan: Option<PlanFacts>,
    /// Remarks.
    pub problems: Vec<Problem>,
    /// Why there is no result.
    pub advice: Vec<Advice>,
}

impl From<ScanRow> for Facts {
    fn from(row: ScanRow) -> Self {
        Self {
            id: row.id,
            status: row.status,
            started_at: row.started_at,
            tool_version: row.tool_version,
            seconds: row.seconds,
            project: row.project,
            environment: row.environment,
            plan: row.plan,
            problems: row.problems,
            advice: row.advice,
        }
    }
}

/// Makes the report.
pub fn assemble(facts: Facts, history: &History) -> ScanReport {
    let judgement = judge(history);
    let mut report = ScanReport {
        schema: SCAN_SCHEMA.to_owned(),
        tool_version: facts.tool_version,
        scan_id: facts.id.to_string(),
        status: facts.status,
        started_at: facts.started_at,
        seconds: facts.seconds,
        project: facts.project,
        environment: facts.environment,
        plan: facts.plan,
        totals: judgement.totals,
        power: judgement.power,
        start_power: judgement.start_power,
        tests: judgement.tests,
        problems: facts.problems,
        advice: facts.advice,
        exit_code: 0,
    };
    report.exit_code = exit_code(&report, Gate::default());
    report
}

/// The documented exit code of a report under a gate.
pub fn exit_code(report: &ScanReport, gate: Gate) -> i32 {
    match report.status {
        ScanStatus::NoResult => {
            return if report.advice.iter().any(|a| a.code == "E028") {
                4
            } else {
                3
            };
        }
        ScanStatus::Interrupted => return 130,
        ScanStatus::Complete | ScanStatus::CodeChanged | ScanStatus::Running => {}
    }
    let any = |class: TestClass| report.tests.iter().any(|test| test.class == class);
    if gate.failing && any(TestClass::Failing) {
        return 1;
    }
    if report.status == ScanStatus::CodeChanged {
        return 3;
    }
    if gate.flaky && any(TestClass::Flaky) {
        return 5;
    }
    // Not measured: what fails here because of the isolation says nothing about the project.
    if gate.failing && any(TestClass::IsolationDependent) {
        return 3;
    }
    0
}
