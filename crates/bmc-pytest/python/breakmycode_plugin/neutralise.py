"""Switches off what hides or disturbs repetition.

It must not make an option unknown: options were parsed already, so values are changed and plugins that act by
themselves are taken out after they added their options.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import sys
from typing import Any, List, NamedTuple, Optional

import pytest


class _Option(NamedTuple):
    name: str
    neutral: Any
    plugin: str
    why: str


# An option that is not there belongs to a plugin that is not loaded.
_OPTIONS = (
    _Option("numprocesses", None, "xdist", "tests run in one process so that their order is known"),
    _Option("distload", False, "xdist", "tests run in one process so that their order is known"),
    _Option("dist", "no", "xdist", "tests run in one process so that their order is known"),
    _Option("tx", [], "xdist", "tests run in one process so that their order is known"),
    _Option("looponfail", False, "xdist", "one run is one process"),
    _Option("maxfail", 0, "maxfail", "every test has to run, also after failures"),
    _Option("cov_source", [], "cov", "coverage is off while scanning"),
    _Option("random_order_enabled", False, "random-order", "the order is set by breakmycode"),
    _Option("random_order_bucket", "none", "random-order", "the order is set by breakmycode"),
    _Option("randomly_reorganize", False, "randomly", "the order is set by breakmycode"),
    _Option("lf", False, "last-failed", "the tests to run are chosen by breakmycode"),
    _Option("failedfirst", False, "failed-first", "the order is set by breakmycode"),
    _Option("newfirst", False, "new-first", "the order is set by breakmycode"),
    _Option("stepwise", False, "stepwise", "every test has to run, also after failures"),
    _Option("stepwise_skip", False, "stepwise", "every test has to run, also after failures"),
    _Option("stepwise_reset", False, "stepwise", "every test has to run, also after failures"),
    _Option("usepdb", False, "pdb", "nobody is there to answer a debugger"),
    _Option("trace", False, "pdb", "nobody is there to answer a debugger"),
    _Option("collectonly", False, "collect-only", "tests are run"),
    _Option("setuponly", False, "setup-only", "tests are run"),
    _Option("setupplan", False, "setup-plan", "tests are run"),
    _Option("testmon", False, "testmon", "the tests to run are chosen by breakmycode"),
)


class _Plugin(NamedTuple):
    name: str
    module: str
    marker: Optional[str]
    option: Optional[str]
    why: str


# These act on markers or decorators in the tests too, so no option value is neutral.
_PLUGINS = (
    _Plugin(
        "rerunfailures",
        "pytest_rerunfailures",
        "flaky(reruns=1, reruns_delay=0): mark test to re-run up to 'reruns' times.",
        "reruns",
        "a rerun would hide the failure",
    ),
    _Plugin(
        "flaky",
        "flaky.flaky_pytest_plugin",
        "flaky: marks tests to be automatically retried upon failure",
        None,
        "a retry would hide the failure",
    ),
    _Plugin(
        "repeat",
        "pytest_repeat",
        "repeat(n): run the given test function `n` times.",
        None,
        "runs are repeated by breakmycode",
    ),
    _Plugin("flakefinder", "pytest_flakefinder", None, None, "runs are repeated by breakmycode"),
    _Plugin("forked", "pytest_forked", "forked: Always fork for this test.", "forked", "tests run in one process"),
)


def before_conftests(config: pytest.Config) -> None:
    """Keeps coverage from starting, which it does before the first conftest.py is loaded."""
    known: Any = config.known_args_namespace
    if getattr(known, "cov_source", None):
        known.cov_source = []


def before_main(config: pytest.Config, seed: int) -> List[List[str]]:
    """Switches off what is present; tells what and why."""
    told = {}
    for option in _OPTIONS:
        current = getattr(config.option, option.name, option.neutral)
        if current and current != option.neutral:
            told[option.plugin] = option.why
        if hasattr(config.option, option.name):
            value = list(option.neutral) if isinstance(option.neutral, list) else option.neutral
            setattr(config.option, option.name, value)
    for plugin in _PLUGINS:
        module = sys.modules.get(plugin.module)
        manager = config.pluginmanager
        if module is None or not manager.is_registered(module):
            continue
        for name in {str(manager.get_name(module)), plugin.module}:
            manager.set_blocked(name)
        if manager.is_registered(module):
            manager.unregister(module)
        if plugin.marker is not None:
            config.addinivalue_line("markers", plugin.marker)
        if plugin.option is not None and hasattr(config.option, plugin.option):
            setattr(config.option, plugin.option, None)
        told[plugin.name] = plugin.why
    if seed_randomly(config, seed):
        told["randomly"] = "its order is off, its seed is that of the run"
    return [[name, why] for name, why in sorted(told.items())]


def seed_randomly(config: pytest.Config, seed: int) -> bool:
    """Gives pytest-randomly the seed of the run; says whether it is there."""
    if not hasattr(config.option, "randomly_seed"):
        return False
    # It passes its seed on to libraries that take 32 bits.
    config.option.randomly_seed = seed % (1 << 32)
    return True
