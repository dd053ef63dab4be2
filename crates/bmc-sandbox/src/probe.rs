//! Finds out which isolation this machine allows, and why not more.

use serde::{Deserialize, Serialize};

use crate::spec::Isolation;

/// One part of building a world, tried for real.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What was tried.
    pub name: String,
    /// Whether it worked.
    pub ok: bool,
    /// What the kernel said and the likely cause; empty when it worked.
    pub detail: String,
}

/// The strongest isolation that works here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The level to use.
    pub level: Isolation,
    /// What was tried, in order, up to the first step that failed.
    pub steps: Vec<Step>,
}
