//! Finds interpreters on this machine: pyenv's first, then those on the path. Installs none.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;

/// An interpreter that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interpreter {
    /// The program.
    pub(crate) program: PathBuf,
    /// Its version as `3.11.7`.
    pub(crate) version: String,
}

/// Finds the newest interpreter of a version such as 3.11.
pub(crate) fn find(python: (u32, u32)) -> Option<Interpreter> {
    let (major, minor) = python;
    let wanted = |found: &Interpreter| found.version.starts_with(&format!("{major}.{minor}."));
    pyenv_programs(python)
        .iter()
        .chain(&[PathBuf::from(format!("python{major}.{minor}"))])
        .filter_map(|program| ask(program))
        .find(wanted)
}

/// Finds the `python3` of this machine, whatever its version.
pub(crate) fn any() -> Option<Interpreter> {
    ask(Path::new("python3"))
}

/// Programs of that version in pyenv's folder, newest first.
fn pyenv_programs((major, minor): (u32, u32)) -> Vec<PathBuf> {
    let root = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let Some(root) = root.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")))
    else {
        return Vec::new();
    };
    let prefix = format!("{major}.{minor}.");
    let entries = std::fs::read_dir(root.join("versions"))
        .into_iter()
        .flatten()
        .flatten();
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            // Names such as `3.11.7-debug` are other builds.
            let patch = entry
                .file_name()
                .to_str()?
                .strip_prefix(&prefix)?
                .parse()
                .ok()?;
            Some((patch, entry.path().join("bin/python")))
        })
        .collect();
    found.sort_by_key(|(patch, _)| std::cmp::Reverse(*patch));
    found.into_iter().map(|(_, program)| program).collect()
}

/// Asks a program for its version and its own path. A shim that leads nowhere has no answer.
fn ask(program: &Path) -> Option<Interpreter> {
    let question = "import sys; print('%d.%d.%d' % sys.version_info[:3]); print(sys.executable)";
    let answer = process::output(Command::new(program).args(["-I", "-c", question])).ok()?;
    let mut lines = answer.lines();
    let version = lines.next()?.to_owned();
    Some(Interpreter {
        version,
        program: PathBuf::from(lines.next()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_or_is_no_python_has_no_answer() {
        assert_eq!(ask(Path::new("no-such-python")), None);
        assert_eq!(ask(Path::new("false")), None);
        assert_eq!(find((2, 99)), None);
    }
}
