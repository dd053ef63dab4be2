//! How payloads start and end, and that nothing outlives a world.

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bmc_sandbox::{Isolation, SandboxError};

use crate::support::{
    LEVELS, LONG, Site, is_root, launcher, python, read_to_end, read_until, run, said, start, tool,
};

/// Starts a daemon that wants to live: new sessions, two forks, all signals ignored. It holds the output open.
const DAEMON: &str = r#"
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        for number in range(1, 65):
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        print("daemon", flush=True)
        time.sleep(1000)
    os._exit(0)
os.wait()
"#;

#[test]
fn exit_codes_signals_and_usage_are_told() {
    let site = Site::new();
    for isolation in LEVELS {
        let mut spec = site.shell("exit 7");
        spec.isolation = isolation;
        let exit = run(spec).exit;
        assert_eq!((exit.code, exit.signal), (Some(7), None));
        let mut spec = site.shell("kill -SEGV $$");
        spec.isolation = isolation;
        let exit = run(spec).exit;
        assert_eq!((exit.code, exit.signal), (None, Some(SIGSEGV)));
        let work = "x = bytearray(80_000_000); import time\nwhile time.process_time() < 0.2: pass";
        let mut spec = site.python(work);
        spec.isolation = isolation;
        let exit = run(spec).exit;
        assert!(
            exit.maxrss_kb > 78_000 && exit.maxrss_kb < 400_000,
            "{exit:?}"
        );
        let total = exit.user + exit.system;
        assert!(
            total >= Duration::from_millis(190) && total < Duration::from_secs(5),
            "{exit:?}"
        );
    }
}

const SIGSEGV: i32 = 11;

#[test]
fn waiting_ends_with_the_time_and_repeats_its_answer() {
    let site = Site::new();
    let (reader, writer) = std::io::pipe().unwrap();
    let mut spec = site.shell("read line <&9; exit 3");
    spec.inherit = vec![(reader.into(), 9)];
    let mut world = launcher().spawn(spec).unwrap();
    assert_eq!(world.wait(Some(Duration::from_millis(20))).unwrap(), None);
    drop(writer);
    let first = world.wait(None).unwrap().unwrap();
    assert_eq!(first.code, Some(3));
    assert_eq!(world.wait(None).unwrap().unwrap(), first);
    world.kill();
    world.kill();
    assert_eq!(world.wait(Some(LONG)).unwrap().unwrap(), first);
    assert!(matches!(world.signal_all(15), Err(SandboxError::Gone)));
}

#[test]
fn a_killed_world_has_no_exit() {
    let site = Site::new();
    for isolation in LEVELS {
        let mut spec = site.shell("sleep 1000");
        spec.isolation = isolation;
        let mut world = launcher().spawn(spec).unwrap();
        world.kill();
        assert!(
            matches!(world.wait(None), Err(SandboxError::Gone)),
            "{isolation}"
        );
    }
}

#[test]
fn daemons_are_listed_and_end_with_the_world() {
    let site = Site::new();
    for isolation in LEVELS {
        let mut spec = site.python(DAEMON);
        spec.isolation = isolation;
        let (mut world, mut output) = start(spec);
        read_until(&mut output, "daemon");
        assert_eq!(world.wait(Some(LONG)).unwrap().unwrap().code, Some(0));
        let left = world.finish().unwrap();
        assert_eq!(left.processes.len(), 1, "{isolation}: {left:?}");
        assert!(left.processes[0].name.starts_with("python3"), "{left:?}");
        // Only a process that is alive could keep this from ending.
        assert_eq!(read_to_end(output), "\n");
    }
}

#[test]
fn dropping_a_world_ends_a_tree_of_stubborn_processes() {
    let site = Site::new();
    for isolation in LEVELS {
        let script = "import os\nfor _ in range(20):\n    if os.fork() == 0: break\n".to_owned()
            + DAEMON
            + "\ntime.sleep(1000)";
        let mut spec = site.python(&script);
        spec.isolation = isolation;
        let (world, mut output) = start(spec);
        for _ in 0..21 {
            read_until(&mut output, "daemon");
        }
        let begin = Instant::now();
        drop(world);
        assert_eq!(read_to_end(output), "\n");
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "{isolation}: {:?}",
            begin.elapsed()
        );
    }
}

