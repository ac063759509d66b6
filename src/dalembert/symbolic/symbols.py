"""Exact numbers and symbols with readable names for the floats of a model.

Exact numbers let formulas hold 1/12 and pi/2 and cancel exactly. Coordinates are named for their joints,
q_shoulder, qdot_shoulder, qddot_shoulder and tau_shoulder; a model of one coordinate has plain q. Numbers are
named as textbooks do, with the number of the body counted from one: masses m_1, lengths l_1 (from joint to
joint, or to a frame) and c_1 (to a centre of mass elsewhere), moments of inertia I_1, and g.
"""

from __future__ import annotations

import dataclasses
import math
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from dalembert.errors import ArgumentError
from dalembert.model.body import Body, Dependence, Loop
from dalembert.model.joints import Joint
from dalembert.model.model import Model
from dalembert.model.values import rebuilt
from dalembert.spatial import AxialScrew, Mat3, Placement, RigidInertia, ScrewChain, SymMat3, Transform, Vec3
from dalembert.spatial.rotations import principal_direction
from dalembert.symbolic.simplification import MAX_SHOWN_DENOMINATOR, sp

MAX_DENOMINATOR = 1000
"""Largest denominator of a fraction that replaces a float."""

RELATIVE_TOLERANCE = 1e-14
"""Relative distance of a float from the number that replaces it: the rounding of a few operations."""

MAX_DECIMAL_DIGITS = 12
"""Digits up to which the decimal form of a float counts as exact."""

ROUNDED_DIGITS = 10
"""The same for floats that are such a number but for rounding."""


def exact_number(x: Any) -> Any:
    """Return the exact number for a float: a fraction, a short decimal, a multiple of pi, a square root.

    Any other float becomes its printed decimal number. Other values are returned unchanged.
    """
    if not isinstance(x, (int, float)):
        return x
    known = _recognize(float(x))
    return sp.Rational(repr(float(x))) if known is None else known


def is_recognized(x: Any) -> bool:
    """Return whether `exact_number` is exact for this number, and not just the nearest decimal."""
    return not isinstance(x, (int, float)) or _recognize(float(x)) is not None


def _recognize(x: float) -> Any | None:
    if x == 0.0 or not math.isfinite(x):
        return sp.Integer(0) if x == 0.0 else sp.oo * int(math.copysign(1, x))
    fraction = _fraction(x, MAX_DENOMINATOR)
    if fraction is not None:
        return fraction
    if len(repr(abs(x)).replace(".", "").replace("e", "").strip("0")) <= MAX_DECIMAL_DIGITS:
        return sp.Rational(repr(x))
    short = f"{x:.{ROUNDED_DIGITS}g}"
    if abs(float(short) - x) <= RELATIVE_TOLERANCE * abs(x):
        return sp.Rational(short)
    of_pi = _fraction(x / math.pi, 360)
    if of_pi is not None:
        return of_pi * sp.pi
    square = _fraction(x * x, 100)
    return None if square is None else int(math.copysign(1, x)) * sp.sqrt(square)


def _fraction(x: float, denominator: int) -> Any | None:
    near = Fraction(x).limit_denominator(denominator)
    if abs(float(near) - x) <= RELATIVE_TOLERANCE * abs(x):
        return sp.Rational(near.numerator, near.denominator)
    return None


def without_floats(expression: Any) -> Any:
    """Return an expression with its literals 0.5, 1.0, 2.0 … as exact numbers."""
    whole = sp.sympify(expression)
    return whole.xreplace({x: exact_number(float(x)) for x in whole.atoms(sp.Float)})


def exact_model(model: Model) -> tuple[Model, bool]:
    """Return the model with exact numbers throughout, and whether its directions are exact too.

    A placement turned by phi about the axis of its joint holds cos(phi) and sin(phi), which merge with the
    joint's angle; other rotations and axes may be exact only to rounding. Axes along coordinate axes stay
    floats, since the joints look for them.
    """
    directions: list[Any] = []
    bodies = [_exact_body(body, directions) for body in model.bodies]
    loops = [exact_loop(loop, directions) for loop in model.loops]
    gravity = Vec3(*(exact_number(x) for x in model.gravity))
    changed = rebuilt(model, bodies=bodies, gravity=gravity, loops=loops)
    return changed, all(is_recognized(x) for x in directions)


def _exact_body(body: Body, directions: list[Any]) -> Body:
    dependence = body.dependence
    if dependence is not None:
        terms = tuple((place, rate, exact_number(ratio)) for place, rate, ratio in dependence.terms)
        dependence = Dependence(terms, exact_number(dependence.offset))
    return dataclasses.replace(
        body,
        placement=exact_placement(body.placement, directions, body.joint),
        inertia=_exact_inertia(body.inertia),
        joint=_exact_joint(body.joint, directions),
        armature=tuple(exact_number(x) for x in body.armature),
        dependence=dependence,
    )


