//! The private protocol between the launcher and the init of a world: JSON frames with descriptors attached.
//!
//! Both ends are the same binary, so there is no version; a malformed frame is an error, never a panic.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, send, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::leftovers::{Change, Place};
use crate::spec::{Isolation, Network};
use crate::world::{Exit, Namespace};

/// The kernel's limit on descriptors in one message (`SCM_MAX_FD`).
pub(crate) const MAX_DESCRIPTORS: usize = 253;

/// Far above any real frame: the largest carry an environment (at most a few MB) or 1000 paths.
const MAX_FRAME: usize = 64 << 20;

/// A string of the operating system: text where it is text, so that frames stay short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Bytes {
    Text(String),
    Raw(Vec<u8>),
}

impl Bytes {
    pub(crate) fn new(string: &OsStr) -> Self {
        match string.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Raw(string.as_bytes().to_vec()),
        }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_bytes(),
            Self::Raw(bytes) => bytes,
        }
    }

    pub(crate) fn into_path(self) -> PathBuf {
        PathBuf::from(OsString::from_vec(self.into_bytes()))
    }
}

/// The first frame to a helper: what [`Spec`](crate::Spec) says, without its descriptors, which are attached.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) isolation: Isolation,
    pub(crate) network: Network,
    pub(crate) project: Bytes,
    pub(crate) home: Option<Bytes>,
    pub(crate) expose: Vec<Bytes>,
    pub(crate) writable: Vec<Bytes>,
    pub(crate) masks: Vec<Bytes>,
    pub(crate) scratch_bytes: u64,
    pub(crate) scratch_inodes: u64,
    /// `None` in a probe, where everything is built and nothing is run.
    pub(crate) payload: Option<Payload>,
}

/// What to run. Descriptors: standard output, standard error, then one for each of `inherit`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Payload {
    pub(crate) program: Bytes,
    pub(crate) args: Vec<Bytes>,
    pub(crate) env: Vec<(Bytes, Bytes)>,
    pub(crate) cwd: Bytes,
    pub(crate) inherit: Vec<RawFd>,
    pub(crate) nice: i32,
}

/// What the launcher asks of a world's init.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    ChildWorld,
    Signal(i32),
    Leftovers,
}

/// What a helper tells the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Event {
    /// Attached: a descriptor of the process whose death ends the whole world.
    Init,
    /// The world is ready. From a child world, attached: its namespaces.
    Started { namespaces: Vec<Namespace> },
    /// The world could not be built.
    Failed {
        step: String,
        errno: Option<i32>,
        message: String,
    },
    /// A probe is over: which stages worked, and what stopped it.
    Probed {
        done: Vec<String>,
        failed: Option<(String, Option<i32>)>,
    },
    /// The payload ended.
    Exited(Exit),
    /// A child world is being built. Attached: its own channel and a descriptor of its init.
    Child,
    /// The last request was done.
    Done,
    /// The last request could not be done.
    Refused { errno: Option<i32>, message: String },
    /// The answer to [`Request::Leftovers`].
    Leftovers {
        processes: Vec<(u32, String)>,
        files: Vec<(Place, Bytes, Change)>,
        truncated: bool,
    },
}

/// Turns the two halves of an error that crossed the channel into one again.
pub(crate) fn error_from(errno: Option<i32>, message: String) -> io::Error {
    errno.map_or_else(|| io::Error::other(message), io::Error::from_raw_os_error)
}

/// What [`receive`] found.
pub(crate) enum Received<T> {
    Frame(T, Vec<OwnedFd>),
    /// The time was over first; nothing was read.
    Nothing,
    /// The other end is closed.
    Closed,
}

