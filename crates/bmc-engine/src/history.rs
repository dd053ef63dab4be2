//! Everything a scan has seen, in memory: tests, runs, failures. Filled by the runner or from the trace; read by `lab`.

use std::collections::HashMap;

use bmc_types::conditions::Purpose;
use bmc_types::{Conditions, Failure, Outcome, TestId};

use crate::lab::signature;

/// One failure of one test in one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureRecord {
    /// Index of the test.
    pub test: u32,
    /// Index of the signature.
    pub signature: u32,
    /// What was seen, shared between equal ones; `None` once enough examples of the signature are kept.
    pub text: Option<Box<Failure>>,
}

/// What one run showed.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// Number of the run within its scan, from 1; runs that confirm or compare come after the N scan runs.
    pub run: u32,
    /// How it was made.
    pub conditions: Conditions,
    /// Code of the outcome by test index; a test beyond the end was not collected.
    pub outcomes: Vec<u8>,
    /// Duration by test index, as [`duration_code`].
    pub durations: Vec<u16>,
    /// The failures.
    pub failures: Vec<FailureRecord>,
    /// Remarks about single tests: (test, words).
    pub remarks: Vec<(u32, String)>,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Processes it took.
    pub processes: u32,
    /// Trouble in the session itself, outside any test.
    pub session_error: Option<String>,
}

impl RunRecord {
    /// Outcome of a test in this run.
    pub fn outcome(&self, test: u32) -> Outcome {
        self.outcomes
            .get(test as usize)
            .and_then(|code| Outcome::from_code(*code))
            .unwrap_or(Outcome::Missing)
    }
}

/// One way of failing, with the first example of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// 16 hexadecimal digits.
    pub digest: String,
    /// The outcome it led to.
    pub outcome: Outcome,
    /// First failure seen with it.
    pub example: Failure,
}

/// How many texts of one signature are kept for each scan. A thousand runs of a failing suite would else fill the disk with
/// tracebacks that differ in addresses only; 20 show whatever variety there is.
const TEXTS_PER_SIGNATURE: u32 = 20;

/// Everything a scan has seen.
#[derive(Debug, Default)]
pub struct History {
    tests: Vec<TestId>,
    by_id: HashMap<TestId, u32>,
    signatures: Vec<Signature>,
    by_digest: HashMap<String, u32>,
    texts: Vec<u32>,
    runs: Vec<RunRecord>,
}

impl History {
    /// Tests in the order in which they were first seen.
    pub fn tests(&self) -> &[TestId] {
        &self.tests
    }

    /// Signatures in the order in which they were first seen.
    pub fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    /// Finished runs in the order in which they finished.
    pub fn runs(&self) -> &[RunRecord] {
        &self.runs
    }

    /// Finished runs of one purpose.
    pub fn runs_for(&self, purpose: Purpose) -> impl Iterator<Item = &RunRecord> {
        self.runs
            .iter()
            .filter(move |run| run.conditions.purpose == purpose)
    }

    /// Index of a test, known or new.
    pub fn intern(&mut self, id: &TestId) -> u32 {
        if let Some(index) = self.by_id.get(id) {
            return *index;
        }
        let index =
            u32::try_from(self.tests.len()).expect("pytest cannot collect four billion tests");
        self.tests.push(id.clone());
        self.by_id.insert(id.clone(), index);
        index
    }

    /// Index of a known test.
    pub fn find(&self, id: &TestId) -> Option<u32> {
        self.by_id.get(id).copied()
    }

    /// Makes the record of a failure; keeps its text while its signature has few.
    pub fn failure(&mut self, test: u32, outcome: Outcome, failure: Failure) -> FailureRecord {
        let digest = signature::digest(outcome, &failure);
        let signature = match self.by_digest.get(&digest) {
            Some(index) => *index,
            None => self.add_signature(Signature {
                digest,
                outcome,
                example: failure.clone(),
            }),
        };
        let texts = &mut self.texts[signature as usize];
        *texts += 1;
        let text = (*texts <= TEXTS_PER_SIGNATURE).then(|| Box::new(failure));
        FailureRecord {
            test,
            signature,
            text,
        }
    }

    /// Adds a signature, as read from the trace or seen for the first time.
    pub fn add_signature(&mut self, signature: Signature) -> u32 {
        let index = u32::try_from(self.signatures.len()).expect("fewer signatures than failures");
        self.by_digest.insert(signature.digest.clone(), index);
        self.signatures.push(signature);
        self.texts.push(0);
        index
    }

    /// Adds a finished run.
    pub fn push(&mut self, run: RunRecord) {
        for failure in run.failures.iter().filter(|f| f.text.is_some()) {
            let texts = &mut self.texts[failure.signature as usize];
            *texts = (*texts).max(1);
        }
        self.runs.push(run);
    }
}

/// Durations are kept as 1/1600 of an octave: 0.04 % steps up to 2^40 µs (12 days) in two bytes.
const STEPS_PER_OCTAVE: f64 = 1600.0;

/// Packs a duration in microseconds.
pub fn duration_code(us: u64) -> u16 {
    let code = ((us.saturating_add(1)) as f64).log2() * STEPS_PER_OCTAVE;
    code.round().min(f64::from(u16::MAX)) as u16
}

/// Unpacks to seconds.
pub fn duration_seconds(code: u16) -> f64 {
    ((f64::from(code) / STEPS_PER_OCTAVE).exp2() - 1.0).max(0.0) / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn durations_survive_within_a_thousandth(us in 50u64..80_000_000_000) {
            let back = duration_seconds(duration_code(us)) * 1e6;
            prop_assert!((back - us as f64).abs() <= us as f64 * 1e-3, "{us} became {back}");
        }
    }

    #[test]
    fn zero_and_endless_durations_have_codes() {
        assert_eq!(duration_seconds(duration_code(0)), 0.0);
        assert!(duration_seconds(duration_code(u64::MAX)) > 1e6);
    }
}
