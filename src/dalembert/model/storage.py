"""Models as JSON text and back, bit for bit, and the digest that identifies a model's content.

Floats are written by `repr`, which Python reads back exactly; infinite limits are the strings "inf" and
"-inf", so that the text is strict JSON. Reading is bounded, runs nothing, and sends everything through the
builder's checks.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import secrets
import weakref
from collections.abc import Callable
from numbers import Real
from types import MethodType
from typing import TYPE_CHECKING, Any, Final

from dalembert.errors import DalembertError, ModelError
from dalembert.model.body import Body, Limits, Placement
from dalembert.model.joints import Joint
from dalembert.model.reader import Reader, parse
from dalembert.model.shapes import Shape
from dalembert.model.user_constraints import KnownFunction
from dalembert.spatial import AxialScrew, ScrewChain

if TYPE_CHECKING:
    from dalembert.model.builder import ModelBuilder
    from dalembert.model.model import Model

__all__ = ["FORMAT", "FORMAT_VERSION", "digest", "from_json", "to_json"]

FORMAT = "dalembert-model"
FORMAT_VERSION = 1
"""Raised when the saved form changes, so that a reader rejects forms that it does not know."""

_VELOCITY_FIELDS: Final = ("armature", "damping", "friction", "stiffness")
_LIMIT_FIELDS: Final = ("lower", "upper", "velocity", "effort")
_FUNCTION_TOKENS: Final[dict[int, tuple[weakref.ref[Any], str]]] = {}
"""Tokens of users' functions by `id`, since not all functions can be hashed."""


def to_json(model: Model) -> str:
    """Return the model as JSON text, one line for each body."""
    _refuse_functions(model)
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
    """Return a SHA-256 of everything but the report; a user's function is identified within this process."""
    content = _content(model, _joint_identity)
    if model.constraints:
        content["constraints"] = [
            [item.name, item.kind, _identity(item.function)] for item in model.constraints
        ]
    if model.closure is not None:
        content["closure"] = [_identity(model.closure.function), list(model.closure.independent)]
    return hashlib.sha256(_dump(content).encode("utf-8", "surrogatepass")).hexdigest()


def _refuse_functions(model: Model) -> None:
    """Raise an error if the model contains functions, which cannot be written as data."""
    names = [f'constraint "{item.name}"' for item in model.constraints]
    if model.closure is not None:
        names.append("the loop closure")
    if names:
        raise ModelError(
            f"{names[0]} is a function and cannot be saved as data; save model.tree() and what "
            "the function is made of, and add it again when loading"
        )


def from_json(text: str | bytes) -> Model:
    """Return the model saved by `to_json`."""
    from dalembert.model.values import rebuilt

    try:
        content = Reader(parse(text), "model")
        content.expect("format", FORMAT)
        content.expect("version", FORMAT_VERSION)
        model = _build(content)
        report = tuple(str(line) for line in content.items("report"))
        content.close()
        return rebuilt(model, report=report)
    except DalembertError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        # The checks above are meant to refuse everything first; callers see errors of the library only.
        raise ModelError(
            f"the text is not a saved model: it leads to {type(error).__name__}: {str(error)[:200]}; please "
            "report it as a defect of dalembert"
        ) from error


def _content(model: Model, joint: Callable[[Joint, str], Any]) -> dict[str, Any]:
    """Return the model as dictionaries, lists, strings and floats."""

    def name_of(body: int) -> str:
        return "world" if body < 0 else model.bodies[body].name

    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "name": model.name,
        "gravity": _floats(model.gravity.to_list(), "gravity"),
        "bodies": [_body_data(body, name_of(body.parent), joint) for body in model.bodies],
        "frames": [
            {
                "name": frame.name,
                "body": name_of(frame.body),
                "placement": _placement_data(frame.placement, frame.name),
            }
            for frame in model.frames
        ],
        "loops": [
            {
                "name": loop.name,
                "predecessor": name_of(loop.predecessor),
                "successor": name_of(loop.successor),
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
        "world_shapes": [_shape_data(shape, "world") for shape in model.world_shapes],
        "contact_exclusions": [list(pair) for pair in model.contact_exclusions],
        "contact_pairs": [dataclasses.asdict(pair) for pair in model.contact_pairs],
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


def _joint_identity(joint: Joint, name: str) -> Any:
    """Return the joint's data or, where functions define it, its structure with a token for each function."""
    try:
        return joint.to_data()
    except ModelError:
        return [_identity(joint.structure()), _floats(joint.parameters(), name)]


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
    _build_contact(content, builder)
    return builder.build(inertia="as_given")


def _build_contact(content: Reader, builder: ModelBuilder) -> None:
    """Add the world's shapes, exclusions and contact pairs; models saved by earlier versions may lack
    them.
    """
    for item in content.readers("world_shapes", missing=()):
        builder.add_shape("world", item.shape())
    for pair in content.items("contact_exclusions", missing=()):
        if not isinstance(pair, list) or len(pair) != 2:
            raise ModelError(f"{content.place}.contact_exclusions must hold pairs of bodies, got {pair!r}")
        builder.exclude_contact(*pair)
    for item in content.readers("contact_pairs", missing=()):
        builder.add_contact_pair(
            item.text("first"),
            item.text("second"),
            friction=item.take("friction"),
            restitution=item.take("restitution"),
        )
        item.close()
