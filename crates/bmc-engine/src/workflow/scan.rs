//! The main workflow: find the environment, run N times, confirm, compare, judge, keep. Also takes up a scan that was stopped.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bmc_pytest::diagnose;
use bmc_pytest::interpreter::Discovery;
use bmc_sandbox::Isolation;
use bmc_types::conditions::Purpose;
use bmc_types::report::PlanFacts;
use bmc_types::{Advice, EventKind, Problem, ScanId, ScanReport, ScanStatus, TestId};

use super::assemble::{Facts, assemble};
use super::environment::{self, Place};
use super::plan;
use super::recorder::{EventSink, Recorder};
use super::refusal::nothing_ran;
use super::request::{ScanRequest, Setting};
use super::stage::Tally;
use crate::history::History;
use crate::project::Snapshot;
use crate::runner::{Executor, Limits, Seeds};
use crate::store::{Store, StoreError};

/// Limit of one collection. The slowest real one seen took 40 s; a hang should still end within a coffee.
pub(super) const COLLECT_TIMEOUT: Duration = Duration::from_secs(600);

/// Why there is not even a report.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The trace cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A folder or file of ours.
    #[error("{what} {}", path.display())]
    Io {
        /// What was being done.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// No interpreter; as advice.
    #[error("find the environment: {}", .0.headline)]
    Path(Box<Advice>),
    /// The stored request cannot be read.
    #[error(
        "resume {scan}: what it was asked for cannot be read (it was made by version {version})"
    )]
    Request {
        /// The scan.
        scan: String,
        /// The version.
        version: String,
    },
    /// A scan that is complete.
    #[error("resume {scan}: it is complete")]
    Complete {
        /// The scan.
        scan: String,
    },
    /// A run that is not in the scan.
    #[error("find run {run} of {scan}: it has {last} runs")]
    NoSuchRun {
        /// The scan.
        scan: String,
        /// The number asked for.
        run: u32,
        /// How many there are.
        last: u32,
    },
    /// The code or the environment is not what it was.
    #[error(
        "resume {scan}: {what} changed since it stopped, so old and new runs must not be mixed"
    )]
    Changed {
        /// The scan.
        scan: String,
        /// What changed.
        what: String,
    },
}

/// Scans a project.
///
/// # Errors
/// Only what prevents a report: a path that is not there, a trace that cannot be opened, a folder of ours that cannot be made.
/// A project that cannot be run is a report without a result.
pub fn scan(
    request: &ScanRequest,
    setting: &Setting,
    sink: &mut dyn EventSink,
) -> Result<ScanReport, ScanError> {
    let discovery = environment::discover(request, setting);
    if let Some(error) = &discovery.error
        && matches!(
            error,
            bmc_pytest::interpreter::EnvironmentError::NoSuchPath { .. }
        )
    {
        return Err(ScanError::Path(Box::new(error.advice())));
    }
    let store = Store::open(&setting.directories.database)?;
    let root = discovery.root.path.clone();
    let snapshot = Snapshot::take(&root).map_err(|source| ScanError::Io {
        what: "read",
        path: root.clone(),
        source,
    })?;
    let project = environment::project_facts(&root, &snapshot, setting);
    let mut bytes = [0; 6];
    getrandom::fill(&mut bytes).map_err(|e| ScanError::Io {
        what: "get random numbers from",
        path: "/dev/urandom".into(),
        source: std::io::Error::other(e.to_string()),
    })?;
    let id = ScanId::from_bytes(bytes);
    let started_at = (setting.now)();
    let request_json =
        serde_json::to_string(request).expect("a request has string keys and finite numbers");
    store.begin_scan(&id, &started_at, &root, &request_json, &project)?;
    let recorder = Recorder::new(store, id.clone(), sink, 0, 0);
    let facts = Facts {
        id,
        status: ScanStatus::Running,
        started_at,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        seconds: 0.0,
        project,
        environment: None,
        plan: None,
        problems: Vec::new(),
        advice: Vec::new(),
    };
    let mut work = Work {
        request,
        setting,
        recorder,
        facts,
        history: History::default(),
        snapshot,
        stored: (0, 0),
    };
    work.recorder.event(EventKind::ScanStarted {
        project: work.facts.project.clone(),
    });
    if !work.snapshot.unreadable().is_empty() {
        let names: Vec<String> = work
            .snapshot
            .unreadable()
            .iter()
            .take(3)
            .map(|p| p.display().to_string())
            .collect();
        let words = format!(
            "cannot be read, so changes to it are not noticed: {}",
            names.join(", ")
        );
        work.problem(Problem::warning("unreadable", words));
    }
    let interpreter = match (&discovery.chosen, &discovery.error) {
        (Some(interpreter), _) => interpreter,
        (None, Some(error)) => return Ok(work.refuse(vec![error.advice()])),
        (None, None) => unreachable!("a discovery without an interpreter has an error"),
    };
    let place = environment::prepare(request, setting, &discovery, interpreter, &work.facts.id)
        .map_err(|source| ScanError::Io {
            what: "prepare",
            path: setting.directories.cache.clone(),
            source,
        })?;
    Ok(work.run(place, &discovery))
}

