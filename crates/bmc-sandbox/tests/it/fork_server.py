"""A small fork server: runs code in child worlds, as the real one does with tests."""

import ctypes
import json
import os
import socket
import sys
import traceback

libc = ctypes.CDLL(None, use_errno=True)


def reduce_to(capabilities):
    """Reduce this process to these capabilities."""
    mask = sum(1 << number for number in capabilities)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)
    if libc.capset(header, data):
        raise OSError(ctypes.get_errno(), "capset")


def child(request, namespaces, output):
    for namespace in namespaces:
        if libc.setns(namespace, 0):
            raise OSError(ctypes.get_errno(), "setns")
        os.close(namespace)
    os.chdir(request["cwd"])
    inner = os.fork()
    if inner == 0:
        reduce_to(request["keep"])
        os.setsid()
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout = open(1, "w", closefd=False)
        try:
            exec(compile(request["code"], "<test>", "exec"), {"__name__": "__main__", "STATE": STATE})
        except BaseException:
            traceback.print_exc(file=sys.stdout)
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(inner, 0)
    os._exit(0)


STATE = ["loaded"]
channel = socket.socket(fileno=10)
exec(sys.argv[1])
channel.send(b"ready")
while True:
    frame, descriptors, _, _ = socket.recv_fds(channel, 1 << 16, 20)
    if not frame:
        break
    output, *namespaces = descriptors
    pid = os.fork()
    if pid == 0:
        try:
            child(json.loads(frame), namespaces, output)
        except BaseException:
            os.write(output, traceback.format_exc().encode())
        os._exit(1)
    for descriptor in descriptors:
        os.close(descriptor)
    # Children are reaped while others are started.
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                break
        except ChildProcessError:
            break
