//! Makes the ordered runs, several at a time: starts interpreters, forks children, continues after crashes and hangs.
//!
//! One thread owns all state and decides; others only read sockets and pipes. The caller is told what happens and may stop it.

mod clock;
mod runs;
mod starts;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use bmc_pytest::diagnose::CollectError;
use bmc_pytest::wire::{self, Collected, FromPlugin, Hello, Mode, Ready, ToPlugin};
use bmc_sandbox::{Isolation, Namespace};
use bmc_types::conditions::{Conditions, Engine};
use bmc_types::{Failure, Outcome, TestId};

use super::order::{RunOrder, Seeds, StartOrder};
use super::output::Captured;
use super::process::{self, Channel, Launch, LaunchError, Message, Process};
use super::run::{ActiveRun, Child, End, Phase, blank};
use super::site::Site;
use crate::history::{History, RunRecord};

/// Signal on which a process writes the stacks of its threads. A real-time signal that neither glibc nor pytest uses.
const STACK_SIGNAL: i32 = 37;

/// Time a process has between its last frame and its exit. Interpreters with many modules need up to half a second here.
const EXIT_GRACE: Duration = Duration::from_secs(5);

/// Time running tests have after the first Ctrl-C.
const INTERRUPT_GRACE: Duration = Duration::from_secs(5);

/// How often the caller hears of progress and running tests are checked against their limits.
const TICK: Duration = Duration::from_millis(50);

/// Longest text of a failure, in characters.
const LONGREPR_LIMIT: u32 = 4000;

/// Limits of the whole work.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Runs at a time.
    pub jobs: u32,
    /// Limit of each test; `None` = from observed durations.
    pub test_timeout: Option<Duration>,
    /// Limit of each collection.
    pub collect_timeout: Duration,
}

/// What a start collected.
#[derive(Debug, Clone, Default)]
pub struct Collection {
    /// Number of the start.
    pub start: u32,
    /// What pytest said about itself.
    pub hello: Option<Hello>,
    /// Tests, in order.
    pub tests: Vec<TestId>,
    /// Tests that pytest left out.
    pub deselected: u64,
    /// Selected tests that do not exist.
    pub missing: Vec<(String, u32)>,
    /// Files that could not be collected.
    pub errors: Vec<CollectError>,
    /// Whether the list of tests is complete.
    pub complete: bool,
    /// Seconds of collection.
    pub seconds: f64,
}

/// A process that never came to running tests.
#[derive(Debug)]
pub struct StartFailure {
    /// What it had collected until then.
    pub collection: Collection,
    /// Exit code, if it exited.
    pub code: Option<i32>,
    /// Signal, if one ended it.
    pub signal: Option<i32>,
    /// What it printed.
    pub output: String,
    /// The file it was importing last.
    pub last_file: Option<String>,
    /// It was killed after the limit for collecting.
    pub timed_out: bool,
    /// Trouble of the plugin or the protocol.
    pub trouble: Option<String>,
}

/// Progress, for a display.
#[derive(Debug, Clone, Default)]
pub struct Ticker {
    /// Outcomes so far, those of running runs included.
    pub outcomes: u64,
    /// Tests that are running, longest first, with seconds.
    pub running: Vec<(String, f64)>,
}

/// What happens.
#[derive(Debug)]
pub enum Signal {
    /// A start has collected and is ready.
    Ready(Box<Collection>, Ready, f64),
    /// Children are not forked any more: (kind, words).
    FallBack(String, String),
    /// A run began.
    RunStarted(u32, Conditions),
    /// A test failed.
    Failed(u32, TestId, Outcome, Box<Failure>),
    /// A run is complete.
    RunFinished(Box<RunRecord>),
    /// A start failed.
    StartFailed(Box<StartFailure>),
    /// A process could not even be launched.
    LaunchFailed(LaunchError),
    /// Nothing happened for a moment.
    Tick(Ticker),
}

/// What the caller wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Go on.
    Continue,
    /// Let running runs finish, begin no other.
    Drain,
    /// Stop at once; unfinished runs are lost.
    Stop,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Everything ordered was done, or drained.
    Done,
    /// The caller stopped it.
    Stopped,
    /// The user stopped it.
    Interrupted,
}

