"""Iteration: loops of a fixed and of a data-dependent number of steps, loops inside them, tables."""

from __future__ import annotations

from typing import Any

from tests.conformance.enrolling import Enrolled

from dalembert import algorithms as al
from dalembert import scalar
from dalembert.call.arguments import ArrayArgument
from dalembert.compiler.lowering import Recipe
from dalembert.model.model import Model

HEIGHTS = (0.3, -0.2, 0.5, 0.1, -0.4)


def settled(tree: Any, q: Any, v: Any, tau: Any) -> list[Any]:
    """Newton's method for x^2 = a, its step halved until it leads down; a is different for each joint."""
    energy = al.kinetic_energy(tree, q, v)

    def solve(x: Any) -> Any:
        a = 0.01 + x * x * (1.0 + energy)

        def newton(x: Any) -> Any:
            d = (a - x * x) / (2.0 * x)
            before = scalar.absolute(x * x - a)

            def leads_down(t: Any) -> Any:
                y = x + t * d
                return scalar.absolute(y * y - a) <= before

            return x + d * scalar.loop(4, lambda t: 0.5 * t, 1.0, until=leads_down)

        return scalar.loop(40, newton, 0.3, until=lambda x: scalar.absolute(x * x - a) < 1e-6 * a)

    return [solve(x) for x in v] + [scalar.lookup(HEIGHTS, 2.0 + x) for x in tau]


def relaxed(tree: Any, q: Any, v: Any) -> list[Any]:
    """Velocities after three steps towards the momentum's, with a height that the position chooses."""
    momentum = [sum((m * x for m, x in zip(row, v, strict=True)), 0.0) for row in al.mass_matrix(tree, q)]

    def step(carry: Any) -> Any:
        x, work, zero = carry
        new = [a + 0.1 * scalar.sin(p - a) for a, p in zip(x, momentum, strict=True)]
        return new, work + new[0] * x[-1] + zero, zero

    x, work, _ = scalar.loop(3, step, (list(v), 0.0, 0.0))
    return [*x, work + scalar.lookup(HEIGHTS, 2.0 * work)]


def _entry(name: str, function: Any, arguments: str, models: tuple[str, ...] = ()) -> Enrolled:
    def recipe(model: Model) -> Recipe:
        shapes = {"q": (model.nq,)}
        names = arguments.split()
        return Recipe(
            name, function, model, tuple(ArrayArgument(x, shapes.get(x, (model.nv,))) for x in names)
        )

    return Enrolled(name, frozenset({"loop", "lookup"}), recipe, broad=True, models=models)


ENROLLED = (
    _entry("scalar.loop-until", settled, "q v tau", ("arm", "branched")),
    _entry("scalar.loop-fixed", relaxed, "q v"),
)

STRUCTURE: dict[str, str] = {}
