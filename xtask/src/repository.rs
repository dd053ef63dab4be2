//! Where the repository is, which files belong to it, and what cargo knows of its crates. Changes nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::process;

/// A checkout of the repository.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    /// Its top folder.
    pub(crate) root: PathBuf,
}

/// A text file of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextFile {
    /// Path from the top folder, with `/`.
    pub(crate) path: String,
    /// Its content.
    pub(crate) text: String,
}

/// The part of `cargo metadata` that is used here.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Metadata {
    /// The crates of the workspace.
    pub(crate) packages: Vec<Package>,
    /// Where cargo builds.
    pub(crate) target_directory: PathBuf,
}

/// One crate of the workspace.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Package {
    /// Its name.
    pub(crate) name: String,
    /// What it depends on.
    pub(crate) dependencies: Vec<Dependency>,
}

/// One dependency as the manifest names it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Dependency {
    /// Name of the crate.
    pub(crate) name: String,
    /// `None` for an ordinary one, `dev` or `build`.
    pub(crate) kind: Option<String>,
    /// Folder of a crate of the workspace.
    pub(crate) path: Option<PathBuf>,
}

impl Repository {
    /// Finds the checkout that this program was built from.
    pub(crate) fn find() -> Result<Self, String> {
        // `cargo run` sets it; a program that was moved still knows where it was built.
        let own = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = own.parent().map(Path::to_path_buf).unwrap_or_default();
        if root.join("Cargo.toml").is_file() {
            Ok(Self { root })
        } else {
            Err(format!(
                "find the repository: {} has no Cargo.toml",
                root.display()
            ))
        }
    }

    /// Starts a `cargo` command in the top folder.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&self.root);
        command
    }

    /// Asks cargo about the workspace.
    pub(crate) fn metadata(&self) -> Result<Metadata, String> {
        let text =
            process::output(
                self.cargo()
                    .args(["metadata", "--no-deps", "--format-version", "1"]),
            )?;
        serde_json::from_str(&text)
            .map_err(|error| format!("read what `cargo metadata` printed: {error}"))
    }

    /// Reads every text file that git tracks or would track. Files with other bytes than UTF-8 are left out.
    pub(crate) fn text_files(&self) -> Result<Vec<TextFile>, String> {
        let list = process::output(
            Command::new("git")
                // A checkout that belongs to someone else, as in many build machines, is read all the same.
                .args([
                    "-c",
                    "safe.directory=*",
                    "ls-files",
                    "-z",
                    "--cached",
                    "--others",
                    "--exclude-standard",
                ])
                .current_dir(&self.root),
        )?;
        let mut files = Vec::new();
        for path in list.split('\0').filter(|path| !path.is_empty()) {
            // What is in the index may be deleted or be a link in the work tree.
            let place = self.root.join(path);
            if !place.symlink_metadata().is_ok_and(|data| data.is_file()) {
                continue;
            }
            let bytes = std::fs::read(&place).map_err(|error| format!("read {path}: {error}"))?;
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(TextFile {
                    path: path.to_owned(),
                    text,
                });
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        Ok(files)
    }
}
