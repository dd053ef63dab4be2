use insta::assert_snapshot;

use super::*;

fn progress() -> Progress {
    Progress {
        stage: "run".to_owned(),
        done: 14,
        total: Some(20),
        outcomes: 5753,
        seconds: 72.4,
        running: vec![
            ("tests/test_import.py::test_big_csv".to_owned(), 6.14),
            ("tests/test_a.py::test_quick".to_owned(), 0.1),
        ],
        failing: vec![
            ("tests/test_cache.py::test_cache_order".to_owned(), 1, 14),
            (
                "tests/test_checkout.py::TestPay::test_payment[a::b]".to_owned(),
                4,
                14,
            ),
            ("tests/test_tax.py::test_rounding".to_owned(), 14, 14),
        ],
    }
}

fn text(progress: &Progress, base: u32, stopping: bool, look: &Look) -> String {
    block(progress, base, stopping, look.columns() - 1, look).join("\n")
}

#[test]
fn block_at_100_columns() {
    assert_snapshot!(text(&progress(), 0, false, &Look::plain(100)));
}

#[test]
fn block_in_ascii_at_60_columns_while_stopping() {
    let look = Look {
        ascii: true,
        ..Look::plain(60)
    };
    let text = text(&progress(), 0, true, &look);
    assert!(text.is_ascii());
    assert_snapshot!(text);
}

#[test]
fn block_before_the_first_run() {
    let progress = Progress {
        stage: "run".to_owned(),
        total: Some(20),
        seconds: 3.2,
        ..Progress::default()
    };
    assert_snapshot!(text(&progress, 0, false, &Look::plain(80)));
}

#[test]
fn never_more_than_six_lines_and_never_wider_than_asked_for() {
    let mut crowded = progress();
    crowded.failing = (0..500)
        .map(|i| {
            (
                format!("t.py::test_\u{1b}[2J_{}_{i}", "x".repeat(300)),
                1 + i % 14,
                14,
            )
        })
        .collect();
    crowded.running = vec![(format!("tests/a.py::{}", "日本".repeat(200)), 99.0)];
    crowded.total = None;
    for progress in [
        progress(),
        crowded,
        Progress {
            seconds: f64::NAN,
            done: 9,
            total: Some(3),
            ..progress()
        },
    ] {
        for columns in 30..120 {
            let lines = block(&progress, 0, false, columns, &Look::plain(columns));
            assert!(lines.len() <= 6, "{lines:?}");
            for line in lines {
                assert!(text::width(&line) <= columns, "{columns}: {line}");
                assert_eq!(printable(&line), line);
            }
        }
    }
}

#[test]
fn the_time_left_counts_only_the_runs_of_this_sitting() {
    let progress = Progress {
        done: 110,
        total: Some(120),
        seconds: 20.0,
        ..progress()
    };
    assert_eq!(left(&progress, 100), Some(20.0));
    assert_eq!(left(&progress, 110), None);
    assert_eq!(
        left(
            &Progress {
                done: 120,
                ..progress
            },
            100
        ),
        None
    );
}
