//! Judging what was seen: statistics, classes, signatures. Pure: no I/O, no clock, no randomness.

pub mod classify;
pub mod signature;
pub mod stats;
