//! Mounts copy-on-write directories. Takes descriptors, never path strings: option strings cannot hold every path.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, Timespec, Timestamps, Uid, fstat, mkdirat, open,
};
use rustix::mount::{MountFlags, mount};

use super::view::by_descriptor;

/// The two directories of one overlay in scratch memory.
pub(crate) struct Writable {
    upper: OwnedFd,
    work: OwnedFd,
}

/// The directory that holds what is written at action number `index`.
pub(crate) fn upper_path(store: &Path, index: usize) -> PathBuf {
    store.join(index.to_string()).join("upper")
}

/// Creates a directory with exactly these permissions, whatever the umask is.
pub(crate) fn make_directory(path: &Path, mode: u32) -> io::Result<()> {
    mkdirat(CWD, path, Mode::from_raw_mode(mode))?;
    rustix::fs::chmod(path, Mode::from_raw_mode(mode))?;
    Ok(())
}

/// Makes the directories of an overlay; the upper one looks like `model` from the outside.
pub(crate) fn prepare(store: &Path, index: usize, model: BorrowedFd<'_>) -> io::Result<Writable> {
    let upper = upper_path(store, index);
    let work = store.join(index.to_string()).join("work");
    make_directory(&store.join(index.to_string()), 0o755)?;
    make_directory(&upper, 0o755)?;
    make_directory(&work, 0o755)?;
    let upper = directory(&upper)?;
    imitate(upper.as_fd(), model)?;
    Ok(Writable {
        upper,
        work: directory(&work)?,
    })
}

fn directory(path: &Path) -> io::Result<OwnedFd> {
    Ok(open(
        path,
        OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// Gives a directory the owner, permissions and times of another.
pub(crate) fn imitate(directory: BorrowedFd<'_>, model: BorrowedFd<'_>) -> io::Result<()> {
    let stat = fstat(model)?;
    // An ordinary user cannot give files away; the directory is then its own, as its new files would be.
    let _ = rustix::fs::fchown(
        directory,
        Some(Uid::from_raw(stat.st_uid)),
        Some(Gid::from_raw(stat.st_gid)),
    );
    rustix::fs::fchmod(directory, Mode::from_raw_mode(stat.st_mode))?;
    rustix::fs::futimens(directory, &times(&stat))?;
    Ok(())
}

/// The access and modification times of a file.
pub(crate) fn times(stat: &rustix::fs::Stat) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: stat.st_atime,
            tv_nsec: stat.st_atime_nsec as _,
        },
        last_modification: Timespec {
            tv_sec: stat.st_mtime,
            tv_nsec: stat.st_mtime_nsec as _,
        },
    }
}

/// Mounts an overlay of `lowers`, topmost first, on the directory `target`.
pub(crate) fn mount_on(
    target: BorrowedFd<'_>,
    writable: &Writable,
    lowers: &[OwnedFd],
) -> io::Result<()> {
    let lowers: Vec<String> = lowers
        .iter()
        .map(|lower| by_descriptor(lower.as_fd()))
        .collect();
    // `userxattr` is what a user namespace may use; `volatile` leaves out the syncing of memory to itself.
    let options = CString::new(format!(
        "lowerdir={},upperdir={},workdir={},userxattr,volatile",
        lowers.join(":"),
        by_descriptor(writable.upper.as_fd()),
        by_descriptor(writable.work.as_fd()),
    ))?;
    mount(
        "overlay",
        by_descriptor(target),
        "overlay",
        MountFlags::NOSUID | MountFlags::NODEV,
        Some(options.as_c_str()),
    )?;
    Ok(())
}

/// Tries what overlays in memory could not do before tmpfs learned user attributes (Linux 6.6).
pub(crate) fn try_recreating(store: &Path) -> io::Result<()> {
    let base = store.join("probe");
    for name in ["", "lower", "lower/inside", "merged"] {
        make_directory(&base.join(name), 0o755)?;
    }
    let lower = directory(&base.join("lower"))?;
    let writable = prepare(&base, 0, lower.as_fd())?;
    let merged = directory(&base.join("merged"))?;
    mount_on(merged.as_fd(), &writable, &[lower])?;
    let inside = base.join("merged/inside");
    rustix::fs::unlinkat(CWD, &inside, AtFlags::REMOVEDIR)?;
    mkdirat(CWD, &inside, Mode::from_raw_mode(0o755))?;
    rustix::mount::unmount(base.join("merged"), rustix::mount::UnmountFlags::DETACH)?;
    Ok(())
}
