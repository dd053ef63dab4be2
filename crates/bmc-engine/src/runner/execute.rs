//! Makes the ordered runs, several at a time: starts interpreters, forks children, continues after crashes and hangs.
//!
//! One thread owns all state and decides; others only read sockets and pipes. The caller is told what happens and may stop it.

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
use super::run::{ActiveRun, Child, End, Phase};
use super::site::Site;
use crate::history::{History, RunRecord};

/// Signal on which a process writes the stacks of its threads. A real-time signal that neither glibc nor pytest uses.
const STACK_SIGNAL: i32 = 37;

/// Time for writing stacks before the kill: `faulthandler` needs about a millisecond a thread.
const STACK_TIME: Duration = Duration::from_millis(400);

/// Time a process has between its last frame and its exit. Interpreters with many modules need up to half a second here.
const EXIT_GRACE: Duration = Duration::from_secs(5);

/// Time running tests have after the first Ctrl-C.
const INTERRUPT_GRACE: Duration = Duration::from_secs(5);

/// Limit of a test nothing is known about.
const UNKNOWN_TEST: Duration = Duration::from_secs(300);

/// Least limit of a test whose duration has been seen.
const KNOWN_TEST: Duration = Duration::from_secs(60);

/// Least limit of a test that has timed out before: the rest of the scan should not wait as long again.
const HUNG_TEST: Duration = Duration::from_secs(20);

/// A test may take so many times its longest duration so far.
const SLOWDOWN: f64 = 10.0;

/// How often the caller hears of progress and running tests are checked against their limits.
const TICK: Duration = Duration::from_millis(50);

/// Longest text of a failure, in characters.
const LONGREPR_LIMIT: u32 = 4000;

