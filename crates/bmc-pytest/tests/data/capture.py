"""Writes what real versions of pytest print for each kind of broken project, as the test data beside this file.

Usage: python capture.py LABEL=PYTHON [LABEL=PYTHON ...] [--only CASE ...]

LABEL names the interpreter in the file names (such as 9.2); PYTHON is an interpreter with that pytest (and, for the `django_*`
cases, pytest-django). Machine paths are replaced, so that the files can be kept.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

OK = "def test_ok():\n    assert True\n"
CASES: dict[str, dict[str, str]] = {
    "unknown_option_ini": {"pytest.ini": "[pytest]\naddopts = --cov=shop --cov-report=term-missing -n 4\n", "test_a.py": OK},
    "unknown_option_pyproject": {
        "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--ds=shop.settings --reruns 2"\n',
        "test_a.py": OK,
    },
    "required_plugins": {"pytest.ini": "[pytest]\nrequired_plugins = pytest-absent>=2 pytest-gone\n", "test_a.py": OK},
    "minversion": {"pytest.ini": "[pytest]\nminversion = 99.1\n", "test_a.py": OK},
    "conftest_import": {"tests/conftest.py": "import os\nimport absent_module.sub\n", "tests/test_a.py": OK},
    "conftest_syntax": {"tests/conftest.py": "import os\ndef broken(:\n", "tests/test_a.py": OK},
    "conftest_other": {"conftest.py": "import os\nos.environ['BMC_ABSENT_VARIABLE']\n", "test_a.py": OK},
    "module_not_found": {
        "shop/__init__.py": "",
        "shop/client.py": "import os\nimport httpx_absent\n",
        "tests/test_a.py": "import httpx_absent\n",
        "tests/test_b.py": "from shop.client import Client\n",
        "tests/test_ok.py": OK,
    },
    "first_party_src": {"src/shop/__init__.py": "", "tests/test_a.py": "import shop.cart\n"},
    "cannot_import_name": {"shop.py": "", "test_a.py": "from shop import Cart\n"},
    "stdlib_name_removed": {"test_a.py": "from collections import Mapping\n"},
    "attribute_removed": {"test_a.py": "import asyncio\n@asyncio.absent_coroutine\ndef f():\n    pass\n"},
    "import_mismatch": {"a/test_same.py": OK, "b/test_same.py": OK},
    "syntax_error": {"test_a.py": "def test_x():\n    assert (1 == \n\ndef test_y():\n    pass\n"},
    "indentation_error": {"test_a.py": "def test_x():\n    a = 1\n      b = 2\n"},
    "fixture_not_found": {"test_a.py": "def test_x(mocker):\n    pass\n"},
    "async_def": {"test_a.py": "async def test_x():\n    assert True\n"},
    "no_tests": {"checks/check_shop.py": OK, "README.md": ""},
    "all_deselected": {"pytest.ini": "[pytest]\naddopts = -m slow\nmarkers = slow: slow ones\n", "test_a.py": OK},
    "no_such_path": {"test_a.py": OK, "ARGS": "tests/absent"},
    "no_such_test": {"test_a.py": OK, "ARGS": "test_a.py::test_absent"},
    "exit_on_import": {"test_a.py": "import sys\nsys.exit(3)\n"},
    "os_exit_on_import": {"test_a.py": "import os\nos._exit(7)\n"},
    "crash_on_import": {"test_a.py": "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"},
    "input_on_import": {"test_a.py": "name = input('name? ')\n"},
    "pytest_exit_on_import": {"test_a.py": "import pytest\npytest.exit('database is down', returncode=9)\n"},
    "broken_ini": {"pytest.ini": "[pytest\naddopts\n", "test_a.py": OK},
    "broken_toml": {"pyproject.toml": "[tool.pytest.ini_options\n", "test_a.py": OK},
    "plugin_module_absent": {"pytest.ini": "[pytest]\naddopts = -p absent_plugin\n", "test_a.py": OK},
    "pytest_plugins_absent": {"conftest.py": "pytest_plugins = ['absent_plugin.fixtures']\n", "test_a.py": OK},
    "hook_signature": {
        "conftest.py": "def pytest_collect_file(absent_argument):\n    return None\n",
        "test_a.py": OK,
    },
    "internal_error": {
        "conftest.py": "def pytest_collection_modifyitems(items):\n    raise RuntimeError('modify went wrong')\n",
        "test_a.py": OK,
    },
    "unknown_marker": {"pytest.ini": "[pytest]\naddopts = --strict-markers\n", "test_a.py": "import pytest\n@pytest.mark.absent\n" + OK},
    "django_no_settings": {"test_a.py": "from django.contrib.auth.models import User\n"},
    "django_wrong_settings": {"pytest.ini": "[pytest]\nDJANGO_SETTINGS_MODULE = shop.absent_settings\n", "test_a.py": OK, "shop/__init__.py": ""},
    "django_no_manage": {
        "pytest.ini": "[pytest]\nDJANGO_SETTINGS_MODULE = shop.settings\n",
        "src/shop/settings.py": "SECRET_KEY = 'x'\n",
        "test_a.py": OK,
    },
    "no_pytest": {"test_a.py": OK},
    "old_pytest": {"test_a.py": "import os\n" + OK},
}


def capture(case: str, label: str, python: Path) -> None:
    """Runs one case with one interpreter and writes what it printed."""
    with tempfile.TemporaryDirectory() as name:
        project = Path(name).resolve() / "shop-project"
        project.mkdir()
        files = dict(CASES[case])
        args = files.pop("ARGS", "").split()
        for path, text in files.items():
            (project / path).parent.mkdir(parents=True, exist_ok=True)
            (project / path).write_text(text)
        keep = ("HOME", "LANG")
        env = {k: v for k, v in os.environ.items() if k in keep} | {"PATH": "/usr/bin:/bin", "COLUMNS": "100"}
        done = subprocess.run(
            [str(python), "-m", "pytest", "-o", f"cache_dir={name}/cache", *args],
            cwd=project, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
        )
        asked = subprocess.run(
            [str(python), "-c", "import sys; print(sys.prefix); print(sys.base_prefix)"], capture_output=True, text=True, check=True
        )
        prefix, base = asked.stdout.split()
        text = f"exit: {done.returncode}\n--- stdout\n{done.stdout}--- stderr\n{done.stderr}"
        for machine, neutral in ((str(project), "/project"), (name, "/scratch"), (prefix, "/venv"), (base, "/python")):
            text = text.replace(machine, neutral)
        text = re.sub(r"0x[0-9a-f]{6,}", "0x7f0000000000", text)
        text = re.sub(r"in \d+\.\d+s", "in 0.10s", text)
        (Path(__file__).parent / f"{case}.{label}.txt").write_text(text)


def main() -> None:
    """Captures every case that suits each interpreter."""
    arguments = sys.argv[1:]
    only: list[str] = []
    if "--only" in arguments:
        at = arguments.index("--only")
        arguments, only = arguments[:at], arguments[at + 1 :]
    for argument in arguments:
        label, _, python = argument.partition("=")
        special = {"none": ["no_pytest"], "old": ["old_pytest"]}.get(label.partition("-")[0])
        for case in special or CASES:
            if (special is None and case in ("no_pytest", "old_pytest")) or (only and case not in only):
                continue
            capture(case, label, Path(python))


if __name__ == "__main__":
    main()
