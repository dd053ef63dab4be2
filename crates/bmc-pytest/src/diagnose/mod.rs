//! Names what is wrong around the tests: files that cannot be collected, and runs in which our plugin never spoke.
//!
//! Turns structured errors, or as the last resort pytest's own text, into [`Advice`]. Reads project files through
//! [`ProjectFiles`] only; must not start anything and must not fail: an unknown fault is shown as it is.

use serde::{Deserialize, Serialize};

pub use bmc_types::Advice;

/// One file or class that could not be collected, as the plugin reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectError {
    /// The node that could not be collected.
    pub nodeid: String,
    /// `module_not_found`, `import_error`, `syntax_error`, `import_mismatch`, `fixture`, `exit` or `other`.
    #[serde(default)]
    pub kind: String,
    /// The exception's message.
    #[serde(default)]
    pub message: String,
    /// The module that was not found.
    #[serde(default)]
    pub module: Option<String>,
    /// File of the innermost frame that belongs to the project.
    #[serde(default)]
    pub path: Option<String>,
    /// Its line.
    #[serde(default)]
    pub line: Option<u32>,
    /// The source of that line.
    #[serde(default)]
    pub source: Option<String>,
    /// pytest's own text.
    #[serde(default)]
    pub longrepr: String,
    /// Frames of the project from the test file inwards: path, line, source.
    #[serde(default)]
    pub chain: Vec<(String, u32, String)>,
}