/// Hazards that make forked children unlike fresh processes whatever the tests do.
const BLOCKING: [&str; 5] = [
    "threads",
    "child_processes",
    "event_loop",
    "namespaces",
    "plugin",
];

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

    /// Limit that would hold for a test nobody has seen, in seconds.
    pub fn unknown_test_limit(limits: &Limits) -> f64 {
        limits.test_timeout.unwrap_or(UNKNOWN_TEST).as_secs_f64()
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

    /// Begins what can be begun.
    fn pump(&mut self, history: &mut History, on: On<'_>) -> Control {
        loop {
            let launching = self
                .starts
                .values()
                .filter(|s| s.phase == StartPhase::Launching)
                .count();
            if launching + self.runs.len() >= self.limits.jobs.max(1) as usize {
                return Control::Continue;
            }
            let ready = self.next_ready();
            let ready_work: usize = self
                .starts
                .values()
                .filter(|s| s.phase == StartPhase::Ready)
                .map(|s| s.forks.len() + usize::from(s.own.is_some()))
                .sum();
            // Collecting early keeps all cores busy: the last start must not begin when nothing else is left to do.
            let launch = !self.queue.is_empty()
                && (ready.is_none() || ready_work <= self.limits.jobs as usize);
            let control = if launch {
                self.launch_next(history, on)
            } else if let Some(key) = ready {
                self.begin_run(history, key, on)
            } else {
                return Control::Continue;
            };
            if control != Control::Continue {
                return control;
            }
        }
    }

    /// A start that can run something now: one with forks left first, since its own run has to come last.
    fn next_ready(&self) -> Option<u32> {
        let ready = |s: &&ActiveStart| s.phase == StartPhase::Ready;
        let forking = self
            .starts
            .iter()
            .filter(|(_, s)| ready(s))
            .find(|(_, s)| !s.forks.is_empty());
        let own = || {
            self.starts
                .iter()
                .filter(|(_, s)| ready(s))
                .find(|(_, s)| s.forks.is_empty() && s.live == 0)
        };
        forking.or_else(own).map(|(key, _)| *key)
    }

    fn free_worker(&mut self) -> u32 {
        let slot = self.workers.iter().position(|busy| !busy).unwrap_or(0);
        self.workers[slot] = true;
        slot as u32 + 1
    }

    fn release_worker(&mut self, worker: u32) {
        if let Some(slot) = self.workers.get_mut((worker as usize).wrapping_sub(1)) {
            *slot = false;
        }
    }

    fn launch_next(&mut self, history: &mut History, on: On<'_>) -> Control {
        let Some((order, continued)) = self.queue.pop_front() else {
            return Control::Continue;
        };
        let mut order = order;
        if self.fork_ban.is_some() {
            self.split(&mut order);
        }
        let channel = self.next_channel;
        self.next_channel += 1;
        let server = !order.forks.is_empty();
        let config = wire::Config {
            v: wire::VERSION,
            mode: if server { Mode::Server } else { Mode::Run },
            seed: order.seed,
            hash_seed: order.hash_seed,
            start: order.start,
            run: order.own.as_ref().filter(|_| !server).map(|run| run.run),
            select: None,
            order: None,
            longrepr_limit: LONGREPR_LIMIT,
            stack_signal: STACK_SIGNAL,
            neutralise: true,
            continue_on_collection_errors: self.site.continue_on_collection_errors,
        };
        let launched = Instant::now();
        let launch = Launch {
            site: self.site,
            isolation: order.isolation,
            config,
            channel,
            sender: self.sender.clone(),
        };
        let process = match Process::launch(launch) {
            Ok(process) => process,
            Err(error) => return on(history, Signal::LaunchFailed(error)),
        };
        let worker = self.free_worker();
        let own = match continued {
            Some(run) => Some(Own::Continue(run)),
            None => order.own.clone().map(Own::New),
        };
        let start = ActiveStart {
            forks: order.forks.iter().cloned().map(Own::New).collect(),
            own,
            own_run: None,
            process,
            phase: StartPhase::Launching,
            launched,
            dumping: None,
            ids: Vec::new(),
            collection: Collection {
                start: order.start,
                ..Collection::default()
            },
            last_file: None,
            trouble: None,
            table: Vec::new(),
            positions: HashMap::new(),
            live: 0,
            closed: false,
            worker,
            order,
        };
        self.owners.insert(channel, Owner::Start(channel));
        self.starts.insert(channel, start);
        Control::Continue
    }

    /// Turns the forks of a start into starts of their own.
    fn split(&mut self, order: &mut StartOrder) {
        let mut forks: VecDeque<RunOrder> = order.forks.drain(..).collect();
        if order.own.is_none() {
            order.own = forks.pop_front();
        }
        for run in forks {
            let extra = self.fresh_start(run, order.selected.clone(), order.isolation);
            self.queue.push_back((extra, None));
        }
    }

    fn fresh_start(
        &mut self,
        run: RunOrder,
        selected: Option<Vec<TestId>>,
        isolation: Isolation,
    ) -> StartOrder {
        let start = self.next_start;
        self.next_start += 1;
        StartOrder {
            start,
            hash_seed: self.seeds.hash(start),
            seed: self.seeds.start(start),
            forks: Vec::new(),
            own: Some(run),
            selected,
            isolation,
        }
    }

    fn ban_forks(
        &mut self,
        history: &mut History,
        kind: &str,
        words: String,
        on: On<'_>,
    ) -> Control {
        if self.fork_ban.is_some() {
            return Control::Continue;
        }
        self.fork_ban = Some(words.clone());
        let mut given_back = Vec::new();
        for start in self.starts.values_mut() {
            let selected = start.order.selected.clone();
            let isolation = start.order.isolation;
            if start.own.is_none() && start.own_run.is_none() {
                start.own = start.forks.pop_front();
            }
            given_back.extend(
                start
                    .forks
                    .drain(..)
                    .map(|own| (own, selected.clone(), isolation)),
            );
        }
        for (own, selected, isolation) in given_back {
            match own {
                Own::New(run) => {
                    let order = self.fresh_start(run, selected, isolation);
                    self.queue.push_back((order, None));
                }
                Own::Continue(run) => self.continue_fresh(run, isolation),
            }
        }
        on(history, Signal::FallBack(kind.to_owned(), words))
    }

    fn begin_run(&mut self, history: &mut History, key: u32, on: On<'_>) -> Control {
        let Some(start) = self.starts.get_mut(&key) else {
            return Control::Continue;
        };
        if let Some(own) = start.forks.pop_front() {
            return self.fork(history, key, own, on);
        }
        let Some(own) = start.own.take() else {
            // Nothing left to do for this process.
            let _ = start.process.send(&ToPlugin::Quit);
            self.remove_start(key);
            return Control::Continue;
        };
        start.phase = StartPhase::Own;
        let start_worker = self.free_worker();
        let run = self.activate(history, key, own, Engine::Fresh, start_worker);
        let control = self.announce(history, &run, on);
        let start = self
            .starts
            .get_mut(&key)
            .expect("it was there a moment ago");
        let indices = start.indices(&run);
        let run_key = self.next_run_key;
        self.next_run_key += 1;
        start.own_run = Some(run_key);
        if start.process.send(&ToPlugin::Go { indices }).is_err() {
            // Its socket closes as well, and that is where it is dealt with.
            start.trouble = Some("pytest did not take the order to run".to_owned());
        }
        self.runs.insert(run_key, run);
        control
    }

    /// Makes a run active in a process, or takes up an interrupted one.
    fn activate(
        &mut self,
        history: &History,
        key: u32,
        own: Own,
        engine: Engine,
        worker: u32,
    ) -> ActiveRun {
        let start = &self.starts[&key];
        match own {
            Own::New(order) => {
                let selected = start.order.selected.as_ref();
                let tests: Vec<u32> = match selected {
                    None => start.table.clone(),
                    Some(ids) => ids
                        .iter()
                        .filter_map(|id| history.find(id))
                        .filter(|t| start.positions.contains_key(t))
                        .collect(),
                };
                let conditions = Conditions {
                    purpose: order.purpose,
                    engine,
                    start: start.order.start,
                    hash_seed: start.order.hash_seed,
                    seed: match engine {
                        Engine::Fresh => start.order.seed,
                        Engine::Forked => order.seed,
                    },
                    start_seed: start.order.seed,
                    order: if selected.is_some() {
                        "listed"
                    } else {
                        "collected"
                    }
                    .to_owned(),
                    worker,
                    isolation: start.order.isolation.to_string(),
                    selected: selected.map(|ids| ids.iter().map(|id| id.nodeid.clone()).collect()),
                };
                ActiveRun::begin(
                    order,
                    conditions,
                    &tests,
                    history.tests().len(),
                    worker,
                    key,
                )
            }
            Own::Continue(run) => {
                let mut run = *run;
                run.start_key = key;
                run.worker = worker;
                run.processes += 1;
                run.before_process = run.recorded;
                run.phase = Phase::Running;
                run.finished = false;
                run.closed = false;
                run.end = None;
                run.todo.retain(|test| start.positions.contains_key(test));
                run
            }
        }
    }

    fn announce(&self, history: &mut History, run: &ActiveRun, on: On<'_>) -> Control {
        if run.processes > 1 {
            return Control::Continue;
        }
        on(
            history,
            Signal::RunStarted(run.order.run, run.conditions.clone()),
        )
    }

    fn fork(&mut self, history: &mut History, key: u32, own: Own, on: On<'_>) -> Control {
        match self.try_fork(history, key, own, on) {
            Ok(control) => control,
            Err((own, words)) => {
                if let Some(start) = self.starts.get_mut(&key) {
                    start.forks.push_front(own);
                }
                self.ban_forks(history, "fork", words, on)
            }
        }
    }

    fn try_fork(
        &mut self,
        history: &mut History,
        key: u32,
        own: Own,
        on: On<'_>,
    ) -> Result<Control, (Own, String)> {
        let start = self
            .starts
            .get_mut(&key)
            .expect("only called for living starts");
        let (world, namespaces) = match start.process.world.child_world() {
            Ok(made) => made,
            Err(error) => return Err((own, format!("cannot {error}"))),
        };
        let plumbing = || -> std::io::Result<(UnixStream, UnixStream, Captured, OwnedFd)> {
            let (ours, theirs) = UnixStream::pair()?;
            let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
            Ok((ours, theirs, Captured::drain(read)?, write))
        };
        let (ours, theirs, output, write) = match plumbing() {
            Ok(made) => made,
            Err(error) => return Err((own, format!("cannot make a pipe: {error}"))),
        };
        let worker = self.free_worker();
        let mut run = self.activate(history, key, own, Engine::Forked, worker);
        let channel = self.next_channel;
        self.next_channel += 1;
        let start = self
            .starts
            .get_mut(&key)
            .expect("it was there a moment ago");
        let frame = ToPlugin::Fork {
            run: run.order.run,
            seed: run.order.seed,
            indices: start.indices(&run),
            env: BTreeMap::new(),
            namespaces: namespaces
                .iter()
                .map(|(kind, _)| namespace_name(*kind).to_owned())
                .collect(),
            cwd: start.process.cwd.to_string_lossy().into_owned(),
            keep_caps: self.site.keep_caps.clone(),
            stack_signal: STACK_SIGNAL,
        };
        let mut descriptors = vec![theirs.as_fd(), write.as_fd()];
        descriptors.extend(namespaces.iter().map(|(_, fd)| fd.as_fd()));
        let sent = start.process.send_with(&frame, &descriptors);
        let reading = sent.and_then(|()| process::read_frames(ours, channel, self.sender.clone()));
        if let Err(error) = reading {
            self.release_worker(worker);
            let own = if run.processes > 1 {
                Own::Continue(Box::new(run))
            } else {
                Own::New(run.order)
            };
            return Err((own, format!("cannot send the order to fork: {error}")));
        }
        start.live += 1;
        let run_key = self.next_run_key;
        self.next_run_key += 1;
        run.child = Some(Child {
            world: Some(world),
            channel,
            output,
        });
        self.owners.insert(channel, Owner::Child(run_key));
        let control = self.announce(history, &run, on);
        self.runs.insert(run_key, run);
        Ok(control)
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

    fn start_frame(
        &mut self,
        history: &mut History,
        key: u32,
        frame: FromPlugin,
        on: On<'_>,
    ) -> Control {
        let Some(start) = self.starts.get_mut(&key) else {
            return Control::Continue;
        };
        match frame {
            FromPlugin::Hello(hello) => start.collection.hello = Some(hello),
            FromPlugin::File(path) => start.last_file = Some(path),
            FromPlugin::CollectError(error) => start.collection.errors.push(*error),
            FromPlugin::Collected(part) => start.collected(part),
            FromPlugin::Ready(ready) => return self.start_ready(history, key, ready, on),
            FromPlugin::Forked { .. } => {}
            FromPlugin::ForkFailed { run, message } => {
                return self.fork_failed(history, run, message, on);
            }
            FromPlugin::Exited(exited) => {
                let found = self.runs.iter_mut().find(|(_, r)| {
                    r.child.is_some() && r.order.run == exited.run && r.end.is_none()
                });
                if let Some((run_key, run)) = found {
                    run.end = Some(End::from(&exited));
                    let run_key = *run_key;
                    return self.conclude_if_over(history, run_key, on);
                }
            }
            FromPlugin::InternalError(words) => {
                let own = start.own_run;
                start.trouble = Some(words.clone());
                if let Some(run) = own.and_then(|key| self.runs.get_mut(&key)) {
                    run.session_error(format!("the plugin failed: {words}"));
                }
            }
            frame @ (FromPlugin::Started(_)
            | FromPlugin::Done { .. }
            | FromPlugin::Remark(..)
            | FromPlugin::Finish { .. }) => {
                if let Some(run) = start.own_run {
                    return self.run_frame(history, run, frame, on);
                }
                if let FromPlugin::Finish {
                    message: Some(message),
                    ..
                } = frame
                {
                    start.trouble.get_or_insert(message);
                }
            }
        }
        Control::Continue
    }

    fn start_ready(
        &mut self,
        history: &mut History,
        key: u32,
        ready: Ready,
        on: On<'_>,
    ) -> Control {
        let Some(start) = self.starts.get_mut(&key) else {
            return Control::Continue;
        };
        if start.phase != StartPhase::Launching {
            return Control::Continue;
        }
        start.phase = StartPhase::Ready;
        start.table = start
            .collection
            .tests
            .iter()
            .map(|id| history.intern(id))
            .collect();
        start.positions = start
            .table
            .iter()
            .enumerate()
            .map(|(local, global)| (*global, local as u32))
            .collect();
        let seconds = start.launched.elapsed().as_secs_f64();
        let worker = start.worker;
        let collection = start.collection.clone();
        let table = start.table.clone();
        let forking = !start.forks.is_empty();
        self.release_worker(worker);
        let blocking = ready
            .hazards
            .iter()
            .find(|(kind, _)| BLOCKING.contains(&kind.as_str()))
            .cloned();
        let control = on(history, Signal::Ready(Box::new(collection), ready, seconds));
        if control != Control::Continue {
            return control;
        }
        if let Some((kind, words)) = blocking.filter(|_| forking) {
            let control = self.ban_forks(history, &kind, words, on);
            if control != Control::Continue {
                return control;
            }
        }
        match &self.first_list {
            None => self.first_list = Some(table),
            Some(first) => {
                if self.fork_ban.is_none() && is_another_list(first, &table) {
                    let words =
                        "the list of tests is another one in every start of the interpreter"
                            .to_owned();
                    return self.ban_forks(history, "collection", words, on);
                }
            }
        }
        Control::Continue
    }

    fn fork_failed(
        &mut self,
        history: &mut History,
        run_number: u32,
        message: String,
        on: On<'_>,
    ) -> Control {
        let found = self
            .runs
            .iter()
            .find(|(_, r)| r.child.is_some() && r.order.run == run_number)
            .map(|(key, _)| *key);
        if let Some(run) = found.and_then(|key| self.runs.remove(&key)) {
            self.release_worker(run.worker);
            let selected = self.starts.get_mut(&run.start_key).and_then(|start| {
                start.live = start.live.saturating_sub(1);
                start.order.selected.clone()
            });
            if run.recorded == 0 {
                let order = self.fresh_start(run.order, selected, Isolation::Full);
                self.queue.push_back((order, None));
            } else {
                self.continue_fresh(Box::new(run), Isolation::Full);
            }
        }
        self.ban_forks(history, "fork", message, on)
    }

    fn start_closed(
        &mut self,
        history: &mut History,
        key: u32,
        violation: Option<String>,
        on: On<'_>,
    ) -> Control {
        let Some(start) = self.starts.get_mut(&key) else {
            return Control::Continue;
        };
        start.closed = true;
        if let Some(words) = violation {
            start.trouble.get_or_insert(format!(
                "pytest's process sent what is not our protocol: {words}"
            ));
        }
        match start.phase {
            StartPhase::Launching => self.start_failed(history, key, false, on),
            StartPhase::Own => {
                let trouble = start.trouble.clone();
                if let Some(run_key) = start.own_run {
                    self.run_closed(run_key, trouble);
                } else {
                    self.remove_start(key);
                }
                Control::Continue
            }
            StartPhase::Ready => {
                // The server died while its children may live on: they finish, what is left starts afresh.
                let words = "the process that children are forked from ended".to_owned();
                self.ban_forks(history, "server", words, on)
            }
        }
    }

    fn start_failed(
        &mut self,
        history: &mut History,
        key: u32,
        timed_out: bool,
        on: On<'_>,
    ) -> Control {
        let Some(mut start) = self.starts.remove(&key) else {
            return Control::Continue;
        };
        self.release_worker(start.worker);
        let exit = if timed_out {
            None
        } else {
            start.process.world.wait(Some(EXIT_GRACE)).ok().flatten()
        };
        start.process.world.kill();
        let collection = std::mem::take(&mut start.collection);
        let failure = StartFailure {
            collection,
            code: exit.as_ref().and_then(|e| e.code),
            signal: exit.as_ref().and_then(|e| e.signal),
            output: start.process.output.text(),
            last_file: start.last_file.take(),
            timed_out,
            trouble: start.trouble.take(),
        };
        on(history, Signal::StartFailed(Box::new(failure)))
    }

    fn run_frame(
        &mut self,
        history: &mut History,
        run_key: u32,
        frame: FromPlugin,
        on: On<'_>,
    ) -> Control {
        let Some(run) = self.runs.get_mut(&run_key) else {
            return Control::Continue;
        };
        let Some(start) = self.starts.get(&run.start_key) else {
            return Control::Continue;
        };
        // After the limit was reached nothing the process says counts: it is about to be killed.
        let dumping = matches!(run.phase, Phase::Dumping { .. });
        match frame {
            FromPlugin::Started(local) if !dumping => {
                if let Some(test) = start.table.get(local as usize) {
                    run.started(*test);
                }
            }
            FromPlugin::Done {
                index,
                outcome,
                duration_us,
                detail,
            } if !dumping => {
                let Some(&test) = start.table.get(index as usize) else {
                    return Control::Continue;
                };
                let seconds = duration_us as f64 / 1e6;
                let longest = self.longest.entry(test).or_insert(0.0);
                *longest = longest.max(seconds);
                let failure = outcome
                    .is_failure()
                    .then(|| detail.unwrap_or_else(|| Box::new(blank(outcome))));
                run.done(test, outcome, duration_us, failure.as_deref().cloned());
                if let Some(failure) = failure {
                    let id = history.tests()[test as usize].clone();
                    let number = run.order.run;
                    return on(history, Signal::Failed(number, id, outcome, failure));
                }
            }
            FromPlugin::Remark(local, remark) => {
                if let Some(test) = start.table.get(local as usize) {
                    run.remark(*test, remark_words(&remark));
                }
            }
            FromPlugin::Finish {
                exitstatus,
                message,
            } if !dumping => {
                run.finished = true;
                run.phase = Phase::Ending {
                    until: Instant::now() + EXIT_GRACE,
                };
                if let Some(message) = message {
                    run.session_error(message);
                } else if exitstatus == 3 {
                    run.session_error("pytest ended with an internal error".to_owned());
                }
                return self.conclude_if_over(history, run_key, on);
            }
            FromPlugin::InternalError(words) => {
                run.session_error(format!("the plugin failed: {words}"))
            }
            _ => {}
        }
        Control::Continue
    }

    fn run_closed(&mut self, run_key: u32, violation: Option<String>) {
        let Some(run) = self.runs.get_mut(&run_key) else {
            return;
        };
        run.closed = true;
        if let Some(words) = violation {
            run.session_error(words);
        }
        if run.phase == Phase::Running {
            run.phase = Phase::Ending {
                until: Instant::now() + EXIT_GRACE,
            };
        }
    }

    /// Limits, exits that are awaited, starts that collect too long.
    fn look_at_the_clock(&mut self, history: &mut History, on: On<'_>) -> Control {
        let now = Instant::now();
        let keys: Vec<u32> = self.runs.keys().copied().collect();
        for key in keys {
            let Some(run) = self.runs.get(&key) else {
                continue;
            };
            let control = match run.phase {
                Phase::Running => {
                    if let Some((test, time)) = run.running_for()
                        && time >= self.limit(test)
                    {
                        self.dump_stacks(key);
                    }
                    Control::Continue
                }
                Phase::Dumping { until, printed } if now >= until => {
                    self.time_out(history, key, printed, on)
                }
                Phase::Dumping { .. } => Control::Continue,
                Phase::Ending { .. } => self.conclude_if_over(history, key, on),
            };
            if control != Control::Continue {
                return control;
            }
        }
        let keys: Vec<u32> = self
            .starts
            .iter()
            .filter(|(_, s)| s.phase == StartPhase::Launching)
            .map(|(k, _)| *k)
            .collect();
        for key in keys {
            let limit = self.limits.collect_timeout;
            let Some(start) = self.starts.get_mut(&key) else {
                continue;
            };
            match start.dumping {
                None if start.launched.elapsed() >= limit => {
                    let _ = start.process.world.signal_all(STACK_SIGNAL);
                    start.dumping = Some((now + STACK_TIME, start.process.output.total()));
                }
                Some((until, _)) if now >= until => {
                    start.process.world.kill();
                    self.owners.remove(&key);
                    let control = self.start_failed(history, key, true, on);
                    if control != Control::Continue {
                        return control;
                    }
                }
                _ => {}
            }
        }
        Control::Continue
    }

    fn limit(&self, test: u32) -> Duration {
        if let Some(limit) = self.limits.test_timeout {
            return limit;
        }
        let seen = self
            .longest
            .get(&test)
            .map(|s| Duration::try_from_secs_f64(s * SLOWDOWN).unwrap_or(UNKNOWN_TEST));
        match (self.hung.contains_key(&test), seen) {
            (true, seen) => seen.unwrap_or_default().max(HUNG_TEST),
            (false, Some(seen)) => seen.max(KNOWN_TEST),
            (false, None) => UNKNOWN_TEST,
        }
    }

    fn dump_stacks(&mut self, run_key: u32) {
        let Some(run) = self.runs.get_mut(&run_key) else {
            return;
        };
        let start = self.starts.get(&run.start_key);
        let (world, output) = match &run.child {
            Some(child) => (child.world.as_ref(), Some(&child.output)),
            None => (
                start.map(|s| &s.process.world),
                start.map(|s| &s.process.output),
            ),
        };
        let printed = output.map_or(0, Captured::total);
        // If it cannot be signalled it is killed without stacks.
        let _ = world.map(|w| w.signal_all(STACK_SIGNAL));
        run.phase = Phase::Dumping {
            until: Instant::now() + STACK_TIME,
            printed,
        };
    }

    fn time_out(
        &mut self,
        history: &mut History,
        run_key: u32,
        printed: u64,
        on: On<'_>,
    ) -> Control {
        let Some(run) = self.runs.get_mut(&run_key) else {
            return Control::Continue;
        };
        let Some((test, since)) = run.current.take() else {
            run.phase = Phase::Running;
            return Control::Continue;
        };
        let limit = since.elapsed();
        let output = match &run.child {
            Some(child) => child.output.text_since(printed),
            None => self
                .starts
                .get(&run.start_key)
                .map(|s| s.process.output.text_since(printed))
                .unwrap_or_default(),
        };
        let failure = Failure {
            kind: "timeout".to_owned(),
            message: format!(
                "still running after {:.1} s; killed",
                limit.as_secs_f64() - STACK_TIME.as_secs_f64()
            ),
            longrepr: last_chars(&output, LONGREPR_LIMIT as usize),
            ..blank(Outcome::TimedOut)
        };
        run.done(
            test,
            Outcome::TimedOut,
            limit.as_micros() as u64,
            Some(failure.clone()),
        );
        *self.hung.entry(test).or_default() += 1;
        let number = run.order.run;
        let id = history.tests()[test as usize].clone();
        let control = on(
            history,
            Signal::Failed(number, id, Outcome::TimedOut, Box::new(failure)),
        );
        if control != Control::Continue {
            return control;
        }
        self.go_on(history, run_key, on)
    }

    /// Deals with a run whose process has said its last word.
    fn conclude_if_over(&mut self, history: &mut History, run_key: u32, on: On<'_>) -> Control {
        let Some(run) = self.runs.get_mut(&run_key) else {
            return Control::Continue;
        };
        let Phase::Ending { until } = run.phase else {
            return Control::Continue;
        };
        if run.child.is_none() && run.end.is_none() {
            let Some(start) = self.starts.get_mut(&run.start_key) else {
                return Control::Continue;
            };
            if let Ok(Some(exit)) = start.process.world.wait(Some(Duration::ZERO)) {
                run.end = Some(End {
                    code: exit.code,
                    signal: exit.signal,
                });
            }
        }
        let late = Instant::now() >= until;
        // The frames of a process that ended are still in its socket until that is read to its end.
        let over = run.end.is_some() && (run.finished || run.closed);
        if !(over || late) {
            return Control::Continue;
        }
        if run.finished && run.end.is_none() {
            run.session_error(format!(
                "the process was still alive {} s after its last test and was killed",
                EXIT_GRACE.as_secs()
            ));
        }
        if let Some((test, since)) = run.current.take() {
            let words = match (run.finished, run.end) {
                (true, _) => "ended the whole test session".to_owned(),
                (false, Some(end)) => {
                    format!("the process {} while this test was running", end.words())
                }
                (false, None) => "closed the connection that results are reported over".to_owned(),
            };
            let output = match &run.child {
                Some(child) => child.output.text(),
                None => self
                    .starts
                    .get(&run.start_key)
                    .map(|s| s.process.output.text())
                    .unwrap_or_default(),
            };
            let failure = Failure {
                kind: "crash".to_owned(),
                message: words,
                longrepr: last_chars(&output, LONGREPR_LIMIT as usize),
                ..blank(Outcome::Crashed)
            };
            run.done(
                test,
                Outcome::Crashed,
                since.elapsed().as_micros() as u64,
                Some(failure.clone()),
            );
            let number = run.order.run;
            let id = history.tests()[test as usize].clone();
            let control = on(
                history,
                Signal::Failed(number, id, Outcome::Crashed, Box::new(failure)),
            );
            if control != Control::Continue {
                return control;
            }
        } else if !run.finished && !run.has_session_error() {
            let words = run
                .end
                .map_or_else(|| "closed its connection".to_owned(), End::words);
            run.session_error(format!(
                "the process {words} between tests or after the last one"
            ));
        }
        self.go_on(history, run_key, on)
    }

    /// Continues a run in a new process if tests are left, else completes it. Its present process is done for.
    fn go_on(&mut self, history: &mut History, run_key: u32, on: On<'_>) -> Control {
        let Some(mut run) = self.runs.remove(&run_key) else {
            return Control::Continue;
        };
        self.release_worker(run.worker);
        let isolation = self
            .starts
            .get(&run.start_key)
            .map_or(Isolation::Full, |s| s.order.isolation);
        let key = run.start_key;
        if let Some(mut child) = run.child.take() {
            self.owners.remove(&child.channel);
            if let Some(world) = &mut child.world {
                world.kill();
            }
            if let Some(start) = self.starts.get_mut(&key) {
                start.live = start.live.saturating_sub(1);
            }
        } else {
            self.remove_start(key);
        }
        let progress = run.recorded > run.before_process;
        if !run.todo.is_empty() && progress {
            let can_fork = run.engine() == Engine::Forked
                && self.fork_ban.is_none()
                && self
                    .starts
                    .get(&key)
                    .is_some_and(|s| s.phase == StartPhase::Ready && !s.closed);
            if can_fork {
                return self.fork(history, key, Own::Continue(Box::new(run)), on);
            }
            self.continue_fresh(Box::new(run), isolation);
            return Control::Continue;
        }
        self.tidy_start(key);
        self.outcomes += run.recorded as u64;
        let record = run.into_record(history);
        on(history, Signal::RunFinished(Box::new(record)))
    }

    fn continue_fresh(&mut self, run: Box<ActiveRun>, isolation: Isolation) {
        let order = StartOrder {
            start: run.conditions.start,
            hash_seed: run.conditions.hash_seed,
            seed: run.conditions.start_seed,
            forks: Vec::new(),
            own: None,
            selected: None,
            isolation,
        };
        self.queue.push_front((order, Some(run)));
    }

    fn tidy_start(&mut self, key: u32) {
        let over = self.starts.get(&key).is_some_and(|s| {
            s.phase == StartPhase::Ready
                && s.forks.is_empty()
                && s.live == 0
                && (s.own.is_none() || s.closed)
        });
        if over && let Some(mut start) = self.starts.remove(&key) {
            self.owners.remove(&key);
            let _ = start.process.send(&ToPlugin::Quit);
            match start.own.take() {
                Some(Own::New(run)) => {
                    let order =
                        self.fresh_start(run, start.order.selected.clone(), start.order.isolation);
                    self.queue.push_back((order, None));
                }
                Some(Own::Continue(run)) => self.continue_fresh(run, start.order.isolation),
                None => {}
            }
        }
    }

    fn remove_start(&mut self, key: u32) {
        self.owners.remove(&key);
        self.starts.remove(&key);
    }
}

impl ActiveStart {
    fn collected(&mut self, part: Collected) {
        self.ids.extend(part.ids);
        self.collection.deselected = part.deselected;
        self.collection.missing.extend(part.missing);
        if part.more {
            return;
        }
        self.collection.seconds = part.collect_s;
        self.collection.complete = true;
        let mut seen: HashMap<&str, u32> = HashMap::with_capacity(self.ids.len());
        self.collection.tests = self
            .ids
            .iter()
            .map(|id| {
                let count = seen.entry(id).or_default();
                let test = TestId {
                    nodeid: id.clone(),
                    occurrence: *count,
                };
                *count += 1;
                test
            })
            .collect();
        self.ids = Vec::new();
    }

    /// Positions to run; `None` if that is all of them in order.
    fn indices(&self, run: &ActiveRun) -> Option<Vec<u32>> {
        let all = run.todo.len() == self.table.len()
            && run.todo.iter().zip(&self.table).all(|(a, b)| a == b);
        (!all).then(|| {
            run.todo
                .iter()
                .filter_map(|test| self.positions.get(test))
                .copied()
                .collect()
        })
    }
}

/// Whether two collections differ so much that nothing can be taken for the same suite: less than nine tenths of the tests in common,
/// or the common ones in another order. A few ids made from the time or from a set do not change what the other tests see.
fn is_another_list(a: &[u32], b: &[u32]) -> bool {
    if a == b {
        return false;
    }
    let in_a: std::collections::HashSet<u32> = a.iter().copied().collect();
    let in_b: std::collections::HashSet<u32> = b.iter().copied().collect();
    let common_a = a.iter().filter(|test| in_b.contains(test));
    let common_b = b.iter().filter(|test| in_a.contains(test));
    let shared = common_a.clone().count();
    shared * 10 < a.len().max(b.len()) * 9 || !common_a.eq(common_b)
}

fn namespace_name(kind: Namespace) -> &'static str {
    match kind {
        Namespace::User => "user",
        Namespace::Mount => "mnt",
        Namespace::Net => "net",
        Namespace::Ipc => "ipc",
        Namespace::Uts => "uts",
        Namespace::Pid => "pid",
    }
}