#[test]
fn nothing_survives_a_killed_launcher() {
    let site = Site::new();
    for isolation in LEVELS {
        let script = DAEMON.to_owned() + "\nprint('ready', flush=True)\ntime.sleep(1000)";
        let mut launcher = Command::new(tool())
            .args(["--isolation", &isolation.to_string(), "--project"])
            .arg(&site.project)
            .arg("--")
            .arg(python())
            .args(["-c", &script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = fs::File::from(OwnedFd::from(launcher.stdout.take().unwrap()));
        // Two lines, in either order.
        read_until(&mut output, "\n");
        read_until(&mut output, "\n");
        launcher.kill().unwrap();
        launcher.wait().unwrap();
        assert_eq!(read_to_end(output), "", "{isolation}");
    }
}

#[test]
fn the_environment_is_the_given_one_and_the_supervisor_is_closed() {
    let site = Site::new();
    let script = "env | sort; for f in environ fd/0 mem maps root/x; do cat /proc/1/$f 2>&1 | head -c 60; echo; done; \
        tr '\\0' '\\n' < /proc/1/cmdline";
    let mut spec = site.shell(script);
    spec.env = vec![
        ("ONLY".into(), "this".into()),
        ("PATH".into(), "/usr/bin:/bin".into()),
    ];
    let output = said(spec);
    let variables: Vec<&str> = output
        .lines()
        .take_while(|line| line.contains('='))
        .collect();
    // The shell adds the last one.
    let pwd = format!("PWD={}", site.project.display());
    assert_eq!(variables, ["ONLY=this", "PATH=/usr/bin:/bin", &pwd]);
    assert_eq!(output.matches("Permission denied").count(), 5, "{output}");
    assert!(output.ends_with("bmc-sandbox\n"), "{output}");
}

#[test]
fn a_payload_starts_in_a_clean_state() {
    let site = Site::new();
    let script = r#"
import os
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
print(sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:-1])
print(os.readlink("/proc/self/fd/0"), os.getsid(0) == os.getpid(), status["NoNewPrivs"])
# Python itself ignores SIGPIPE (13) and SIGXFSZ (25); the C library, in whatever it spawns, its own 32 and 33.
others = ~(1 << 12 | 1 << 24 | 1 << 31 | 1 << 32)
print(status["SigBlk"], int(status["SigIgn"], 16) & others == int(os.environ["IGNORED"], 16) & others)
import resource; print(resource.getrlimit(resource.RLIMIT_CORE))
try: open("/dev/tty")
except OSError as error: print(error.strerror)
print(os.getpriority(os.PRIO_PROCESS, 0) - int(os.environ["NICE"]))
"#;
    let nice = Command::new("nice").output().unwrap();
    let nice = String::from_utf8(nice.stdout).unwrap().trim().to_owned();
    // What is ignored where we were started is ignored in a payload, too, as in any program.
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:\t"))
        .unwrap()
        .to_owned();
    for isolation in LEVELS {
        let mut spec = site.python(script);
        spec.isolation = isolation;
        spec.env.push(("IGNORED".into(), ignored.clone().into()));
        spec.nice = 3;
        spec.env.push(("NICE".into(), nice.clone().into()));
        let expected = "[0, 1, 2]\n/dev/null True 1\n0000000000000000 True\n(0, 0)\nNo such device or address\n3\n";
        assert_eq!(said(spec), expected, "{isolation}");
    }
}

#[test]
fn inherited_descriptors_get_their_numbers_whatever_theirs_are() {
    let site = Site::new();
    // More than the helper has free below these numbers, in reverse, so that sources and targets cross.
    let count = 20;
    let script = r#"
import os
for number in range(3, 23):
    os.write(number, b"%d;" % number)
print(sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:-1] == list(range(0, 23)))
"#;
    let mut spec = site.python(script);
    let mut readers = Vec::new();
    for number in (3..3 + count).rev() {
        let (reader, writer) = std::io::pipe().unwrap();
        spec.inherit.push((writer.into(), number));
        readers.push((reader, number));
    }
    assert_eq!(said(spec), "True\n");
    for (mut reader, number) in readers {
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, format!("{number};"));
    }
}

