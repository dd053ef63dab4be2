//! The files that matter, as a digest, and what has changed since: "identical code" is checked, not assumed.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Folders that hold no code of the project: caches, environments and version control.
const LEFT_OUT: [&str; 16] = [
    ".git",
    ".hg",
    ".svn",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".hypothesis",
    ".tox",
    ".nox",
    ".venv",
    "node_modules",
    ".idea",
    ".vscode",
    ".eggs",
    ".breakmycode",
];

/// Files above this size count by size and time of change alone: data sets of gigabytes would else be read before every scan.
const READ_LIMIT: u64 = 16 << 20;

/// Deepest folder that is looked into: a safe distance from the limits of the system, far beyond any project.
const DEPTH_LIMIT: u32 = 128;

/// What is remembered of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    size: u64,
    mode: u32,
    mtime: (i64, i64),
    inode: u64,
    /// Over the content or the target of a link; `None` for large and unreadable files.
    content: Option<[u8; 32]>,
}

/// The files of a project at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    root: PathBuf,
    files: BTreeMap<PathBuf, Stamp>,
    unreadable: Vec<PathBuf>,
}

/// A file that is no longer as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Has other content or another mode.
    Modified(PathBuf),
    /// Was not there.
    Added(PathBuf),
    /// Is gone.
    Removed(PathBuf),
}

impl Change {
    /// The file, relative to the root.
    pub fn path(&self) -> &Path {
        match self {
            Change::Modified(path) | Change::Added(path) | Change::Removed(path) => path,
        }
    }

    /// `changed`, `added` or `removed`.
    pub fn word(&self) -> &'static str {
        match self {
            Change::Modified(_) => "changed",
            Change::Added(_) => "added",
            Change::Removed(_) => "removed",
        }
    }
}

impl Snapshot {
    /// Reads all files that matter below `root`. Links are not followed; folders and files that cannot be read are noted.
    ///
    /// # Errors
    /// Only if `root` itself cannot be read.
    pub fn take(root: &Path) -> io::Result<Self> {
        fs::read_dir(root)?;
        let mut snapshot = Self {
            root: root.to_owned(),
            files: BTreeMap::new(),
            unreadable: Vec::new(),
        };
        let mut found = Vec::new();
        walk(root, Path::new(""), 0, &mut found, &mut snapshot.unreadable);
        for (path, metadata) in found {
            let content = match read_content(&root.join(&path), &metadata) {
                Ok(content) => content,
                Err(_) => {
                    snapshot.unreadable.push(path.clone());
                    None
                }
            };
            snapshot.files.insert(path, stamp(&metadata, content));
        }
        Ok(snapshot)
    }

