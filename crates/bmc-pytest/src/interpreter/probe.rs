//! Asks an interpreter what it is, within a time limit, and tells the ways of not answering apart.
//!
//! The question is a small script run with `-I`, so that neither the working directory nor `PYTHONPATH` can change the answer; both, and
//! the user's site folder, are handed over as data because the real run (`python -m pytest`) does see them. Must not import pytest or
//! any of the project's code, and must leave no process behind.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::{Fault, Plugin, ProbeResult};

const SCRIPT: &str = include_str!("../../python_probe/probe.py");

/// What the answer's line starts with.
const MARK: &str = "BREAKMYCODE-PROBE ";

/// How long an interpreter may take. A loaded machine with pyenv shims and cold caches was seen to need 2 s.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(20);

/// How much of each output stream is kept. An answer with 500 plugins and paths is below 100 KB.
const OUTPUT_LIMIT: u64 = 1 << 20;

/// Variables that starting an interpreter may need: finding libraries, home folders, and the version a shim should pick.
const PASSED: [&str; 16] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "XDG_DATA_HOME",
    "PYTHONUSERBASE",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
    "MISE_DATA_DIR",
];

/// How and where to ask.
pub(crate) struct Question<'a> {
    /// Working directory: shims choose by it.
    pub(crate) folder: &'a Path,
    /// The variables of the user's shell.
    pub(crate) vars: &'a BTreeMap<OsString, OsString>,
    /// How long to wait.
    pub(crate) limit: Duration,
}

#[derive(Deserialize)]
struct Answer {
    version: (u32, u32, u32),
    implementation: String,
    executable: Option<PathBuf>,
    prefix: Option<PathBuf>,
    base_prefix: Option<PathBuf>,
    pytest: Option<String>,
    plugins: Vec<(String, Option<String>, String)>,
    platform: String,
    has_ctypes: bool,
    sys_path: Vec<PathBuf>,
    pyvenv_home: Option<PathBuf>,
    extends_environment: Option<PathBuf>,
}

/// Asks the interpreter at `executable`.
pub(crate) fn ask(executable: &Path, question: &Question<'_>) -> Result<ProbeResult, Fault> {
    check_file(executable)?;
    let mut output = start(executable, &["-I"], question)?;
    if !output.status.success() && output.stderr.contains("Unknown option: -I") {
        // Python 2 has no -I. It cannot be used, but it can be named.
        output = start(executable, &["-E", "-s"], question)?;
    }
    let answer = output
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix(MARK))
        .find_map(|line| serde_json::from_str::<Answer>(line).ok());
    if let Some(answer) = answer {
        return Ok(result(answer, executable));
    }
    if let Some(home) = missing_base(executable) {
        return Err(Fault::BaseMoved { home });
    }
    if output.status.success() {
        let text = if output.stdout.trim().is_empty() {
            &output.stderr
        } else {
            &output.stdout
        };
        return Err(Fault::Garbage {
            text: first_line(text),
        });
    }
    let message = match output.status.signal() {
        Some(signal) => format!("ended by signal {signal}"),
        None => last_line(&output.stderr),
    };
    Err(Fault::Exit {
        code: output.status.code(),
        message,
    })
}

fn result(answer: Answer, asked: &Path) -> ProbeResult {
    let plugins = answer
        .plugins
        .into_iter()
        .map(|(distribution, version, entry_point)| Plugin {
            distribution,
            version: version.unwrap_or_default(),
            entry_point,
        });
    let executable = answer.executable.filter(|path| path.is_absolute());
    let prefix = answer.prefix.unwrap_or_default();
    ProbeResult {
        version: answer.version,
        implementation: answer.implementation,
        executable: executable.unwrap_or_else(|| asked.to_owned()),
        base_prefix: answer.base_prefix.unwrap_or_else(|| prefix.clone()),
        prefix,
        pytest: answer.pytest,
        plugins: plugins.collect(),
        platform: answer.platform,
        has_ctypes: answer.has_ctypes,
        sys_path: answer.sys_path,
        pyvenv_home: answer.pyvenv_home,
        extends_environment: answer.extends_environment,
    }
}

/// Finds what the file system alone can tell: missing, dangling, not executable, made for another system.
fn check_file(executable: &Path) -> Result<(), Fault> {
    let Ok(link) = fs::symlink_metadata(executable) else {
        return Err(Fault::Missing);
    };
    let Ok(file) = fs::metadata(executable) else {
        if let Some(home) = missing_base(executable) {
            return Err(Fault::BaseMoved { home });
        }
        return Err(match last_link(executable) {
            Some(target) if link.is_symlink() => Fault::DanglingLink { target },
            _ => Fault::Missing,
        });
    };
    if !file.is_file() {
        return Err(Fault::NoInterpreter);
    }
    let start = first_bytes(executable);
    if start.starts_with(b"MZ") || (cfg!(target_os = "linux") && is_mach_o(&start)) {
        return Err(Fault::ForeignFormat);
    }
    if file.permissions().mode() & 0o111 == 0 {
        return Err(Fault::NotExecutable);
    }
    Ok(())
}

fn is_mach_o(start: &[u8]) -> bool {
    [[0xcf, 0xfa, 0xed, 0xfe], [0xca, 0xfe, 0xba, 0xbe]]
        .iter()
        .any(|magic| start.starts_with(magic))
}

fn first_bytes(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    // An unreadable but executable file is legal: nothing can be said about it then.
    if let Ok(file) = fs::File::open(path) {
        let _ = file.take(256).read_to_end(&mut bytes);
    }
    bytes
}

