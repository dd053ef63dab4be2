//! A running world: waits for it, asks it, ends it. Must not leave a process behind, whatever happens.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::net::{Shutdown, shutdown};
use rustix::process::{Signal, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::error::SandboxError;
use crate::leftovers::{LeftFile, LeftProcess, Leftovers};
use crate::spec::Isolation;
use crate::wire::{Event, Received, Request, error_from, receive, send_frame, wait_readable};

/// How long an init may take to answer. The slowest answer lists what was written, which is capped.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long the end of a child world is waited for. Everything in it is dead after milliseconds, but a process that its
/// parent world has not reaped yet keeps the namespace, and that is not ours to hurry.
const CHILD_PATIENCE: Duration = Duration::from_secs(2);

/// A kind of namespace that a process can enter with `setns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Namespace {
    /// User and group numbers, capabilities; to be entered first.
    #[serde(rename = "user")]
    User,
    /// Mounts.
    #[serde(rename = "mnt")]
    Mount,
    /// Network.
    #[serde(rename = "net")]
    Net,
    /// System V IPC and POSIX message queues.
    #[serde(rename = "ipc")]
    Ipc,
    /// Host name.
    #[serde(rename = "uts")]
    Uts,
    /// Processes; takes effect for children forked afterwards.
    #[serde(rename = "pid")]
    Pid,
}

impl fmt::Display for Namespace {
    /// Writes the name that the kernel uses below `/proc/self/ns`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::User => "user",
            Self::Mount => "mnt",
            Self::Net => "net",
            Self::Ipc => "ipc",
            Self::Uts => "uts",
            Self::Pid => "pid",
        })
    }
}

/// How a payload ended and what it used, itself and the children it waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The exit code, when it exited by itself.
    pub code: Option<i32>,
    /// The signal that ended it otherwise.
    pub signal: Option<i32>,
    /// The largest resident size of one of its processes.
    pub maxrss_kb: u64,
    /// Processor time in user code.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
}

/// An isolated process tree. Dropping it kills everything in it and waits until it is gone.
///
/// Its descriptor becomes readable when [`World::wait`] would not block.
#[derive(Debug)]
pub struct World {
    channel: Option<OwnedFd>,
    /// The guardian process of a top-level world; a child world has none.
    helper: Option<Child>,
    /// The init, where killing it ends the world.
    init: Option<OwnedFd>,
    isolation: Isolation,
    /// The payload's exit, if it arrived while an answer was waited for. Its lock also keeps requests apart.
    exit: Mutex<Option<Exit>>,
}

impl World {
    pub(crate) fn new(
        channel: Option<OwnedFd>,
        helper: Option<Child>,
        init: Option<OwnedFd>,
        isolation: Isolation,
    ) -> Self {
        Self {
            channel,
            helper,
            init,
            isolation,
            exit: Mutex::new(None),
        }
    }

    /// How far this world is separated from the host.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Makes a world that starts as a copy-on-write snapshot of this one's files and returns the namespaces to enter,
    /// in the order in which they must be entered.
    ///
    /// This world must not write to its files as long as the child world lives. A process of this world with the user
    /// that started it may enter, in a single thread; it then has all capabilities in the child world and must reduce
    /// them to [`payload_capabilities`](crate::payload_capabilities).
    pub fn child_world(&self) -> Result<(World, Vec<(Namespace, OwnedFd)>), SandboxError> {
        if self.isolation != Isolation::Full || self.helper.is_none() {
            return Err(SandboxError::NoChildren {
                isolation: self.isolation,
            });
        }
        let (event, attached) = self.ask(Request::ChildWorld)?;
        let mut attached = attached.into_iter();
        match (event, attached.next(), attached.next()) {
            (Event::Child, Some(channel), Some(init)) => {
                // From here on, dropping it ends the child world.
                let child = World::new(Some(channel), None, Some(init), Isolation::Full);
                let (event, attached) =
                    child.next(&mut child.lock(), Some(Instant::now() + PATIENCE))?;
                match event {
                    Event::Started { namespaces } if namespaces.len() == attached.len() => {
                        Ok((child, namespaces.into_iter().zip(attached).collect()))
                    }
                    other => Err(unexpected(other, "build a child world")),
                }
            }
            (other, _, _) => Err(unexpected(other, "build a child world")),
        }
    }

    /// Sends a signal to every process in the world except its init; child worlds included.
    pub fn signal_all(&self, signal: i32) -> Result<(), SandboxError> {
        match self.ask(Request::Signal(signal))? {
            (Event::Done, _) => Ok(()),
            (other, _) => Err(unexpected(other, "signal all processes")),
        }
    }

