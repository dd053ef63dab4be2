//! What the project's files say about a module: is it a declared dependency, is it the project's own, where is a setting.
//!
//! Reads files below the root and nothing else. Must not fail: a file that cannot be read says nothing.

use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::interpreter::{
    ini_value, looks_like_a_test_file, normalised, read_text, table_at, walk,
};

/// How deep the project's own modules and settings are looked for.
const DEPTH: usize = 3;

/// The files of one project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFiles {
    root: PathBuf,
}

/// Where a dependency is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Declared {
    /// The file and the table in it, for people.
    pub(super) place: String,
    /// In which part of the dependencies.
    pub(super) part: Part,
}

/// The part of the dependencies that a declaration belongs to: each is installed by another command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Main,
    Extra(String),
    Group(String),
    File(String),
}

impl ProjectFiles {
    /// Reads the project at `root`.
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// Returns the project's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the text of a file.
    pub(super) fn read(&self, relative: &str) -> Option<String> {
        read_text(&self.root.join(relative))
    }

    pub(super) fn exists(&self, relative: &str) -> bool {
        self.root.join(relative).exists()
    }

    fn pyproject(&self) -> Table {
        self.read("pyproject.toml")
            .and_then(|text| text.parse().ok())
            .unwrap_or_default()
    }

    /// Says where a package is declared as a dependency, the main dependencies first.
    pub(super) fn declared(&self, package: &str) -> Option<Declared> {
        let package = normalised(package);
        let pyproject = self.pyproject();
        in_pyproject(&pyproject, &package)
            .or_else(|| self.in_setup_cfg(&package))
            .or_else(|| self.in_setup_py(&package))
            .or_else(|| self.in_pipfile(&package))
            .or_else(|| self.in_requirements(&package))
            .or_else(|| self.in_conda(&package))
    }

    fn in_setup_cfg(&self, package: &str) -> Option<Declared> {
        let text = self.read("setup.cfg")?;
        if lists(
            &ini_value(&text, "options", "install_requires").unwrap_or_default(),
            package,
        ) {
            return Some(Declared {
                place: "setup.cfg, install_requires".to_owned(),
                part: Part::Main,
            });
        }
        let extras = text.split_once("[options.extras_require]")?.1;
        let extras = extras.split("\n[").next().unwrap_or(extras);
        let mut extra = "";
        for line in extras.lines() {
            let mut names = line.trim();
            if !line.starts_with([' ', '\t'])
                && let Some((name, rest)) = line.split_once('=')
            {
                (extra, names) = (name.trim(), rest);
            }
            if lists(&names.replace(';', "\n"), package) {
                let part = Part::Extra(extra.to_owned());
                return Some(Declared {
                    place: format!("setup.cfg, extra `{extra}`"),
                    part,
                });
            }
        }
        None
    }

    /// `setup.py` is a program; a quoted requirement of that name in it is as much as can be said.
    fn in_setup_py(&self, package: &str) -> Option<Declared> {
        let text = self.read("setup.py")?;
        let found = text
            .split(['"', '\''])
            .skip(1)
            .step_by(2)
            .any(|quoted| requirement_name(quoted) == package);
        let named = found && (text.contains("install_requires") || text.contains("_require"));
        named.then(|| Declared {
            place: "setup.py".to_owned(),
            part: Part::Main,
        })
    }

    fn in_pipfile(&self, package: &str) -> Option<Declared> {
        let pipfile: Table = self.read("Pipfile")?.parse().ok()?;
        let table = ["packages", "dev-packages"]
            .into_iter()
            .find(|table| has_key(&pipfile, &[table], package))?;
        Some(Declared {
            place: format!("Pipfile, [{table}]"),
            part: Part::Main,
        })
    }

    fn in_requirements(&self, package: &str) -> Option<Declared> {
        let mut files = self.list("", "requirements");
        files.extend(self.list("requirements/", ""));
        files.extend(self.list("", "dev-requirements"));
        files.extend(self.list("", "test-requirements"));
        let file = files
            .into_iter()
            .find(|file| self.read(file).is_some_and(|text| lists(&text, package)))?;
        Some(Declared {
            place: file.clone(),
            part: Part::File(file),
        })
    }

    fn in_conda(&self, package: &str) -> Option<Declared> {
        ["environment.yml", "environment.yaml"]
            .into_iter()
            .find_map(|file| {
                let text = self.read(file)?;
                let named = text
                    .lines()
                    .filter_map(|line| line.trim().strip_prefix("- "))
                    .any(|entry| requirement_name(entry) == package);
                named.then(|| Declared {
                    place: file.to_owned(),
                    part: Part::Main,
                })
            })
    }

