"""Models as JSON text and back, bit for bit, and the digest that identifies a model's content.

Floats are written by `repr`, which Python reads back exactly; infinite limits are the strings "inf" and
"-inf", so that the text is strict JSON. Reading is bounded, runs nothing, and sends everything through the
builder's checks.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
import weakref
from collections.abc import Callable, Mapping
from numbers import Real
from types import MethodType
from typing import TYPE_CHECKING, Any, Final, Self

from dalembert.errors import DalembertError, ModelError, short_repr
from dalembert.model.body import LIMITS, LOOP_PLACEMENTS, PER_VELOCITY, Limits
from dalembert.model.builder import ModelBuilder
from dalembert.model.checks import require_known
from dalembert.model.joints import Joint, joint_from_data
from dalembert.model.shapes import Shape, shape_kinds
from dalembert.model.surgery import BODY_ARGUMENTS, builder_calls
from dalembert.model.user_functions import KnownFunction
from dalembert.spatial import AxialScrew, Mat3, Placement, RigidInertia, ScrewChain, SymMat3, Transform, Vec3

if TYPE_CHECKING:
    from dalembert.model.model import Model


# A strict reader of saved models: bounded text, known entries, checked numbers.

MAX_TEXT_BYTES = 64 * 2**20
"""Longer texts are rejected before they are parsed."""

MAX_DIGITS = 308
"""Digits of a whole number, so that every one of them is in the range of floats."""

MAX_NESTING = 100
"""Lists and objects inside one another. A model has about ten, a joint composed of joints a few more; the
readers of nested parts recurse, far below Python's limit of 1000 calls.
"""


def parse(text: str | bytes) -> Any:
    """Parse strict JSON of bounded size."""
    if len(text) > MAX_TEXT_BYTES:
        raise ModelError(f"the text has {len(text)} bytes; a model has {MAX_TEXT_BYTES} at most")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError(f"a name occurs twice among {[key for key, _ in pairs]}")
        return found

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not a JSON number")

    def whole(digits: str) -> int:
        if len(digits) > MAX_DIGITS:
            raise ValueError(f"{digits[:20]}… has {len(digits)} digits: it is beyond the range of floats")
        return int(digits)

    try:
        data = json.loads(text, object_pairs_hook=unique, parse_constant=refuse, parse_int=whole)
    except RecursionError as error:
        raise ModelError("the text is nested too deeply to be a model") from error
    except ValueError as error:  # includes JSONDecodeError and UnicodeDecodeError
        raise ModelError(f"the text is not a saved model: {str(error)[:300]}") from error
    waiting = [(data, 0)]
    while waiting:
        item, depth = waiting.pop()
        if depth > MAX_NESTING:
            raise ModelError(f"the text is nested too deeply to be a model: more than {MAX_NESTING} levels")
        inside = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        waiting += [(part, depth + 1) for part in inside if isinstance(part, (dict, list))]
    return data


class Reader:
    """A reader of one JSON object: takes entries by name and type, and rejects missing and unknown ones."""

    def __init__(self, data: Any, place: str) -> None:
        if not isinstance(data, Mapping):
            raise ModelError(f"{place} must be an object, got {short_repr(data)}")
        self.place = place
        self._data = dict(data)

    def take(self, key: str, kind: type = object, expected: str = "") -> Any:
        """Return the entry under a key and strike it off the list; another kind than expected is an error."""
        if key not in self._data:
            raise ModelError(f'{self.place} has no "{key}"')
        found = self._data.pop(key)
        if not isinstance(found, kind):
            raise ModelError(f'{self.place}: "{key}" must be {expected}, got {short_repr(found)}')
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Reject entries that were not taken, unless reading has failed already."""
        if self._data and kind is None:
            raise ModelError(
                f"{self.place} has unknown entries {sorted(self._data)}; is it from a newer version?"
            )

    def has(self, key: str) -> bool:
        """Return whether there is an entry under a key."""
        return key in self._data

    def text(self, key: str) -> str:
        return str(self.take(key, str, "text"))

    def items(self, key: str, optional: bool = False) -> list[Any]:
        """Return the list under a key, empty if an optional one is missing."""
        return [] if optional and key not in self._data else list(self.take(key, list, "a list"))

    def number(self, key: str) -> float:
        return self._number(self.take(key), key)

    def numbers(self, key: str, count: int | None = None) -> tuple[float, ...]:
        found = tuple(self._number(item, key) for item in self.items(key))
        if count is not None and len(found) != count:
            raise ModelError(f'{self.place}: "{key}" has {len(found)} numbers, {count} expected')
        return found

    def numbers_by_name(self, key: str) -> dict[str, tuple[float, ...]]:
        with self.reader(key) as inner:
            return {name: inner.numbers(name) for name in [*inner._data]}

    def number_by_name(self, key: str) -> dict[str, float]:
        with self.reader(key) as inner:
            return {name: inner.number(name) for name in [*inner._data]}

    def names(self, key: str) -> list[str]:
        return [str(item) for item in self.items(key)]

    def reader(self, key: str) -> Reader:
        return Reader(self.take(key), f"{self.place}.{key}")

    def readers(self, key: str, optional: bool = False) -> list[Reader]:
        items = self.items(key, optional)
        return [Reader(item, f"{self.place}.{key}[{i}]") for i, item in enumerate(items)]

    def joint(self, key: str) -> Joint:
        try:
            return joint_from_data(self.take(key))
        except (DalembertError, TypeError, ValueError) as error:
            raise ModelError(f'{self.place}: "{key}": {error}') from error

    def inertia(self, key: str) -> RigidInertia:
        mass, x, y, z, *moments = self.numbers(key, 10)
        return RigidInertia.from_compact(mass, Vec3(x, y, z), SymMat3(*moments))

    def limits(self, key: str) -> Limits:
        with self.reader(key) as inner:
            return Limits(**{part: inner.numbers(part) for part in LIMITS})

    def placement(self, key: str) -> Placement:
        with self.reader(key) as inner:
            if "chain" in inner._data:
                factors = [Reader({"factor": f}, inner.place) for f in inner.items("chain")]
                return ScrewChain([factor.placement("factor") for factor in factors])
            if "screw" in inner._data:
                axis = inner.take("axis")
                if axis not in (0, 1, 2):
                    raise ModelError(f'{inner.place}: "axis" is {short_repr(axis)}; 0, 1 or 2 expected')
                return AxialScrew(axis, *inner.numbers("screw", 3))
            return Transform(Mat3(*inner.numbers("rotation", 9)), Vec3(*inner.numbers("translation", 3)))

    def shapes(self, key: str, optional: bool = False) -> list[Shape]:
        found: list[Shape] = []
        for item in self.readers(key, optional):
            kind: Any = require_known(shape_kinds(), item.text("type"), item.place, "shape")
            placement = item.placement("placement")
            fields = {name: tuple(x) if isinstance(x, list) else x for name, x in item._data.items()}
            if "readable" in fields:  # which files may be read is not for the text to say
                raise ModelError(f'{item.place} has the unknown entry "readable"')
            for name in ("visual", "collision"):
                if not isinstance(fields.get(name, True), bool):
                    raise ModelError(
                        f'{item.place}: "{name}" must be true or false, got {short_repr(fields[name])}'
                    )
            try:
                found.append(kind(placement=placement, **fields))
            except (DalembertError, TypeError, ValueError) as error:
                raise ModelError(f"{item.place}: {error}") from error
        return found

    def _number(self, found: Any, key: str) -> float:
        if found in ("inf", "-inf"):
            return float(found)
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            raise ModelError(f'{self.place}: "{key}" must hold numbers, got {short_repr(found)}')
        try:
            return float(found)
        except OverflowError as error:
            raise ModelError(f'{self.place}: "{key}" holds a number beyond the range of floats') from error


