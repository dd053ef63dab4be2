//! Makes the Python environments that tests run in, outside of what git sees, and lists them for the tests.
//! Says which ones this machine cannot have; never leaves one out silently.

mod interpreters;
mod table;
mod venv;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde::{Deserialize, Serialize};

use crate::process;
use crate::repository::Repository;

/// The variable with the path of the list; tests read it.
pub(crate) const VARIABLE: &str = "BMC_TEST_PYTHONS";

/// One line of the list: an environment that is there and what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Environment {
    /// Its name.
    pub(crate) name: String,
    /// Its Python, an absolute path.
    pub(crate) python: PathBuf,
    /// Version of Python, `3.11.7`.
    pub(crate) version: String,
    /// Version of pytest, `9.2.0`.
    pub(crate) pytest: String,
    /// What was installed besides pytest, by the names of `requires` in truth.toml.
    pub(crate) plugins: Vec<String>,
}

/// Makes them all and prints what there is.
pub(crate) fn run(repository: &Repository) -> Result<ExitCode, String> {
    for environment in prepare(repository)? {
        let Environment {
            name,
            python,
            version,
            pytest,
            plugins,
        } = environment;
        println!(
            "{name}: Python {version}, pytest {pytest}, {}",
            python.display()
        );
        if !plugins.is_empty() {
            println!("    with {}", plugins.join(", "));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes what is missing and writes the list.
pub(crate) fn prepare(repository: &Repository) -> Result<Vec<Environment>, String> {
    let mut environments = Vec::new();
    for wanted in table::WANTED {
        let Some(interpreter) = venv::interpreter(wanted) else {
            continue;
        };
        let python = venv::make(wanted, &interpreter, &folder(repository).join(wanted.name))?;
        environments.push(look(wanted, python)?);
    }
    if environments.is_empty() {
        return Err("make a Python environment: this machine has no python3".to_owned());
    }
    let list = serde_json::to_string_pretty(&environments)
        .map_err(|error| format!("write the list: {error}"))?;
    let path = list_path(repository);
    // The file is read by tests, perhaps right now: replace it whole, and only when it differs.
    if std::fs::read_to_string(&path).is_ok_and(|old| old == list) {
        return Ok(environments);
    }
    let fresh = path.with_extension("json.new");
    std::fs::write(&fresh, list)
        .and_then(|()| std::fs::rename(&fresh, &path))
        .map_err(|error| format!("write {}: {error}", path.display()))?;
    Ok(environments)
}

/// Where the list is.
pub(crate) fn list_path(repository: &Repository) -> PathBuf {
    folder(repository).join("environments.json")
}

/// Makes the environment with the tools that check the Python side, and gives its `bin`.
pub(crate) fn tools(repository: &Repository) -> Result<PathBuf, String> {
    let folder = folder(repository).join(table::TOOLS.name);
    make_one(&table::TOOLS, &folder)?;
    Ok(folder.join("bin"))
}

/// Makes the environment of the example in a folder, and gives its Python.
pub(crate) fn demo(folder: &Path) -> Result<PathBuf, String> {
    make_one(&table::DEMO, &folder.join(table::DEMO.name))
}

fn make_one(wanted: &table::Wanted, folder: &Path) -> Result<PathBuf, String> {
    let interpreter = venv::interpreter(wanted)
        .ok_or_else(|| format!("make {}: no python3 here", folder.display()))?;
    venv::make(wanted, &interpreter, folder)
}

/// Below cargo's usual target folder whatever the real one is: tests and people find it at one place, and git ignores it.
fn folder(repository: &Repository) -> PathBuf {
    repository.root.join("target/environments")
}

/// Asks an environment what is in it, instead of believing the table.
fn look(wanted: &table::Wanted, python: PathBuf) -> Result<Environment, String> {
    let question = "import platform, pytest; print(platform.python_version(), pytest.__version__)";
    let answer = process::output(Command::new(&python).args(["-I", "-c", question]))?;
    let (version, pytest) = answer
        .trim()
        .split_once(' ')
        .ok_or_else(|| format!("read the versions of {}", wanted.name))?;
    Ok(Environment {
        name: wanted.name.to_owned(),
        python,
        version: version.to_owned(),
        pytest: pytest.to_owned(),
        plugins: plugins(wanted.requirements),
    })
}

/// Names of the packages besides pytest, each once.
fn plugins(requirements: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = requirements
        .iter()
        .filter_map(|line| line.split("==").next())
        .map(str::to_owned)
        .collect();
    names.retain(|name| name != "pytest");
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_are_named_once_and_without_versions() {
        let names = plugins(&[
            "pytest==9.2.0; python_version >= '3.10'",
            "pytest-cov==7.1.0",
            "numpy==1.0; x",
            "numpy==2.0; y",
        ]);
        assert_eq!(names, ["numpy", "pytest-cov"]);
    }
}
