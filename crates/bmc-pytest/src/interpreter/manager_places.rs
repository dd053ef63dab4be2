//! Where poetry, pdm, pipenv, hatch and conda keep a project's environment outside of the project, computed from disk.
//!
//! Must not start these tools: they are slow, may not be installed, and may synchronise. The naming rules are those of poetry 1.2+,
//! pipenv 2018+ and hatch 1.0+.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::metadata::{Metadata, read_text, read_toml, text_at};
use super::places::{Place, Rung, What, environment, var};
use super::specifier::release_numbers;
use super::{Manager, Root, Surroundings};

/// Lists the environments that the project's manager made.
pub(crate) fn all(root: &Root, metadata: &Metadata, surroundings: &Surroundings) -> Vec<Place> {
    let (found_by, folders) = match metadata.manager {
        Manager::Poetry => ("poetry environment", poetry(root, metadata, surroundings)),
        Manager::Pdm => return pdm(root),
        Manager::Pipenv => ("pipenv environment", pipenv(root, surroundings)),
        Manager::Hatch => ("hatch environment", hatch(root, metadata, surroundings)),
        Manager::Conda => ("conda environment", conda(root, surroundings)),
        // hatchling as build backend is a weak sign, so its environments only count if they exist.
        Manager::Pip if uses_hatchling(metadata) => {
            ("hatch environment", hatch(root, metadata, surroundings))
        }
        Manager::Uv | Manager::Pixi | Manager::Pip => return Vec::new(),
    };
    folders
        .iter()
        .map(|folder| environment(found_by, Rung::Manager, folder))
        .collect()
}

fn uses_hatchling(metadata: &Metadata) -> bool {
    text_at(&metadata.pyproject, &["build-system", "build-backend"])
        .is_some_and(|name| name.starts_with("hatchling"))
}

fn poetry(root: &Root, metadata: &Metadata, surroundings: &Surroundings) -> Vec<PathBuf> {
    let settings = [
        Some(root.path.join("poetry.toml")),
        poetry_settings(surroundings),
    ];
    let settings: Vec<toml::Table> = settings
        .iter()
        .flatten()
        .map(|file| read_toml(file))
        .collect();
    let setting = |keys: &[&str]| settings.iter().find_map(|table| text_at(table, keys));
    let cache = var(surroundings, "POETRY_CACHE_DIR")
        .map(PathBuf::from)
        .or_else(|| setting(&["cache-dir"]).map(PathBuf::from))
        .or_else(|| cache_folder(surroundings).map(|cache| cache.join("pypoetry")));
    let folder = var(surroundings, "POETRY_VIRTUALENVS_PATH")
        .map(PathBuf::from)
        .or_else(|| {
            let path = setting(&["virtualenvs", "path"])?;
            let cache = cache
                .as_ref()
                .map(|cache| cache.display().to_string())
                .unwrap_or_default();
            Some(PathBuf::from(path.replace("{cache-dir}", &cache)))
        })
        .or_else(|| cache.as_ref().map(|cache| cache.join("virtualenvs")));
    let Some(folder) = folder else {
        return Vec::new();
    };
    let name = metadata
        .name
        .as_deref()
        .map_or_else(|| "non-package-mode".to_owned(), normalised);
    let name = format!(
        "{}-{}",
        sanitised(&name, " $`!*@\"\\\r\n\t"),
        hash(root.path.as_os_str())
    );
    // `envs.toml` remembers what `poetry env use` chose; without it the newest Python is as good a guess as any.
    let chosen = text_at(&read_toml(&folder.join("envs.toml")), &[&name, "minor"]);
    let mut found = folders_named(&folder, &format!("{name}-py"));
    found.sort_by_key(|(rest, _)| {
        (
            chosen.as_deref() != Some(rest),
            std::cmp::Reverse(release_numbers(rest)),
        )
    });
    found.into_iter().map(|(_, folder)| folder).collect()
}

fn poetry_settings(surroundings: &Surroundings) -> Option<PathBuf> {
    if let Some(folder) = var(surroundings, "POETRY_CONFIG_DIR") {
        return Some(Path::new(folder).join("config.toml"));
    }
    let folder = match var(surroundings, "XDG_CONFIG_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => home_folder(surroundings, "Library/Application Support", ".config")?,
    };
    Some(folder.join("pypoetry/config.toml"))
}