FORMAT = "dalembert-model"
FORMAT_VERSION = 1
"""Raised when the saved form changes, so that a reader rejects forms that it does not know."""

SECTIONS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "bodies": ("add_body", ("name", "parent", *BODY_ARGUMENTS)),
    "frames": ("add_frame", ("name", "body", "placement", "inertia")),
    "loops": ("add_loop", ("name", "predecessor", "successor", "joint", *LOOP_PLACEMENTS)),
    "couplings": ("add_coupling", ("name", "joints", "coefficients", "offset", "dependent")),
    "contact_pairs": ("add_contact_pair", ("first", "second", "friction", "restitution", "condim")),
    "poses": ("add_pose", ("name", "positions")),
    "actuators": ("add_actuator", ("name", "gears", "gain", "bias", "control", "force")),
    "springs": (
        "add_spring",
        ("name", "points", "weights", "gears", "stiffness", "damping", "rest_length", "limits"),
    ),
    "fluid": ("set_fluid", ("density", "viscosity", "wind")),
    "drag_shapes": ("add_drag_shape", ("name", "body", "placement", "size", "coefficients", "added_inertia")),
}
"""The lists of a saved model: the builder's method for their items, and the entries of an item in order."""

LATER_SECTIONS: Final = ("contact_pairs", "poses", "actuators", "springs", "fluid", "drag_shapes")
"""Lists that models saved by earlier versions may lack."""

OPTIONAL: Final = {("frames", "inertia"), ("contact_pairs", "condim")}
"""Entries that not every item of a list has."""

