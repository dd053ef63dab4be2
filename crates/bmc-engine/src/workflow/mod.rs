//! The workflows that join everything: scan, resume, replay, show. Each takes values and a sink for events, and returns a value.

mod assemble;
mod confirm;
mod environment;
mod plan;
mod recorder;
mod replay;
mod request;
mod scan;

pub use assemble::{assemble, exit_code, Gate};
pub use environment::{doctor, Doctor, Place};
pub use plan::{fresh_starts_for, orders};
pub use recorder::{EventSink, Progress};
pub use replay::{replay, ReplayOutcome, Replayed};
pub use request::{Directories, ScanRequest, Setting};
pub use scan::{resume, scan, ScanError};
