"""Steps in one launch are the CPU's steps in one call, bit for bit, wherever the carried values live."""

import numpy as np
import pytest
from tests.codegen.gpu.launching import LAYOUTS, roll_on_host
from tests.codegen.sample_programs import bits, straight
from tests.codegen.test_rollout import CASES, _inputs

from dalembert.codegen import BoundSteps, Rollout, StepArray, compile_program, host_level
from dalembert.codegen.target import LEVELS
from dalembert.tracing.graph import Graph

pytestmark = pytest.mark.skipif(
    not LEVELS[host_level()].fma, reason="a processor without fused multiply-adds rounds otherwise"
)


def _on_cpu(program, rollout, given, rows, steps, first, every):
    kernel = compile_program(program, rollout=rollout)
    kept = max(0, (steps - first) // every + 1)
    outputs = [np.full((rows, kept, spec.size), 9.0) for spec in program.outputs]
    finals = [np.full_like(given[name], 9.0) for name, _ in rollout.carried]
    refused = np.full(rows, 5, np.int64)
    inputs = []
    for spec in program.inputs:
        array = given[spec.name]
        step = array.strides[1] if spec.name in rollout.streams else 0
        inputs.append(StepArray(array.ctypes.data, array.strides[0], step))
    written = [StepArray(item.ctypes.data, item.strides[0], item.strides[1]) for item in outputs]
    written += [StepArray(item.ctypes.data, item.strides[0]) for item in (*finals, refused)]
    BoundSteps(kernel, inputs, written, rows).take(steps, first=first, every=every)
    return outputs, finals, refused


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CASES)
def test_steps_in_one_launch_are_the_cpus(case, layout):
    _compare(case, layout, steps=7, first=2, every=3)


@pytest.mark.parametrize(("steps", "first", "every"), [(0, 1, 1), (7, 1, 1), (4, 4, 4), (3, 4, 4)])
def test_any_number_of_steps_is_kept(steps, first, every):
    _compare("straight", "plain", steps=steps, first=first, every=every)


def test_an_input_that_is_a_result_keeps_its_place():
    """Its column is not taken by others, though it is read early and many values need a place after that."""
    graph = Graph()
    a = [graph.input("a", k) for k in range(40)]
    products = [x * y for x, y in zip(a, a[1:] + a[:1])]
    total = products[0]
    for product in products[1:]:
        total = total + product
    moved = [graph.operation("sin", product + total) for product in products]
    program = straight({"a": 40}, {"moved": moved, "seen": a})
    _compare((program, Rollout((("a", 0),))), "planned slots in shared memory", steps=3, first=1, every=1)


def _compare(case, layout, *, steps, first, every):
    program, rollout = CASES[case] if isinstance(case, str) else case
    rows = 70
    given = _inputs(program, rollout, rows, max(steps, 1), "float64")
    wanted = _on_cpu(program, rollout, given, rows, steps, first, every)
    found = roll_on_host(
        program,
        rollout,
        given,
        rows=rows,
        steps=steps,
        first=first,
        every=every,
        layout=LAYOUTS[layout],
    )
    for theirs, ours in zip(wanted[0] + wanted[1] + [wanted[2]], found[0] + found[1] + [found[2]]):
        assert np.array_equal(bits(theirs), bits(ours))
