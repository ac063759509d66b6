"""What `import dalembert` loads, and that the rest comes when it is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dalembert as da

LATER = ("analysis", "control", "symbolic", "textbook", "algorithms.floating_base", "algorithms.cartesian")


def loaded_by(code: str) -> set[str]:
    """Return the modules that a new process has after running some code."""
    code = f"{code}; import sys; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return set(done.stdout.split())


def test_importing_the_package_loads_none_of_its_subjects():
    loaded = loaded_by("import dalembert")
    assert {name for name in loaded if name.startswith("dalembert.")} == {"dalembert.host"}
    assert "numpy" not in loaded


def test_subjects_beyond_trees_are_loaded_when_asked_for():
    loaded = loaded_by("import dalembert as da; da.forward_dynamics")
    assert "dalembert.algorithms.forward_dynamics" in loaded
    assert not {f"dalembert.{name}" for name in LATER} & loaded


def test_public_names_are_there_whether_loaded_or_not():
    code = (
        "import dalembert as da\n"
        "for name in da.__all__: getattr(da, name)\n"
        "assert set(da.__all__) <= set(dir(da))\n"
        "assert da.algorithms.loops.is_constrained(da.models.four_bar())\n"
        "assert 'loops' in dir(da.algorithms)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="nonsense"):
        da.nonsense
    with pytest.raises(AttributeError, match="nonsense"):
        da.algorithms.nonsense
