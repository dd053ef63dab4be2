//! Makes one virtual environment and leaves it alone while it is what it should be. Never touches another environment.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::interpreters::{self, Interpreter};
use super::table::Wanted;
use crate::process;

const STAMP: &str = "requirements-that-are-installed.txt";

/// Finds the interpreter for an environment and says what it takes instead, or what is missing.
pub(crate) fn interpreter(wanted: &Wanted) -> Option<Interpreter> {
    let (major, minor) = wanted.python;
    if let Some(found) = interpreters::find(wanted.python) {
        return Some(found);
    }
    let other = if wanted.or_any {
        interpreters::any()
    } else {
        None
    };
    match &other {
        Some(found) => {
            println!(
                "{}: no Python {major}.{minor} here, taking python3, which is {}",
                wanted.name, found.version
            )
        }
        None => println!(
            "{}: LEFT OUT, no Python {major}.{minor} on this machine",
            wanted.name
        ),
    }
    other
}

/// Makes the environment in a folder, if it is not there as wanted, and gives its Python.
pub(crate) fn make(
    wanted: &Wanted,
    interpreter: &Interpreter,
    folder: &Path,
) -> Result<PathBuf, String> {
    let python = folder.join("bin/python");
    let stamp = stamp(wanted, interpreter, folder);
    if std::fs::read_to_string(folder.join(STAMP)).is_ok_and(|old| old == stamp) && python.exists()
    {
        return Ok(python);
    }
    println!(
        "{}: making it with Python {}, {} packages",
        wanted.name,
        interpreter.version,
        wanted.requirements.len()
    );
    if let Err(error) = std::fs::remove_dir_all(folder)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(format!("replace {}: {error}", folder.display()));
    }
    if let Some(parent) = folder.parent() {
        std::fs::create_dir_all(parent)
            .map_err(|error| format!("make {}: {error}", parent.display()))?;
    }
    process::output(Command::new(&interpreter.program).args(["-m", "venv"]).arg(folder)).map_err(|problem| {
        format!("{problem}\nhelp: on Debian and Ubuntu `venv` is a package of its own: apt-get install python3-venv")
    })?;
    let mut pip = Command::new(&python);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
    ])
    .args(wanted.requirements);
    process::output(&mut pip)?;
    // Last, so that an environment that was interrupted is made again.
    std::fs::write(folder.join(STAMP), stamp)
        .map_err(|error| format!("write the stamp of {}: {error}", wanted.name))?;
    Ok(python)
}

/// Everything that the environment depends on: a difference makes it anew.
fn stamp(wanted: &Wanted, interpreter: &Interpreter, folder: &Path) -> String {
    let head = [
        folder.display().to_string(),
        interpreter.program.display().to_string(),
        interpreter.version.clone(),
    ];
    head.iter()
        .map(String::as_str)
        .chain(wanted.requirements.iter().copied())
        .map(|line| format!("{line}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::table::WANTED;
    use super::*;

    #[test]
    fn the_stamp_changes_with_the_interpreter_the_place_and_the_packages() {
        let one = Interpreter {
            program: "/usr/bin/python3".into(),
            version: "3.11.7".into(),
        };
        let other = Interpreter {
            version: "3.11.8".into(),
            ..one.clone()
        };
        let stamps = [
            stamp(&WANTED[0], &one, Path::new("a")),
            stamp(&WANTED[0], &other, Path::new("a")),
            stamp(&WANTED[0], &one, Path::new("b")),
            stamp(&WANTED[1], &one, Path::new("a")),
        ];
        for (index, text) in stamps.iter().enumerate() {
            assert!(!stamps[..index].contains(text), "{text}");
        }
    }

    #[test]
    fn an_environment_that_is_as_wanted_is_left_alone() {
        let folder = std::env::temp_dir().join(format!("bmc-xtask-venv-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("bin")).unwrap();
        std::fs::write(folder.join("bin/python"), "").unwrap();
        // Nothing could be made with this interpreter, so making anything would be an error.
        let interpreter = Interpreter {
            program: "no-such-python".into(),
            version: "3.8.0".into(),
        };
        std::fs::write(folder.join(STAMP), stamp(&WANTED[0], &interpreter, &folder)).unwrap();
        assert_eq!(
            make(&WANTED[0], &interpreter, &folder),
            Ok(folder.join("bin/python"))
        );
        assert!(
            make(&WANTED[1], &interpreter, &folder)
                .unwrap_err()
                .starts_with("start `no-such-python")
        );
        assert!(!folder.exists());
    }
}
