//! How one run was made: enough to make it again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which kind of process ran the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// A fresh interpreter that imported, collected and ran: what `python -m pytest` does.
    Fresh,
    /// A child forked from a process that had imported and collected.
    Forked,
}

impl Engine {
    /// The word used on screen and in the trace.
    pub fn as_str(self) -> &'static str {
        match self {
            Engine::Fresh => "fresh",
            Engine::Forked => "forked",
        }
    }
}

/// What a run was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// One of the N runs that were asked for.
    Scan,
    /// A fresh process that checks what forked children showed.
    Confirm,
    /// One run outside the isolation, to compare.
    Plain,
    /// A run repeated by hand with `replay`.
    Replay,
}

impl Purpose {
    /// The word used on screen and in the trace.
    pub fn as_str(self) -> &'static str {
        match self {
            Purpose::Scan => "scan",
            Purpose::Confirm => "confirm",
            Purpose::Plain => "plain",
            Purpose::Replay => "replay",
        }
    }
}

/// The conditions of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conditions {
    /// What the run was for.
    pub purpose: Purpose,
    /// Kind of process.
    pub engine: Engine,
    /// Which fresh start (interpreter process) it came from, from 1.
    pub start: u32,
    /// `PYTHONHASHSEED` of that start.
    pub hash_seed: u32,
    /// Seed given to `random` (and numpy where it is loaded): of the start for a fresh run, of the run for a forked one.
    pub seed: u64,
    /// Seed of the start, set before any project code is imported.
    pub start_seed: u64,
    /// Order of the tests: `collected`, or `listed` when the run had a list of its own.
    pub order: String,
    /// Which of the parallel workers made it, from 1.
    pub worker: u32,
    /// `full`, `files-only` or `copy`.
    pub isolation: String,
    /// Node ids that were selected, when the run was not the whole suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected: Option<Vec<String>>,
}
