//! The workflows that join everything: scan, resume, replay, show. Each takes values and a sink for events, and returns a value.

mod assemble;
mod confirm;
mod environment;
mod followup;
mod plan;
mod recorder;
mod refusal;
mod replay;
mod request;
mod scan;
mod stage;

pub use assemble::{Gate, assemble, exit_code};
pub use environment::{Doctor, Place, doctor};
pub use plan::{fresh_starts_for, orders};
pub use recorder::{EventSink, Progress};
pub use replay::{ReplayOutcome, Replayed, replay};
pub use request::{Directories, ScanRequest, Setting};
pub use scan::{ScanError, resume, scan};
