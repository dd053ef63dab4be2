//! What a world should look like and what runs in it. Plain data; nothing here touches the machine.

use std::ffi::OsString;
use std::fmt;
use std::os::fd::{OwnedFd, RawFd};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How far a world is separated from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Everything: files, processes, network, temporary directories, devices, System V and POSIX IPC.
    Full,
    /// Only writes to the project and the home directory are caught; processes, network and `/tmp` are the host's.
    FilesOnly,
    /// No namespaces. The caller prepares a copy of the project; this crate only guarantees that no process stays.
    Copy,
}

impl fmt::Display for Isolation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Full => "full",
            Self::FilesOnly => "files-only",
            Self::Copy => "copy",
        })
    }
}

/// What network a fully isolated world has. The other levels always have the host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// Its own loopback (IPv4 and IPv6), every port free, nothing beyond.
    Loopback,
    /// The host's network.
    Host,
}

/// A world and its payload. Paths are host paths and keep their meaning inside; symbolic links are resolved first.
#[derive(Debug)]
pub struct Spec {
    /// How far the world is separated from the host.
    pub isolation: Isolation,
    /// The network of a fully isolated world.
    pub network: Network,
    /// The project directory; writes below it are caught (not at [`Isolation::Copy`]).
    pub project: PathBuf,
    /// The home directory; writes below it are caught. `/`, or a directory that does not exist, counts as none.
    pub home: Option<PathBuf>,
    /// Paths that must stay visible even below a replaced directory such as `/tmp`; read-only. Missing ones are skipped.
    /// The prefix of the interpreter belongs here.
    pub expose: Vec<PathBuf>,
    /// Paths whose writes reach the host. They must exist.
    pub writable: Vec<PathBuf>,
    /// Paths whose content is hidden: a directory looks empty, a file has no content. Missing ones are skipped.
    pub masks: Vec<PathBuf>,
    /// How many bytes of memory all writes of this world may take; each child world has the same allowance again.
    pub scratch_bytes: u64,
    /// How many files and directories all writes of this world may create.
    pub scratch_inodes: u64,
    /// The program, with a `/` in it; no search path is used.
    pub program: PathBuf,
    /// Its arguments, without the program's own name.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Where its standard output goes.
    pub stdout: OwnedFd,
    /// Where its standard error goes.
    pub stderr: OwnedFd,
    /// More descriptors, each with the number (3 or more) it shall have in the payload. Standard input is `/dev/null`.
    pub inherit: Vec<(OwnedFd, RawFd)>,
    /// Added to the niceness of the payload.
    pub nice: i32,
}