/// Goes on with a scan that was stopped.
///
/// # Errors
/// As [`scan`], and when the scan is complete or something changed since.
pub fn resume(
    name: &str,
    setting: &Setting,
    sink: &mut dyn EventSink,
) -> Result<ScanReport, ScanError> {
    let store = Store::open(&setting.directories.database)?;
    let id = store.resolve(name)?;
    let stored = store.load(&id)?;
    let row = stored.row;
    let request: ScanRequest =
        serde_json::from_str(&row.request).map_err(|_| ScanError::Request {
            scan: id.to_string(),
            version: row.tool_version.clone(),
        })?;
    if matches!(row.status, ScanStatus::Complete | ScanStatus::NoResult) {
        return Err(ScanError::Complete {
            scan: id.to_string(),
        });
    }
    let changed = |what: String| ScanError::Changed {
        scan: id.to_string(),
        what,
    };
    let discovery = environment::discover(&request, setting);
    let root = row.root.clone();
    let snapshot = Snapshot::take(&root).map_err(|source| ScanError::Io {
        what: "read",
        path: root.clone(),
        source,
    })?;
    if snapshot.digest() != row.project.tree_digest {
        return Err(changed("the code".to_owned()));
    }
    let Some(interpreter) = &discovery.chosen else {
        return Err(changed(
            "the environment (no interpreter is found any more)".to_owned(),
        ));
    };
    let place = environment::prepare(&request, setting, &discovery, interpreter, &id).map_err(
        |source| ScanError::Io {
            what: "prepare",
            path: setting.directories.cache.clone(),
            source,
        },
    )?;
    if let Some(before) = &row.environment {
        for (what, old, new) in [
            ("Python", &before.python, &place.facts.python),
            (
                "the interpreter",
                &before.executable,
                &place.facts.executable,
            ),
            ("pytest", &before.pytest, &place.facts.pytest),
            ("the isolation", &before.isolation, &place.facts.isolation),
        ] {
            if old != new {
                return Err(changed(format!("{what} ({old}, now {new})")));
            }
        }
        if before.plugins != place.facts.plugins {
            return Err(changed("the set of pytest plugins".to_owned()));
        }
    }
    let events = store.events(&id)?;
    let (seq, before_ms) = events.last().map_or((0, 0), |e| {
        (e.seq, e.at_ms.max((row.seconds * 1000.0) as u64))
    });
    store.reopen(&id)?;
    let stored = (
        stored.history.tests().len(),
        stored.history.signatures().len(),
        stored.history,
    );
    let recorder = Recorder::new(store, id.clone(), sink, seq, before_ms);
    let mut facts = Facts::from(row);
    facts.status = ScanStatus::Running;
    let mut work = Work {
        request: &request,
        setting,
        recorder,
        facts,
        history: stored.2,
        snapshot,
        stored: (stored.0, stored.1),
    };
    work.recorder.event(EventKind::ScanStarted {
        project: work.facts.project.clone(),
    });
    Ok(work.run(place, &discovery))
}

pub(super) struct Work<'a> {
    pub(super) request: &'a ScanRequest,
    pub(super) setting: &'a Setting,
    pub(super) recorder: Recorder<'a>,
    pub(super) facts: Facts,
    pub(super) history: History,
    pub(super) snapshot: Snapshot,
    /// How many tests and signatures are in the trace.
    pub(super) stored: (usize, usize),
}

/// How a stage ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Done,
    Interrupted,
    Changed,
    Refused(Vec<Advice>),
}

