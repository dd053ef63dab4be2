//! Every fixture project against its truth.toml: verdicts, counts, engine, advice and exit code, and that nothing is left behind.

use std::collections::BTreeSet;
use std::fs;

use crate::common::{self, Lab, finish};
use crate::environments::{self, Environment};
use crate::tree::Tree;
use crate::truth::{Made, Truth};

/// The exit code of a scan that found flaky tests and no failing ones.
const FLAKY: i32 = 5;

/// One scan of one fixture project.
struct Check {
    project: &'static str,
    environment: Option<&'static Environment>,
    arguments: Vec<String>,
    runs: Option<u32>,
    made: Made<'static>,
}

impl Check {
    fn of(project: &'static str) -> Self {
        Self {
            project,
            environment: None,
            arguments: Vec::new(),
            runs: None,
            made: Made::default(),
        }
    }

    fn environment(mut self, name: &str) -> Self {
        self.environment = Some(environments::named(name));
        self
    }

    fn fresh(mut self) -> Self {
        self.made.fresh = true;
        self.arguments.push("--fresh".to_owned());
        self
    }

    fn copied(mut self) -> Self {
        self.made.fresh = true;
        self.arguments.push("--copy".to_owned());
        self
    }

    /// Fewer runs than the truth asks for.
    fn runs(mut self, runs: u32) -> Self {
        self.runs = Some(runs);
        self.made.fewer_runs = true;
        self
    }

    /// Scans a copy and compares.
    fn verify(self) {
        let truth = Truth::of(self.project);
        assert!(
            !self.made.fewer_runs || truth.exit_code != FLAKY,
            "{}: in a few runs a flaky test can pass or fail every time, and the exit code hangs on it",
            self.project
        );
        let environment = self
            .environment
            .unwrap_or_else(|| environments::with(&truth.requires));
        let lab = Lab::new();
        let copy = lab.fixture(self.project);
        let before = Tree::of(&lab.home());
        let mut command = lab.scan_with(environment, &copy, &["--format", "json", "--jobs", "2"]);
        command.args(["--runs", &self.runs.unwrap_or(truth.runs).to_string()]);
        // Arguments of the check replace those of the truth: both set the number of starts, or the time limit.
        if self.arguments.is_empty() {
            command.args(&truth.args);
        }
        command.args(&self.arguments);
        let done = finish(command);
        let report = done.report();
        let mut wrong = truth.differences(&report, &self.made);
        if done.code != Some(report.exit_code) {
            wrong.push(format!(
                "the process ended with {:?}, the report says {}",
                done.code, report.exit_code
            ));
        }
        assert!(
            wrong.is_empty(),
            "{} in {}:\n{}\n{}",
            self.project,
            environment.name,
            wrong.join("\n"),
            done.stderr
        );
        before.assert_unchanged();
        lab.assert_clean();
    }
}

/// Tests, one for each project, all made in the same way.
macro_rules! checks {
    ($way:ident, $change:expr, [$($name:ident $project:literal),* $(,)?]) => {
        mod $way {
            use super::Check;
            pub(super) const PROJECTS: &[&str] = &[$($project),*];
            $(
                #[test]
                fn $name() {
                    let change: fn(Check) -> Check = $change;
                    change(Check::of($project)).verify();
                }
            )*
        }
    };
}

checks!(hybrid, |check| check, [
    call_time "call-time",
    collection_random "collection-random",
    conftest_error "conftest-error",
    cov_addopts "cov-addopts",
    exit_at_import "exit-at-import",
    fixed_port_and_file "fixed-port-and-file",
    fixture_missing "fixture-missing",
    flaky_plugin "flaky-plugin",
    fork_artefacts "fork-artefacts",
    fork_files "fork-files",
    hangs_at_exit "hangs-at-exit",
    hard_exit_at_import "hard-exit-at-import",
    import_mismatch "import-mismatch",
    kinds "kinds",
    maxfail "maxfail",
    missing_module "missing-module",
    missing_plugin_option "missing-plugin-option",
    no_tests "no-tests",
    numpy_global "numpy-global",
    numpy_unseeded "numpy-unseeded",
    random_at_import "random-at-import",
    randomly "randomly",
    required_plugin "required-plugin",
    reruns_hide "reruns-hide",
    rough "rough",
    rough_delete "rough-delete",
    rough_descriptors "rough-descriptors",
    rough_fork "rough-fork",
    rough_stdout "rough-stdout",
    shop "shop",
    src_layout "src-layout",
    start_up "start-up",
    syntax_error "syntax-error",
    unstable_ids "unstable-ids",
    xdist_addopts "xdist-addopts",
]);

