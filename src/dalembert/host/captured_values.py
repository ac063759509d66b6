"""The values that a Python function captures, where they can be proven, and whether they have changed.

Tracing a function on symbols is the definition of what it computes, and tracing it again before each call
would notice every change of what it reads: globals, closures, attributes, files, the environment. A trace
costs 0.05 ms to 15 ms, though, as much as the call. `reads_of` therefore looks for a proof that tracing again
would give the same program, and returns None where it finds none; the caller then traces again.

The proof: the program is determined by the arguments and by the values that the code takes from elsewhere.
The code takes values from its constants, its defaults, its closure, the globals that it names, and from what
it reaches from those. `reads_of` accepts a function only if each of these values is one of

    a number, a string or another immutable value;
    an exact list, tuple, set, dict, deque or array of numbers, whose content is recorded;
    a function of the caller's that is accepted itself, or an instance of a plain class whose methods are;
    a function without memory of `math`, `operator`, NumPy or this library, or a harmless builtin;
    a module or a class, only to take such a value from it by a name in the code.

Nothing is left by which such code could reach another value: names with two underscores, `getattr`, `type`,
`import` and the like are not accepted. So if every recorded value is still the same object, and every
recorded content the same, the program is the same. What is outside of the proof: changes of the Python
standard library, NumPy or this library themselves, and changes by other threads while a function is traced.
"""

from __future__ import annotations

import abc
import builtins
import cmath
import collections
import dataclasses
import dis
import functools
import math
import operator
import reprlib
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, final

import numpy as np

MAX_READS: Final = 2000
"""Values of a function that are recorded; with more, comparing them takes as long as a small trace."""

MAX_ARRAY_BYTES: Final = 1 << 20
"""Bytes of an array that is compared with its copy, which takes 0.1 ms; tracing reads larger ones anyway."""

IMMUTABLE: Final = frozenset(
    {type(None), bool, int, float, complex, str, bytes, range, type(...), type(NotImplemented)}
)

