//! What network a world has.

use std::io::Write;
use std::net::TcpListener;

use bmc_sandbox::Network;

use crate::support::{LONG, Site, read_to_end, read_until, said, start};

const SERVE: &str = r#"
import socket, sys
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    server = socket.create_server((host, 45123), family=family)
    client = socket.create_connection((host, 45123), timeout=5)
    peer, _ = server.accept()
    client.sendall(b"hi"); assert peer.recv(2) == b"hi"
    print("served", host, flush=True)
    globals()[f"keep{family}"] = server
sys.stdin = open(10)
print(sys.stdin.read())
"#;

#[test]
fn the_same_port_is_free_in_parallel_worlds() {
    let site = Site::new();
    let mut worlds = Vec::new();
    for _ in 0..3 {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut spec = site.python(SERVE);
        spec.inherit = vec![(reader.into(), 10)];
        let (world, mut output) = start(spec);
        // All of them hold the port at the same time from here on.
        read_until(&mut output, "served ::1");
        worlds.push((world, output, writer));
    }
    for (mut world, output, mut writer) in worlds {
        writer.write_all(b"end").unwrap();
        drop(writer);
        assert!(read_to_end(output).contains("end"));
        assert_eq!(world.wait(Some(LONG)).unwrap().unwrap().code, Some(0));
    }
}

const CONNECT: &str = r#"
import errno, socket, sys, time
begin = time.monotonic()
for host, port in (("127.0.0.1", int(sys.argv[1])), ("192.0.2.1", 80), ("169.254.169.254", 80)):
    try:
        socket.create_connection((host, port), timeout=5).close()
        print("connected")
    except OSError as error:
        print(errno.errorcode.get(error.errno, error))
try:
    socket.getaddrinfo("example.com", 80); print("resolved")
except OSError:
    print("unresolved")
assert time.monotonic() - begin < 4
"#;

#[test]
fn nothing_beyond_the_loopback_can_be_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let site = Site::new();
    let mut spec = site.python(CONNECT);
    spec.args.push(port.to_string().into());
    assert_eq!(
        said(spec),
        "ECONNREFUSED\nENETUNREACH\nENETUNREACH\nunresolved\n"
    );
}

#[test]
fn the_host_network_is_the_hosts() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let site = Site::new();
    let script = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), timeout=5); print('in')";
    let mut spec = site.python(script);
    spec.network = Network::Host;
    spec.args.push(port.to_string().into());
    assert_eq!(said(spec), "in\n");
}

#[test]
fn low_ports_are_as_open_as_outside() {
    let outside = std::net::TcpListener::bind("127.0.0.1:81")
        .map(drop)
        .map_err(|error| error.kind());
    let site = Site::new();
    let script = "import socket\ntry:\n socket.create_server(('127.0.0.1', 81)); print('open')\nexcept PermissionError:\n print('closed')";
    let expected = if outside == Err(std::io::ErrorKind::PermissionDenied) {
        "closed\n"
    } else {
        "open\n"
    };
    assert_eq!(said(site.python(script)), expected);
}
