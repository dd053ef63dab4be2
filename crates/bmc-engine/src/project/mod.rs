//! The project under test: where it is, what state its files and its git work tree are in. Never writes to it.

mod git;
mod snapshot;

pub use git::{GitFacts, facts as git_facts};
pub use snapshot::{Change, Snapshot};
