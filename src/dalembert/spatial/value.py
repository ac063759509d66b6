"""The base of all spatial values: frozen, and compared, hashed and copied by their scalars."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, Self, TypeVar, dataclass_transform

import numpy as np

from dalembert.errors import DalembertError, ShapeError
from dalembert.scalar import Scalar, for_each

T = TypeVar("T")


class SpatialTypeError(DalembertError, TypeError):
    """An operation that physics does not define, such as the sum of a motion and a force."""


class FrozenValueError(DalembertError, AttributeError):
    """An attempt to change a frozen value."""


def mismatch(operation: str, left: object, right: object, remedy: str) -> SpatialTypeError:
    """Return the error for `left operation right`: what was given, and what is defined instead."""
    names = f"{type(left).__name__} {operation} {type(right).__name__}"
    return SpatialTypeError(f"{names} is not defined; {remedy}")


def scalars_of(values: Any, count: int, what: str) -> list[Scalar]:
    """Return `count` scalars of a sequence or array; numbers become floats, so that zeros are structural."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        values = values.tolist()
    plain = isinstance(values, str | bytes) or (isinstance(values, np.ndarray) and not values.ndim)
    if plain or not isinstance(values, Sequence | np.ndarray | Value):
        raise SpatialTypeError(f"{what} must be a sequence of {count} scalars, got {type(values).__name__}")
    items = list(values)
    if len(items) != count:
        raise ShapeError(f"{what} must have {count} elements, got {len(items)}")
    return [float(item) if isinstance(item, int | np.integer | np.floating) else item for item in items]


_CLASSES: dict[str, type[Value]] = {}
"""Every class of values by its name, for the source of methods."""


@dataclass_transform(frozen_default=True, eq_default=False)
class Value:
    """Abstract base of the spatial values, which are records of scalars and of other values.

    A subclass lists its fields in `__slots__` and annotates them in the order of the constructor; `__init__`,
    `leaves` and `rebuilt` are then written for it, as `dataclasses` would, unless it has its own, which calls
    `_fill` to set the fields. A slot whose name begins with an underscore is a cache and starts as None. The
    methods go through the slots' own setters, which is twice as fast as `object.__setattr__`: values are made
    by the ten thousand while an algorithm is traced.
    """

    __slots__ = ()

    __array_ufunc__ = None  # `array * value` is the product by a scalar, not an array of values.

    _field_kinds: ClassVar[dict[str, str]] = {}
    """The types of the fields by name, in the order of the constructor; none of an abstract class."""

    def __init_subclass__(cls) -> None:
        annotations = inspect.get_annotations(cls).items()
        cls._field_kinds = {
            name: kind for name, kind in annotations if name in cls.__dict__ and name[0] != "_"
        }
        _CLASSES[cls.__name__] = cls
        if cls._field_kinds:
            _write_methods(cls, _RECORD)

    if TYPE_CHECKING:

        def _fill(self, *fields: Any) -> None: ...

    def _keep(self, cache: str, found: T) -> T:
        """Return a quantity that is computed once, after storing it in a cache."""
        object.__setattr__(self, cache, found)
        return found

    def leaves(self) -> list[Scalar]:
        """Return the scalars that the value consists of, in a fixed order."""
        raise SpatialTypeError(f"{type(self).__name__} is abstract")

    def rebuilt(self, leaves: Iterator[Scalar]) -> Self:
        """Return a value of the same structure from as many scalars, taken from the iterator."""
        raise SpatialTypeError(f"{type(self).__name__} is abstract")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenValueError(f"{type(self).__name__} is frozen; make a new one instead of setting {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenValueError(f"{type(self).__name__} is frozen; {name!r} cannot be deleted")

    def __iter__(self) -> Iterator[Scalar]:
        return iter(self.leaves())

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        ours, theirs = self.leaves(), other.leaves()
        return len(ours) == len(theirs) and all(a is b or bool(np.all(a == b)) for a, b in zip(ours, theirs))

    def __hash__(self) -> int:
        return hash((type(self).__name__, *self.leaves()))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self.rebuilt(iter(self.leaves()))

    def __reduce__(self) -> Any:
        return type(self), tuple(getattr(self, name) for name in self._field_kinds)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._field_kinds)
        return f"{type(self).__name__}({fields})"


