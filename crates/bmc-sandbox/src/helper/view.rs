//! Builds what a world sees, as planned, and makes it the root directory.
//!
//! Works on descriptors that were opened without following links, so that nothing in a project or a temporary directory
//! can lead a mount astray. Creates mount points only in memory that belongs to the world.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, mkdirat, mknodat, open, openat2, symlinkat,
};
use rustix::mount::{
    MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, move_mount, open_tree, unmount,
};

use super::plan::{Action, Plan, What};
use super::stage::{At, Failure, Stage};
use super::{dev, overlay, skeleton};
use crate::sys;

/// Where the builder sees the host.
pub(crate) const HOST: &str = "/oldroot";
/// Where the view is built.
const VIEW: &str = "/newroot";

/// Memory for what a world writes, and that of the world below whose state it starts from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Store {
    pub(crate) own: &'static str,
    pub(crate) below: Option<&'static str>,
}

impl Store {
    /// The layers that are seen where action number `index` has written nothing, topmost first.
    pub(crate) fn lowers(&self, index: usize, action: &Action) -> io::Result<Vec<OwnedFd>> {
        let mut lowers = Vec::new();
        if let Some(below) = self.below {
            lowers.push(open_path(&overlay::upper_path(below.as_ref(), index))?);
        }
        match action.what {
            // In a child world the fresh directory of the world below is all there is.
            What::Fresh { .. } => {}
            What::Skeleton if self.below.is_some() => {}
            What::Skeleton | What::Overlay { .. } => {
                lowers.push(open_path(&on_host(&action.path))?)
            }
            What::Submount
            | What::Devices
            | What::Processes
            | What::Bind { .. }
            | What::Link { .. } => {}
        }
        Ok(lowers)
    }
}

/// The view while it is built.
pub(crate) struct View {
    root: OwnedFd,
}

impl View {
    /// Opens a path of the view, through mounts and never through links.
    pub(crate) fn open(&self, path: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve =
            ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::BENEATH;
        Ok(openat2(
            &self.root,
            relative(path),
            flags,
            Mode::empty(),
            resolve,
        )?)
    }

    /// Makes the view the root directory. Afterwards nothing else can be reached by path.
    pub(crate) fn become_root(self) -> Result<(), Failure> {
        rustix::process::fchdir(&self.root).at(Stage::Root)?;
        rustix::process::pivot_root(".", ".").at(Stage::Root)?;
        unmount(".", UnmountFlags::DETACH).at(Stage::Root)?;
        rustix::process::chdir("/").at(Stage::Root)?;
        Stage::Root.done();
        Ok(())
    }

    /// Opens a path of the view to mount something there, and creates what is missing of it.
    pub(crate) fn mount_point(&self, path: &Path, directory: bool) -> io::Result<OwnedFd> {
        match self.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let parent = self.mount_point(parent, true)?;
        if directory {
            mkdirat(&parent, name, Mode::from_raw_mode(0o755))?;
            rustix::fs::chmodat(&parent, name, Mode::from_raw_mode(0o755), AtFlags::empty())?;
        } else {
            mknodat(
                &parent,
                name,
                FileType::RegularFile,
                Mode::from_raw_mode(0o644),
                0,
            )?;
        }
        self.open(path)
    }
}

/// A path inside the view as one that is relative to its root.
fn relative(path: &Path) -> PathBuf {
    let relative: PathBuf = path.components().skip(1).collect();
    if relative.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        relative
    }
}

/// Where the builder finds a path of the host.
pub(crate) fn on_host(path: &Path) -> PathBuf {
    Path::new(HOST).join(relative(path))
}

/// A name for what a descriptor refers to, whatever bytes its path has.
pub(crate) fn by_descriptor(descriptor: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd())
}

