//! The first process of a world: starts the payload, reaps everything, answers the launcher, and ends the world.
//!
//! It must not outlive its channel: when the launcher is gone, for whatever reason, so is the world.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use serde::{Deserialize, Serialize};

use super::payload::{self, Ready};
use super::plan::Plan;
use super::residue::{self, Layer};
use super::stage::{self, At, Failure, Stage};
use super::view::{self, View};
use super::{base, child, processes};
use crate::sys::{self, Forked};
use crate::wire::{Bytes, Event, Received, Request, receive, send_frame};
use crate::world::Exit;

/// What sort of world this is the init of.
pub(crate) enum Kind {
    /// Full isolation; sees the host and can build child worlds.
    Top(Plan),
    /// A child world.
    Child(Vec<Layer>),
    /// Only files are separated; there is no process namespace.
    Files(Plan),
    /// Nothing is separated.
    Plain,
}

impl Kind {
    fn plan(&self) -> Option<&Plan> {
        match self {
            Self::Top(plan) | Self::Files(plan) => Some(plan),
            Self::Child(_) | Self::Plain => None,
        }
    }

    /// Whether the kernel ends all processes of the world with this one.
    fn own_processes(&self) -> bool {
        match self {
            Self::Top(_) | Self::Child(_) => true,
            Self::Files(_) | Self::Plain => false,
        }
    }
}

/// The state of an init.
pub(crate) struct Init {
    pub(crate) control: OwnedFd,
    pub(crate) kind: Kind,
    pub(crate) payload: Option<i32>,
    /// The inits of child worlds.
    pub(crate) inits: Vec<i32>,
    /// How to open ports in new network namespaces.
    pub(crate) first_free_port: Option<String>,
}

/// What the process that builds the view reports before it becomes the payload.
#[derive(Serialize, Deserialize)]
struct Report {
    done: u32,
    failed: Option<(String, Option<i32>, String)>,
}

impl Init {
    /// Starts the payload; returns when it has been executed, so that failures before that are failures of ours.
    pub(crate) fn start(&mut self, ready: Ready) -> Result<(), Event> {
        let report = self
            .fork_payload(Some(ready))
            .map_err(|failure| failed(&failure))?;
        match report.failed {
            None => Ok(()),
            Some((step, errno, message)) => Err(Event::Failed {
                step,
                errno,
                message,
            }),
        }
    }

    /// Does everything but execute a program, and says how far it came.
    pub(crate) fn probe(&mut self) -> Event {
        let failed = match self.fork_payload(None) {
            Ok(report) => {
                stage::add_done_mask(report.done);
                report.failed.map(|(step, errno, _)| (step, errno))
            }
            Err(failure) => Some((failure.to_string(), failure.source.raw_os_error())),
        };
        Event::Probed {
            done: stage::done_names(),
            failed,
        }
    }