fn remark_words(remark: &wire::Remark) -> String {
    match remark.kind.as_str() {
        "scope_teardown" => format!(
            "a {}-scoped fixture failed when it was torn down after this test: {}",
            remark.scope,
            first_line(&remark.message)
        ),
        "forked_without_exit" => "forks a process that comes back into pytest".to_owned(),
        "closed_stdout" => "closes standard output".to_owned(),
        other if remark.message.is_empty() => other.to_owned(),
        other => format!("{other}: {}", first_line(&remark.message)),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or("")
}

fn blank(outcome: Outcome) -> Failure {
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

fn last_chars(text: &str, limit: usize) -> String {
    let skip = text.chars().count().saturating_sub(limit);
    text.chars()
        .skip(skip)
        .collect::<String>()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::is_another_list;

    #[test]
    fn a_few_changing_ids_are_the_same_suite_and_another_order_is_not() {
        let all: Vec<u32> = (0..100).collect();
        let few: Vec<u32> = (0..100).map(|i| if i == 50 { 200 } else { i }).collect();
        let many: Vec<u32> = (0..100)
            .map(|i| if i % 5 == 0 { 200 + i } else { i })
            .collect();
        let swapped: Vec<u32> = (0..100).map(|i| if i < 2 { 1 - i } else { i }).collect();
        assert!(!is_another_list(&all, &all));
        assert!(!is_another_list(&all, &few));
        assert!(is_another_list(&all, &many));
        assert!(is_another_list(&all, &swapped));
        assert!(is_another_list(&all, &[]));
    }
}
