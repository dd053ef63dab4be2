//! What a scan does to the world around it: nothing. What tests see of that world, and what they do not.

use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use bmc_types::TestClass;

use crate::common::{Lab, assert_all_clean, finish, write_files};
use crate::gate::Gate;
use crate::live::Live;
use crate::samples::CLEAN;
use crate::tree::Tree;

/// Changes whatever a test can get hold of. Each step must work, or the test fails: what is forbidden would prove nothing.
const VANDAL: &str = r#"
import os, pathlib, shutil, subprocess, tempfile

HERE = pathlib.Path(__file__).parent
HOME = pathlib.Path.home()

def git(*arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=HERE, check=True, stdout=subprocess.DEVNULL)

def test_sees_what_is_there():
    assert (HERE / "data.txt").read_text() == "original"
    assert (HOME / "diary.txt").read_text() == "dear diary"
    assert not (HERE / "new.txt").exists() and not (HOME / "new.txt").exists()

def test_writes_into_the_project():
    (HERE / "new.txt").write_text("new")
    (HERE / "data.txt").write_text("other")
    (HERE / "script.sh").chmod(0o600)
    os.utime(HERE / "folder", (1, 1))
    (HERE / "__pycache__" / "mine.pyc").write_bytes(b"x")
    shutil.rmtree(HERE / "folder")
    os.rename(HERE / "script.sh", HERE / "moved.sh")

def test_writes_into_git():
    (HERE / "data.txt").write_text("for the stash")
    git("stash")
    git("checkout", "-q", "-b", "elsewhere")
    (HERE / "more.txt").write_text("more")
    git("add", ".")
    git("commit", "-q", "-m", "by a test")
    (HERE / ".git" / "hooks" / "pre-commit").write_text("exit 1")
    git("config", "core.editor", "false")

def test_writes_into_the_home():
    (HOME / "new.txt").write_text("new")
    (HOME / "diary.txt").unlink()
    (HOME / ".cache").mkdir()
    (HOME / ".cache" / "x").write_text("x")

