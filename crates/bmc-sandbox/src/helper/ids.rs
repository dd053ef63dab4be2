//! Maps users and groups into a new user namespace, from outside of it.
//!
//! Numbers never change their meaning: every number that is mapped is mapped to itself.

use std::fs;
use std::io;

use rustix::thread::CapabilitySet;

use super::stage::{At, Failure, Stage};

/// Writes the maps of a process that was just forked into a new user namespace.
///
/// With the right to do so, everything that exists here is mapped, so that files of other users look right; an
/// ordinary user can map only itself.
pub(crate) fn write_maps(pid: i32) -> Result<(), Failure> {
    let file = |name: &str| format!("/proc/{pid}/{name}");
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
    let held = rustix::thread::capabilities(None).at(Stage::UserMap)?;
    if held.effective.contains(needed) {
        fs::write(
            file("uid_map"),
            identity("/proc/self/uid_map").at(Stage::UserMap)?,
        )
        .at(Stage::UserMap)?;
        fs::write(
            file("gid_map"),
            identity("/proc/self/gid_map").at(Stage::UserMap)?,
        )
        .at(Stage::UserMap)?;
    } else {
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        // Without it, the kernel lets nobody unprivileged write a group map.
        fs::write(file("setgroups"), "deny").at(Stage::UserMap)?;
        fs::write(file("uid_map"), format!("{uid} {uid} 1")).at(Stage::UserMap)?;
        fs::write(file("gid_map"), format!("{gid} {gid} 1")).at(Stage::UserMap)?;
    }
    Stage::UserMap.done();
    Ok(())
}

/// The ranges that are mapped here, each mapped to itself.
fn identity(path: &str) -> io::Result<String> {
    Ok(identity_of(&fs::read_to_string(path)?))
}

fn identity_of(map: &str) -> String {
    let mut lines = String::new();
    for line in map.lines() {
        let mut fields = line.split_whitespace();
        if let (Some(inside), Some(_), Some(count)) = (fields.next(), fields.next(), fields.next())
        {
            lines.push_str(&format!("{inside} {inside} {count}\n"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::identity_of;

    #[test]
    fn what_is_mapped_is_mapped_to_itself() {
        assert_eq!(
            identity_of("         0          0 4294967295\n"),
            "0 0 4294967295\n"
        );
        assert_eq!(
            identity_of("0 1000 1\n1 100000 65536\n"),
            "0 0 1\n1 1 65536\n"
        );
        assert_eq!(identity_of(""), "");
    }
}
