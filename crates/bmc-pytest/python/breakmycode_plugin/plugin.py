"""Joins the parts to one pytest session.

It must not decide anything about tests itself: what is recorded, collected, switched off and forked is
decided in the modules of these names.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import faulthandler
import os
import random
import sys
from typing import Any, Dict, Generator, List, Optional, Sequence

import pytest

from . import neutralise, seeds
from .collect import Arranged, Collection, arrange, describe, send_collected
from .failure import relative, say
from .forkserver import Child, ForkServer, Go
from .recorder import Recorder
from .wire import VERSION, Channel, Closed, ProtocolError, Settings, move_high

_DESCRIPTOR = "BREAKMYCODE_FD"


def connect() -> "Observer":
    """Takes over the descriptor, hides the plugin's traces and reads the settings."""
    channel = Channel(int(os.environ.pop(_DESCRIPTOR)))
    _restore_path(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    settings = Settings(channel.receive())
    _restore_arguments(settings.argv)
    random.seed(settings.seed)
    return Observer(channel, settings)


def _restore_path(own: str) -> None:
    """Takes the plugin's directory out of the module search path, here and for child processes."""
    sys.path[:] = [entry for entry in sys.path if entry != own]
    first, separator, rest = os.environ.get("PYTHONPATH", "").partition(os.pathsep)
    if first == own:
        if separator:
            os.environ["PYTHONPATH"] = rest
        else:
            del os.environ["PYTHONPATH"]


def _restore_arguments(argv: Optional[List[str]]) -> None:
    """Shows tests the arguments of a plain run: some parse ``sys.argv``."""
    if argv is not None:
        sys.argv[1:] = argv
        return
    for position in range(1, len(sys.argv) - 1):
        if sys.argv[position] == "-p" and sys.argv[position + 1] == __package__:
            del sys.argv[position : position + 2]
            return


class Observer:
    """Follows one session from configuration to its end."""

    def __init__(self, channel: Channel, settings: Settings) -> None:
        self._channel = channel
        self._settings = settings
        self._recorder = Recorder(channel, settings.longrepr_limit)
        self._collection = Collection(channel, settings.longrepr_limit)
        self._seeds = seeds.Watch()
        self._stderr = move_high(2, close=False)
        self._switched_off: List[List[str]] = []
        self._trouble: Optional[str] = None
        self._said_hello = False
        self._finished = False
        self._loop = Loop()
        self._child: Optional[Child] = None
        self._watch_stack_signal(settings.stack_signal)

    def register(self, pluginmanager: pytest.PytestPluginManager) -> None:
        """Registers every part with pytest."""
        for part in (self, self._recorder, self._collection, self._loop):
            pluginmanager.register(part, "%s.%s" % (__package__, type(part).__name__.lower()))

    # Configuration

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> Generator[None, Any, None]:
        if self._settings.neutralise:
            neutralise.before_conftests(early_config)
        outcome = yield
        if outcome.excinfo is not None:
            # pytest gives up without any further hook.
            self._say_hello(early_config)
            root = str(early_config.rootpath)
            error = outcome.excinfo[1]
            where = relative(str(getattr(error, "path", "conftest.py")), root)
            self._channel.send(describe(where, error, "", root, self._settings.longrepr_limit))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> Generator[None, Any, None]:
        if self._settings.neutralise:
            self._switched_off = neutralise.before_main(config, self._settings.seed)
        if self._settings.continue_on_collection_errors:
            config.option.continue_on_collection_errors = True
        self._say_hello(config)
        outcome = yield
        # Usually said already. Not when the session did not begin, or when a hook at its end failed: old versions of
        # pluggy then skip the outer wrappers.
        if outcome.excinfo is not None:
            error = outcome.excinfo[1]
            usage = isinstance(error, pytest.UsageError)
            self._finish(int(pytest.ExitCode.USAGE_ERROR if usage else pytest.ExitCode.TESTS_FAILED), say(error))
        else:
            self._finish(int(outcome.get_result() or 0), self._trouble)

    def _say_hello(self, config: pytest.Config) -> None:
        if self._said_hello:
            return
        self._said_hello = True
        inifile = config.inipath
        self._channel.send(
            {
                "t": "hello",
                "v": VERSION,
                "pid": os.getpid(),
                "python": sys.version.split()[0],
                "implementation": sys.implementation.name,
                "pytest": pytest.__version__,
                "rootdir": str(config.rootpath),
                "inifile": None if inifile is None else os.path.relpath(str(inifile), str(config.rootpath)),
                "plugins": _plugins(config),
                "switched_off": self._switched_off,
            }
        )

    # The session

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, None]:
        # The innermost wrapper: whatever other plugins do to the order of the items is done.
        try:
            self._before_tests(session)
        except Exception:
            self._channel.complain()
            raise
        yield
        self._channel.flush()

    def pytest_keyboard_interrupt(self, excinfo: "pytest.ExceptionInfo[BaseException]") -> None:
        self._trouble = say(excinfo.value)

    def pytest_internalerror(self, excinfo: "pytest.ExceptionInfo[BaseException]") -> None:
        self._trouble = "internal error: " + say(excinfo.value)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, Any, None]:
        outcome = yield
        status = int(session.exitstatus)
        trouble = self._trouble
        if outcome.excinfo is not None:
            error = outcome.excinfo[1]
            trouble = say(error)
            status = int(getattr(error, "returncode", None) or status or pytest.ExitCode.TESTS_FAILED)
        elif trouble is None and (session.shouldfail or session.shouldstop):
            trouble = str(session.shouldfail or session.shouldstop)
        self._finish(status, trouble)

    def _finish(self, status: int, trouble: Optional[str]) -> None:
        if self._finished or not self._channel.mine:
            return
        self._finished = True
        self._channel.send({"t": "finish", "exitstatus": status, "message": trouble})
        if self._child is not None:
            self._child.leave(status)

    def _before_tests(self, session: pytest.Session) -> None:
        settings = self._settings
        arranged = arrange(session.items, settings.select, settings.order)
        send_collected(self._channel, arranged, self._collection.deselected, self._collection.seconds)
        self._run_only(session, arranged, None)
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            return  # pytest stops here by itself.
        if settings.mode == "collect":
            self._loop.skip = True
            return
        randomly = getattr(session.config.option, "randomly_seed", None)
        if isinstance(randomly, int):
            self._seeds.expect(randomly)
        server = ForkServer(self._channel, session, self._seeds)
        self._channel.send(server.ready())
        try:
            task = server.serve() if settings.mode == "server" else server.wait_for_go()
        except Closed:
            os._exit(1)
        if task is None:
            self._loop.skip = True
        elif isinstance(task, Go):
            self._run_only(session, arranged, task.indices)
        else:
            self._child = task
            self._recorder.renew()
            self._watch_stack_signal(task.stack_signal)
            self._run_only(session, arranged, task.indices)

    def _run_only(self, session: pytest.Session, arranged: Arranged, indices: Optional[Sequence[int]]) -> None:
        numbers = range(len(arranged.items)) if indices is None else indices
        if len(set(numbers)) != len(numbers) or any(not 0 <= n < len(arranged.items) for n in numbers):
            raise ProtocolError("the indices must be distinct and below %d" % len(arranged.items))
        session.items = [arranged.items[number] for number in numbers]
        session.testscollected = len(session.items)
        self._recorder.plan(str(session.config.rootpath), session.items, numbers)

    def _watch_stack_signal(self, number: int) -> None:
        if not number:
            return
        if self._child is not None:
            os.dup2(2, self._stderr, inheritable=False)
        try:
            faulthandler.register(number, file=self._stderr, all_threads=True, chain=False)
        except (OSError, RuntimeError, ValueError) as problem:
            message = "cannot watch signal %d: %s" % (number, problem)
            self._channel.send({"t": "internal_error", "message": message})


class Loop:
    """Stands in for pytest's loop over the tests when none is to run."""

    skip = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> Optional[bool]:
        return True if self.skip else None


def _plugins(config: pytest.Config) -> List[List[str]]:
    found: Dict[str, str] = {}
    for _, distribution in config.pluginmanager.list_plugin_distinfo():
        name = str(distribution.project_name)
        found[name[len("pytest-") :] if name.startswith("pytest-") else name] = str(distribution.version)
    return [[name, version] for name, version in sorted(found.items())]
