"""Contact pairs: the shapes of a model that may touch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias, final

from dalembert.contact.narrow_phase import can_touch, closest_points, point_count
from dalembert.contact.narrow_phase.candidates import Candidate
from dalembert.errors import ModelError, UnknownNameError, items_of, require_flag
from dalembert.model.body import ShapePair
from dalembert.model.model import Model, require_model
from dalembert.model.shapes import Mesh, Shape
from dalembert.model.shapes.convex_hull import hull_of
from dalembert.model.shapes.shape import USUAL_FRICTION
from dalembert.model.topology import WORLD, WORLD_NAME
from dalembert.model.tree import PerBody
from dalembert.scalar import Scalar, is_zero, maximum
from dalembert.spatial import Transform

Names: TypeAlias = Iterable[str | tuple[str, str]]
"""Names of bodies, shapes or links merged into bodies, or pairs of such names; "world" is a body here."""


class Placed(NamedTuple):
    """A shape, the body that carries it (its index; -1: the world) and its number among the body's shapes."""

    body: int
    shape: Shape
    number: int = 0


@final
@dataclass(frozen=True, slots=True)
class ContactPair:
    """Two shapes that may touch, and the coefficients of their contact.

    `friction`: the coefficient of sliding friction, and `across` that along the second direction of the
    surface, if it differs; `restitution`: the ratio of normal velocities; `torsion` and `rolling` [m]: the
    bounds of friction against turning about the normal and across it, as ratios of torque to normal force.
    """

    first: Placed
    second: Placed
    friction: Scalar
    restitution: Scalar
    torsion: Scalar = 0.0
    rolling: Scalar = 0.0
    across: Scalar | None = None


def pairs_of(
    model: Model, *, only: Names | None = None, exclude: Names = (), self_collision: bool = True
) -> tuple[ContactPair, ...]:
    """Return the pairs of shapes of a model that may touch: the world's first, then in the order of bodies.

    Two shapes may touch if both have `collision`, their masks let them, and their bodies move relative to
    each other: bodies that fixed joints hold together count as one. A body never touches its parent, unless
    that is the world, nor a body that `model.contact_exclusions` pairs with it. `model.contact_pairs` may
    touch in any case, with their own coefficients; elsewhere the larger ones of the two shapes hold, and
    friction that only one of them has. A mesh touches with its convex hull, read from its file.

    `only` and `exclude` choose among these: each entry is the name of a body, of a shape or of a link that
    was merged into a body, or two such names; "world" is a body here. `self_collision=False` keeps only
    contact with the world.

    >>> from dalembert.contact.pairs import pairs_of
    >>> model = da.models.humanoid().with_ground(friction=0.8)
    >>> pairs = pairs_of(model, only=["left_foot"], self_collision=False)
    >>> [(pair.first.shape.name, model.bodies[pair.second.body].name) for pair in pairs]
    [('ground', 'left_foot')]
    """
    require_model(model)
    require_flag("self_collision", self_collision)
    shapes = _collidable(model)
    chosen = None if only is None else _check_names(model, only)
    dropped = _check_names(model, exclude)
    explicit = {frozenset((pair.first, pair.second)): pair for pair in model.contact_pairs}
    rules = _Rules(model)
    hulls: dict[int, Shape] = {}

    def convex(placed: Placed) -> Placed:
        """Return a mesh as its convex hull, which is read once."""
        if not isinstance(placed.shape, Mesh):
            return placed
        if id(placed.shape) not in hulls:
            hulls[id(placed.shape)] = hull_of(placed.shape)
        return placed._replace(shape=hulls[id(placed.shape)])

    # A scene of hundreds of bodies has as many pairs as the square of that.
    surfaces = [_Surface.of(item.shape) for item in shapes]
    usual = cache(_coefficients)
    found = []
    for number, first in enumerate(shapes):
        for place in range(number + 1, len(shapes)):
            second = shapes[place]
            given = explicit.get(frozenset((first.shape.name, second.shape.name))) if explicit else None
            if rules.one_body(first, second) or (given is None and not rules.may_touch(first, second)):
                continue
            if not self_collision and not rules.with_world(first, second):
                continue
            if chosen is not None or dropped:
                names = rules.names(first), rules.names(second)
                if (chosen is not None and not _matches(chosen, *names)) or _matches(dropped, *names):
                    continue
            a, b = convex(first), convex(second)
            if can_touch(a.shape, b.shape):
                found.append(ContactPair(a, b, *usual(surfaces[number], surfaces[place], given)))
    return tuple(found)


