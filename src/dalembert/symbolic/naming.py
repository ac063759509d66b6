"""Symbols with readable names for coordinates and for the numbers of a model.

Coordinates are named for their joints, q_shoulder, qdot_shoulder, qddot_shoulder and tau_shoulder; a model of
one coordinate has plain q. Numbers are named as textbooks do, with the number of the body counted from one:
masses m_1, lengths l_1 (from joint to joint, or to a frame) and c_1 (to a centre of mass elsewhere), moments
of inertia I_1, and g.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from dalembert.errors import ArgumentError
from dalembert.model.body import Body, Loop
from dalembert.model.joints import Joint
from dalembert.model.model import Model
from dalembert.spatial import SymMat3, Transform, Vec3
from dalembert.spatial.transform import Placement
from dalembert.symbolic.exact_numbers import exact_loop, exact_placement
from dalembert.symbolic.requirement import sympy

__all__ = ["Coordinates", "ParameterNames", "chosen_values", "coordinate_symbols"]

COMPONENTS = "xyz"
GREEK = (
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda", "mu", "nu", "xi",
    "rho", "sigma", "phi", "chi", "psi", "omega",
)  # fmt: skip
MOMENTS = ("xx", "yy", "zz", "xy", "xz", "yz")
SAME_LENGTH_TOLERANCE = 1e-12
"""Relative difference up to which two numbers of one body are the same length."""


class Coordinates(NamedTuple):
    """The symbols of q, v, a and tau, and of each their LaTeX."""

    q: tuple[Any, ...]
    v: tuple[Any, ...]
    a: tuple[Any, ...]
    tau: tuple[Any, ...]
    latex: Mapping[Any, str]


def coordinate_symbols(model: Model, names: Sequence[str] | None) -> Coordinates:
    """Return symbols for the model's coordinates; `names` (nq) instead of those made from the joints."""
    sp = sympy()
    q_stems, v_stems = _stems(model)
    if names is not None:
        if len(names) != model.nq or len(set(names)) != len(names):
            raise ArgumentError(
                f"coordinates: {model.nq} different names are needed, one for each of q; got {list(names)}"
            )
        for body in model.bodies:
            if body.dependence is None and body.nq == body.nv:
                v_stems[body.v_slice] = [(name, True) for name in names[body.q_slice]]
    latex: dict[Any, str] = {}

    def symbol(name: str, typeset: str) -> Any:
        made = sp.Symbol(name, real=True)
        latex[made] = typeset
        return made

    q = names or q_stems
    rates = [_rate_names(stem, is_rate) for stem, is_rate in v_stems]
    return Coordinates(
        tuple(symbol(name, _typeset(name)) for name in q),
        tuple(symbol(first, _typeset(first)) for first, _, _ in rates),
        tuple(symbol(second, _typeset(second)) for _, second, _ in rates),
        tuple(symbol(force, _typeset(force)) for _, _, force in rates),
        latex,
    )


def _stems(model: Model) -> tuple[list[str], list[tuple[str, bool]]]:
    """Return a name for each entry of q; for each of v a name and whether it is the rate of the q of that
    name."""
    independent = [body for body in model.bodies if body.dependence is None and body.nv]
    alone = model.nq == 1
    q_stems = [""] * model.nq
    v_stems = [("", False)] * model.nv
    taken: set[str] = set()
    for body in independent:
        stem = re.sub(r"\W+", "_", body.joint_name).strip("_") or f"joint{body.index + 1}"
        while stem in taken:
            stem += f"_{body.index + 1}"
        taken.add(stem)
        many = body.nq > 1
        q = ["q" if alone else f"q_{stem}" + (f"_{k + 1}" if many else "") for k in range(body.nq)]
        q_stems[body.q_slice] = q
        rates = body.joint.position_rate(list(range(2, 2 + body.nq)), symbols := _marks(body.nv))
        if body.nq == body.nv and all(rate is mark for rate, mark in zip(rates, symbols)):
            v_stems[body.v_slice] = [(name, True) for name in q]
        else:
            v_stems[body.v_slice] = [(f"v_{stem}_{k + 1}", False) for k in range(body.nv)]
    return q_stems, v_stems


def _marks(count: int) -> list[Any]:
    sp = sympy()
    return [sp.Dummy() for _ in range(count)]


