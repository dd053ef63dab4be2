//! Gives the builder of worlds a place of its own: an empty root with the host below it.
//!
//! The init of a top-level world stays here, so that it can build child worlds from the untouched host.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change};

use super::overlay::make_directory;
use super::plan::Plan;
use super::stage::{At, Failure, Stage};
use super::view::{HOST, Store};

/// Memory of a top-level world.
pub(crate) const TOP: Store = Store {
    own: "/scratch",
    below: None,
};
/// Memory of a child world, above that of its parent.
pub(crate) const CHILD: Store = Store {
    own: "/child",
    below: Some("/scratch"),
};

/// Directories that exist on every Linux; one of them is covered for a moment while the roots are switched.
const COVERED: [&str; 4] = ["/tmp", "/usr", "/etc", "/proc"];

/// Moves this process to an empty root directory. Must run in a mount namespace of its own.
pub(crate) fn enter(plan: &Plan) -> Result<(), Failure> {
    keep_mounts_private().at(Stage::Base)?;
    let base = COVERED
        .iter()
        .map(Path::new)
        .find(|path| path.is_dir())
        .unwrap_or(Path::new("/"));
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount(
        "tmpfs",
        base,
        "tmpfs",
        flags,
        Some(c"mode=0755,size=1m,nr_inodes=256"),
    )
    .at(Stage::Base)?;
    for name in ["oldroot", "newroot", "scratch", "child", "proc", "empty"] {
        make_directory(&base.join(name), 0o755).at(Stage::Base)?;
    }
    let nothing = base.join("nothing");
    fs::write(&nothing, []).at(Stage::Base)?;
    fs::set_permissions(&nothing, fs::Permissions::from_mode(0o444)).at(Stage::Base)?;
    rustix::process::chdir(base).at(Stage::Base)?;
    rustix::process::pivot_root(".", "oldroot").at(Stage::Base)?;
    rustix::process::chdir("/").at(Stage::Base)?;
    Stage::Base.done();

    mount_scratch(plan, TOP).at(Stage::Scratch)?;
    Stage::Scratch.done();
    if plan.full {
        let flags = flags | MountFlags::NOEXEC;
        mount("proc", "/proc", "proc", flags, None).at(Stage::ProcessList)?;
        Stage::ProcessList.done();
    } else {
        mount_bind_recursive(format!("{HOST}/proc"), "/proc").at(Stage::ProcessList)?;
    }
    Ok(())
}

/// Keeps mounts made here from showing up anywhere else, and the other way round.
pub(crate) fn keep_mounts_private() -> io::Result<()> {
    Ok(mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?)
}

/// Mounts the memory for what a world writes.
pub(crate) fn mount_scratch(plan: &Plan, store: Store) -> io::Result<()> {
    let options = format!(
        "mode=0755,size={},nr_inodes={}",
        plan.scratch_bytes, plan.scratch_inodes
    );
    let options = std::ffi::CString::new(options)?;
    mount(
        "tmpfs",
        store.own,
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV,
        Some(options.as_c_str()),
    )?;
    Ok(())
}
