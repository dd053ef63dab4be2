//! A server on this machine that tests of a project ask for permission to go on. So a test decides how far a scan gets, without waiting.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// Counts how many more may pass.
type Permits = Arc<(Mutex<usize>, Condvar)>;

/// The server. A scan reaches it with `--network host` only.
pub(crate) struct Gate {
    /// Where it listens.
    pub(crate) port: u16,
    permits: Permits,
}

impl Gate {
    /// A gate that lets so many pass.
    pub(crate) fn new(permits: usize) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let permits: Permits = Arc::new((Mutex::new(permits), Condvar::new()));
        let shared = permits.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let permits = shared.clone();
                thread::spawn(move || answer(stream, &permits));
            }
        });
        Self { port, permits }
    }

    /// Lets everybody pass from now on.
    pub(crate) fn open(&self) {
        *self.permits.0.lock().unwrap() = usize::MAX;
        self.permits.1.notify_all();
    }

    /// Files of a project with one test that asks, and one that does not.
    pub(crate) fn test_file(&self) -> String {
        let port = self.port;
        format!(
            "import socket\n\n\
             def test_asks():\n\
             \x20   with socket.create_connection((\"127.0.0.1\", {port})) as stream:\n\
             \x20       assert stream.recv(1) == b\"g\"\n\n\
             def test_calm():\n\
             \x20   pass\n"
        )
    }
}

fn answer(mut stream: TcpStream, (permits, changed): &(Mutex<usize>, Condvar)) {
    let mut left = changed
        .wait_while(permits.lock().unwrap(), |left| *left == 0)
        .unwrap();
    *left = left.saturating_sub(1);
    drop(left);
    // Whoever asked may be gone: that is what the tests are about.
    let _ = stream.write_all(b"g");
}
