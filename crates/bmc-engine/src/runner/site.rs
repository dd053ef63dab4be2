//! Where runs are made: everything about launching a process that stays the same during a scan.

use std::ffi::OsString;
use std::path::PathBuf;

use bmc_sandbox::{Launcher, Network};

/// Where runs are made.
#[derive(Debug, Clone)]
pub struct Site {
    /// Starts worlds.
    pub launcher: Launcher,
    /// Network of fully isolated worlds.
    pub network: Network,
    /// Root of the project: working directory of every process.
    pub root: PathBuf,
    /// What gets a copy-on-write view: the git work tree around the root, or the root.
    pub tree: PathBuf,
    /// The user's home: copy-on-write as well.
    pub home: Option<PathBuf>,
    /// The interpreter.
    pub python: PathBuf,
    /// Folders the interpreter needs, wherever they are.
    pub expose: Vec<PathBuf>,
    /// Folders whose content is hidden.
    pub masks: Vec<PathBuf>,
    /// Folder with the plugin, and nothing else.
    pub plugin: PathBuf,
    /// Our own bytecode cache, shared by all processes.
    pub bytecode: PathBuf,
    /// Folder of this scan for copies and temporary files on systems without namespaces.
    pub scratch: PathBuf,
    /// Environment of the tests, without what each start adds.
    pub env: Vec<(OsString, OsString)>,
    /// Arguments for pytest.
    pub pytest_args: Vec<OsString>,
    /// Go on when some files cannot be collected.
    pub continue_on_collection_errors: bool,
    /// Memory that the writes of one world may take.
    pub scratch_bytes: u64,
    /// Names of the capabilities that tests keep: those of root over its own files and processes, if we are root.
    pub keep_caps: Vec<String>,
}
