//! Worlds from the outside: real processes, files and networks, at every level of isolation.
//!
//! When run as root, [`user`] runs everything a second time as an ordinary user.
#![allow(
    clippy::unwrap_used,
    reason = "the functions that tests share are tests, too"
)]

mod children;
mod failures;
mod files;
mod network;
mod processes;
mod programs;
mod support;
mod user;
