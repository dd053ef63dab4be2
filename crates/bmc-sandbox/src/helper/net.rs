//! Makes the loopback interface of a new network namespace usable; IPv6 gets its address by itself.

use std::fs;
use std::os::fd::AsFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::stage::{At, Failure, Stage};
use crate::sys;

const FIRST_FREE_PORT: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";

/// The lowest port that a payload may use, as it is outside: root may use all, without a capability for it here.
/// Must be read while the process still is in the host's network namespace.
pub(crate) fn host_first_free_port() -> Option<String> {
    if rustix::process::geteuid().is_root() {
        return Some("0".to_owned());
    }
    fs::read_to_string(FIRST_FREE_PORT)
        .ok()
        .map(|text| text.trim().to_owned())
}

/// Switches on `lo` and opens the ports that are open outside.
pub(crate) fn raise(first_free_port: Option<&str>) -> Result<(), Failure> {
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .at(Stage::Loopback)?;
    sys::raise_loopback(socket.as_fd()).at(Stage::Loopback)?;
    if let Some(port) = first_free_port {
        // Only a convenience: where the setting does not exist or is read-only, low ports stay closed.
        let _ = fs::write(FIRST_FREE_PORT, port);
    }
    Stage::Loopback.done();
    Ok(())
}
