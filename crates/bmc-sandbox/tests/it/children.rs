//! Child worlds: what a fork server's children see, and what they leave.

use std::fs;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use bmc_sandbox::{
    Change, LeftFile, Namespace, Network, Place, SandboxError, World, payload_capabilities,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recv, sendmsg, socketpair,
};

use crate::support::{Site, is_root, launcher, read_to_end, read_until};

/// A running fork server.
struct Server {
    world: World,
    channel: OwnedFd,
    cwd: PathBuf,
}

impl Server {
    /// Starts one; `prepare` runs in the server before it is ready.
    fn start(site: &Site, prepare: &str, network: Network) -> Self {
        let (channel, other) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        let mut spec = site.python(include_str!("fork_server.py"));
        spec.args.push(prepare.into());
        spec.inherit = vec![(other, 10)];
        spec.network = network;
        spec.stderr = std::io::stderr().as_fd().try_clone_to_owned().unwrap();
        let world = launcher().spawn(spec).unwrap();
        let mut buffer = [0_u8; 16];
        let (length, _) = recv(&channel, &mut buffer, RecvFlags::empty()).unwrap();
        assert_eq!(&buffer[..length], b"ready");
        Self {
            world,
            channel,
            cwd: site.project.clone(),
        }
    }

    /// Runs code in a child world; its output can be read from the returned pipe and ends with it.
    fn run_in(&self, namespaces: &[(Namespace, OwnedFd)], code: &str) -> fs::File {
        let (reader, writer) = std::io::pipe().unwrap();
        let request = format!(
            "{{\"cwd\": {:?}, \"keep\": {:?}, \"code\": {}}}",
            self.cwd,
            payload_capabilities(),
            serde_json::to_string(code).unwrap()
        );
        let mut attached: Vec<BorrowedFd<'_>> = vec![writer.as_fd()];
        attached.extend(namespaces.iter().map(|(_, descriptor)| descriptor.as_fd()));
        let mut space = [MaybeUninit::uninit(); 256];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&attached)));
        sendmsg(
            &self.channel,
            &[IoSlice::new(request.as_bytes())],
            &mut control,
            SendFlags::empty(),
        )
        .unwrap();
        drop(writer);
        fs::File::from(OwnedFd::from(reader))
    }

    /// Runs code in a new child world to its end.
    fn child(&self, code: &str) -> (String, World) {
        let (child, namespaces) = self.world.child_world().unwrap();
        let output = read_to_end(self.run_in(&namespaces, code));
        (output, child)
    }

    /// Runs code in the server's own world, with no namespaces to enter.
    fn here(&self, code: &str) -> String {
        read_to_end(self.run_in(&[], code))
    }
}

fn file(place: Place, path: &str, change: Change) -> LeftFile {
    LeftFile {
        place,
        path: path.into(),
        change,
    }
}

const PREPARE: &str = r#"
import os
open("from-server", "w").write("server\n")
os.remove("sub/inner.txt")
open(os.environ["HOME"] + "/.cache", "w").write("cached\n")
open("/tmp/shared", "w").write("tmp\n")
STATE.append("prepared")
"#;

#[test]
fn a_child_world_starts_from_the_server_and_keeps_its_writes_to_itself() {
    let site = Site::new();
    let before = site.snapshot();
    let server = Server::start(&site, PREPARE, Network::Loopback);
    let look = r#"
import os
home = os.environ["HOME"]
print(STATE, open("from-server").read(), os.path.exists("sub/inner.txt"), open(home + "/.cache").read(),
      open("/tmp/shared").read(), os.path.exists("mine"), os.listdir("/dev/shm"), open("kept.txt").read())
open("mine", "w").write("x"); open("kept.txt", "a").write("more"); os.remove("from-server")
open("sub/inner.txt", "w").write("again"); os.remove(home + "/.cache"); open("/tmp/shared", "a").write("more")
open("/tmp/own", "w"); open("/dev/shm/own", "w"); open("/var/tmp/own", "w")
import shutil; shutil.rmtree("sub/deep"); os.mkdir("sub/deep")
"#;
    let expected = "['loaded', 'prepared'] server\n False cached\n tmp\n False [] before\n\n";
    let left = [
        file(Place::Project, "from-server", Change::Deleted),
        file(Place::Project, "kept.txt", Change::Changed),
        file(Place::Project, "mine", Change::Created),
        file(Place::Project, "sub/deep", Change::Changed),
        file(Place::Project, "sub/inner.txt", Change::Created),
        file(Place::Home, ".cache", Change::Deleted),
        file(Place::Tmp, "own", Change::Created),
        file(Place::Tmp, "shared", Change::Changed),
        file(Place::VarTmp, "own", Change::Created),
        file(Place::Shm, "own", Change::Created),
    ];
    // The second sees nothing of the first.
    for _ in 0..2 {
        let (output, child) = server.child(look);
        assert_eq!(output, expected);
        let found = child.finish().unwrap();
        assert_eq!(found.files, left);
        assert!(found.processes.is_empty(), "{found:?}");
    }
    let output = server.here(
        "import os; print(os.path.exists('mine'), open('kept.txt').read(), os.listdir('/dev/shm'))",
    );
    assert_eq!(output, "False before\n []\n");
    assert_eq!(site.snapshot(), before);
    let left_by_server = [
        file(Place::Project, "from-server", Change::Created),
        file(Place::Project, "sub/inner.txt", Change::Deleted),
        file(Place::Home, ".cache", Change::Created),
        file(Place::Tmp, "shared", Change::Created),
    ];
    assert_eq!(server.world.finish().unwrap().files, left_by_server);
}

