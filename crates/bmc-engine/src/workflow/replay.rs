//! Makes one recorded run again under its recorded conditions, and compares.

use std::time::Duration;

use bmc_types::conditions::{Engine, Purpose};
use bmc_types::{Failure, Outcome, ScanStatus, TestId};

use super::environment;
use super::request::{ScanRequest, Setting};
use super::scan::ScanError;
use crate::history::History;
use crate::project::Snapshot;
use crate::runner::{Control, Ended, Executor, Limits, RunOrder, Seeds, Signal, StartOrder};
use crate::store::Store;

/// One test in a replayed run.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// The test.
    pub id: TestId,
    /// What the recorded run showed.
    pub recorded: Outcome,
    /// What this run shows.
    pub now: Outcome,
    /// How it fails now.
    pub failure: Option<Failure>,
}

/// A replayed run.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayOutcome {
    /// Scan it came from.
    pub scan_id: String,
    /// Its number.
    pub run: u32,
    /// In words: engine and seeds.
    pub conditions: String,
    /// Files that differ from the scanned ones.
    pub changed: bool,
    /// Tests that failed then or now.
    pub tests: Vec<Replayed>,
    /// How many tests ran.
    pub ran: usize,
    /// The user stopped it.
    pub interrupted: bool,
    /// Why it could not be made.
    pub trouble: Option<String>,
}

/// Makes a recorded run again, whole or one test of it.
///
/// # Errors
/// No such scan or run, or an environment that is gone.
pub fn replay(
    name: &str,
    run: u32,
    nodeid: Option<&str>,
    setting: &Setting,
) -> Result<ReplayOutcome, ScanError> {
    let store = Store::open_read_only(&setting.directories.database)?;
    let id = store.resolve(name)?;
    let stored = store.load(&id)?;
    drop(store);
    let request: ScanRequest =
        serde_json::from_str(&stored.row.request).map_err(|_| ScanError::Request {
            scan: id.to_string(),
            version: stored.row.tool_version.clone(),
        })?;
    let Some(record) = stored.history.runs().iter().find(|r| r.run == run) else {
        return Err(ScanError::NoSuchRun {
            scan: id.to_string(),
            run,
            last: stored.history.runs().len() as u32,
        });
    };
    let conditions = record.conditions.clone();
    let discovery = environment::discover(&request, setting);
    let Some(interpreter) = &discovery.chosen else {
        return Err(ScanError::Changed {
            scan: id.to_string(),
            what: "the environment (no interpreter is found any more)".to_owned(),
        });
    };
    let root = stored.row.root.clone();
    let changed = Snapshot::take(&root).map(|s| s.digest()).ok().as_ref()
        != Some(&stored.row.project.tree_digest);
    let place = environment::prepare(&request, setting, &discovery, interpreter, &id).map_err(
        |source| ScanError::Io {
            what: "prepare",
            path: setting.directories.cache.clone(),
            source,
        },
    )?;
    let selected = match (nodeid, &conditions.selected) {
        (Some(nodeid), _) => Some(vec![TestId::new(nodeid)]),
        (None, Some(ids)) => Some(ids.iter().map(TestId::new).collect()),
        (None, None) => None,
    };
    let seed = match conditions.engine {
        Engine::Forked => conditions.seed,
        Engine::Fresh => conditions.start_seed,
    };
    let order = RunOrder {
        run,
        purpose: Purpose::Replay,
        seed,
    };
    let forked =
        conditions.engine == Engine::Forked && place.isolation == bmc_sandbox::Isolation::Full;
    let start = StartOrder {
        start: conditions.start,
        hash_seed: conditions.hash_seed,
        seed: conditions.start_seed,
        forks: if forked {
            vec![order.clone()]
        } else {
            Vec::new()
        },
        own: (!forked).then_some(order),
        selected,
        isolation: place.isolation,
    };
    let limits = Limits {
        jobs: 1,
        test_timeout: request
            .test_timeout_s
            .and_then(|s| Duration::try_from_secs_f64(s).ok()),
        collect_timeout: super::scan::COLLECT_TIMEOUT,
    };
    let mut executor = Executor::new(
        &place.site,
        limits,
        Seeds(request.seed),
        setting.interrupt.clone(),
        conditions.start + 1,
    );
    let mut history = History::default();
    let mut trouble = None;
    let mut failures: Vec<(TestId, Failure)> = Vec::new();
    let mut made = None;
    let ended = executor.execute(&mut history, vec![start], &mut |_, signal| match signal {
        Signal::Failed(_, id, _, failure) => {
            failures.push((id, *failure));
            Control::Continue
        }
        Signal::RunFinished(record) => {
            made = Some(*record);
            Control::Continue
        }
        Signal::StartFailed(failure) => {
            trouble = Some(failure.trouble.unwrap_or(failure.output));
            Control::Stop
        }
        Signal::LaunchFailed(error) => {
            trouble = Some(format!("cannot {error}"));
            Control::Stop
        }
        Signal::Ready(..) | Signal::FallBack(..) | Signal::RunStarted(..) | Signal::Tick(_) => {
            Control::Continue
        }
    });
    let _ = crate::runner::remove_tree(&place.site.scratch);
    let mut tests = Vec::new();
    let mut ran = 0;
    if let Some(made) = &made {
        for (index, id) in history.tests().iter().enumerate() {
            let now = made.outcome(index as u32);
            if now == Outcome::Missing {
                continue;
            }
            ran += 1;
            let recorded = stored
                .history
                .find(id)
                .map_or(Outcome::Missing, |test| record.outcome(test));
            if now.is_failure() || recorded.is_failure() || now != recorded {
                let failure = failures
                    .iter()
                    .find(|(f, _)| f == id)
                    .map(|(_, f)| f.clone());
                tests.push(Replayed {
                    id: id.clone(),
                    recorded,
                    now,
                    failure,
                });
            }
        }
    }
    Ok(ReplayOutcome {
        scan_id: id.to_string(),
        run,
        conditions: format!(
            "{} process, PYTHONHASHSEED={}, seed {:#018x}{}",
            conditions.engine.as_str(),
            conditions.hash_seed,
            conditions.seed,
            if stored.row.status == ScanStatus::Complete {
                ""
            } else {
                " (of a scan that is not complete)"
            }
        ),
        changed,
        tests,
        ran,
        interrupted: ended == Ended::Interrupted,
        trouble,
    })
}
