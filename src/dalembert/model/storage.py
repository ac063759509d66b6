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
from collections.abc import Callable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from dalembert.errors import DalembertError, ModelError, UnknownNameError
from dalembert.model.body import Body, Limits, Placement
from dalembert.model.joints import Joint, joint_from_data
from dalembert.model.shapes import Shape, shape_kinds
from dalembert.spatial import AxialScrew, Mat3, RigidInertia, ScrewChain, SymMat3, Transform, Vec3

if TYPE_CHECKING:
    from dalembert.model.model import Model

__all__ = ["FORMAT", "MAX_TEXT_BYTES", "VERSION", "digest", "from_json", "to_json"]

FORMAT = "dalembert-model"
VERSION = 1
MAX_TEXT_BYTES = 64 * 2**20
"""Longer texts are refused before they are parsed."""

_VELOCITY_FIELDS: Final = ("armature", "damping", "friction", "stiffness")
_LIMIT_FIELDS: Final = ("lower", "upper", "velocity", "effort")
_FUNCTION_TOKENS: WeakKeyDictionary[Callable[..., Any], str] = WeakKeyDictionary()


def to_json(model: Model) -> str:
    """The model as JSON text with one line a body."""
    content = _content(model, _saved_joint) | {"report": list(model.report)}
    lines = []
    for key, part in content.items():
        if isinstance(part, list) and part and isinstance(part[0], dict):
            items = ",\n    ".join(_dump(item) for item in part)
            lines.append(f"  {_dump(key)}: [\n    {items}\n  ]")
        else:
            lines.append(f"  {_dump(key)}: {_dump(part)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def digest(model: Model) -> str:
    """A SHA-256 of everything but the report. A function inside a user-defined joint counts as itself in
    this process.
    """
    return hashlib.sha256(_dump(_content(model, _identified_joint)).encode()).hexdigest()


def from_json(text: str | bytes) -> Model:
    """The model that `to_json` wrote."""
    from dalembert.model.values import rebuilt

    content = _Reader(_parse(text), "model")
    content.expect("format", FORMAT)
    content.expect("version", VERSION)
    model = _build(content)
    report = tuple(str(line) for line in content.items("report"))
    content.close()
    return rebuilt(model, report=report)


def _content(model: Model, joint: Callable[[Joint, str], Any]) -> dict[str, Any]:
    """The model as dictionaries, lists, strings and floats."""

    def named(body: int) -> str:
        return "world" if body < 0 else model.bodies[body].name

    return {
        "format": FORMAT,
        "version": VERSION,
        "name": model.name,
        "gravity": _floats(model.gravity.to_list(), "gravity"),
        "bodies": [_body_data(body, named(body.parent), joint) for body in model.bodies],
        "frames": [
            {
                "name": frame.name,
                "body": named(frame.body),
                "placement": _placement_data(frame.placement, frame.name),
            }
            for frame in model.frames
        ],
        "loops": [
            {
                "name": loop.name,
                "predecessor": named(loop.predecessor),
                "successor": named(loop.successor),
                "joint": joint(loop.joint, loop.name),
                "placement_predecessor": _placement_data(loop.placement_predecessor, loop.name),
                "placement_successor": _placement_data(loop.placement_successor, loop.name),
            }
            for loop in model.loops
        ],
        "couplings": [
            {
                "name": coupling.name,
                "joints": [name for name, _ in coupling.coefficients],
                "coefficients": _floats([k for _, k in coupling.coefficients], coupling.name),
                "offset": coupling.offset,
                "dependent": coupling.dependent,
            }
            for coupling in model.couplings
        ],
        "actuated": list(model.actuated),
    }


def _body_data(body: Body, parent: str, joint: Callable[[Joint, str], Any]) -> dict[str, Any]:
    data = {
        "name": body.name,
        "parent": parent,
        "joint_name": body.joint_name,
        "joint": joint(body.joint, body.joint_name),
        "placement": _placement_data(body.placement, body.name),
        "inertia": _floats(body.inertia.leaves(), body.name),
        "rest": _floats(body.rest, body.name),
        "limits": {part: _floats(getattr(body.limits, part), body.name) for part in _LIMIT_FIELDS},
        "shapes": [_shape_data(shape, body.name) for shape in body.shapes],
    }
    return data | {part: _floats(getattr(body, part), body.name) for part in _VELOCITY_FIELDS}


def _shape_data(shape: Shape, owner: str) -> dict[str, Any]:
    data: dict[str, Any] = {"type": shape.kind}
    for name, item in shape.data():
        if isinstance(item, Placement):
            data[name] = _placement_data(item, owner)
        else:
            data[name] = list(item) if isinstance(item, tuple) else item
    return data


def _placement_data(placement: Placement, owner: str) -> dict[str, Any]:
    if isinstance(placement, AxialScrew):
        return {"axis": placement.axis, "screw": _floats([placement.c, placement.s, placement.d], owner)}
    if isinstance(placement, ScrewChain):
        return {"chain": [_placement_data(factor, owner) for factor in placement.factors]}
    return {
        "rotation": _floats(placement.R.leaves(), owner),
        "translation": _floats(placement.p.leaves(), owner),
    }


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


def _saved_joint(joint: Joint, name: str) -> Any:
    try:
        return joint.to_data()
    except ModelError as error:
        raise ModelError(f'joint "{name}": {error}') from error


def _identified_joint(joint: Joint, name: str) -> Any:
    """The joint's data or, where functions define it, its structure with a token for each function."""
    try:
        return joint.to_data()
    except ModelError:
        return [_identified(joint.structure()), _floats(joint.parameters(), name)]


def _identified(part: Any) -> Any:
    if isinstance(part, (tuple, list)):
        return [_identified(item) for item in part]
    if part is None or isinstance(part, (str, bool, int, float)):
        return part
    if callable(part):
        return _FUNCTION_TOKENS.setdefault(part, secrets.token_hex(16))
    return repr(part)


def _dump(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def _parse(text: str | bytes) -> Any:
    """Strict JSON of bounded size."""
    if len(text) > MAX_TEXT_BYTES:
        raise ModelError(f"the text has {len(text)} bytes; a model has {MAX_TEXT_BYTES} at most")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError(f"a name occurs twice among {[key for key, _ in pairs]}")
        return found

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not a JSON number")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except RecursionError as error:
        raise ModelError("the text is nested too deeply to be a model") from error
    except ValueError as error:  # includes JSONDecodeError and UnicodeDecodeError
        raise ModelError(f"the text is not a saved model: {error}") from error


def _build(content: _Reader) -> Model:
    from dalembert.model.builder import ModelBuilder

    builder = ModelBuilder(gravity=content.numbers("gravity", 3), name=content.text("name"))
    for item in content.readers("bodies"):
        limits = item.reader("limits")
        builder.add_body(
            item.text("name"),
            item.text("parent"),
            item.joint("joint"),
            item.text("joint_name"),
            placement=item.placement("placement"),
            inertia=item.inertia("inertia"),
            rest=item.numbers("rest"),
            limits=Limits(**{part: tuple(limits.numbers(part)) for part in _LIMIT_FIELDS}),
            shapes=[shape.shape() for shape in item.readers("shapes")],
            **{part: item.numbers(part) for part in _VELOCITY_FIELDS},
        )
        limits.close()
        item.close()
    for item in content.readers("frames"):
        builder.add_frame(item.text("name"), item.text("body"), item.placement("placement"))
        item.close()
    for item in content.readers("loops"):
        builder.add_loop(
            item.text("name"),
            item.text("predecessor"),
            item.text("successor"),
            item.joint("joint"),
            item.placement("placement_predecessor"),
            item.placement("placement_successor"),
        )
        item.close()
    for item in content.readers("couplings"):
        joints = [str(joint) for joint in item.items("joints")]
        terms = dict(zip(joints, item.numbers("coefficients", len(joints))))
        builder.add_coupling(
            item.text("name"), terms, offset=item.number("offset"), dependent=item.text("dependent")
        )
        item.close()
    builder.set_actuated([str(name) for name in content.items("actuated")])
    return builder.build(inertia="as_given")


class _Reader:
    """One object of the text: takes entries by name and type, refuses what is missing or left over."""

    def __init__(self, data: Any, place: str) -> None:
        if not isinstance(data, Mapping):
            raise ModelError(f"{place} must be an object, got {_short(data)}")
        self.place = place
        self._data = dict(data)

    def take(self, key: str) -> Any:
        if key not in self._data:
            raise ModelError(f'{self.place} has no "{key}"')
        return self._data.pop(key)

    def close(self) -> None:
        if self._data:
            raise ModelError(
                f"{self.place} has unknown entries {sorted(self._data)}; is it from a newer version?"
            )

    def expect(self, key: str, wanted: object) -> None:
        found = self.take(key)
        if type(found) is not type(wanted) or found != wanted:
            raise ModelError(f'{self.place}: "{key}" is {_short(found)}, this version reads {wanted!r}')

    def text(self, key: str) -> str:
        found = self.take(key)
        if not isinstance(found, str):
            raise ModelError(f'{self.place}: "{key}" must be text, got {_short(found)}')
        return found

    def items(self, key: str) -> list[Any]:
        found = self.take(key)
        if not isinstance(found, list):
            raise ModelError(f'{self.place}: "{key}" must be a list, got {_short(found)}')
        return found

    def number(self, key: str) -> float:
        return self._number(self.take(key), key)

    def numbers(self, key: str, count: int | None = None) -> tuple[float, ...]:
        found = tuple(self._number(item, key) for item in self.items(key))
        if count is not None and len(found) != count:
            raise ModelError(f'{self.place}: "{key}" has {len(found)} numbers, {count} expected')
        return found

    def reader(self, key: str) -> _Reader:
        return _Reader(self.take(key), f"{self.place}.{key}")

    def readers(self, key: str) -> list[_Reader]:
        return [_Reader(item, f"{self.place}.{key}[{i}]") for i, item in enumerate(self.items(key))]

    def joint(self, key: str) -> Joint:
        try:
            return joint_from_data(self.take(key))
        except (DalembertError, TypeError, ValueError) as error:
            raise ModelError(f'{self.place}: "{key}": {error}') from error

    def inertia(self, key: str) -> RigidInertia:
        mass, x, y, z, *moments = self.numbers(key, 10)
        return RigidInertia.from_compact(mass, Vec3(x, y, z), SymMat3(*moments))

    def placement(self, key: str) -> Placement:
        inner = self.reader(key)
        found: Placement
        if "chain" in inner._data:
            found = ScrewChain(
                [_Reader({"factor": f}, inner.place).placement("factor") for f in inner.items("chain")]
            )
        elif "screw" in inner._data:
            axis = inner.take("axis")
            if axis not in (0, 1, 2):
                raise ModelError(f'{inner.place}: "axis" is {_short(axis)}; 0, 1 or 2 expected')
            found = AxialScrew(axis, *inner.numbers("screw", 3))
        else:
            found = Transform(Mat3(*inner.numbers("rotation", 9)), Vec3(*inner.numbers("translation", 3)))
        inner.close()
        return found

    def shape(self) -> Shape:
        kind = self.text("type")
        kinds: dict[str, Any] = dict(shape_kinds())
        if kind not in kinds:
            raise UnknownNameError(f"{self.place}: {UnknownNameError.of('shape', kind, kinds)}")
        placement = self.placement("placement")
        fields = {key: tuple(item) if isinstance(item, list) else item for key, item in self._data.items()}
        try:
            shape: Shape = kinds[kind](placement=placement, **fields)
            return shape
        except (DalembertError, TypeError, ValueError) as error:
            raise ModelError(f"{self.place}: {error}") from error

    def _number(self, found: Any, key: str) -> float:
        if found in ("inf", "-inf"):
            return float(found)
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            raise ModelError(f'{self.place}: "{key}" must hold numbers, got {_short(found)}')
        try:
            return float(found)
        except OverflowError as error:
            raise ModelError(f'{self.place}: "{key}" holds a number beyond the range of floats') from error


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
