//! A home, a project and the binary, each test its own. Nothing of the user's settings reaches the binary.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use bmc_types::{ScanReport, TestClass};
use serde_json::Value;
use tempfile::TempDir;

use crate::bytecode;
use crate::environments::{self, Environment};

/// The seed of every scan that does not say otherwise.
pub(crate) const SEED: &str = "0x5eed";

/// A folder with a home and everything that the binary may write to. Removed at the end of the test.
pub(crate) struct Lab {
    folder: TempDir,
}

impl Lab {
    /// Makes an empty one. No folder above it belongs to a git work tree.
    ///
    /// The bytecode of Python's own modules is there already, as in every scan but the first of a user: compiling it takes seconds.
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("breakmycode-it-")
            .tempdir()
            .unwrap();
        let lab = Self { folder };
        for name in ["home/src", "data", "cache", "config"] {
            fs::create_dir_all(lab.path(name)).unwrap();
        }
        bytecode::lay_out(&lab.bytecode());
        let above = lab
            .folder
            .path()
            .ancestors()
            .find(|folder| folder.join(".git").exists());
        assert_eq!(
            above, None,
            "the temporary folder lies in a git work tree; set TMPDIR to another place"
        );
        lab
    }

    /// The folder itself.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn bytecode(&self) -> PathBuf {
        self.path("cache/breakmycode/bytecode")
    }

    /// A place below the folder.
    pub(crate) fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(below)
    }

    /// The home of the user.
    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// The database with all scans.
    pub(crate) fn database(&self) -> PathBuf {
        self.path("data/breakmycode/trace.db")
    }

    /// Copies a fixture project into the home and gives the place of the copy.
    pub(crate) fn fixture(&self, name: &str) -> PathBuf {
        let copy = self.home().join("src").join(name);
        copy_tree(&fixtures().join(name), &copy);
        copy
    }

    /// Makes a project in the home from names and contents of files.
    pub(crate) fn project(&self, name: impl AsRef<Path>, files: &[(&str, &str)]) -> PathBuf {
        let root = self.home().join("src").join(name);
        write_files(&root, files);
        root
    }

    /// The binary with a scrubbed environment.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_breakmycode"));
        command
            .env_clear()
            .env("HOME", self.home())
            .env("XDG_DATA_HOME", self.path("data"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .args(["--color", "never"])
            .current_dir(self.home())
            .stdin(Stdio::null());
        command
    }

    /// The binary with some arguments.
    pub(crate) fn typed<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = self.command();
        command.args(arguments);
        command
    }

    /// A scan of a project with a fixed seed and the usual environment.
    pub(crate) fn scan(&self, project: impl AsRef<Path>, arguments: &[&str]) -> Command {
        self.scan_with(environments::usual(), project, arguments)
    }

    /// A scan of a project with a fixed seed and that environment.
    pub(crate) fn scan_with(
        &self,
        environment: &Environment,
        project: impl AsRef<Path>,
        arguments: &[&str],
    ) -> Command {
        let mut command = self.command();
        command.arg("scan").arg(project.as_ref());
        command
            .arg("--python")
            .arg(&environment.python)
            .args(["--seed", SEED])
            .args(arguments);
        command
    }

    /// Folders of scans that are left in the cache.
    pub(crate) fn scratch_left(&self) -> Vec<PathBuf> {
        let folder = self.path("cache/breakmycode/scans");
        match fs::read_dir(folder) {
            Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
                Vec::new()
            }
        }
    }

    /// Neither processes nor folders of a scan are left.
    pub(crate) fn assert_clean(&self) {
        crate::processes::assert_none_left(self.folder());
        assert_eq!(
            self.scratch_left(),
            [] as [PathBuf; 0],
            "folders of scans are left in the cache"
        );
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        bytecode::collect(&self.bytecode(), self.folder.path());
    }
}

/// What a finished command left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Done {
    /// The exit code; `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

impl Done {
    /// The report that `--format json` printed.
    pub(crate) fn report(&self) -> ScanReport {
        let report = serde_json::from_str(&self.stdout);
        report.unwrap_or_else(|error| panic!("standard output is no report: {error}\n{self:#?}"))
    }

    /// Ended with that code.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
        self
    }
}

/// Runs a command to its end. What it writes must be UTF-8.
pub(crate) fn finish(mut command: Command) -> Done {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    Done {
        code: status.code(),
        stdout: text(stdout),
        stderr: text(stderr),
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| panic!("output is not UTF-8: {:?}", error.as_bytes()))
}

/// The folder with the fixture projects.
pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/projects")
}

/// Writes files, with the folders they need.
pub(crate) fn write_files(root: &Path, files: &[(&str, &str)]) {
    fs::create_dir_all(root).unwrap();
    for (name, content) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        // Caches that a person's own pytest left in the fixture are no part of it.
        if entry.file_name() == "__pycache__" || entry.file_name() == ".pytest_cache" {
        } else if kind.is_dir() {
            copy_tree(&entry.path(), &target);
        } else if kind.is_symlink() {
            symlink(fs::read_link(entry.path()).unwrap(), target).unwrap();
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Runs the binary with some arguments to its end.
pub(crate) fn typed(lab: &Lab, arguments: &[&str]) -> Done {
    finish(lab.typed(arguments))
}

/// Standard output as JSON.
pub(crate) fn json(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap()
}

/// Every test passed every time, and there is one.
#[track_caller]
pub(crate) fn assert_all_clean(report: &ScanReport) {
    for test in &report.tests {
        assert_eq!(test.class, TestClass::Clean, "{test:#?}");
    }
    assert!(!report.tests.is_empty());
}