READERS: Final[dict[str, Callable[[Reader, str], Any]]] = {
    **dict.fromkeys(("placement", *LOOP_PLACEMENTS), Reader.placement),
    **dict.fromkeys((*PER_VELOCITY, "rest", "coefficients"), Reader.numbers),
    "joint": Reader.joint,
    "inertia": Reader.inertia,
    "limits": Reader.limits,
    "shapes": Reader.shapes,
    "joints": Reader.names,
    **dict.fromkeys(("offset", "gain"), Reader.number),
    **dict.fromkeys(("condim", "restitution"), Reader.take),
    **dict.fromkeys(
        ("friction", "control", "force", "drag_shapes.coefficients"),
        lambda reader, key: reader.take(key) if reader._data.get(key, key) is None else reader.numbers(key),
    ),
    "positions": Reader.numbers_by_name,
    "gears": Reader.number_by_name,
    "springs.points": Reader.items,
    **dict.fromkeys(("bias", "springs.weights", "wind", "size", "added_inertia"), Reader.numbers),
    **dict.fromkeys(("springs.stiffness", "springs.damping", "density", "viscosity"), Reader.number),
    **dict.fromkeys(("springs.rest_length", "springs.limits"), lambda reader, key: reader.numbers(key, 2)),
}
"""How an entry, or that of one list, is read; all others are text."""

_FUNCTION_TOKENS: Final[dict[int, tuple[weakref.ref[Any], str]]] = {}
"""Tokens of users' functions by `id`, since not all functions can be hashed."""


