//! The last steps before the payload runs: its view, its limits, its descriptors. Ends in the program or in a failure.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Resource, Rlimit, Signal};

use super::caps;
use super::stage::{At, Failure, Stage};
use crate::sys;
use crate::wire::Payload;

/// Everything that is needed to run a payload, gathered before the process for it is forked.
pub(crate) struct Ready {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    cwd: std::path::PathBuf,
    nice: i32,
    /// Descriptors and the numbers they shall have.
    descriptors: Vec<(OwnedFd, RawFd)>,
}

impl Ready {
    /// Checks an order's payload against the descriptors that came with it.
    pub(crate) fn new(payload: Payload, attached: Vec<OwnedFd>) -> Result<Self, Failure> {
        let numbers: Vec<RawFd> = [1, 2].into_iter().chain(payload.inherit).collect();
        let mut distinct = numbers.clone();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() != numbers.len()
            || distinct.first() != Some(&1)
            || attached.len() != numbers.len()
        {
            return Err(Failure::new(
                Stage::Program,
                io::Error::from(io::ErrorKind::InvalidInput),
            ));
        }
        let string = |bytes: Vec<u8>| CString::new(bytes).at(Stage::Program);
        let program = string(payload.program.clone().into_bytes())?;
        let mut arguments = vec![program.clone()];
        for argument in payload.args {
            arguments.push(string(argument.into_bytes())?);
        }
        let mut environment = Vec::new();
        for (name, value) in payload.env {
            environment.push(string([name.into_bytes(), value.into_bytes()].join(&b'='))?);
        }
        let descriptors = attached.into_iter().zip(numbers).collect();
        Ok(Self {
            program,
            arguments,
            environment,
            cwd: payload.cwd.into_path(),
            nice: payload.nice,
            descriptors,
        })
    }

    /// Moves a descriptor to a number that the payload does not want for another one.
    pub(crate) fn apart(&self, mut descriptor: OwnedFd) -> io::Result<OwnedFd> {
        while descriptor.as_raw_fd() == 0
            || self
                .descriptors
                .iter()
                .any(|(_, number)| *number == descriptor.as_raw_fd())
        {
            let copy = rustix::io::fcntl_dupfd_cloexec(&descriptor, 3)?;
            // Not closed: the number would be found free again, and what is put there later must not be closed either.
            // This process is about to execute a program or to exit.
            let _ = descriptor.into_raw_fd();
            descriptor = copy;
        }
        Ok(descriptor)
    }

    fn program_path(&self) -> &std::path::Path {
        std::ffi::OsStr::from_bytes(self.program.as_bytes()).as_ref()
    }
}

/// Becomes the payload. Returns only if that fails.
pub(crate) fn become_payload(ready: &Ready, confined: bool) -> Failure {
    match prepare(ready, confined) {
        Ok(()) => {
            let error = sys::execute(&ready.program, &ready.arguments, &ready.environment);
            Failure {
                stage: Stage::Program,
                about: Some(ready.program_path().to_owned()),
                source: error,
            }
        }
        Err(failure) => failure,
    }
}

/// Takes privileges and leaves the terminal. Also part of a probe.
pub(crate) fn restrict(confined: bool) -> Result<(), Failure> {
    if confined {
        caps::drop_to_kept()?;
    }
    // Also without namespaces: a program that becomes another user could not be killed by us.
    rustix::thread::set_no_new_privs(true).at(Stage::Capabilities)?;
    Ok(())
}

fn prepare(ready: &Ready, confined: bool) -> Result<(), Failure> {
    if ready.nice != 0 {
        rustix::process::nice(ready.nice).at(Stage::Program)?;
    }
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    rustix::process::setrlimit(Resource::Core, none).at(Stage::Program)?;
    rustix::process::setsid().at(Stage::Program)?;
    // Where no namespace ends with the init, this is the last resort for its end without a chance to clear up.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).at(Stage::Program)?;
    restrict(confined)?;
    rustix::process::chdir(&ready.cwd).at_path(Stage::Program, &ready.cwd)?;
    place_descriptors(ready).at(Stage::Program)?;
    // The runtime of this helper ignores it; programs expect the default.
    sys::default_signal(libc::SIGPIPE);
    sys::unblock_signals().at(Stage::Program)
}

/// Gives each descriptor its number. Everything else is closed by the execution of the program.
fn place_descriptors(ready: &Ready) -> io::Result<()> {
    // First away from all wanted numbers, so that no source is overwritten before it is used.
    let null = ready.apart(open(
        "/dev/null",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)?;
    let mut sources = vec![(null, 0)];
    for (source, number) in &ready.descriptors {
        sources.push((ready.apart(source.try_clone()?)?, *number));
    }
    sys::close_on_exec_from(0)?;
    for (source, number) in &sources {
        sys::place_descriptor(source.as_fd(), *number)?;
    }
    Ok(())
}