    /// `sha256:` and 64 hexadecimal digits over paths, modes and contents.
    pub fn digest(&self) -> String {
        let mut hasher = Sha256::new();
        for (path, stamp) in &self.files {
            let bytes = path.as_os_str().as_bytes();
            hasher.update((bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
            hasher.update((stamp.mode & 0o170_111).to_le_bytes());
            match stamp.content {
                Some(content) => hasher.update(content),
                None => hasher.update(stamp.size.to_le_bytes()),
            }
        }
        let hex: String = hasher
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("sha256:{hex}")
    }

    /// Files and folders that could not be read, relative to the root.
    pub fn unreadable(&self) -> &[PathBuf] {
        &self.unreadable
    }

    /// How many files matter.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether no file matters.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// What differs from now on the disk. Content is read only where size, time or identity of a file changed; a file that was
    /// written again with the same content counts as unchanged.
    pub fn changes(&self) -> Vec<Change> {
        let mut found = Vec::new();
        walk(&self.root, Path::new(""), 0, &mut found, &mut Vec::new());
        let mut changes = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for (path, metadata) in found {
            match self.files.get(&path) {
                None => changes.push(Change::Added(path)),
                Some(old) => {
                    let now = stamp(&metadata, old.content);
                    let same = now == *old
                        || (now.mode == old.mode
                            && now.size == old.size
                            && old.content.is_some()
                            && read_content(&self.root.join(&path), &metadata)
                                .ok()
                                .flatten()
                                == old.content);
                    if !same {
                        changes.push(Change::Modified(path.clone()));
                    }
                    seen.insert(path);
                }
            }
        }
        changes.extend(
            self.files
                .keys()
                .filter(|path| !seen.contains(*path))
                .map(|path| Change::Removed(path.clone())),
        );
        changes.sort_by(|a, b| a.path().cmp(b.path()));
        changes
    }
}

fn stamp(metadata: &Metadata, content: Option<[u8; 32]>) -> Stamp {
    Stamp {
        size: metadata.size(),
        mode: metadata.mode(),
        mtime: (metadata.mtime(), metadata.mtime_nsec()),
        inode: metadata.ino(),
        content,
    }
}

fn walk(
    root: &Path,
    below: &Path,
    depth: u32,
    found: &mut Vec<(PathBuf, Metadata)>,
    unreadable: &mut Vec<PathBuf>,
) {
    let entries = match fs::read_dir(root.join(below)) {
        Ok(entries) if depth < DEPTH_LIMIT => entries,
        _ => {
            unreadable.push(below.to_owned());
            return;
        }
    };
    for entry in entries {
        let Ok(entry) = entry else {
            unreadable.push(below.to_owned());
            continue;
        };
        let name = entry.file_name();
        let path = below.join(&name);
        // `DirEntry::metadata` does not follow links.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if metadata.is_dir() {
            let left_out =
                LEFT_OUT.iter().any(|n| name == *n) || root.join(&path).join("pyvenv.cfg").exists();
            if !left_out {
                walk(root, &path, depth + 1, found, unreadable);
            }
        } else if !matters_not(&name.to_string_lossy()) {
            found.push((path, metadata));
        }
    }
}

fn matters_not(name: &str) -> bool {
    name.ends_with(".pyc")
        || name.ends_with(".pyo")
        || name == ".coverage"
        || name.starts_with(".coverage.")
        || name == ".DS_Store"
}

fn read_content(path: &Path, metadata: &Metadata) -> io::Result<Option<[u8; 32]>> {
    if metadata.is_symlink() {
        let target = fs::read_link(path)?;
        return Ok(Some(Sha256::digest(target.as_os_str().as_bytes()).into()));
    }
    // Sockets, pipes and devices have no content; opening a pipe would wait for a writer.
    if !metadata.is_file() || metadata.size() > READ_LIMIT {
        return Ok(None);
    }
    let mut hasher = Sha256::new();
    let mut file = File::open(path)?.take(READ_LIMIT);
    let mut buffer = [0; 1 << 16];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(Some(hasher.finalize().into())),
            Ok(got) => hasher.update(&buffer[..got]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn project() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("pkg")).unwrap();
        fs::write(folder.path().join("pkg/a.py"), "a = 1\n").unwrap();
        fs::write(folder.path().join("data.txt"), "x").unwrap();
        symlink("pkg", folder.path().join("link")).unwrap();
        symlink(".", folder.path().join("loop")).unwrap();
        folder
    }

    #[test]
    fn caches_environments_and_git_do_not_matter() {
        let folder = project();
        let before = Snapshot::take(folder.path()).unwrap();
        for path in [
            ".git/HEAD",
            "pkg/__pycache__/a.pyc",
            ".venv/lib/x.py",
            ".pytest_cache/v",
            "env/lib/y.py",
            "env/pyvenv.cfg",
            ".coverage",
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        assert_eq!(before.changes(), []);
        assert_eq!(
            Snapshot::take(folder.path()).unwrap().digest(),
            before.digest()
        );
        assert_eq!(before.len(), 4);
    }

    #[test]
    fn every_kind_of_change_is_named() {
        let folder = project();
        let before = Snapshot::take(folder.path()).unwrap();
        fs::write(folder.path().join("pkg/a.py"), "a = 2\n").unwrap();
        fs::write(folder.path().join("pkg/b.py"), "").unwrap();
        fs::remove_file(folder.path().join("data.txt")).unwrap();
        let expected = [
            Change::Removed("data.txt".into()),
            Change::Modified("pkg/a.py".into()),
            Change::Added("pkg/b.py".into()),
        ];
        assert_eq!(before.changes(), expected);
        assert_ne!(
            Snapshot::take(folder.path()).unwrap().digest(),
            before.digest()
        );
    }

    #[test]
    fn writing_the_same_content_again_is_no_change() {
        let folder = project();
        let before = Snapshot::take(folder.path()).unwrap();
        fs::remove_file(folder.path().join("pkg/a.py")).unwrap();
        fs::write(folder.path().join("pkg/a.py"), "a = 1\n").unwrap();
        assert_eq!(before.changes(), []);
    }

    #[test]
    fn a_mode_that_makes_a_file_executable_is_a_change() {
        let folder = project();
        let before = Snapshot::take(folder.path()).unwrap();
        fs::set_permissions(
            folder.path().join("data.txt"),
            fs::Permissions::from_mode(0o755),
        )
        .unwrap();
        assert_eq!(before.changes(), [Change::Modified("data.txt".into())]);
    }

    #[test]
    fn a_pipe_in_the_project_does_not_block() {
        let folder = project();
        let made = std::process::Command::new("mkfifo")
            .arg(folder.path().join("pipe"))
            .status()
            .unwrap();
        assert!(made.success());
        assert_eq!(Snapshot::take(folder.path()).unwrap().len(), 5);
    }
}
