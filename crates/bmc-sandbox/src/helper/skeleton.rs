//! Fills a directory that could not be caught as a whole with copies of what lies directly in it.
//!
//! Directories are not entered: each has its own action in the plan.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use super::overlay;
use super::plan::LARGEST_COPIED_FILE;

/// Copies the links and small files of `from` into the empty directory `to`, with their times and permissions.
///
/// What cannot be read is left out: the payload could not read it either. Large files have been bound by the plan.
pub(crate) fn fill(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)?.flatten() {
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        let copy = to.join(entry.file_name());
        if kind.is_symlink() {
            if let Ok(target) = fs::read_link(entry.path()) {
                std::os::unix::fs::symlink(target, &copy)?;
            }
        } else if kind.is_file()
            && entry
                .metadata()
                .is_ok_and(|data| data.len() <= LARGEST_COPIED_FILE)
        {
            let Ok(mut original) = fs::File::open(entry.path()) else {
                continue;
            };
            let mut file = fs::File::create_new(&copy)?;
            io::copy(&mut original, &mut file)?;
            overlay::imitate(file.as_fd(), original.as_fd())?;
        }
    }
    Ok(())
}
