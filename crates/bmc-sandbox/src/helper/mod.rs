//! The helper process: reads one order, makes the namespaces and stays as the guardian of the world's init.
//!
//! Runs single-threaded in a fresh process with an empty environment, so that nothing of the launcher's memory, its
//! descriptors or its environment can be found in a world. Executes nothing but the payload.

mod base;
mod caps;
mod child;
mod dev;
mod ids;
mod init;
mod mountinfo;
mod net;
mod overlay;
mod payload;
mod plan;
mod processes;
mod residue;
mod skeleton;
mod stage;
mod view;

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::process::{DumpableBehavior, Signal, set_dumpable_behavior};

use self::init::{Init, Kind, failed};
use self::payload::Ready;
use self::stage::{At, Failure, Stage};
use crate::spec::Isolation;
use crate::sys::{self, Forked};
use crate::wire::{Event, Order, Received, receive, send_frame};

/// The name under which this binary is a helper.
pub(crate) const NAME: &str = "bmc-sandbox";

/// The numbers of the capabilities that a payload of the current user keeps.
pub(crate) fn kept_capabilities() -> Vec<u32> {
    let kept = caps::kept().bits();
    (0..u64::BITS)
        .filter(|number| kept & (1 << number) != 0)
        .collect()
}

/// Runs the helper whose channel is standard input.
pub(crate) fn run() -> ! {
    let control = sys::take_standard_input();
    // Away from the terminal, whose interrupts are for the launcher.
    let _ = rustix::process::setsid();
    // A launcher may run with SIGCHLD ignored, and that would be inherited.
    sys::default_signal(libc::SIGCHLD);
    let code = match receive::<Order>(control.as_fd(), None) {
        Ok(Received::Frame(order, attached)) => lead(control, order, attached),
        Ok(Received::Nothing | Received::Closed) | Err(_) => 1,
    };
    sys::exit_now(code)
}

fn lead(control: OwnedFd, order: Order, attached: Vec<OwnedFd>) -> i32 {
    match order.isolation {
        Isolation::Full | Isolation::FilesOnly => match make_namespaces(&control, &order) {
            Ok(Role::Init(kind, first_free_port)) => {
                live(control, kind, first_free_port, order, attached)
            }
            Ok(Role::Guardian(pid)) => {
                // At the levels without a process namespace, the payload can see this process.
                let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
                // Nothing of the world may be held open here: its pipes must end with it.
                drop((control, attached));
                i32::from(sys::wait_for(pid).is_err())
            }
            Err(failure) => report(&control, &failure, order.payload.is_none()),
        },
        Isolation::Copy => live(control, Kind::Plain, None, order, attached),
    }
}

fn report(control: &OwnedFd, failure: &Failure, probing: bool) -> i32 {
    let event = if probing {
        Event::Probed {
            done: stage::done_names(),
            failed: Some((failure.to_string(), failure.source.raw_os_error())),
        }
    } else {
        failed(failure)
    };
    let _ = send_frame(control.as_fd(), &event, &[]);
    1
}

enum Role {
    Init(Kind, Option<String>),
    Guardian(i32),
}

/// Forks the init into new namespaces, and maps its users from outside.
fn make_namespaces(control: &OwnedFd, order: &Order) -> Result<Role, Failure> {
    let plan = plan::resolve(order)?;
    let first_free_port = net::host_first_free_port();
    rustix::process::chdir("/").at(Stage::Request)?;
    let mut namespaces = libc::CLONE_NEWUSER | libc::CLONE_NEWNS;
    if plan.full {
        namespaces |=
            libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | libc::CLONE_NEWCGROUP;
        // The world ends with its init, its init with this process, and this process with the launcher's thread. At
        // the weaker levels the init must live on to clear up, and ends by its channel alone.
        die_with_parent().at(Stage::Namespaces)?;
    }
    if plan.own_network {
        namespaces |= libc::CLONE_NEWNET;
    }
    let (gate, opener) = gate().at(Stage::Namespaces)?;
    match sys::fork(namespaces).at(Stage::Namespaces)? {
        Forked::Child => {
            drop(opener);
            gate.wait();
            Ok(Role::Init(
                if plan.full {
                    Kind::Top(plan)
                } else {
                    Kind::Files(plan)
                },
                first_free_port,
            ))
        }
        Forked::Parent { pid, pidfd } => {
            Stage::Namespaces.done();
            ids::write_maps(pid)?;
            if plan.full {
                // Before the gate opens, so that the two processes never write to the channel at the same time.
                send_frame(control.as_fd(), &Event::Init, &[pidfd.as_fd()]).at(Stage::Request)?;
            }
            opener.open().at(Stage::UserMap)?;
            Ok(Role::Guardian(pid))
        }
    }
}

/// The life of an init.
fn live(
    control: OwnedFd,
    kind: Kind,
    first_free_port: Option<String>,
    order: Order,
    attached: Vec<OwnedFd>,
) -> i32 {
    let mut init = Init {
        control,
        kind,
        payload: None,
        inits: Vec::new(),
        first_free_port,
    };
    if let Err(failure) = settle(&init) {
        return report(&init.control, &failure, order.payload.is_none());
    }
    let Some(payload) = order.payload else {
        let event = init.probe();
        return i32::from(send_frame(init.control.as_fd(), &event, &[]).is_err());
    };
    let started = match Ready::new(payload, attached) {
        Ok(ready) => init.start(ready),
        Err(failure) => Err(failed(&failure)),
    };
    let event = match started {
        Ok(()) => Event::Started {
            namespaces: Vec::new(),
        },
        Err(event) => {
            let _ = send_frame(init.control.as_fd(), &event, &[]);
            return 1;
        }
    };
    if send_frame(init.control.as_fd(), &event, &[]).is_err() {
        return 1;
    }
    init.serve()
}

/// Makes this process fit to be an init, before any code of the payload runs.
fn settle(init: &Init) -> Result<(), Failure> {
    // Its memory and descriptors are not for the payload, which may be of the same user.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at(Stage::Namespaces)?;
    Stage::Namespaces.done();
    Stage::UserMap.done();
    match &init.kind {
        Kind::Top(plan) => {
            die_with_parent().at(Stage::Namespaces)?;
            base::enter(plan)?;
            if plan.own_network {
                net::raise(init.first_free_port.as_deref())?;
            }
            Ok(())
        }
        Kind::Files(plan) => {
            become_subreaper()?;
            base::enter(plan)
        }
        Kind::Plain => become_subreaper(),
        Kind::Child(_) => Ok(()),
    }
}

/// Makes orphans of the world children of this process.
fn become_subreaper() -> Result<(), Failure> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).at(Stage::Namespaces)
}

fn die_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(
        Signal::KILL,
    ))?)
}

/// Holds a forked process back until its parent has prepared it.
pub(crate) struct Gate(OwnedFd);

/// Opens a [`Gate`]; dropped without that, the other process ends.
pub(crate) struct Opener(OwnedFd);

pub(crate) fn gate() -> io::Result<(Gate, Opener)> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    Ok((Gate(reader), Opener(writer)))
}

impl Gate {
    pub(crate) fn wait(self) {
        let mut byte = [0_u8];
        match rustix::io::retry_on_intr(|| rustix::io::read(&self.0, &mut byte)) {
            Ok(1) => {}
            Ok(_) | Err(_) => sys::exit_now(1),
        }
    }
}

impl Opener {
    pub(crate) fn open(self) -> io::Result<()> {
        rustix::io::write(&self.0, b"1")?;
        Ok(())
    }
}