/// Opens a path for use as a place, not for reading.
pub(crate) fn open_path(path: &Path) -> io::Result<OwnedFd> {
    Ok(open(
        path,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// Makes a detached copy of a mount with more restrictions; an empty `path` means `from` itself.
pub(crate) fn clone_mount(
    from: impl AsFd,
    path: &str,
    recursive: bool,
    more: MountAttrFlags,
) -> io::Result<OwnedFd> {
    clone_mount_at(from, path.as_ref(), recursive, more)
}

fn clone_mount_at(
    from: impl AsFd,
    path: &Path,
    recursive: bool,
    more: MountAttrFlags,
) -> io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_NO_AUTOMOUNT
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    if recursive {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    let tree = open_tree(from, path, flags)?;
    if !more.is_empty() {
        sys::set_mount_attributes(tree.as_fd(), u64::from(more.bits()), recursive)?;
    }
    Ok(tree)
}

/// Mounts a detached mount on a place.
pub(crate) fn attach(tree: BorrowedFd<'_>, place: BorrowedFd<'_>) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(tree, "", place, "", flags)?)
}

/// Builds the view. `probing` also tries what suites may do later.
pub(crate) fn build(plan: &Plan, store: Store, probing: bool) -> Result<View, Failure> {
    let restrictions = if plan.full {
        MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NOSUID
    } else {
        MountAttrFlags::empty()
    };
    let host = clone_mount(CWD, HOST, true, restrictions).at(Stage::HostView)?;
    let place = open_path(VIEW.as_ref()).at(Stage::HostView)?;
    attach(host.as_fd(), place.as_fd()).at(Stage::HostView)?;
    let view = View {
        root: open_path(VIEW.as_ref()).at(Stage::HostView)?,
    };
    Stage::HostView.done();

    for (index, action) in plan.actions.iter().enumerate() {
        perform(&view, index, action, store)?;
    }
    for (path, directory) in &plan.masks {
        mask(&view, path, *directory).at_path(Stage::Masks, path)?;
    }
    if probing {
        overlay::try_recreating(store.own.as_ref()).at(Stage::Recreate)?;
        Stage::Recreate.done();
    }
    Ok(view)
}

fn perform(view: &View, index: usize, action: &Action, store: Store) -> Result<(), Failure> {
    let path = &action.path;
    match &action.what {
        // A mount that cannot be copied (unbindable, or not accessible to us) is left out, as the plan allows.
        What::Submount => drop(bind(view, path, true, MountAttrFlags::MOUNT_ATTR_RDONLY)),
        What::Fresh { .. } | What::Skeleton => {
            fresh(view, index, action, store).at_path(Stage::Temporary, path)?;
            Stage::Temporary.done();
        }
        What::Devices => dev::mount_devices(view, path)?,
        What::Processes => dev::mount_processes(view, path)?,
        What::Overlay { optional } => {
            match caught(view, index, action, store) {
                Err(_) if *optional => bind(view, path, true, MountAttrFlags::MOUNT_ATTR_RDONLY),
                other => other,
            }
            .at_path(Stage::Overlay, path)?;
            Stage::Overlay.done();
        }
        What::Bind {
            writable,
            directory,
        } => {
            let more = if *writable {
                MountAttrFlags::empty()
            } else {
                MountAttrFlags::MOUNT_ATTR_RDONLY
            };
            bind(view, path, *directory, more).at_path(Stage::Exposed, path)?;
            Stage::Exposed.done();
        }
        What::Link { target } => link(view, path, target).at_path(Stage::Exposed, path)?,
    }
    Ok(())
}

fn bind(view: &View, path: &Path, directory: bool, more: MountAttrFlags) -> io::Result<()> {
    let tree = clone_mount_at(
        CWD,
        &on_host(path),
        true,
        more | MountAttrFlags::MOUNT_ATTR_NOSUID,
    )?;
    let place = view.mount_point(path, directory)?;
    attach(tree.as_fd(), place.as_fd())
}

fn caught(view: &View, index: usize, action: &Action, store: Store) -> io::Result<()> {
    let lowers = store.lowers(index, action)?;
    let Some(top) = lowers.first() else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let writable = overlay::prepare(store.own.as_ref(), index, top.as_fd())?;
    let place = view.mount_point(&action.path, true)?;
    overlay::mount_on(place.as_fd(), &writable, &lowers)
}

/// An empty directory; in a child world, what the world below has in its own one.
fn fresh(view: &View, index: usize, action: &Action, store: Store) -> io::Result<()> {
    let upper = overlay::upper_path(store.own.as_ref(), index);
    if let Some(below) = store.below {
        let lower = overlay::upper_path(below.as_ref(), index);
        // With nothing to share, a plain directory is faster, and `/dev/shm` stays the tmpfs that old C libraries want.
        if fs::read_dir(&lower)?.next().is_some() {
            return caught(view, index, action, store);
        }
    }
    overlay::make_directory(&Path::new(store.own).join(index.to_string()), 0o755)?;
    match &action.what {
        What::Fresh { mode } => overlay::make_directory(&upper, *mode)?,
        What::Skeleton => {
            overlay::make_directory(&upper, 0o755)?;
            if store.below.is_none() {
                skeleton::fill(&on_host(&action.path), &upper)?;
            }
            overlay::imitate(
                fs::File::open(&upper)?.as_fd(),
                open_path(&on_host(&action.path))?.as_fd(),
            )?;
        }
        What::Submount
        | What::Devices
        | What::Processes
        | What::Overlay { .. }
        | What::Bind { .. }
        | What::Link { .. } => {}
    }
    let place = view.mount_point(&action.path, true)?;
    let tree = clone_mount_at(CWD, &upper, false, MountAttrFlags::empty())?;
    attach(tree.as_fd(), place.as_fd())
}

fn link(view: &View, path: &Path, target: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(());
    };
    let parent = view.mount_point(parent, true)?;
    match symlinkat(target, &parent, name) {
        // A child world finds the link of the world below.
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Covers a path with nothing. One that is not visible anyway needs no cover, and none is created for it.
fn mask(view: &View, path: &Path, directory: bool) -> io::Result<()> {
    let place = match view.open(path) {
        Ok(place) => place,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let nothing = if directory { "/empty" } else { "/nothing" };
    let tree = clone_mount(CWD, nothing, false, MountAttrFlags::MOUNT_ATTR_RDONLY)?;
    attach(tree.as_fd(), place.as_fd())?;
    Stage::Masks.done();
    Ok(())
}
