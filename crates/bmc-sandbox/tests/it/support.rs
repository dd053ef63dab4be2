//! A project and a home directory to be destroyed, and ways to run things in a world.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bmc_sandbox::{Exit, Isolation, Launcher, Leftovers, Network, Spec, World};
use tempfile::TempDir;

pub(crate) const LEVELS: [Isolation; 3] = [Isolation::Full, Isolation::FilesOnly, Isolation::Copy];

/// Longer than anything takes; only a hang reaches it.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) fn launcher() -> Launcher {
    Launcher::with_executable(tool()).unwrap()
}

/// The binary that becomes a helper.
pub(crate) fn tool() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_bmc-sandbox-try"))
}

pub(crate) fn python() -> PathBuf {
    let candidates = ["/usr/bin/python3", "/usr/local/bin/python3"];
    let found = candidates
        .iter()
        .map(PathBuf::from)
        .find(|path| path.exists());
    found.expect("the tests need a system-wide python3")
}

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// A temporary directory with a project and a home, both with a few files.
pub(crate) struct Site {
    pub(crate) root: TempDir,
    pub(crate) project: PathBuf,
    pub(crate) home: PathBuf,
}

impl Site {
    pub(crate) fn new() -> Self {
        Self::with("shop", "ann")
    }

    /// With paths relative to the directory; they may be equal or inside each other.
    pub(crate) fn with(project: impl AsRef<Path>, home: impl AsRef<Path>) -> Self {
        let root = tempfile::tempdir().unwrap();
        let (project, home) = (root.path().join(project), root.path().join(home));
        for directory in [&project, &home] {
            fs::create_dir_all(directory.join("sub/deep")).unwrap();
            fs::write(directory.join("kept.txt"), "before\n").unwrap();
            fs::write(directory.join("sub/inner.txt"), "inner\n").unwrap();
            fs::write(directory.join("sub/deep/bottom.txt"), "bottom\n").unwrap();
        }
        fs::create_dir_all(project.join(".git/hooks")).unwrap();
        fs::write(project.join(".git/config"), "[core]\n").unwrap();
        fs::create_dir_all(home.join(".ssh")).unwrap();
        fs::write(home.join(".ssh/id"), "secret\n").unwrap();
        Self {
            root,
            project,
            home,
        }
    }

    /// What to run, with its output going nowhere yet.
    pub(crate) fn spec(&self, program: impl Into<PathBuf>, args: &[&str]) -> Spec {
        let nowhere = || {
            OwnedFd::from(
                fs::OpenOptions::new()
                    .write(true)
                    .open("/dev/null")
                    .unwrap(),
            )
        };
        Spec {
            isolation: Isolation::Full,
            network: Network::Loopback,
            project: self.project.clone(),
            home: Some(self.home.clone()),
            expose: Vec::new(),
            writable: Vec::new(),
            masks: Vec::new(),
            scratch_bytes: 64 << 20,
            scratch_inodes: 10_000,
            program: program.into(),
            args: args.iter().map(OsString::from).collect(),
            env: vec![
                ("PATH".into(), "/usr/bin:/bin".into()),
                ("HOME".into(), self.home.clone().into()),
            ],
            cwd: self.project.clone(),
            stdout: nowhere(),
            stderr: nowhere(),
            inherit: Vec::new(),
            nice: 0,
        }
    }

    pub(crate) fn shell(&self, script: &str) -> Spec {
        self.spec("/bin/sh", &["-c", script])
    }

    pub(crate) fn python(&self, script: &str) -> Spec {
        self.spec(python(), &["-c", script])
    }

    /// Every path with its kind, permissions, times and content.
    pub(crate) fn snapshot(&self) -> BTreeMap<PathBuf, String> {
        let mut all = BTreeMap::new();
        snapshot(self.root.path(), &mut all);
        all
    }
}

fn snapshot(path: &Path, all: &mut BTreeMap<PathBuf, String>) {
    let data = fs::symlink_metadata(path).unwrap();
    let content = if data.is_file() {
        fs::read(path).unwrap()
    } else {
        Vec::new()
    };
    let facts = (
        data.mode(),
        data.size(),
        data.mtime(),
        data.mtime_nsec(),
        data.ctime(),
        data.ctime_nsec(),
        content,
    );
    all.insert(path.to_owned(), format!("{facts:?}"));
    if data.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            snapshot(&entry.unwrap().path(), all);
        }
    }
}

/// How a payload ended and what it said, on both of its outputs.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) exit: Exit,
    pub(crate) output: String,
}

/// Starts a world whose output can be read from the returned pipe.
pub(crate) fn start(mut spec: Spec) -> (World, fs::File) {
    let (reader, writer) = std::io::pipe().unwrap();
    spec.stdout = writer.try_clone().unwrap().into();
    spec.stderr = writer.into();
    let world = launcher().spawn(spec).unwrap();
    (world, fs::File::from(OwnedFd::from(reader)))
}

/// Runs a payload to its end.
pub(crate) fn run(spec: Spec) -> Ran {
    let (mut world, output) = start(spec);
    let output = read_to_end(output);
    let exit = world.wait(Some(LONG)).unwrap().expect("the payload ends");
    Ran { exit, output }
}

/// Runs a payload that must succeed, and returns what it said and left.
pub(crate) fn run_well(spec: Spec) -> (String, Leftovers) {
    let (mut world, output) = start(spec);
    let output = read_to_end(output);
    let exit = world.wait(Some(LONG)).unwrap().expect("the payload ends");
    assert_eq!(exit.code, Some(0), "{output}");
    (output, world.finish().unwrap())
}

/// What a payload says that must succeed.
pub(crate) fn said(spec: Spec) -> String {
    run_well(spec).0
}

pub(crate) fn read_to_end(mut file: fs::File) -> String {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads until this text has come.
pub(crate) fn read_until(file: &mut fs::File, wanted: &str) -> String {
    let mut bytes = Vec::new();
    let mut byte = [0_u8];
    while !String::from_utf8_lossy(&bytes).contains(wanted) {
        assert_eq!(
            file.read(&mut byte).unwrap(),
            1,
            "ended after {:?}",
            String::from_utf8_lossy(&bytes)
        );
        bytes.extend(byte);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
