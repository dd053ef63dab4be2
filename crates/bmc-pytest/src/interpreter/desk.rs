//! A desk to test on: a project, a home folder, and interpreters that are shell scripts answering as the probe would.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Discovery, Request, Surroundings};

pub(super) struct Desk {
    _folder: tempfile::TempDir,
    pub(super) top: PathBuf,
    pub(super) vars: BTreeMap<OsString, OsString>,
    pub(super) own_executable: PathBuf,
}

/// What a pretended interpreter says.
pub(super) struct Fake<'a> {
    pub(super) version: (u32, u32, u32),
    pub(super) pytest: Option<&'a str>,
    pub(super) overlay: bool,
}

pub(super) const FIT: Fake<'static> = Fake {
    version: (3, 12, 1),
    pytest: Some("9.2.0"),
    overlay: false,
};

impl Desk {
    /// Makes a project in `shop` with these files and an empty PATH.
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        for folder in ["shop/.git", "home", "bin"] {
            fs::create_dir_all(top.join(folder)).unwrap();
        }
        let vars = BTreeMap::from([("PATH".into(), top.join("bin").into())]);
        let own_executable = top.join("own/bin/breakmycode");
        let desk = Self {
            _folder: folder,
            top,
            vars,
            own_executable,
        };
        desk.write("shop/pyproject.toml", "");
        for (file, text) in files {
            desk.write(&format!("shop/{file}"), text);
        }
        desk
    }

    pub(super) fn root(&self) -> PathBuf {
        self.top.join("shop")
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.top.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.vars.insert(name.into(), value.into());
    }

    /// Writes an executable script.
    pub(super) fn script(&self, path: &str, body: &str) -> PathBuf {
        self.write(path, &format!("#!/bin/sh\n{body}\n"));
        let path = self.top.join(path);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Writes an interpreter that is a file of `folder/bin`.
    pub(super) fn interpreter(&self, path: &str, fake: &Fake<'_>) -> PathBuf {
        let file = self.top.join(path);
        let prefix = file.parent().and_then(Path::parent).unwrap();
        // Without a `pyvenv.cfg` it stands for an installation, which is its own base.
        let base = if prefix.join("pyvenv.cfg").exists() {
            Path::new("/usr")
        } else {
            prefix
        };
        let answer = serde_json::json!({
            "version": fake.version, "implementation": "cpython", "executable": file, "prefix": prefix, "base_prefix": base,
            "pytest": fake.pytest, "plugins": [["pytest-cov", "7.0.0", "pytest_cov"]], "platform": "linux", "has_ctypes": true,
            "sys_path": ["/usr/lib/python3"], "pyvenv_home": null,
            "extends_environment": fake.overlay.then_some("/home/dev/shop/.venv"),
        });
        self.script(
            path,
            &format!("echo noise from a start-up file\necho 'BREAKMYCODE-PROBE {answer}'"),
        )
    }

    /// Makes a virtual environment with such an interpreter.
    pub(super) fn environment(&self, path: &str, fake: &Fake<'_>) -> PathBuf {
        self.write(&format!("{path}/pyvenv.cfg"), "home = /usr/bin\n");
        self.interpreter(&format!("{path}/bin/python"), fake)
    }

    pub(super) fn surroundings(&self) -> Surroundings {
        Surroundings {
            vars: self.vars.clone(),
            home: Some(self.top.join("home")),
            own_executable: self.own_executable.clone(),
        }
    }

    pub(super) fn discover(&self) -> Discovery {
        self.discover_with(None, false)
    }

    pub(super) fn discover_with(&self, explicit: Option<&str>, prefer_active: bool) -> Discovery {
        let surroundings = self.surroundings();
        let root = self.root();
        super::discover(&Request {
            path: &root,
            explicit,
            prefer_active,
            surroundings: &surroundings,
        })
    }
}
