//! What a world left behind: processes that were still alive and files that were written.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where a left file lies; its path is relative to this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The project directory.
    Project,
    /// The home directory.
    Home,
    /// `/tmp`.
    Tmp,
    /// `/var/tmp`.
    VarTmp,
    /// `/dev/shm`: shared memory and semaphores that were not unlinked.
    Shm,
}

/// What happened to a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It did not exist before.
    Created,
    /// It existed and has other content, times or permissions now.
    Changed,
    /// It existed and is gone.
    Deleted,
}

/// A file or directory that differs from what the world started with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftFile {
    /// What `path` is relative to.
    pub place: Place,
    /// The path below the place.
    pub path: PathBuf,
    /// What happened to it.
    pub change: Change,
}

/// A process that was still alive at the end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftProcess {
    /// Its number inside the world.
    pub pid: u32,
    /// Its command name as the kernel knows it, at most 15 bytes.
    pub name: String,
}

/// Everything a world left behind, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Living processes besides the payload.
    pub processes: Vec<LeftProcess>,
    /// Changed files; none at [`Isolation::Copy`](crate::Isolation::Copy).
    pub files: Vec<LeftFile>,
    /// Whether there were more files than are listed (the list ends at 1000).
    pub truncated: bool,
}
