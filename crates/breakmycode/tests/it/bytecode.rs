//! Bytecode of what is no project's: Python's modules, pytest, plugins. Kept between tests, so that each scan need not compile it again.
//!
//! Only speed hangs on it. What is old is compiled again by Python, and whatever fails here is left alone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

fn store() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("bytecode")
}

/// Puts what is kept into the bytecode cache of a test.
pub(crate) fn lay_out(cache: &Path) {
    let _ = link_tree(&store(), cache, Path::new(""));
}

/// Keeps what a test has compiled, besides its own project.
pub(crate) fn collect(cache: &Path, own: &Path) {
    // Below each version of Python the whole path of the source is repeated.
    let own = own.strip_prefix("/").unwrap_or(own);
    let _ = link_tree(cache, &store(), own);
}

fn link_tree(from: &Path, to: &Path, without: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            if without.as_os_str().is_empty() || !source.ends_with(without) {
                link_tree(&source, &target, without)?;
            }
        } else if source
            .extension()
            .is_some_and(|extension| extension == "pyc")
        {
            // A link is made whole or not at all; Python replaces files and never writes into them.
            match fs::hard_link(&source, &target) {
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                    copy(&source, &target)?
                }
                _ => {}
            }
        }
    }
    Ok(())
}

fn copy(source: &Path, target: &Path) -> io::Result<()> {
    if target.exists() {
        return Ok(());
    }
    let unfinished = target.with_extension(format!("new-{}", std::process::id()));
    fs::copy(source, &unfinished)?;
    // The time of the source of the code is inside of the file; that of the file itself does not matter.
    fs::rename(&unfinished, target)
}
