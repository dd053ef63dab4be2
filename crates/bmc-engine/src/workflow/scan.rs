//! The main workflow: find the environment, run N times, confirm, compare, judge, keep. Also takes up a scan that was stopped.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bmc_pytest::diagnose;
use bmc_sandbox::Isolation;
use bmc_types::conditions::Purpose;
use bmc_types::report::PlanFacts;
use bmc_types::{Advice, EventKind, Outcome, Problem, ScanId, ScanReport, ScanStatus, TestId};

use super::assemble::{Facts, assemble};
use super::confirm;
use super::environment::{self, Place};
use super::plan;
use super::recorder::{EventSink, Progress, Recorder};
use super::request::{ScanRequest, Setting};
use crate::history::{History, RunRecord};
use crate::project::Snapshot;
use crate::runner::{
    Collection, Control, Ended, Executor, Limits, RunOrder, Seeds, Signal, StartFailure, StartOrder,
};
use crate::store::{Store, StoreError};

/// Limit of one collection. The slowest real one seen took 40 s; a hang should still end within a coffee.
pub(super) const COLLECT_TIMEOUT: Duration = Duration::from_secs(600);

/// After so many starts that fail in a row there is no point in going on.
const STARTS_GIVEN_UP: u32 = 3;

/// Least number of whole-suite fresh runs behind the verdict "artefact of forking": a subset cannot show what other tests cause.
const WHOLE_RUNS_FOR_ARTEFACT: u32 = 3;

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

struct Work<'a> {
    request: &'a ScanRequest,
    setting: &'a Setting,
    recorder: Recorder<'a>,
    facts: Facts,
    history: History,
    snapshot: Snapshot,
    /// How many tests and signatures are in the trace.
    stored: (usize, usize),
}

/// How a stage ended.
#[derive(Debug, PartialEq, Eq)]
enum Stage {
    Done,
    Interrupted,
    Changed,
    Refused(Vec<Advice>),
}

/// What the stages need to know of each other.
#[derive(Default)]
struct Tally {
    /// Test → how often it failed, for the live display.
    failed: HashMap<u32, u32>,
    done: u32,
    /// The list for the display, made again after each run and not at each tick.
    shown: Vec<(String, u32, u32)>,
}

