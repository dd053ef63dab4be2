//! Starts of the interpreter: launching, what they say before tests run, and falling back to fresh processes.

use super::*;

/// Hazards that make forked children unlike fresh processes whatever the tests do.
const BLOCKING: [&str; 5] = [
    "threads",
    "child_processes",
    "event_loop",
    "namespaces",
    "plugin",
];

impl Executor<'_> {
    /// Begins what can be begun.
    pub(super) fn pump(&mut self, history: &mut History, on: On<'_>) -> Control {
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
    pub(super) fn next_ready(&self) -> Option<u32> {
        let ready = |s: &&ActiveStart| s.phase == StartPhase::Ready && !s.closed;
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

    pub(super) fn free_worker(&mut self) -> u32 {
        let slot = self.workers.iter().position(|busy| !busy).unwrap_or(0);
        self.workers[slot] = true;
        slot as u32 + 1
    }

    pub(super) fn release_worker(&mut self, worker: u32) {
        if let Some(slot) = self.workers.get_mut((worker as usize).wrapping_sub(1)) {
            *slot = false;
        }
    }

    pub(super) fn launch_next(&mut self, history: &mut History, on: On<'_>) -> Control {
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
    pub(super) fn split(&mut self, order: &mut StartOrder) {
        let mut forks: VecDeque<RunOrder> = order.forks.drain(..).collect();
        if order.own.is_none() {
            order.own = forks.pop_front();
        }
        for run in forks {
            let extra = self.fresh_start(run, order.selected.clone(), order.isolation);
            self.queue.push_back((extra, None));
        }
    }

    pub(super) fn fresh_start(
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

    pub(super) fn ban_forks(
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

    pub(super) fn start_frame(
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

    pub(super) fn start_ready(
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

    pub(super) fn fork_failed(
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

    pub(super) fn start_closed(
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
                let control = self.ban_forks(history, "server", words, on);
                self.tidy_start(key);
                control
            }
        }
    }

    pub(super) fn start_failed(
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

    pub(super) fn continue_fresh(&mut self, run: Box<ActiveRun>, isolation: Isolation) {
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

    pub(super) fn tidy_start(&mut self, key: u32) {
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

    pub(super) fn remove_start(&mut self, key: u32) {
        self.owners.remove(&key);
        self.starts.remove(&key);
    }
}

impl ActiveStart {
    pub(super) fn collected(&mut self, part: Collected) {
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
    pub(super) fn indices(&self, run: &ActiveRun) -> Option<Vec<u32>> {
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
