//! One stage of runs: gives the orders to the executor and deals with everything that happens meanwhile.

use std::collections::HashMap;
use std::path::Path;

use bmc_pytest::diagnose;
use bmc_pytest::interpreter::Discovery;
use bmc_sandbox::Isolation;
use bmc_types::conditions::Purpose;
use bmc_types::{Advice, EventKind, Outcome, Problem, TestId};

use super::recorder::Progress;
use super::refusal::{launch_failure, none_of_only, trouble_advice};
use super::scan::{Stage, Work, count};
use crate::history::{History, RunRecord};
use crate::runner::{Collection, Control, Ended, Executor, Signal, StartFailure, StartOrder};
use crate::store::FinishedRun;

/// After so many starts that fail in a row there is no point in going on.
const STARTS_GIVEN_UP: u32 = 3;

/// What the stages need to know of each other.
#[derive(Default)]
pub(super) struct Tally {
    /// Test → how often it failed, for the live display.
    failed: HashMap<u32, u32>,
    pub(super) done: u32,
    /// The list for the display, made again after each run and not at each tick.
    shown: Vec<(String, u32, u32)>,
}

impl Work<'_> {
    /// Makes the ordered runs and deals with everything that happens meanwhile.
    pub(super) fn stage(
        &mut self,
        name: &str,
        orders: Vec<StartOrder>,
        executor: &mut Executor<'_>,
        discovery: &Discovery,
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
    pub(super) fn shortened(&mut self, tally: &Tally) {
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

    pub(super) fn note_hazards(&mut self, hazards: &[(String, String)]) {
        for (kind, words) in hazards {
            if matches!(kind.as_str(), "sockets" | "writable_file" | "sqlite") {
                self.problem(Problem::note(
                    "fork_hazard",
                    format!("watched in forked children: {words}"),
                ));
            }
        }
    }

    pub(super) fn fall_back(&mut self, kind: &str, words: &str) {
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
    pub(super) fn first_collection(
        &mut self,
        collection: &Collection,
        discovery: &Discovery,
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
            return Some(vec![self.zero_tests(&context, collection.deselected)]);
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

    fn zero_tests(&self, context: &diagnose::Context, deselected: u64) -> Advice {
        let mut advice = diagnose::zero_tests(context, deselected);
        if deselected > 0 && !self.request.pytest_args.is_empty() {
            let given = self.request.pytest_args.join(" ");
            advice.help = vec![format!(
                "breakmycode .   without `-- {given}`, which leaves out every test"
            )];
        }
        advice
    }

    pub(super) fn start_failure(
        &self,
        failure: &StartFailure,
        discovery: &Discovery,
    ) -> Vec<Advice> {
        let context = self.context(discovery);
        let collection = &failure.collection;
        if !collection.errors.is_empty() {
            return diagnose::from_collection(&collection.errors, &context);
        }
        if collection.complete && collection.tests.is_empty() {
            return vec![self.zero_tests(&context, collection.deselected)];
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
    pub(super) fn keep(&mut self, history: &mut History, record: RunRecord, tally: &mut Tally) {
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
        let kind = EventKind::RunFinished {
            run: record.run,
            seconds: record.seconds,
            outcomes,
            failed: record.failures.len() as u64,
            processes: record.processes,
        };
        let (tests, signatures) = self.stored;
        let seconds_so_far = self.recorder.seconds();
        let stored = self.recorder.event_with(kind, |store, id, events| {
            let finished = FinishedRun {
                run: &record,
                tests: (tests, &history.tests()[tests..]),
                signatures: (signatures, &history.signatures()[signatures..]),
                events,
                seconds_so_far,
            };
            store.add_run(id, finished)
        });
        if stored {
            self.stored = (history.tests().len(), history.signatures().len());
        }
        if record.conditions.purpose == Purpose::Scan {
            tally.add(&record, history.tests());
        }
        history.push(record);
    }
}

impl Tally {
    pub(super) fn add(&mut self, run: &RunRecord, tests: &[TestId]) {
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
