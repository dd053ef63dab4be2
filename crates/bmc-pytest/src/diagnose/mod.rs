//! Names what is wrong around the tests: files that cannot be collected, and runs in which our plugin never spoke.
//!
//! Turns structured errors, or as the last resort pytest's own text, into [`Advice`]. Reads project files through
//! [`ProjectFiles`] only; must not start anything and must not fail: an unknown fault is shown as it is.

mod collection;
mod groups;
mod imports;
mod outcomes;
mod output;
mod project_files;
mod start;
mod tables;
mod text;
mod texts;
mod traceback;
mod zero;

use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize};

use crate::interpreter::{Discovery, Interpreter, Manager};

pub use bmc_types::Advice;
pub use collection::from_collection;
pub use outcomes::{from_plugins, from_test_failure};
pub use output::from_output;
pub use project_files::ProjectFiles;
pub use texts::{CODES, explain};
pub use zero::zero_tests;

/// One file or class that could not be collected, as the plugin reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectError {
    /// The node that could not be collected.
    pub nodeid: String,
    /// `module_not_found`, `import_error`, `syntax_error`, `import_mismatch`, `fixture`, `exit` or `other`.
    #[serde(default)]
    pub kind: String,
    /// The exception's message.
    #[serde(default, deserialize_with = "null_is_empty")]
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
    #[serde(default, deserialize_with = "null_is_empty")]
    pub longrepr: String,
    /// Frames of the project from the test file inwards: path, line, source.
    #[serde(default)]
    pub chain: Vec<(String, u32, String)>,
}

/// How a process that never got to run tests came to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ending {
    /// Exit code, if it exited.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether it was ended because it took too long.
    pub timed_out: bool,
    /// The test file that was being imported last.
    pub last_file: Option<String>,
}

/// What is known about the project and its interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// The project's files.
    pub files: ProjectFiles,
    /// The interpreter that was used.
    pub interpreter: Option<Interpreter>,
    /// Who manages the project's packages.
    pub manager: Manager,
}

impl Context {
    /// Makes the context of a project: `root` is the folder that paths in messages are relative to.
    pub fn new(discovery: &Discovery, root: &Path) -> Self {
        Self {
            files: ProjectFiles::at(root),
            interpreter: discovery.chosen.clone(),
            manager: discovery.manager,
        }
    }

    /// The interpreter as it is shown and typed.
    fn python(&self) -> &str {
        self.interpreter
            .as_ref()
            .map_or("python", |interpreter| &interpreter.display)
    }

    /// Says which interpreter something is missing from.
    fn of_interpreter(&self) -> String {
        match &self.interpreter {
            Some(interpreter) => {
                let (major, minor, micro) = interpreter.probe.version;
                format!(
                    "{} (Python {major}.{minor}.{micro}, found by {})",
                    interpreter.display, interpreter.found_by
                )
            }
            None => "this interpreter".to_owned(),
        }
    }

    /// The minor version of Python 3.
    fn minor(&self) -> Option<u32> {
        self.interpreter
            .as_ref()
            .map(|interpreter| interpreter.probe.version)
            .and_then(|version| (version.0 == 3).then_some(version.1))
    }

    fn has_plugin(&self, distribution: &str) -> bool {
        let plugins = self
            .interpreter
            .iter()
            .flat_map(|interpreter| &interpreter.probe.plugins);
        plugins
            .into_iter()
            .any(|plugin| plugin.distribution.eq_ignore_ascii_case(distribution))
    }

    /// Returns the commands that add packages for development.
    fn add(&self, packages: &[&str]) -> Vec<String> {
        let mut help = vec![self.manager.add(packages, self.python())];
        help.extend(self.manager.remark(packages));
        help
    }
}

/// Makes advice from its parts.
fn advice(
    code: &str,
    headline: String,
    places: Vec<String>,
    why: Vec<String>,
    help: Vec<String>,
) -> Advice {
    Advice {
        code: code.to_owned(),
        headline,
        places,
        why,
        help,
    }
}

fn null_is_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod desk;
