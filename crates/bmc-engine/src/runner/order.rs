//! What is to be run: starts of the interpreter, and the runs that each of them makes. Seeds come from the scan seed alone.

use bmc_sandbox::Isolation;
use bmc_types::TestId;
use bmc_types::conditions::Purpose;
use sha2::{Digest, Sha256};

/// A run to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOrder {
    /// Its number.
    pub run: u32,
    /// What for.
    pub purpose: Purpose,
    /// Seed of the run.
    pub seed: u64,
}

/// A start of the interpreter to be made, and what it shall run: first the forked children, then itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartOrder {
    /// Its number.
    pub start: u32,
    /// `PYTHONHASHSEED`.
    pub hash_seed: u32,
    /// Seed set before anything of the project is imported.
    pub seed: u64,
    /// Runs for forked children.
    pub forks: Vec<RunOrder>,
    /// The run of the process itself.
    pub own: Option<RunOrder>,
    /// Tests to run; `None` = all that are collected.
    pub selected: Option<Vec<TestId>>,
    /// Isolation of this start.
    pub isolation: Isolation,
}

/// Seeds for starts and runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seeds(pub u64);

impl Seeds {
    /// Seed of a run.
    pub fn run(self, run: u32) -> u64 {
        self.derive("run", run)
    }

    /// Seed of a start.
    pub fn start(self, start: u32) -> u64 {
        self.derive("start", start)
    }

    /// `PYTHONHASHSEED` of a start: never 0, which would switch randomisation off.
    pub fn hash(self, start: u32) -> u32 {
        ((self.derive("hash", start) >> 32) as u32).max(1)
    }

    fn derive(self, label: &str, number: u32) -> u64 {
        let mut hasher = Sha256::new();
        hasher.update(self.0.to_le_bytes());
        hasher.update(label.as_bytes());
        hasher.update(number.to_le_bytes());
        let digest = hasher.finalize();
        digest
            .iter()
            .take(8)
            .fold(0, |seed, byte| (seed << 8) | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_depend_on_the_scan_the_kind_and_the_number() {
        let seeds = Seeds(1);
        let all = [
            seeds.run(1),
            seeds.run(2),
            seeds.start(1),
            seeds.start(2),
            Seeds(2).run(1),
        ];
        for (i, a) in all.iter().enumerate() {
            for b in &all[i + 1..] {
                assert_ne!(a, b);
            }
        }
        assert_eq!(seeds.run(1), Seeds(1).run(1));
        assert!((1..1000).all(|start| seeds.hash(start) != 0));
    }
}