#[test]
fn parallel_child_worlds_share_no_ports_names_or_processes() {
    let site = Site::new();
    let server = Server::start(&site, "", Network::Loopback);
    let code = r#"
import os, socket, sys
servers = [socket.create_server((host, 45124), family=family)
           for host, family in (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6))]
abstract = socket.socket(socket.AF_UNIX); abstract.bind("\0bmc-child"); abstract.listen()
import multiprocessing; multiprocessing.Semaphore(1)
open("/tmp/fixed", "x"); open("/dev/shm/fixed", "x")
print("bound", len([name for name in os.listdir("/proc") if name.isdigit()]), os.getpid(), flush=True)
import time; time.sleep(1000)
"#;
    let mut running = Vec::new();
    for _ in 0..3 {
        let (child, namespaces) = server.world.child_world().unwrap();
        let names: Vec<Namespace> = namespaces.iter().map(|(name, _)| *name).collect();
        let all = [
            Namespace::User,
            Namespace::Mount,
            Namespace::Net,
            Namespace::Ipc,
            Namespace::Uts,
            Namespace::Pid,
        ];
        assert_eq!(names, all);
        let mut output = server.run_in(&namespaces, code);
        // Two processes: the init and this one.
        assert_eq!(read_until(&mut output, "\n"), "bound 2 2\n");
        running.push((child, output));
    }
    for (mut child, output) in running {
        assert!(matches!(child.wait(None), Err(SandboxError::NoPayload)));
        child.kill();
        child.kill();
        assert_eq!(read_to_end(output), "");
    }
}

#[test]
fn a_child_world_dies_as_one_and_names_what_was_left() {
    let site = Site::new();
    let server = Server::start(&site, "", Network::Loopback);
    let daemon = r#"
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        for number in range(1, 65):
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        os.write(1, b"daemon\n")
        time.sleep(1000)
    os._exit(0)
os.wait()
"#;
    let (child, namespaces) = server.world.child_world().unwrap();
    let mut output = server.run_in(&namespaces, daemon);
    read_until(&mut output, "daemon\n");
    let left = child.finish().unwrap();
    // The first process of the child world may still be on its way out.
    assert!(!left.processes.is_empty(), "{left:?}");
    assert!(
        left.processes
            .iter()
            .all(|process| process.name.starts_with("python3")),
        "{left:?}"
    );
    assert_eq!(read_to_end(output), "");
}

#[test]
fn the_end_of_the_server_ends_its_child_worlds() {
    let site = Site::new();
    let server = Server::start(&site, "", Network::Loopback);
    let (child, namespaces) = server.world.child_world().unwrap();
    let mut output = server.run_in(
        &namespaces,
        "import os, time; os.write(1, b'up\\n'); time.sleep(1000)",
    );
    read_until(&mut output, "up\n");
    drop(server.world);
    assert_eq!(read_to_end(output), "");
    assert!(matches!(
        child.finish(),
        Err(SandboxError::Gone | SandboxError::Channel(_))
    ));
}