/// Sends one frame; blocks while the other end is behind.
pub(crate) fn send_frame<T: Serialize>(
    socket: BorrowedFd<'_>,
    frame: &T,
    attached: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let body = serde_json::to_vec(frame)?;
    let length =
        u32::try_from(body.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let header = length.to_le_bytes();
    let mut space = vec![MaybeUninit::uninit(); SendAncillaryMessage::ScmRights(attached).size()];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !attached.is_empty() && !control.push(SendAncillaryMessage::ScmRights(attached)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // The descriptors travel with the header's first byte; four bytes are never split on a local socket.
    rustix::io::retry_on_intr(|| {
        sendmsg(
            socket,
            &[IoSlice::new(&header)],
            &mut control,
            SendFlags::NOSIGNAL,
        )
    })?;
    let mut rest = body.as_slice();
    while !rest.is_empty() {
        let sent = rustix::io::retry_on_intr(|| send(socket, rest, SendFlags::NOSIGNAL))?;
        rest = &rest[sent..];
    }
    Ok(())
}

/// Receives one frame, waiting for its beginning until `deadline` (for ever without one).
pub(crate) fn receive<T: DeserializeOwned>(
    socket: BorrowedFd<'_>,
    deadline: Option<Instant>,
) -> io::Result<Received<T>> {
    if !wait_readable(socket, deadline)? {
        return Ok(Received::Nothing);
    }
    let mut header = [0_u8; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let message = rustix::io::retry_on_intr(|| {
        recvmsg(
            socket,
            &mut [IoSliceMut::new(&mut header)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL,
        )
    });
    let received = match message {
        Ok(message) => message.bytes,
        Err(rustix::io::Errno::CONNRESET) => 0,
        Err(error) => return Err(error.into()),
    };
    if received == 0 {
        return Ok(Received::Closed);
    }
    let mut attached = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            attached.extend(descriptors);
        }
    }
    let length = u32::from_le_bytes(header) as usize;
    if received != header.len() || length > MAX_FRAME {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0_u8; length];
    let mut filled = 0;
    while filled < length {
        match rustix::io::retry_on_intr(|| {
            recv(socket, &mut body[filled..], RecvFlags::empty()).map(|(count, _)| count)
        }) {
            Ok(0) | Err(rustix::io::Errno::CONNRESET) => return Ok(Received::Closed),
            Ok(count) => filled += count,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Received::Frame(serde_json::from_slice(&body)?, attached))
}

/// Waits until a descriptor is readable or closed; false when the time was over first.
pub(crate) fn wait_readable(descriptor: impl AsFd, deadline: Option<Instant>) -> io::Result<bool> {
    loop {
        let timeout =
            deadline.map(|deadline| timespec(deadline.saturating_duration_since(Instant::now())));
        let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
        match poll(&mut polled, timeout.as_ref()) {
            Ok(count) => return Ok(count > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap()
    }

    #[test]
    fn bytes_that_are_not_text_survive() {
        for bytes in [&b"plain"[..], b"", b"\xff\xfe/x", "sn\u{f6}".as_bytes()] {
            let sent = Bytes::new(OsStr::from_bytes(bytes));
            let json = serde_json::to_string(&sent).unwrap();
            let back: Bytes = serde_json::from_str(&json).unwrap();
            assert_eq!(back.into_bytes(), bytes);
        }
    }

    #[test]
    fn a_frame_keeps_its_descriptors_when_frames_are_queued() {
        let (left, right) = pair();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        send_frame(left.as_fd(), &Request::Signal(3), &[]).unwrap();
        send_frame(
            left.as_fd(),
            &Request::ChildWorld,
            &[reader.as_fd(), writer.as_fd()],
        )
        .unwrap();
        send_frame(left.as_fd(), &Request::Leftovers, &[]).unwrap();
        let mut seen = Vec::new();
        for _ in 0..3 {
            match receive::<Request>(right.as_fd(), None).unwrap() {
                Received::Frame(request, attached) => seen.push((request, attached.len())),
                Received::Nothing | Received::Closed => panic!("a frame is missing"),
            }
        }
        assert_eq!(
            seen,
            [
                (Request::Signal(3), 0),
                (Request::ChildWorld, 2),
                (Request::Leftovers, 0)
            ]
        );
    }

    #[test]
    fn silence_and_the_end_are_told_apart() {
        let (left, right) = pair();
        let soon = Some(Instant::now() + Duration::from_millis(1));
        assert!(matches!(
            receive::<Request>(right.as_fd(), soon).unwrap(),
            Received::Nothing
        ));
        drop(left);
        assert!(matches!(
            receive::<Request>(right.as_fd(), None).unwrap(),
            Received::Closed
        ));
    }

    #[test]
    fn a_frame_that_is_not_json_is_an_error() {
        let (left, right) = pair();
        send(&left, b"\x02\x00\x00\x00{]", SendFlags::empty()).unwrap();
        assert!(receive::<Request>(right.as_fd(), None).is_err());
        send(&left, b"\xff\xff\xff\xff", SendFlags::empty()).unwrap();
        assert!(receive::<Request>(right.as_fd(), None).is_err());
    }
}
