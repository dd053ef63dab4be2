//! What happened during a scan, in order: the live display and `--format jsonl` show these, the trace keeps them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::advice::{Advice, Problem};
use crate::conditions::Conditions;
use crate::outcome::{Failure, Outcome};
use crate::report::{EnvironmentFacts, PlanFacts, ProjectFacts};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Name of the scan.
    pub scan_id: String,
    /// Place in the order of events, from 1 without gaps.
    pub seq: u64,
    /// Milliseconds since the scan started.
    pub at_ms: u64,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// The kinds of events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event")]
pub enum EventKind {
    /// The scan has a name and a project.
    #[serde(rename = "scan.started")]
    ScanStarted {
        /// The project.
        project: ProjectFacts,
    },
    /// Interpreter, pytest and isolation are known.
    #[serde(rename = "environment.found")]
    EnvironmentFound {
        /// The facts.
        environment: EnvironmentFacts,
    },
    /// The first process has collected.
    #[serde(rename = "collection.finished")]
    CollectionFinished {
        /// Collected and selected tests.
        tests: u64,
        /// Seconds it took.
        seconds: f64,
    },
    /// The plan is fixed.
    #[serde(rename = "plan.made")]
    PlanMade {
        /// The plan.
        plan: PlanFacts,
    },
    /// Tests are running: a new process (fresh start) is ready.
    #[serde(rename = "start.ready")]
    StartReady {
        /// Its number, from 1.
        start: u32,
        /// Seconds from launch to ready.
        seconds: f64,
    },
    /// A run began.
    #[serde(rename = "run.started")]
    RunStarted {
        /// Number of the run, from 1.
        run: u32,
        /// Its conditions.
        conditions: Conditions,
    },
    /// A test failed, crashed or timed out. Passing outcomes are only counted, in `run.finished`.
    #[serde(rename = "test.outcome")]
    TestOutcome {
        /// Number of the run.
        run: u32,
        /// Node id.
        id: String,
        /// Which item with that id.
        #[serde(default)]
        occurrence: u32,
        /// What happened.
        outcome: Outcome,
        /// How it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
    },
    /// A run is complete.
    #[serde(rename = "run.finished")]
    RunFinished {
        /// Number of the run.
        run: u32,
        /// Seconds.
        seconds: f64,
        /// Outcomes that were recorded.
        outcomes: u64,
        /// How many of them are failures.
        failed: u64,
        /// Processes it took (more than one after a crash or a timeout).
        processes: u32,
    },
    /// A stage of the work began.
    #[serde(rename = "stage.started")]
    StageStarted {
        /// Its name: `discover`, `collect`, `run`, `confirm`, `plain`.
        stage: String,
    },
    /// A stage of the work ended.
    #[serde(rename = "stage.finished")]
    StageFinished {
        /// Its name.
        stage: String,
        /// Seconds.
        seconds: f64,
        /// One line about it.
        detail: String,
    },
    /// Something about the scan as a whole.
    #[serde(rename = "problem")]
    ProblemFound {
        /// The remark.
        problem: Problem,
    },
    /// There is no result, and why.
    #[serde(rename = "scan.refused")]
    Refused {
        /// What went wrong and what to type.
        advice: Vec<Advice>,
    },
    /// The scan is over; the report is stored.
    #[serde(rename = "scan.finished")]
    ScanFinished {
        /// `complete`, `interrupted`, `code_changed` or `no_result`.
        status: String,
        /// Exit code under the default gate.
        exit_code: i32,
        /// Seconds.
        seconds: f64,
    },
}
