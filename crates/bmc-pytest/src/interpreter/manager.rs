//! Tells who manages a project's packages, and how to say things in that tool's words. Must not start any of these tools.

use std::path::Path;

use toml::Table;

use super::metadata::{table_at, up_to};

/// The tool that looks after a project's environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Manager {
    /// uv (`uv.lock`, `[tool.uv]`).
    Uv,
    /// Poetry (`poetry.lock`, `[tool.poetry]`).
    Poetry,
    /// PDM (`pdm.lock`, `[tool.pdm]`).
    Pdm,
    /// Pipenv (`Pipfile`).
    Pipenv,
    /// Hatch (`[tool.hatch.envs]`, `hatch.toml`).
    Hatch,
    /// Pixi (`pixi.toml`, `pixi.lock`).
    Pixi,
    /// Conda (`environment.yml`).
    Conda,
    /// Nothing says otherwise.
    Pip,
}

/// Files that give a manager away, strongest first. A lock file says more than a table: it was written by the tool.
const SIGNS: [(&str, Manager); 11] = [
    ("uv.lock", Manager::Uv),
    ("poetry.lock", Manager::Poetry),
    ("pdm.lock", Manager::Pdm),
    (".pdm-python", Manager::Pdm),
    ("Pipfile.lock", Manager::Pipenv),
    ("Pipfile", Manager::Pipenv),
    ("pixi.lock", Manager::Pixi),
    ("pixi.toml", Manager::Pixi),
    ("hatch.toml", Manager::Hatch),
    ("environment.yml", Manager::Conda),
    ("environment.yaml", Manager::Conda),
];

/// Tables of `pyproject.toml` that do the same.
const TABLES: [(&[&str], Manager); 5] = [
    (&["tool", "poetry"], Manager::Poetry),
    (&["tool", "pdm"], Manager::Pdm),
    (&["tool", "uv"], Manager::Uv),
    (&["tool", "pixi"], Manager::Pixi),
    (&["tool", "hatch", "envs"], Manager::Hatch),
];

impl Manager {
    pub(crate) fn detect(root: &Path, git: Option<&Path>, pyproject: &Table) -> Self {
        let (conda, others): (Vec<_>, Vec<_>) = SIGNS
            .iter()
            .partition(|(_, manager)| *manager == Manager::Conda);
        let by_file = |signs: &[&(&str, Manager)], folder: &Path| {
            signs
                .iter()
                .find(|(file, _)| folder.join(file).is_file())
                .map(|(_, manager)| *manager)
        };
        by_file(&others, root)
            .or_else(|| {
                let mut tables = TABLES.iter();
                tables
                    .find(|(keys, _)| table_at(pyproject, keys).is_some())
                    .map(|(_, m)| *m)
            })
            // Members of a uv workspace have no lock file of their own.
            .or_else(|| {
                up_to(root, git)
                    .any(|folder| folder.join("uv.lock").is_file())
                    .then_some(Manager::Uv)
            })
            .or_else(|| by_file(&conda, root))
            .unwrap_or(Manager::Pip)
    }

