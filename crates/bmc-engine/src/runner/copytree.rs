//! Copying a project for runs on systems without namespaces. Links stay links; environments are not copied.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// Copies a tree. Sockets, pipes and devices are left out, and so are folders that hold a virtual environment or nothing readable.
/// `fs::copy` shares blocks where the file system can.
///
/// # Errors
/// Anything that cannot be written, and files that cannot be read.
pub fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let metadata = entry.metadata()?;
        if metadata.is_symlink() {
            symlink(fs::read_link(&source)?, &target)?;
        } else if metadata.is_dir() {
            if source.join("pyvenv.cfg").exists() || fs::read_dir(&source).is_err() {
                continue;
            }
            copy_tree(&source, &target)?;
            fs::set_permissions(&target, metadata.permissions())?;
        } else if metadata.is_file() {
            match fs::copy(&source, &target) {
                Ok(_) => {
                    let times = fs::FileTimes::new().set_modified(metadata.modified()?);
                    // Compiled modules are checked against the time of their source.
                    if let Ok(file) = fs::File::options().write(true).open(&target) {
                        file.set_times(times)?;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Removes a tree of ours, also where tests took the right to write away.
///
/// # Errors
/// What is still there and why.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_writable(path);
            fs::remove_dir_all(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn make_writable(path: &Path) {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return;
    };
    if !metadata.is_dir() {
        return;
    }
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        make_writable(&entry.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_modes_and_times_are_kept_and_environments_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("a/b")).unwrap();
        fs::create_dir_all(from.join("venv/lib")).unwrap();
        fs::write(from.join("venv/pyvenv.cfg"), "").unwrap();
        fs::write(from.join("a/run.sh"), "x").unwrap();
        fs::set_permissions(from.join("a/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("..", from.join("a/b/loop")).unwrap();
        copy_tree(&from, &to).unwrap();
        assert_eq!(
            fs::metadata(to.join("a/run.sh"))
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o755
        );
        assert_eq!(
            fs::metadata(to.join("a/run.sh"))
                .unwrap()
                .modified()
                .unwrap(),
            fs::metadata(from.join("a/run.sh"))
                .unwrap()
                .modified()
                .unwrap()
        );
        assert_eq!(fs::read_link(to.join("a/b/loop")).unwrap(), Path::new(".."));
        assert!(!to.join("venv").exists());
        fs::set_permissions(to.join("a"), fs::Permissions::from_mode(0o500)).unwrap();
        remove_tree(&to).unwrap();
        assert!(!to.exists());
        remove_tree(&to).unwrap();
    }
}
