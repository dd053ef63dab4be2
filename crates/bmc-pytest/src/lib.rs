//! The bridge to pytest: finding an interpreter, unpacking the plugin, speaking its protocol, naming what is wrong around the tests.
//!
//! Knows nothing of sandboxes, schedules or storage, and never reads the process environment by itself.

pub mod diagnose;
pub mod interpreter;
pub mod package;
pub mod wire;