PURE_MODULES: Final = (math, cmath, operator)
"""Modules whose builtin functions have no memory and read nothing."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


PURE_BUILTINS: Final = _names(
    """
    abs all any bool complex dict divmod enumerate filter float frozenset int isinstance len list map max min
    pow print range reversed round set slice sorted str sum tuple zip
    ArithmeticError AssertionError Exception IndexError KeyError NotImplementedError RuntimeError
    StopIteration TypeError ValueError ZeroDivisionError
    """
)
"""Builtins that read nothing but their arguments, and lead nowhere else."""

PURE_NUMPY: Final = _names(
    """
    all allclose any append arange argmax argmin argsort array asarray ascontiguousarray atleast_1d
    atleast_2d broadcast_to clip column_stack concatenate copy cross cumsum cumprod diag diagonal diff dot
    einsum expand_dims eye flip full full_like hstack identity inner interp isclose kron linspace max mean
    min moveaxis ndim ones ones_like outer prod ravel repeat reshape roll searchsorted shape size sort split
    squeeze stack sum swapaxes take tensordot tile trace transpose tril triu unwrap vdot vstack where zeros
    zeros_like
    """
)
"""Functions of NumPy that read nothing but their arguments."""

PURE_LIBRARY: Final = tuple(f"dalembert.{name}." for name in ("algorithms", "scalar", "spatial", "model"))
"""Packages of this library whose functions read nothing but their arguments."""

REVEALING: Final = _names(
    """
    base ctypes format format_map functions ag_frame cr_frame gi_frame tb_frame
    f_back f_builtins f_globals f_locals
    """
)
"""Attributes of accepted values that lead to values that are not recorded."""

UNPROVABLE_INSTRUCTIONS: Final = _names(
    """
    IMPORT_NAME IMPORT_FROM IMPORT_STAR LOAD_BUILD_CLASS LOAD_NAME LOAD_LOCALS LOAD_CLASSDEREF LOAD_SUPER_ATTR
    LOAD_SUPER_METHOD LOAD_FROM_DICT_OR_GLOBALS LOAD_FROM_DICT_OR_DEREF GET_AWAITABLE GET_AITER GET_ANEXT
    """
)
"""Instructions that take values from places that are not recorded."""

UNUSED_IN_CLASSES: Final = _names(
    """
    __module__ __qualname__ __doc__ __dict__ __weakref__ __slots__ _abc_impl __abstractmethods__
    __annotations__ __annotate__ __annotate_func__ __annotations_cache__ __firstlineno__ __static_attributes__
    __type_params__ __dataclass_fields__ __dataclass_params__ __match_args__ __init__ __new__ __post_init__
    __del__ __reduce__ __reduce_ex__ __getstate__ __setstate__ __replace__ __init_subclass__ __class_getitem__
    """
)
"""Members of a class that accepted code cannot reach from an instance."""

_MISSING: Final = object()


class _UnprovenError(Exception):
    """Raised inside this module where the proof fails."""


def reads_of(function: Callable[..., Any]) -> Reads | None:
    """Return what a function reads, or None where that cannot be proven."""
    reads = Reads()
    try:
        reads.add(function)
    except Exception:  # objects of the caller's may be as odd as they like; without a proof there is a trace
        return None
    reads._seen.clear()  # only the search needs it, and the function itself must not be kept alive
    return reads


@final
@dataclasses.dataclass(slots=True, eq=False)
class Reads:
    """The values that a function reads, as they were."""

    _reads: list[tuple[Callable[[], Any], Any]] = dataclasses.field(default_factory=list)
    """What reads a value, and the value then."""
    _contents: list[tuple[Any, tuple[Any, ...]]] = dataclasses.field(default_factory=list)
    _arrays: list[tuple[np.ndarray[Any, Any], Any, bytes]] = dataclasses.field(default_factory=list)
    _seen: dict[int, Any] = dataclasses.field(default_factory=dict)

    def is_unchanged(self) -> bool:
        """Return whether all captured values are still the same."""
        for read, value in self._reads:
            if read() is not value:
                return False
        for container, content in self._contents:
            if len(container) != len(content) or not all(map(operator.is_, container, content)):
                return False
        return all(
            _layout(array) == layout and array.tobytes() == content for array, layout, content in self._arrays
        )

    def add(self, value: Any) -> None:
        """Record a value and what can be reached from it; raise where that is not known."""
        kind = type(value)
        if kind in IMMUTABLE or id(value) in self._seen:
            return
        self._seen[id(value)] = value  # kept, so that no other object gets its number
        if len(self._seen) > MAX_READS:
            raise _UnprovenError
        if kind in (list, tuple, set, frozenset, collections.deque):
            self._add_container(value)
        elif kind is dict:
            self._add_container(value.keys())
            self._add_container(value.values())
        elif kind is np.ndarray:
            if value.dtype.kind not in "biufc" or value.nbytes > MAX_ARRAY_BYTES:
                raise _UnprovenError
            self._arrays.append((value, _layout(value), value.tobytes()))
        elif kind is types.FunctionType:
            self._add_function(value)
        elif kind is types.MethodType:
            self.add(value.__func__)
            self.add(value.__self__)
        elif kind is functools.partial:
            for part in (value.func, value.args, value.keywords, value.__dict__):
                self.add(part)
        elif not _is_pure(value):
            self._add_instance(value)

    def _add_container(self, value: Any) -> None:
        content = tuple(value)
        if len(content) > MAX_READS:
            raise _UnprovenError
        self._contents.append((value, content))
        for item in content:
            self.add(item)

    def _watch(self, read: Callable[..., Any], *args: Any) -> Any:
        """Read a value, and record it with what reads it again."""
        value = read(*args)
        self._reads.append((functools.partial(read, *args), value))
        return value

    def _add_function(self, function: types.FunctionType) -> None:
        if _is_of_library(function):
            return
        if function.__dict__:
            raise _UnprovenError
        self._contents.append((function.__dict__, ()))
        at = weakref.ref(function)
        for part in ("__code__", "__defaults__", "__kwdefaults__", "__dict__"):
            self._watch(lambda name=part: getattr(at(), name, _MISSING))
        self.add(function.__defaults__)
        self.add(function.__kwdefaults__)
        free: dict[str, Any] = {}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            free[name] = self._watch(_content_of, cell)
            if free[name] is not _MISSING and not _is_namespace(free[name]):
                self.add(free[name])
        builtin: Mapping[str, Any] = getattr(function, "__builtins__")  # noqa: B009 - unknown to type checkers
        self._add_code(function.__code__, function.__globals__, builtin, free)

    def _add_code(
        self,
        code: types.CodeType,
        names: Mapping[str, Any],
        builtin: Mapping[str, Any],
        free: Mapping[str, Any],
    ) -> None:
        """Record the globals that code names, and what it takes from modules and classes."""
        space: Any = None
        for instruction in dis.get_instructions(code):
            op, name = instruction.opname, instruction.argval
            value: Any = None
            if op in ("EXTENDED_ARG", "CACHE"):
                continue
            if op in UNPROVABLE_INSTRUCTIONS:
                raise _UnprovenError
            if op in ("LOAD_ATTR", "LOAD_METHOD"):
                if name in REVEALING or name.startswith("__"):
                    raise _UnprovenError
                if space is not None:
                    value, space = self._read_from(space, name), None
            elif space is not None:
                raise _UnprovenError  # a module or a class that goes elsewhere
            elif op == "LOAD_GLOBAL":
                value = self._watch(names.get, name, _MISSING)
                if value is _MISSING:  # no global hides the builtin
                    value = self._read(builtin, name)
            elif op == "LOAD_DEREF":
                value = free.get(name)
            if _is_namespace(value):
                space = value
            elif value is not None and op != "LOAD_DEREF":
                self.add(value)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._add_code(constant, names, builtin, free)

    def _read(self, mapping: Mapping[str, Any], name: str) -> Any:
        """Record an entry of the dictionary of a module or a class."""
        value = self._watch(mapping.get, name, _MISSING)
        if value is _MISSING:
            raise _UnprovenError
        return value

    def _read_from(self, space: Any, name: str) -> Any:
        """Record an attribute of a module, or of a class of the caller's."""
        if isinstance(space, types.ModuleType):
            return self._read(space.__dict__, name)
        self._watch(getattr, space, "__mro__")
        for each in space.__mro__:
            value = self._watch(each.__dict__.get, name, _MISSING)
            if value is not _MISSING:
                (part,) = _parts_of_member(name, value)
                if type(value) is property:
                    raise _UnprovenError  # of the class it is the property itself
                return part
        raise _UnprovenError

    def _add_instance(self, value: Any) -> None:
        """Record an instance of a plain class of the caller's: its attributes and its methods."""
        kind = type(value)
        if type(kind) not in (type, abc.ABCMeta):
            raise _UnprovenError
        holder = _reference(value)
        self._watch(lambda: type(holder()))
        self._watch(getattr, kind, "__mro__")
        for each in kind.__mro__:  # the dictionary of the instance, without calling any code of its class
            found = each.__dict__.get("__dict__")
            if found is not None:
                if type(found) not in (types.GetSetDescriptorType, types.MemberDescriptorType):
                    raise _UnprovenError
                self.add(found.__get__(value))
                break
        if kind is types.SimpleNamespace:
            return
        for each in kind.__mro__[:-1]:
            if not _is_library_class(each):
                self._add_class(each, value)

    def _add_class(self, kind: type, value: Any) -> None:
        """Record a class of the caller's, and the slots of it in an instance."""
        members = kind.__dict__
        if type(kind) not in (type, abc.ABCMeta) or not kind.__flags__ & HEAP_TYPE:
            raise _UnprovenError
        for member in members.values():
            if type(member) is types.MemberDescriptorType:
                found = self._watch(_slot, _reference(value), member)
                if found is not _MISSING:
                    self.add(found)
        if id(kind) in self._seen:
            return
        self._seen[id(kind)] = kind
        self._contents.append((members.keys(), tuple(members.keys())))
        for name, member in members.items():
            # What a dataclass has made reads the fields alone.
            made = isinstance(member, types.FunctionType) and member.__code__.co_filename in GENERATED
            if name in UNUSED_IN_CLASSES or made:
                continue
            self._watch(members.get, name, _MISSING)
            for part in _parts_of_member(name, member):
                self.add(part)