class LinearValue(Value):
    """Abstract base of the values that form a vector space: sums and multiples, field by field."""

    __slots__ = ()

    _product_remedy: ClassVar[str]
    """What to write instead of the product of two values."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls._field_kinds:
            _write_methods(cls, _LINEAR)

    if TYPE_CHECKING:

        def __add__(self, other: Self) -> Self: ...
        def __sub__(self, other: Self) -> Self: ...
        def __neg__(self) -> Self: ...
        def __mul__(self, factor: Scalar) -> Self: ...
        def __rmul__(self, factor: Scalar) -> Self: ...
        @classmethod
        def zero(cls) -> Self: ...

    def _alike(self, operation: str, other: Any) -> tuple[Any, Any]:
        """Return two operands of different types as operands of one type, if that is defined."""
        verb = {"+": "add", "-": "subtract"}[operation]
        raise mismatch(operation, self, other, f"{verb} two {type(self).__name__}")


_RECORD = """
def _fill(self, {names}):
    {sets}

__init__ = _fill

def leaves(self):
    return [{leaves}]

def rebuilt(self, leaves):
    return {rebuilt}
"""

_LINEAR = """
@staticmethod
def zero():
    'Return the zero of this kind, of literals.'
    return {zero}

def __add__(self, other):
    if type(other) is not {cls}:
        left, right = self._alike("+", other)
        return left + right
    return {cls}({sums})

def __sub__(self, other):
    if type(other) is not {cls}:
        left, right = self._alike("-", other)
        return left - right
    return {cls}({differences})

def __neg__(self):
    return {cls}({negatives})

def __mul__(self, factor):
    if isinstance(factor, Value):
        raise mismatch("*", self, factor, self._product_remedy)
    return {cls}({products})

__rmul__ = __mul__
"""


def _write_methods(cls: type[Value], source: str) -> None:
    """Add methods to a class from their source, its fields filled in; methods that it has stay."""
    fields = cls._field_kinds
    caches = [name for name in cls.__dict__.get("__slots__", ()) if name[0] == "_"]
    text = source.format(
        cls=cls.__name__,
        names=", ".join(fields),
        sets="; ".join(
            f"set_{name}(self, {None if name in caches else name})" for name in (*fields, *caches)
        ),
        leaves=", ".join(_scalar_paths(cls, "self")),
        rebuilt=_construction(cls, "next(leaves)"),
        zero=_construction(cls, "0.0"),
        sums=", ".join(f"self.{name} + other.{name}" for name in fields),
        differences=", ".join(f"self.{name} - other.{name}" for name in fields),
        negatives=", ".join(f"-self.{name}" for name in fields),
        products=", ".join(f"self.{name} * factor" for name in fields),
    )
    setters = {f"set_{name}": cls.__dict__[name].__set__ for name in (*fields, *caches)}
    names: dict[str, Any] = {**_CLASSES, **setters, "mismatch": mismatch, "Value": Value}
    methods: dict[str, Any] = {}
    exec(text, names | {"__name__": cls.__module__}, methods)
    for name, method in methods.items():
        if name not in cls.__dict__:
            setattr(cls, name, method)


def _scalar_paths(cls: type[Value], path: str) -> Iterator[str]:
    """Yield the expressions of all scalars below a path; a field of another kind is structure."""
    for name, kind in cls._field_kinds.items():
        if kind in _CLASSES:
            yield from _scalar_paths(_CLASSES[kind], f"{path}.{name}")
        elif kind == "Scalar":
            yield f"{path}.{name}"


def _construction(cls: type[Value], scalar: str, path: str = "self") -> str:
    """Return the expression that makes a value of the class, every scalar given by one expression."""
    parts = []
    for name, kind in cls._field_kinds.items():
        if kind in _CLASSES:
            parts.append(_construction(_CLASSES[kind], scalar, f"{path}.{name}"))
        else:
            parts.append(scalar if kind == "Scalar" else f"{path}.{name}")
    return f"{cls.__name__}({', '.join(parts)})"


# Values as flat lists of scalars and back, for any nesting of spatial values, sequences, mappings and
# dataclasses: rebuild(value, leaves(value)) == value. What is not a scalar (names, flags, None) is structure.

STRUCTURE: Final = (*for_each.FORM, bool)


def leaves(value: Any) -> list[Scalar]:
    """Return the scalars of a nested value, in a fixed order."""
    return for_each.leaves(value, STRUCTURE)


def rebuild(value: T, new_leaves: Iterable[Scalar]) -> T:
    """Return a value of the same structure with other scalars, exactly as many as `leaves(value)` has."""
    items = list(new_leaves)
    wanted = len(leaves(value))
    if len(items) != wanted:
        raise ShapeError(f"a {type(value).__name__} of {wanted} scalars cannot be rebuilt from {len(items)}")
    rebuilt: T = for_each.rebuild_from(value, iter(items), STRUCTURE)
    return rebuilt