checks!(fresh, Check::fresh, [
    fixture_missing "fixture-missing",
    reruns_hide "reruns-hide",
    rough "rough",
    rough_fork "rough-fork",
    rough_stdout "rough-stdout",
]);

// Kinds has flaky tests, which a few runs cannot settle; everything else about it is the same in every run.
checks!(fresh_few, |check| check.fresh().runs(4), [
    kinds "kinds",
    cov_addopts "cov-addopts",
    flaky_plugin "flaky-plugin",
    hangs_at_exit "hangs-at-exit",
]);

checks!(copied, |check| check.copied().runs(3), [
    fixture_missing "fixture-missing",
    rough_delete "rough-delete",
    missing_module "missing-module",
    no_tests "no-tests",
]);

checks!(oldest, |check| check.environment("py38-pytest70"), [
    fork_files "fork-files",
    maxfail "maxfail",
    missing_module "missing-module",
    missing_plugin_option "missing-plugin-option",
    rough_delete "rough-delete",
    syntax_error "syntax-error",
]);

checks!(oldest_few, |check| check.environment("py38-pytest70").runs(4), [kinds "kinds", rough "rough"]);

checks!(subtests, |check| check.environment("py38-pytest83").runs(4), [kinds "kinds"]);

checks!(newest, |check| check.environment("py313-pytest92"), [
    fork_artefacts "fork-artefacts",
    fork_files "fork-files",
    import_mismatch "import-mismatch",
    missing_module "missing-module",
    rough_descriptors "rough-descriptors",
    syntax_error "syntax-error",
]);

checks!(newest_few, |check| check.environment("py313-pytest92").runs(4), [kinds "kinds", rough "rough"]);

/// The only project whose runs are long: every test that hangs costs its time limit and a new process.
const SLOW: &str = "crash-and-hang";
const SOMETIMES: &str = "tests/test_crash.py::test_sometimes";

fn crash_and_hang(fresh: bool) {
    let mut check = Check::of(SLOW).runs(2);
    if fresh {
        check = check.fresh();
    }
    check.made.left_out = &[SOMETIMES];
    check
        .arguments
        .extend(["--test-timeout", "1", "--", "--deselect", SOMETIMES].map(str::to_owned));
    check.verify();
}

#[test]
fn crash_and_hang_hybrid() {
    crash_and_hang(false);
}

#[test]
fn crash_and_hang_fresh() {
    crash_and_hang(true);
}

#[test]
fn crash_sometimes() {
    let truth = Truth::of(SLOW);
    let lab = Lab::new();
    let copy = lab.fixture(SLOW);
    let report = finish(lab.scan(
        &copy,
        &["--format", "json", "--runs", "40", "--only", SOMETIMES],
    ))
    .expect(5)
    .report();
    let made = Made {
        left_out: &[],
        exit_code: Some(5),
        ..Made::default()
    };
    let wrong: Vec<String> = truth
        .differences(&report, &made)
        .into_iter()
        .filter(|line| !line.ends_with(" is not in the report"))
        .collect();
    assert_eq!(wrong, [] as [String; 0]);
    assert_eq!(report.tests.len(), 1);
    lab.assert_clean();
}

#[test]
fn every_project_is_checked() {
    let there: BTreeSet<String> = fs::read_dir(common::fixtures())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let checked: BTreeSet<String> = hybrid::PROJECTS
        .iter()
        .chain([&SLOW])
        .map(|name| (*name).to_owned())
        .collect();
    assert_eq!(there, checked);
    for way in [
        fresh::PROJECTS,
        fresh_few::PROJECTS,
        copied::PROJECTS,
        oldest::PROJECTS,
        oldest_few::PROJECTS,
        subtests::PROJECTS,
        newest::PROJECTS,
        newest_few::PROJECTS,
    ] {
        assert!(
            way.iter().all(|project| there.contains(*project)),
            "{way:?}"
        );
    }
}
