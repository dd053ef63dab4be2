//! Every shape that breakmycode stores or prints, and nothing else.
//!
//! Plain data with serde. No behaviour beyond reading, ordering and naming a value; no I/O.
//! Shapes only grow: a field may be added, never removed or given a new meaning without a new schema version.

pub mod advice;
pub mod conditions;
pub mod event;
pub mod id;
pub mod outcome;
pub mod report;

pub use advice::{Advice, Problem, Severity};
pub use conditions::{Conditions, Engine};
pub use event::{Event, EventKind};
pub use id::{ScanId, TestId};
pub use outcome::{Failure, Outcome, Phase};
pub use report::{ScanReport, ScanStatus, TestClass, TestReport};