    /// Returns the tool's name as it writes it.
    pub fn name(self) -> &'static str {
        match self {
            Manager::Uv => "uv",
            Manager::Poetry => "poetry",
            Manager::Pdm => "pdm",
            Manager::Pipenv => "pipenv",
            Manager::Hatch => "hatch",
            Manager::Pixi => "pixi",
            Manager::Conda => "conda",
            Manager::Pip => "pip",
        }
    }

    /// Returns the command that adds packages for development. `python` is the interpreter that pip should belong to.
    pub fn add(self, packages: &[&str], python: &str) -> String {
        let names: Vec<String> = packages.iter().map(|package| quote(package)).collect();
        let names = names.join(" ");
        match self {
            Manager::Uv => format!("uv add --dev {names}"),
            Manager::Poetry => format!("poetry add -G dev {names}"),
            Manager::Pdm => format!("pdm add -d {names}"),
            Manager::Pipenv => format!("pipenv install --dev {names}"),
            Manager::Hatch => format!("hatch run pip install {names}"),
            Manager::Pixi => format!("pixi add {names}"),
            Manager::Conda => format!("conda install {names}"),
            Manager::Pip => format!("{} -m pip install {names}", quote(python)),
        }
    }

    /// Returns a word of warning that belongs to [`Manager::add`], if the command does not write the project file.
    pub fn remark(self, packages: &[&str]) -> Option<String> {
        (self == Manager::Hatch).then(|| {
            format!(
                "to keep it: add {} to dependencies of [tool.hatch.envs.default]",
                packages.join(", ")
            )
        })
    }

    /// Returns the command that installs what the project declares.
    pub fn sync(self, python: &str) -> String {
        match self {
            Manager::Uv => "uv sync".to_owned(),
            Manager::Poetry => "poetry install".to_owned(),
            Manager::Pdm => "pdm install".to_owned(),
            Manager::Pipenv => "pipenv install --dev".to_owned(),
            Manager::Hatch => "hatch env create".to_owned(),
            Manager::Pixi => "pixi install".to_owned(),
            Manager::Conda => "conda env update -f environment.yml".to_owned(),
            Manager::Pip => format!("{} -m pip install -e .", quote(python)),
        }
    }

    /// Returns the command that makes the project itself importable.
    pub fn install_project(self, python: &str) -> String {
        match self {
            Manager::Uv => "uv pip install -e .".to_owned(),
            Manager::Poetry => "poetry install".to_owned(),
            Manager::Pdm => "pdm install".to_owned(),
            Manager::Pipenv => "pipenv install -e .".to_owned(),
            Manager::Hatch => "hatch run pip install -e .".to_owned(),
            Manager::Pixi => "pixi run pip install -e .".to_owned(),
            Manager::Conda => "python -m pip install -e .".to_owned(),
            Manager::Pip => format!("{} -m pip install -e .", quote(python)),
        }
    }

    /// Returns the command that throws a broken environment away and makes it anew. `environment` is its folder.
    pub fn recreate(self, environment: &str) -> String {
        match self {
            Manager::Uv => "uv venv --clear && uv sync".to_owned(),
            Manager::Poetry => "poetry env remove --all && poetry install".to_owned(),
            Manager::Pdm => "pdm venv create --force && pdm install".to_owned(),
            Manager::Pipenv => "pipenv --rm && pipenv install --dev".to_owned(),
            Manager::Hatch => "hatch env prune && hatch env create".to_owned(),
            Manager::Pixi => "pixi clean && pixi install".to_owned(),
            Manager::Conda => "conda env create --yes -f environment.yml".to_owned(),
            Manager::Pip => format!(
                "python3 -m venv --clear {0} && {1} -m pip install pytest",
                quote(environment),
                quote(&format!("{environment}/bin/python"))
            ),
        }
    }
}

/// Quotes a word for a shell if it needs that, so that a command can be pasted as it is.
pub(crate) fn quote(word: &str) -> String {
    let plain =
        |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '~' | '+' | ':' | '=');
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::interpreter::metadata::Metadata;

    const ALL: [Manager; 8] = [
        Manager::Uv,
        Manager::Poetry,
        Manager::Pdm,
        Manager::Pipenv,
        Manager::Hatch,
        Manager::Pixi,
        Manager::Conda,
        Manager::Pip,
    ];

    #[test]
    fn each_manager_is_recognised_by_its_files() {
        let table = [
            ("uv.lock", "", Manager::Uv),
            ("poetry.lock", "", Manager::Poetry),
            (".pdm-python", "", Manager::Pdm),
            ("Pipfile", "", Manager::Pipenv),
            ("pixi.toml", "", Manager::Pixi),
            ("hatch.toml", "", Manager::Hatch),
            ("environment.yml", "name: a", Manager::Conda),
            ("pyproject.toml", "[tool.poetry]\nname='a'", Manager::Poetry),
            ("pyproject.toml", "[tool.hatch.envs.test]\n", Manager::Hatch),
            ("pyproject.toml", "[tool.uv]\n", Manager::Uv),
            ("requirements.txt", "", Manager::Pip),
        ];
        for (file, text, expected) in table {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(file), text).unwrap();
            assert_eq!(
                Metadata::read(folder.path(), None).manager,
                expected,
                "{file}: {text}"
            );
        }
    }

    #[test]
    fn a_workspace_member_is_recognised_by_the_lock_file_above() {
        let folder = tempfile::tempdir().unwrap();
        let member = folder.path().join("packages/a");
        fs::create_dir_all(&member).unwrap();
        fs::write(folder.path().join("uv.lock"), "").unwrap();
        assert_eq!(
            Metadata::read(&member, Some(folder.path())).manager,
            Manager::Uv
        );
        assert_eq!(Metadata::read(&member, None).manager, Manager::Pip);
    }

    #[test]
    fn every_manager_has_a_command_with_the_package_in_it() {
        for manager in ALL {
            let command = manager.add(&["pytest"], ".venv/bin/python");
            assert!(command.ends_with("pytest"), "{command}");
            assert!(!manager.sync("python").is_empty() && !manager.recreate(".venv").is_empty());
        }
    }

    #[test]
    fn words_with_special_characters_are_quoted() {
        assert_eq!(quote("pytest>=7"), "'pytest>=7'");
        assert_eq!(quote("my project/.venv"), "'my project/.venv'");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote("~/.venv/bin/python"), "~/.venv/bin/python");
    }
}
