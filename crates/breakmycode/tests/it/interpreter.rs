//! Which Python a scan uses: the one that was asked for or none, and how others are found.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Lab, finish};
use crate::environments;
use crate::samples::CLEAN;

/// An environment without pytest.
fn without_pytest(lab: &Lab) -> PathBuf {
    let folder = lab.path("bare");
    let made = Command::new(&environments::usual().python)
        .args(["-m", "venv", "--without-pip"])
        .arg(&folder)
        .status();
    assert!(made.unwrap().success());
    folder
}

/// A scan with `--python` beside an environment that would do. The code of the advice.
fn advice_with_python(lab: &Lab, project: &Path, python: &Path) -> (Option<i32>, Vec<String>) {
    let good = environments::usual()
        .python
        .parent()
        .and_then(Path::parent)
        .unwrap();
    let mut command = lab.typed(["scan", "--format", "json", "--runs", "1"]);
    command
        .arg(project)
        .arg("--python")
        .arg(python)
        .env("VIRTUAL_ENV", good);
    let done = finish(command);
    let codes = done
        .report()
        .advice
        .iter()
        .map(|advice| advice.code.clone())
        .collect();
    (done.code, codes)
}

#[test]
fn a_python_that_was_asked_for_is_used_or_refused_and_nothing_else_is_tried() {
    let lab = Lab::new();
    let project = lab.project("p", CLEAN);
    let bare = without_pytest(&lab);
    let broken = lab.path("broken-python");
    fs::write(&broken, "#!/bin/sh\necho this is not python\nexit 3\n").unwrap();
    fs::set_permissions(&broken, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for (python, code) in [
        (bare.as_path(), "E010"),
        (&bare.join("bin/python"), "E010"),
        (&broken, "E011"),
        (Path::new("/nowhere/bin/python"), "E011"),
        (&project, "E011"),
        (Path::new("python-that-is-nowhere"), "E011"),
        (Path::new("3.999"), "E011"),
    ] {
        let found = advice_with_python(&lab, &project, python);
        assert_eq!(
            found,
            (Some(3), vec![code.to_owned()]),
            "{}",
            python.display()
        );
    }
    lab.assert_clean();
}

#[test]
fn a_python_that_does_not_suit_the_project_is_e013() {
    let lab = Lab::new();
    let project = lab.project(
        "p",
        &[
            (
                "pyproject.toml",
                "[project]\nname = 'p'\nrequires-python = '>=3.999'\n",
            ),
            CLEAN[0],
        ],
    );
    let found = advice_with_python(&lab, &project, &environments::usual().python);
    assert_eq!(found, (Some(3), vec!["E013".to_owned()]));
}

#[test]
fn the_interpreter_is_found_without_being_named() {
    let lab = Lab::new();
    let project = lab.project("p", CLEAN);
    let good = environments::usual()
        .python
        .parent()
        .and_then(Path::parent)
        .unwrap();
    let mut command = lab.typed(["scan", "--format", "json", "--runs", "1"]);
    command.arg(&project).env("VIRTUAL_ENV", good);
    assert_eq!(
        finish(command)
            .expect(0)
            .report()
            .environment
            .unwrap()
            .executable,
        good.join("bin/python").to_string_lossy()
    );
    symlink(good, project.join(".venv")).unwrap();
    let mut command = lab.typed(["doctor"]);
    command.arg(&project);
    let done = finish(command).expect(0);
    assert!(done.stdout.contains(".venv"), "{done:#?}");
}

#[test]
fn doctor_says_3_when_no_scan_could_start() {
    let lab = Lab::new();
    let project = lab.project("p", CLEAN);
    let mut command = lab.typed(["doctor", "--python", "/nowhere/python"]);
    command.arg(&project);
    let done = finish(command).expect(3);
    assert!(done.stdout.contains("/nowhere/python"), "{done:#?}");
    assert!(!lab.database().exists());
}
