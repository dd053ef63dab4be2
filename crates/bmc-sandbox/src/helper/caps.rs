//! Takes privileges away before the payload runs. Never gives any.

use rustix::thread::{CapabilitySet, CapabilitySets};

use super::stage::{At, Failure, Stage};

/// What real root keeps inside its user namespace, so that suites which are run as root behave as they do without us:
/// files of other users, and switching to other users. Nothing that mounts, traces or configures.
const ROOT_KEEPS: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// The capabilities of a payload of the current user.
pub(crate) fn kept() -> CapabilitySet {
    if rustix::process::geteuid().is_root() {
        ROOT_KEEPS
    } else {
        CapabilitySet::empty()
    }
}

/// Drops all other capabilities for good, also for programs that are executed later.
pub(crate) fn drop_to_kept() -> Result<(), Failure> {
    let kept = kept();
    for capability in CapabilitySet::all().difference(kept).iter() {
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            // A capability that this kernel does not know.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(error).at(Stage::Capabilities),
        }
    }
    rustix::thread::clear_ambient_capability_set().at(Stage::Capabilities)?;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, sets).at(Stage::Capabilities)?;
    Stage::Capabilities.done();
    Ok(())
}
