//! Which tests need fresh processes before a verdict, and how many: no verdict rests on forked children alone. Pure.

use bmc_types::conditions::{Engine, Purpose};
use bmc_types::{Outcome, TestId};

use crate::history::History;
use crate::lab::stats;

/// Most fresh processes that are spent on confirming in one scan.
///
/// A failure at 1/15 needs 45 to be called an artefact; beyond that a scan would cost more than it was asked to.
const MOST: u32 = 60;

/// Tests whose failures only forked children showed, and the fresh processes that are still needed for the one that needs most.
pub(super) fn suspects(history: &History) -> Option<(Vec<TestId>, u32)> {
    let mut list = Vec::new();
    let mut most = 0;
    for test in 0..history.tests().len() as u32 {
        let (mut forked, mut fresh) = ((0, 0), (0, 0));
        for run in history.runs() {
            if run.conditions.purpose == Purpose::Plain || run.conditions.purpose == Purpose::Replay
            {
                continue;
            }
            let outcome = run.outcome(test);
            let counts = match run.conditions.engine {
                Engine::Forked => &mut forked,
                Engine::Fresh => &mut fresh,
            };
            if outcome.is_failure() {
                counts.0 += 1;
                counts.1 += 1;
            } else if outcome == Outcome::Passed {
                counts.1 += 1;
            }
        }
        if forked.0 == 0 || fresh.0 > 0 {
            continue;
        }
        // Clean fresh processes after which "k of n forked children failed" cannot be chance any more.
        let Some(needed) = stats::clean_runs_needed(forked.0, forked.1) else {
            continue;
        };
        // An artefact is measured again in as many fresh processes as there were runs.
        let needed = needed.max(history.runs_for(Purpose::Scan).count() as u32);
        if fresh.1 < needed {
            list.push(history.tests()[test as usize].clone());
            most = most.max(needed - fresh.1);
        }
    }
    let confirmed = history.runs_for(Purpose::Confirm).count() as u32;
    let left = MOST.saturating_sub(confirmed);
    (!list.is_empty() && left > 0).then_some((list, most.min(left)))
}

/// Tests that failed in every run that counts, and did not merely hang: worth one look outside the isolation.
pub(super) fn consistent_failures(history: &History) -> Vec<TestId> {
    let scan: Vec<_> = history
        .runs()
        .iter()
        .filter(|r| r.conditions.purpose == Purpose::Scan)
        .collect();
    (0..history.tests().len() as u32)
        .filter(|test| {
            let outcomes: Vec<Outcome> = scan.iter().map(|run| run.outcome(*test)).collect();
            outcomes.iter().any(|o| o.is_failure())
                && !outcomes.contains(&Outcome::Passed)
                && outcomes
                    .iter()
                    .any(|o| o.is_failure() && !matches!(o, Outcome::TimedOut))
        })
        .map(|test| history.tests()[test as usize].clone())
        .collect()
}
