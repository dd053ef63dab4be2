//! The places an interpreter may be in, from the project's own folder to PATH, in the order of the ladder.
//!
//! Looks at file names and variables only: must not start anything.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::manager_places;
use super::metadata::{Metadata, read_text, table_at, up_to};
use super::ownership::canonical;
use super::specifier::release_numbers;
use super::{Fault, Root, Surroundings};

/// A place to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) found_by: String,
    pub(crate) rung: Rung,
    pub(crate) what: What,
}

/// What is at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// A file to start.
    Interpreter(PathBuf),
    /// Something is there, and it cannot work.
    Broken(PathBuf, Fault),
    /// Nothing, and why.
    Nothing(String),
}

/// Which part of the ladder a place belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rung {
    Explicit,
    Project,
    Manager,
    Active,
    Path,
}

/// How many interpreters of PATH are tried. Beyond that it is a machine with a museum of Pythons, and the user should say which.
const PATH_LIMIT: usize = 8;

/// Returns a non-empty variable.
pub(crate) fn var<'a>(surroundings: &'a Surroundings, name: &str) -> Option<&'a OsStr> {
    surroundings
        .vars
        .get(OsStr::new(name))
        .map(AsRef::as_ref)
        .filter(|value: &&OsStr| !value.is_empty())
}

/// Lists every place in order: project, manager, active environment, PATH.
pub(crate) fn all(
    root: &Root,
    metadata: &Metadata,
    surroundings: &Surroundings,
    prefer_active: bool,
) -> Vec<Place> {
    let mut own = project(root, metadata, surroundings);
    own.extend(manager_places::all(root, metadata, surroundings));
    let active = active(surroundings);
    let mut places = if prefer_active {
        [active, own].concat()
    } else {
        [own, active].concat()
    };
    places.extend(pinned(root, surroundings));
    places.extend(on_path(surroundings));
    if let Some(base) = conda_base(surroundings) {
        places.push(environment("conda base", Rung::Path, &base));
    }
    places
}

fn project(root: &Root, metadata: &Metadata, surroundings: &Surroundings) -> Vec<Place> {
    let mut places = Vec::new();
    if let Some(folder) = var(surroundings, "UV_PROJECT_ENVIRONMENT") {
        places.push(environment(
            "UV_PROJECT_ENVIRONMENT",
            Rung::Project,
            &root.path.join(folder),
        ));
    }
    for (at, folder) in up_to(&root.path, root.git.as_deref()).enumerate() {
        let found_by = match at {
            0 => "project .venv",
            _ if is_workspace(folder) => "uv workspace .venv",
            _ => ".venv of a parent folder",
        };
        let place = environment(found_by, Rung::Project, &folder.join(".venv"));
        // An empty place of a parent is not worth a line in the list.
        if at == 0 || !matches!(place.what, What::Nothing(_)) {
            places.push(place);
        }
    }
    for name in ["venv", "env"] {
        let folder = root.path.join(name);
        if folder.join("pyvenv.cfg").is_file() {
            places.push(environment(
                &format!("project {name}"),
                Rung::Project,
                &folder,
            ));
        }
    }
    let pixi = root.path.join(".pixi/envs/default");
    if metadata.manager == super::Manager::Pixi || pixi.is_dir() {
        places.push(environment("pixi environment", Rung::Project, &pixi));
    }
    places
}

fn is_workspace(folder: &Path) -> bool {
    let pyproject = super::metadata::read_toml(&folder.join("pyproject.toml"));
    table_at(&pyproject, &["tool", "uv", "workspace"]).is_some()
}

fn active(surroundings: &Surroundings) -> Vec<Place> {
    let mut places = Vec::new();
    match var(surroundings, "VIRTUAL_ENV") {
        Some(folder) => places.push(environment("VIRTUAL_ENV", Rung::Active, Path::new(folder))),
        None => places.push(Place {
            found_by: "VIRTUAL_ENV".to_owned(),
            rung: Rung::Active,
            what: What::Nothing("unset".to_owned()),
        }),
    }
    if let Some(folder) = var(surroundings, "CONDA_PREFIX")
        && conda_base(surroundings).is_none()
    {
        places.push(environment("CONDA_PREFIX", Rung::Active, Path::new(folder)));
    }
    places
}

/// Returns the active conda prefix if it is the base environment, which holds conda's own tools rather than a project's.
pub(crate) fn conda_base(surroundings: &Surroundings) -> Option<PathBuf> {
    let prefix = PathBuf::from(var(surroundings, "CONDA_PREFIX")?);
    if prefix.join("conda-meta/pixi").exists() {
        return None;
    }
    let name = var(surroundings, "CONDA_DEFAULT_ENV");
    let is_root = var(surroundings, "_CONDA_ROOT").is_some_and(|root| Path::new(root) == prefix);
    let is_base = name.is_some_and(|name| name == "base" || name == "root");
    // A named environment has its name as the last part of its folder; an unnamed one has its whole path as its name.
    let differs =
        name.is_some_and(|name| prefix.file_name() != Some(name) && Path::new(name) != prefix);
    (is_root || is_base || differs).then_some(prefix)
}

