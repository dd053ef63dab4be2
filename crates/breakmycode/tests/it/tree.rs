//! Everything about the files below a folder that a scan must leave as it was: names, kinds, modes, owners, times, contents.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// One entry. Times of reading are left out: looking at a file changes them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    mode: u32,
    owner: (u32, u32),
    links: u64,
    changed: (i64, i64),
    content: Vec<u8>,
}

/// The files below a folder at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    root: PathBuf,
    entries: BTreeMap<PathBuf, Entry>,
}

impl Tree {
    /// Looks at everything, `.git` and caches included.
    pub(crate) fn of(root: &Path) -> Self {
        let mut entries = BTreeMap::new();
        walk(root, &mut entries);
        Self {
            root: root.to_owned(),
            entries,
        }
    }

    /// Fails unless everything is as it was.
    #[track_caller]
    pub(crate) fn assert_unchanged(&self) {
        let now = Self::of(&self.root);
        let mut words = String::new();
        for (path, entry) in &self.entries {
            match now.entries.get(path) {
                None => writeln!(words, "removed: {}", path.display()).unwrap(),
                Some(other) if other != entry => {
                    let what = describe(entry, other);
                    writeln!(words, "changed: {} ({what})", path.display()).unwrap();
                }
                Some(_) => {}
            }
        }
        for path in now
            .entries
            .keys()
            .filter(|path| !self.entries.contains_key(*path))
        {
            writeln!(words, "added: {}", path.display()).unwrap();
        }
        assert!(
            words.is_empty(),
            "{} is not what it was:\n{words}",
            self.root.display()
        );
    }
}

fn describe(before: &Entry, after: &Entry) -> String {
    let Entry {
        mode,
        owner,
        links,
        changed,
        content,
    } = before;
    let mut what = Vec::new();
    if *mode != after.mode {
        what.push(format!("mode {mode:o}, now {:o}", after.mode));
    }
    if *owner != after.owner {
        what.push(format!("owner {owner:?}, now {:?}", after.owner));
    }
    if *links != after.links {
        what.push(format!("{links} links, now {}", after.links));
    }
    if *changed != after.changed {
        what.push("time".to_owned());
    }
    if *content != after.content {
        what.push("content".to_owned());
    }
    what.join(", ")
}

fn walk(path: &Path, entries: &mut BTreeMap<PathBuf, Entry>) {
    let metadata = fs::symlink_metadata(path).unwrap();
    // A pipe is not opened: that would wait for somebody to write.
    let content = match metadata.file_type() {
        kind if kind.is_file() => fs::read(path).unwrap(),
        kind if kind.is_symlink() => fs::read_link(path)
            .unwrap()
            .into_os_string()
            .into_encoded_bytes(),
        _ => Vec::new(),
    };
    let entry = Entry {
        mode: metadata.mode(),
        owner: (metadata.uid(), metadata.gid()),
        links: metadata.nlink(),
        changed: (metadata.mtime(), metadata.mtime_nsec()),
        content,
    };
    entries.insert(path.to_owned(), entry);
    if metadata.is_dir() {
        for child in fs::read_dir(path).unwrap() {
            walk(&child.unwrap().path(), entries);
        }
    }
}