    /// Waits for the payload to end; `None` when it has not by then. Other processes of the world may still be alive.
    ///
    /// Once it has ended, the same answer is given again and again, also after [`World::kill`].
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Option<Exit>, SandboxError> {
        if self.helper.is_none() && self.init.is_some() {
            return Err(SandboxError::NoPayload);
        }
        // A timeout too long for the clock is none.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut exit = self.lock();
        if exit.is_none() {
            match self.receive(deadline)? {
                Some((Event::Exited(ended), _)) => *exit = Some(ended),
                Some((other, _)) => return Err(unexpected(other, "wait for the payload")),
                None => {}
            }
        }
        Ok(exit.clone())
    }

    /// Kills everything in the world; returns when all is gone. Doing it again does nothing.
    pub fn kill(&mut self) {
        if let Some(init) = self.init.take() {
            // Faster than waiting until it looks at its channel, and certain even if it is busy.
            let _ = pidfd_send_signal(&init, Signal::KILL);
            if self.helper.is_none() {
                let _ = wait_readable(&init, Instant::now().checked_add(CHILD_PATIENCE));
            }
        }
        if let Some(channel) = self.channel.take() {
            let _ = shutdown(&channel, Shutdown::Both);
        }
        if let Some(mut helper) = self.helper.take() {
            // It ends when the init has, and that when all processes have.
            let _ = helper.wait();
        }
    }

    /// Says what the world leaves behind, then kills it. The processes that are still alive are not disturbed before.
    pub fn finish(mut self) -> Result<Leftovers, SandboxError> {
        let answer = self.ask(Request::Leftovers);
        self.kill();
        match answer? {
            (
                Event::Leftovers {
                    processes,
                    files,
                    truncated,
                },
                _,
            ) => Ok(Leftovers {
                processes: processes
                    .into_iter()
                    .map(|(pid, name)| LeftProcess { pid, name })
                    .collect(),
                files: files
                    .into_iter()
                    .map(|(place, path, change)| LeftFile {
                        place,
                        path: path.into_path(),
                        change,
                    })
                    .collect(),
                truncated,
            }),
            (other, _) => Err(unexpected(other, "list what is left")),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Exit>> {
        // The lock guards one plain value, which a panic elsewhere cannot have left half-written.
        self.exit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request and waits for its answer.
    fn ask(&self, request: Request) -> Result<(Event, Vec<OwnedFd>), SandboxError> {
        let mut exit = self.lock();
        let channel = self.channel.as_ref().ok_or(SandboxError::Gone)?;
        match send_frame(channel.as_fd(), &request, &[]) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Err(SandboxError::Gone);
            }
            other => other.map_err(SandboxError::Channel)?,
        }
        self.next(&mut exit, Some(Instant::now() + PATIENCE))
    }

    /// Receives the next event other than the payload's exit, which is kept for later.
    fn next(
        &self,
        exit: &mut Option<Exit>,
        deadline: Option<Instant>,
    ) -> Result<(Event, Vec<OwnedFd>), SandboxError> {
        loop {
            match self.receive(deadline)? {
                Some((Event::Exited(ended), _)) => *exit = Some(ended),
                Some(other) => return Ok(other),
                None => return Err(SandboxError::Silent { waited: PATIENCE }),
            }
        }
    }

    fn receive(
        &self,
        deadline: Option<Instant>,
    ) -> Result<Option<(Event, Vec<OwnedFd>)>, SandboxError> {
        let channel = self.channel.as_ref().ok_or(SandboxError::Gone)?;
        match receive(channel.as_fd(), deadline).map_err(SandboxError::Channel)? {
            Received::Frame(event, attached) => Ok(Some((event, attached))),
            Received::Nothing => Ok(None),
            Received::Closed => Err(SandboxError::Gone),
        }
    }
}

fn unexpected(event: Event, request: &'static str) -> SandboxError {
    match event {
        Event::Refused { errno, message } => SandboxError::Refused {
            request,
            source: error_from(errno, message),
        },
        Event::Failed {
            step,
            errno,
            message,
        } => SandboxError::Setup {
            step,
            source: error_from(errno, message),
        },
        Event::Init
        | Event::Started { .. }
        | Event::Probed { .. }
        | Event::Exited(_)
        | Event::Child
        | Event::Done
        | Event::Leftovers { .. } => SandboxError::Channel(io::ErrorKind::InvalidData.into()),
    }
}

impl World {
    /// The descriptor to poll for the payload's exit; `None` after [`World::kill`].
    pub fn exit_descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.channel.as_ref().map(AsFd::as_fd)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.kill();
    }
}
