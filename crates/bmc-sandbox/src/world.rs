//! A running world: waits for it, asks it, ends it. Must not leave a process behind, whatever happens.

use std::os::fd::OwnedFd;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::SandboxError;
use crate::leftovers::Leftovers;

/// A kind of namespace that a process can enter with `setns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Namespace {
    /// User and group numbers, capabilities; to be entered first.
    User,
    /// Mounts.
    Mount,
    /// Network.
    Net,
    /// System V IPC and POSIX message queues.
    Ipc,
    /// Host name.
    Uts,
    /// Processes; takes effect for children forked afterwards, so enter it last.
    Pid,
}

/// How a payload ended and what it used, itself and the children it waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The exit code, when it exited by itself.
    pub code: Option<i32>,
    /// The signal that ended it otherwise.
    pub signal: Option<i32>,
    /// The largest resident size of one of its processes.
    pub maxrss_kb: u64,
    /// Processor time in user code.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
}

/// An isolated process tree. Dropping it kills everything in it and waits until it is gone.
#[derive(Debug)]
pub struct World {}

impl World {
    /// Makes a world that starts as a copy-on-write snapshot of this one's files and returns the namespaces to enter,
    /// in the order in which they must be entered.
    pub fn child_world(&self) -> Result<(World, Vec<(Namespace, OwnedFd)>), SandboxError> {
        Err(SandboxError::Gone)
    }

    /// Sends a signal to every process in the world except its init.
    pub fn signal_all(&self, signal: i32) -> Result<(), SandboxError> {
        let _ = signal;
        Err(SandboxError::Gone)
    }

    /// Waits for the payload to end; `None` when it has not by then. Other processes of the world may still be alive.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Option<Exit>, SandboxError> {
        let _ = timeout;
        Err(SandboxError::Gone)
    }

    /// Kills everything in the world; returns when all is gone. Doing it again does nothing.
    pub fn kill(&mut self) {}

    /// Says what the world leaves behind, then kills it.
    pub fn finish(self) -> Result<Leftovers, SandboxError> {
        Err(SandboxError::Gone)
    }
}