#[test]
fn rights_in_a_child_world_are_those_of_the_server() {
    let site = Site::new();
    let server = Server::start(&site, "", Network::Loopback);
    let code = r#"
import os
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
print(status["CapEff"], status["CapPrm"], status["NoNewPrivs"], os.getuid(), os.getgid())
import subprocess
print(subprocess.run(["grep", "CapEff", "/proc/self/status"], capture_output=True, text=True).stdout.split()[1])
for name in ("environ", "mem", "fd/0", "root/usr"):
    try: os.close(os.open("/proc/1/" + name, os.O_RDONLY))
    except PermissionError: print("closed")
try: open("/usr/x", "w")
except OSError as error: print(error.errno in (13, 30))
try: open("/proc/sys/kernel/core_pattern", "w")
except OSError as error: print(error.errno in (13, 30))
"#;
    let caps = if is_root() {
        "00000000000000ff"
    } else {
        "0000000000000000"
    };
    let (uid, gid) = (
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    let (output, _child) = server.child(code);
    let closed = "closed\n".repeat(4);
    assert_eq!(
        output,
        format!("{caps} {caps} 1 {uid} {gid}\n{caps}\n{closed}True\nTrue\n")
    );
}

#[test]
fn a_host_network_is_kept_by_child_worlds() {
    let site = Site::new();
    let server = Server::start(&site, "", Network::Host);
    let (_child, namespaces) = server.world.child_world().unwrap();
    assert!(namespaces.iter().all(|(name, _)| *name != Namespace::Net));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let code = format!(
        "import socket; socket.create_connection(('127.0.0.1', {}), timeout=5); print('in')",
        listener.local_addr().unwrap().port()
    );
    assert_eq!(read_to_end(server.run_in(&namespaces, &code)), "in\n");
}

#[test]
fn suites_work_in_child_worlds() {
    let site = Site::new();
    let prepare = "from multiprocessing import shared_memory as sm; keep = sm.SharedMemory('early', True, 1000); keep.buf[0] = 7";
    let server = Server::start(&site, prepare, Network::Loopback);
    let code = r#"
import multiprocessing as mp, multiprocessing.shared_memory as sm, os, pty, sqlite3, tempfile, subprocess
early = sm.SharedMemory("early"); assert early.buf[0] == 7
memory = sm.SharedMemory(create=True, size=100); again = sm.SharedMemory(memory.name)
memory.buf[0] = 3; assert again.buf[0] == 3; memory.unlink()
with mp.get_context("fork").Pool(2) as pool: assert pool.map(abs, [-1, 2]) == [1, 2]
db = sqlite3.connect("x.db"); assert db.execute("pragma journal_mode=wal").fetchone() == ("wal",)
db.execute("create table t(x)"); db.commit()
pid, master = pty.fork()
if pid == 0: os.execv("/bin/sh", ["sh", "-c", "tty"])
assert b"/dev/pts/" in os.read(master, 100)
with tempfile.TemporaryDirectory() as directory: open(directory + "/f", "w").close()
assert subprocess.run(["sh", "-c", "cat kept.txt"], capture_output=True).stdout == b"before\n"
print("fine")
"#;
    for _ in 0..2 {
        let (output, child) = server.child(code);
        assert!(output.ends_with("fine\n"), "{output}");
        drop(child);
    }
}

#[test]
fn masks_writable_paths_and_links_hold_in_child_worlds() {
    let site = Site::new();
    let cache = site.root.path().join("cache");
    fs::create_dir(&cache).unwrap();
    let link = site.root.path().join("link");
    std::os::unix::fs::symlink(&site.project, &link).unwrap();
    let (channel, other) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    let mut spec = site.python(include_str!("fork_server.py"));
    spec.args.push("".into());
    spec.inherit = vec![(other, 10)];
    spec.masks = vec![site.home.join(".ssh")];
    spec.writable = vec![cache.clone()];
    spec.expose = vec![link];
    let world = launcher().spawn(spec).unwrap();
    recv(&channel, &mut [0_u8; 16], RecvFlags::empty()).unwrap();
    let server = Server {
        world,
        channel,
        cwd: site.project.clone(),
    };
    let code = "import os; print(os.listdir(os.environ['HOME'] + '/.ssh'), open('../link/kept.txt').read()); open('../cache/new', 'w').write('n')";
    let (output, _child) = server.child(code);
    assert_eq!(output, "[] before\n\n");
    assert_eq!(fs::read_to_string(cache.join("new")).unwrap(), "n");
}

#[test]
fn twenty_child_worlds_leave_nothing_on_the_host() {
    let site = Site::new();
    let before = site.snapshot();
    let mounts = || {
        fs::read_to_string("/proc/self/mountinfo")
            .unwrap()
            .lines()
            .count()
    };
    let mounts_before = mounts();
    let server = Server::start(&site, "open('/tmp/x', 'w').write('1')", Network::Loopback);
    for number in 0..20 {
        let (output, child) = server.child(
            "open('/tmp/x', 'a').write('2'); open('new', 'w'); print(open('/tmp/x').read())",
        );
        assert_eq!(output, "12\n", "{number}");
        drop(child);
    }
    // Only the server itself, its init, and the process that looks: no child's init or processes.
    let count =
        server.here("import os; print(len([n for n in os.listdir('/proc') if n.isdigit()]))");
    assert!(count.trim().parse::<u32>().unwrap() <= 4, "{count}");
    assert_eq!(
        server.here("import os; print(os.path.exists('new'), open('/tmp/x').read())"),
        "False 1\n"
    );
    drop(server);
    assert_eq!(mounts(), mounts_before);
    assert_eq!(site.snapshot(), before);
    assert!(!Path::new("/oldroot").exists());
}
