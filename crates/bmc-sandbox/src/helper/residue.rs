//! Compares what a world wrote with what it started from. Reads only; follows no links.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fgetxattr, openat, statat};

use super::overlay;
use super::plan::{Plan, What};
use super::view::Store;
use crate::leftovers::{Change, LeftFile, Place};

/// More than a reader wants to see; a suite that writes more is told so.
const MOST_FILES: usize = 1000;

/// Trees deeper than this are not followed: each level holds descriptors open.
const DEEPEST: usize = 64;

/// One directory of a world that may have been written to, kept open because its path may not be reachable later.
pub(crate) struct Layer {
    place: Place,
    prefix: PathBuf,
    upper: OwnedFd,
    lowers: Vec<OwnedFd>,
    /// Paths below the upper directory that the builder made.
    ours: Vec<PathBuf>,
    /// The upper directory was filled with copies, so that what is missing in it was deleted.
    copied: bool,
}

/// Opens everything that is needed for [`changes`]. The stores must still be reachable by path.
pub(crate) fn layers(plan: &Plan, store: Store) -> Vec<Layer> {
    let mut layers = Vec::new();
    for (index, action) in plan.actions.iter().enumerate() {
        let Some((place, prefix)) = &action.place else {
            continue;
        };
        let upper = open_directory(
            rustix::fs::CWD,
            overlay::upper_path(store.own.as_ref(), index).as_os_str(),
        );
        // An optional overlay that could not be mounted has no upper directory and was read-only.
        let (Ok(upper), Ok(lowers)) = (upper, store.lowers(index, action)) else {
            continue;
        };
        layers.push(Layer {
            place: *place,
            prefix: prefix.clone(),
            upper,
            lowers,
            ours: plan.mount_points_below(&action.path),
            copied: action.what == What::Skeleton && store.below.is_none(),
        });
    }
    layers
}

/// What differs, sorted, and whether there was more than fits in the list.
pub(crate) fn changes(layers: &[Layer]) -> (Vec<LeftFile>, bool) {
    let mut walk = Walk {
        found: Vec::new(),
        truncated: false,
    };
    for layer in layers {
        let lowers: Vec<BorrowedFd<'_>> = layer.lowers.iter().map(AsFd::as_fd).collect();
        walk.directory(layer, layer.upper.as_fd(), &lowers, Path::new(""), 0);
        if layer.copied {
            walk.missing(layer);
        }
    }
    walk.found.sort();
    (walk.found, walk.truncated)
}

struct Walk {
    found: Vec<LeftFile>,
    truncated: bool,
}

impl Walk {
    fn add(&mut self, layer: &Layer, path: &Path, change: Change) {
        if self.found.len() < MOST_FILES {
            self.found.push(LeftFile {
                place: layer.place,
                path: layer.prefix.join(path),
                change,
            });
        } else {
            self.truncated = true;
        }
    }

    /// `lowers` are the same directory in the layers below, topmost first; none when it did not exist there.
    fn directory(
        &mut self,
        layer: &Layer,
        upper: BorrowedFd<'_>,
        lowers: &[BorrowedFd<'_>],
        path: &Path,
        depth: usize,
    ) {
        let Ok(entries) = Dir::read_from(upper) else {
            return;
        };
        for entry in entries.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if self.truncated || name == "." || name == ".." {
                continue;
            }
            let path = path.join(name);
            let Ok(stat) = statat(upper, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            let before = seen_in(lowers, name);
            let ours = layer.ours.binary_search(&path).is_ok();
            if is_whiteout(&stat) {
                if before.is_some() {
                    self.add(layer, &path, Change::Deleted);
                }
                continue;
            }
            let directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            match &before {
                _ if ours => {}
                None => self.add(layer, &path, Change::Created),
                Some(before) if directory && is_directory(before) => {
                    if is_opaque(upper, name) {
                        self.add(layer, &path, Change::Changed);
                    }
                }
                Some(before) => {
                    if !same(before, &stat) {
                        self.add(layer, &path, Change::Changed);
                    }
                }
            }
            if directory && depth < DEEPEST {
                self.enter(layer, upper, lowers, name, &path, depth);
            }
        }
    }

    fn enter(
        &mut self,
        layer: &Layer,
        upper: BorrowedFd<'_>,
        lowers: &[BorrowedFd<'_>],
        name: &OsStr,
        path: &Path,
        depth: usize,
    ) {
        let Ok(inner) = open_directory(upper, name) else {
            return;
        };
        let below: Vec<OwnedFd> = if opaque(inner.as_fd()) {
            Vec::new()
        } else {
            directories_in(lowers, name)
        };
        let below: Vec<BorrowedFd<'_>> = below.iter().map(AsFd::as_fd).collect();
        self.directory(layer, inner.as_fd(), &below, path, depth + 1);
    }

    /// Reports what the host has and a filled copy has not (any more).
    fn missing(&mut self, layer: &Layer) {
        let Some(lower) = layer.lowers.first() else {
            return;
        };
        let Ok(entries) = fs::read_dir(super::view::by_descriptor(lower.as_fd())) else {
            return;
        };
        for entry in entries.flatten() {
            let copied = entry
                .file_type()
                .is_ok_and(|kind| kind.is_symlink() || kind.is_file());
            let readable = entry.file_type().is_ok_and(|kind| kind.is_symlink())
                || fs::File::open(entry.path()).is_ok();
            let name = entry.file_name();
            if copied && readable && statat(&layer.upper, &name, AtFlags::SYMLINK_NOFOLLOW).is_err()
            {
                self.add(layer, Path::new(&name), Change::Deleted);
            }
        }
    }
}

fn open_directory(at: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(at, name, flags, Mode::empty())?)
}

fn open_place(at: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(at, name, flags, Mode::empty())?)
}

/// What a name meant before the world wrote: the topmost layer that knows it decides.
fn seen_in(lowers: &[BorrowedFd<'_>], name: &OsStr) -> Option<Stat> {
    let stat = lowers
        .iter()
        .find_map(|lower| statat(*lower, name, AtFlags::SYMLINK_NOFOLLOW).ok())?;
    (!is_whiteout(&stat)).then_some(stat)
}

/// The directories of this name that together were one before the world wrote.
fn directories_in(lowers: &[BorrowedFd<'_>], name: &OsStr) -> Vec<OwnedFd> {
    let mut found = Vec::new();
    for lower in lowers {
        let Ok(stat) = statat(*lower, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let (true, Ok(directory)) = (is_directory(&stat), open_place(*lower, name)) else {
            break;
        };
        let last = is_opaque(*lower, name);
        found.push(directory);
        if last {
            break;
        }
    }
    found
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// An overlay marks a deleted file with a character device of number 0.
fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}

fn is_opaque(at: BorrowedFd<'_>, name: &OsStr) -> bool {
    open_directory(at, name).is_ok_and(|directory| opaque(directory.as_fd()))
}

/// An overlay marks a directory that replaced another one.
fn opaque(directory: BorrowedFd<'_>) -> bool {
    let mut value = [0_u8; 8];
    matches!(fgetxattr(directory, "user.overlay.opaque", &mut value[..]), Ok(1) if value[0] == b'y')
}

/// A file that was only opened for writing is copied up by the overlay, but has not changed.
fn same(before: &Stat, after: &Stat) -> bool {
    let facts = |stat: &Stat| {
        (
            stat.st_mode,
            stat.st_uid,
            stat.st_gid,
            stat.st_size,
            stat.st_mtime,
            stat.st_mtime_nsec,
        )
    };
    facts(before) == facts(after)
}
