//! Starts worlds. Holds no state of a world; must not be the reason why one ends.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::error::SandboxError;
use crate::helper;
use crate::probe::{self, Probe};
use crate::spec::{Isolation, Network, Spec};
use crate::wire::{
    Bytes, Event, MAX_DESCRIPTORS, Order, Payload, Received, error_from, receive, send_frame,
};
use crate::world::World;

/// How long building a world may take. It takes about 10 ms; a path on a dead network file system can hang for ever.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a helper that did not make a world may take to end by itself.
const FAREWELL: Duration = Duration::from_secs(2);

/// Starts worlds; cheap to clone and usable from any thread.
#[derive(Debug, Clone)]
pub struct Launcher {
    executable: PathBuf,
    probed: Arc<OnceLock<Probe>>,
}

impl Launcher {
    /// Makes a launcher whose helpers are this very binary, which must call [`intercept`](crate::intercept).
    pub fn new() -> Result<Self, SandboxError> {
        // Not its path: the file may be replaced while we run.
        Self::with_executable(PathBuf::from("/proc/self/exe"))
    }

    /// Makes a launcher whose helpers are another binary that calls [`intercept`](crate::intercept).
    pub fn with_executable(executable: PathBuf) -> Result<Self, SandboxError> {
        spawner(&executable)?;
        Ok(Self {
            executable,
            probed: Arc::new(OnceLock::new()),
        })
    }

    /// Tries the whole chain in a throw-away world and says which level works here and what stopped the others.
    ///
    /// It is tried once per launcher (clones included).
    pub fn probe(&self) -> Probe {
        self.probed
            .get_or_init(|| probe::interpret(self.try_everything()))
            .clone()
    }

    /// Starts a world; returns when its payload has been executed.
    pub fn spawn(&self, spec: Spec) -> Result<World, SandboxError> {
        check(&spec)?;
        let isolation = spec.isolation;
        let (order, descriptors) = order(spec);
        let attached: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
        let mut start = self.start_helper(&order, &attached)?;
        drop(attached);
        // The payload's ends of its pipes must not stay open here.
        drop(descriptors);
        loop {
            match start.next()? {
                (Event::Init, attached) => start.init = attached.into_iter().next(),
                (Event::Started { .. }, _) => return Ok(start.into_world(isolation)),
                (
                    Event::Failed {
                        step,
                        errno,
                        message,
                    },
                    _,
                ) => {
                    return Err(SandboxError::Setup {
                        step,
                        source: error_from(errno, message),
                    });
                }
                _ => return Err(SandboxError::Channel(io::ErrorKind::InvalidData.into())),
            }
        }
    }

    /// Builds everything with no payload.
    fn try_everything(&self) -> Result<probe::Outcome, SandboxError> {
        let order = Order {
            isolation: Isolation::Full,
            network: Network::Loopback,
            // Any directory of the host will do; this one exists everywhere.
            project: Bytes::new(OsStr::new("/etc")),
            home: None,
            expose: Vec::new(),
            writable: Vec::new(),
            masks: Vec::new(),
            scratch_bytes: 1 << 20,
            scratch_inodes: 1000,
            payload: None,
        };
        let mut start = self.start_helper(&order, &[])?;
        loop {
            match start.next()? {
                (Event::Init, attached) => start.init = attached.into_iter().next(),
                (Event::Probed { done, failed }, _) => return Ok(probe::Outcome { done, failed }),
                _ => return Err(SandboxError::Channel(io::ErrorKind::InvalidData.into())),
            }
        }
    }

    fn start_helper(
        &self,
        order: &Order,
        attached: &[BorrowedFd<'_>],
    ) -> Result<Start, SandboxError> {
        let (channel, helper_end) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(|error| SandboxError::Channel(error.into()))?;
        let (answer, answered) = mpsc::channel();
        let job = Job {
            executable: self.executable.clone(),
            channel: helper_end,
            answer,
        };
        let failed = |source| SandboxError::Helper {
            executable: self.executable.clone(),
            source,
        };
        // The spawner lives as long as this process; if it is gone after all, that is reported like a failed start.
        spawner(&self.executable)?
            .send(job)
            .map_err(|_| failed(io::ErrorKind::BrokenPipe.into()))?;
        let helper = answered
            .recv()
            .unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
            .map_err(failed)?;
        let start = Start {
            channel: Some(channel),
            helper: Some(helper),
            init: None,
            deadline: Instant::now() + PATIENCE,
        };
        match start
            .channel
            .as_ref()
            .map(|channel| send_frame(channel.as_fd(), order, attached))
        {
            // A helper that ended at once may have said why; reading its answer will tell.
            Some(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(SandboxError::Channel(error))
            }
            _ => Ok(start),
        }
    }
}

/// A helper whose world is not ready yet. Dropping it ends the helper.
struct Start {
    channel: Option<OwnedFd>,
    helper: Option<Child>,
    init: Option<OwnedFd>,
    deadline: Instant,
}

impl Start {
    fn next(&mut self) -> Result<(Event, Vec<OwnedFd>), SandboxError> {
        let Some(channel) = &self.channel else {
            return Err(SandboxError::Gone);
        };
        match receive(channel.as_fd(), Some(self.deadline)).map_err(SandboxError::Channel)? {
            Received::Frame(event, attached) => Ok((event, attached)),
            Received::Nothing => Err(SandboxError::Silent { waited: PATIENCE }),
            Received::Closed => Err(SandboxError::Setup {
                step: "helper process".to_owned(),
                source: io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "it ended without an explanation",
                ),
            }),
        }
    }