def remaining(
    model: Model, pairs: Iterable[ContactPair], *, exclude: Names = (), self_collision: bool = True
) -> tuple[ContactPair, ...]:
    """Return the pairs of a model without the excluded ones, as in `pairs_of`."""
    dropped, rules = _check_names(model, exclude), _Rules(model)
    return tuple(
        pair
        for pair in pairs
        if (self_collision or rules.with_world(pair.first, pair.second))
        and not (dropped and _matches(dropped, rules.names(pair.first), rules.names(pair.second)))
    )


def _collidable(model: Model) -> list[Placed]:
    """Return the shapes that collide, those of the world first."""
    placed = [Placed(WORLD, shape, k) for k, shape in enumerate(model.world_shapes)]
    placed += [Placed(body.index, shape, k) for body in model.bodies for k, shape in enumerate(body.shapes)]
    return [item for item in placed if item.shape.collision]


class _Surface(NamedTuple):
    """The friction of a shape, the number of directions in which it acts, and the restitution."""

    friction: tuple[Scalar, ...] | None
    condim: int
    restitution: Scalar

    @staticmethod
    def of(shape: Shape) -> _Surface:
        return _Surface(shape.friction, shape.condim, shape.restitution)


def _coefficients(a: _Surface, b: _Surface, given: ShapePair | None) -> tuple[Any, ...]:
    """Return the coefficients of a pair in the order of `COEFFICIENTS`: those given for it, else those of its
    shapes."""
    own = [surface.friction for surface in (a, b) if surface.friction is not None]
    friction: Sequence[Scalar] = USUAL_FRICTION if not own else own[0]
    if len(own) == 2:
        friction = [maximum(x, y) for x, y in zip(*own, strict=True)]
    condim, restitution = max(a.condim, b.condim), maximum(a.restitution, b.restitution)
    if given is not None:
        friction = friction if given.friction is None else given.friction
        condim = condim if given.condim is None else given.condim
        restitution = restitution if given.restitution is None else given.restitution
    slide, across, torsion, roll = pair_friction(friction, condim)
    both = None if len(friction) == 3 or across == slide else across
    return slide, restitution, torsion, roll, both


COEFFICIENTS: Final = ("friction", "restitution", "torsion", "rolling", "across")
"""The fields of a pair that follow from its shapes, in the order of `ContactPair`."""


def pairs_with_values(model: Model, given: Model, pairs: tuple[ContactPair, ...]) -> tuple[ContactPair, ...]:
    """Return the pairs of a model with the coefficients that the shapes of `given` have, the same model with
    other values. Coefficients that a pair has of its own stay."""
    if given is model:
        return pairs
    found = []
    for pair in pairs:
        old, new = ([_shape_of(tree, side) for side in (pair.first, pair.second)] for tree in (model, given))
        if all(a is b for a, b in zip(old, new, strict=True)):
            found.append(pair)
            continue
        before, after = (
            dict(zip(COEFFICIENTS, _coefficients(_Surface.of(a), _Surface.of(b), None), strict=True))
            for a, b in (old, new)
        )
        follow = [name for name in COEFFICIENTS if getattr(pair, name) == before[name]]
        for part in ("torsion", "rolling"):
            if is_zero(getattr(pair, part)) and not is_zero(after[part]) and part in follow:
                raise ModelError(
                    f"the pair {pair_names(model, pair)} has no {part} friction, so that there is none to "
                    "replace at run time; build the model with some"
                )
        found.append(replace(pair, **{name: after[name] for name in follow}))
    return tuple(found)


def _shape_of(model: Model, placed: Placed) -> Shape:
    """Return the shape as the model has it."""
    shapes = model.world_shapes if placed.body == WORLD else model.bodies[placed.body].shapes
    return shapes[placed.number]


