//! The Python environments that scans run in, as `cargo xtask environments` lists them. Never leaves a test out: what is missing fails,
//! and says what to type.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::Deserialize;

/// The variable with the path of the list; `cargo xtask test` sets it.
const VARIABLE: &str = "BMC_TEST_PYTHONS";

/// The newest pytest without plugins.
const USUAL: &str = "py311-plain";
/// The newest pytest with plugins that change how tests are run.
const PLUGINS: &str = "py311-plugins";

/// One environment.
#[derive(Debug, Deserialize)]
pub(crate) struct Environment {
    /// Its name.
    pub(crate) name: String,
    /// Its interpreter.
    pub(crate) python: PathBuf,
    /// Its version of Python.
    pub(crate) version: String,
    /// What is installed besides pytest.
    pub(crate) plugins: Vec<String>,
}

/// The environment that tests use unless they need another.
pub(crate) fn usual() -> &'static Environment {
    named(USUAL)
}

/// The first environment with the newest pytest that has all of these packages.
pub(crate) fn with(packages: &[String]) -> &'static Environment {
    [USUAL, PLUGINS]
        .into_iter()
        .map(named)
        .find(|environment| packages.iter().all(|package| environment.plugins.contains(package)))
        .unwrap_or_else(|| panic!("no environment has {packages:?}: add them to the table of `cargo xtask environments`"))
}

/// The environment of that name.
pub(crate) fn named(name: &str) -> &'static Environment {
    static ALL: OnceLock<Vec<Environment>> = OnceLock::new();
    let all = ALL.get_or_init(read);
    let names: Vec<&str> = all
        .iter()
        .map(|environment| environment.name.as_str())
        .collect();
    all.iter().find(|environment| environment.name == name).unwrap_or_else(|| {
        panic!("the environment {name} is missing, there are {names:?}: install that Python, then `cargo xtask environments`")
    })
}

fn read() -> Vec<Environment> {
    let path = std::env::var_os(VARIABLE).map_or_else(
        || {
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../target/environments/environments.json")
        },
        PathBuf::from,
    );
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!("cannot read {}: {error}. `cargo xtask environments` makes it; {VARIABLE} names another one", path.display())
    });
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{} is not a list of environments: {error}", path.display()))
}
