//! Tells our own environment from the project's: `uvx`, `pipx` and `pre-commit` put theirs first on PATH or into `VIRTUAL_ENV`.
//!
//! Must not judge an environment that the project itself owns: breakmycode may well be one of its development dependencies.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::{ProbeResult, Surroundings};

/// Folders that a tool keeps its private environments in: how it looks in a path, and the tool.
const PRIVATE: [(&str, &str); 8] = [
    ("/uv/archive-v", "uvx"),
    ("/uv/environments-v", "uv run"),
    ("/uv/builds-v", "uv run"),
    ("/uv/tools/", "uv tool"),
    ("/pipx/venvs/", "pipx"),
    ("/pipx/.cache/", "pipx run"),
    ("/.cache/pipx/", "pipx run"),
    ("/pre-commit/repo", "pre-commit"),
];

/// Variables that move those folders.
const MOVED: [(&str, &str); 4] = [
    ("UV_CACHE_DIR", "uvx"),
    ("UV_TOOL_DIR", "uv tool"),
    ("PIPX_HOME", "pipx"),
    ("PRE_COMMIT_HOME", "pre-commit"),
];

/// Returns the tool whose private environment the prefix is, or why it is otherwise ours. `None`: it may be the project's.
///
/// An overlay (`uv run --with breakmycode`) with pytest stands for the project's environment and is not ours. An ordinary environment
/// that holds our executable is only ours if it has no pytest: installing breakmycode beside pytest is the most common way of all.
pub(crate) fn owner(probe: &ProbeResult, surroundings: &Surroundings) -> Option<String> {
    let prefix = canonical(&probe.prefix);
    if probe.extends_environment.is_some() && probe.pytest.is_some() {
        return None;
    }
    if let Some(tool) = private_tool(&prefix, surroundings) {
        return Some(tool.to_owned());
    }
    let in_environment = probe.prefix != probe.base_prefix;
    let holds_us = canonical(&surroundings.own_executable).starts_with(&prefix);
    (in_environment && holds_us && probe.pytest.is_none()).then(|| "breakmycode".to_owned())
}

pub(crate) fn private_tool(prefix: &Path, surroundings: &Surroundings) -> Option<&'static str> {
    let moved = MOVED.iter().find(|(name, _)| {
        surroundings
            .vars
            .get(OsStr::new(name))
            .is_some_and(|folder| {
                !folder.is_empty() && prefix.starts_with(canonical(Path::new(folder)))
            })
    });
    let text = prefix.to_string_lossy();
    moved
        .or_else(|| PRIVATE.iter().find(|(part, _)| text.contains(part)))
        .map(|(_, tool)| *tool)
}

/// Resolves links; a path that does not exist stays as it is.
pub(crate) fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn probe(prefix: &str, pytest: bool, overlay: bool) -> ProbeResult {
        ProbeResult {
            version: (3, 12, 1),
            implementation: "cpython".to_owned(),
            executable: PathBuf::from(prefix).join("bin/python"),
            prefix: prefix.into(),
            base_prefix: "/usr".into(),
            pytest: pytest.then(|| "9.2.0".to_owned()),
            plugins: Vec::new(),
            platform: "linux".to_owned(),
            has_ctypes: true,
            sys_path: Vec::new(),
            pyvenv_home: None,
            extends_environment: overlay.then(|| "/home/dev/shop/.venv".into()),
        }
    }

    fn ours(prefix: &str, pytest: bool, overlay: bool, own: &str) -> Option<String> {
        let surroundings = Surroundings {
            vars: BTreeMap::from([("PIPX_HOME".into(), "/srv/px".into())]),
            home: None,
            own_executable: own.into(),
        };
        owner(&probe(prefix, pytest, overlay), &surroundings)
    }

    #[test]
    fn private_environments_of_tools_are_ours() {
        let table = [
            ("/home/dev/.cache/uv/archive-v0/AbC", "uvx"),
            ("/home/dev/.local/share/uv/tools/breakmycode", "uv tool"),
            ("/home/dev/.local/share/pipx/venvs/breakmycode", "pipx"),
            ("/srv/px/venvs/breakmycode", "pipx"),
            (
                "/home/dev/.cache/pre-commit/repoab12/py_env-python3",
                "pre-commit",
            ),
        ];
        for (prefix, tool) in table {
            assert_eq!(
                ours(prefix, true, false, "/usr/bin/bmc").as_deref(),
                Some(tool),
                "{prefix}"
            );
        }
    }

    #[test]
    fn an_overlay_with_pytest_is_the_projects() {
        let prefix = "/home/dev/.cache/uv/builds-v0/.tmpAb";
        assert_eq!(ours(prefix, true, true, "/usr/bin/bmc"), None);
        assert_eq!(
            ours(prefix, false, true, "/usr/bin/bmc").as_deref(),
            Some("uv run")
        );
    }

    #[test]
    fn an_environment_with_us_in_it_is_only_ours_without_pytest() {
        let own = "/home/dev/envs/shop/bin/breakmycode";
        assert_eq!(ours("/home/dev/envs/shop", true, false, own), None);
        assert_eq!(
            ours("/home/dev/envs/shop", false, false, own).as_deref(),
            Some("breakmycode")
        );
        assert_eq!(ours("/home/dev/envs/other", false, false, own), None);
    }
}
