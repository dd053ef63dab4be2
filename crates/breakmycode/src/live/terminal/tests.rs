use std::io;
use std::sync::Mutex;

use bmc_types::{Problem, report::ProjectFacts};
use indicatif::TermLike;
use insta::assert_snapshot;

use super::*;
use crate::render::samples;

/// A stream whose bytes can be read while it is in use, and which can also be a terminal.
#[derive(Debug, Clone, Default)]
struct Stream(Arc<Mutex<String>>);

impl Stream {
    fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    fn push(&self, text: &str) -> io::Result<()> {
        self.0.lock().unwrap().push_str(text);
        Ok(())
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(&String::from_utf8_lossy(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TermLike for Stream {
    fn width(&self) -> u16 {
        100
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.push(&format!("<up {n}>"))
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.push(&format!("<down {n}>"))
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.push(&format!("<right {n}>"))
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.push(&format!("<left {n}>"))
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.push(&format!("{text}\n"))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.push(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.push("<clear>")
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

fn terminal(stream: &Stream, moving: bool, interrupt: &Arc<AtomicU8>) -> Terminal {
    let target = moving.then(|| ProgressDrawTarget::term_like(Box::new(stream.clone())));
    Terminal::with(
        Look::plain(100),
        target,
        Box::new(stream.clone()),
        || None,
        "0.1.0",
        interrupt.clone(),
    )
}

fn event(seq: u64, kind: EventKind) -> Event {
    Event {
        scan_id: "scan_8c13045d132c".to_owned(),
        seq,
        at_ms: seq * 10,
        kind,
    }
}

fn progress(stage: &str, done: u32, total: u32, seconds: f64) -> Progress {
    let failing = vec![
        ("t.py::test_a".to_owned(), done.div_ceil(3), done),
        ("t.py::test_b".to_owned(), done, done),
    ];
    let outcomes = u64::from(done) * 412;
    Progress {
        stage: stage.to_owned(),
        done,
        total: Some(total),
        outcomes,
        seconds,
        failing,
        ..Progress::default()
    }
}

fn project() -> ProjectFacts {
    ProjectFacts {
        root: "/home/dev/src/shop".to_owned(),
        commit: Some("4f1c2d9aa0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5".to_owned()),
        branch: Some("main".to_owned()),
        dirty: Some(true),
        tree_digest: "sha256:00".to_owned(),
    }
}

/// A scan as its sink sees it.
fn play(sink: &mut Terminal) {
    let environment = samples::environment();
    let mut early = environment.clone();
    early.switched_off.clear();
    sink.event(&event(1, EventKind::ScanStarted { project: project() }));
    sink.event(&event(
        2,
        EventKind::EnvironmentFound { environment: early },
    ));
    sink.event(&event(3, EventKind::EnvironmentFound { environment }));
    sink.event(&event(
        4,
        EventKind::CollectionFinished {
            tests: 412,
            seconds: 1.9,
        },
    ));
    sink.event(&event(
        5,
        EventKind::PlanMade {
            plan: samples::plan(125),
        },
    ));
    sink.event(&event(
        6,
        EventKind::ProblemFound {
            problem: Problem::note("x", "a note waits"),
        },
    ));
    sink.event(&event(
        7,
        EventKind::ProblemFound {
            problem: Problem::warning("x", "a warning\u{1b}[2J does not"),
        },
    ));
    for (done, seconds) in [
        (0, 0.0),
        (1, 1.0),
        (12, 12.0),
        (13, 13.0),
        (14, 14.0),
        (20, 40.0),
        (20, 43.1),
        (20, 60.0),
        (125, 140.0),
    ] {
        sink.progress(&progress("run", done, 125, seconds));
    }
    sink.event(&event(
        8,
        EventKind::StageFinished {
            stage: "run".to_owned(),
            seconds: 141.0,
            detail: "125 runs".to_owned(),
        },
    ));
    sink.progress(&progress("confirm", 1, 4, 3.0));
    sink.event(&event(
        9,
        EventKind::ScanFinished {
            status: "complete".to_owned(),
            exit_code: 5,
            seconds: 150.0,
        },
    ));
}

#[test]
fn without_a_terminal_there_are_facts_and_a_line_each_tenth_or_half_minute() {
    let stream = Stream::default();
    play(&mut terminal(&stream, false, &Arc::default()));
    assert_snapshot!(stream.text());
}

#[test]
fn on_a_terminal_the_block_is_gone_at_the_end() {
    let stream = Stream::default();
    let mut sink = terminal(&stream, true, &Arc::default());
    play(&mut sink);
    let text = stream.text();
    assert!(
        text.contains("14/125 runs") && text.contains("test disagrees with itself"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "{text}");
    let last = text.rfind("Ctrl-C").unwrap();
    let rest = &text[last..];
    assert_eq!(
        rest.matches("<clear>").count(),
        3,
        "each line of the last block is cleared: {rest}"
    );
    assert!(!rest.contains("runs"), "{rest}");
}

#[test]
fn nothing_is_written_after_the_end() {
    for moving in [false, true] {
        let stream = Stream::default();
        let mut sink = terminal(&stream, moving, &Arc::default());
        play(&mut sink);
        let before = stream.text();
        sink.progress(&progress("run", 3, 4, 500.0));
        sink.event(&event(
            10,
            EventKind::CollectionFinished {
                tests: 1,
                seconds: 1.0,
            },
        ));
        drop(sink);
        assert_eq!(stream.text(), before);
    }
}

#[test]
fn a_refused_scan_takes_the_block_away() {
    let stream = Stream::default();
    let mut sink = terminal(&stream, true, &Arc::default());
    sink.progress(&progress("run", 0, 20, 1.0));
    sink.event(&event(2, EventKind::Refused { advice: Vec::new() }));
    let before = stream.text();
    sink.progress(&progress("run", 0, 20, 2.0));
    assert_eq!(stream.text(), before);
    assert!(
        before.ends_with("<clear><down 1><clear><down 1><clear><up 2>"),
        "{before}"
    );
}

#[test]
fn a_stop_is_announced_by_what_watches_signals_and_not_a_second_time_here() {
    let interrupt = Arc::new(AtomicU8::new(0));
    let stream = Stream::default();
    let mut sink = terminal(&stream, false, &interrupt);
    sink.progress(&progress("run", 1, 20, 1.0));
    interrupt.store(1, Ordering::Relaxed);
    sink.progress(&progress("run", 1, 20, 1.1));
    sink.progress(&progress("run", 1, 20, 1.2));
    assert_eq!(stream.text(), "");
}

#[test]
fn a_resumed_scan_says_so() {
    let stream = Stream::default();
    terminal(&stream, false, &Arc::default())
        .event(&event(40, EventKind::ScanStarted { project: project() }));
    assert!(
        stream
            .text()
            .starts_with("breakmycode 0.1.0  scan_8c13045d132c  (resumed)\n"),
        "{}",
        stream.text()
    );
}

#[test]
fn a_closed_stream_is_ignored() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }
    let mut sink = Terminal::with(
        Look::plain(80),
        None,
        Box::new(Closed),
        || None,
        "0.1.0",
        Arc::default(),
    );
    play(&mut sink);
    assert!(sink.over);
}