def _rate_names(stem: str, is_rate: bool) -> tuple[str, str, str]:
    """Return the names of a velocity, its derivative, and its force."""
    head, _, tail = stem.partition("_")
    below = f"_{tail}" if tail else ""
    force = f"tau{below}" if head in ("q", "v") else f"tau_{head}{below}"
    if is_rate:
        return f"{head}dot{below}", f"{head}ddot{below}", force
    return stem, f"{head}dot{below}", force


def _typeset(name: str) -> str:
    """Return a name in LaTeX: the part after the first underscore is a subscript, words are upright."""
    sp = sympy()
    head, _, tail = name.partition("_")
    letter = sp.latex(sp.Symbol(head))
    if not tail:
        return str(letter)
    if tail.partition("_")[0] in GREEK:
        return f"{letter}_{{{_typeset(tail)}}}"
    words = tail.replace("_", r"\,")
    return f"{letter}_{{{words}}}" if len(tail) < 3 else rf"{letter}_{{\mathrm{{{words}}}}}"


def chosen_values(model: Model, parameters: str | Iterable[str]) -> list[str]:
    """Return the names of the values that become symbols; "all":
    masses, lengths, inertias, armature, gravity."""
    if isinstance(parameters, str) and parameters != "all":
        parameters = (parameters,)
    if parameters != "all":
        for name in parameters:
            model.value(name)
        return list(dict.fromkeys(parameters))
    names = ["gravity"]
    for body in model.bodies:
        names += [f"{body.name}.{part}" for part in ("mass", "com", "inertia")]
        names += [f"{body.joint_name}.{part}" for part in ("placement", *(("armature",) if body.nv else ()))]
    return names


