"""A pytest plugin that measures the test loop alone: start, collection and exit are left out.

Writes wall seconds and processor seconds (those of child processes included) to the file that ``BENCH_LOOP_FILE`` names.
"""

import os
import time

import pytest


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtestloop():
    wall, before = time.perf_counter(), os.times()
    yield
    after = os.times()
    processor = sum(after[:4]) - sum(before[:4])
    with open(os.environ["BENCH_LOOP_FILE"], "w") as file:
        file.write("%f %f\n" % (time.perf_counter() - wall, processor))