/// `.pdm-python` holds the path of the interpreter itself, wherever it is.
fn pdm(root: &Root) -> Vec<Place> {
    let saved = read_text(&root.path.join(".pdm-python")).map(|text| text.trim().to_owned());
    let old = || {
        text_at(
            &read_toml(&root.path.join(".pdm.toml")),
            &["python", "path"],
        )
    };
    let file = saved.filter(|path| !path.is_empty()).or_else(old);
    file.into_iter()
        .map(|file| Place {
            found_by: ".pdm-python".to_owned(),
            rung: Rung::Manager,
            what: What::Interpreter(root.path.join(file)),
        })
        .collect()
}

fn pipenv(root: &Root, surroundings: &Surroundings) -> Vec<PathBuf> {
    let folder = match var(surroundings, "WORKON_HOME") {
        Some(folder) => Some(PathBuf::from(folder)),
        None => match var(surroundings, "XDG_DATA_HOME") {
            Some(folder) => Some(Path::new(folder).join("virtualenvs")),
            None => surroundings
                .home
                .as_ref()
                .map(|home| home.join(".local/share/virtualenvs")),
        },
    };
    let (Some(folder), Some(name)) = (folder, root.path.file_name()) else {
        return Vec::new();
    };
    if let Some(custom) = var(surroundings, "PIPENV_CUSTOM_VENV_NAME") {
        return vec![folder.join(custom)];
    }
    let name = sanitised(&name.to_string_lossy(), " &$`!*@\"()[]\\\r\n\t");
    let exact = folder.join(format!(
        "{name}-{}",
        hash(root.path.join("Pipfile").as_os_str())
    ));
    // With PIPENV_PYTHON set, the interpreter's name is added to it.
    let prefix = format!(
        "{}-",
        exact.file_name().unwrap_or_default().to_string_lossy()
    );
    let suffixed = folders_named(&folder, &prefix)
        .into_iter()
        .map(|(_, folder)| folder);
    Some(exact)
        .filter(|exact| exact.is_dir())
        .into_iter()
        .chain(suffixed)
        .collect()
}

fn hatch(root: &Root, metadata: &Metadata, surroundings: &Surroundings) -> Vec<PathBuf> {
    let own = read_toml(&root.path.join("hatch.toml"));
    let moved = text_at(&own, &["dirs", "env", "virtual"]).or_else(|| {
        text_at(
            &metadata.pyproject,
            &["tool", "hatch", "dirs", "env", "virtual"],
        )
    });
    let id = hash(root.path.as_os_str());
    let project = metadata
        .name
        .as_deref()
        .map_or_else(|| format!("{id}-unmanaged"), normalised);
    let folder = match (moved, var(surroundings, "HATCH_DATA_DIR")) {
        // A folder inside the project holds the environments directly.
        (Some(folder), _) if root.path.join(&folder).starts_with(&root.path) => {
            Some(root.path.join(folder))
        }
        (Some(folder), _) => Some(Path::new(&folder).join(&project).join(&id)),
        (None, data) => {
            let data = match (data, var(surroundings, "XDG_DATA_HOME")) {
                (Some(folder), _) => Some(PathBuf::from(folder)),
                (None, Some(folder)) => Some(Path::new(folder).join("hatch")),
                (None, None) => {
                    home_folder(surroundings, "Library/Application Support", ".local/share")
                        .map(|folder| folder.join("hatch"))
                }
            };
            data.map(|data| data.join("env/virtual").join(&project).join(&id))
        }
    };
    // An environment may also be given its place by hand.
    let by_hand = ["hatch-test", "default", "test", "tests"]
        .into_iter()
        .filter_map(|env| {
            let path = text_at(&own, &["envs", env, "path"]).or_else(|| {
                text_at(&metadata.pyproject, &["tool", "hatch", "envs", env, "path"])
            })?;
            Some(root.path.join(path))
        });
    let mut found: Vec<PathBuf> = by_hand.collect();
    let Some(folder) = folder else { return found };
    let mut tests = folders_named(&folder, "hatch-test");
    tests.sort_by_key(|(rest, _)| {
        std::cmp::Reverse(release_numbers(rest.trim_start_matches(".py")))
    });
    found.extend(tests.into_iter().map(|(_, folder)| folder));
    let others = [project.as_str(), "test", "tests"].map(|name| folder.join(name));
    found.extend(others.into_iter().filter(|folder| folder.is_dir()));
    found
}

