"""The robots and the calls that the benchmarks time, ours beside Pinocchio's.

A `Contest` holds one robot with a batch of random moving states, in our order of coordinates and, where
Pinocchio is installed, in its order too. `Contest.errors` compares the results before anything is timed: a
fast wrong answer does not count.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from timeit import Timer
from typing import Any, Final, Literal, cast

import numpy as np
import numpy.typing as npt

import dalembert as da

Algorithm = Literal["forward dynamics", "inverse dynamics", "mass matrix"]
ALGORITHMS: Final[tuple[Algorithm, ...]] = ("forward dynamics", "inverse dynamics", "mass matrix")

Array = npt.NDArray[np.float64]


def pinocchio() -> Any | None:
    """Return the module `pinocchio`, or None where it is not installed."""
    try:
        import pinocchio as pin
    except ImportError:
        return None
    return pin


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Bound the library to one thread inside the block."""
    before = da.get_num_threads()
    da.set_num_threads(1)
    try:
        yield
    finally:
        da.set_num_threads(before)


def arm(batch: int) -> "Contest":
    """Return a six-joint arm: Pinocchio's sample manipulator, or the bundled `arm6` where Pinocchio is not
    installed.
    """
    pin = pinocchio()
    if pin is None:
        return _bundled_contest("6-joint arm", da.models.arm6(), batch)
    return from_peer("6-joint arm", pin.buildSampleModelManipulator(), batch)


def humanoid(batch: int, *, random: bool = True) -> "Contest":
    """Return a humanoid with a free root: Pinocchio's sample (random: 32 degrees of freedom, else 34), or the
    bundled one.
    """
    pin = pinocchio()
    if pin is None:
        return _bundled_contest("humanoid", da.models.humanoid(), batch)
    if random:
        pin.seed(0)
        return from_peer("humanoid, nv 32", pin.buildSampleModelHumanoidRandom(), batch)
    return from_peer("humanoid, nv 34", pin.buildSampleModelHumanoid(), batch)


def from_peer(name: str, pin_model: Any, batch: int) -> "Contest":
    """Return the contest on a Pinocchio model, with the same states on both sides."""
    pin = cast(Any, pinocchio())
    bridge = da.interop.from_pinocchio(pin_model)
    lower, upper = pin_model.lowerPositionLimit, pin_model.upperPositionLimit
    bounded = np.isfinite(lower) & np.isfinite(upper) & (np.abs(lower) < 1e3) & (np.abs(upper) < 1e3)
    lower, upper = np.where(bounded, lower, -1.0), np.where(bounded, upper, 1.0)
    pin.seed(1)
    q = np.array([pin.randomConfiguration(pin_model, lower, upper) for _ in range(batch)])
    v, a, tau = np.random.default_rng(1).standard_normal((3, batch, pin_model.nv))
    peer = Peer(pin_model, bridge, q, v, a, tau)
    return Contest(name, bridge.model, bridge.q(q), bridge.v(v), bridge.v(a), bridge.tau(tau), peer)


def random_states(model: Any, batch: int) -> tuple[Array, Array]:
    """Return positions `(batch, nq)` and velocities `(batch, nv)` within the model's limits."""
    rng = np.random.default_rng(1)
    q, v = zip(*(model.random_state(rng) for _ in range(batch)))
    return np.array(q), np.array(v)


def _bundled_contest(name: str, model: Any, batch: int) -> "Contest":
    q, v = random_states(model, batch)
    a, tau = np.random.default_rng(1).standard_normal((2, batch, model.nv))
    return Contest(name, model, q, v, a, tau, None)


