//! A desk to test on: a project in a temporary folder, a context for it, and captured output of real versions of pytest.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Context, ProjectFiles};
use crate::interpreter::{Interpreter, Manager, Plugin, ProbeResult};

pub(super) struct Desk {
    folder: tempfile::TempDir,
    pub(super) context: Context,
}

impl Desk {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (file, text) in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let context = Context {
            files: ProjectFiles::at(&root),
            interpreter: Some(interpreter((3, 12, 1))),
            manager: Manager::Uv,
        };
        Self { folder, context }
    }

    pub(super) fn with_python(mut self, version: (u32, u32, u32)) -> Self {
        self.context.interpreter = Some(interpreter(version));
        self
    }

    pub(super) fn with_plugins(mut self, plugins: &[&str]) -> Self {
        if let Some(interpreter) = &mut self.context.interpreter {
            interpreter.probe.plugins = plugins
                .iter()
                .map(|name| Plugin {
                    distribution: (*name).to_owned(),
                    version: "1.0".to_owned(),
                    entry_point: (*name).to_owned(),
                })
                .collect();
        }
        self
    }

    pub(super) fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    /// Reads a captured output: its exit code (negative: a signal) and everything it wrote, moved into this project.
    pub(super) fn captured(&self, name: &str) -> (i32, String) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        let text = fs::read_to_string(folder.join(format!("{name}.txt"))).unwrap();
        let (code, rest) = text
            .strip_prefix("exit: ")
            .unwrap()
            .split_once('\n')
            .unwrap();
        let rest = rest.replace("--- stdout\n", "").replace("--- stderr\n", "");
        (
            code.parse().unwrap(),
            rest.replace("/project", self.root().to_str().unwrap()),
        )
    }
}

pub(super) fn interpreter(version: (u32, u32, u32)) -> Interpreter {
    let probe = ProbeResult {
        version,
        implementation: "cpython".to_owned(),
        executable: "/home/dev/shop/.venv/bin/python".into(),
        prefix: "/home/dev/shop/.venv".into(),
        base_prefix: "/usr".into(),
        pytest: Some("9.2.0".to_owned()),
        plugins: Vec::new(),
        platform: "linux".to_owned(),
        has_ctypes: true,
        sys_path: Vec::new(),
        pyvenv_home: None,
        extends_environment: None,
    };
    Interpreter {
        executable: probe.executable.clone(),
        found_by: "project .venv".to_owned(),
        display: ".venv/bin/python".to_owned(),
        probe,
    }
}
