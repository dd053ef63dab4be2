//! Projects in odd places: names that quote badly, links, pipes, folders that cannot be written.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::common::{Lab, assert_all_clean, finish, write_files};
use crate::samples::CLEAN;
use crate::tree::Tree;

#[test]
fn a_project_that_cannot_be_written_is_scanned() {
    let lab = Lab::new();
    let project = lab.project(
        "p",
        &[("tests/test_a.py", CLEAN[0].1), ("pyproject.toml", "")],
    );
    let set = |mode| {
        for folder in [project.join("tests"), project.clone()] {
            fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    set(0o555);
    let before = Tree::of(&project);
    let done = finish(lab.scan(&project, &["--runs", "2", "--format", "json"]));
    before.assert_unchanged();
    set(0o755);
    assert_all_clean(&done.expect(0).report());
    lab.assert_clean();
}

/// Scans a project of that name, hybrid and copied.
fn scan_at(lab: &Lab, name: &OsStr, below: &Path) {
    let project = below.join(name);
    write_files(
        &project,
        &[
            ("pkg/__init__.py", "X = 1\n"),
            (
                "tests/test_a.py",
                "import pkg\n\ndef test_a(tmp_path):\n    assert pkg.X == 1\n",
            ),
            ("pyproject.toml", ""),
        ],
    );
    for way in [&[][..], &["--copy"]] {
        let before = Tree::of(&project);
        let mut command = lab.scan(
            &project,
            &["--runs", "4", "--fresh-starts", "2", "--format", "json"],
        );
        command.args(way);
        let report = finish(command).expect(0).report();
        assert_all_clean(&report);
        assert_eq!(report.project.root, project.to_string_lossy());
        before.assert_unchanged();
    }
    let shown = finish(lab.typed(["show"])).expect(0).stdout;
    assert!(!shown.is_empty());
    finish(lab.typed(["list"])).expect(0);
    lab.assert_clean();
}

#[test]
fn odd_names_of_projects_are_no_trouble() {
    for name in [
        "with space, a,b:c\\d",
        "-quo'te\"s;c&d$HOME",
        "ünïcode\nnew line",
        "percent%20s any*thing?",
    ] {
        let lab = Lab::new();
        scan_at(&lab, OsStr::new(name), &lab.home().join("src"));
    }
}

#[test]
fn a_name_that_is_not_utf_8_is_no_trouble() {
    let lab = Lab::new();
    scan_at(&lab, OsStr::from_bytes(b"caf\xe9"), &lab.home().join("src"));
}

#[test]
fn a_project_outside_of_the_home_is_no_trouble() {
    let lab = Lab::new();
    scan_at(&lab, OsStr::new("p"), &lab.path("elsewhere"));
}

#[test]
fn odd_names_of_the_places_for_files_are_no_trouble() {
    let lab = Lab::new();
    let project = lab.project("p", CLEAN);
    let scan = |name: &str| {
        let mut command = lab.scan(
            &project,
            &["--runs", "4", "--fresh-starts", "2", "--format", "json"],
        );
        command
            .env("XDG_CACHE_HOME", lab.path(name))
            .env("XDG_DATA_HOME", lab.path(name));
        finish(command)
    };
    assert_all_clean(&scan("ca che,ca\\che").expect(0).report());
    // Python separates folders for modules by colons and cannot be told otherwise.
    let done = scan("ca:che").expect(2);
    for words in ["BMC-E064", "colon", "XDG_CACHE_HOME"] {
        assert!(done.stderr.contains(words), "{done:#?}");
    }
    let home = lab.path("ho me,a:b\\c");
    fs::create_dir(&home).unwrap();
    let mut command = lab.scan(
        &project,
        &["--runs", "4", "--fresh-starts", "2", "--format", "json"],
    );
    command.env("HOME", home);
    assert_all_clean(&finish(command).expect(0).report());
}

#[test]
fn a_link_to_a_project_is_the_project() {
    let lab = Lab::new();
    let project = lab.project("p", CLEAN);
    let link = lab.home().join("link");
    symlink(&project, &link).unwrap();
    let before = Tree::of(&lab.home());
    let report = finish(lab.scan(&link, &["--runs", "2", "--format", "json"]))
        .expect(0)
        .report();
    assert_all_clean(&report);
    before.assert_unchanged();
    let mut command = lab.scan(".", &["--runs", "2", "--format", "json"]);
    command.current_dir(&link).env("PWD", &link);
    assert_all_clean(&finish(command).expect(0).report());
    lab.assert_clean();
}

#[test]
fn links_in_circles_pipes_and_sockets_in_a_project_are_no_trouble() {
    for way in [&[][..], &["--copy"]] {
        let lab = Lab::new();
        let project = lab.project("p", CLEAN);
        symlink(".", project.join("itself")).unwrap();
        symlink("b", project.join("a")).unwrap();
        symlink("a", project.join("b")).unwrap();
        symlink("/nowhere/at/all", project.join("dangling")).unwrap();
        symlink("..", project.join("above")).unwrap();
        assert!(
            Command::new("mkfifo")
                .arg(project.join("pipe"))
                .status()
                .unwrap()
                .success()
        );
        let _socket = std::os::unix::net::UnixListener::bind(project.join("socket")).unwrap();
        let before = Tree::of(&project);
        let mut command = lab.scan(
            &project,
            &["--runs", "4", "--fresh-starts", "2", "--format", "json"],
        );
        // What lies below `above` is not the project's, so collection is pointed at the file.
        command.args(way).args(["--", "test_a.py"]);
        assert_all_clean(&finish(command).expect(0).report());
        before.assert_unchanged();
        lab.assert_clean();
    }
}