/// Says what is in the folder of an environment.
pub(crate) fn environment(found_by: &str, rung: Rung, folder: &Path) -> Place {
    Place {
        found_by: found_by.to_owned(),
        rung,
        what: look_into(folder),
    }
}

/// Finds the interpreter in an environment's folder, or says why there is none.
pub(crate) fn look_into(folder: &Path) -> What {
    let Ok(kind) = fs::symlink_metadata(folder) else {
        return What::Nothing("does not exist".to_owned());
    };
    if kind.is_file() {
        // A file in the place of an environment names its folder in its first line.
        let target = read_text(folder).and_then(|text| text.lines().next().map(str::to_owned));
        return match target.map(|line| folder.with_file_name(line.trim())) {
            Some(target) if target.is_dir() => look_into(&target),
            _ => What::Broken(folder.to_owned(), Fault::NoInterpreter),
        };
    }
    if !folder.is_dir() {
        let target = fs::read_link(folder).unwrap_or_default();
        return What::Broken(folder.to_owned(), Fault::DanglingLink { target });
    }
    if !folder.join("pyvenv.cfg").is_file() && !folder.join("conda-meta").is_dir() {
        return What::Broken(folder.to_owned(), Fault::NoConfig);
    }
    for name in ["bin/python", "bin/python3", "Scripts/python.exe"] {
        let file = folder.join(name);
        if fs::symlink_metadata(&file).is_ok() {
            return What::Interpreter(file);
        }
    }
    What::Broken(folder.to_owned(), Fault::NoInterpreter)
}

/// Looks up `.python-version` among the interpreters of pyenv.
fn pinned(root: &Root, surroundings: &Surroundings) -> Vec<Place> {
    let Some(text) = up_to(&root.path, root.git.as_deref())
        .find_map(|folder| read_text(&folder.join(".python-version")))
    else {
        return Vec::new();
    };
    let wanted = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    wanted
        .take(4)
        .filter_map(|version| {
            let file = pyenv_versions(surroundings, version).into_iter().next()?;
            Some(Place {
                found_by: format!(".python-version {version} (pyenv)"),
                rung: Rung::Path,
                what: What::Interpreter(file),
            })
        })
        .collect()
}

/// Returns the interpreters of pyenv that match `3`, `3.12`, `3.12.1` or an environment's name, newest first.
pub(crate) fn pyenv_versions(surroundings: &Surroundings, wanted: &str) -> Vec<PathBuf> {
    let pyenv = var(surroundings, "PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(|| surroundings.home.as_ref().map(|home| home.join(".pyenv")));
    let Some(folder) = pyenv.map(|pyenv| pyenv.join("versions")) else {
        return Vec::new();
    };
    let mut found: Vec<(Vec<u32>, PathBuf)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let series = name
                .strip_prefix(wanted)
                .is_some_and(|rest| rest.starts_with('.'));
            let file = entry.path().join("bin/python");
            let matches =
                name == wanted || (series && wanted.starts_with(|c: char| c.is_ascii_digit()));
            (matches && file.exists()).then(|| (release_numbers(&name), file))
        })
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, file)| file).collect()
}

fn on_path(surroundings: &Surroundings) -> Vec<Place> {
    let mut seen = BTreeSet::new();
    let mut places = Vec::new();
    for name in ["python3", "python"] {
        for file in named_on_path(surroundings, name) {
            if places.len() < PATH_LIMIT && seen.insert(identity(&file)) {
                places.push(Place {
                    found_by: format!("PATH {name}"),
                    rung: Rung::Path,
                    what: What::Interpreter(file),
                });
            }
        }
    }
    if places.is_empty() {
        places.push(Place {
            found_by: "PATH python3".to_owned(),
            rung: Rung::Path,
            what: What::Nothing("not found".to_owned()),
        });
    }
    places
}

/// Returns the files of a name in the folders of PATH. Relative folders are left out: what they mean depends on where we stand.
pub(crate) fn named_on_path(surroundings: &Surroundings, name: &str) -> Vec<PathBuf> {
    let Some(path) = var(surroundings, "PATH") else {
        return Vec::new();
    };
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .filter(|file| file.is_file())
        .collect()
}

/// Returns what two spellings of one interpreter share. Links out of the folder are not followed: the `python` of a virtual
/// environment is a link to its base, yet another interpreter.
pub(crate) fn identity(file: &Path) -> PathBuf {
    let folder = canonical(file.parent().unwrap_or(Path::new("/")));
    let mut name = file.file_name().map(OsStr::to_owned).unwrap_or_default();
    for _ in 0..8 {
        match fs::read_link(folder.join(&name)) {
            Ok(target) if target.components().count() == 1 => name = target.into_os_string(),
            _ => break,
        }
    }
    folder.join(name)
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