impl Work<'_> {
    pub(super) fn problem(&mut self, problem: Problem) {
        if !self.facts.problems.contains(&problem) {
            self.facts.problems.push(problem.clone());
            self.recorder.event(EventKind::ProblemFound { problem });
        }
    }

    fn refuse(mut self, advice: Vec<Advice>) -> ScanReport {
        self.facts.advice = advice.clone();
        self.recorder.event(EventKind::Refused { advice });
        self.close(ScanStatus::NoResult)
    }

    /// Makes and stores the report.
    fn close(mut self, status: ScanStatus) -> ScanReport {
        self.facts.status = status;
        self.facts.seconds = self.recorder.seconds();
        if let Some(fault) = self.recorder.fault() {
            let problem = Problem::warning("trace", fault);
            if !self.facts.problems.contains(&problem) {
                self.facts.problems.push(problem);
            }
        }
        let stored = self.recorder.store.set_problems(
            &self.facts.id,
            &self.facts.problems,
            &self.facts.advice,
        );
        self.recorder.check(stored);
        let report = assemble(self.facts, &self.history);
        self.recorder.event(EventKind::ScanFinished {
            status: report.status.as_str().to_owned(),
            exit_code: report.exit_code,
            seconds: report.seconds,
        });
        self.recorder.flush();
        let finished =
            ScanId::parse(&report.scan_id).map(|id| self.recorder.store.finish_scan(&id, &report));
        if let Some(result) = finished {
            self.recorder.check(result);
        }
        report
    }

    fn run(mut self, place: Place, discovery: &Discovery) -> ScanReport {
        let scratch = place.site.scratch.clone();
        sweep(scratch.parent(), &scratch);
        let outcome = self.stages(place, discovery);
        // What cannot be removed now is swept by the next scan.
        let _ = crate::runner::remove_tree(&scratch);
        match outcome {
            Stage::Done => self.close(ScanStatus::Complete),
            Stage::Interrupted => self.close(ScanStatus::Interrupted),
            Stage::Changed => self.close(ScanStatus::CodeChanged),
            Stage::Refused(advice) => self.refuse(advice),
        }
    }

    fn stages(&mut self, mut place: Place, discovery: &Discovery) -> Stage {
        for problem in std::mem::take(&mut place.problems) {
            self.problem(problem);
        }
        self.facts.environment = Some(place.facts.clone());
        self.recorder.event(EventKind::EnvironmentFound {
            environment: place.facts.clone(),
        });
        let stored = self
            .recorder
            .store
            .set_environment(&self.facts.id, &place.facts);
        self.recorder.check(stored);

        let seeds = Seeds(self.request.seed);
        let runs = self.request.runs.max(1);
        let can_fork = place.isolation == Isolation::Full && !self.request.fresh;
        let starts = match (can_fork, self.request.fresh_starts) {
            (false, _) => runs,
            (true, Some(starts)) => starts.clamp(1, runs),
            (true, None) => plan::fresh_starts_for(runs),
        };
        let limits = Limits {
            // Copies share ports and /tmp with each other, so they go one at a time.
            jobs: if place.isolation == Isolation::Copy {
                1
            } else {
                self.request.jobs.max(1)
            },
            test_timeout: self
                .request
                .test_timeout_s
                .and_then(|s| Duration::try_from_secs_f64(s).ok()),
            collect_timeout: COLLECT_TIMEOUT,
        };
        self.facts.plan = Some(PlanFacts {
            runs,
            fresh_starts: starts,
            engine: if can_fork { "hybrid" } else { "fresh" }.to_owned(),
            engine_why: (!can_fork && !self.request.fresh)
                .then(|| "children cannot be forked into copies of the project".to_owned()),
            jobs: limits.jobs,
            seed: format!("{:#018x}", self.request.seed),
            order: "collected".to_owned(),
            test_timeout_s: self.request.test_timeout_s,
            pytest_args: self.request.pytest_args.clone(),
            only: self.request.only.clone(),
            from: self.request.from.clone(),
        });
        let only: Option<Vec<TestId>> = (!self.request.only.is_empty())
            .then(|| self.request.only.iter().map(TestId::new).collect());
        let done: Vec<u32> = self
            .history
            .runs_for(Purpose::Scan)
            .map(|r| r.run)
            .collect();
        let orders = plan::orders(
            (1..=runs).filter(|r| !done.contains(r)),
            starts,
            seeds,
            place.isolation,
            only.as_deref(),
        );
        let mut executor = Executor::new(
            &place.site,
            limits,
            seeds,
            self.setting.interrupt.clone(),
            starts + 1,
        );
        let mut tally = self.tally();

        let stage = self.stage(
            "run",
            orders,
            &mut executor,
            discovery,
            &mut tally,
            Some(runs),
        );
        if stage != Stage::Done {
            return stage;
        }
        if self.history.runs_for(Purpose::Scan).next().is_none() {
            return Stage::Refused(vec![nothing_ran()]);
        }
        self.environment_failures(discovery);
        let stage = self.confirm(&mut executor, seeds, &place, discovery, &mut tally);
        if stage != Stage::Done {
            return stage;
        }
        self.compare(&mut executor, seeds, &place, discovery, &mut tally)
    }

    pub(super) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for run in self.history.runs_for(Purpose::Scan) {
            tally.add(run, self.history.tests());
        }
        tally
    }

    pub(super) fn facts_root(&self) -> PathBuf {
        let root = PathBuf::from(&self.facts.project.root);
        root.canonicalize().unwrap_or(root)
    }

    pub(super) fn context(&self, discovery: &Discovery) -> diagnose::Context {
        diagnose::Context::new(discovery, Path::new(&discovery.root.path))
    }
}

/// `1 run`, `2 runs`.
pub(super) fn count(n: usize, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

/// A folder without a process id that is younger than this may belong to a scan that is about to write it.
const SWEEP_AGE: Duration = Duration::from_secs(60);

/// Removes what scans that died have left in the cache.
fn sweep(scans: Option<&Path>, own: &Path) {
    let Some(scans) = scans else { return };
    for entry in std::fs::read_dir(scans).into_iter().flatten().flatten() {
        let path = entry.path();
        let alive = match std::fs::read_to_string(path.join("pid")) {
            Ok(pid) => pid
                .trim()
                .parse::<u32>()
                .is_ok_and(|pid| Path::new(&format!("/proc/{pid}")).exists()),
            Err(_) => entry
                .metadata()
                .and_then(|m| m.modified())
                .is_ok_and(|t| t.elapsed().is_ok_and(|age| age < SWEEP_AGE)),
        };
        if path != own && !alive {
            // What cannot be removed now is tried again by the next scan.
            let _ = crate::runner::remove_tree(&path);
        }
    }
}
