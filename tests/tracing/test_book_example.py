"""The worked example of Featherstone 2008 §10.4, Table 10.3: tau = s . (v x I v)."""

import numpy as np
import pytest
from tests.tracing.interpreter import interpret

from dalembert.tracing import (
    BOOK_RULES,
    NO_RULES,
    RULES,
    ArrayArgument,
    count_operations,
    count_program,
    python_source,
    trace,
)

INERTIA = [[1.5, 0.0, 0.0], [0.0, 1.6, 0.0], [0.0, 0.0, 1.7]]
AXIS = [0.0, 0.0, 1.0]


def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def gyroscopic_torque(v):
    """General code for any inertia and axis: one matrix product, one cross product, one dot product."""
    h = [dot(row, v) for row in INERTIA]
    p = [v[1] * h[2] - v[2] * h[1], v[2] * h[0] - v[0] * h[2], v[0] * h[1] - v[1] * h[0]]
    return dot(p, AXIS)


def recorded(rules, share=True):
    return trace(gyroscopic_torque, [ArrayArgument("v", (3,))], rules=rules, share=share)


def test_general_code_records_29_operations():
    """RBDA-10.4-EXAMPLE: 9 + 6 for I v, 6 + 3 for the cross product, 3 + 2 for the dot product."""
    count = count_operations(recorded(NO_RULES, share=False).values)
    assert (count.multiplications, count.additions) == (18, 11)
    assert count.total == 29


def test_simple_rules_leave_5_operations():
    """RBDA-10.4-EXAMPLE: v1 (1.6 v2) - v2 (1.5 v1)."""
    count = count_operations(recorded(BOOK_RULES).values)
    assert (count.multiplications, count.additions, count.total) == (4, 1, 5)


def test_default_rules_find_no_more():
    """RBDA-10.4-EXAMPLE"""
    assert count_program(recorded(RULES).program()).total <= 5


@pytest.mark.parametrize("rules", [NO_RULES, BOOK_RULES, RULES], ids=lambda rules: rules.name)
def test_emitted_code_equals_the_numeric_routine(rules):
    """RBDA-10.4-SYMBOLIC, RBDA-10.4-EXAMPLE: closed form 0.1 v1 v2."""
    program = recorded(rules).program()
    scope: dict = {}
    exec(python_source(program, name="torque"), scope)
    for v in np.random.default_rng(7).normal(size=(20, 3)).tolist():
        assert scope["torque"](v) == interpret(program, {"v": v})["output"]
        assert scope["torque"](v)[0] == pytest.approx(0.1 * v[0] * v[1], abs=1e-14)
        assert gyroscopic_torque(v) == pytest.approx(scope["torque"](v)[0], abs=1e-14)


def test_a_parameter_left_open_stays_an_input():
    """RBDA-10.4-SYMBOLIC: model values may be supplied at run time; (I2 - I1) v1 v2 for any I."""

    def with_inertia(v, inertia):
        h = [inertia[k] * v[k] for k in range(3)]
        p = [v[1] * h[2] - v[2] * h[1], v[2] * h[0] - v[0] * h[2], v[0] * h[1] - v[1] * h[0]]
        return dot(p, AXIS)

    program = trace(with_inertia, [ArrayArgument("v", (3,)), ArrayArgument("inertia", (3,))]).program()
    for v, inertia in np.random.default_rng(8).normal(size=(10, 2, 3)).tolist():
        result = interpret(program, {"v": v, "inertia": inertia})["output"][0]
        assert result == pytest.approx((inertia[1] - inertia[0]) * v[0] * v[1], abs=1e-13)
