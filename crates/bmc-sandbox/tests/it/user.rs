//! Runs all other tests as an ordinary user, where they are run by root.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::is_root;

/// A number that no account has: the files of nobody else can be in the way.
const USER: &str = "54321";

#[test]
fn everything_holds_for_an_ordinary_user() {
    if !is_root() {
        // Past the capture of the test runner: a check that was left out must be seen.
        let mut stderr = std::io::stderr();
        writeln!(stderr, "not run again as an ordinary user: this is one").unwrap();
        return;
    }
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let done = Command::new("setpriv")
        .args(["--reuid", USER, "--regid", USER, "--clear-groups"])
        .arg(std::env::current_exe().unwrap())
        .env("HOME", home.path())
        .current_dir("/")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{output}");
    assert!(!output.contains("running 0 tests"), "{output}");
}