def exact_loop(loop: Loop, directions: list[Any]) -> Loop:
    """Return a loop joint with exact numbers."""
    return dataclasses.replace(
        loop,
        joint=_exact_joint(loop.joint, directions),
        placement_predecessor=exact_placement(loop.placement_predecessor, directions, loop.joint),
        placement_successor=exact_placement(loop.placement_successor, directions, loop.joint),
    )


def _exact_joint(joint: Any, directions: list[Any]) -> Any:
    """Return the joint with exact parameters; literal zeros and ones stay, which keeps coordinate axes."""
    parameters = joint.parameters()
    if all(x in (0.0, 1.0, -1.0) for x in parameters):
        return joint
    if "axis" in joint.parameter_names:
        directions.extend(joint.axis)
    return joint.with_parameters([x if x in (0.0, 1.0, -1.0) else exact_number(x) for x in parameters])


def exact_placement(placement: Placement, directions: list[Any], joint: Any) -> Placement:
    """Return a placement of exact numbers; the entries of a general rotation are added to `directions`."""
    if isinstance(placement, AxialScrew):
        c, s = _tidy((placement.c, placement.s), 1.0)
        if _axis_of(joint) == placement.axis:
            c, s = _exact_turn(c, s)
        else:
            directions.extend((c, s))
            c, s = exact_number(c), exact_number(s)
        return AxialScrew(placement.axis, c, s, exact_number(placement.d))
    if isinstance(placement, ScrewChain):
        return ScrewChain(tuple(exact_placement(factor, directions, joint) for factor in placement.factors))
    X = placement.as_transform()
    return Transform(_exact_rotation(X.R, directions, _axis_of(joint)), Vec3(*(exact_number(x) for x in X.p)))


def _axis_of(joint: Any) -> int | None:
    """Return the coordinate axis about which a joint turns, with which a turn of its placement merges."""
    axis = getattr(joint, "axis", None)
    principal = principal_direction(axis) if isinstance(axis, Vec3) else None
    return None if principal is None else principal[0]


def _exact_turn(c: Any, s: Any) -> tuple[Any, Any]:
    """Return (cos, sin) of an angle, which stay on the unit circle."""
    if not (isinstance(c, (int, float)) and isinstance(s, (int, float))):
        return c, s
    if is_recognized(c) and is_recognized(s):
        return exact_number(c), exact_number(s)
    angle = exact_number(math.atan2(s, c))
    return sp.cos(angle), sp.sin(angle)


def _exact_rotation(R: Mat3, directions: list[Any], k: int | None) -> Mat3:
    """Return exact entries; for a turn about axis k, if a joint turns about it too."""
    rows = [_tidy(row, 1.0) for row in R.to_list()]
    if k is not None and all(isinstance(x, (int, float)) for row in rows for x in row):
        i, j = (k + 1) % 3, (k + 2) % 3
        if abs(rows[k][k] - 1.0) <= RELATIVE_TOLERANCE and not any(
            (rows[k][i], rows[k][j], rows[i][k], rows[j][k])
        ):
            c, s = _exact_turn(rows[i][i], rows[j][i])
            turned = [[sp.Integer(0)] * 3 for _ in range(3)]
            turned[k][k], turned[i][i], turned[j][j], turned[i][j], turned[j][i] = sp.Integer(1), c, c, -s, s
            return Mat3(*(x for row in turned for x in row))
    directions.extend(x for row in rows for x in row)
    return Mat3(*(exact_number(x) for row in rows for x in row))


def _tidy(numbers: Any, size: float) -> list[Any]:
    """Return numbers with rounding errors of zeros removed."""
    return [0.0 if isinstance(x, float) and abs(x) <= RELATIVE_TOLERANCE * size else x for x in numbers]


def _exact_inertia(inertia: RigidInertia) -> RigidInertia:
    """Return mass, centre of mass and the moments about it, without rounding errors."""
    mass = inertia.mass
    if not isinstance(mass, (int, float)) or mass == 0.0:
        zero = not any(isinstance(x, (int, float)) and x for x in inertia.leaves())
        return RigidInertia.zero() if zero and mass == 0.0 else inertia
    about_com = inertia.inertia_at_com
    size = float(mass) * sum(float(x) ** 2 for x in inertia.com) + max(abs(x) for x in about_com.leaves())
    moments = SymMat3(*(exact_number(x) for x in _tidy(about_com.leaves(), size)))
    return RigidInertia(exact_number(mass), [exact_number(x) for x in inertia.com], moments)


