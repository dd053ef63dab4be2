//! After the N runs: fresh processes for what only forked children showed, and one look outside the isolation.

use bmc_pytest::diagnose;
use bmc_pytest::interpreter::Discovery;
use bmc_sandbox::Isolation;
use bmc_types::conditions::Purpose;
use bmc_types::{Advice, EventKind, Outcome, Problem, TestId};

use super::confirm;
use super::environment::Place;
use super::scan::{Stage, Work, count};
use super::stage::Tally;
use crate::history::RunRecord;
use crate::runner::{Executor, RunOrder, Seeds, StartOrder};

/// Least number of whole-suite fresh runs behind the verdict "artefact of forking": a subset cannot show what other tests cause.
const WHOLE_RUNS_FOR_ARTEFACT: u32 = 3;

impl Work<'_> {
    /// Failures that are the environment's and not the code's, such as a fixture whose plugin is not installed.
    pub(super) fn environment_failures(&mut self, discovery: &Discovery) {
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
    pub(super) fn confirm(
        &mut self,
        executor: &mut Executor<'_>,
        seeds: Seeds,
        place: &Place,
        discovery: &Discovery,
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
    pub(super) fn whole_runs(&self) -> u32 {
        let fresh = |r: &&RunRecord| {
            r.conditions.engine == bmc_types::Engine::Fresh
                && (r.conditions.purpose == Purpose::Scan || r.conditions.selected.is_none())
                && r.conditions.purpose != Purpose::Plain
        };
        self.history.runs().iter().filter(fresh).count() as u32
    }

    /// One look outside the isolation at what fails every time.
    pub(super) fn compare(
        &mut self,
        executor: &mut Executor<'_>,
        seeds: Seeds,
        place: &Place,
        discovery: &Discovery,
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

    pub(super) fn extra_orders(
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
}

/// Confirming runs that are made before looking again: each core busy twice.
fn executor_batch(jobs: u32) -> u32 {
    (jobs.max(1) * 2).max(2)
}
