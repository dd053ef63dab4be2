//! Builds child worlds: copy-on-write snapshots of a top-level world, in namespaces of their own.
//!
//! No payload is started here. The launcher gets the namespaces and hands them to a process of the parent world, which
//! may enter them because its user owns them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use super::init::{Init, Kind, failed};
use super::plan::Plan;
use super::stage::{At, Failure, Stage};
use super::view;
use super::{Gate, base, gate, ids, net, residue};
use crate::sys::{self, Forked};
use crate::wire::{Event, send_frame};
use crate::world::Namespace;

/// Forks the init of a child world. Returns the launcher's end of its channel, and a descriptor of the process.
pub(crate) fn start(parent: &mut Init) -> Result<(OwnedFd, OwnedFd), Failure> {
    let Kind::Top(plan) = &parent.kind else {
        return Err(Failure::new(
            Stage::Request,
            std::io::ErrorKind::Unsupported,
        ));
    };
    let (launcher_end, own_end) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .at(Stage::Request)?;
    let (gate, opener) = gate().at(Stage::Request)?;
    let mut namespaces = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS;
    if plan.own_network {
        namespaces |= libc::CLONE_NEWNET;
    }
    // The maps of a process that is not dumpable belong to root; the new process inherits this and undoes it itself.
    set_dumpable_behavior(DumpableBehavior::Dumpable).at(Stage::Namespaces)?;
    let forked = sys::fork(namespaces).at(Stage::Namespaces);
    if !matches!(forked, Ok(Forked::Child)) {
        set_dumpable_behavior(DumpableBehavior::NotDumpable).at(Stage::Namespaces)?;
    }
    match forked? {
        Forked::Child => {
            drop((launcher_end, opener));
            run(parent, gate, own_end)
        }
        Forked::Parent { pid, pidfd } => {
            parent.inits.push(pid);
            // Without its map the child sees the gate closed for good and exits.
            ids::write_maps(pid)?;
            opener.open().at(Stage::UserMap)?;
            Ok((launcher_end, pidfd))
        }
    }
}

/// The life of a child world's init. It starts as a copy of its parent and lets go of everything that is the parent's.
fn run(parent: &mut Init, gate: Gate, control: OwnedFd) -> ! {
    gate.wait();
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let first_free_port = parent.first_free_port.take();
    let kind = std::mem::replace(&mut parent.kind, Kind::Plain);
    // Closes the copy of the parent's channel, too: as long as one is open, the launcher would not see the parent's end.
    *parent = Init {
        control,
        kind: Kind::Child(Vec::new()),
        payload: None,
        inits: Vec::new(),
        first_free_port: None,
    };
    let Kind::Top(plan) = kind else {
        sys::exit_now(1)
    };
    let sent = match build(&plan, first_free_port.as_deref()) {
        Ok((layers, namespaces)) => {
            parent.kind = Kind::Child(layers);
            let names = namespaces.iter().map(|(name, _)| *name).collect();
            let attached: Vec<BorrowedFd<'_>> = namespaces
                .iter()
                .map(|(_, descriptor)| descriptor.as_fd())
                .collect();
            send_frame(
                parent.control.as_fd(),
                &Event::Started { namespaces: names },
                &attached,
            )
        }
        Err(failure) => {
            let _ = send_frame(parent.control.as_fd(), &failed(&failure), &[]);
            sys::exit_now(1)
        }
    };
    match sent {
        Ok(()) => parent.serve(),
        Err(_) => sys::exit_now(1),
    }
}

type Built = (Vec<residue::Layer>, Vec<(Namespace, OwnedFd)>);

fn build(plan: &Plan, first_free_port: Option<&str>) -> Result<Built, Failure> {
    base::keep_mounts_private().at(Stage::Base)?;
    base::mount_scratch(plan, base::CHILD).at(Stage::Scratch)?;
    if plan.own_network {
        net::raise(first_free_port)?;
    }
    let view = view::build(plan, base::CHILD, false)?;
    // While the stores can still be reached.
    let layers = residue::layers(plan, base::CHILD);
    view.become_root()?;
    Ok((layers, namespaces(plan).at(Stage::Namespaces)?))
}

/// Opens the namespaces of this process, in the order in which they must be entered: the first gives the right to
/// enter the others, and after the mounts `/proc` is another one.
fn namespaces(plan: &Plan) -> std::io::Result<Vec<(Namespace, OwnedFd)>> {
    let mut opened = Vec::new();
    for (namespace, file) in [
        (Namespace::User, "user"),
        (Namespace::Mount, "mnt"),
        (Namespace::Net, "net"),
        (Namespace::Ipc, "ipc"),
        (Namespace::Uts, "uts"),
        (Namespace::Pid, "pid"),
    ] {
        if namespace != Namespace::Net || plan.own_network {
            let path = format!("/proc/self/ns/{file}");
            opened.push((namespace, std::fs::File::open(path)?.into()));
        }
    }
    Ok(opened)
}
