//! Runs, judges and records. Everything with effects, and the workflows that join them.
//!
//! Never prints, never reads arguments or the environment: what it needs comes in as values, what happens goes out as events.

pub mod history;
pub mod lab;
pub mod project;
pub mod runner;
pub mod store;
pub mod workflow;
