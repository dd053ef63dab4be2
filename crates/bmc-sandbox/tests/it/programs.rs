//! Things that test suites do and that must work inside as they do outside.

use crate::support::{LEVELS, Site, is_root, said};

fn works(script: &str) {
    let site = Site::new();
    for isolation in LEVELS {
        let mut spec = site.python(script);
        spec.isolation = isolation;
        assert!(said(spec).ends_with("fine\n"), "{isolation}");
    }
}

#[test]
fn pseudo_terminals_work() {
    works(
        r#"
import os, pty
pid, master = pty.fork()
if pid == 0:
    os.execv("/bin/sh", ["sh", "-c", "test -t 0 && tty && stty size"])
text = b""
try:
    while part := os.read(master, 1000): text += part
except OSError: pass
assert os.waitpid(pid, 0)[1] == 0, text
assert b"/dev/pts/" in text, text
print("fine")
"#,
    );
}

#[test]
fn semaphores_shared_memory_and_process_pools_work() {
    works(
        r#"
import multiprocessing as mp, multiprocessing.shared_memory as sm, concurrent.futures as cf
def work(number): return number * 2
if __name__ == "__main__":
    lock = mp.Semaphore(1)
    with lock: pass
    memory = sm.SharedMemory(create=True, size=1 << 20)
    again = sm.SharedMemory(memory.name)
    memory.buf[5] = 9
    assert again.buf[5] == 9
    again.close(); memory.close(); memory.unlink()
    with cf.ProcessPoolExecutor(2, mp_context=mp.get_context("fork")) as pool:
        assert list(pool.map(work, range(4))) == [0, 2, 4, 6]
    queue = mp.get_context("fork").Queue()
    queue.put(1); assert queue.get() == 1
    print("fine")
"#,
    );
}

#[test]
fn databases_locks_and_watches_work() {
    works(
        r#"
import ctypes, fcntl, os, sqlite3, struct
db = sqlite3.connect("x.db")
assert db.execute("pragma journal_mode=wal").fetchone() == ("wal",)
db.execute("create table t(x)"); db.execute("insert into t values (1)"); db.commit()
assert sqlite3.connect("x.db").execute("select x from t").fetchall() == [(1,)]
with open("kept.txt", "r+") as file:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
libc = ctypes.CDLL(None)
watch = libc.inotify_init()
assert libc.inotify_add_watch(watch, b".", 0x100) >= 0
open("seen", "w").close()
assert b"seen" in os.read(watch, 1000)
print("fine")
"#,
    );
}

#[test]
fn subprocesses_and_event_loops_work() {
    works(
        r#"
import asyncio, os, signal, socket, subprocess, tempfile
async def main():
    process = await asyncio.create_subprocess_exec("/bin/echo", "x", stdout=subprocess.PIPE)
    assert (await process.communicate())[0] == b"x\n"
    done = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, done.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    await asyncio.wait_for(done.wait(), 5)
asyncio.run(main())
with tempfile.TemporaryDirectory() as directory:
    server = socket.socket(socket.AF_UNIX); server.bind(directory + "/s"); server.listen()
    client = socket.socket(socket.AF_UNIX); client.connect(directory + "/s")
assert subprocess.run(["sh", "-c", "exit 4"]).returncode == 4
socket.gethostname()
print("fine")
"#,
    );
}

#[test]
fn permissions_bind_as_outside() {
    let expected = if is_root() { "read" } else { "denied" };
    let script = "import os\nopen('secret', 'w').close(); os.chmod('secret', 0)\ntry:\n open('secret'); print('read')\nexcept PermissionError:\n print('denied')";
    assert_eq!(said(Site::new().python(script)), format!("{expected}\n"));
}

#[test]
fn root_can_give_files_away_and_become_another_user() {
    let script = r#"
import os
if os.getuid() != 0: print("fine"); raise SystemExit
open("given", "w").close(); os.chown("given", 12345, 23456)
assert os.stat("given").st_uid == 12345
pid = os.fork()
if pid == 0:
    os.setgroups([]); os.setgid(23456); os.setuid(12345)
    try: open("/root/x")
    except PermissionError: os._exit(0)
    os._exit(1)
assert os.waitpid(pid, 0)[1] == 0
print("fine")
"#;
    assert_eq!(said(Site::new().python(script)), "fine\n");
}

#[test]
fn renaming_a_directory_of_the_project_is_the_known_limit() {
    // `os.rename` gets EXDEV, and `shutil.move` copes. A copied project has no such limit.
    let script = r#"
import errno, os, shutil
try: os.rename("sub", "other")
except OSError as error: assert error.errno == errno.EXDEV; print("limit")
shutil.move("sub", "moved"); assert os.path.exists("moved/deep/bottom.txt") and not os.path.exists("sub")
os.mkdir("own"); os.rename("own", "own2")
os.rename("kept.txt", "renamed.txt")
"#;
    assert_eq!(said(Site::new().python(script)), "limit\n");
}
