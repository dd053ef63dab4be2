from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest
from driver import Results, Run

pytest_plugins = ["pytester"]

Start = Callable[..., Run]


@pytest.fixture
def start(pytester: pytest.Pytester) -> Iterator[Start]:
    """Starts pytest with the plugin on the files of this test; ends it whatever happens."""
    runs: List[Run] = []

    def begin(*arguments: str, **config: Any) -> Run:
        runs.append(Run(pytester.path, ["-p", "no:cacheprovider", *arguments], **config))
        return runs[-1]

    yield begin
    for run in runs:
        run.__exit__()


@pytest.fixture
def results(pytester: pytest.Pytester, start: Start) -> Callable[..., Results]:
    """Runs source text as a test file in ``run`` mode, to its end."""

    def run(source: str, *arguments: str, **config: Any) -> Results:
        write(pytester.path / "test_it.py", source)
        return start(*arguments, **config).go()

    return run


def write(path: Path, source: str) -> None:
    import textwrap

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source), encoding="utf-8")