def test_writes_into_temporary_folders():
    for folder in [tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm"]:
        pathlib.Path(folder, "breakmycode-it-left-behind").write_text("x")

def test_starts_a_daemon():
    subprocess.Popen(["sleep", "1000"], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL)
"#;

fn git(folder: &Path, home: &Path, arguments: &[&str]) {
    let identity = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.org",
        "-c",
        "commit.gpgsign=false",
    ];
    let mut command = Command::new("git");
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", home);
    let output = command
        .arg("-C")
        .arg(folder)
        .args(identity)
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A git work tree with a stash, a staged and an unstaged change, caches, and a home with files.
fn work_tree(lab: &Lab) -> PathBuf {
    let root = lab.project(
        "p",
        &[
            ("pyproject.toml", ""),
            ("test_vandal.py", VANDAL),
            ("data.txt", "original"),
            ("script.sh", "#!/bin/sh\n"),
            ("folder/inner.txt", "inner"),
            ("__pycache__/old.pyc", "not really"),
            (".gitignore", "__pycache__\n"),
            ("staged.txt", "one"),
            ("unstaged.txt", "one"),
        ],
    );
    write_files(
        &lab.home(),
        &[("diary.txt", "dear diary"), (".config/tool/settings", "x")],
    );
    fs::set_permissions(root.join("script.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let home = lab.home();
    git(&root, &home, &["init", "-q", "-b", "trunk"]);
    git(&root, &home, &["add", "."]);
    git(&root, &home, &["commit", "-q", "-m", "first"]);
    fs::write(root.join("staged.txt"), "stashed").unwrap();
    git(&root, &home, &["stash", "-q"]);
    fs::write(root.join("staged.txt"), "two").unwrap();
    git(&root, &home, &["add", "."]);
    fs::write(root.join("unstaged.txt"), "two").unwrap();
    root
}

#[test]
fn nothing_that_tests_write_stays_in_project_git_home_or_temporary_folders() {
    for way in [&[][..], &["--fresh"], &["--network", "host"]] {
        let lab = Lab::new();
        let root = work_tree(&lab);
        let before = Tree::of(&lab.home());
        let mut command = lab.scan(
            &root,
            &[
                "--runs",
                "4",
                "--fresh-starts",
                "2",
                "--jobs",
                "2",
                "--format",
                "json",
            ],
        );
        command.args(way);
        let report = finish(command).expect(0).report();
        assert_all_clean(&report);
        assert_eq!(
            (report.project.branch.as_deref(), report.project.dirty),
            (Some("trunk"), Some(true))
        );
        before.assert_unchanged();
        for folder in ["/tmp", "/var/tmp", "/dev/shm"] {
            assert!(
                !Path::new(folder)
                    .join("breakmycode-it-left-behind")
                    .exists(),
                "{folder}"
            );
        }
        lab.assert_clean();
    }
}

#[test]
fn under_copy_the_project_is_a_copy() {
    let lab = Lab::new();
    let root = work_tree(&lab);
    let before = Tree::of(&root);
    let only = [
        "test_vandal.py::test_sees_what_is_there",
        "test_vandal.py::test_writes_into_the_project",
        "test_vandal.py::test_writes_into_git",
    ];
    let mut command = lab.scan(
        &root,
        &["--runs", "2", "--copy", "--format", "json", "--only"],
    );
    command.args(only);
    let report = finish(command).expect(0).report();
    assert_all_clean(&report);
    assert_eq!(
        report
            .environment
            .as_ref()
            .map(|environment| environment.isolation.as_str()),
        Some("copy")
    );
    before.assert_unchanged();
    lab.assert_clean();
}

#[test]
fn a_second_scan_leaves_the_cache_of_the_first_as_it_was() {
    let lab = Lab::new();
    let project = lab.project("p", CLEAN);
    finish(lab.scan(&project, &["--runs", "2"])).expect(0);
    let names = |folder: PathBuf| -> Vec<_> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        names
    };
    let before = (
        names(lab.path("cache/breakmycode")),
        names(lab.path("data/breakmycode")),
    );
    finish(lab.scan(&project, &["--runs", "2"])).expect(0);
    assert_eq!(
        (
            names(lab.path("cache/breakmycode")),
            names(lab.path("data/breakmycode"))
        ),
        before
    );
    assert_eq!(names(lab.path("config")), [] as [&OsStr; 0]);
}

/// A server that answers everybody until the end of the test.
fn server() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || listener.incoming().for_each(drop));
    port
}

#[test]
fn a_test_that_needs_the_network_is_isolation_dependent_and_passes_with_it() {
    let lab = Lab::new();
    let port = server();
    let test = format!(
        "import socket\n\ndef test_needs():\n    socket.create_connection((\"127.0.0.1\", {port})).close()\n\ndef test_calm():\n    pass\n"
    );
    let project = lab.project("p", &[("test_net.py", &test)]);
    let before = Tree::of(&lab.home());
    let report = finish(lab.scan(&project, &["--runs", "4", "--format", "json"]))
        .expect(3)
        .report();
    let class = |name: &str| {
        report
            .tests
            .iter()
            .find(|test| test.id == format!("test_net.py::{name}"))
            .unwrap()
            .class
    };
    assert_eq!(
        (class("test_needs"), class("test_calm")),
        (TestClass::IsolationDependent, TestClass::Clean)
    );
    assert_eq!(
        (report.totals.isolation_dependent, report.exit_code),
        (1, 3)
    );
    assert_eq!(report.environment.unwrap().network, "loopback");
    let text = finish(lab.typed(["show"])).expect(0).stdout;
    assert!(
        text.contains("--network host"),
        "the way out is not named:\n{text}"
    );
    let report = finish(lab.scan(
        &project,
        &["--runs", "4", "--network", "host", "--format", "json"],
    ))
    .expect(0)
    .report();
    assert_all_clean(&report);
    assert_eq!(report.environment.unwrap().network, "host");
    before.assert_unchanged();
    lab.assert_clean();
}

