//! How N runs are spread over fresh starts of the interpreter.

use bmc_sandbox::Isolation;
use bmc_types::TestId;
use bmc_types::conditions::Purpose;

use crate::runner::{RunOrder, Seeds, StartOrder};

/// Fresh starts for N runs: a quarter of the first 20, a tenth of the rest.
///
/// What is decided at start-up (hash seed, values made at import) shows only between starts, what is decided in the test shows in every run.
/// A start costs about as much as a run or two of a small suite (1.7 s of 2.8 s with marshmallow), a forked run nothing but its tests.
pub fn fresh_starts_for(runs: u32) -> u32 {
    match runs {
        0..=20 => runs.div_ceil(4).max(1),
        more => 5 + (more - 20).div_ceil(10),
    }
}

/// Orders for these runs (numbers from 1) of a scan with `starts` fresh starts.
///
/// Run r belongs to start ((r - 1) mod starts) + 1. In each start the last run is made by the process itself, the others by children
/// forked from it before: its own run comes last because it changes the state that they start from.
pub fn orders(
    runs: impl Iterator<Item = u32>,
    starts: u32,
    seeds: Seeds,
    isolation: Isolation,
    selected: Option<&[TestId]>,
) -> Vec<StartOrder> {
    let starts = starts.max(1);
    let mut by_start: std::collections::BTreeMap<u32, Vec<u32>> = std::collections::BTreeMap::new();
    for run in runs {
        by_start
            .entry((run - 1) % starts + 1)
            .or_default()
            .push(run);
    }
    by_start
        .into_iter()
        .map(|(start, mut runs)| {
            let order = |run| RunOrder {
                run,
                purpose: Purpose::Scan,
                seed: seeds.run(run),
            };
            let own = runs.pop().map(order);
            StartOrder {
                start,
                hash_seed: seeds.hash(start),
                seed: seeds.start(start),
                forks: runs.into_iter().map(order).collect(),
                own,
                selected: selected.map(<[TestId]>::to_vec),
                isolation,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_ordered_once_and_every_start_runs_itself() {
        for runs in [1, 2, 3, 4, 19, 20, 21, 59, 1000] {
            let starts = fresh_starts_for(runs);
            let orders = orders(1..=runs, starts, Seeds(7), Isolation::Full, None);
            assert_eq!(orders.len() as u32, starts, "{runs}");
            assert!(orders.iter().all(|o| o.own.is_some()));
            let mut numbers: Vec<u32> = orders
                .iter()
                .flat_map(|o| o.forks.iter().chain(&o.own))
                .map(|r| r.run)
                .collect();
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(1..=runs));
        }
        assert_eq!(
            (
                fresh_starts_for(20),
                fresh_starts_for(1),
                fresh_starts_for(1000)
            ),
            (5, 1, 103)
        );
    }

    #[test]
    fn what_is_left_of_a_scan_keeps_its_starts() {
        let all = orders(1..=20, 5, Seeds(7), Isolation::Full, None);
        let rest = orders([6, 11, 20].into_iter(), 5, Seeds(7), Isolation::Full, None);
        assert_eq!(
            rest.iter()
                .map(|o| (o.start, o.hash_seed))
                .collect::<Vec<_>>(),
            [(1, all[0].hash_seed), (5, all[4].hash_seed)]
        );
        assert_eq!(
            (rest[0].forks.len(), rest[0].own.as_ref().map(|r| r.run)),
            (1, Some(11))
        );
    }
}
