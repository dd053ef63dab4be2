//! What a scan is asked to do, and where it may put things. The request is stored with the scan, so that it can be resumed.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use bmc_pytest::interpreter::Surroundings;
use serde::{Deserialize, Serialize};

/// What a scan is asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScanRequest {
    /// The project, or a file or folder in it.
    #[serde(with = "path_text")]
    pub path: PathBuf,
    /// Runs to make.
    pub runs: u32,
    /// Fresh starts among them; `None` = as the plan thinks right.
    pub fresh_starts: Option<u32>,
    /// Every run in a fresh process.
    pub fresh: bool,
    /// Runs at a time.
    pub jobs: u32,
    /// Seed that all others come from.
    pub seed: u64,
    /// Interpreter, environment or version that was asked for.
    pub python: Option<String>,
    /// Prefer the active environment over the project's.
    pub active: bool,
    /// Give the tests the host's network.
    pub host_network: bool,
    /// Copy the project for every run instead of isolating it.
    pub copy: bool,
    /// Limit of each test in seconds.
    pub test_timeout_s: Option<f64>,
    /// Begin no run after so many seconds.
    pub duration_s: Option<f64>,
    /// Node ids to limit the scan to.
    pub only: Vec<String>,
    /// Scan that `only` was taken from.
    pub from: Option<String>,
    /// Arguments for pytest (UTF-8; the surface refuses others).
    pub pytest_args: Vec<String>,
    /// Go on when some files cannot be collected.
    pub continue_on_collection_errors: bool,
    /// Variables that are passed to tests although their names look secret.
    pub pass_env: Vec<String>,
}

/// Where things are put. All outside the project.
#[derive(Debug, Clone)]
pub struct Directories {
    /// The database.
    pub database: PathBuf,
    /// For what may be lost: bytecode, copies.
    pub cache: PathBuf,
}

/// What surrounds a workflow.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Environment variables, home, own executable.
    pub surroundings: Surroundings,
    /// Where things are put.
    pub directories: Directories,
    /// How often the user asked to stop.
    pub interrupt: Arc<AtomicU8>,
    /// Starts worlds.
    pub launcher: bmc_sandbox::Launcher,
    /// Now, RFC 3339 in UTC.
    pub now: fn() -> String,
}

/// A path as a string, or as its bytes where it is not UTF-8: JSON has no other way to keep it whole.
mod path_text {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Text {
        Utf8(String),
        Bytes(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => Text::Utf8(text.to_owned()),
            None => Text::Bytes(path.as_os_str().as_bytes().to_vec()),
        }
        .serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<PathBuf, D::Error> {
        Ok(match Text::deserialize(deserializer)? {
            Text::Utf8(text) => PathBuf::from(text),
            Text::Bytes(bytes) => PathBuf::from(OsString::from_vec(bytes)),
        })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Holder(#[serde(with = "super")] PathBuf);

        #[test]
        fn paths_that_are_not_utf_8_survive_json() {
            for bytes in [&b"/home/me/shop"[..], b"/home/me/caf\xe9", b""] {
                let holder = Holder(PathBuf::from(OsString::from_vec(bytes.to_vec())));
                let json = serde_json::to_string(&holder).unwrap();
                assert_eq!(
                    serde_json::from_str::<Holder>(&json).unwrap(),
                    holder,
                    "{json}"
                );
            }
        }
    }
}
