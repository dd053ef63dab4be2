//! The stages of building a world, in words, and the failure of one.
//!
//! Which stages are done is kept in one number that forked helpers inherit, so that a probe can say how far it came.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A part of building a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Request,
    Namespaces,
    UserMap,
    Base,
    Scratch,
    ProcessList,
    Loopback,
    HostView,
    Temporary,
    Devices,
    Overlay,
    Recreate,
    Exposed,
    Masks,
    Root,
    Capabilities,
    Program,
}

impl Stage {
    /// All stages that a probe reports, in the order in which they usually come.
    const ALL: [Self; 17] = [
        Self::Request,
        Self::Namespaces,
        Self::UserMap,
        Self::Base,
        Self::Scratch,
        Self::ProcessList,
        Self::Loopback,
        Self::HostView,
        Self::Temporary,
        Self::Devices,
        Self::Overlay,
        Self::Recreate,
        Self::Exposed,
        Self::Masks,
        Self::Root,
        Self::Capabilities,
        Self::Program,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Namespaces => "namespaces",
            Self::UserMap => "user map",
            Self::Base => "base file system",
            Self::Scratch => "scratch memory",
            Self::ProcessList => "process list",
            Self::Loopback => "loopback network",
            Self::HostView => "read-only view of the host",
            Self::Temporary => "temporary directory",
            Self::Devices => "devices",
            Self::Overlay => "overlay",
            Self::Recreate => "removing and recreating a directory in an overlay",
            Self::Exposed => "exposed path",
            Self::Masks => "mask",
            Self::Root => "switch of the root directory",
            Self::Capabilities => "capabilities",
            Self::Program => "start of the program",
        }
    }

    /// Remembers that this stage worked at least once.
    pub(crate) fn done(self) {
        DONE.fetch_or(1 << self as u32, Ordering::Relaxed);
    }
}

static DONE: AtomicU32 = AtomicU32::new(0);

/// The stages that worked in this process and those it was forked from, as a number that can be handed on.
pub(crate) fn done_mask() -> u32 {
    DONE.load(Ordering::Relaxed)
}

/// Adds what another process has done.
pub(crate) fn add_done_mask(mask: u32) {
    DONE.fetch_or(mask, Ordering::Relaxed);
}

/// The names of the stages that worked.
pub(crate) fn done_names() -> Vec<String> {
    let mask = done_mask();
    Stage::ALL
        .iter()
        .filter(|stage| mask & (1 << **stage as u32) != 0)
        .map(|stage| stage.name().to_owned())
        .collect()
}

/// A stage that did not work.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) stage: Stage,
    pub(crate) about: Option<PathBuf>,
    pub(crate) source: io::Error,
}

impl Failure {
    pub(crate) fn new(stage: Stage, source: impl Into<io::Error>) -> Self {
        Self {
            stage,
            about: None,
            source: source.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.stage.name())?;
        match &self.about {
            Some(path) => write!(formatter, " {}", path.display()),
            None => Ok(()),
        }
    }
}

/// Names the stage that an error belongs to.
pub(crate) trait At<T> {
    fn at(self, stage: Stage) -> Result<T, Failure>;
    fn at_path(self, stage: Stage, path: &Path) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, stage: Stage) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(stage, error))
    }

    fn at_path(self, stage: Stage, path: &Path) -> Result<T, Failure> {
        self.map_err(|error| Failure {
            stage,
            about: Some(path.to_owned()),
            source: error.into(),
        })
    }
}