def pair_friction(friction: Sequence[Scalar], condim: int) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Return sliding friction along both directions of a surface, torsional and rolling friction; zero for
    those that `condim` leaves out."""
    *sliding, torsion, roll = friction
    slide, across = (sliding[0], sliding[-1]) if condim > 1 else (0.0, 0.0)
    return slide, across, torsion if condim > 3 else 0.0, roll if condim > 4 else 0.0


@final
class _Rules:
    """The rules of a model for contact of two bodies; bodies joined by fixed joints are one, named by its
    root."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._names = [*model.bodies.names, WORLD_NAME]  # the last one is that of -1
        self._roots = [self._carriers(body)[-1] for body in range(len(model.bodies))] + [WORLD]
        self._excluded = {frozenset(pair) for pair in model.contact_exclusions}
        parents = (WORLD if root == WORLD else model.bodies[root].parent for root in self._roots)
        self._hangs = [parent != WORLD for parent in parents]

    def names(self, placed: Placed) -> frozenset[str]:
        """Return the names that mean this shape."""
        return frozenset({self._names[placed.body], placed.shape.link, placed.shape.name} - {""})

    def one_body(self, first: Placed, second: Placed) -> bool:
        return self._roots[first.body] == self._roots[second.body]

    def with_world(self, first: Placed, second: Placed) -> bool:
        return self._roots[first.body] == WORLD or self._roots[second.body] == WORLD

    def may_touch(self, first: Placed, second: Placed) -> bool:
        """Return whether masks, exclusions and parents allow contact."""
        a, b = first.shape, second.shape
        if not (a.group & b.collides_with or b.group & a.collides_with):
            return False
        if self._excluded:
            links = (item.shape.link or self._names[item.body] for item in (first, second))
            if frozenset(links) in self._excluded:
                return False
        if not (self._hangs[first.body] or self._hangs[second.body]):
            return True
        return not (self._hangs_on(first.body, second.body) or self._hangs_on(second.body, first.body))

    def _hangs_on(self, child: int, body: int) -> bool:
        """Return whether one movable joint connects the bodies, directly or through fixed joints."""
        root = self._roots[child]
        if WORLD in (root, body) or self._model.bodies[root].parent == WORLD:
            return False
        parent = self._model.bodies[root].parent
        if self._roots[parent] != WORLD:
            return self._roots[parent] == self._roots[body]
        # Of all bodies fixed to the world, only those that carry the child are its parents.
        return body in self._carriers(parent)

    def _carriers(self, body: int) -> list[int]:
        """Return the chain of bodies from this one along fixed joints towards the world."""
        found = [body]
        while found[-1] != WORLD and self._model.bodies[found[-1]].joint.kind == "fixed":
            found.append(self._model.bodies[found[-1]].parent)
        return found


def _check_names(model: Model, given: Names) -> list[tuple[str, ...]]:
    """Return the names, each a tuple of one or two, after checking that all of them exist."""
    shapes = [*model.world_shapes, *(shape for body in model.bodies for shape in body.shapes)]
    own = (name for shape in shapes for name in (shape.link, shape.name) if name)
    known = dict.fromkeys([WORLD_NAME, *model.bodies.names, *own])
    checked = []
    for item in items_of(given):
        names = tuple(items_of(item))
        for name in names:
            if not isinstance(name, str) or name not in known:
                raise UnknownNameError.of("body or shape", name, known)
        if len(names) not in (1, 2):
            raise UnknownNameError(f"{item!r} is no name and no pair of names of bodies or shapes")
        checked.append(names)
    return checked


def _matches(chosen: list[tuple[str, ...]], first: frozenset[str], second: frozenset[str]) -> bool:
    for names in chosen:
        a, b = names[0], names[-1]
        if len(names) == 1 and (a in first or a in second):
            return True
        if len(names) == 2 and ((a in first and b in second) or (a in second and b in first)):
            return True
    return False


# Contact points: where the pairs of a model are nearest, for given poses of its bodies.


def contact_points(poses: PerBody[Transform], pairs: Sequence[ContactPair]) -> list[Candidate]:
    """Return the contact points of all pairs, in their order; `poses` of the bodies in the world.

    How many there are depends on the shapes alone: a point that does not exist has the gap
    `ABSENT_POINT_GAP`.
    """
    pose = poses_of(poses)
    return [
        Candidate(
            pair.first.body,
            pair.second.body,
            pair.friction,
            pair.restitution,
            point,
            pair.across,
            pair.torsion,
            pair.rolling,
        )
        for pair in pairs
        for point in closest_points(pair.first.shape, pose(pair.first), pair.second.shape, pose(pair.second))
    ]


def poses_of(poses: PerBody[Transform]) -> Callable[[Placed], Transform]:
    """Return the frames of shapes in the world from the poses of bodies, each computed once."""
    placed: dict[tuple[int, int], Transform] = {}

    def pose(item: Placed) -> Transform:
        key = item.body, id(item.shape)
        if key not in placed:
            on_body = Transform.identity() if item.body == WORLD else poses[item.body]
            placed[key] = on_body @ item.shape.placement
        return placed[key]

    return pose


def point_names(model: Model, pairs: Sequence[ContactPair]) -> list[tuple[str, str]]:
    """Return the names of both objects at each point of `contact_points`."""
    return [
        pair_names(model, pair)
        for pair in pairs
        for _ in range(point_count(pair.first.shape, pair.second.shape))
    ]


def pair_names(model: Model, pair: ContactPair) -> tuple[str, str]:
    """Return the names of both shapes or, where they have none, of their links or bodies."""
    return _name(model, pair.first), _name(model, pair.second)


def _name(model: Model, placed: Placed) -> str:
    if placed.shape.name or placed.shape.link:
        return placed.shape.name or placed.shape.link
    return WORLD_NAME if placed.body == WORLD else model.bodies[placed.body].name
