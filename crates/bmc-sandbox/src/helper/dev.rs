//! Builds a private `/dev` and `/proc`. Everything a test needs of them, nothing that reaches the hardware.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, mkdirat, mknodat, openat2, symlinkat};
use rustix::mount::{MountAttrFlags, MountFlags, mount};

use super::stage::{At, Failure, Stage};
use super::view::{View, attach, by_descriptor, clone_mount};

const NODES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];

/// Parts of `/proc` that concern the whole machine. Root owns them and could write to them even without capabilities.
const READ_ONLY_IN_PROC: [&str; 5] = ["sys", "sysrq-trigger", "irq", "bus", "fs"];

/// Mounts devices on `target`. The host must be visible at `/oldroot`.
pub(crate) fn mount_devices(view: &View, path: &Path) -> Result<(), Failure> {
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let target = view.mount_point(path, true).at(Stage::Devices)?;
    mount(
        "tmpfs",
        by_descriptor(target.as_fd()),
        "tmpfs",
        flags,
        Some(c"mode=0755,size=1m,nr_inodes=256"),
    )
    .at(Stage::Devices)?;
    // Opened anew: `target` is what lies below the mount.
    let devices = view.open(path).at(Stage::Devices)?;
    let devices = devices.as_fd();
    for name in NODES {
        match bind_node(devices, name) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound && name != "null" => {}
            Err(error) => return Err(error).at_path(Stage::Devices, name.as_ref()),
        }
    }
    for (to, name) in LINKS {
        symlinkat(to, devices, name).at(Stage::Devices)?;
    }
    for name in ["shm", "pts", "mqueue"] {
        mkdirat(devices, name, Mode::from_raw_mode(0o755)).at(Stage::Devices)?;
    }
    let pts = view.open(&path.join("pts")).at(Stage::Devices)?;
    mount(
        "devpts",
        by_descriptor(pts.as_fd()),
        "devpts",
        flags,
        Some(c"newinstance,ptmxmode=0666,mode=0620"),
    )
    .at_path(Stage::Devices, "pts".as_ref())?;
    // Kernels can be built without message queues.
    let mqueue = view.open(&path.join("mqueue")).at(Stage::Devices)?;
    let _ = mount(
        "mqueue",
        by_descriptor(mqueue.as_fd()),
        "mqueue",
        flags | MountFlags::NODEV,
        None,
    );
    Stage::Devices.done();
    Ok(())
}

fn bind_node(devices: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let node = clone_mount(
        CWD,
        &format!("/oldroot/dev/{name}"),
        false,
        MountAttrFlags::MOUNT_ATTR_NOSUID,
    )?;
    mknodat(
        devices,
        name,
        FileType::RegularFile,
        Mode::from_raw_mode(0o666),
        0,
    )?;
    let place = openat2(
        devices,
        name,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    )?;
    attach(node.as_fd(), place.as_fd())
}

/// Mounts the process list of the current process namespace.
pub(crate) fn mount_processes(view: &View, path: &Path) -> Result<(), Failure> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let target = view.mount_point(path, true).at(Stage::ProcessList)?;
    mount("proc", by_descriptor(target.as_fd()), "proc", flags, None).at(Stage::ProcessList)?;
    for name in READ_ONLY_IN_PROC {
        let Ok(place) = view.open(&path.join(name)) else {
            continue;
        };
        let part = clone_mount(place.as_fd(), "", false, MountAttrFlags::MOUNT_ATTR_RDONLY)
            .at_path(Stage::ProcessList, name.as_ref())?;
        attach(part.as_fd(), place.as_fd()).at_path(Stage::ProcessList, name.as_ref())?;
    }
    Stage::ProcessList.done();
    Ok(())
}