    fn into_world(mut self, isolation: Isolation) -> World {
        World::new(
            self.channel.take(),
            self.helper.take(),
            self.init.take(),
            isolation,
        )
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        let Some(mut helper) = self.helper.take() else {
            return;
        };
        // Closes the channel and kills the init if there is one.
        drop(World::new(
            self.channel.take(),
            None,
            self.init.take(),
            Isolation::Full,
        ));
        // A helper that failed is gone in a moment. One that hangs, in a path on a dead file system, cannot be waited
        // for; it dies as soon as the kernel lets it, and what it started with it.
        let deadline = Instant::now() + FAREWELL;
        while matches!(helper.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        let _ = helper.kill();
        let _ = helper.try_wait();
    }
}

/// Finds contradictions that the helper could only report less clearly.
fn check(spec: &Spec) -> Result<(), SandboxError> {
    let wrong = |path: &Path, problem| {
        Err(SandboxError::Spec {
            path: path.to_owned(),
            problem,
        })
    };
    if spec.isolation != Isolation::Copy {
        if !spec.project.is_dir() {
            return wrong(&spec.project, "it is not a directory");
        }
        if spec
            .project
            .canonicalize()
            .is_ok_and(|path| path == Path::new("/"))
        {
            return wrong(&spec.project, "the root directory cannot be a project");
        }
        for path in &spec.writable {
            if !path.exists() {
                return wrong(path, "it shall be writable but does not exist");
            }
        }
    }
    if !spec.cwd.is_dir() {
        return wrong(
            &spec.cwd,
            "it shall be the working directory but is not a directory",
        );
    }
    if !spec.program.as_os_str().as_encoded_bytes().contains(&b'/') {
        return wrong(&spec.program, "the program must be given as a path");
    }
    let mut numbers: Vec<RawFd> = spec.inherit.iter().map(|(_, number)| *number).collect();
    numbers.sort_unstable();
    let repeated = numbers.windows(2).any(|pair| pair.first() == pair.last());
    if repeated
        || numbers.first().is_some_and(|number| *number < 3)
        || numbers.len() + 2 > MAX_DESCRIPTORS
    {
        return wrong(
            &spec.program,
            "the numbers of its descriptors must be distinct and 3 or more",
        );
    }
    Ok(())
}

/// Takes a specification apart into what is written and what is attached.
fn order(spec: Spec) -> (Order, Vec<OwnedFd>) {
    let Spec {
        isolation,
        network,
        project,
        home,
        expose,
        writable,
        masks,
        scratch_bytes,
        scratch_inodes,
        program,
        args,
        env,
        cwd,
        stdout,
        stderr,
        inherit,
        nice,
    } = spec;
    // The helper has another working directory than we have.
    let path = |path: &PathBuf| {
        Bytes::new(
            std::path::absolute(path)
                .as_ref()
                .unwrap_or(path)
                .as_os_str(),
        )
    };
    let paths = |list: &[PathBuf]| list.iter().map(path).collect();
    let mut descriptors = vec![stdout, stderr];
    let mut numbers = Vec::new();
    for (descriptor, number) in inherit {
        descriptors.push(descriptor);
        numbers.push(number);
    }
    let payload = Payload {
        program: path(&program),
        args: args.iter().map(|argument| Bytes::new(argument)).collect(),
        env: env
            .iter()
            .map(|(name, value)| (Bytes::new(name), Bytes::new(value)))
            .collect(),
        cwd: path(&cwd),
        inherit: numbers,
        nice,
    };
    let order = Order {
        isolation,
        network,
        project: path(&project),
        home: home.as_ref().map(path),
        expose: paths(&expose),
        writable: paths(&writable),
        masks: paths(&masks),
        scratch_bytes,
        scratch_inodes,
        payload: Some(payload),
    };
    (order, descriptors)
}

struct Job {
    executable: PathBuf,
    channel: OwnedFd,
    answer: mpsc::Sender<io::Result<Child>>,
}

/// The one thread that starts helpers. Helpers ask to be killed when their parent dies, and for the kernel the parent is
/// the thread: from a thread of a pool, worlds would end at random.
fn spawner(executable: &Path) -> Result<mpsc::Sender<Job>, SandboxError> {
    static SPAWNER: OnceLock<Result<mpsc::Sender<Job>, i32>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, jobs) = mpsc::channel::<Job>();
        let work = move || {
            for job in jobs {
                // When nobody waits for the answer any more, the helper sees its channel closed and ends.
                let _ = job.answer.send(start(&job.executable, job.channel));
            }
        };
        match thread::Builder::new()
            .name("bmc-spawner".to_owned())
            .spawn(work)
        {
            Ok(_) => Ok(sender),
            Err(error) => Err(error.raw_os_error().unwrap_or(libc::EAGAIN)),
        }
    });
    spawner.clone().map_err(|errno| SandboxError::Helper {
        executable: executable.to_owned(),
        source: io::Error::from_raw_os_error(errno),
    })
}

fn start(executable: &Path, channel: OwnedFd) -> io::Result<Child> {
    Command::new(executable)
        .arg0(helper::NAME)
        .env_clear()
        .stdin(Stdio::from(channel))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}
