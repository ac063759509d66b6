"""Type stubs of the modules whose names are made at run time: `dalembert` itself and the subjects of its API.

`python tests/public_api.py --update` writes them beside the modules; `tests/test_public_api.py` fails where
they are not those of the declarations.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import dalembert
from dalembert.api import SUBJECTS as SUBJECTS
from dalembert.api.calls import parameters_of
from dalembert.compiler.library import FUNCTIONS

ROOT = Path(dalembert.__file__).parent
NOTICE = '"""Written by `make api`; do not edit."""'
WIDTH = 110

PACKAGES = ("dalembert.algorithms", "dalembert.algorithms.loops")
"""The packages that list their public names by module, in `MODULES`."""

DECLARED_HEAD = f"""{NOTICE}

from collections.abc import Collection
from typing import Literal

from dalembert.api.calls import Array, ArrayLike, Check, ForceFrame
from dalembert.api.records import FloatingBaseEquations, HybridDynamicsDerivatives, Poses
from dalembert.model.model import Model
"""


def stubs() -> dict[Path, str]:
    """Return the text of every stub by its path."""
    found = {ROOT / "__init__.pyi": _imports(dalembert, [*dalembert.__all__])}
    for package in PACKAGES:
        module = importlib.import_module(package)
        path = ROOT.parent.joinpath(*package.split("."), "__init__.pyi")
        found[path] = _reexports(module)
    functions = [_signature(name) for name in sorted(FUNCTIONS) if FUNCTIONS[name].subject]
    found[ROOT / "api" / "declared.pyi"] = "".join([DECLARED_HEAD, *functions])
    for subject in SUBJECTS:
        module = getattr(dalembert, subject)
        names = {*module.__all__, *(n for n in dalembert.__all__ if n in vars(module))}
        found[ROOT / "api" / f"{subject}.pyi"] = _imports(module, sorted(names))
    return found


def _signature(name: str) -> str:
    """Return a function with its signature and the first line of its docstring."""
    item = FUNCTIONS[name]
    parts = parameters_of(item)
    inside = ", ".join(parts)
    end = f") -> {item.returns}:"
    if len(f"def {name}({inside}{end}") > WIDTH:
        if len(inside) + 4 > WIDTH:
            inside = ",\n    ".join(parts) + ","
        inside = f"\n    {inside}\n"
    return f'\ndef {name}({inside}{end}\n    """{(item.algorithm.__doc__ or "").splitlines()[0]}"""\n'


def _imports(module: ModuleType, names: list[str]) -> str:
    """Return a stub that imports the names of a module from where they are defined."""
    lines = sorted(_import(module, name) for name in names if name != "__version__")
    version = ["", "__version__: str"] if "__version__" in names else []
    return "\n".join([NOTICE, "", *(line for _, _, line in lines), *version]) + "\n"


def _reexports(package: ModuleType) -> str:
    """Return a stub that imports the names of a package, and the modules and packages that it holds."""
    homes = {
        name: f"dalembert.algorithms.{module}"
        for module, names in package.MODULES.items()
        for name in names.split()
    }
    homes |= {
        item.name: package.__name__
        for item in pkgutil.iter_modules(package.__path__)
        if item.name not in homes
    }

    def order(name: str) -> tuple[str, bool, bool, str]:
        return homes[name], not name.isupper(), name.islower(), name  # constants, classes, functions

    lines = []
    for name in sorted(homes, key=order):
        line = f"from {homes[name]} import {name} as {name}"
        lines.append(line if len(line) <= WIDTH else line.replace("import ", "import (\n    ") + ",\n)")
    return "\n".join([NOTICE, "", *lines, "", "__all__: list[str]"]) + "\n"


def _import(module: ModuleType, name: str) -> tuple[str, str, str]:
    value = getattr(module, name)
    if inspect.ismodule(value):
        home = value.__name__.rpartition(".")[0]
    elif module is dalembert:
        home = dalembert._NAMES[name]
    else:
        others = SUBJECTS[module.__name__.rpartition(".")[2]].others
        homes = [f"dalembert.{path}" for path, names in others.items() if name in names.split()]
        home = homes[0] if homes else value.__module__
    return home, name, f"from {home} import {name} as {name}"


def differences() -> Iterator[str]:
    """Yield a line for each stub that is missing or stale."""
    for path, text in stubs().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            yield f"{path.relative_to(ROOT.parent)} is not the stub of its module; run make api"


def write() -> None:
    """Write the stubs beside their modules."""
    for path, text in stubs().items():
        path.write_text(text, encoding="utf-8", newline="\n")
