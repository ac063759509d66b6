"""The public names of dalembert with their signatures, as lines of text alike in every version of Python.

`python tests/public_api.py` prints the difference between the library and the snapshot in
`tests/public_api.txt`; `python tests/public_api.py --update` writes the snapshot and the type stubs
(`public_stubs.py`) anew.

Public are the names in `dalembert.__all__`, in `__all__` of the modules among them, of the packages of
`dalembert.algorithms` and of `dalembert.compiler`, and the members of public classes that do not begin with
an underscore. Signatures are names, kinds and defaults of parameters; annotations are left out, since
versions of Python print them differently and mypy checks them.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import enum
import importlib
import inspect
import pkgutil
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SNAPSHOT = Path(__file__).with_name("public_api.txt")
UPDATE = "python tests/public_api.py --update"

OPERATORS = frozenset(
    f"__{name}__"
    for name in (
        *("add", "radd", "sub", "rsub", "mul", "rmul", "matmul", "rmatmul", "truediv", "rtruediv", "pow"),
        *("neg", "abs", "invert", "call", "len", "iter", "getitem", "contains", "enter", "exit"),
    )
)
"""Special methods that users call by an operator, an index, a loop, a call or a `with` statement."""

PLAIN = (type(None), bool, int, float, str, bytes)
"""Types whose values print alike in every version of Python."""


def public_modules() -> dict[str, types.ModuleType]:
    """Return dalembert, then the public modules below it, by the paths that users write."""
    root = importlib.import_module("dalembert")
    found = {f"dalembert.{name}": getattr(root, name) for name in root.__all__}
    found = {path: value for path, value in found.items() if inspect.ismodule(value)}
    algorithms, compiler = found["dalembert.algorithms"], importlib.import_module("dalembert.compiler")
    for item in pkgutil.iter_modules(algorithms.__path__):
        if item.ispkg and not item.name.startswith("_"):
            path = f"{algorithms.__name__}.{item.name}"
            found[path] = importlib.import_module(path)
    return {"dalembert": root, **dict(sorted({**found, compiler.__name__: compiler}.items()))}


def describe_api() -> list[str]:
    """Return the lines of the snapshot: every public name once, then by reference."""
    lines: list[str] = []
    first_names: dict[int, str] = {}
    modules = public_modules()
    public = {
        value
        for module in modules.values()
        for name in module.__all__
        if inspect.isclass(value := getattr(module, name))
    }
    for place, module in modules.items():
        for name in sorted(module.__all__):
            value, path = getattr(module, name), f"{place}.{name}"
            if inspect.ismodule(value):
                lines.append(f"{path}: module")
            elif not (inspect.isclass(value) or inspect.isroutine(value)):
                lines.append(f"{path}: {_type_name(value)}")
            elif id(value) in first_names:
                lines.append(f"{path} = {first_names[id(value)]}")
            else:
                first_names[id(value)] = path
                if inspect.isclass(value):
                    lines += _class(path, value, public)
                else:
                    lines.append(f"{path}{_signature(value)}")
    return lines


def _type_name(value: object) -> str:
    """Return the type of a constant; type aliases have other types in other versions of Python."""
    known = isinstance(value, (*PLAIN, tuple, list, dict, set, frozenset))
    return type(value).__name__ if known else "object"


def _class(path: str, cls: type, public: set[type]) -> Iterator[str]:
    """Yield the line of a class with its constructor, then one line for each public member.

    Members that it inherits from a public class are listed there.
    """
    bases = [base.__name__ for base in cls.__mro__[1:] if base in public]
    inherited = {owner for base in cls.__mro__[1:] if base in public for owner in base.__mro__}
    yield f"{path}{_constructor(cls)}: class" + (f" of {', '.join(bases)}" if bases else "")
    members: dict[str, str] = {}
    for owner in reversed([item for item in cls.__mro__ if _is_ours(item) and item not in inherited]):
        for name, value in vars(owner).items():
            if not name.startswith("_") or name in OPERATORS:
                members[name] = _member(value)
    fields = dict.fromkeys(_fields(cls), ": field")
    for base in inherited:
        for name in _fields(base):
            fields.pop(name, None)
    members |= fields
    if issubclass(cls, enum.Enum):
        members |= dict.fromkeys(cls.__members__, ": member")
    for name in sorted(members):
        yield f"{path}.{name}{members[name]}"


def _fields(cls: type) -> tuple[str, ...]:
    """Return the public fields of a dataclass or a named tuple."""
    names = [item.name for item in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else ()
    return tuple(name for name in (*names, *getattr(cls, "_fields", ())) if not name.startswith("_"))


def _is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "dalembert"


def _member(value: Any) -> str:
    """Describe what the dictionary of a class holds under a name."""
    if isinstance(value, (staticmethod, classmethod)):
        kind = type(value).__name__
        bound = kind == "classmethod"
        return f"{_signature(value.__func__, skip_first=bound)}: {kind}"
    if inspect.isfunction(value) or hasattr(value, "__wrapped__"):
        return _signature(value, skip_first=True)
    if isinstance(value, property) or hasattr(type(value), "__get__"):
        return ": attribute"
    return f": {_type_name(value)}"


def _constructor(cls: type) -> str:
    """Return the parameters of a class's constructor, "" where it is one of Python's own."""
    if hasattr(cls, "_fields"):
        defaults = getattr(cls, "_field_defaults", {})
        return (
            "("
            + ", ".join(name + (_default(defaults[name]) if name in defaults else "") for name in cls._fields)
            + ")"
        )
    for owner in cls.__mro__:
        for name in ("__init__", "__new__"):
            function = vars(owner).get(name)
            function = getattr(function, "__func__", function)
            if _is_ours(owner) and inspect.isfunction(function) and function.__module__ == owner.__module__:
                return _signature(function, skip_first=True)
    return ""


def _signature(function: Any, *, skip_first: bool = False) -> str:
    """Return the parameters of a function, without annotations."""
    parameters = [*inspect.signature(function).parameters.values()][int(skip_first) :]
    parts: list[str] = []
    for before, item in zip([None, *parameters], parameters, strict=False):
        positional_only = before is not None and before.kind is before.POSITIONAL_ONLY
        if positional_only and item.kind is not item.POSITIONAL_ONLY:
            parts.append("/")
        if item.kind is item.KEYWORD_ONLY and (
            before is None or before.kind not in (item.KEYWORD_ONLY, item.VAR_POSITIONAL)
        ):
            parts.append("*")
        star = {item.VAR_POSITIONAL: "*", item.VAR_KEYWORD: "**"}.get(item.kind, "")
        parts.append(star + item.name + ("" if item.default is item.empty else _default(item.default)))
    if parameters and parameters[-1].kind is inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    return f"({', '.join(parts)})"


def _default(value: object) -> str:
    """Return "=" and a default; an object without a fixed form is "..."."""
    return f"={_plain(value)}"


def _plain(value: object) -> str:
    if type(value) in PLAIN:
        return repr(value)
    if type(value) is tuple:
        return f"({', '.join(map(_plain, value))}{',' if len(value) == 1 else ''})"
    return "..."


def difference() -> str:
    """Return the difference between the snapshot and the library, "" where there is none."""
    stored = SNAPSHOT.read_text(encoding="utf-8").splitlines() if SNAPSHOT.exists() else []
    lines = difflib.unified_diff(stored, describe_api(), "snapshot", "library", n=0, lineterm="")
    return "\n".join(lines)


def main() -> int:
    """Print the difference, or write the snapshot anew."""
    parser = argparse.ArgumentParser(description="Compare the public names with their snapshot.")
    parser.add_argument("--update", action="store_true", help="write the snapshot anew")
    update = parser.parse_args().update
    changed = difference()
    print(changed or "the public names are those of the snapshot")
    if update:
        importlib.import_module("public_stubs" if __package__ is None else "tests.public_stubs").write()
    if update and changed:
        SNAPSHOT.write_text("\n".join(describe_api()) + "\n", encoding="utf-8", newline="\n")
    return int(bool(changed) and not update)


if __name__ == "__main__":
    sys.exit(main())
