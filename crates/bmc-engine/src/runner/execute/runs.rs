//! Runs: forking or going, following what is reported, and continuing after a crash.

use super::*;

impl Executor<'_> {
    pub(super) fn begin_run(&mut self, history: &mut History, key: u32, on: On<'_>) -> Control {
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
    pub(super) fn activate(
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
                run.go_on_in_new_process();
                run.todo.retain(|test| start.positions.contains_key(test));
                run
            }
        }
    }

    pub(super) fn announce(&self, history: &mut History, run: &ActiveRun, on: On<'_>) -> Control {
        if run.processes > 1 {
            return Control::Continue;
        }
        on(
            history,
            Signal::RunStarted(run.order.run, run.conditions.clone()),
        )
    }

    pub(super) fn fork(
        &mut self,
        history: &mut History,
        key: u32,
        own: Own,
        on: On<'_>,
    ) -> Control {
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

    pub(super) fn try_fork(
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

    pub(super) fn run_frame(
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

    pub(super) fn run_closed(&mut self, run_key: u32, violation: Option<String>) {
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

    /// Deals with a run whose process has said its last word.
    pub(super) fn conclude_if_over(
        &mut self,
        history: &mut History,
        run_key: u32,
        on: On<'_>,
    ) -> Control {
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
    pub(super) fn go_on(&mut self, history: &mut History, run_key: u32, on: On<'_>) -> Control {
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
