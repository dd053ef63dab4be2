//! Why no interpreter can be used: the codes E010 to E015, as facts. Must not decide anything.

use std::path::PathBuf;

use super::{Considered, Fault, Manager};

/// Why a project's interpreter cannot be used. Reads after "cannot …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// E010: no candidate has a usable pytest.
    #[error("run the tests of {}: no interpreter of this project has pytest", root.display())]
    NoPytest {
        /// The project.
        root: PathBuf,
        /// Everything that was looked at.
        considered: Vec<Considered>,
        /// Environments of tox and nox that would do.
        offered: Vec<PathBuf>,
        /// Who manages the packages.
        manager: Manager,
    },
    /// E011: the interpreter that was asked for, or the project's own environment, does not work.
    #[error("start the interpreter {}", executable.display())]
    Broken {
        /// The project.
        root: PathBuf,
        /// The file or folder.
        executable: PathBuf,
        /// How it was found.
        found_by: String,
        /// What is wrong with it.
        fault: Fault,
        /// Who manages the packages.
        manager: Manager,
    },
    /// E012: several projects below the path and none at it.
    #[error("choose a project: {} has none itself, but {} below it", path.display(), roots.len())]
    SeveralProjects {
        /// The path that was given.
        path: PathBuf,
        /// The projects, with the number of files that look like tests.
        roots: Vec<(PathBuf, usize)>,
    },
    /// E013: the Python version does not suit the project.
    #[error("use the interpreter {}: it is Python {}.{}.{}, the project requires {requires}", executable.display(), version.0, version.1, version.2)]
    WrongVersion {
        /// The project.
        root: PathBuf,
        /// The interpreter.
        executable: PathBuf,
        /// How it was found.
        found_by: String,
        /// Its version.
        version: (u32, u32, u32),
        /// What the project asks for.
        requires: String,
        /// Who manages the packages.
        manager: Manager,
    },
    /// E014: a warning only. The chosen environment is not the active one.
    #[error("use both {} and the active {}", chosen.display(), other.display())]
    DiffersFromActive {
        /// The environment that won.
        chosen: PathBuf,
        /// The one that lost.
        other: PathBuf,
        /// Whether the active one won.
        active_won: bool,
    },
    /// E015: the path that was given cannot be read.
    #[error("open {}: {message}", path.display())]
    NoSuchPath {
        /// The path.
        path: PathBuf,
        /// What the system says.
        message: String,
    },
}