def with_decimals(expression: Any) -> Any:
    """Return an expression whose long fractions are decimal numbers again."""
    long = [x for x in expression.atoms(sp.Rational) if x.q > MAX_SHOWN_DENOMINATOR]
    return expression.xreplace({x: sp.Float(x, 16) for x in long}) if long else expression


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
    if names is not None and (len(names) != model.nq or len(set(names)) != len(names)):
        raise ArgumentError(
            f"coordinates: {model.nq} different names are needed, one for each of q; got {list(names)}"
        )
    q_names, rates = list(names or [""] * model.nq), [("", "", "")] * model.nv
    taken: set[str] = set()
    for body in model.bodies:
        if body.dependence is not None or not body.nv:
            continue
        stem = re.sub(r"\W+", "_", body.joint_name).strip("_") or f"joint{body.index + 1}"
        while stem in taken:
            stem += f"_{body.index + 1}"
        taken.add(stem)
        if names is None:
            numbers = [f"_{k + 1}" if body.nq > 1 else "" for k in range(body.nq)]
            q_names[body.q_slice] = ["q" if model.nq == 1 else f"q_{stem}{number}" for number in numbers]
        marks = [sp.Dummy() for _ in range(body.nv)]
        slopes = body.joint.position_rate(list(range(2, 2 + body.nq)), marks)
        is_rate = body.nq == body.nv and (names is not None or all(map(operator.is_, slopes, marks)))
        own = q_names[body.q_slice] if is_rate else [f"v_{stem}_{k + 1}" for k in range(body.nv)]
        rates[body.v_slice] = [_rate_names(name, is_rate) for name in own]
    latex: dict[Any, str] = {}

    def symbols(names: Iterable[str]) -> tuple[Any, ...]:
        made = {sp.Symbol(name, real=True): _typeset(name) for name in names}
        latex.update(made)
        return tuple(made)

    v, a, tau = (symbols(rate[k] for rate in rates) for k in range(3))
    return Coordinates(symbols(q_names), v, a, tau, latex)


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
    head, _, tail = name.partition("_")
    letter = sp.latex(sp.Symbol(head))
    if not tail:
        return str(letter)
    if tail.partition("_")[0] in GREEK:
        return f"{letter}_{{{_typeset(tail)}}}"
    words = tail.replace("_", r"\,")
    return f"{letter}_{{{words}}}" if len(tail) < 3 else rf"{letter}_{{\mathrm{{{words}}}}}"


def chosen_values(model: Model, parameters: str | Iterable[str]) -> list[str]:
    """Return the names of values that become symbols; "all": masses, lengths, inertias, armature, gravity."""
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
        """Return the loop with symbols, its joint with exact numbers; run-time parameters cover no loops."""
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
        suffixes = [f"_{letter}" if several else "" for letter in COMPONENTS]
        return [self._symbol(stem + suffix, x) for suffix, x in zip(suffixes, numbers)]

    def _position(self, letter: str, index: int, numbers: list[Any]) -> list[Any]:
        """Return a point of a body (-1: of the world): the same distances have the same symbols."""
        known = self._lengths.setdefault(index, [])
        several = sum(float(x) != 0.0 for x in numbers) > 1
        label = self._label(index) if index >= 0 else "_0"
        found = []
        for component, x in zip(COMPONENTS, numbers):
            size = abs(float(x))
            same = next((s for n, s in known if abs(n - size) <= SAME_LENGTH_TOLERANCE * size), None)
            if same is None:
                suffix = ("" if label else "_") + component if several else ""
                same = self._symbol(f"{letter}{label}{suffix}", size)
                known.append((size, same))
            found.append(same if float(x) >= 0.0 else -same)
        return found

    def _com_letter(self, body: Body) -> str:
        """Return "l" if the centre of mass is the only length of the body, or its end; else "c"."""
        model = self._model
        places: list[tuple[int, Placement]] = [(other.parent, other.placement) for other in model.bodies]
        places += [(frame.body, frame.placement) for frame in model.frames]
        places += [(loop.predecessor, loop.placement_predecessor) for loop in model.loops]
        places += [(loop.successor, loop.placement_successor) for loop in model.loops]
        ends = [placement.as_transform().p for index, placement in places if index == body.index]
        lengths = {abs(float(x)) for end in ends for x in end} - {0.0}
        own = {abs(float(x)) for x in body.inertia.com} - {0.0}
        close = all(any(abs(x - y) <= SAME_LENGTH_TOLERANCE * x for y in lengths) for x in own)
        return "l" if not lengths or close else "c"

    def _moments(self, body: Body) -> SymMat3:
        """Return symbols of moments: equal moments share a symbol, a single one is plain I."""
        numbers = [float(x) for x in body.inertia.inertia_at_com.leaves()]
        size = max(abs(x) for x in numbers)
        kept = [x if abs(x) > SAME_LENGTH_TOLERANCE * size else 0.0 for x in numbers]
        first = [
            next(k for k, y in enumerate(kept) if abs(x - y) <= SAME_LENGTH_TOLERANCE * abs(x)) for x in kept
        ]
        label = self._label(body.index)
        joint = "" if label else "_"
        single = len({k for k in first if kept[k]}) == 1
        made = {
            k: self._symbol(f"I{label}" + ("" if single else joint + MOMENTS[k]), kept[k])
            for k in dict.fromkeys(first)
        }
        return SymMat3(*(made[k] for k in first))