GENERATED: Final = ("<string>", dataclasses.__file__, reprlib.__file__)
"""The files of methods that dataclasses make."""

HEAP_TYPE: Final = 1 << 9
"""Flag of classes that Python code has made."""


def _parts_of_member(name: str, member: Any) -> Iterator[Any]:
    """Yield the functions or the value of a member of a class."""
    if name in ("__getattr__", "__getattribute__", "__class__"):
        raise _UnprovenError
    if type(member) is types.MemberDescriptorType:
        return
    if type(member) is property:
        yield from (part for part in (member.fget, member.fset, member.fdel) if part is not None)
    elif type(member) in (staticmethod, classmethod):
        if type(member) is classmethod:
            raise _UnprovenError  # it has the class, whose other members are not recorded
        yield member.__func__
    else:
        yield member


def _reference(value: Any) -> Callable[[], Any]:
    """Return a function that gives the value, and keeps it alive only where it cannot be followed."""
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value


def _is_namespace(value: Any) -> bool:
    """Return whether a value is a module or a class of the caller's, of which single attributes are read."""
    if type(value) in (type, abc.ABCMeta):
        return not _is_pure_type(value)
    return isinstance(value, types.ModuleType)


def _slot(holder: Callable[[], Any], member: types.MemberDescriptorType) -> Any:
    try:
        return member.__get__(holder())
    except AttributeError:
        return _MISSING


