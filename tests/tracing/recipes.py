"""Random recipes of arithmetic, to be cooked on any kind of scalar.

A recipe is a list of steps; each applies an operation to values made before, chosen by position (modulo their
number). The same recipe runs on floats, on graphs with and without rules, and on exact fractions.
"""

from collections.abc import Sequence

from hypothesis import strategies as st

from dalembert import scalar

CONSTANTS = (0.0, 1.0, -1.0, 2.0, -0.5, 4.0)
RING = ("add", "sub", "mul", "neg")
BRANCHING = ("abs", "min", "max", "select")
SMOOTH = ("div", "sin", "cos", "sqrt", "exp", "atan2", "tan")

Step = tuple[str, int, int, int]


def recipes(ops: Sequence[str], longest: int = 14) -> st.SearchStrategy[list[Step]]:
    place = st.integers(0, 40)
    return st.lists(st.tuples(st.sampled_from(ops), place, place, place), min_size=1, max_size=longest)


def cook(recipe: Sequence[Step], inputs: Sequence[object]) -> list[object]:
    """Every intermediate value; arguments of functions are kept inside their domains."""
    pool: list = [*inputs, *CONSTANTS]
    for op, i, j, k in recipe:
        # Steps look at the latest values first, so that expressions grow deep.
        a, b, c = (pool[-1 - place % len(pool)] for place in (i, j, k))
        if op == "add":
            value = a + b
        elif op == "sub":
            value = a - b
        elif op == "mul":
            value = a * b
        elif op == "neg":
            value = -a
        elif op == "div":
            value = a / (1.0 + b * b)
        elif op == "sqrt":
            value = scalar.sqrt(1.0 + a * a)
        elif op == "exp":
            value = scalar.exp(scalar.sin(a))
        elif op == "tan":
            value = scalar.tan(0.5 * scalar.sin(a))
        elif op == "atan2":
            value = scalar.atan2(a, 2.0 + scalar.cos(b))
        elif op == "abs":
            value = scalar.absolute(a)
        elif op == "min":
            value = scalar.minimum(a, b)
        elif op == "max":
            value = scalar.maximum(a, b)
        elif op == "select":
            value = scalar.select(a < b, c, -c)
        else:
            value = getattr(scalar, op)(a)
        pool.append(value)
    return pool[len(inputs) + len(CONSTANTS) :]