@dataclass(frozen=True, slots=True)
class Peer:
    """The same robot and states in Pinocchio's order, and its calls."""

    model: Any
    bridge: Any
    q: Array
    v: Array
    a: Array
    tau: Array

    def batch(self, algorithm: Algorithm) -> Timer:
        """Return a timer of its batch API on one thread, which writes into a buffer; the mass matrix is
        called by row.
        """
        pin = cast(Any, pinocchio())
        names: dict[str, Any] = {
            "pool": pin.ModelPool(self.model, 1),
            "model": self.model,
            "data": self.model.createData(),
            "rows": list(self.q),
            # One column a sample: the transposed view of our rows is the layout it wants, without a copy.
            "q": self.q.T,
            "v": self.v.T,
            "x": self.a.T if algorithm == "inverse dynamics" else self.tau.T,
            "out": np.zeros((self.model.nv, len(self.q)), order="F"),
            "aba": pin.abaInParallel,
            "rnea": pin.rneaInParallel,
            "crba": pin.crba,
        }
        statement = {
            "forward dynamics": "aba(1, pool, q, v, x, out)",
            "inverse dynamics": "rnea(1, pool, q, v, x, out)",
            "mass matrix": "for row in rows: crba(model, data, row)",
        }[algorithm]
        return Timer(statement, globals=names)

    def single(self, algorithm: Algorithm) -> Timer:
        """Return a timer of one call on one sample."""
        pin = cast(Any, pinocchio())
        x = self.a if algorithm == "inverse dynamics" else self.tau
        names = {"f": self._function(pin, algorithm), "model": self.model, "data": self.model.createData()}
        names |= {"q": self.q[0].copy(), "v": self.v[0].copy(), "x": x[0].copy()}
        arguments = "q" if algorithm == "mass matrix" else "q, v, x"
        return Timer(f"f(model, data, {arguments})", globals=names)

    def results(self, algorithm: Algorithm, rows: int) -> Array:
        """Return its results for the first rows, in our order; for the mass matrix, the product with `v`."""
        pin = cast(Any, pinocchio())
        data, function = self.model.createData(), self._function(pin, algorithm)
        if algorithm == "mass matrix":
            products = []
            for q, v in zip(self.q[:rows], self.v[:rows]):
                upper = np.triu(function(self.model, data, q))
                products.append((upper + np.triu(upper, 1).T) @ v)
            return cast(Array, self.bridge.tau(np.array(products)))
        if algorithm == "inverse dynamics":
            forces = [
                function(self.model, data, *row) for row in zip(self.q[:rows], self.v[:rows], self.a[:rows])
            ]
            return cast(Array, self.bridge.tau(np.array(forces)))
        motions = [
            function(self.model, data, *row).copy()
            for row in zip(self.q[:rows], self.v[:rows], self.tau[:rows])
        ]
        return cast(Array, self.bridge.v(np.array(motions)))

    @staticmethod
    def _function(pin: Any, algorithm: Algorithm) -> Any:
        return {"forward dynamics": pin.aba, "inverse dynamics": pin.rnea, "mass matrix": pin.crba}[algorithm]


@dataclass(frozen=True, slots=True)
class Contest:
    """One robot with a batch of states in our order, and the peer where it is installed."""

    name: str
    model: Any
    q: Array
    v: Array
    a: Array
    tau: Array
    peer: Peer | None

    def batch(self, algorithm: Algorithm, *, out: bool) -> Timer:
        """Return a timer of the public function on all rows, into a given array (`out`) or into a new one."""
        arrays = self._arrays(algorithm)
        names: dict[str, Any] = {"f": self._public(algorithm), "model": self.model}
        names |= dict(zip("qvx", arrays))
        arguments = ", ".join("qvx"[: len(arrays)])
        if out:
            names["out"] = self._public(algorithm)(self.model, *arrays)
            arguments += ", out=out"
        return Timer(f"f(model, {arguments})", globals=names)

    def single(self, algorithm: Algorithm, *, compiled: bool) -> Timer:
        """Return a timer of one sample, result allocated: `f = da.compile(...)` or the public function."""
        arrays = [array[0].copy() for array in self._arrays(algorithm)]
        names: dict[str, Any] = dict(zip("qvx", arrays))
        arguments = ", ".join("qvx"[: len(arrays)])
        if compiled:
            f = da.compile(self._public(algorithm), self.model)
            return Timer(f"f({arguments})", globals=names | {"f": f})
        return Timer(
            f"f(model, {arguments})", globals=names | {"f": self._public(algorithm), "model": self.model}
        )

    def error(self, algorithm: Algorithm, rows: int = 16) -> float:
        """Return the largest difference from the peer relative to its largest result, over the first rows."""
        if self.peer is None:
            return float("nan")
        theirs = self.peer.results(algorithm, rows)
        ours = self._public(algorithm)(self.model, *(array[:rows] for array in self._arrays(algorithm)))
        if algorithm == "mass matrix":
            ours = np.einsum("bij,bj->bi", ours, self.v[:rows])
        return float(np.abs(ours - theirs).max() / np.abs(theirs).max())

    def _arrays(self, algorithm: Algorithm) -> tuple[Array, ...]:
        if algorithm == "mass matrix":
            return (self.q,)
        return (self.q, self.v, self.a if algorithm == "inverse dynamics" else self.tau)

    @staticmethod
    def _public(algorithm: Algorithm) -> Any:
        return {
            "forward dynamics": da.forward_dynamics,
            "inverse dynamics": da.inverse_dynamics,
            "mass matrix": da.mass_matrix,
        }[algorithm]
