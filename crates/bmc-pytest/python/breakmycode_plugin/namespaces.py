"""Enters namespaces and gives up privileges, by system calls.

It must not be imported before a child is to enter namespaces: ctypes is not part of a plain test run.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Any, Iterable, Sequence, Tuple

_libc: Any = ctypes.CDLL(None, use_errno=True)

_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_READ = 23
_PR_CAPBSET_DROP = 24
_CAPABILITY_VERSION_3 = 0x20080522
# The numbers of linux/capability.h.
_NAMES = (
    "chown dac_override dac_read_search fowner fsetid kill setgid setuid setpcap linux_immutable net_bind_service "
    "net_broadcast net_admin net_raw ipc_lock ipc_owner sys_module sys_rawio sys_chroot sys_ptrace sys_pacct sys_admin "
    "sys_boot sys_nice sys_resource sys_time sys_tty_config mknod lease audit_write audit_control setfcap mac_override "
    "mac_admin syslog wake_alarm block_suspend audit_read perfmon bpf checkpoint_restore"
)
_CAPABILITIES = {name: number for number, name in enumerate(_NAMES.split())}


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Data(ctypes.Structure):
    _fields_ = [
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    ]


def enter(namespaces: Iterable[Tuple[str, int]]) -> None:
    """Enters namespaces in the given order. A pid namespace holds for processes forked from now on."""
    for name, descriptor in namespaces:
        if _libc.setns(descriptor, 0) != 0:
            _fail("enter the %s namespace" % name)


def keep_capabilities(names: Sequence[str]) -> None:
    """Drops every capability that is not named. Names are accepted with and without ``CAP_``."""
    kept = 0
    for name in names:
        plain = name.lower()
        plain = plain[len("cap_") :] if plain.startswith("cap_") else plain
        if plain not in _CAPABILITIES:
            raise ValueError("the capability %r is unknown" % name)
        kept |= 1 << _CAPABILITIES[plain]
    # The bounding set is full again in a user namespace just entered; a program run as root would regain all of it.
    for number in _CAPABILITIES.values():
        bound = not kept >> number & 1 and _libc.prctl(_PR_CAPBSET_READ, number, 0, 0, 0) == 1
        if bound and _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) != 0:
            _fail("drop a capability from the bounding set")
    header = _Header(_CAPABILITY_VERSION_3, 0)
    data = (_Data * 2)()
    if _libc.capget(ctypes.byref(header), data) != 0:
        _fail("read the capabilities")
    for half in (0, 1):
        mask = (kept >> (32 * half)) & 0xFFFFFFFF
        data[half].permitted &= mask
        data[half].effective = data[half].permitted
        data[half].inheritable = 0
    if _libc.capset(ctypes.byref(header), data) != 0:
        _fail("drop the capabilities")


def die_with_parent() -> None:
    """Has the kernel kill this process when its parent ends."""
    if _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        _fail("be killed with the parent")


def _fail(doing: str) -> None:
    number = ctypes.get_errno()
    raise OSError(number, "cannot %s: %s" % (doing, os.strerror(number)))
