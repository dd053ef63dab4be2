//! What cannot be done is said, with the step that failed, and never looks like an exit of the payload.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use bmc_sandbox::{Isolation, Launcher, SandboxError};

use crate::support::{LEVELS, Site, launcher};

/// The error and its sources in one line.
fn text(error: &SandboxError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(&format!(": {inner}"));
        source = inner.source();
    }
    text
}

#[test]
fn a_missing_program_is_a_failed_step_at_every_level() {
    let site = Site::new();
    for isolation in LEVELS {
        let mut spec = site.spec("/no/such/program", &[]);
        spec.isolation = isolation;
        match launcher().spawn(spec).unwrap_err() {
            SandboxError::Setup { step, source } => {
                assert_eq!(step, "start of the program /no/such/program");
                assert_eq!(source.kind(), io::ErrorKind::NotFound);
            }
            other => panic!("{isolation}: {other:?}"),
        }
    }
}

#[test]
fn a_program_that_is_not_executable_is_a_failed_step() {
    let site = Site::new();
    let error = launcher()
        .spawn(site.spec(site.project.join("kept.txt"), &[]))
        .unwrap_err();
    assert!(
        text(&error).contains("Permission denied"),
        "{}",
        text(&error)
    );
}

#[test]
fn contradictions_are_named() {
    let site = Site::new();
    let told = |change: &dyn Fn(&mut bmc_sandbox::Spec)| {
        let mut spec = site.shell("true");
        change(&mut spec);
        text(&launcher().spawn(spec).unwrap_err())
    };
    let missing = || PathBuf::from("/no/such/directory");
    assert_eq!(
        told(&|spec| spec.project = missing()),
        "isolate /no/such/directory: it is not a directory"
    );
    assert!(told(&|spec| spec.cwd = missing()).contains("working directory"));
    assert!(told(&|spec| spec.writable = vec![missing()]).contains("does not exist"));
    assert!(told(&|spec| spec.project = "/".into()).contains("root directory"));
    assert!(told(&|spec| spec.program = "sh".into()).contains("as a path"));
    let descriptor = || std::fs::File::open("/dev/null").unwrap().into();
    assert!(told(&|spec| spec.inherit = vec![(descriptor(), 2)]).contains("3 or more"));
    assert!(
        told(&|spec| spec.inherit = vec![(descriptor(), 5), (descriptor(), 5)])
            .contains("distinct")
    );
}

#[test]
fn a_working_directory_that_the_world_does_not_have_is_a_failed_step() {
    let site = Site::new();
    let hidden = site.root.path().join("hidden");
    std::fs::create_dir(&hidden).unwrap();
    let mut spec = site.shell("true");
    spec.cwd = hidden.clone();
    let told = text(&launcher().spawn(spec).unwrap_err());
    assert!(
        told.contains(&format!("start of the program {}", hidden.display())),
        "{told}"
    );
}

#[test]
fn a_nul_in_the_environment_is_a_failed_step() {
    let site = Site::new();
    let mut spec = site.shell("true");
    spec.env.push(("A".into(), "b\0c".into()));
    assert!(matches!(
        launcher().spawn(spec),
        Err(SandboxError::Setup { .. })
    ));
}

#[test]
fn a_large_environment_arrives() {
    let site = Site::new();
    let mut spec = site.shell("echo ${#BIG1} ${#BIG9}");
    for number in 0..10 {
        spec.env
            .push((format!("BIG{number}").into(), "x".repeat(100_000).into()));
    }
    assert_eq!(crate::support::said(spec), "100000 100000\n");
}

#[test]
fn only_full_worlds_have_children() {
    let site = Site::new();
    for isolation in [Isolation::FilesOnly, Isolation::Copy] {
        let mut spec = site.shell("sleep 1000");
        spec.isolation = isolation;
        let world = launcher().spawn(spec).unwrap();
        match world.child_world() {
            Err(SandboxError::NoChildren { isolation: named }) => assert_eq!(named, isolation),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_helper_that_cannot_start_is_named() {
    let site = Site::new();
    let launcher = Launcher::with_executable(PathBuf::from("/no/such/helper")).unwrap();
    match launcher.spawn(site.shell("true")) {
        Err(SandboxError::Helper { executable, .. }) => {
            assert_eq!(executable, Path::new("/no/such/helper"))
        }
        other => panic!("{other:?}"),
    }
    let probe = launcher.probe();
    assert_eq!(probe.level, Isolation::Copy);
    assert!(
        probe
            .steps
            .iter()
            .any(|step| !step.ok && step.detail.contains("/no/such/helper")),
        "{probe:?}"
    );
}

#[test]
fn a_binary_that_does_not_intercept_is_no_helper() {
    let site = Site::new();
    let launcher = Launcher::with_executable(PathBuf::from("/bin/true")).unwrap();
    let told = text(&launcher.spawn(site.shell("true")).unwrap_err());
    assert!(told.contains("helper process"), "{told}");
}

#[test]
fn the_probe_says_full_here() {
    let probe = launcher().probe();
    assert_eq!(probe.level, Isolation::Full, "{probe:#?}");
    assert!(probe.steps.iter().all(|step| step.ok), "{probe:#?}");
    for name in [
        "namespaces",
        "loopback network",
        "overlay",
        "devices",
        "capabilities",
    ] {
        assert!(
            probe.steps.iter().any(|step| step.name == name),
            "{name} was not tried: {probe:#?}"
        );
    }
}

/// What the probe says in a place that a script has prepared.
fn probe_after(preparation: &str) -> String {
    let script = format!("{preparation}; exec \"$TOOL\" --probe");
    let done = std::process::Command::new("unshare")
        .args(["-Urmpf", "--mount-proc", "sh", "-ec", &script])
        .env("TOOL", crate::support::tool())
        .output()
        .unwrap();
    assert_eq!(
        done.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn the_probe_names_a_limit_on_namespaces() {
    let told = probe_after("echo 0 > /proc/sys/user/max_user_namespaces");
    assert!(
        told.starts_with("copy\nok request\nno namespaces: "),
        "{told}"
    );
    assert!(told.contains("max_user_namespaces"), "{told}");
}

#[test]
fn the_probe_names_a_covered_process_list() {
    let told = probe_after("mount -t tmpfs cover /proc/irq");
    assert!(
        told.contains("ok scratch memory\nno process list: "),
        "{told}"
    );
    assert!(told.contains("parts of /proc are covered"), "{told}");
    assert_eq!(
        told.lines().filter(|line| line.starts_with("no ")).count(),
        1,
        "{told}"
    );
}