    /// Lists text files of requirements in a folder.
    fn list(&self, folder: &str, prefix: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.root.join(folder))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| {
                name.starts_with(prefix) && (name.ends_with(".txt") || name.ends_with(".in"))
            })
            .map(|name| format!("{folder}{name}"))
            .collect();
        names.sort();
        names
    }

    /// Finds a module among the project's own: returns the folder it lies in, relative to the root (empty: the root itself).
    pub(super) fn own_module(&self, module: &str) -> Option<String> {
        let top = module.split('.').next().filter(|top| is_identifier(top))?;
        let mut found = None;
        let mut folders = vec![self.root.clone(), self.root.join("src")];
        walk(&self.root, DEPTH, |folder| {
            folders.push(folder.to_owned());
            true
        });
        for folder in folders {
            let package = folder.join(top);
            let is_package = package.join("__init__.py").is_file()
                || (package.is_dir() && has_python_files(&package));
            if is_package || folder.join(format!("{top}.py")).is_file() {
                found = Some(folder);
                break;
            }
        }
        let relative = found?.strip_prefix(&self.root).ok()?.to_str()?.to_owned();
        Some(relative)
    }

    /// Whether the file of a dotted module exists below a folder of the root.
    pub(super) fn has_module(&self, folder: &str, module: &str) -> bool {
        let path = self.root.join(folder).join(module.replace('.', "/"));
        path.join("__init__.py").is_file() || path.with_extension("py").is_file() || path.is_dir()
    }

    /// Returns a setting of pytest and the file it is in, looked up as pytest does: the first file that configures it counts.
    pub(super) fn pytest_setting(&self, key: &str) -> Option<(String, &'static str)> {
        for file in ["pytest.toml", ".pytest.toml"] {
            if let Some(table) = self.read(file).and_then(|text| text.parse::<Table>().ok()) {
                return Some((plain(table_at(&table, &["pytest"])?.get(key)?)?, file));
            }
        }
        for file in ["pytest.ini", ".pytest.ini"] {
            if let Some(text) = self.read(file) {
                return Some((ini_value(&text, "pytest", key)?, file));
            }
        }
        let pyproject = self.pyproject();
        let tables: [&[&str]; 2] = [&["tool", "pytest", "ini_options"], &["tool", "pytest"]];
        if let Some(table) = tables.iter().find_map(|keys| table_at(&pyproject, keys)) {
            return Some((plain(table.get(key)?)?, "pyproject.toml"));
        }
        for (file, section) in [("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")] {
            if let Some(text) = self.read(file)
                && text.contains(&format!("[{section}]"))
            {
                return Some((ini_value(&text, section, key)?, file));
            }
        }
        None
    }

    /// Returns the file that a setting of pytest belongs into, and how it is written there.
    pub(super) fn setting_line(&self, key: &str, value: &str) -> String {
        if self.exists("pytest.ini") {
            return format!("pytest.ini, [pytest]: {key} = {value}");
        }
        let pyproject = table_at(&self.pyproject(), &["tool", "pytest"]).is_some();
        if !pyproject {
            for (file, section) in [("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")] {
                if self
                    .read(file)
                    .is_some_and(|text| text.contains(&format!("[{section}]")))
                {
                    return format!("{file}, [{section}]: {key} = {value}");
                }
            }
        }
        let written = if matches!(key, "pythonpath" | "testpaths" | "markers") {
            format!("[\"{value}\"]")
        } else {
            format!("\"{value}\"")
        };
        format!("pyproject.toml, [tool.pytest.ini_options]: {key} = {written}")
    }

    /// Finds `manage.py` and the settings module it names.
    pub(super) fn django_project(&self) -> Option<(String, Option<String>)> {
        let mut found = None;
        walk(&self.root, 2, |folder| {
            if found.is_none() && folder.join("manage.py").is_file() {
                found = Some(folder.join("manage.py"));
            }
            found.is_none()
        });
        let file = found?;
        let text = read_text(&file)?;
        let after = text
            .split_once("DJANGO_SETTINGS_MODULE")
            .map(|(_, after)| after)
            .unwrap_or_default();
        // The rest of `os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")`.
        let value = after
            .split(['"', '\''])
            .nth(2)
            .filter(|value| !value.is_empty() && value.split('.').all(is_identifier));
        Some((
            file.strip_prefix(&self.root).ok()?.to_str()?.to_owned(),
            value.map(str::to_owned),
        ))
    }

    /// Lists files that look like tests, and Python files that hold something like a test under another name.
    pub(super) fn test_like_files(&self, limit: usize) -> (Vec<String>, Vec<String>) {
        let (mut by_name, mut by_content) = (Vec::new(), Vec::new());
        walk(&self.root, 6, |folder| {
            let mut files: Vec<PathBuf> = fs::read_dir(folder)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path())
                .collect();
            files.sort();
            for file in files
                .iter()
                .filter(|file| file.extension().is_some_and(|extension| extension == "py"))
            {
                let Some(relative) = file.strip_prefix(&self.root).ok().and_then(Path::to_str)
                else {
                    continue;
                };
                let name = file
                    .file_name()
                    .map(|name| name.to_string_lossy())
                    .unwrap_or_default();
                if looks_like_a_test_file(&name) {
                    by_name.push(relative.to_owned());
                } else if by_content.len() < limit
                    && name != "conftest.py"
                    && (name.contains("test")
                        || read_text(file).is_some_and(|text| holds_tests(&text)))
                {
                    by_content.push(relative.to_owned());
                }
                if by_name.len() >= limit && by_content.len() >= limit {
                    return false;
                }
            }
            by_name.len() < limit || by_content.len() < limit
        });
        by_name.truncate(limit);
        by_content.truncate(limit);
        (by_name, by_content)
    }
}