#[test]
fn a_test_that_fails_inside_and_outside_is_failing() {
    let lab = Lab::new();
    let test = "import socket\n\ndef test_needs():\n    socket.create_connection((\"127.0.0.1\", 1)).close()\n";
    let project = lab.project("p", &[("test_net.py", test)]);
    let report = finish(lab.scan(&project, &["--runs", "4", "--format", "json"]))
        .expect(1)
        .report();
    assert_eq!(report.tests[0].class, TestClass::Failing);
}

#[test]
fn scans_at_the_same_time_do_not_disturb_each_other() {
    let lab = Lab::new();
    let copy = lab.fixture("fixed-port-and-file");
    let before = Tree::of(&lab.home());
    let arguments = ["--runs", "20", "--jobs", "4", "--format", "jsonl"];
    let scans = [(); 2].map(|()| Live::start(lab.scan(&copy, &arguments)));
    for scan in scans {
        scan.finish().expect(0);
    }
    before.assert_unchanged();
    lab.assert_clean();
}

#[test]
fn a_scan_that_is_killed_leaves_the_project_as_it_was() {
    let lab = Lab::new();
    let gate = Gate::new(2);
    let root = work_tree(&lab);
    write_files(&root, &[("test_zz_asks.py", &gate.test_file())]);
    let before = Tree::of(&lab.home());
    let mut live = Live::start(lab.scan(
        &root,
        &[
            "--network",
            "host",
            "--format",
            "jsonl",
            "--runs",
            "8",
            "--jobs",
            "2",
        ],
    ));
    live.wait_for_run();
    live.wait_for_run();
    live.signal(rustix::process::Signal::KILL);
    live.finish();
    crate::processes::assert_none_left(lab.folder());
    before.assert_unchanged();
}

#[test]
fn secrets_and_keys_are_not_seen_by_tests() {
    let lab = Lab::new();
    write_files(
        &lab.home(),
        &[
            (".ssh/id_ed25519", "key"),
            (".aws/credentials", "key"),
            (".netrc", "key"),
            ("plain.txt", "seen"),
        ],
    );
    let test = "import os, pathlib\n\nHOME = pathlib.Path.home()\n\n\
        def test_files():\n    assert (HOME / 'plain.txt').read_text() == 'seen'\n    \
        assert not (HOME / '.ssh' / 'id_ed25519').exists()\n    assert not (HOME / '.aws' / 'credentials').exists()\n    \
        assert not (HOME / '.netrc').exists() or (HOME / '.netrc').read_bytes() == b''\n\n\
        def test_variables():\n    assert 'DEPLOY_TOKEN' not in os.environ and os.environ['PASSED_TOKEN'] == 'p'\n    \
        assert os.environ['ORDINARY'] == 'o' and 'BREAKMYCODE_RUNS' not in os.environ\n\n\
        def test_trace():\n    assert not list(pathlib.Path(os.environ['XDG_DATA_HOME']).glob('breakmycode/trace.db*'))\n";
    let project = lab.project("p", &[("test_a.py", test)]);
    let mut command = lab.scan(
        &project,
        &[
            "--fresh-starts",
            "2",
            "--format",
            "json",
            "--pass-env",
            "PASSED_TOKEN",
        ],
    );
    command.envs([
        ("DEPLOY_TOKEN", "d"),
        ("PASSED_TOKEN", "p"),
        ("ORDINARY", "o"),
        ("BREAKMYCODE_RUNS", "4"),
    ]);
    let done = finish(command).expect(0);
    let report = done.report();
    assert_all_clean(&report);
    let problem = report
        .problems
        .iter()
        .find(|problem| problem.kind == "variables_withheld")
        .unwrap();
    assert!(
        problem.text.contains("DEPLOY_TOKEN") && !problem.text.contains("PASSED_TOKEN"),
        "{problem:?}"
    );
    assert!(!done.stdout.contains("\"d\""));
}
