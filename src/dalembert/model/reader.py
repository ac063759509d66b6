"""A strict reader of saved models: bounded text, known entries, checked numbers."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from dalembert.errors import DalembertError, ModelError, UnknownNameError
from dalembert.model.body import Placement
from dalembert.model.joints import REGISTRY, Joint, joint_from_data
from dalembert.model.shapes import Shape, shape_kinds
from dalembert.spatial import AxialScrew, Mat3, RigidInertia, ScrewChain, SymMat3, Transform, Vec3

__all__ = ["MAX_TEXT_BYTES", "Reader", "parse", "restored_joint"]

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
        _refuse_nesting(data)
    except RecursionError as error:
        raise ModelError("the text is nested too deeply to be a model") from error
    except ValueError as error:  # includes JSONDecodeError and UnicodeDecodeError
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"the text is not a saved model: {str(error)[:300]}") from error
    return data


def _refuse_nesting(data: Any) -> None:
    """Raise an error for data nested too deeply for the recursive readers."""
    waiting = [(data, 0)]
    while waiting:
        item, depth = waiting.pop()
        if depth > MAX_NESTING:
            raise ModelError(f"the text is nested too deeply to be a model: more than {MAX_NESTING} levels")
        inside = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        waiting += [(part, depth + 1) for part in inside if isinstance(part, (dict, list))]


def restored_joint(data: Any) -> Joint:
    """Return the joint described by `to_data`, bit for bit.

    Constructors normalise axes, which may change the last bit of a unit axis; numbers that differ from the
    saved ones by no more than that are replaced by the saved ones.
    """
    joint = joint_from_data(data)
    saved, made = _joint_numbers(data), joint.parameters()
    if len(saved) == len(made) and all(
        abs(a - b) <= 4.0 * sys.float_info.epsilon for a, b in zip(saved, made)
    ):
        return joint.with_parameters(saved)
    return joint


def _joint_numbers(data: Any) -> list[float]:
    """Return the numbers in a joint's data, in the order of its `parameters`."""
    if isinstance(data, Mapping):
        names = REGISTRY[data["type"]].parameter_names if "type" in data else ("rotation", "translation")
        return [number for name in names if name in data for number in _joint_numbers(data[name])]
    if isinstance(data, list):
        return [number for item in data for number in _joint_numbers(item)]
    return [float(data)] if isinstance(data, (int, float)) and not isinstance(data, bool) else []


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class Reader:
    """A reader of one JSON object: takes entries by name and type, and rejects missing and unknown ones."""

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

    def items(self, key: str, missing: Sequence[Any] | None = None) -> list[Any]:
        """Return the list under a key; a missing key gives `missing`."""
        if missing is not None and key not in self._data:
            return list(missing)
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

    def reader(self, key: str) -> Reader:
        return Reader(self.take(key), f"{self.place}.{key}")

    def readers(self, key: str, missing: Sequence[Any] | None = None) -> list[Reader]:
        items = self.items(key, missing)
        return [Reader(item, f"{self.place}.{key}[{i}]") for i, item in enumerate(items)]

    def joint(self, key: str) -> Joint:
        try:
            return restored_joint(self.take(key))
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
                [Reader({"factor": f}, inner.place).placement("factor") for f in inner.items("chain")]
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
        if "readable" in fields:  # which files may be read is not for the text to say
            raise ModelError(f'{self.place} has the unknown entry "readable"')
        for name in ("visual", "collision"):
            if not isinstance(fields.get(name, True), bool):
                raise ModelError(f'{self.place}: "{name}" must be true or false, got {_short(fields[name])}')
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
