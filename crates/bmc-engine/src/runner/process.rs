//! One pytest process: launched in a world of its own, spoken to over its socket, its output drained.

use std::ffi::OsString;
use std::io::{self, IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use bmc_pytest::package::PLUGIN_MODULE;
use bmc_pytest::wire::{self, FrameReader, FromPlugin, Read1, ToPlugin};
use bmc_sandbox::{Isolation, SandboxError, Spec, World};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use super::copytree::copy_tree;
use super::output::Captured;
use super::site::Site;

/// Number of the descriptor that the plugin inherits. It moves it out of the way at once.
const SOCKET_FD: i32 = 3;

/// How long a write to a plugin may take. Frames are small; only a process that is stopped or gone lets the socket fill.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Files and directories that the writes of one world may create.
const SCRATCH_INODES: u64 = 400_000;

/// Why no process could be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The world refused.
    #[error("start pytest in isolation")]
    Sandbox(#[from] SandboxError),
    /// A file, pipe or socket of ours.
    #[error("{what}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

fn io_error(what: &'static str) -> impl FnOnce(io::Error) -> LaunchError {
    move |source| LaunchError::Io { what, source }
}

/// Where a message came from: one number for each socket.
pub(super) type Channel = u32;

/// What the reading threads tell the executor.
#[derive(Debug)]
pub(super) enum Message {
    /// A frame.
    Frame(Channel, FromPlugin),
    /// The socket closed; with words if what came was not the protocol.
    Closed(Channel, Option<String>),
}

/// A running pytest process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) world: World,
    control: UnixStream,
    pub(super) output: Captured,
    /// Folder of this process alone, removed with it.
    private: Option<PathBuf>,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.world.kill();
        if let Some(private) = &self.private {
            // A leftover in our own scratch folder is removed with the whole folder at the end of the scan.
            let _ = super::copytree::remove_tree(private);
        }
    }
}

/// What one start adds to the site.
pub(super) struct Launch<'a> {
    pub(super) site: &'a Site,
    pub(super) isolation: Isolation,
    pub(super) config: wire::Config,
    pub(super) channel: Channel,
    pub(super) sender: SyncSender<Message>,
}

impl Process {
    /// Launches a process and sends it its configuration.
    pub(super) fn launch(launch: Launch<'_>) -> Result<Self, LaunchError> {
        let Launch {
            site,
            isolation,
            config,
            channel,
            sender,
        } = launch;
        let (ours, theirs) = UnixStream::pair().map_err(io_error("make a socket pair"))?;
        let (pipe_read, pipe_write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(|e| io_error("make a pipe")(e.into()))?;
        let pipe_again = pipe_write
            .try_clone()
            .map_err(io_error("copy a descriptor"))?;
        let place = Place::prepare(site, isolation, channel)?;
        let (project, home) = caught(&place.tree, site.home.as_deref());
        let world = site.launcher.spawn(Spec {
            isolation,
            network: site.network,
            project,
            home,
            expose: site.expose.clone(),
            writable: place.writable.clone(),
            masks: site.masks.clone(),
            scratch_bytes: site.scratch_bytes,
            scratch_inodes: SCRATCH_INODES,
            program: site.python.clone(),
            args: arguments(site, &place),
            env: environment(site, &config, &place),
            cwd: place.cwd.clone(),
            stdout: pipe_write,
            stderr: pipe_again,
            inherit: vec![(OwnedFd::from(theirs), SOCKET_FD)],
            nice: 0,
        });
        let world = match world {
            Ok(world) => world,
            Err(error) => {
                if let Some(private) = &place.private {
                    let _ = super::copytree::remove_tree(private);
                }
                return Err(error.into());
            }
        };
        let mut process = Self {
            world,
            control: ours.try_clone().map_err(io_error("copy a descriptor"))?,
            output: Captured::drain(pipe_read).map_err(io_error("start a thread"))?,
            private: place.private,
        };
        process
            .control
            .set_write_timeout(Some(WRITE_TIMEOUT))
            .map_err(io_error("set up a socket"))?;
        read_frames(ours, channel, sender).map_err(io_error("start a thread"))?;
        // A process that died at once has closed its end; what it printed says why, so that is not an error here.
        let _ = process.send(&ToPlugin::Config(config));
        Ok(process)
    }

    /// Sends a frame.
    pub(super) fn send(&mut self, frame: &ToPlugin) -> io::Result<()> {
        self.control.write_all(&wire::encode(frame)?)
    }

    /// Sends a frame with descriptors attached to its first byte.
    pub(super) fn send_with(
        &mut self,
        frame: &ToPlugin,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let bytes = wire::encode(frame)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::Error::other("too many descriptors for one frame"));
        }
        let sent = rustix::net::sendmsg(
            self.control.as_fd(),
            &[IoSlice::new(&bytes)],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        )?;
        self.control.write_all(&bytes[sent..])
    }
}

