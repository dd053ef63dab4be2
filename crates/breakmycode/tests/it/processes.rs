//! Looks for processes that a scan left behind. Every process of a scan carries the folder of its test in its environment.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// A killed process is gone when the kernel has taken it down. That is not a wait for work to end.
const DEADLINE: Duration = Duration::from_secs(20);

/// Fails if a process that has to do with that folder stays.
#[track_caller]
pub(crate) fn assert_none_left(folder: &Path) {
    let begin = Instant::now();
    loop {
        let left = of(folder);
        if left.is_empty() {
            return;
        }
        assert!(begin.elapsed() < DEADLINE, "processes are left: {left:#?}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Processes whose arguments, environment or working directory name the folder.
pub(crate) fn of(folder: &Path) -> Vec<String> {
    let needle = folder.as_os_str().as_encoded_bytes();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let Ok(entry) = entry else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.parse::<u32>().is_err() || name == std::process::id().to_string() {
            continue;
        }
        // A process that ends meanwhile, or one of another user, has nothing to read.
        let read = |what: &str| fs::read(entry.path().join(what)).unwrap_or_default();
        let arguments = read("cmdline");
        let cwd = fs::read_link(entry.path().join("cwd"))
            .map(|path| path.into_os_string().into_encoded_bytes());
        let has = |bytes: &[u8]| bytes.windows(needle.len()).any(|part| part == needle);
        if has(&arguments) || has(&read("environ")) || cwd.is_ok_and(|cwd| has(&cwd)) {
            found.push(format!(
                "{name}: {}",
                String::from_utf8_lossy(&arguments).replace('\0', " ")
            ));
        }
    }
    found
}