impl Work<'_> {
    fn problem(&mut self, problem: Problem) {
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

    fn run(mut self, place: Place, discovery: &bmc_pytest::interpreter::Discovery) -> ScanReport {
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

    fn stages(
        &mut self,
        mut place: Place,
        discovery: &bmc_pytest::interpreter::Discovery,
    ) -> Stage {
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

    fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for run in self.history.runs_for(Purpose::Scan) {
            tally.add(run, self.history.tests());
        }
        tally
    }

    /// Failures that are the environment's and not the code's, such as a fixture whose plugin is not installed.
    fn environment_failures(&mut self, discovery: &bmc_pytest::interpreter::Discovery) {
        let context = self.context(discovery);
        let mut found: Vec<Advice> = Vec::new();
        for failure in self.history.runs().iter().flat_map(|run| &run.failures) {
            let Some(text) = &failure.text else { continue };
            let nodeid = &self.history.tests()[failure.test as usize].nodeid;
            if let Some(advice) =
                diagnose::from_test_failure(nodeid, &text.message, &text.longrepr, &context)
                && !found
                    .iter()
                    .any(|a| a.code == advice.code && a.headline == advice.headline)
            {
                found.push(advice);
            }
        }
        for advice in found {
            let help = advice
                .help
                .first()
                .map(|h| format!(" ({h})"))
                .unwrap_or_default();
            self.problem(Problem::warning(
                "environment",
                format!("BMC-{}: {}{help}", advice.code, advice.headline),
            ));
        }
    }

    /// Fresh processes for what only forked children showed.
    fn confirm(
        &mut self,
        executor: &mut Executor<'_>,
        seeds: Seeds,
        place: &Place,
        discovery: &bmc_pytest::interpreter::Discovery,
        tally: &mut Tally,
    ) -> Stage {
        let mut begun = false;
        let mut stage = Stage::Done;
        while let Some((suspects, needed)) = confirm::suspects(&self.history) {
            if !begun {
                begun = true;
                self.recorder.event(EventKind::StageStarted {
                    stage: "confirm".to_owned(),
                });
            }
            let whole = self.whole_runs() < WHOLE_RUNS_FOR_ARTEFACT;
            let selected = (!whole).then_some(suspects);
            let batch = needed.min(executor_batch(self.request.jobs));
            let orders = self.extra_orders(
                batch,
                Purpose::Confirm,
                executor,
                seeds,
                place.isolation,
                selected,
            );
            stage = self.stage("confirm", orders, executor, discovery, tally, Some(needed));
            if stage != Stage::Done {
                break;
            }
        }
        if begun {
            let runs = self.history.runs_for(Purpose::Confirm).count();
            let seconds: f64 = self
                .history
                .runs_for(Purpose::Confirm)
                .map(|r| r.seconds)
                .sum();
            let detail = format!(
                "{} for what only forked children had shown",
                count(runs, "fresh run")
            );
            self.recorder.event(EventKind::StageFinished {
                stage: "confirm".to_owned(),
                seconds,
                detail,
            });
        }
        stage
    }

    /// Whole-suite runs by fresh processes.
    fn whole_runs(&self) -> u32 {
        let fresh = |r: &&RunRecord| {
            r.conditions.engine == bmc_types::Engine::Fresh
                && (r.conditions.purpose == Purpose::Scan || r.conditions.selected.is_none())
                && r.conditions.purpose != Purpose::Plain
        };
        self.history.runs().iter().filter(fresh).count() as u32
    }

    /// One look outside the isolation at what fails every time.
    fn compare(
        &mut self,
        executor: &mut Executor<'_>,
        seeds: Seeds,
        place: &Place,
        discovery: &bmc_pytest::interpreter::Discovery,
        tally: &mut Tally,
    ) -> Stage {
        if place.isolation != Isolation::Full {
            return Stage::Done;
        }
        let failing = confirm::consistent_failures(&self.history);
        let already = self.history.runs_for(Purpose::Plain).next().is_some();
        if failing.is_empty() || already {
            return Stage::Done;
        }
        self.recorder.event(EventKind::StageStarted {
            stage: "plain".to_owned(),
        });
        let mut stage = Stage::Done;
        // First alone; if one passes, also with the whole suite: it may pass because others did not run before it.
        for selected in [Some(failing.clone()), None] {
            let orders = self.extra_orders(
                1,
                Purpose::Plain,
                executor,
                seeds,
                Isolation::FilesOnly,
                selected,
            );
            stage = self.stage("plain", orders, executor, discovery, tally, Some(1));
            if stage != Stage::Done {
                break;
            }
            let passes = |run: &RunRecord| {
                failing
                    .iter()
                    .filter_map(|id| self.history.find(id))
                    .any(|test| run.outcome(test) == Outcome::Passed)
            };
            if !self.history.runs_for(Purpose::Plain).any(passes) {
                break;
            }
        }
        let seconds: f64 = self
            .history
            .runs_for(Purpose::Plain)
            .map(|r| r.seconds)
            .sum();
        let detail = format!(
            "{} compared outside the isolation",
            count(failing.len(), "failing test")
        );
        self.recorder.event(EventKind::StageFinished {
            stage: "plain".to_owned(),
            seconds,
            detail,
        });
        // A comparison that could not be made is no reason to throw the scan away.
        if matches!(stage, Stage::Refused(_)) {
            Stage::Done
        } else {
            stage
        }
    }

    fn extra_orders(
        &self,
        count: u32,
        purpose: Purpose,
        executor: &Executor<'_>,
        seeds: Seeds,
        isolation: Isolation,
        selected: Option<Vec<TestId>>,
    ) -> Vec<StartOrder> {
        let last_run = self
            .history
            .runs()
            .iter()
            .map(|r| r.run)
            .max()
            .unwrap_or(0)
            .max(self.request.runs);
        let last_start = self
            .history
            .runs()
            .iter()
            .map(|r| r.conditions.start)
            .max()
            .unwrap_or(0);
        let first_start = executor.next_start().max(last_start + 1);
        (0..count)
            .map(|i| {
                let (run, start) = (last_run + 1 + i, first_start + i);
                StartOrder {
                    start,
                    hash_seed: seeds.hash(start),
                    seed: seeds.start(start),
                    forks: Vec::new(),
                    own: Some(RunOrder {
                        run,
                        purpose,
                        seed: seeds.run(run),
                    }),
                    selected: selected.clone(),
                    isolation,
                }
            })
            .collect()
    }

    /// Makes the ordered runs and deals with everything that happens meanwhile.
    fn stage(
        &mut self,
        name: &str,
        orders: Vec<StartOrder>,
        executor: &mut Executor<'_>,
        discovery: &bmc_pytest::interpreter::Discovery,
        tally: &mut Tally,
        total: Option<u32>,
    ) -> Stage {
        if orders.is_empty() {
            return Stage::Done;
        }
        let main = name == "run";
        if main {
            self.recorder.event(EventKind::StageStarted {
                stage: name.to_owned(),
            });
        }
        let began = std::time::Instant::now();
        let mut outcome = Stage::Done;
        let mut failed_starts = 0;
        let mut stage_done = 0;
        let mut announced = self
            .history
            .runs()
            .iter()
            .any(|r| r.conditions.purpose == Purpose::Scan);
        let mut history = std::mem::take(&mut self.history);
        let ended = executor.execute(&mut history, orders, &mut |history, signal| match signal {
            Signal::Ready(collection, ready, seconds) => {
                failed_starts = 0;
                self.note_hazards(&ready.hazards);
                if !announced {
                    announced = true;
                    if let Some(advice) = self.first_collection(&collection, discovery) {
                        outcome = Stage::Refused(advice);
                        return Control::Stop;
                    }
                }
                self.recorder.event(EventKind::StartReady { start: collection.start, seconds });
                Control::Continue
            }
            Signal::FallBack(kind, words) => {
                self.fall_back(&kind, &words);
                Control::Continue
            }
            Signal::RunStarted(run, conditions) => {
                self.recorder.event(EventKind::RunStarted { run, conditions });
                Control::Continue
            }
            Signal::Failed(run, id, kind, failure) => {
                self.recorder.event(EventKind::TestOutcome {
                    run,
                    id: id.nodeid,
                    occurrence: id.occurrence,
                    outcome: kind,
                    failure: Some(*failure),
                });
                Control::Continue
            }
            Signal::RunFinished(record) => {
                let changes = self.snapshot.changes();
                if !changes.is_empty() {
                    let names: Vec<String> =
                        changes.iter().take(5).map(|c| format!("{} {}", c.path().display(), c.word())).collect();
                    let more = if changes.len() > 5 { format!(" and {} more", changes.len() - 5) } else { String::new() };
                    let words = format!("the code changed during the scan: {}{more}", names.join(", "));
                    self.problem(Problem::error("code_changed", words));
                    outcome = Stage::Changed;
                    return Control::Stop;
                }
                stage_done += 1;
                self.keep(history, *record, tally);
                let late = main && self.request.duration_s.is_some_and(|limit| self.recorder.seconds() >= limit);
                if late { Control::Drain } else { Control::Continue }
            }
            Signal::StartFailed(failure) => {
                failed_starts += 1;
                if !announced || failed_starts >= STARTS_GIVEN_UP {
                    outcome = Stage::Refused(self.start_failure(&failure, discovery));
                    return Control::Stop;
                }
                let words = format!(
                    "start {} of the interpreter did not get as far as running tests, others did ({})",
                    failure.collection.start,
                    self.start_failure(&failure, discovery).first().map_or("no reason known", |a| a.headline.as_str())
                );
                self.problem(Problem::warning("start_failed", words));
                Control::Continue
            }
            Signal::LaunchFailed(error) => {
                outcome = Stage::Refused(vec![launch_failure(&error)]);
                Control::Stop
            }
            Signal::Tick(ticker) => {
                let progress = Progress {
                    stage: name.to_owned(),
                    done: if main { tally.done } else { stage_done },
                    total,
                    outcomes: ticker.outcomes,
                    seconds: began.elapsed().as_secs_f64(),
                    running: ticker.running,
                    failing: tally.shown.clone(),
                };
                self.recorder.progress(&progress);
                Control::Continue
            }
        });
        self.history = history;
        if main {
            let detail = count(tally.done as usize, "run");
            self.recorder.event(EventKind::StageFinished {
                stage: name.to_owned(),
                seconds: began.elapsed().as_secs_f64(),
                detail,
            });
            self.shortened(tally);
        }
        self.recorder.flush();
        match ended {
            Ended::Interrupted => Stage::Interrupted,
            Ended::Done | Ended::Stopped => outcome,
        }
    }

    /// Notes in the plan when `--duration` ended it early.
    fn shortened(&mut self, tally: &Tally) {
        if self.request.duration_s.is_none() {
            return;
        }
        if let Some(plan) = &mut self.facts.plan
            && tally.done < plan.runs
            && self
                .setting
                .interrupt
                .load(std::sync::atomic::Ordering::Relaxed)
                == 0
        {
            plan.runs = tally.done;
            let stored = self.recorder.store.set_plan(&self.facts.id, plan);
            self.recorder.check(stored);
        }
    }

    fn note_hazards(&mut self, hazards: &[(String, String)]) {
        for (kind, words) in hazards {
            if matches!(kind.as_str(), "sockets" | "writable_file" | "sqlite") {
                self.problem(Problem::note(
                    "fork_hazard",
                    format!("watched in forked children: {words}"),
                ));
            }
        }
    }

    fn fall_back(&mut self, kind: &str, words: &str) {
        if let Some(plan) = &mut self.facts.plan {
            plan.engine = "fresh".to_owned();
            plan.engine_why = Some(kind.to_owned());
            plan.fresh_starts = plan.runs;
            let stored = self.recorder.store.set_plan(&self.facts.id, plan);
            self.recorder.check(stored);
            self.recorder.event(EventKind::PlanMade {
                plan: self.facts.plan.clone().expect("it is there"),
            });
        }
        self.problem(Problem::note(
            "engine",
            format!("every run is made in a fresh process, since {words}"),
        ));
    }

    /// What the first start says about the suite; advice if it cannot be scanned.
    fn first_collection(
        &mut self,
        collection: &Collection,
        discovery: &bmc_pytest::interpreter::Discovery,
    ) -> Option<Vec<Advice>> {
        if let (Some(hello), Some(environment)) = (&collection.hello, &mut self.facts.environment) {
            environment.pytest = hello.pytest.clone();
            environment.python = hello.python.clone();
            environment.switched_off = hello.switched_off.clone();
            let stored = self
                .recorder
                .store
                .set_environment(&self.facts.id, environment);
            self.recorder.check(stored);
            self.recorder.event(EventKind::EnvironmentFound {
                environment: self.facts.environment.clone().expect("it is there"),
            });
        }
        if let Some(hello) = &collection.hello
            && !hello.rootdir.is_empty()
            && Path::new(&hello.rootdir) != self.facts_root()
            && self
                .facts
                .environment
                .as_ref()
                .is_some_and(|e| e.isolation != Isolation::Copy.to_string())
        {
            let words = format!(
                "pytest takes {} as its root, so node ids are relative to that",
                hello.rootdir
            );
            self.problem(Problem::note("rootdir", words));
        }
        let context = self.context(discovery);
        if !collection.errors.is_empty() {
            let advice = diagnose::from_collection(&collection.errors, &context);
            if !self.request.continue_on_collection_errors {
                return Some(advice);
            }
            for advice in advice {
                self.problem(Problem::warning(
                    "collection",
                    format!("BMC-{}: {}", advice.code, advice.headline),
                ));
            }
        }
        if collection.tests.is_empty() {
            return Some(vec![diagnose::zero_tests(&context, collection.deselected)]);
        }
        if !collection.missing.is_empty() {
            let names: Vec<&str> = collection
                .missing
                .iter()
                .take(3)
                .map(|(id, _)| id.as_str())
                .collect();
            self.problem(Problem::warning(
                "missing",
                format!("not collected: {}", names.join(", ")),
            ));
        }
        let selected = match &self.request.only {
            only if only.is_empty() => collection.tests.len() as u64,
            only => {
                let found = only
                    .iter()
                    .filter(|id| collection.tests.iter().any(|t| t.nodeid == **id))
                    .count();
                if found == 0 {
                    return Some(vec![none_of_only(only)]);
                }
                if found < only.len() {
                    let gone: Vec<&str> = only
                        .iter()
                        .filter(|id| !collection.tests.iter().any(|t| t.nodeid == **id))
                        .map(String::as_str)
                        .take(3)
                        .collect();
                    self.problem(Problem::warning(
                        "missing",
                        format!(
                            "asked for with --only but not collected: {}",
                            gone.join(", ")
                        ),
                    ));
                }
                found as u64
            }
        };
        self.recorder.event(EventKind::CollectionFinished {
            tests: selected,
            seconds: collection.seconds,
        });
        if let Some(plan) = self.facts.plan.clone() {
            let stored = self.recorder.store.set_plan(&self.facts.id, &plan);
            self.recorder.check(stored);
            self.recorder.event(EventKind::PlanMade { plan });
        }
        None
    }

    fn facts_root(&self) -> PathBuf {
        let root = PathBuf::from(&self.facts.project.root);
        root.canonicalize().unwrap_or(root)
    }

    fn context(&self, discovery: &bmc_pytest::interpreter::Discovery) -> diagnose::Context {
        diagnose::Context::new(discovery, Path::new(&discovery.root.path))
    }

    fn start_failure(
        &self,
        failure: &StartFailure,
        discovery: &bmc_pytest::interpreter::Discovery,
    ) -> Vec<Advice> {
        let context = self.context(discovery);
        let collection = &failure.collection;
        if !collection.errors.is_empty() {
            return diagnose::from_collection(&collection.errors, &context);
        }
        if collection.complete && collection.tests.is_empty() {
            return vec![diagnose::zero_tests(&context, collection.deselected)];
        }
        if let Some(trouble) = &failure.trouble
            && failure.output.trim().is_empty()
        {
            return vec![trouble_advice(trouble)];
        }
        diagnose::from_output(
            &diagnose::Ending {
                code: failure.code,
                signal: failure.signal,
                timed_out: failure.timed_out,
                last_file: failure.last_file.clone(),
            },
            &failure.output,
            &context,
        )
    }

    /// Stores a finished run, then counts it.
    fn keep(&mut self, history: &mut History, record: RunRecord, tally: &mut Tally) {
        let (tests, signatures) = self.stored;
        let seconds = self.recorder.seconds();
        let id = self.facts.id.clone();
        let result = self.recorder.store.add_run(
            &id,
            &record,
            (tests, &history.tests()[tests..]),
            (signatures, &history.signatures()[signatures..]),
            seconds,
        );
        if result.is_ok() {
            self.stored = (history.tests().len(), history.signatures().len());
        }
        self.recorder.check(result);
        if let Some(words) = &record.session_error {
            let problem = Problem::warning(
                "session",
                format!("outside any test: {}", words.lines().next().unwrap_or("")),
            );
            self.problem(problem);
        }
        let codes = record
            .outcomes
            .iter()
            .filter_map(|c| Outcome::from_code(*c));
        let outcomes = codes
            .filter(|o| !matches!(o, Outcome::Missing | Outcome::NotRun))
            .count() as u64;
        self.recorder.event(EventKind::RunFinished {
            run: record.run,
            seconds: record.seconds,
            outcomes,
            failed: record.failures.len() as u64,
            processes: record.processes,
        });
        self.recorder.flush();
        if record.conditions.purpose == Purpose::Scan {
            tally.add(&record, history.tests());
        }
        history.push(record);
    }
}

impl Tally {
    fn add(&mut self, run: &RunRecord, tests: &[TestId]) {
        self.done += 1;
        for failure in &run.failures {
            *self.failed.entry(failure.test).or_default() += 1;
        }
        // Those that fail least often first: they disagree with themselves.
        let mut list: Vec<(u32, u32)> = self
            .failed
            .iter()
            .map(|(test, failed)| (*failed, *test))
            .collect();
        list.sort_unstable();
        let name = |test: u32| {
            tests
                .get(test as usize)
                .map(|id| id.nodeid.clone())
                .unwrap_or_default()
        };
        self.shown = list
            .into_iter()
            .map(|(failed, test)| (name(test), failed, self.done))
            .collect();
    }
}

/// Confirming runs that are made before looking again: each core busy twice.
fn executor_batch(jobs: u32) -> u32 {
    (jobs.max(1) * 2).max(2)
}

/// `1 run`, `2 runs`.
fn count(n: usize, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

fn nothing_ran() -> Advice {
    Advice {
        code: "E029".to_owned(),
        headline: "no run could be completed".to_owned(),
        places: Vec::new(),
        why: vec!["every process ended before it had run the tests".to_owned()],
        help: vec!["breakmycode doctor".to_owned()],
    }
}

fn none_of_only(only: &[String]) -> Advice {
    Advice {
        code: "E028".to_owned(),
        headline: "none of the tests named with --only is collected".to_owned(),
        places: only.iter().take(5).cloned().collect(),
        why: vec!["pytest collects other tests, but none with these node ids".to_owned()],
        help: vec!["python -m pytest --collect-only -q   to see the node ids there are".to_owned()],
    }
}

fn trouble_advice(trouble: &str) -> Advice {
    Advice {
        code: "E029".to_owned(),
        headline: "pytest ended before it could run the tests".to_owned(),
        places: Vec::new(),
        why: vec![trouble.to_owned()],
        help: vec!["python -m pytest --collect-only   to see it without breakmycode".to_owned()],
    }
}

fn launch_failure(error: &crate::runner::LaunchError) -> Advice {
    let mut why = Vec::new();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        why.push(error.to_string());
        cause = error.source();
    }
    Advice {
        code: "E050".to_owned(),
        headline: format!("cannot {error}"),
        places: Vec::new(),
        why,
        help: vec![
            "breakmycode doctor".to_owned(),
            "breakmycode . --copy   runs on copies of the project, without namespaces".to_owned(),
        ],
    }
}

/// A folder younger than this may belong to a scan that has not yet written its process id.
const SWEEP_AGE: Duration = Duration::from_secs(60);

/// Removes what scans that died have left in the cache.
fn sweep(scans: Option<&Path>, own: &Path) {
    let Some(scans) = scans else { return };
    for entry in std::fs::read_dir(scans).into_iter().flatten().flatten() {
        let path = entry.path();
        let young = entry
            .metadata()
            .and_then(|m| m.modified())
            .is_ok_and(|t| t.elapsed().is_ok_and(|age| age < SWEEP_AGE));
        let alive = std::fs::read_to_string(path.join("pid")).is_ok_and(|pid| {
            pid.trim()
                .parse::<u32>()
                .is_ok_and(|pid| Path::new(&format!("/proc/{pid}")).exists())
        });
        if path != own && !young && !alive {
            // What cannot be removed now is tried again by the next scan.
            let _ = crate::runner::remove_tree(&path);
        }
    }
}
