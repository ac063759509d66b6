"""Every derivative of every kind of joint: the traced graph, forward and in reverse, and analytic formulas,
against complex steps at 1e-10 and central differences along `integrate` at 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.algorithms.derivatives.oracles import (
    KINDS,
    Array,
    carried,
    clock,
    close,
    complex_step,
    complex_steps,
    differences,
    differentiated,
    directions,
    every_kind,
    interpreted,
    numbers,
    split,
    state,
    traced,
)
from tests.algorithms.trees import inertia, place
from tests.model.joints.catalogue import CATALOGUE

import dalembert as da
from dalembert import algorithms as al
from dalembert.algorithms import constrained_derivatives, derivatives
from dalembert.algorithms.hybrid import hybrid_dynamics
from dalembert.algorithms.regressor import inverse_dynamics_regressor, kinetic_energy_regressor
from dalembert.call.arguments import ArrayArgument
from dalembert.compiler.lowering import Recipe
from dalembert.model.values import replace_values
from dalembert.spatial.value import leaves
from dalembert.textbook.guenter_rose_partials import inverse_dynamics_partials


def poses(model: da.Model, q: Any, time: Any) -> Any:
    return [leaves(pose.as_transform()) for pose in al.forward_kinematics(model, q, **clock(model, time))]


def motions(model: da.Model, q: Any, v: Any, a: Any, time: Any) -> Any:
    now = clock(model, time)
    velocities = al.body_velocities(model, q, v, **now)
    accelerations = al.body_accelerations(model, q, v, a, **now)
    return [leaves(list(velocities)), leaves(list(accelerations))]


def with_clock(function: Callable[..., Any], *more: Any, **options: Any) -> Callable[..., Any]:
    def call(model: da.Model, *arrays: Any) -> Any:
        return function(model, *arrays[:-1], *more, **options, **clock(model, arrays[-1]))

    return call


def hybrid(model: da.Model, q: Any, v: Any, tau: Any, a: Any, time: Any) -> Any:
    return hybrid_dynamics(model, q, v, tau, a, prescribed=["base"], **clock(model, time))


QUANTITIES: dict[str, tuple[str, Callable[..., Any]]] = {
    "inverse dynamics": ("q v a", with_clock(al.inverse_dynamics)),
    "forward dynamics": ("q v tau", with_clock(al.forward_dynamics)),
    "poses": ("q", poses),
    "motions": ("q v a", motions),
    "jacobian": ("q", with_clock(al.jacobian, "tip")),
    "jacobian in the world": ("q", with_clock(al.jacobian, "tip", frame="world")),
    "jacobian rate": ("q v", with_clock(al.jacobian_rate, "tip")),
    "centre of mass": ("q", with_clock(al.center_of_mass)),
    "momentum": ("q v", with_clock(al.centroidal_momentum)),
    "momentum matrix": ("q", with_clock(al.centroidal_momentum_matrix)),
    "kinetic energy": ("q v", with_clock(al.kinetic_energy)),
    "potential energy": ("q", with_clock(al.potential_energy)),
    "mass matrix": ("q", with_clock(al.mass_matrix)),
    "inverse mass matrix": ("q", with_clock(al.inverse_mass_matrix)),
    "bias forces": ("q v", with_clock(al.bias_forces)),
    "hybrid dynamics": ("q v tau a", hybrid),
    "regressor": ("q v a", with_clock(inverse_dynamics_regressor)),
    "energy regressor": ("q v", with_clock(kinetic_energy_regressor)),
}


def everything(model: da.Model, q: Any, v: Any, a: Any, tau: Any, time: Any) -> Any:
    given = {"q": q, "v": v, "a": a, "tau": tau, "time": time}
    return tuple(f(model, *(given[x] for x in [*words.split(), "time"])) for words, f in QUANTITIES.values())


def spans(model: da.Model, at: dict[str, list[float]]) -> dict[str, slice]:
    """Where each quantity stands among the numbers of all."""
    ends = np.cumsum([len(leaves(x)) for x in everything(model, *at.values())])
    return {name: slice(*pair) for name, pair in zip(QUANTITIES, zip([0, *ends], ends))}


@every_kind
def test_graphs(kind: str) -> None:
    """RBDA-10.4-SYMBOLIC, RBDA-4.4-TABLE41: poses, motions, Jacobians and their rates, the Hessian of poses,
    momenta, energies, matrices, forces, motions with some joints prescribed, regressors; by all arguments and
    by time; forward and in reverse.
    """
    model = carried(kind)
    at = state(model)
    names = list(at)
    exact, slopes = (by(everything, model, at, names) for by in (complex_steps, differences))
    given = {name: np.array(x) for name, x in at.items()}
    count = len(exact)
    tangents = {f"d{name}": x for name, x in directions(model, at, names).items()}
    tangents["dq"] = np.eye(count)[:, : model.nv]
    f = traced(everything, model, names)
    forward = interpreted(differentiated(f, "jvp", *names), given | tangents, count)
    gradient = differentiated(f, "vjp", *names)
    weights = np.random.default_rng(5).normal(size=(len(QUANTITIES), exact.shape[1]))
    for row, span in zip(weights, spans(model, at).values()):
        row[: span.start], row[span.stop :] = 0.0, 0.0
    reverse = interpreted(gradient, given | split(gradient, weights), len(weights))
    for k, (name, span) in enumerate(spans(model, at).items()):
        expected = exact[:, span]
        close(slopes[:, span], expected, 1e-6, f"differences of {name}")
        close(forward[:, span], expected, 1e-10, f"changes of {name}")
        close(reverse[k], expected @ weights[k, span], 1e-10, f"gradient of {name}")


@every_kind
def test_formulas(kind: str) -> None:
    """RBDA-4.4-TABLE41, RBDA-5.3-EXT, GR-DTAU, RBDA-9.1-HYBRID: composites, the recursions of Guenter and
    Rose and the hybrid formulas, with external forces in both frames, in the model's and in aligned frames.
    """
    model = carried(kind)
    at = state(model, 2)
    q, v, a, tau = (at[x] for x in ("q", "v", "a", "tau"))
    now = clock(model, at["time"])
    forces = np.random.default_rng(4).normal(size=(3, 6)).tolist()
    for frame in ("body", "world", "center"):
        options = {"external_forces": forces, "external_frame": frame} | now

        def exact(function: Callable[..., Any], names: str, **more: Any) -> Array:
            call = lambda m, *x: function(m, *x, **(options | more))  # noqa: B023
            return complex_steps(call, model, at, names.split())

        inverse = np.split(exact(al.inverse_dynamics, "q v a").T, 3, axis=1)
        for tree in (model, al.aligned(model)):
            for analytic in (derivatives.inverse_dynamics_derivatives, inverse_dynamics_partials):
                for found, expected in zip(analytic(tree, q, v, a, **options), inverse, strict=True):
                    close(found, expected, 1e-10, f"{analytic.__name__} {frame}")
        forward = np.split(exact(al.forward_dynamics, "q v tau").T, 3, axis=1)
        analytic = derivatives.forward_dynamics_derivatives
        for found, expected in zip(analytic(al.aligned(model), q, v, tau, **options), forward, strict=True):
            close(found, expected, 1e-10, f"forward dynamics {frame}")
        prescribed = ["base", "own"] if model.body("own").nv and frame == "body" else ["tip"]
        both = exact(hybrid_dynamics, "q v tau a", prescribed=prescribed).T
        parts = [x for half in np.split(both, 2) for x in np.split(half, 4, axis=1)]
        found = constrained_derivatives.hybrid_dynamics_derivatives(
            model, q, v, tau, a, prescribed=prescribed, **options
        )
        for matrix, expected in zip(found, parts, strict=True):
            close(matrix, expected, 1e-10, f"hybrid dynamics {frame}")


@every_kind
def test_second_derivatives(kind: str) -> None:
    """RBDA-10.4-SYMBOLIC: those of tau by q, v and a contracted with weights, and full tensors, against
    complex steps of the first ones, which have no graph.
    """
    model = carried(kind)
    at = {name: x for name, x in state(model, 3).items() if name != "tau"}
    n, names = model.nv, ["q", "v", "a"]

    def first(model: da.Model, q: Any, v: Any, a: Any) -> Any:
        now = clock(model, at["time"])
        return list(derivatives.inverse_dynamics_derivatives(model, q, v, a, **now))

    function = lambda m, q, v, a: al.inverse_dynamics(m, q, v, a, **clock(m, at["time"]))
    expected = complex_steps(first, model, at, names).reshape(3 * n, 3, n, n)
    given = {name: np.array(at[name]) for name in names}
    f = traced(function, model, names)
    w = np.linspace(-1.0, 2.0, n)
    steps = {f"d{name}": np.eye(3 * n)[:, k * n : k * n + n] for k, name in enumerate(names)}
    found = interpreted(differentiated(f, "hessian_vector", *names), given | steps | {"cotangent": w}, 3 * n)
    close(found.reshape(3 * n, 3, n), np.einsum("dkij,i->dkj", expected, w), 1e-10, "contracted")
    if n <= 5:
        twice = differentiated(differentiated(f, "jacobian", "q", "v"), "jacobian", "q")
        tensor = interpreted(twice, given, 1).reshape(2, n, n, n)
        close(np.moveaxis(tensor, 3, 0), expected[:n, :2], 1e-10, "tensor")


def parameters_of(model: da.Model) -> dict[str, Array]:
    """The numbers of the joint in the middle and of its body, and gravity."""
    own = model.joint("own")
    names = ["own.mass", "own.com", "own.inertia", "own.placement", "tip.placement", "gravity"]
    names += [f"own.{part}" for part in own.body.joint.parameter_names]
    names += ["own.armature"] if own.body.nv else []
    return {name: np.array(model.value(name), dtype=float) for name in names}


@every_kind
def test_parameters(kind: str) -> None:
    """RBDA-10.4-SYMBOLIC: by masses, centres, inertias, placements (lengths), axes, pitches, radii, armature
    and gravity, of forces, accelerations and poses, forward and in reverse.
    """
    model = carried(kind)
    at = state(model, 4)
    values = parameters_of(model)
    sizes = {name: x.size for name, x in values.items()}
    count = sum(sizes.values())
    ends = dict(zip(sizes, np.cumsum(list(sizes.values()))))
    arrays = [at[x] for x in ("q", "v", "a")]

    def function(model: da.Model, q: Any, v: Any, a: Any) -> Any:
        now = clock(model, at["time"])
        forces = al.inverse_dynamics(al.aligned(model), q, v, a, **now)
        return forces, al.forward_dynamics(model, q, v, a, **now), poses(model, q, at["time"])

    def moved(h: complex) -> Any:
        new = {}
        for name, x in values.items():
            steps = h * np.eye(count)[ends[name] - x.size : ends[name]]
            entries = [x + step for x, step in zip(x.ravel(), steps)]
            if name == "own.inertia":
                entries = [entries[k] for k in (0, 1, 2, 1, 4, 5, 2, 5, 8)]
            new[name] = entries
        return function(replace_values(model, new), *arrays)

    exact = complex_step(moved, count)
    ahead, behind = (numbers(moved(h), count) for h in (1e-6, -1e-6))
    close((ahead - behind) / 2e-6, exact, 1e-6, "differences")
    arguments = tuple(ArrayArgument(name, np.shape(x)) for name, x in zip("qva", arrays))
    run_time = tuple(ArrayArgument(name, x.shape) for name, x in values.items())
    f = Recipe("quantity", function, model, arguments, run_time)
    given = {name: np.array(x) for name, x in zip("qva", arrays)}
    given |= {name: x.ravel() for name, x in values.items()}
    tangents = {f"d{name}": np.eye(count)[:, ends[name] - size : ends[name]] for name, size in sizes.items()}
    close(interpreted(differentiated(f, "jvp", *values), given | tangents, count), exact, 1e-10, "changes")
    gradient = differentiated(f, "vjp", *values)
    weights = np.random.default_rng(6).normal(size=(4, exact.shape[1]))
    found = interpreted(gradient, given | split(gradient, weights), 4)
    close(found, weights @ exact.T, 1e-10, "gradient")


def closed(kind: str, *, at_loop: bool) -> da.Model:
    """The joint in a loop with the world: carrying it, or closing it."""
    rng = np.random.default_rng(3)
    builder = da.ModelBuilder(gravity=(0.7, -0.4, -9.5))
    own = CATALOGUE[kind]
    places = (
        ("base", "world", da.joints.Universal((0.2, 0.9, -0.3), (0.8, 0.1, 0.3))),
        ("own", "base", da.Spherical() if at_loop else own),
        ("tip", "own", da.Revolute((0.6, 0.1, 0.5))),
    )
    for name, parent, joint in places:
        armature = 0.2 if joint.nv else 0.0
        builder.add_body(name, parent, joint, placement=place(rng), inertia=inertia(rng), armature=armature)
    closing = own if at_loop else da.joints.SphereInCylinder((0.0, 0.6, 0.8))
    builder.add_loop("closing", "world", "tip", closing, place(rng), place(rng))
    return builder.build()


CLOSING = [
    kind for kind in KINDS if CATALOGUE[kind].nv < 6 and not any(x in kind for x in ("composite", "user"))
]
"""Loop joints; those made of several others have no formula for their position."""


@pytest.mark.parametrize(("kind", "at_loop"), [(x, False) for x in KINDS] + [(x, True) for x in CLOSING])
def test_loops(kind: str, at_loop: bool) -> None:
    """RBDA-8.5-M2: of a under K a = k, with the joint in the tree and as the loop joint itself, implicitly
    and on the graph, by time too.
    """
    model = closed(kind, at_loop=at_loop)
    at = state(model, 5)
    now = clock(model, at["time"])
    forces = np.random.default_rng(4).normal(size=(3, 6)).tolist()
    options = {"external_forces": forces, "external_frame": "world", "stabilization": 0.3}
    names = ["q", "v", "tau", "time"]

    def function(model: da.Model, q: Any, v: Any, tau: Any, time: Any) -> Any:
        return al.forward_dynamics(model, q, v, tau, **options, **clock(model, time))

    exact = complex_steps(function, model, at, names)
    close(differences(function, model, at, names), exact, 1e-6, "differences")
    n = model.nv
    found = constrained_derivatives.constrained_forward_dynamics_derivatives(
        model, *(at[x] for x in names[:3]), **options, **now
    )
    for k, matrix in enumerate(found):
        close(matrix, exact[k * n : k * n + n].T, 1e-10, f"implicit by {names[k]}")
    given = {name: np.array(at[name]) for name in names}
    gradient = differentiated(traced(function, model, names), "vjp", *names)
    w = np.random.default_rng(6).normal(size=(2, n))
    close(interpreted(gradient, given | {"cotangent": w}, 2), w @ exact.T, 1e-10, "gradient")