def to_json(model: Model) -> str:
    """Return the model as JSON text, one line for each body; functions cannot be written as data."""
    functions = [f'constraint "{item.name}"' for item in model.constraints]
    if functions or model.closure is not None:
        raise ModelError(
            f"{[*functions, 'the loop closure'][0]} is a function and cannot be saved as data; save "
            "model.tree() and what the function is made of, and add it again when loading"
        )
    content = _content(model) | {"report": list(model.report)}
    lines = []
    for key, part in content.items():
        if isinstance(part, list) and part and isinstance(part[0], dict):
            items = ",\n    ".join(_dump(item) for item in part)
            lines.append(f"  {_dump(key)}: [\n    {items}\n  ]")
        else:
            lines.append(f"  {_dump(key)}: {_dump(part)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def digest(model: Model) -> str:
    """Return a SHA-256 of everything but the report; a user's function is identified within this process."""
    content = _content(model, with_functions=True)
    if model.constraints:
        content["constraints"] = [
            [item.name, item.kind, _identity(item.function)] for item in model.constraints
        ]
    if model.closure is not None:
        content["closure"] = [_identity(model.closure.function), list(model.closure.independent)]
    return hashlib.sha256(_dump(content).encode("utf-8", "surrogatepass")).hexdigest()


def from_json(text: str | bytes) -> Model:
    """Return the model saved by `to_json`."""
    from dalembert.model.values import rebuilt

    try:
        with Reader(parse(text), "model") as content:
            for key, wanted in (("format", FORMAT), ("version", FORMAT_VERSION)):
                found = content.take(key)
                if type(found) is not type(wanted) or found != wanted:
                    raise ModelError(
                        f'{content.place}: "{key}" is {short_repr(found)}, this version reads {wanted!r}'
                    )
            model = _build(content)
            report = content.names("report")
        return rebuilt(model, report=report)
    except DalembertError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        # The checks above are meant to refuse everything first; callers see errors of the library only.
        raise ModelError(
            f"the text is not a saved model: it leads to {type(error).__name__}: {str(error)[:200]}; please "
            "report it as a defect of dalembert"
        ) from error


def _content(model: Model, *, with_functions: bool = False) -> dict[str, Any]:
    """Return the model as dictionaries, lists, strings and floats, joints of functions by their tokens."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "name": model.name,
        "gravity": _floats(model.gravity.to_list(), "gravity"),
        **{section: [] for section in ("bodies", "frames", "loops", "couplings")},
        "actuated": list(model.actuated),
        "world_shapes": [_data(shape, "world", with_functions) for shape in model.world_shapes],
        "contact_exclusions": [list(pair) for pair in model.contact_exclusions],
        **{section: [] for section in LATER_SECTIONS},
    }
    sections = {method: (section, keys) for section, (method, keys) in SECTIONS.items()}
    for method, arguments in builder_calls(model):
        if method == "add_coupling":
            terms = arguments["coefficients"]
            arguments |= {"joints": list(terms), "coefficients": tuple(terms.values())}
        if method in ("add_actuator", "add_spring"):
            arguments |= {"gears": arguments["joints"]}
        if method == "add_spring":
            arguments |= {"points": [[body, point.to_list()] for body, point in arguments["points"]]}
        if method in sections:
            section, keys = sections[method]
            owner = arguments.get("name", "")
            given = {key: arguments[key] for key in keys if key in arguments}
            content[section].append({key: _data(part, owner, with_functions) for key, part in given.items()})
    return content


def _data(value: Any, owner: str, with_functions: bool) -> Any:
    """Return an argument of the builder as plain data; `owner` names it in errors."""
    if isinstance(value, Joint):
        try:
            return value.to_data()
        except ModelError as error:
            if with_functions:  # its structure, with a token for each function
                return [_identity(value.structure()), _floats(value.parameters(), owner)]
            raise ModelError(f'joint "{owner}": {error}') from error
    if isinstance(value, AxialScrew):
        return {"axis": value.axis, "screw": _floats([value.c, value.s, value.d], owner)}
    if isinstance(value, ScrewChain):
        return {"chain": [_data(factor, owner, False) for factor in value.factors]}
    if isinstance(value, Placement):
        return {"rotation": _floats(value.R.leaves(), owner), "translation": _floats(value.p.leaves(), owner)}
    if isinstance(value, RigidInertia):
        return _floats(value.leaves(), owner)
    if isinstance(value, Limits):
        return {part: _floats(getattr(value, part), owner) for part in LIMITS}
    if isinstance(value, Shape):
        own = dict(value.data())
        return {"type": value.kind} | own | {"placement": _data(value.placement, owner, False)}
    if isinstance(value, dict):
        return {key: _data(part, owner, with_functions) for key, part in value.items()}
    if isinstance(value, tuple | list):
        number = isinstance(value, tuple) and not any(isinstance(item, Shape) for item in value)
        return _floats(value, owner) if number else [_data(item, owner, with_functions) for item in value]
    return value


def _floats(values: Any, owner: str) -> list[float | str]:
    found: list[float | str] = []
    for value in values:
        if not isinstance(value, Real):
            raise ModelError(
                f'"{owner}" holds a {type(value).__name__} where a number belongs: a model with traced or '
                "symbolic values can be neither saved nor compared"
            )
        number = float(value)
        found.append(number if math.isfinite(number) else str(number))
    return found


def _identity(part: Any) -> Any:
    if isinstance(part, (tuple, list)):
        return [_identity(item) for item in part]
    if part is None or isinstance(part, (str, bool, int, float)):
        return part
    if isinstance(part, KnownFunction):
        return [type(part).__name__, _identity(part.identity())]
    if callable(part):
        return _function_token(part)
    return repr(part)


def _function_token(function: Callable[..., Any]) -> Any:
    """Return what tells a function from all others that live: the same text as long as it lives."""
    if isinstance(function, MethodType):  # another object at every mention of it
        return [_function_token(function.__func__), _function_token(function.__self__)]  # type: ignore[arg-type]
    number = id(function)
    known = _FUNCTION_TOKENS.get(number)
    if known is not None and known[0]() is function:
        return known[1]
    token = secrets.token_hex(16)
    try:
        reference = weakref.ref(function, lambda _: _FUNCTION_TOKENS.pop(number, None))
    except TypeError:
        return token  # it cannot be followed: two models with it count as different
    _FUNCTION_TOKENS[number] = (reference, token)
    return token


def _dump(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def _build(content: Reader) -> Model:
    """Build the model; models saved by earlier versions may lack some lists."""
    builder = ModelBuilder(gravity=content.numbers("gravity", 3), name=content.text("name"))
    for section, (method, keys) in SECTIONS.items():
        for item in content.readers(section, optional=section in LATER_SECTIONS):
            with item:
                given = [key for key in keys if (section, key) not in OPTIONAL or item.has(key)]
                reader_of = {
                    key: READERS.get(f"{section}.{key}") or READERS.get(key, Reader.text) for key in given
                }
                arguments = {key: read(item, key) for key, read in reader_of.items()}
                if "gears" in arguments:
                    arguments["joints"] = arguments.pop("gears")
                elif "joints" in arguments:
                    joints, k = arguments.pop("joints"), arguments["coefficients"]
                    if len(k) != len(joints):
                        raise ModelError(
                            f'{item.place}: "coefficients" has {len(k)} numbers, {len(joints)} expected'
                        )
                    arguments["coefficients"] = dict(zip(joints, k))
                getattr(builder, method)(**arguments)
    builder.set_actuated(content.names("actuated"))
    for shape in content.shapes("world_shapes", optional=True):
        builder.add_shape("world", shape)
    for pair in content.items("contact_exclusions", optional=True):
        if not isinstance(pair, list) or len(pair) != 2:
            raise ModelError(f"{content.place}.contact_exclusions must hold pairs of bodies, got {pair!r}")
        builder.exclude_contact(*pair)
    return builder.build(inertia="as_given")