fn holds_tests(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start().trim_start_matches("async ");
        line.starts_with("def test")
            || line.starts_with("class Test")
            || line.contains("unittest.TestCase)")
    })
}

fn has_python_files(folder: &Path) -> bool {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| {
            entry
                .path()
                .extension()
                .is_some_and(|extension| extension == "py")
        })
}

/// A table of lists of requirements, and the part that each of its keys is.
type Named<'a> = (&'a [&'a str], fn(String) -> Part);

fn in_pyproject(pyproject: &Table, package: &str) -> Option<Declared> {
    let list = |keys: &[&str]| {
        let (last, tables) = keys.split_last()?;
        table_at(pyproject, tables)?.get(*last)
    };
    if array_lists(list(&["project", "dependencies"]), package) {
        return Some(Declared {
            place: "pyproject.toml, [project] dependencies".to_owned(),
            part: Part::Main,
        });
    }
    let named: [Named<'_>; 3] = [
        (&["project", "optional-dependencies"], Part::Extra),
        (&["dependency-groups"], Part::Group),
        (&["tool", "pdm", "dev-dependencies"], Part::Group),
    ];
    for (keys, part) in named {
        for (name, value) in table_at(pyproject, keys).into_iter().flatten() {
            if array_lists(Some(value), package) {
                let place = format!("pyproject.toml, [{}] {name}", keys.join("."));
                return Some(Declared {
                    place,
                    part: part(name.clone()),
                });
            }
        }
    }
    if array_lists(list(&["tool", "uv", "dev-dependencies"]), package) {
        return Some(Declared {
            place: "pyproject.toml, [tool.uv] dev-dependencies".to_owned(),
            part: Part::Main,
        });
    }
    for keys in [
        ["tool", "poetry", "dependencies"],
        ["tool", "poetry", "dev-dependencies"],
    ] {
        if has_key(pyproject, &keys, package) {
            return Some(Declared {
                place: format!("pyproject.toml, [{}]", keys.join(".")),
                part: Part::Main,
            });
        }
    }
    for (name, _) in table_at(pyproject, &["tool", "poetry", "group"])
        .into_iter()
        .flatten()
    {
        if has_key(
            pyproject,
            &["tool", "poetry", "group", name, "dependencies"],
            package,
        ) {
            let place = format!("pyproject.toml, [tool.poetry.group.{name}.dependencies]");
            return Some(Declared {
                place,
                part: Part::Group(name.clone()),
            });
        }
    }
    for (name, environment) in table_at(pyproject, &["tool", "hatch", "envs"])
        .into_iter()
        .flatten()
    {
        let listed = |key: &str| array_lists(environment.get(key), package);
        if listed("dependencies") || listed("extra-dependencies") {
            let place = format!("pyproject.toml, [tool.hatch.envs.{name}]");
            return Some(Declared {
                place,
                part: Part::Main,
            });
        }
    }
    None
}

fn array_lists(value: Option<&Value>, package: &str) -> bool {
    let entries = value.and_then(Value::as_array).into_iter().flatten();
    entries
        .filter_map(Value::as_str)
        .any(|entry| requirement_name(entry) == package)
}

fn has_key(table: &Table, keys: &[&str], package: &str) -> bool {
    table_at(table, keys).is_some_and(|table| table.keys().any(|key| normalised(key) == package))
}

fn lists(text: &str, package: &str) -> bool {
    text.lines().any(|line| requirement_name(line) == package)
}

/// Returns the normalised name at the start of a requirement such as `httpx[http2]>=0.27; python_version > "3.8"`.
fn requirement_name(requirement: &str) -> String {
    let requirement = requirement.trim();
    let end =
        requirement.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'));
    normalised(&requirement[..end.unwrap_or(requirement.len())])
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => Some(
            items
                .iter()
                .filter_map(Value::as_str)
                .collect::<Vec<&str>>()
                .join(" "),
        ),
        Value::Boolean(_) | Value::Integer(_) | Value::Float(_) => Some(value.to_string()),
        Value::Datetime(_) | Value::Table(_) => None,
    }
}

pub(super) fn is_identifier(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !text.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
#[path = "project_files_tests.rs"]
mod tests;