#[test]
fn capabilities_are_gone_except_roots_file_rights() {
    let site = Site::new();
    let output =
        said(site.shell("grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb)' /proc/self/status | cut -f2"));
    // CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, KILL, SETGID, SETUID are the numbers 0 to 7.
    let kept = if is_root() {
        "00000000000000ff"
    } else {
        "0000000000000000"
    };
    let none = "0000000000000000";
    assert_eq!(
        output.lines().collect::<Vec<_>>(),
        [none, kept, kept, kept, none]
    );
    let numbers: Vec<u32> = if is_root() {
        (0..8).collect()
    } else {
        Vec::new()
    };
    assert_eq!(bmc_sandbox::payload_capabilities(), numbers);
}

#[test]
fn users_and_the_host_name_are_as_outside() {
    let site = Site::new();
    let outside = |program: &str, args: &[&str]| {
        String::from_utf8(Command::new(program).args(args).output().unwrap().stdout).unwrap()
    };
    let output = said(site.shell("id -u; id -g; hostname; stat -c %u /"));
    let expected = outside("sh", &["-c", "id -u; id -g; hostname"]);
    assert!(output.starts_with(&expected), "{output} {expected}");
    // Root sees whose files are whose; an ordinary user can map only itself.
    assert!(
        output.ends_with(if is_root() { "\n0\n" } else { "\n65534\n" }),
        "{output}"
    );
}

#[test]
fn the_hosts_processes_are_invisible() {
    let site = Site::new();
    let output = said(
        site.shell("ls /proc | grep -c '^[0-9]'; kill -0 2 && echo self; kill -9 -1; echo $?"),
    );
    let mut lines = output.lines();
    let count: u32 = lines.next().unwrap().parse().unwrap();
    assert!(count <= 5, "{output}");
    assert_eq!(lines.next(), Some("self"));
}

#[test]
fn a_signal_reaches_all_processes_of_a_world_and_no_others() {
    let site = Site::new();
    // A real-time signal, as used for stack dumps: the standard library has no name for it.
    let number = 37;
    let script = format!(
        r#"
import os, signal, sys, time
other = os.fork()
def answer(*_):
    os.write(1, b"got\n"); os._exit(0)
signal.signal({number}, answer)
os.write(1, b"set\n")
while True: time.sleep(1)
"#
    );
    for isolation in LEVELS {
        let mut spec = site.python(&script);
        spec.isolation = isolation;
        let (world, mut output) = start(spec);
        read_until(&mut output, "set\nset\n");
        world.signal_all(number).unwrap();
        assert_eq!(read_to_end(output), "got\ngot\n", "{isolation}");
        world.signal_all(number).unwrap();
        assert!(matches!(
            world.signal_all(10_000),
            Err(SandboxError::Refused { .. }) | Ok(())
        ));
    }
}

#[test]
fn a_copy_level_payload_runs_in_place() {
    let site = Site::new();
    let mut spec = site.shell("echo direct > made; pwd");
    spec.isolation = Isolation::Copy;
    assert_eq!(said(spec), format!("{}\n", site.project.display()));
    assert_eq!(
        fs::read_to_string(site.project.join("made")).unwrap(),
        "direct\n"
    );
}

#[test]
fn many_worlds_can_be_started_from_threads_that_end() {
    let site = Site::new();
    // The kernel ties a helper to the thread that started it; these threads are gone while their worlds live.
    let worlds: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|_| scope.spawn(|| start(site.shell("echo up; sleep 1000"))))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    for (mut world, mut output) in worlds {
        read_until(&mut output, "up");
        assert_eq!(world.wait(Some(Duration::from_millis(30))).unwrap(), None);
    }
}
