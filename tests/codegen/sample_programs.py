"""Programs for the tests of the compiler, and ways to run them."""

from __future__ import annotations

import numpy as np

from dalembert.tracing.expression import Address, Expression
from dalembert.tracing.graph import Graph
from dalembert.tracing.program import ArraySpec, Loop, Program, Store, Straight

COMPARISONS = ("lt", "le", "eq")
UNARY = ("neg", "sqrt", "sin", "cos", "tan", "asin", "acos", "exp", "log", "abs", "floor")
BINARY = ("add", "sub", "mul", "div", "atan2", "min", "max")


def every_operation() -> tuple[Program, list[str]]:
    """One output element for every operation of two inputs, with the operations' names."""
    graph = Graph()
    x, y = graph.input("x", 0), graph.input("x", 1)
    values = {op: graph.operation(op, x) for op in UNARY}
    values |= {op: graph.operation(op, x, y) for op in BINARY}
    for op in COMPARISONS:
        values[op] = graph.operation("select", graph.operation(op, x, y), x + 1.5, y - 2.5)
    less, half = graph.operation("lt", x, y), graph.operation("lt", 0.5, y)
    for op in ("and", "or"):
        values[op] = graph.operation("select", graph.operation(op, less, half), x * 3.0, y * 5.0)
    values["not"] = graph.operation("select", graph.operation("not", less), x * 7.0, y * 9.0)
    return straight({"x": 2}, {"result": list(values.values())}), list(values)


def straight(
    inputs: dict[str, int], outputs: dict[str, list[Expression]], check: Expression | None = None
) -> Program:
    """A program of one straight statement."""
    stores = tuple(
        Store.fixed(name, k, value) for name, values in outputs.items() for k, value in enumerate(values)
    )
    return Program(
        tuple(ArraySpec(name, size) for name, size in inputs.items()),
        tuple(ArraySpec(name, len(values)) for name, values in outputs.items()),
        statements=(Straight(stores),),
        check=check,
    )