def _is_library_class(kind: type) -> bool:
    """Return whether a class is a base without memory: one of this library's, or `abc.ABC`."""
    return kind is abc.ABC or (
        f"{kind.__module__}.".startswith(PURE_LIBRARY)
        and getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind
    )


def _content_of(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _layout(array: np.ndarray[Any, Any]) -> Any:
    return array.shape, array.strides, array.dtype


def _is_of_library(function: types.FunctionType) -> bool:
    """Return whether a function is one of this library or of NumPy that reads its arguments alone."""
    place = str(function.__globals__.get("__name__", ""))
    of_numpy = place.startswith("numpy.") and function.__name__ in PURE_NUMPY
    if not f"{place}.".startswith(PURE_LIBRARY) and not of_numpy:
        return False
    return getattr(sys.modules.get(place), "__dict__", None) is function.__globals__


def _is_pure(value: Any) -> bool:
    """Return whether a value is immutable, or a function that reads its arguments alone."""
    if issubclass(type(value), np.generic):
        return type(value).__module__ == "numpy" and not isinstance(value, np.void | np.object_)
    if type(value) is np.ufunc or isinstance(type(value), type(np.dtype)):
        return True
    if issubclass(type(value), type):
        return _is_pure_type(value)
    if type(value) is types.BuiltinFunctionType:
        owner = value.__self__
        if owner is builtins:
            return value.__name__ in PURE_BUILTINS
        if any(owner is module for module in PURE_MODULES):
            return True
    if type(value) in (types.BuiltinFunctionType, type(np.dot)):
        place = value.__module__
        return place == "numpy.linalg" or (place == "numpy" and value.__name__ in PURE_NUMPY)
    return _is_frozen(value)


def _is_pure_type(kind: type) -> bool:
    if getattr(builtins, kind.__name__, None) is kind:
        return kind.__name__ in PURE_BUILTINS
    return issubclass(kind, np.generic) or _is_library_class(kind)


def _is_frozen(value: Any) -> bool:
    """Return whether a value is a model without functions of the caller's, or a spatial value of numbers."""
    kind = type(value)
    if not _is_library_class(kind):
        return False
    if kind.__module__ == "dalembert.model.model":
        return type(value.functions) is dict
    if kind.__module__.startswith("dalembert.spatial") and "leaves" in dir(kind):
        return all(type(leaf) in (int, float, np.float64) for leaf in value.leaves())
    return False
