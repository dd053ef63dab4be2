//! What can go wrong when a world is made, asked or ended. A payload that fails is not here: its exit is a value.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::spec::Isolation;

/// The reason why a world cannot be had or used; reads after "cannot …".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The helper process did not start.
    #[error("start the sandbox helper {executable}")]
    Helper {
        /// The binary that was to be started.
        executable: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A step of building the world failed; nothing of the payload has run.
    #[error("set up the isolated world: {step}")]
    Setup {
        /// What was being done, such as `overlay on /home/ann/shop`.
        step: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The specification contradicts itself or names something that does not exist.
    #[error("isolate {path}: {problem}")]
    Spec {
        /// The path in question.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The helper sent nothing for too long and was killed.
    #[error("go on with the isolated world: no answer within {} s", waited.as_secs())]
    Silent {
        /// How long we waited.
        waited: Duration,
    },
    /// The world has ended.
    #[error("talk to the isolated world: it has ended")]
    Gone,
    /// The world's init could not do what was asked.
    #[error("{request} in the isolated world")]
    Refused {
        /// What was asked.
        request: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// Only fully isolated worlds can be the origin of child worlds.
    #[error("make a child world: the isolation is `{isolation}`, and only `full` allows it")]
    NoChildren {
        /// The isolation of this world.
        isolation: Isolation,
    },
    /// A child world has no payload of its own whose exit could be waited for.
    #[error("wait for a child world: it has no payload of its own")]
    NoPayload,
    /// The channel to the helper failed or carried something unexpected.
    #[error("talk to the sandbox helper")]
    Channel(#[source] io::Error),
}
