//! Limits of tests and collections, and what happens when one is reached.

use super::*;

/// Time for writing stacks before the kill: `faulthandler` needs about a millisecond a thread.
const STACK_TIME: Duration = Duration::from_millis(400);

/// Limit of a test nothing is known about.
const UNKNOWN_TEST: Duration = Duration::from_secs(300);

/// Least limit of a test whose duration has been seen.
const KNOWN_TEST: Duration = Duration::from_secs(60);

/// Least limit of a test that has timed out before: the rest of the scan should not wait as long again.
const HUNG_TEST: Duration = Duration::from_secs(20);

/// A test may take so many times its longest duration so far.
const SLOWDOWN: f64 = 10.0;

impl Executor<'_> {
    /// Limits, exits that are awaited, starts that collect too long.
    pub(super) fn look_at_the_clock(&mut self, history: &mut History, on: On<'_>) -> Control {
        let now = Instant::now();
        let keys: Vec<u32> = self.runs.keys().copied().collect();
        for key in keys {
            let Some(run) = self.runs.get(&key) else {
                continue;
            };
            let control = match run.phase {
                Phase::Running => match run.running_for() {
                    Some((test, time)) => {
                        if time >= self.limit(test) {
                            self.dump_stacks(key);
                        }
                        Control::Continue
                    }
                    None if run.silent_for() >= self.silence() => self.give_up(history, key, on),
                    None => Control::Continue,
                },
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

    /// How long a process may be silent outside any test: a hook of the session can hang as well as a test can.
    fn silence(&self) -> Duration {
        self.limits
            .test_timeout
            .unwrap_or(UNKNOWN_TEST)
            .max(KNOWN_TEST)
    }

    fn give_up(&mut self, history: &mut History, run_key: u32, on: On<'_>) -> Control {
        let Some(run) = self.runs.get_mut(&run_key) else {
            return Control::Continue;
        };
        let seconds = run.silent_for().as_secs();
        run.session_error(format!(
            "nothing happened for {seconds} s outside any test; killed"
        ));
        self.go_on(history, run_key, on)
    }

    pub(super) fn limit(&self, test: u32) -> Duration {
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

    pub(super) fn dump_stacks(&mut self, run_key: u32) {
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

    pub(super) fn time_out(
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
}
