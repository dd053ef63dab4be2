//! Thin wrappers around the system calls that `rustix` does not offer. All `unsafe` code of the project is here.
//!
//! Each function makes one call and turns its result into `io::Result`; nothing here decides anything.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

/// What [`fork`] returns in each of the two processes.
pub(crate) enum Forked {
    /// In the new process.
    Child,
    /// In the old one.
    Parent { pid: i32, pidfd: OwnedFd },
}

/// A child that ended.
pub(crate) struct Reaped {
    pub(crate) pid: i32,
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) maxrss_kb: u64,
    pub(crate) user: Duration,
    pub(crate) system: Duration,
}

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Forks into new namespaces. The caller must be single-threaded: the child goes on with a copy of its whole state.
pub(crate) fn fork(namespaces: libc::c_int) -> io::Result<Forked> {
    let mut pidfd: libc::c_int = -1;
    let flags = libc::c_long::from(namespaces | libc::CLONE_PIDFD | libc::SIGCHLD);
    let pidfd_slot: *mut libc::c_int = &raw mut pidfd;
    // SAFETY: without CLONE_VM the child runs on a copy of this stack, and no other thread exists whose locks could be
    // held. The third argument is the pidfd slot on every architecture; the others are unused with these flags.
    let result = unsafe {
        libc::syscall(
            libc::SYS_clone,
            flags,
            0_usize,
            pidfd_slot,
            0_usize,
            0_usize,
        )
    };
    let pid = check(result)?;
    if pid == 0 {
        return Ok(Forked::Child);
    }
    // SAFETY: the kernel has just stored a descriptor here that nothing else owns.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Forked::Parent {
        pid: pid as i32,
        pidfd,
    })
}

/// Ends this process at once, without running destructors of a copied state.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` has no preconditions.
    unsafe { libc::_exit(code) }
}

/// Reaps one child that has ended; `None` when none has; an `ECHILD` error when there are no children.
pub(crate) fn reap() -> io::Result<Option<Reaped>> {
    wait4(-1, libc::WNOHANG)
}

/// Waits for one child.
pub(crate) fn wait_for(pid: i32) -> io::Result<Option<Reaped>> {
    loop {
        match wait4(pid, 0) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

fn wait4(pid: i32, options: libc::c_int) -> io::Result<Option<Reaped>> {
    let mut status: libc::c_int = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to live local variables of the right types.
    let result = unsafe { libc::wait4(pid, &raw mut status, options, usage.as_mut_ptr()) };
    let pid = check(libc::c_long::from(result))? as i32;
    if pid == 0 {
        return Ok(None);
    }
    // SAFETY: all-zero bytes are a valid `rusage`, and the kernel may have filled it in.
    let usage = unsafe { usage.assume_init() };
    let duration = |time: libc::timeval| {
        Duration::new(
            u64::try_from(time.tv_sec).unwrap_or(0),
            u32::try_from(time.tv_usec).unwrap_or(0) * 1000,
        )
    };
    Ok(Some(Reaped {
        pid,
        code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        maxrss_kb: u64::try_from(usage.ru_maxrss).unwrap_or(0),
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
    }))
}

/// Sends a signal; `pid` may be -1 for every process that can be signalled.
pub(crate) fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: `kill` takes plain numbers; the kernel checks them.
    check(libc::c_long::from(unsafe { libc::kill(pid, signal) })).map(drop)
}

/// Blocks `SIGCHLD` and returns a non-blocking descriptor that becomes readable when one is pending.
pub(crate) fn child_signals() -> io::Result<OwnedFd> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the pointer is to a live local variable; this initialises it.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set was initialised above and SIGCHLD is a valid signal.
    unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD) };
    // SAFETY: the set is initialised; no old mask is asked for.
    check(libc::c_long::from(unsafe {
        libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut())
    }))?;
    // SAFETY: the set is initialised; -1 asks for a new descriptor.
    let result =
        unsafe { libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    let descriptor = check(libc::c_long::from(result))? as RawFd;
    // SAFETY: the call has just returned this descriptor and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Unblocks every signal, as a program expects it at its start.
pub(crate) fn unblock_signals() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the pointer is to a live local variable; this initialises it.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set is initialised; no old mask is asked for.
    check(libc::c_long::from(unsafe {
        libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), ptr::null_mut())
    }))
    .map(drop)
}

/// Gives a signal its default action.
pub(crate) fn default_signal(signal: i32) {
    // SAFETY: SIG_DFL is a valid action for any signal, and no Rust code is installed as a handler.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// Marks every descriptor from `first` on to be closed when a program is executed.
pub(crate) fn close_on_exec_from(first: RawFd) -> io::Result<()> {
    let first = u32::try_from(first).unwrap_or(0);
    // SAFETY: setting the close-on-exec flag takes no descriptor away from its owner.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    check(result).map(drop)
}

/// Duplicates a descriptor to a certain number, where it survives the execution of a program.
///
/// Whatever had that number is replaced, so this is only for a process that is about to execute one.
pub(crate) fn place_descriptor(source: BorrowedFd<'_>, number: RawFd) -> io::Result<()> {
    // SAFETY: the source is open; an owner of `number` in this process must not use it again, which the caller ensures
    // by executing a program next.
    check(libc::c_long::from(unsafe {
        libc::dup2(source.as_raw_fd(), number)
    }))
    .map(drop)
}

/// Executes a program; returns only if that fails.
pub(crate) fn execute(program: &CStr, arguments: &[CString], environment: &[CString]) -> io::Error {
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings
            .iter()
            .map(|string| string.as_ptr())
            .chain([ptr::null()])
            .collect()
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    // SAFETY: the program and both lists are NUL-terminated and outlive the call.
    unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

/// Adds attributes (`MOUNT_ATTR_*`) to the mount that `tree` refers to and, if asked, to all mounts below it.
pub(crate) fn set_mount_attributes(
    tree: BorrowedFd<'_>,
    attributes: u64,
    recursive: bool,
) -> io::Result<()> {
    let settings = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    let settings_pointer: *const libc::mount_attr = &raw const settings;
    // SAFETY: the path is an empty NUL-terminated string, and the settings live across the call with their true size.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            settings_pointer,
            size_of::<libc::mount_attr>(),
        )
    };
    check(result).map(drop)
}

/// Switches on the interface `lo` of the current network namespace.
pub(crate) fn raise_loopback(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (slot, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *slot = *byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request names an interface, carries its flags, and lives across the call.
    let result = unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS as _,
            &raw const request,
        )
    };
    check(libc::c_long::from(result)).map(drop)
}

/// Takes over the descriptor that the launcher passed as standard input.
pub(crate) fn take_standard_input() -> OwnedFd {
    // SAFETY: called once, as the first thing in the helper, which never touches `std::io::stdin`.
    unsafe { OwnedFd::from_raw_fd(0) }
}
