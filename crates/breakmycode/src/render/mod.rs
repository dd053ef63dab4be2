//! Report in, text out: plain functions that write a `ScanReport` for people and for programs.
//!
//! Nothing here judges, reads files or knows the clock: what is not in the report is not printed.

pub(crate) mod header;
pub(crate) mod json;
pub(crate) mod junit;
pub(crate) mod terminal;

mod advice;
mod next;
mod page;
mod proof;
mod tables;
mod verdicts;

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