/// Follows links until the one whose target does not exist.
fn last_link(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..40 {
        let target = fs::read_link(&path).ok()?;
        path = path.parent().unwrap_or(Path::new("/")).join(target);
        if fs::symlink_metadata(&path).is_err() {
            return Some(path);
        }
    }
    None
}

/// Returns the folder of the base interpreter that `pyvenv.cfg` names, if it no longer exists.
fn missing_base(executable: &Path) -> Option<PathBuf> {
    let environment = executable.parent()?.parent()?;
    let config = super::metadata::read_text(&environment.join("pyvenv.cfg"))?;
    let home = config.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "home").then(|| PathBuf::from(value.trim()))
    })?;
    (!home.exists()).then_some(home)
}

struct Output {
    status: ExitStatus,
    stdout: String,
    stderr: String,
}

fn start(executable: &Path, flags: &[&str], question: &Question<'_>) -> Result<Output, Fault> {
    let mut command = Command::new(executable);
    command
        .args(flags)
        .arg("-c")
        .arg(SCRIPT)
        .arg(hidden_paths(question))
        .current_dir(question.folder)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    for name in PASSED {
        if let Some(value) = question.vars.get(OsStr::new(name)) {
            command.env(name, value);
        }
    }
    let child = spawn(&mut command).map_err(|error| start_fault(executable, &error))?;
    wait(child, question.limit)
}

/// Starts the command; a file that is being written at this very moment is tried again for a while.
fn spawn(command: &mut Command) -> io::Result<Child> {
    for _ in 0..25 {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                thread::sleep(Duration::from_millis(20));
            }
            other => return other,
        }
    }
    command.spawn()
}

fn start_fault(executable: &Path, error: &io::Error) -> Fault {
    let start = first_bytes(executable);
    match error
        .raw_os_error()
        .map(rustix::io::Errno::from_raw_os_error)
    {
        Some(rustix::io::Errno::NOEXEC) => Fault::ForeignFormat,
        Some(rustix::io::Errno::NOENT) if start.starts_with(b"\x7fELF") => Fault::ForeignFormat,
        Some(rustix::io::Errno::NOENT) if start.starts_with(b"#!") => {
            let line = start[2..]
                .split(|byte| *byte == b'\n')
                .next()
                .unwrap_or_default();
            let line = String::from_utf8_lossy(line);
            Fault::CannotStart(format!(
                "its first line names {}, which does not exist",
                line.trim()
            ))
        }
        Some(rustix::io::Errno::ACCESS) => Fault::NotExecutable,
        _ => Fault::CannotStart(error.to_string()),
    }
}

/// Returns what `-I` hides but the real run sees: `PYTHONPATH` and whether the user's site folder is on.
fn hidden_paths(question: &Question<'_>) -> String {
    let value = |name: &str| {
        question
            .vars
            .get(OsStr::new(name))
            .filter(|value| !value.is_empty())
    };
    let paths: Vec<String> = value("PYTHONPATH")
        .map(|paths| paths.as_bytes().split(|byte| *byte == b':'))
        .into_iter()
        .flatten()
        .filter(|path| !path.is_empty())
        .map(|path| question.folder.join(OsStr::from_bytes(path)))
        .filter_map(|path| path.to_str().map(str::to_owned))
        .collect();
    serde_json::json!({"paths": paths, "user_site": value("PYTHONNOUSERSITE").is_none()})
        .to_string()
}

/// Waits for the child and its output, and ends everything it started: a wrapper may leave processes that hold the pipes open.
fn wait(mut child: Child, limit: Duration) -> Result<Output, Fault> {
    let group = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let (sender, exited) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait()));
    let end = Instant::now() + limit;
    let status = exited.recv_timeout(limit);
    if let Some(group) = group {
        // Nothing left to kill is the usual case.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    match status {
        Ok(Ok(status)) => {
            // The pipes close with the last process of the group; one that left it may hold them, so the wait has an end.
            let grace = end
                .saturating_duration_since(Instant::now())
                .min(Duration::from_secs(2));
            let text = |from: mpsc::Receiver<Vec<u8>>| {
                String::from_utf8_lossy(&from.recv_timeout(grace).unwrap_or_default()).into_owned()
            };
            Ok(Output {
                status,
                stdout: text(stdout),
                stderr: text(stderr),
            })
        }
        Ok(Err(error)) => Err(Fault::CannotStart(error.to_string())),
        Err(RecvTimeoutError::Timeout) => Err(Fault::Timeout {
            seconds: limit.as_secs(),
        }),
        Err(RecvTimeoutError::Disconnected) => Err(Fault::CannotStart(
            "its end could not be waited for".to_owned(),
        )),
    }
}

/// Reads a stream to its end in a thread, keeping the first part: a child must never block on a full pipe.
fn drain(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut kept = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.by_ref().take(OUTPUT_LIMIT).read_to_end(&mut kept);
            let _ = io::copy(&mut stream, &mut io::sink());
        }
        sender.send(kept)
    });
    receiver
}

fn first_line(text: &str) -> String {
    shorten(
        text.lines()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .unwrap_or_default(),
    )
}

fn last_line(text: &str) -> String {
    shorten(
        text.lines()
            .rev()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .unwrap_or_default(),
    )
}

/// Cuts a foreign line and takes the control characters out: it ends up on a terminal.
fn shorten(line: &str) -> String {
    line.chars().filter(|c| !c.is_control()).take(200).collect()
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
