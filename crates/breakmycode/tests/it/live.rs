//! A scan that is still running: its events as they come, its warnings, signals to it. Waits for what is written, never for time.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

/// No event is so far away. Generous, since a machine may be busy with other tests.
const DEADLINE: Duration = Duration::from_secs(120);

/// A running command that prints events, one a line.
pub(crate) struct Live {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
    /// What was printed so far.
    pub(crate) lines: Vec<String>,
    /// What was said so far.
    warnings: Vec<String>,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code; `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    /// The signal that ended it.
    pub(crate) signal: Option<i32>,
    /// Standard output, line by line.
    pub(crate) lines: Vec<String>,
    /// Standard error.
    pub(crate) stderr: String,
}

impl Live {
    /// Starts a command, which should have `--format jsonl` among its arguments.
    pub(crate) fn start(mut command: Command) -> Self {
        // A group of its own, as a shell gives to a job.
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let stdout = lines(child.stdout.take().unwrap());
        let stderr = lines(child.stderr.take().unwrap());
        Self {
            child,
            stdout,
            stderr,
            lines: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Waits for an event that is wanted, and gives it.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            match self
                .stdout
                .recv_timeout(DEADLINE.saturating_sub(begin.elapsed()))
            {
                Ok(line) => {
                    let event = parse(&line);
                    self.lines.push(line);
                    if wanted(&event) {
                        return event;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    panic!("no {what} in {DEADLINE:?}: {:#?}", self.lines)
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let rest: Vec<String> = self.stderr.iter().collect();
                    panic!(
                        "the scan ended before {what}: {:#?}\n{}\n{}",
                        self.lines,
                        self.warnings.join("\n"),
                        rest.join("\n")
                    )
                }
            }
        }
    }

    /// Waits for the end of a run and gives its number.
    #[track_caller]
    pub(crate) fn wait_for_run(&mut self) -> u64 {
        let event = self.wait_for("finished run", |event| event["event"] == "run.finished");
        event["run"].as_u64().unwrap()
    }

    /// Waits for words on standard error.
    #[track_caller]
    pub(crate) fn wait_for_words(&mut self, words: &str) {
        let begin = Instant::now();
        loop {
            match self
                .stderr
                .recv_timeout(DEADLINE.saturating_sub(begin.elapsed()))
            {
                Ok(line) => {
                    let found = line.contains(words);
                    self.warnings.push(line);
                    if found {
                        return;
                    }
                }
                Err(error) => panic!("{words:?} was not said ({error}): {:#?}", self.warnings),
            }
        }
    }

    /// Sends a signal to it alone, not to what it started.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Sends a signal to its whole process group, as a terminal does on Ctrl-C.
    pub(crate) fn signal_group(&self, signal: Signal) {
        kill_process_group(self.pid(), signal).unwrap();
    }

    fn pid(&self) -> Pid {
        i32::try_from(self.child.id())
            .ok()
            .and_then(Pid::from_raw)
            .unwrap()
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Ended {
        let begin = Instant::now();
        loop {
            match self
                .stdout
                .recv_timeout(DEADLINE.saturating_sub(begin.elapsed()))
            {
                Ok(line) => self.lines.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("the scan does not end: {:#?}", self.lines)
                }
            }
        }
        let status = self.child.wait().unwrap();
        self.warnings.extend(self.stderr.iter());
        let lines = std::mem::take(&mut self.lines);
        Ended {
            code: status.code(),
            signal: status.signal(),
            lines,
            stderr: self.warnings.join("\n"),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // Only reached with a running child when a test fails; it must not stay.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// Ended with that code.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
        self
    }

    /// The events that were printed.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.lines.iter().map(|line| parse(line)).collect()
    }

    /// Numbers of the finished runs, in order.
    pub(crate) fn finished_runs(&self) -> Vec<u64> {
        finished_runs(&self.events())
    }
}

/// Numbers of the finished runs, in order.
pub(crate) fn finished_runs(events: &[Value]) -> Vec<u64> {
    let mut runs: Vec<u64> = events
        .iter()
        .filter(|event| event["event"] == "run.finished")
        .map(|event| event["run"].as_u64().unwrap())
        .collect();
    runs.sort_unstable();
    runs
}

/// Reads one line of events.
#[track_caller]
pub(crate) fn parse(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("not an event: {error}: {line:?}"))
}

fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            if sender.send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    receiver
}
