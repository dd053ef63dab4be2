//! The Python package inside the binary, and putting it on disk for one scan. Must not change the user's environment.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Name under which pytest loads the plugin.
pub const PLUGIN_MODULE: &str = "breakmycode_plugin";

/// Every file of the package with its path inside it.
pub const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/package_files.rs"));

/// Writes the package below `folder` (which must be private to the scan and hold nothing else) and makes it read-only.
///
/// `folder` is what goes on `PYTHONPATH`: anything else in it would shadow modules of the project.
///
/// # Errors
/// Any file that cannot be written.
pub fn unpack(folder: &Path) -> io::Result<()> {
    let package = folder.join(PLUGIN_MODULE);
    for (name, bytes) in FILES {
        let path = package.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        // A scan that was killed has left read-only files here, which their owner cannot open for writing.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => fs::write(&path, bytes)?,
        }
        fs::set_permissions(&path, Permissions::from_mode(0o444))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_package_has_its_entry_module_and_type_marker() {
        let names: Vec<&str> = FILES.iter().map(|(n, _)| *n).collect();
        assert!(names.contains(&"__init__.py"), "{names:?}");
        assert!(names.contains(&"py.typed"), "{names:?}");
        assert!(
            !names.iter().any(|n| n.contains("__pycache__")),
            "{names:?}"
        );
    }

    #[test]
    fn what_a_killed_scan_left_is_replaced_and_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        unpack(folder.path()).unwrap();
        let file = folder.path().join(PLUGIN_MODULE).join("__init__.py");
        // A second name for the old file shows whether that is written to; root may do so, an ordinary user may not.
        fs::hard_link(&file, folder.path().join("old")).unwrap();
        let before = fs::metadata(&file).unwrap().ino();
        unpack(folder.path()).unwrap();
        assert_ne!(fs::metadata(&file).unwrap().ino(), before);
    }

    #[test]
    fn unpacked_files_are_read_only_copies() {
        let folder = tempfile::tempdir().unwrap();
        unpack(folder.path()).unwrap();
        for (name, bytes) in FILES {
            let path = folder.path().join(PLUGIN_MODULE).join(name);
            assert_eq!(&fs::read(&path).unwrap(), bytes);
            assert_eq!(
                fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o444
            );
        }
    }
}