/// Looks the name in `environment.yml` up among the usual roots and in conda's own list.
fn conda(root: &Root, surroundings: &Surroundings) -> Vec<PathBuf> {
    let text = ["environment.yml", "environment.yaml"]
        .iter()
        .find_map(|file| read_text(&root.path.join(file)));
    let name = text.as_deref().and_then(|text| {
        // The one top-level key that matters; a YAML parser would be a whole dependency for it.
        text.lines()
            .find_map(|line| line.strip_prefix("name:"))
            .map(|name| name.trim().trim_matches(['"', '\'']))
    });
    let Some(name) = name.filter(|name| !name.is_empty() && !name.contains(['/', ' ', '#'])) else {
        return Vec::new();
    };
    let mut bases: Vec<PathBuf> = Vec::new();
    bases.extend(var(surroundings, "MAMBA_ROOT_PREFIX").map(PathBuf::from));
    bases.extend(
        var(surroundings, "CONDA_EXE")
            .and_then(|file| Path::new(file).parent()?.parent())
            .map(Path::to_owned),
    );
    if let Some(home) = &surroundings.home {
        let names = [
            "miniforge3",
            "mambaforge",
            "miniconda3",
            "anaconda3",
            "micromamba",
            ".conda",
        ];
        bases.extend(names.map(|name| home.join(name)));
    }
    bases.push(PathBuf::from("/opt/conda"));
    let mut found: Vec<PathBuf> = bases
        .iter()
        .map(|base| base.join("envs").join(name))
        .collect();
    let list = surroundings
        .home
        .as_ref()
        .and_then(|home| read_text(&home.join(".conda/environments.txt")));
    let listed = list
        .iter()
        .flat_map(|list| list.lines())
        .map(|line| PathBuf::from(line.trim()));
    found.extend(listed.filter(|folder| folder.file_name() == Some(OsStr::new(name))));
    found.retain(|folder| folder.is_dir());
    let mut kept: Vec<PathBuf> = Vec::new();
    for folder in found {
        if !kept.contains(&folder) {
            kept.push(folder);
        }
    }
    kept
}

/// Returns the folders whose name starts with a prefix, with the rest of the name.
fn folders_named(folder: &Path, prefix: &str) -> Vec<(String, PathBuf)> {
    let mut found: Vec<(String, PathBuf)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let rest = name.strip_prefix(prefix)?;
            entry
                .path()
                .is_dir()
                .then(|| (rest.to_owned(), entry.path()))
        })
        .collect();
    found.sort();
    found
}

fn cache_folder(surroundings: &Surroundings) -> Option<PathBuf> {
    match var(surroundings, "XDG_CACHE_HOME") {
        Some(folder) => Some(PathBuf::from(folder)),
        None => home_folder(surroundings, "Library/Caches", ".cache"),
    }
}

fn home_folder(surroundings: &Surroundings, on_macos: &str, elsewhere: &str) -> Option<PathBuf> {
    let home = surroundings.home.as_ref()?;
    Some(home.join(if cfg!(target_os = "macos") {
        on_macos
    } else {
        elsewhere
    }))
}

/// Writes a package's name as PEP 503 normalises it: lower case, and one `-` for each run of `-`, `_` and `.`.
pub(crate) fn normalised(name: &str) -> String {
    let mut text = String::new();
    for c in name.trim().chars() {
        if !matches!(c, '-' | '_' | '.') {
            text.extend(c.to_lowercase());
        } else if !text.ends_with('-') {
            text.push('-');
        }
    }
    text
}

/// Replaces what poetry and pipenv do not want in a folder's name; both cut it at 42 characters.
fn sanitised(name: &str, unwanted: &str) -> String {
    name.chars()
        .map(|c| if unwanted.contains(c) { '_' } else { c })
        .take(42)
        .collect()
}

/// The first 8 characters of the URL-safe base 64 of a path's SHA-256: poetry, pipenv and hatch all name folders so.
pub(crate) fn hash(path: &OsStr) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digest = Sha256::digest(path.as_bytes());
    let mut text = String::new();
    for group in digest[..6].chunks(3) {
        let bits = group
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        for shift in [18, 12, 6, 0] {
            text.push(char::from(ALPHABET[(bits >> shift & 63) as usize]));
        }
    }
    text
}

#[cfg(test)]
#[path = "manager_places_tests.rs"]
mod tests;
