//! Asks real interpreters of this machine. Where none are installed the tests say so on the error stream and prove nothing.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use bmc_pytest::interpreter::{
    Discovery, EnvironmentError, Fault, Plugin, Request, Surroundings, discover,
};

/// Lists the interpreters that pyenv holds, with their versions.
fn pyenv() -> Vec<((u32, u32), PathBuf)> {
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    let mut found: Vec<((u32, u32), PathBuf)> = fs::read_dir(home.join(".pyenv/versions"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let mut numbers = name.split('.').map(|part| part.parse().ok());
            let version = (numbers.next()??, numbers.next()??);
            let file = entry.path().join("bin/python");
            file.exists().then_some((version, file))
        })
        .collect();
    found.sort();
    if found.is_empty() {
        // Not `eprintln!`: the test harness would swallow it, and a skipped test must be seen.
        let mut stream = std::io::stderr();
        let _ = writeln!(
            stream,
            "SKIPPED: pyenv holds no interpreter on this machine"
        );
    }
    found
}

fn modern() -> Option<PathBuf> {
    pyenv()
        .into_iter()
        .rfind(|(version, _)| *version >= (3, 9))
        .map(|(_, file)| file)
}

struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        let desk = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        desk.write("shop/pyproject.toml", "[project]\nname = 'shop'\n");
        fs::create_dir_all(desk.path("home")).unwrap();
        desk
    }

    fn path(&self, rest: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(rest)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes the metadata of an installed pytest and one plugin, which is all that the probe reads.
    fn install_pytest(&self, site: &Path) {
        let files = [
            (
                "pytest-9.2.0.dist-info/METADATA",
                "Metadata-Version: 2.1\nName: pytest\nVersion: 9.2.0\n",
            ),
            (
                "pytest_cov-7.0.0.dist-info/METADATA",
                "Metadata-Version: 2.1\nName: pytest-cov\nVersion: 7.0.0\n",
            ),
            (
                "pytest_cov-7.0.0.dist-info/entry_points.txt",
                "[pytest11]\npytest_cov = pytest_cov.plugin\n",
            ),
        ];
        for (file, text) in files {
            let file = site.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
    }

    fn make_environment(&self, python: &Path) -> PathBuf {
        let folder = self.path("shop/.venv");
        let done = Command::new(python)
            .args(["-m", "venv", "--without-pip"])
            .arg(&folder)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        folder
    }

    fn discover(&self, explicit: Option<&Path>, vars: &[(&str, &Path)]) -> Discovery {
        let surroundings = Surroundings {
            vars: vars
                .iter()
                .map(|(name, value)| ((*name).into(), value.as_os_str().to_owned()))
                .collect::<BTreeMap<_, _>>(),
            home: Some(self.path("home")),
            own_executable: self.path("own/breakmycode"),
        };
        let root = self.path("shop");
        let explicit = explicit.and_then(Path::to_str);
        discover(&Request {
            path: &root,
            explicit,
            prefer_active: false,
            surroundings: &surroundings,
        })
    }
}

fn site_packages(prefix: &Path) -> PathBuf {
    let lib = fs::read_dir(prefix.join("lib"))
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    lib.map(|folder| folder.join("site-packages"))
        .find(|folder| folder.is_dir())
        .unwrap()
}

fn cov() -> Plugin {
    Plugin {
        distribution: "pytest-cov".to_owned(),
        version: "7.0.0".to_owned(),
        entry_point: "pytest_cov".to_owned(),
    }
}

#[test]
fn every_interpreter_down_to_python_2_can_say_its_version() {
    let desk = Desk::new();
    for ((major, minor), file) in pyenv() {
        let discovery = desk.discover(Some(&file), &[("HOME", &desk.path("home"))]);
        match discovery.error {
            Some(EnvironmentError::WrongVersion {
                version, requires, ..
            }) => {
                assert_eq!((version.0, version.1), (major, minor));
                assert_eq!(requires, ">=3.8 (breakmycode)");
                assert!((major, minor) < (3, 8));
            }
            // Whether pytest is installed for it is this machine's business.
            Some(EnvironmentError::NoPytest { .. }) => assert!((major, minor) >= (3, 8)),
            None => {
                let version = discovery.chosen.unwrap().probe.version;
                assert_eq!((version.0, version.1), (major, minor));
            }
            other => panic!("{}: {other:?}", file.display()),
        }
    }
}

#[test]
fn a_real_environment_is_chosen_with_pytest_and_its_plugins() {
    let Some(python) = modern() else { return };
    let desk = Desk::new();
    let folder = desk.make_environment(&python);
    desk.install_pytest(&site_packages(&folder));
    let chosen = desk.discover(None, &[]).chosen.unwrap();
    assert_eq!(
        (chosen.found_by.as_str(), chosen.display.as_str()),
        ("project .venv", ".venv/bin/python")
    );
    assert_eq!(chosen.probe.pytest.as_deref(), Some("9.2.0"));
    assert_eq!(chosen.probe.plugins, [cov()]);
    assert_eq!(chosen.probe.prefix, folder);
    assert_ne!(chosen.probe.prefix, chosen.probe.base_prefix);
}

#[test]
fn what_the_user_site_and_pythonpath_hold_counts_as_it_does_in_the_real_run() {
    let Some(python) = modern() else { return };
    let desk = Desk::new();
    let base = desk.path("userbase");
    let answer = Command::new(&python)
        .args(["-c", "import site; print(site.getusersitepackages())"])
        .env("PYTHONUSERBASE", &base)
        .output()
        .unwrap();
    let site = PathBuf::from(String::from_utf8(answer.stdout).unwrap().trim());
    desk.install_pytest(&site);
    let home = desk.path("home");
    let found = desk.discover(Some(&python), &[("HOME", &home), ("PYTHONUSERBASE", &base)]);
    assert_eq!(
        found
            .chosen
            .map(|chosen| chosen.probe.plugins.contains(&cov())),
        Some(true)
    );
    let found = desk.discover(Some(&python), &[("HOME", &home), ("PYTHONPATH", &site)]);
    let paths = found.chosen.map(|chosen| chosen.probe.sys_path).unwrap();
    assert_eq!(paths[0], site);
    // A virtual environment does not see the user's site folder, and neither does the probe of one.
    desk.make_environment(&python);
    let found = desk.discover(None, &[("HOME", &home), ("PYTHONUSERBASE", &base)]);
    assert!(
        matches!(found.error, Some(EnvironmentError::NoPytest { .. })),
        "{:?}",
        found.error
    );
}

#[test]
fn an_environment_whose_interpreter_was_removed_is_named_with_its_base() {
    let Some(python) = modern() else { return };
    let desk = Desk::new();
    let folder = desk.make_environment(&python);
    let gone = desk.path("gone/bin");
    let config = fs::read_to_string(folder.join("pyvenv.cfg")).unwrap();
    let config: String = config
        .lines()
        .map(|line| {
            if line.starts_with("home") {
                format!("home = {}\n", gone.display())
            } else {
                format!("{line}\n")
            }
        })
        .collect();
    fs::write(folder.join("pyvenv.cfg"), config).unwrap();
    for name in ["python", "python3"] {
        let link = folder.join("bin").join(name);
        fs::remove_file(&link).unwrap();
        symlink(gone.join("python3"), &link).unwrap();
    }
    let Some(EnvironmentError::Broken { fault, .. }) = desk.discover(None, &[]).error else {
        panic!("E011 expected")
    };
    assert_eq!(fault, Fault::BaseMoved { home: gone });
}
