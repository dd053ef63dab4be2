//! Isolated process trees on Linux.
//!
//! A [`Launcher`] starts a [`World`]: one program with its own view of the files, its own processes, network and
//! temporary directories. The world sees the machine as it is and may write where the user may, but what it writes
//! to the project and the home directory lands in memory and disappears with it, and no process outlives it.
//! From a running world, [`World::child_world`] makes copy-on-write snapshots that a fork server's children can enter.
//!
//! The binary that uses this crate calls [`intercept`] as the first line of `main`: the helper processes are the same
//! binary started again under another name.
//!
//! Known limits: `rename` of a directory that already exists in the project or the home gives `EXDEV`, as on any overlay;
//! changes by others to these directories while a world lives are undefined behaviour of the overlay; an ordinary user
//! sees files of other users as `nobody`; mounts below the project and the home are read-only; system calls are not
//! filtered, so this is isolation of a program that means no harm, not a jail.
//!
//! This crate must not know pytest, projects or reports, must not print, and must not change anything on the host
//! outside the paths its caller named as writable. It is the only crate with `unsafe` code, all of it in `sys`.

#[cfg(not(target_os = "linux"))]
compile_error!("bmc-sandbox is built on Linux namespaces");

mod error;
mod helper;
mod launcher;
mod leftovers;
mod probe;
mod spec;
mod sys;
mod wire;
mod world;

pub use error::SandboxError;
pub use launcher::Launcher;
pub use leftovers::{Change, LeftFile, LeftProcess, Leftovers, Place};
pub use probe::{Probe, Step};
pub use spec::{Isolation, Network, Spec};
pub use world::{Exit, Namespace, World};

/// Runs the helper and never returns when this process was started as one; returns at once otherwise.
///
/// Must be the first line of `main`, before any thread exists and before arguments are read.
pub fn intercept() {
    if std::env::args_os()
        .next()
        .is_some_and(|name| name == helper::NAME)
    {
        helper::run()
    }
}

/// The numbers of the capabilities that a payload of the current user keeps: none, except for root.
///
/// A process that enters a child world has all of them there and must reduce them to these by itself.
pub fn payload_capabilities() -> Vec<u32> {
    helper::kept_capabilities()
}
