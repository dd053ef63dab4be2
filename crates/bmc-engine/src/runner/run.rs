//! One run while it is being made: what has come in, what is current, what is left.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bmc_pytest::wire::Exited;
use bmc_sandbox::World;
use bmc_types::conditions::{Conditions, Engine};
use bmc_types::{Failure, Outcome};

use super::order::RunOrder;
use super::output::Captured;
use super::process::Channel;
use crate::history::{History, RunRecord, duration_code};

/// How a process ended, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
}

impl End {
    /// In words.
    pub(super) fn words(self) -> String {
        match (self.code, self.signal) {
            (_, Some(signal)) => format!("was killed by signal {signal}{}", signal_name(signal)),
            (Some(code), None) => format!("exited with code {code}"),
            (None, None) => "ended in an unknown way".to_owned(),
        }
    }
}

impl From<&Exited> for End {
    fn from(exited: &Exited) -> Self {
        Self {
            code: exited.code,
            signal: exited.signal,
        }
    }
}

/// Names of the signals that end test processes, as on all Linux architectures we run on.
fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => " (SIGILL)",
        5 => " (SIGTRAP)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        14 => " (SIGALRM)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

/// In which part of its life a run's process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Tests are running.
    Running,
    /// A test is over its limit: stacks are being written until then.
    Dumping {
        /// When the process is killed.
        until: Instant,
        /// How much had been printed before.
        printed: u64,
    },
    /// `finish` came, or the socket closed: its exit is awaited until then.
    Ending {
        /// When waiting stops.
        until: Instant,
    },
}

/// A run that is being made.
#[derive(Debug)]
pub(super) struct ActiveRun {
    pub(super) order: RunOrder,
    pub(super) conditions: Conditions,
    /// Global indices still to run, in order. The current test is not among them.
    pub(super) todo: std::collections::VecDeque<u32>,
    /// The test that is running: global index and since when.
    pub(super) current: Option<(u32, Instant)>,
    outcomes: Vec<u8>,
    durations: HashMap<u32, u64>,
    failures: Vec<(u32, Outcome, Failure)>,
    remarks: Vec<(u32, String)>,
    session_error: Option<String>,
    pub(super) began: Instant,
    /// When a test last started or ended.
    heard: Instant,
    pub(super) processes: u32,
    /// How many outcomes had come when the present process began: one that adds nothing is not followed by another.
    pub(super) before_process: usize,
    pub(super) recorded: usize,
    pub(super) phase: Phase,
    pub(super) finished: bool,
    pub(super) closed: bool,
    pub(super) end: Option<End>,
    pub(super) worker: u32,
    pub(super) start_key: u32,
    /// World, socket and output of a forked child; a fresh run uses those of its start.
    pub(super) child: Option<Child>,
}

/// What belongs to a forked child alone.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) world: Option<World>,
    pub(super) channel: Channel,
    pub(super) output: Captured,
}

impl ActiveRun {
    /// Begins a run over these tests (global indices, in order).
    pub(super) fn begin(
        order: RunOrder,
        conditions: Conditions,
        tests: &[u32],
        known: usize,
        worker: u32,
        start_key: u32,
    ) -> Self {
        let mut outcomes = vec![Outcome::Missing.code(); known];
        for test in tests {
            outcomes[*test as usize] = Outcome::NotRun.code();
        }
        Self {
            order,
            conditions,
            todo: tests.iter().copied().collect(),
            current: None,
            outcomes,
            durations: HashMap::with_capacity(tests.len()),
            failures: Vec::new(),
            remarks: Vec::new(),
            session_error: None,
            began: Instant::now(),
            heard: Instant::now(),
            processes: 1,
            before_process: 0,
            recorded: 0,
            phase: Phase::Running,
            finished: false,
            closed: false,
            end: None,
            worker,
            start_key,
            child: None,
        }
    }

    pub(super) fn engine(&self) -> Engine {
        self.conditions.engine
    }

    /// A test is about to start.
    pub(super) fn started(&mut self, test: u32) {
        match self.todo.front() {
            Some(next) if *next == test => {
                self.todo.pop_front();
            }
            // Out of order: a plugin of the project runs tests in its own way. Keep the books right all the same.
            _ => self.todo.retain(|t| *t != test),
        }
        self.heard = Instant::now();
        self.current = Some((test, self.heard));
    }

    /// A test is over.
    pub(super) fn done(&mut self, test: u32, outcome: Outcome, us: u64, failure: Option<Failure>) {
        self.heard = Instant::now();
        if self.current.is_some_and(|(current, _)| current == test) {
            self.current = None;
        }
        let Some(slot) = self.outcomes.get_mut(test as usize) else {
            return;
        };
        // The same test twice in one run (a plugin that repeats): the worse outcome stays.
        let before = Outcome::from_code(*slot);
        if before.is_some_and(|b| b.is_failure()) {
            return;
        }
        *slot = outcome.code();
        self.durations.insert(test, us);
        self.recorded += 1;
        if outcome.is_failure() {
            self.failures
                .push((test, outcome, failure.unwrap_or_else(|| blank(outcome))));
        }
    }

    pub(super) fn remark(&mut self, test: u32, words: String) {
        if self.remarks.len() < 1000 {
            self.remarks.push((test, words));
        }
    }

    pub(super) fn session_error(&mut self, words: String) {
        match &mut self.session_error {
            Some(before) if before.len() < 2000 => {
                before.push_str("; ");
                before.push_str(&words);
            }
            Some(_) => {}
            none => *none = Some(words),
        }
    }

    pub(super) fn has_session_error(&self) -> bool {
        self.session_error.is_some()
    }

    /// Notes that a new process goes on with this run.
    pub(super) fn go_on_in_new_process(&mut self) {
        self.processes += 1;
        self.before_process = self.recorded;
        self.heard = Instant::now();
        self.phase = Phase::Running;
        self.finished = false;
        self.closed = false;
        self.end = None;
    }

    /// How long no test has started or ended.
    pub(super) fn silent_for(&self) -> Duration {
        self.heard.elapsed()
    }

    /// How long the current test has been running.
    pub(super) fn running_for(&self) -> Option<(u32, Duration)> {
        self.current.map(|(test, since)| (test, since.elapsed()))
    }

    /// Makes the record.
    pub(super) fn into_record(self, history: &mut History) -> RunRecord {
        let failures = self
            .failures
            .into_iter()
            .map(|(test, outcome, failure)| history.failure(test, outcome, failure))
            .collect();
        let durations = (0..self.outcomes.len() as u32)
            .map(|test| self.durations.get(&test).map_or(0, |us| duration_code(*us)))
            .collect();
        RunRecord {
            run: self.order.run,
            conditions: self.conditions,
            outcomes: self.outcomes,
            durations,
            failures,
            remarks: self.remarks,
            seconds: self.began.elapsed().as_secs_f64(),
            processes: self.processes,
            session_error: self.session_error,
        }
    }
}

/// A failure of which only the outcome is known.
pub(super) fn blank(outcome: Outcome) -> Failure {
    Failure {
        phase: None,
        kind: outcome.as_str().to_owned(),
        message: String::new(),
        path: None,
        line: None,
        longrepr: String::new(),
        rerun: false,
        extra: Vec::new(),
    }
}