def random_straight(seed: int, *, size: int = 300, inputs: int = 11, outputs: int = 13) -> Program:
    """Random arithmetic with products, sums, sines and conditions; more values alive than there are
    registers.

    Outputs include a repeated value, an input, a zero and another constant.
    """
    rng = np.random.default_rng(seed)
    graph = Graph()
    pool = [graph.input("x", k) for k in range(inputs)] + [graph.input("y", k) for k in range(3)]
    for _ in range(size):
        a, b, c = (pool[int(k)] for k in rng.integers(len(pool), size=3))
        choice = rng.integers(12)
        scale = float(rng.uniform(-1.5, 1.5))
        if choice < 3:
            new = a * b * scale + c
        elif choice < 5:
            new = a * scale - b * c
        elif choice < 7:
            new = a * 0.5 + b * 0.25
        elif choice == 7:
            new = graph.operation("sin", a) * b - c
        elif choice == 8:
            new = graph.operation("cos", a + b)
        elif choice == 9:
            new = graph.operation("select", a < b, b, c) - graph.operation("max", a, c)
        elif choice == 10:
            new = a / (b * b + 2.0)
        else:
            new = -(a * b) - c
        pool.append(graph.operation("min", graph.operation("max", new, -2.0), 2.0))
    chosen = [pool[int(k)] for k in rng.integers(len(pool) // 2, len(pool), size=outputs)]
    values = [*chosen, chosen[0], graph.input("x", 2), graph.constant(0.0), graph.constant(2.5)]
    return straight({"x": inputs, "y": 3}, {"first": values, "second": chosen[:1]})


def wide_output(rows: int) -> Program:
    """A symmetric matrix with blocks of structural zeros, as a flat output of rows * rows."""
    graph = Graph()
    q = [graph.input("q", k) for k in range(rows)]
    entries = [graph.constant(0.0)] * (rows * rows)
    for i in range(rows):
        for j in range(i + 1):
            if i - j < 6:
                entries[i * rows + j] = entries[j * rows + i] = q[i] * q[j] + float(i + 1)
    return straight({"q": rows}, {"matrix": entries})


def chain_loops(count: int, seed: int = 0) -> Program:
    """Loops as a tree gives them: outward with two kinds, inward with accumulation into the parent, then
    results.

    Also: a state stored twice in one iteration, loads of what the same iteration stores, addresses without
    a table.
    """
    rng = np.random.default_rng(seed)
    parents = np.array([-1] + [int(rng.integers(max(0, k - 3), k)) for k in range(1, count)])
    tables = {
        "parent": (parents + 1).astype(np.int64),
        "kind": rng.integers(0, 2, size=count),
        "coordinate": rng.permutation(count),
        "mass": rng.uniform(0.5, 1.5, size=3 * count),
    }
    graph = Graph()

    def load(array: str, table: str | None, scale: int, offset: int) -> Expression:
        return graph.load(Address(array, table, scale, offset))

    q = load("q", "coordinate", 1, 0)
    outward = []
    for kind in range(2):
        above = [load("motion", "parent", 2, k) for k in range(2)]
        angle = graph.operation("sin" if kind else "cos", q)
        own = [
            above[0] * angle + above[1] * 0.5,
            above[1] * angle - above[0] * 0.25 + load("mass", None, 3, 1),
        ]
        outward.append(tuple(Store(Address("motion", None, 2, 2 + k), value) for k, value in enumerate(own)))
    force = [load("force", None, 2, 2 + k) for k in range(2)]
    inward = (
        Store(Address("force", "parent", 2, 0), force[0] + load("motion", None, 2, 2), True),
        Store(Address("force", "parent", 2, 1), force[1] * 0.5 + q * load("mass", None, 3, 0), True),
        Store(Address("force", None, 2, 2), force[1]),
        Store(Address("force", None, 2, 3), force[0]),
        Store(Address("twice", None, 0, 0), force[0], True),
        Store(Address("twice", None, 0, 0), q, True),
    )
    last = (
        Store(Address("result", "coordinate", 1, 0), load("force", None, 2, 2) + load("twice", None, 0, 0)),
    )
    start = Straight(
        (
            Store.fixed("motion", 0, graph.input("base", 0)),
            Store.fixed("motion", 1, graph.input("base", 1) * graph.input("base", 0)),
        )
    )
    end = Straight(
        (
            Store.fixed("total", 0, graph.load(Address.fixed("force", 0))),
            Store.fixed("total", 1, graph.load(Address.fixed("force", 1)) * 0.5),
        )
    )
    return Program(
        inputs=(ArraySpec("q", count), ArraySpec("base", 2)),
        outputs=(ArraySpec("result", count), ArraySpec("total", 3)),
        states=(
            ArraySpec("motion", 2 * count + 2),
            ArraySpec("force", 2 * count + 2),
            ArraySpec("twice", 1),
        ),
        statements=(
            start,
            Loop(count, False, "kind", tuple(outward)),
            Loop(count, True, None, (inward,)),
            Loop(count, False, None, (last,)),
            end,
        ),
        tables=tables,
    )


def run_arrays(kernel, inputs, outputs, *, threads: bool = True) -> int:
    """The first row that a kernel refuses of arrays (rows, size), whose rows have adjacent elements."""
    places = [[(array.ctypes.data, array.strides[0]) for array in side] for side in (inputs, outputs)]
    return kernel.run(*places, len([*inputs, *outputs][0]), threads=threads)


def run(kernel, arrays: dict[str, np.ndarray], *, threads: bool = False) -> dict[str, np.ndarray]:
    """The outputs of a kernel for a batch of rows."""
    rows = len(next(iter(arrays.values())))
    outputs = [np.full((rows, size), np.nan, dtype=kernel.info.dtype) for _, size in kernel.info.outputs]
    inputs = [arrays[name] for name, _ in kernel.info.inputs]
    assert run_arrays(kernel, inputs, outputs, threads=threads) == -1
    return {name: output for (name, _), output in zip(kernel.info.outputs, outputs)}


def random_inputs(program: Program, rows: int, dtype: str, seed: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        spec.name: rng.uniform(-1.5, 1.5, size=(rows, spec.size)).astype(dtype) for spec in program.inputs
    }


def bits(array: np.ndarray) -> np.ndarray:
    """The bytes of an array, so that NaN equals NaN and 0 differs from -0."""
    return np.ascontiguousarray(array).view(np.uint8)
