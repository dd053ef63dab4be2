//! Puts events in order, stores them, and shows them to whoever watches. The database comes first, the display second.

use std::time::Instant;

use bmc_types::{Event, EventKind, Problem, ScanId};

use crate::store::{Store, StoreError};

/// Progress of the running stage, for a display. Not stored.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Name of the stage.
    pub stage: String,
    /// Runs that are finished.
    pub done: u32,
    /// Runs of the stage; `None` while that is open.
    pub total: Option<u32>,
    /// Outcomes so far.
    pub outcomes: u64,
    /// Seconds since the stage began.
    pub seconds: f64,
    /// Tests that are running, longest first.
    pub running: Vec<(String, f64)>,
    /// Tests that failed so far: node id, failures, runs; those that also passed first.
    pub failing: Vec<(String, u32, u32)>,
}

/// Watches a workflow.
pub trait EventSink {
    /// Something happened.
    fn event(&mut self, event: &Event);

    /// Time passed.
    fn progress(&mut self, progress: &Progress) {
        let _ = progress;
    }
}

/// Events of a running scan on their way to the trace and the display.
pub(super) struct Recorder<'s> {
    pub(super) store: Store,
    pub(super) id: ScanId,
    sink: &'s mut dyn EventSink,
    seq: u64,
    began: Instant,
    before_ms: u64,
    waiting: Vec<Event>,
    /// The first fault of the trace; said once.
    fault: Option<String>,
}

impl<'s> Recorder<'s> {
    pub(super) fn new(
        store: Store,
        id: ScanId,
        sink: &'s mut dyn EventSink,
        seq: u64,
        before_ms: u64,
    ) -> Self {
        Self {
            store,
            id,
            sink,
            seq,
            began: Instant::now(),
            before_ms,
            waiting: Vec::new(),
            fault: None,
        }
    }

    /// Seconds since the scan began, earlier sittings included.
    pub(super) fn seconds(&self) -> f64 {
        self.before_ms as f64 / 1000.0 + self.began.elapsed().as_secs_f64()
    }

    /// An event that is stored together with what it tells of, and shown afterwards. Says whether it was stored.
    pub(super) fn event_with(
        &mut self,
        kind: EventKind,
        write: impl FnOnce(&mut Store, &ScanId, &[Event]) -> Result<(), StoreError>,
    ) -> bool {
        let event = self.next(kind);
        let mut events = std::mem::take(&mut self.waiting);
        events.push(event.clone());
        let result = write(&mut self.store, &self.id, &events);
        let stored = result.is_ok();
        self.check(result);
        self.sink.event(&event);
        stored
    }

    fn next(&mut self, kind: EventKind) -> Event {
        self.seq += 1;
        let at_ms = self.before_ms + self.began.elapsed().as_millis() as u64;
        Event {
            scan_id: self.id.to_string(),
            seq: self.seq,
            at_ms,
            kind,
        }
    }

    pub(super) fn event(&mut self, kind: EventKind) {
        let event = self.next(kind);
        self.sink.event(&event);
        // Failing outcomes are in the table of failures already, and there can be millions of them.
        if !matches!(event.kind, EventKind::TestOutcome { .. }) {
            self.waiting.push(event);
        }
    }

    pub(super) fn progress(&mut self, progress: &Progress) {
        self.sink.progress(progress);
    }

    /// Writes the events that wait. A fault of the trace is a warning, never a failed run.
    pub(super) fn flush(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut self.waiting);
        let result = self.store.add_events(&self.id, &waiting);
        self.check(result);
    }

    /// Notes a fault of the trace.
    pub(super) fn check(&mut self, result: Result<(), StoreError>) {
        if let Err(error) = result
            && self.fault.is_none()
        {
            let cause = std::error::Error::source(&error)
                .map(|s| format!(": {s}"))
                .unwrap_or_default();
            let words =
                format!("cannot {error}{cause}; what follows is shown but not all of it is kept");
            self.fault = Some(words.clone());
            self.event(EventKind::ProblemFound {
                problem: Problem::warning("trace", words),
            });
        }
    }

    /// The fault of the trace, if there was one.
    pub(super) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
}
