//! Finds the folder a project starts at. Must not look above the git work tree, and must not choose among several projects.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use super::{EnvironmentError, Root};

/// Files that make a folder a project, strongest first.
const MARKERS: [&str; 7] = [
    "pyproject.toml",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    "tox.ini",
    "setup.cfg",
    "setup.py",
];

/// How deep projects are looked for below a folder that is none. Monorepos keep them in `packages/<name>` or `services/<team>/<name>`.
const DEPTH: usize = 4;

/// How many folder entries are looked at before the search is given up, so that a home folder does not take minutes.
const ENTRIES: usize = 50_000;

/// Finds the project that `path` belongs to: the nearest folder upwards with a project file, stopping at the top of the git work tree.
///
/// A folder without any project file around or below it is its own root: a handful of test files needs no configuration.
///
/// # Errors
/// The path cannot be read, or there are several projects below it and none at it.
pub fn find_root(path: &Path) -> Result<Root, EnvironmentError> {
    let unreadable = |error: std::io::Error| EnvironmentError::NoSuchPath {
        path: path.to_owned(),
        message: error.to_string(),
    };
    let full = fs::canonicalize(path).map_err(unreadable)?;
    let start = if full.is_dir() {
        full.as_path()
    } else {
        full.parent().unwrap_or(&full)
    };
    let git = start
        .ancestors()
        .find(|folder| folder.join(".git").exists());
    for folder in start.ancestors() {
        if let Some(marker) = marker_of(folder) {
            return Ok(Root {
                path: folder.to_owned(),
                marker: Some(marker.to_owned()),
                git: git.map(Path::to_owned),
            });
        }
        if Some(folder) == git {
            break;
        }
    }
    let below = projects_below(start);
    match below.as_slice() {
        [] => Ok(Root {
            path: start.to_owned(),
            marker: None,
            git: git.map(Path::to_owned),
        }),
        [only] => Ok(Root {
            path: only.clone(),
            marker: marker_of(only).map(str::to_owned),
            git: git.map(Path::to_owned),
        }),
        [..] => {
            let roots = below
                .into_iter()
                .map(|root| {
                    let count = count_test_files(&root);
                    (root, count)
                })
                .collect();
            Err(EnvironmentError::SeveralProjects {
                path: start.to_owned(),
                roots,
            })
        }
    }
}

fn marker_of(folder: &Path) -> Option<&'static str> {
    MARKERS
        .into_iter()
        .find(|marker| folder.join(marker).is_file())
}

fn projects_below(start: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(start, DEPTH, |folder| {
        let is_project = folder != start && marker_of(folder).is_some();
        if is_project {
            found.push(folder.to_owned());
        }
        !is_project
    });
    found.sort();
    found
}

fn count_test_files(root: &Path) -> usize {
    let mut count = 0;
    walk(root, 12, |folder| {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if looks_like_a_test_file(&entry.file_name().to_string_lossy()) {
                count += 1;
            }
        }
        true
    });
    count
}

/// Whether pytest would collect a file of this name by default.
pub(crate) fn looks_like_a_test_file(name: &str) -> bool {
    name.strip_suffix(".py")
        .is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
}

/// Whether a folder holds what is not the project's own: pytest skips the same ones.
pub(crate) fn is_foreign_folder(folder: &Path) -> bool {
    let name = folder
        .file_name()
        .map(|name| name.to_string_lossy())
        .unwrap_or_default();
    name.starts_with('.')
        || matches!(
            &*name,
            "node_modules"
                | "__pycache__"
                | "site-packages"
                | "venv"
                | "env"
                | "build"
                | "dist"
                | "_darcs"
                | "CVS"
        )
        || name.ends_with(".egg")
        || folder.join("pyvenv.cfg").exists()
        || folder.join("conda-meta").exists()
}

/// Visits folders breadth first, not following links; `visit` says whether to go deeper.
pub(crate) fn walk(start: &Path, depth: usize, mut visit: impl FnMut(&Path) -> bool) {
    let mut queue = VecDeque::from([(start.to_owned(), 0)]);
    let mut seen = 0;
    while let Some((folder, level)) = queue.pop_front() {
        if !visit(&folder) || level == depth {
            continue;
        }
        let mut children: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > ENTRIES {
                return;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir())
                && !is_foreign_folder(&entry.path())
            {
                children.push(entry.path());
            }
        }
        children.sort();
        queue.extend(children.into_iter().map(|child| (child, level + 1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let path = folder.path().canonicalize().unwrap();
        (folder, path)
    }

    #[test]
    fn the_nearest_project_file_upwards_wins() {
        let (_keep, top) = tree(&[
            ".git/HEAD",
            "setup.cfg",
            "packages/a/pyproject.toml",
            "packages/a/tests/test_a.py",
        ]);
        let expected = Root {
            path: top.join("packages/a"),
            marker: Some("pyproject.toml".to_owned()),
            git: Some(top.clone()),
        };
        assert_eq!(
            find_root(&top.join("packages/a/tests")),
            Ok(expected.clone())
        );
        assert_eq!(
            find_root(&top.join("packages/a/tests/test_a.py")),
            Ok(expected)
        );
    }

    #[test]
    fn the_search_stops_at_the_top_of_the_work_tree() {
        let (_keep, top) = tree(&["pyproject.toml", "clone/.git/HEAD", "clone/tests/test_a.py"]);
        let root = find_root(&top.join("clone/tests")).unwrap();
        assert_eq!((root.path, root.marker), (top.join("clone/tests"), None));
    }

    #[test]
    fn several_projects_below_are_listed_and_none_is_chosen() {
        let (_keep, top) = tree(&[
            ".git/HEAD",
            "a/pyproject.toml",
            "a/tests/test_1.py",
            "a/tests/two_test.py",
            "a/vendored/setup.py",
            "services/b/setup.py",
            ".hidden/setup.py",
            "node_modules/x/setup.py",
            "old/pyvenv.cfg",
            "old/lib/setup.py",
        ]);
        assert_eq!(
            find_root(&top),
            Err(EnvironmentError::SeveralProjects {
                path: top.clone(),
                roots: vec![(top.join("a"), 2), (top.join("services/b"), 0)],
            })
        );
    }

    #[test]
    fn a_single_project_below_is_taken() {
        let (_keep, top) = tree(&[
            ".git/HEAD",
            "backend/pyproject.toml",
            "frontend/package.json",
        ]);
        assert_eq!(find_root(&top).unwrap().path, top.join("backend"));
    }

    #[test]
    fn a_missing_path_is_an_error_that_names_it() {
        let error = find_root(Path::new("/nonexistent/shop")).unwrap_err();
        assert!(
            format!("cannot {error}").starts_with("cannot open /nonexistent/shop: "),
            "{error}"
        );
    }
}