class ParameterNames:
    """The symbols of a model's numbers: `replacements` for `replace_values`, `values` of the symbols.

    Zeros stay zeros, and directions and rotations stay numbers: they are the structure of the mechanism.
    """

    def __init__(self, model: Model, names: Iterable[str], *, loops: bool = False) -> None:
        self._model = model
        self._single = len(model.bodies) == 1
        self._lengths: dict[int, list[tuple[float, Any]]] = {}
        self._taken: set[str] = set()
        self.values: dict[Any, float] = {}
        self.replacements: dict[str, Any] = {}
        chosen = list(names)
        # Masses first, since formulas are grouped in the order of the symbols; placements before centres of
        # mass, which take their names where they coincide.
        for part in ("mass", "inertia", "armature", "gravity", "placement", "com"):
            if part == "com":
                self.loops = [self._loop(loop) for loop in model.loops] if loops else []
            for name in chosen:
                if name.rpartition(".")[2] == part:
                    self.replacements[name] = self._replacement(name, part)
        for name in chosen:
            if name not in self.replacements:
                self.replacements[name] = self._plain(name)

    def _replacement(self, name: str, part: str) -> Any:
        if part == "gravity":
            return self._vector("g", list(self._model.gravity))
        body = next(
            b for b in self._model.bodies if f"{b.name}.{part}" == name or f"{b.joint_name}.{part}" == name
        )
        if part == "mass":
            return self._symbol(f"m{self._label(body.index)}", body.inertia.mass)
        if part == "inertia":
            return self._moments(body)
        if part == "armature":
            return [self._symbol(f"J{self._label(body.index)}", x) for x in body.armature]
        if part == "placement":
            return self._placement(body.placement, body.parent, body.joint)
        return Vec3(*self._position(self._com_letter(body), body.index, list(body.inertia.com)))

    def _placement(self, placement: Placement, index: int, joint: Joint) -> Transform:
        """Return a place on a body, with its position in symbols."""
        X = exact_placement(placement.as_transform(), [], joint).as_transform()
        return Transform(X.R, Vec3(*self._position("l", index, list(placement.as_transform().p))))

    def _loop(self, loop: Loop) -> Loop:
        """Return the loop with symbols; its joint has exact numbers.
        Run-time parameters do not cover loops."""
        exact = exact_loop(loop, [])
        return dataclasses.replace(
            exact,
            placement_predecessor=self._placement(loop.placement_predecessor, loop.predecessor, loop.joint),
            placement_successor=self._placement(loop.placement_successor, loop.successor, loop.joint),
        )

    def _plain(self, name: str) -> Any:
        """Return symbols for other values, with the names of these."""
        value = self._model.value(name)
        stem = re.sub(r"\W+", "_", name)
        if isinstance(value, float):
            return self._symbol(stem, value)
        flat = [float(x) for x in value.ravel()]
        return [self._symbol(f"{stem}_{k + 1}", x) for k, x in enumerate(flat)]

    def _label(self, index: int) -> str:
        return "" if self._single and index == 0 else f"_{index + 1}"

    def _symbol(self, name: str, value: Any) -> Any:
        """Return a positive symbol with the sign of its value; zero stays zero."""
        sp = sympy()
        number = float(value)
        if number == 0.0:
            return sp.Integer(0)
        while name in self._taken:
            name += "b"
        self._taken.add(name)
        made = sp.Symbol(name, positive=True)
        self.values[made] = abs(number)
        return made if number > 0.0 else -made

    def _vector(self, stem: str, numbers: list[Any]) -> list[Any]:
        """Return one symbol if only one component is not zero, else one for each."""
        several = sum(float(x) != 0.0 for x in numbers) > 1
        joint = "" if "_" in stem else "_"
        return [
            self._symbol(stem + (joint + letter if several else ""), x)
            for letter, x in zip(COMPONENTS, numbers)
        ]

    def _position(self, letter: str, index: int, numbers: list[Any]) -> list[Any]:
        """Return a point of a body (-1: of the world): the same distances have the same symbols."""
        sp = sympy()
        known = self._lengths.setdefault(index, [])
        several = sum(float(x) != 0.0 for x in numbers) > 1
        found = []
        for component, x in zip(COMPONENTS, numbers):
            size = abs(float(x))
            same = (
                next((s for n, s in known if abs(n - size) <= SAME_LENGTH_TOLERANCE * size), None)
                if size
                else None
            )
            if same is not None:
                found.append(same if float(x) > 0.0 else -same)
                continue
            label = self._label(index) if index >= 0 else "_0"
            made = self._symbol(
                f"{letter}{label}" + (("" if label else "_") + component if several else ""), x
            )
            if size:
                known.append((size, made if float(x) > 0.0 else -made))
            found.append(made if size else sp.Integer(0))
        return found

    def _com_letter(self, body: Body) -> str:
        """Return "l" if the centre of mass is the only length of the body, or its end; else "c"."""
        ends = [
            list(other.placement.as_transform().p)
            for other in self._model.bodies
            if other.parent == body.index
        ]
        places = [(frame.body, frame.placement) for frame in self._model.frames]
        for loop in self._model.loops:
            places += [
                (loop.predecessor, loop.placement_predecessor),
                (loop.successor, loop.placement_successor),
            ]
        ends += [list(placement.as_transform().p) for index, placement in places if index == body.index]
        lengths = {abs(float(x)) for end in ends for x in end} - {0.0}
        own = {abs(float(x)) for x in body.inertia.com} - {0.0}
        close = all(any(abs(x - y) <= SAME_LENGTH_TOLERANCE * x for y in lengths) for x in own)
        return "l" if not lengths or close else "c"

    def _moments(self, body: Body) -> SymMat3:
        """Return symbols of moments: equal moments share a symbol, a single one is plain I."""
        sp = sympy()
        numbers = [float(x) for x in body.inertia.inertia_at_com.leaves()]
        size = max(abs(x) for x in numbers)
        kept = [x if abs(x) > SAME_LENGTH_TOLERANCE * size else 0.0 for x in numbers]
        different: list[float] = []
        for x in kept:
            if x and not any(abs(x - y) <= SAME_LENGTH_TOLERANCE * abs(x) for y in different):
                different.append(x)
        label = self._label(body.index)
        made: dict[float, Any] = {}
        entries = []
        for name, x in zip(MOMENTS, kept):
            if not x:
                entries.append(sp.Integer(0))
                continue
            key = next(y for y in different if abs(x - y) <= SAME_LENGTH_TOLERANCE * abs(x))
            if key not in made:
                suffix = "" if len(different) == 1 else ("" if label else "_") + name
                made[key] = self._symbol(f"I{label}{suffix}", key)
            entries.append(made[key])
        return SymMat3(*entries)
