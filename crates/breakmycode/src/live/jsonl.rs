//! The event stream for programs: one JSON object a line, each written out at once.

use std::io::{self, Write};

use bmc_engine::workflow::EventSink;
use bmc_types::Event;

/// Writes events to a stream until it is closed. A reader who has gone is no reason to stop a scan.
pub(crate) struct Jsonl<W: Write> {
    out: W,
    closed: bool,
}

impl<W: Write> Jsonl<W> {
    /// Writes to that stream.
    pub(crate) fn new(out: W) -> Self {
        Self { out, closed: false }
    }

    fn write(&mut self, event: &Event) -> io::Result<()> {
        // In one piece, so that a reader of a shared stream never sees half a line.
        let mut line = serde_json::to_vec(event).map_err(io::Error::from)?;
        line.push(b'\n');
        self.out.write_all(&line)?;
        self.out.flush()
    }
}

impl<W: Write> EventSink for Jsonl<W> {
    fn event(&mut self, event: &Event) {
        if !self.closed {
            self.closed = self.write(event).is_err();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bmc_types::EventKind;

    struct Closing {
        left: usize,
        writes: usize,
    }

    impl Write for Closing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.writes += 1;
            if self.left == 0 {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.left -= 1;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn event(seq: u64, words: &str) -> Event {
        let kind = EventKind::StageStarted {
            stage: words.to_owned(),
        };
        Event {
            scan_id: "scan_8c13045d132c".into(),
            seq,
            at_ms: 1,
            kind,
        }
    }

    #[test]
    fn each_event_is_one_line_that_reads_back() {
        let events = [event(1, "run"), event(2, "a\nb\u{1b}[2J\u{202e}")];
        let mut out = Vec::new();
        let mut sink = Jsonl::new(&mut out);
        events.iter().for_each(|e| sink.event(e));
        let text = String::from_utf8(out).unwrap();
        let read: Vec<Event> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(read, events);
        assert!(text.starts_with(r#"{"scan_id":"scan_8c13045d132c","seq":1,"at_ms":1,"event":"stage.started","stage":"run"}"#), "{text}");
    }

    #[test]
    fn a_closed_stream_is_not_written_to_again() {
        let mut stream = Closing { left: 1, writes: 0 };
        let mut sink = Jsonl::new(&mut stream);
        for seq in 1..=5 {
            sink.event(&event(seq, "run"));
        }
        assert!(sink.closed);
        assert_eq!(stream.writes, 2);
    }
}
