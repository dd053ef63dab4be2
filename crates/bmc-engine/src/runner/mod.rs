//! Making runs: launches pytest processes in worlds of their own, follows what they say, survives their crashes and hangs.
//!
//! What a run showed goes out as [`RunRecord`](crate::history::RunRecord)s; nothing here judges it.

mod copytree;
mod execute;
mod order;
mod output;
mod process;
mod run;
mod site;

pub use copytree::{copy_tree, remove_tree};
pub use execute::{Collection, Control, Ended, Executor, Limits, Signal, StartFailure, Ticker};
pub use order::{RunOrder, Seeds, StartOrder};
pub use output::Captured;
pub use process::LaunchError;
pub use site::Site;
