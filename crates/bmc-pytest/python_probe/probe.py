"""Says what the interpreter that runs this is, and which pytest and plugins it would load, without importing either.

Started as `python -I -c <this text> <JSON object>`. Kept in the common subset of Python 2.7 and 3, so that even an interpreter that
is much too old can say its version instead of failing with a syntax error. `-I` keeps the working directory, `PYTHONPATH` and the
user's site folder off the path; the real run sees the last two, so they are looked at here as data, and nothing in them is run.
"""

import json
import os
import sys


def clean(text):
    """Returns text that survives JSON on both sides, or None: a lone surrogate (an undecodable path) does not."""
    try:
        text.encode("utf-8")
    except (AttributeError, ValueError):
        return None
    return text


def pyvenv_keys(prefix):
    """Returns the keys of `pyvenv.cfg`, or nothing outside of a virtual environment."""
    keys = {}
    try:
        with open(os.path.join(prefix, "pyvenv.cfg")) as file:
            for line in file:
                name, separator, value = line.partition("=")
                if separator:
                    keys[name.strip().lower()] = value.strip()
    except (IOError, OSError, ValueError):
        pass
    return keys


def user_site(keys):
    """Returns the user's site folder if a run without `-I` would have it on its path."""
    in_environment = sys.prefix != getattr(sys, "base_prefix", sys.prefix)
    if in_environment and keys.get("include-system-site-packages", "false").lower() != "true":
        return []
    try:
        import site

        return [site.getusersitepackages()]
    except Exception:
        return []


def distributions(path):
    """Yields name, version and distribution of what is installed along a path. The first of a name wins, as in an import."""
    try:
        from importlib import metadata
    except ImportError:
        try:
            import importlib_metadata as metadata
        except ImportError:
            return
    seen = set()
    for distribution in metadata.distributions(path=path):
        try:
            name, version = distribution.metadata["Name"], distribution.version
        except Exception:
            continue
        if not name or name.lower().replace("_", "-") in seen:
            continue
        seen.add(name.lower().replace("_", "-"))
        yield name, version, distribution


def pytest_and_plugins(path):
    """Returns the version of pytest and the entry points of group `pytest11`."""
    pytest, plugins = None, []
    for name, version, distribution in distributions(path):
        if name.lower() == "pytest":
            pytest = version
        try:
            if "pytest11" not in (distribution.read_text("entry_points.txt") or ""):
                continue
            points = list(distribution.entry_points)
        except Exception:
            continue
        plugins.extend([name, version, point.name] for point in points if point.group == "pytest11")
    return pytest or version_in_source(path), sorted(plugins)


def version_in_source(path):
    """Returns the version of a pytest that is on the path without metadata, such as a checkout."""
    for folder in path:
        try:
            with open(os.path.join(folder, "_pytest", "_version.py")) as file:
                for line in file:
                    if line.startswith(("version =", "__version__ = version =", "__version__ =")):
                        return line.rpartition("=")[2].strip().strip("'\"")
        except (IOError, OSError, ValueError):
            continue
    return None


def can_load_ctypes():
    """Returns whether ctypes works: some builds of Python lack it."""
    try:
        import ctypes  # noqa: F401
    except Exception:
        return False
    return True


def main():
    """Writes one marked line of JSON: whatever start-up files print around it does no harm."""
    asked = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    prefix = sys.prefix
    keys = pyvenv_keys(prefix)
    path = list(asked.get("paths", [])) + [entry for entry in sys.path if entry]
    if asked.get("user_site"):
        path += [entry for entry in user_site(keys) if entry not in path]
    pytest, plugins = pytest_and_plugins(path)
    answer = {
        "version": list(sys.version_info[:3]),
        "implementation": getattr(getattr(sys, "implementation", None), "name", "cpython"),
        "executable": clean(sys.executable),
        "prefix": clean(prefix),
        "base_prefix": clean(getattr(sys, "base_prefix", prefix)),
        "pytest": pytest,
        "plugins": plugins,
        "platform": sys.platform,
        "has_ctypes": can_load_ctypes(),
        "sys_path": [entry for entry in map(clean, path) if entry],
        "pyvenv_home": clean(keys.get("home")),
        "extends_environment": clean(keys.get("extends-environment")),
    }
    sys.stdout.write("\nBREAKMYCODE-PROBE " + json.dumps(answer) + "\n")
    sys.stdout.flush()


main()
