"""Lets breakmycode watch and steer one pytest session. Does nothing without ``BREAKMYCODE_FD``.

PYTEST_DONT_REWRITE: the plugin asserts nothing, and rewriting it would cost start-up time.

It must not change the outcome of any test, and it must not be visible to the tests.
"""

from __future__ import annotations

import os

if "BREAKMYCODE_FD" in os.environ:
    import pytest

    from .plugin import connect

    _observer = connect()

    def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
        """Registers the observer as early as pytest allows; adds no option."""
        _observer.register(pluginmanager)
