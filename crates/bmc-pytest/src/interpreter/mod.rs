//! Finds the Python interpreter that a project's own tests run under, and says how and why.
//!
//! Reads files and starts candidate interpreters for a short probe. Must not read the process environment (everything comes in
//! with [`Surroundings`]), must not install, synchronise or create anything, and must not guess silently: every candidate that was
//! looked at is kept with the reason why it won or lost.

#[cfg(test)]
mod desk;
mod error;
mod ladder;
mod manager;
mod manager_places;
mod metadata;
mod ownership;
mod places;
mod probe;
mod root;
mod specifier;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use error::EnvironmentError;
pub use ladder::{discover, survey};
pub use manager::Manager;
pub use root::find_root;

pub(crate) use manager_places::normalised;
pub(crate) use metadata::{ini_value, read_text, table_at};
pub(crate) use root::{looks_like_a_test_file, walk};

pub(crate) use manager::quote;

/// What the caller saw around the process, taken once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// The environment variables.
    pub vars: BTreeMap<OsString, OsString>,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// This program's own file: an environment that holds it is not the project's.
    pub own_executable: PathBuf,
}

/// What to find an interpreter for.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The project, or a folder or file in it.
    pub path: &'a Path,
    /// What the user asked for: a file, an environment folder, or a version such as `3.12`. It never falls through to another.
    pub explicit: Option<&'a str>,
    /// Takes the active environment over the project's own when both exist and differ.
    pub prefer_active: bool,
    /// See [`Surroundings`].
    pub surroundings: &'a Surroundings,
}

/// The folder that a project starts at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Absolute path of the folder.
    pub path: PathBuf,
    /// Name of the file that makes it a project, such as `pyproject.toml`; none if no ancestor has one.
    pub marker: Option<String>,
    /// Top of the git work tree around it.
    pub git: Option<PathBuf>,
}

/// Everything that was looked at, and the outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovery {
    /// The project's folder (the given path itself if it could not be told).
    pub root: Root,
    /// Who manages the project's packages, judged by its files.
    pub manager: Manager,
    /// The interpreter to use.
    pub chosen: Option<Interpreter>,
    /// Every candidate in the order of the ladder.
    pub considered: Vec<Considered>,
    /// Things worth telling although an interpreter was found.
    pub notes: Vec<Note>,
    /// Why none was chosen.
    pub error: Option<EnvironmentError>,
}

/// An interpreter that answered and is fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// `sys.executable` as the interpreter itself reports it: start this one.
    pub executable: PathBuf,
    /// How it was found, such as `project .venv`, `VIRTUAL_ENV` or `PATH python3`.
    pub found_by: String,
    /// The executable for people: relative to the project or with `~`.
    pub display: String,
    /// What it said about itself.
    pub probe: ProbeResult,
}

/// What an interpreter says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeResult {
    /// Major, minor and micro version.
    pub version: (u32, u32, u32),
    /// Such as `cpython`.
    pub implementation: String,
    /// `sys.executable`.
    pub executable: PathBuf,
    /// `sys.prefix`.
    pub prefix: PathBuf,
    /// `sys.base_prefix`: differs from `prefix` in a virtual environment.
    pub base_prefix: PathBuf,
    /// Version of pytest as its metadata says.
    pub pytest: Option<String>,
    /// The plugins that pytest would load by itself.
    pub plugins: Vec<Plugin>,
    /// `sys.platform`.
    pub platform: String,
    /// Whether `ctypes` can be imported.
    pub has_ctypes: bool,
    /// `sys.path` as a run with `python -m pytest` would see it, without the working directory: `PYTHONPATH` first, the user's site
    /// folder last.
    pub sys_path: Vec<PathBuf>,
    /// Key `home` of `pyvenv.cfg`.
    pub pyvenv_home: Option<PathBuf>,
    /// Key `extends-environment` of `pyvenv.cfg`: an overlay such as `uv run --with` makes.
    pub extends_environment: Option<PathBuf>,
}

/// One entry point of the group `pytest11`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Plugin {
    /// Name of the distribution, such as `pytest-cov`.
    pub distribution: String,
    /// Its version.
    pub version: String,
    /// Name of the entry point, such as `pytest_cov`.
    pub entry_point: String,
}

/// A candidate and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Considered {
    /// How it was found.
    pub found_by: String,
    /// The file that was or would have been started; none if the place was empty.
    pub executable: Option<PathBuf>,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It is the one.
    Chosen,
    /// Fit, but an earlier one won.
    Outranked,
    /// There is nothing at that place, such as an unset variable.
    Absent(String),
    /// It exists but cannot be used.
    Unfit(Unfit),
    /// Not started: an earlier one had already won.
    NotAsked,
    /// The same interpreter as an earlier candidate, found another way.
    Repeated {
        /// How the earlier one was found.
        of: String,
    },
}

/// Why an existing candidate cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// It does not start or does not answer.
    Broken(Fault),
    /// The project asks for another version of Python.
    WrongVersion {
        /// What it is.
        version: (u32, u32, u32),
        /// What the project asks for.
        requires: String,
    },
    /// pytest is not installed for it.
    NoPytest {
        /// Its Python version.
        version: (u32, u32, u32),
    },
    /// Its pytest is older than breakmycode can work with.
    OldPytest {
        /// Version of that pytest.
        pytest: String,
    },
    /// It is the environment that breakmycode itself was installed into.
    Ours {
        /// What made it, such as `uvx`.
        tool: String,
    },
}

/// Why an interpreter does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// No such file.
    Missing,
    /// A link to a file that no longer exists.
    DanglingLink {
        /// Where it points.
        target: PathBuf,
    },
    /// A folder without an interpreter in it.
    NoInterpreter,
    /// A folder with neither `pyvenv.cfg` nor `conda-meta`: not an environment.
    NoConfig,
    /// A file without the right to run it.
    NotExecutable,
    /// Made for another system or processor, such as a Windows program.
    ForeignFormat,
    /// The interpreter an environment was made from is gone.
    BaseMoved {
        /// Key `home` of its `pyvenv.cfg`.
        home: PathBuf,
    },
    /// The system refused to start it.
    CannotStart(String),
    /// It ended with an error.
    Exit {
        /// Exit code, none if a signal ended it.
        code: Option<i32>,
        /// Last line of its error output.
        message: String,
    },
    /// It did not answer in time.
    Timeout {
        /// How long it had.
        seconds: u64,
    },
    /// It answered something that is not the probe's answer.
    Garbage {
        /// The start of what it wrote.
        text: String,
    },
}

/// Something worth telling although an interpreter was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Code of the error family, if it has one (`E014`).
    pub code: Option<String>,
    /// One line.
    pub text: String,
    /// What to type to have it otherwise.
    pub help: Vec<String>,
}