/// Starts the thread that turns a socket into messages.
pub(super) fn read_frames(
    socket: UnixStream,
    channel: Channel,
    sender: SyncSender<Message>,
) -> io::Result<()> {
    thread::Builder::new()
        .name("frames".into())
        .spawn(move || {
            let mut reader = FrameReader::new(socket);
            loop {
                let (message, last) = match reader.next_frame() {
                    Ok(Read1::Frame(frame)) => (Message::Frame(channel, frame), false),
                    Ok(Read1::End) => (Message::Closed(channel, None), true),
                    Ok(Read1::Violation(words)) => (Message::Closed(channel, Some(words)), true),
                    Err(error) => (Message::Closed(channel, Some(error.to_string())), true),
                };
                if sender.send(message).is_err() || last {
                    return;
                }
            }
        })?;
    Ok(())
}

/// The directories whose writes are caught: the tree, and the home.
///
/// A tree inside the home needs no mount of its own, and is better off without: a mount point cannot be renamed or removed,
/// and there are tests that remove their own project.
fn caught(tree: &Path, home: Option<&Path>) -> (PathBuf, Option<PathBuf>) {
    match home {
        Some(home) if tree.starts_with(home) => (home.to_owned(), None),
        home => (tree.to_owned(), home.map(Path::to_owned)),
    }
}

/// Where one process works.
struct Place {
    tree: PathBuf,
    cwd: PathBuf,
    temporary: Option<PathBuf>,
    private: Option<PathBuf>,
    writable: Vec<PathBuf>,
}

impl Place {
    fn prepare(site: &Site, isolation: Isolation, channel: Channel) -> Result<Self, LaunchError> {
        let mut writable = vec![site.bytecode.clone()];
        if isolation == Isolation::Full {
            return Ok(Self {
                tree: site.tree.clone(),
                cwd: site.root.clone(),
                temporary: None,
                private: None,
                writable,
            });
        }
        let private = site.scratch.join(format!("process-{channel}"));
        let temporary = private.join("tmp");
        std::fs::create_dir_all(&temporary).map_err(io_error("make a temporary folder"))?;
        let (tree, cwd) = if isolation == Isolation::Copy {
            let tree = private.join("tree");
            copy_tree(&site.tree, &tree).map_err(io_error("copy the project"))?;
            let below = site.root.strip_prefix(&site.tree).unwrap_or(Path::new(""));
            let cwd = tree.join(below);
            (tree, cwd)
        } else {
            (site.tree.clone(), site.root.clone())
        };
        writable.push(private.clone());
        Ok(Self {
            tree,
            cwd,
            temporary: Some(temporary),
            private: Some(private),
            writable,
        })
    }
}

fn arguments(site: &Site, place: &Place) -> Vec<OsString> {
    let cache = place
        .temporary
        .clone()
        .unwrap_or_else(|| PathBuf::from("/tmp"))
        .join("breakmycode-pytest-cache");
    let mut option = OsString::from("cache_dir=");
    option.push(cache);
    let mut arguments: Vec<OsString> = ["-m", "pytest", "-p", PLUGIN_MODULE, "-o"]
        .map(OsString::from)
        .to_vec();
    arguments.push(option);
    arguments.extend(site.pytest_args.iter().cloned());
    arguments
}

fn environment(site: &Site, config: &wire::Config, place: &Place) -> Vec<(OsString, OsString)> {
    let mut env = site.env.clone();
    let mut set = |name: &str, value: OsString| {
        env.retain(|(n, _)| n != name);
        env.push((name.into(), value));
    };
    let mut path = site.plugin.clone().into_os_string();
    if let Some((_, users)) = site
        .env
        .iter()
        .find(|(name, value)| name == "PYTHONPATH" && !value.is_empty())
    {
        path.push(":");
        path.push(users);
    }
    set("PYTHONPATH", path);
    set("PYTHONHASHSEED", config.hash_seed.to_string().into());
    set("PYTHONPYCACHEPREFIX", site.bytecode.clone().into());
    set("PWD", place.cwd.clone().into());
    set(wire::FD_VARIABLE, SOCKET_FD.to_string().into());
    match &place.temporary {
        Some(folder) => set("TMPDIR", folder.clone().into()),
        None => env.retain(|(name, _)| name != "TMPDIR"),
    }
    env.retain(|(name, _)| name != "PYTHONDONTWRITEBYTECODE");
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_inside_the_home_is_caught_with_it() {
        let of = |tree: &str, home: Option<&str>| caught(Path::new(tree), home.map(Path::new));
        assert_eq!(
            of("/home/a/shop", Some("/home/a")),
            ("/home/a".into(), None)
        );
        assert_eq!(
            of("/srv/shop", Some("/home/a")),
            ("/srv/shop".into(), Some("/home/a".into()))
        );
        assert_eq!(
            of("/home/ab", Some("/home/a")),
            ("/home/ab".into(), Some("/home/a".into()))
        );
        assert_eq!(of("/srv/shop", None), ("/srv/shop".into(), None));
    }
}
