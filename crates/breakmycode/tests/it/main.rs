//! The binary from outside: arguments in, exit code, standard output, standard error and the state of the disk out.
//!
//! Needs the Python environments that `cargo xtask environments` makes. Nothing here reaches into the crates; only the types of the
//! report are shared, so that a document that does not fit them is a failure.
#![allow(
    clippy::unwrap_used,
    reason = "the functions that tests share are tests, too"
)]

mod bytecode;
mod cli;
mod common;
mod environments;
mod filters;
mod fixtures;
mod formats;
mod gate;
mod interpreter;
mod isolation;
mod live;
mod paths;
mod processes;
mod replay;
mod resume;
mod samples;
mod schema;
mod streams;
mod trace;
mod tree;
mod truth;
