//! Runs one command in a world, probes the machine, or measures what worlds cost. A tool for the tests and for finding out
//! why a suite behaves differently inside; not part of the product.
//!
//! `bmc-sandbox-try [--isolation LEVEL] [--net host] [--home DIR] [--expose PATH] [--writable PATH] [--mask PATH]
//! [--leftovers] --project DIR -- PROGRAM ARGUMENTS`, `bmc-sandbox-try --probe`, `bmc-sandbox-try --time COUNT`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::error::Error;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use bmc_sandbox::{Isolation, Launcher, Network, Spec};

fn main() -> ExitCode {
    bmc_sandbox::intercept();
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let mut text = format!("cannot {error}");
            let mut source = error.source();
            while let Some(inner) = source {
                text.push_str(&format!(": {inner}"));
                source = inner.source();
            }
            eprintln!("{text}");
            ExitCode::from(70)
        }
    }
}

fn run() -> Result<u8, Box<dyn Error>> {
    let launcher = Launcher::new()?;
    let mut spec = spec(PathBuf::from("/usr/share"), PathBuf::from("/bin/true"))?;
    spec.env = std::env::vars_os().collect();
    let mut leftovers = false;
    let mut given = std::env::args_os().skip(1);
    while let Some(option) = given.next() {
        let mut value = || {
            given
                .next()
                .ok_or("read the command line: an option lacks its value")
        };
        match option.to_str() {
            Some("--probe") => return Ok(probe(&launcher)),
            Some("--time") => return time(&launcher, value()?.to_string_lossy().parse()?),
            Some("--isolation") => {
                spec.isolation = match value()?.to_str() {
                    Some("full") => Isolation::Full,
                    Some("files-only") => Isolation::FilesOnly,
                    Some("copy") => Isolation::Copy,
                    _ => return Err("read the command line: no such isolation".into()),
                }
            }
            Some("--net") => {
                spec.network = if value()? == "host" {
                    Network::Host
                } else {
                    Network::Loopback
                };
            }
            Some("--project") => {
                spec.project = value()?.into();
                spec.cwd = spec.project.clone();
            }
            Some("--home") => spec.home = Some(value()?.into()),
            Some("--expose") => spec.expose.push(value()?.into()),
            Some("--writable") => spec.writable.push(value()?.into()),
            Some("--mask") => spec.masks.push(value()?.into()),
            Some("--leftovers") => leftovers = true,
            Some("--") => break,
            _ => return Err("read the command line: an unknown option".into()),
        }
    }
    spec.program = given
        .next()
        .ok_or("read the command line: no program after --")?
        .into();
    spec.args = given.collect();
    let mut world = launcher.spawn(spec)?;
    let exit = world.wait(None)?.ok_or("wait for the program")?;
    if leftovers {
        let left = world.finish()?;
        for process in left.processes {
            println!("process {} {}", process.pid, process.name);
        }
        for file in left.files {
            println!("{:?} {:?} {}", file.change, file.place, file.path.display());
        }
    }
    Ok(exit
        .code
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(128))
}

fn spec(project: PathBuf, program: PathBuf) -> Result<Spec, Box<dyn Error>> {
    Ok(Spec {
        isolation: Isolation::Full,
        network: Network::Loopback,
        cwd: project.clone(),
        project,
        home: None,
        expose: Vec::new(),
        writable: Vec::new(),
        masks: Vec::new(),
        scratch_bytes: 1 << 30,
        scratch_inodes: 1 << 20,
        program,
        args: Vec::new(),
        env: Vec::new(),
        stdout: std::io::stdout().as_fd().try_clone_to_owned()?,
        stderr: std::io::stderr().as_fd().try_clone_to_owned()?,
        inherit: Vec::new(),
        nice: 0,
    })
}

fn probe(launcher: &Launcher) -> u8 {
    let probe = launcher.probe();
    println!("{}", probe.level);
    for step in &probe.steps {
        println!(
            "{} {}{}{}",
            if step.ok { "ok" } else { "no" },
            step.name,
            if step.ok { "" } else { ": " },
            step.detail
        );
    }
    u8::from(probe.level != Isolation::Full)
}

/// Measures a plain start, a whole world, and a child world, each with its end.
fn time(launcher: &Launcher, count: usize) -> Result<u8, Box<dyn Error>> {
    let project = std::env::current_dir()?;
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let true_program = || PathBuf::from("/bin/true");
    report(
        "plain /bin/true",
        &measure(count, || {
            Command::new("/bin/true").status()?;
            Ok(())
        })?,
    );
    for isolation in [Isolation::Copy, Isolation::FilesOnly, Isolation::Full] {
        let mut starts = Vec::new();
        let whole = measure(count, || {
            let mut spec = spec(project.clone(), true_program())?;
            spec.home = home.clone();
            spec.isolation = isolation;
            let begin = Instant::now();
            let mut world = launcher.spawn(spec)?;
            starts.push(begin.elapsed());
            world.wait(None)?;
            world.kill();
            Ok(())
        })?;
        starts.sort_unstable();
        report(&format!("{isolation}: spawn"), &starts);
        report(&format!("{isolation}: spawn + wait + kill"), &whole);
    }
    let mut parent = spec(project, PathBuf::from("/bin/sleep"))?;
    parent.home = home;
    parent.args = vec![OsString::from("1000")];
    let world = launcher.spawn(parent)?;
    let mut starts = Vec::new();
    let whole = measure(count, || {
        let begin = Instant::now();
        let (mut child, _namespaces) = world.child_world()?;
        starts.push(begin.elapsed());
        child.kill();
        Ok(())
    })?;
    starts.sort_unstable();
    report("child_world", &starts);
    report("child_world + kill", &whole);
    Ok(0)
}

fn measure(
    count: usize,
    mut work: impl FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<Vec<Duration>, Box<dyn Error>> {
    let mut times = Vec::new();
    for _ in 0..count {
        let begin = Instant::now();
        work()?;
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    Ok(times)
}

fn report(what: &str, sorted: &[Duration]) {
    let at = |part: usize| {
        sorted
            .get(sorted.len() * part / 100)
            .copied()
            .unwrap_or_default()
            .as_secs_f64()
            * 1000.0
    };
    println!("{what}: p50 {:.2} ms, p90 {:.2} ms", at(50), at(90));
}
