//! What git says about the project, asked so that a hostile repository runs nothing and nothing is written.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// State of the work tree around a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitFacts {
    /// Commit of HEAD.
    pub commit: Option<String>,
    /// Branch, if HEAD is on one.
    pub branch: Option<String>,
    /// Whether tracked files differ from HEAD.
    pub dirty: Option<bool>,
}

/// Asks git about the work tree that holds `root`. Everything is absent where there is no git or no repository.
///
/// `search_path` is the `PATH` to find git on. A repository's own configuration can name programs (`core.fsmonitor`, hooks, filters,
/// external diffs): those that git would start for these questions are switched off, and no lock is taken, so the index stays as it is.
pub fn facts(root: &Path, search_path: Option<&OsStr>, home: Option<&Path>) -> GitFacts {
    let ask = |arguments: &[&str]| -> Option<(bool, String)> {
        let mut command = Command::new("git");
        command
            .env_clear()
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("LC_ALL", "C")
            .args([
                "-c",
                "core.fsmonitor=false",
                "-c",
                "core.hooksPath=/dev/null",
                "-c",
                "protocol.allow=never",
            ])
            .arg("-C")
            .arg(root)
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        if let Some(path) = search_path {
            command.env("PATH", path);
        }
        if let Some(home) = home {
            command.env("HOME", home);
        }
        let output = command.output().ok()?;
        Some((
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        ))
    };
    let line = |arguments: &[&str]| {
        ask(arguments)
            .filter(|(good, text)| *good && !text.is_empty())
            .map(|(_, text)| text)
    };
    let Some(commit) = line(&["rev-parse", "--verify", "HEAD"]) else {
        return GitFacts::default();
    };
    // Content that must be compared goes through the repository's filters, so one that defines any is not asked.
    let filters = line(&[
        "config",
        "--get-regexp",
        r"^filter\..*\.(clean|smudge|process)$",
    ])
    .is_some();
    let dirty = if filters {
        None
    } else {
        // `status` honours GIT_OPTIONAL_LOCKS; `diff` refreshes the index in spite of it.
        ask(&[
            "status",
            "--porcelain",
            "--untracked-files=no",
            "--ignore-submodules=all",
        ])
        .filter(|(good, _)| *good)
        .map(|(_, text)| !text.is_empty())
    };
    GitFacts {
        commit: Some(commit),
        branch: line(&["symbolic-ref", "--quiet", "--short", "HEAD"]),
        dirty,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn git(folder: &Path, arguments: &[&str]) {
        let status = Command::new("git")
            .arg("-C")
            .arg(folder)
            .args([
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b.c",
                "-c",
                "commit.gpgsign=false",
            ])
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "git {arguments:?}");
    }

    fn ask(folder: &Path) -> GitFacts {
        let path = std::env::var_os("PATH");
        facts(folder, path.as_deref(), Some(folder))
    }

    #[test]
    fn a_folder_without_a_repository_has_no_facts() {
        assert_eq!(
            ask(tempfile::tempdir().unwrap().path()),
            GitFacts::default()
        );
    }

    #[test]
    fn clean_and_dirty_are_told_apart_and_the_index_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        git(root, &["init", "-q", "-b", "trunk"]);
        fs::write(root.join("a.txt"), "one").unwrap();
        git(root, &["add", "."]);
        git(root, &["commit", "-q", "-m", "first"]);
        // Same content, new stat data: a plain `git status` would refresh the index here.
        fs::remove_file(root.join("a.txt")).unwrap();
        fs::write(root.join("a.txt"), "one").unwrap();
        let index = fs::read(root.join(".git/index")).unwrap();
        let facts = ask(root);
        assert_eq!(
            (facts.branch.as_deref(), facts.dirty),
            (Some("trunk"), Some(false))
        );
        assert_eq!(facts.commit.unwrap().len(), 40);
        fs::write(root.join("a.txt"), "two").unwrap();
        assert_eq!(ask(root).dirty, Some(true));
        assert_eq!(fs::read(root.join(".git/index")).unwrap(), index);
    }

    #[test]
    fn a_repository_cannot_make_us_run_its_programs() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        git(root, &["init", "-q"]);
        fs::write(root.join("a.txt"), "one").unwrap();
        git(root, &["add", "."]);
        git(root, &["commit", "-q", "-m", "first"]);
        let trap = format!("touch {}/trapped; cat", root.display());
        for (key, value) in [
            ("core.fsmonitor", trap.as_str()),
            ("filter.x.clean", &trap),
            ("diff.external", &trap),
            ("core.pager", &trap),
        ] {
            git(root, &["config", key, value]);
        }
        fs::write(root.join(".gitattributes"), "*.txt filter=x diff=x\n").unwrap();
        fs::write(root.join("a.txt"), "two").unwrap();
        let facts = ask(root);
        assert!(facts.commit.is_some());
        assert!(!root.join("trapped").exists());
    }
}