#[derive(Debug)]
enum Own {
    New(RunOrder),
    Continue(Box<ActiveRun>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StartPhase {
    Launching,
    Ready,
    /// Its own run is under way, or over.
    Own,
}

#[derive(Debug)]
struct ActiveStart {
    order: StartOrder,
    process: Process,
    phase: StartPhase,
    launched: Instant,
    dumping: Option<(Instant, u64)>,
    ids: Vec<String>,
    collection: Collection,
    last_file: Option<String>,
    trouble: Option<String>,
    /// Local position → global index.
    table: Vec<u32>,
    /// Global index → local position.
    positions: HashMap<u32, u32>,
    forks: VecDeque<Own>,
    own: Option<Own>,
    own_run: Option<u32>,
    live: u32,
    closed: bool,
    worker: u32,
}

#[derive(Debug, Clone, Copy)]
enum Owner {
    Start(u32),
    Child(u32),
}

/// Makes runs.
pub struct Executor<'a> {
    site: &'a Site,
    limits: Limits,
    seeds: Seeds,
    interrupt: Arc<AtomicU8>,
    sender: SyncSender<Message>,
    receiver: Receiver<Message>,
    next_channel: Channel,
    next_start: u32,
    queue: VecDeque<(StartOrder, Option<Box<ActiveRun>>)>,
    starts: BTreeMap<u32, ActiveStart>,
    runs: BTreeMap<u32, ActiveRun>,
    owners: HashMap<Channel, Owner>,
    next_run_key: u32,
    workers: Vec<bool>,
    fork_ban: Option<String>,
    first_list: Option<Vec<u32>>,
    longest: HashMap<u32, f64>,
    hung: HashMap<u32, u32>,
    outcomes: u64,
}

type On<'c> = &'c mut dyn FnMut(&mut History, Signal) -> Control;

impl<'a> Executor<'a> {
    /// Prepares. `interrupt` counts how often the user asked to stop; `next_start` numbers the starts made when forking is given up.
    pub fn new(
        site: &'a Site,
        limits: Limits,
        seeds: Seeds,
        interrupt: Arc<AtomicU8>,
        next_start: u32,
    ) -> Self {
        // Readers wait when the executor is behind, so that a flood of frames cannot fill the memory.
        let (sender, receiver) = sync_channel(4096);
        Self {
            site,
            limits,
            seeds,
            interrupt,
            sender,
            receiver,
            next_channel: 1,
            next_start,
            queue: VecDeque::new(),
            starts: BTreeMap::new(),
            runs: BTreeMap::new(),
            owners: HashMap::new(),
            next_run_key: 1,
            workers: vec![false; limits.jobs.max(1) as usize],
            fork_ban: None,
            first_list: None,
            longest: HashMap::new(),
            hung: HashMap::new(),
            outcomes: 0,
        }
    }

    /// Why children are not forked, if they are not.
    pub fn fork_ban(&self) -> Option<&str> {
        self.fork_ban.as_deref()
    }

    /// Number of the next start that is free.
    pub fn next_start(&self) -> u32 {
        self.next_start
    }

    /// Makes the ordered runs.
    pub fn execute(&mut self, history: &mut History, orders: Vec<StartOrder>, on: On<'_>) -> Ended {
        self.queue = orders.into_iter().map(|order| (order, None)).collect();
        for (order, _) in &self.queue {
            self.next_start = self.next_start.max(order.start + 1);
        }
        self.first_list = None;
        let mut stopping: Option<Instant> = None;
        let mut draining = false;
        let mut last_tick = Instant::now();
        let ended = loop {
            let presses = self.interrupt.load(Ordering::Relaxed);
            if presses > 0 {
                let until = *stopping.get_or_insert_with(|| Instant::now() + INTERRUPT_GRACE);
                if presses > 1 || Instant::now() >= until || self.runs.is_empty() {
                    break Ended::Interrupted;
                }
            }
            if stopping.is_none() && !draining && self.pump(history, on) == Control::Stop {
                break Ended::Stopped;
            }
            let idle = self.runs.is_empty()
                && (draining
                    || stopping.is_some()
                    || (self.starts.is_empty() && self.queue.is_empty()));
            if idle {
                break if stopping.is_some() {
                    Ended::Interrupted
                } else {
                    Ended::Done
                };
            }
            let mut control = match self.receiver.recv_timeout(TICK) {
                Ok(message) => self.take(history, message, on),
                Err(RecvTimeoutError::Timeout) => Control::Continue,
                Err(RecvTimeoutError::Disconnected) => unreachable!("we hold a sender ourselves"),
            };
            // A bounded number of further messages before time is looked at again.
            for _ in 0..512 {
                if control != Control::Continue {
                    break;
                }
                match self.receiver.try_recv() {
                    Ok(message) => control = self.take(history, message, on),
                    Err(_) => break,
                }
            }
            if control == Control::Continue {
                control = self.look_at_the_clock(history, on);
            }
            if control == Control::Continue && last_tick.elapsed() >= TICK {
                last_tick = Instant::now();
                control = on(history, Signal::Tick(self.ticker(history)));
            }
            match control {
                Control::Continue => {}
                Control::Drain => draining = true,
                Control::Stop => break Ended::Stopped,
            }
        };
        self.runs.clear();
        self.starts.clear();
        self.owners.clear();
        self.queue.clear();
        self.workers.fill(false);
        ended
    }

    fn ticker(&self, history: &History) -> Ticker {
        let mut running: Vec<(String, f64)> = self
            .runs
            .values()
            .filter_map(ActiveRun::running_for)
            .map(|(test, time)| {
                (
                    history.tests()[test as usize].nodeid.clone(),
                    time.as_secs_f64(),
                )
            })
            .collect();
        running.sort_by(|a, b| b.1.total_cmp(&a.1));
        Ticker {
            outcomes: self.outcomes + self.runs.values().map(|r| r.recorded as u64).sum::<u64>(),
            running,
        }
    }

    fn take(&mut self, history: &mut History, message: Message, on: On<'_>) -> Control {
        match message {
            Message::Frame(channel, frame) => match self.owners.get(&channel).copied() {
                Some(Owner::Start(key)) => self.start_frame(history, key, frame, on),
                Some(Owner::Child(run)) => self.run_frame(history, run, frame, on),
                // A late word of a process that has been dealt with.
                None => Control::Continue,
            },
            Message::Closed(channel, violation) => match self.owners.remove(&channel) {
                Some(Owner::Start(key)) => self.start_closed(history, key, violation, on),
                Some(Owner::Child(run)) => {
                    self.run_closed(run, violation);
                    Control::Continue
                }
                None => Control::Continue,
            },
        }
    }
}

fn last_chars(text: &str, limit: usize) -> String {
    let skip = text.chars().count().saturating_sub(limit);
    text.chars()
        .skip(skip)
        .collect::<String>()
        .trim()
        .to_owned()
}
