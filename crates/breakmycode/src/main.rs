//! The `breakmycode` binary: reads arguments, calls a workflow, prints its result, and gives the documented exit code.

mod args;
mod command;
mod failure;
mod live;
mod render;
mod settings;
mod style;
mod text;

use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use args::Cli;

fn main() -> ExitCode {
    // First of all: this process may be a sandbox helper, which must have one thread and no history.
    bmc_sandbox::intercept();
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            // `print` knows which stream; a closed one is not an error of ours.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let interrupt = Arc::new(AtomicU8::new(0));
    watch_signals(&interrupt);
    // The hook has printed what happened and where. Worlds of running tests end with this process.
    match std::panic::catch_unwind(AssertUnwindSafe(|| command::run(cli, interrupt))) {
        Ok(Ok(code)) => ExitCode::from(code),
        Ok(Err(failure)) => {
            let _ = std::io::stderr().write_all(failure.text().as_bytes());
            ExitCode::from(failure.exit_code())
        }
        Err(_) => {
            let words = b"error: this is a fault of breakmycode itself\n  help: report the lines above; finished runs are kept: breakmycode show latest\n";
            let _ = std::io::stderr().write_all(words);
            ExitCode::from(70)
        }
    }
}

/// Counts requests to stop: the first lets running tests finish, the second kills them.
fn watch_signals(interrupt: &Arc<AtomicU8>) {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else {
        return;
    };
    let interrupt = interrupt.clone();
    // Without the thread Ctrl-C would do nothing at all, so its absence is worth giving up the graceful stop.
    let spawned = thread::Builder::new().name("signals".into()).spawn(move || {
        for _ in signals.forever() {
            let before = interrupt.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some(n.saturating_add(1))).unwrap_or(0);
            let words: &[u8] = match before {
                0 => b"\nStopping: finishing running tests (at most 5 s) and saving. Ctrl-C again to kill them now.\n",
                1 => b"\nKilling running tests and saving.\n",
                _ => b"",
            };
            let _ = std::io::stderr().write_all(words);
        }
    });
    drop(spawned);
}