    /// Forks the payload, or without one a process that only tries to become one. Consumes the payload's descriptors,
    /// so that its pipes end when it ends.
    fn fork_payload(&mut self, ready: Option<Ready>) -> Result<Report, Failure> {
        let (reader, writer) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).at(Stage::Program)?;
        let confined = self.kind.plan().is_some();
        let namespaces = if confined { libc::CLONE_NEWNS } else { 0 };
        match sys::fork(namespaces).at(Stage::Program)? {
            Forked::Child => {
                drop(reader);
                let writer = match &ready {
                    Some(ready) => ready.apart(writer),
                    None => Ok(writer),
                };
                let Ok(writer) = writer else {
                    sys::exit_now(127)
                };
                let failure = self.build_payload(ready.as_ref(), confined);
                let failed = failure.map(|it| {
                    (
                        it.to_string(),
                        it.source.raw_os_error(),
                        it.source.to_string(),
                    )
                });
                let report = Report {
                    done: stage::done_mask(),
                    failed,
                };
                // Written last: a process that wrote nothing has become the payload.
                if let Ok(report) = serde_json::to_vec(&report) {
                    let _ = fs::File::from(writer).write_all(&report);
                }
                sys::exit_now(127)
            }
            Forked::Parent { pid, pidfd: _ } => {
                drop((writer, ready));
                let mut text = Vec::new();
                fs::File::from(reader)
                    .read_to_end(&mut text)
                    .at(Stage::Program)?;
                if text.is_empty() {
                    self.payload = Some(pid);
                    return Ok(Report {
                        done: 0,
                        failed: None,
                    });
                }
                serde_json::from_slice(&text).at(Stage::Program)
            }
        }
    }

    /// Runs in the process that becomes the payload. `None` when a probe found nothing wrong.
    fn build_payload(&self, ready: Option<&Ready>, confined: bool) -> Option<Failure> {
        if let Some(plan) = self.kind.plan()
            && let Err(failure) =
                view::build(plan, base::TOP, ready.is_none()).and_then(View::become_root)
        {
            return Some(failure);
        }
        match ready {
            Some(ready) => Some(payload::become_payload(ready, confined)),
            None => payload::restrict(confined).err(),
        }
    }

    /// Serves the launcher until it closes the channel, then ends the world.
    pub(crate) fn serve(&mut self) -> ! {
        // Any fault of the channel ends the world just as its end does.
        let _ = self.run();
        if !self.kind.own_processes() {
            processes::sweep();
        }
        sys::exit_now(0)
    }

    fn run(&mut self) -> io::Result<()> {
        let children = sys::child_signals()?;
        // Some may have ended before the descriptor for their signals existed.
        self.reap()?;
        loop {
            let (asked, ended) = {
                let mut polled = [
                    PollFd::new(&self.control, PollFlags::IN),
                    PollFd::new(&children, PollFlags::IN),
                ];
                rustix::io::retry_on_intr(|| poll(&mut polled, None))?;
                (
                    !polled[0].revents().is_empty(),
                    !polled[1].revents().is_empty(),
                )
            };
            if ended {
                // Its content does not matter: signals are merged, so everything that ended is reaped.
                let _ = rustix::io::read(&children, &mut [0_u8; 1024]);
                self.reap()?;
            }
            if asked {
                match receive(self.control.as_fd(), None)? {
                    Received::Frame(request, _) => self.answer(request)?,
                    Received::Nothing => {}
                    Received::Closed => return Ok(()),
                }
            }
        }
    }

    fn reap(&mut self) -> io::Result<()> {
        while let Ok(Some(reaped)) = sys::reap() {
            self.inits.retain(|pid| *pid != reaped.pid);
            if self.payload == Some(reaped.pid) {
                self.payload = None;
                let exit = Exit {
                    code: reaped.code,
                    signal: reaped.signal,
                    maxrss_kb: reaped.maxrss_kb,
                    user: reaped.user,
                    system: reaped.system,
                };
                send_frame(self.control.as_fd(), &Event::Exited(exit), &[])?;
            }
        }
        Ok(())
    }

    fn answer(&mut self, request: Request) -> io::Result<()> {
        let reply = match request {
            Request::Signal(signal) => done_or_refused(self.signal(signal)),
            Request::Leftovers => self.leftovers(),
            Request::ChildWorld => match &self.kind {
                Kind::Top(_) => match child::start(self) {
                    Ok((channel, pidfd)) => {
                        return send_frame(
                            self.control.as_fd(),
                            &Event::Child,
                            &[channel.as_fd(), pidfd.as_fd()],
                        );
                    }
                    Err(failure) => failed(&failure),
                },
                Kind::Child(_) | Kind::Files(_) | Kind::Plain => {
                    done_or_refused(Err(io::ErrorKind::Unsupported.into()))
                }
            },
        };
        send_frame(self.control.as_fd(), &reply, &[])
    }

    fn signal(&self, signal: i32) -> io::Result<()> {
        if !self.kind.own_processes() {
            return processes::signal_below(signal);
        }
        match sys::kill(-1, signal) {
            // Nobody is left.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            other => other,
        }
    }

    fn leftovers(&self) -> Event {
        let living = if self.kind.own_processes() {
            processes::living_inside(self.payload, &self.inits)
        } else {
            processes::living_below(self.payload)
        };
        let (files, truncated) = match &self.kind {
            Kind::Top(plan) | Kind::Files(plan) => {
                residue::changes(&residue::layers(plan, base::TOP))
            }
            Kind::Child(layers) => residue::changes(layers),
            Kind::Plain => (Vec::new(), false),
        };
        Event::Leftovers {
            processes: living
                .into_iter()
                .map(|process| (process.pid, process.name))
                .collect(),
            files: files
                .into_iter()
                .map(|file| (file.place, Bytes::new(file.path.as_os_str()), file.change))
                .collect(),
            truncated,
        }
    }
}

fn done_or_refused(result: io::Result<()>) -> Event {
    match result {
        Ok(()) => Event::Done,
        Err(error) => Event::Refused {
            errno: error.raw_os_error(),
            message: error.to_string(),
        },
    }
}

/// The frame that reports a failure of ours.
pub(crate) fn failed(failure: &Failure) -> Event {
    Event::Failed {
        step: failure.to_string(),
        errno: failure.source.raw_os_error(),
        message: failure.source.to_string(),
    }
}
