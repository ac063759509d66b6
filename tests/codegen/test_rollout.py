"""Many steps in one call are the steps one by one, bit for bit: carried, streamed and constant inputs."""

import json

import numpy as np
import pytest
from tests.codegen.sample_programs import bits, chain_loops, random_straight, run_arrays, straight
from tests.tracing.test_row_loops import N, collected, relaxed, springs

from dalembert.codegen import (
    BoundSteps,
    KernelInfo,
    Rollout,
    StepArray,
    address_of,
    compile_program,
    get_num_threads,
    host_levels,
    load_kernel,
    make_entry,
    set_num_threads,
)
from dalembert.codegen.cpu import threads
from dalembert.codegen.memory import split_delivery
from dalembert.errors import ArgumentError, ShapeError, UnknownNameError
from dalembert.tracing import ArrayArgument, trace
from dalembert.tracing.graph import Graph
from dalembert.tracing.program import ArraySpec, Program, Repeat, Store, Straight


def _stepping():
    """x (11 numbers) follows from itself, a stream y and a constant k; a row whose x[0] grows is refused."""
    program = random_straight(5, size=400, outputs=11)
    (statement,) = program.statements
    graph = statement.stores[0].value.graph
    x = [graph.input("x", k) for k in range(11)]
    stores = [store for store in statement.stores if store.array == "second"]
    by_place = {store.position: store.value for store in statement.stores if store.array == "first"}
    for k in range(11):
        value = by_place[k] * 0.3 + x[(k + 1) % 11] * graph.input("k", 0)
        stores.append(Store.fixed("first", k, graph.operation("sin", value * 3.0)))
    stores.append(Store.fixed("count", 0, graph.input("n", 0) + 1.0))
    stores.append(Store.fixed("seen", 0, graph.input("n", 0)))
    stores.append(Store.fixed("seen", 2, graph.constant(2.5)))
    return Program(
        inputs=tuple(_specs({"x": 11, "y": 3, "k": 1, "n": 1})),
        outputs=tuple(_specs({"seen": 4, "first": 11, "second": 1, "count": 1})),
        statements=(Straight(tuple(stores)),),
        check=graph.operation("lt", 0.8, x[0]),
    )


def _specs(sizes):
    return [ArraySpec(name, size) for name, size in sizes.items()]


def _exchange():
    """a and b change places at every step."""
    graph = Graph()
    a, b = ([graph.input(name, k) for k in range(5)] for name in "ab")
    return straight({"a": 5, "b": 5}, {"next a": b, "next b": a})


def _rows():
    """Points on a line, driven by a stream, with springs between those that are near, an iteration, and sums
    over the points that are high."""

    def step(x, push):
        forces, settled = springs(x), relaxed(x)
        moved = [a + 0.1 * (f + b) + 0.01 * c for a, f, b, c in zip(x, forces, push, settled)]
        return moved, [settled[-1], *collected(x)]

    arguments = [ArrayArgument(name, (N,)) for name in ("x", "push")]
    return trace(step, arguments).program()


CASES = {
    "straight": (_stepping(), Rollout((("x", 1), ("n", 3)), ("y",))),
    "exchange": (_exchange(), Rollout((("a", 0), ("b", 1)))),
    "loops": (chain_loops(23), Rollout((("q", 0),), ("base",))),
    "large loops": (chain_loops(150), Rollout((("q", 0),), ("base",))),
    "rows": (_rows(), Rollout((("x", 0),), ("push",))),
}


def test_loops_that_only_delivery_needs_are_left_out_of_other_steps():
    program, rollout = CASES["rows"]
    needed, late = split_delivery(program, rollout)
    assert sum(isinstance(item, Repeat) for item in late) >= 2
    assert {*needed}.isdisjoint(late)
    repeats = [item for item in program.statements if isinstance(item, Repeat)]
    assert [item for item in repeats if item in needed] == [x for x in needed if isinstance(x, Repeat)]
    assert [item for item in repeats if item in late] == [x for x in late if isinstance(x, Repeat)]


def test_what_no_step_reads_is_carried_too():
    graph = Graph()
    program = straight({"a": 9}, {"next": [graph.constant(float(k)) for k in range(9)]})
    rollout = Rollout((("a", 0),))
    for lanes in (1, None):
        kernel = compile_program(program, lanes=lanes, rollout=rollout)
        given = _inputs(program, rollout, 11, 0, "float64")
        assert np.array_equal(_rolled(kernel, given, 11, 0, 1)[1][0], given["a"])
        assert np.array_equal(_rolled(kernel, given, 11, 2, 1)[1][0], np.tile(np.arange(9.0), (11, 1)))


def _inputs(program, rollout, rows, steps, dtype):
    rng = np.random.default_rng(rows)
    return {
        spec.name: rng.uniform(
            -1.0, 1.0, (rows, steps, spec.size) if spec.name in rollout.streams else (rows, spec.size)
        ).astype(dtype)
        for spec in program.inputs
    }


def _one_by_one(kernel, rollout, given, rows, steps):
    """The same by a kernel of one step: outputs (rows, steps, n), final values, refused steps."""
    info, state = kernel.info, dict(given)
    outputs = [np.zeros((rows, steps, size), info.dtype) for _, size in info.outputs]
    refused = np.full(rows, -1)
    for step in range(steps):
        for row in range(rows):
            ins = [
                state[name][row : row + 1, step] if name in rollout.streams else state[name][row : row + 1]
                for name, _ in info.inputs
            ]
            outs = [array[row : row + 1, step] for array in outputs]
            if run_arrays(kernel, ins, outs) >= 0 and refused[row] < 0:
                refused[row] = step
        for name, number in rollout.carried:
            state[name] = outputs[number][:, step]
    return outputs, [state[name] for name, _ in rollout.carried], refused


def _rolled(kernel, given, rows, steps, every, chunks=None):
    """The kernel of many steps, in one call or several; initial values are overwritten with final ones."""
    info = kernel.info
    item = np.dtype(info.dtype).itemsize
    carried = [name for name, _ in info.rollout.carried]
    given = {name: array.copy() if name in carried else array for name, array in given.items()}
    outputs = [np.full((rows, steps // every + 1, size), 9.0, info.dtype) for _, size in info.outputs]
    refused = np.full(rows, -1)
    done = 0
    for steps_now in chunks or [steps]:
        inputs = []
        for name, size in info.inputs:
            array, step = given[name], size * item if name in info.rollout.streams else 0
            inputs.append(StepArray(address_of(array) + done * step, array.strides[0], step))
        written = done // every
        places = [
            StepArray(address_of(array) + written * array.strides[1], array.strides[0], array.strides[1])
            for array in outputs
        ]
        places += [StepArray(address_of(given[name]), given[name].strides[0]) for name in carried]
        found = np.full(rows, -7)
        places.append(StepArray(address_of(found), 8))
        BoundSteps(kernel, inputs, places, rows).take(steps_now, first=every - done % every, every=every)
        refused = np.where((refused < 0) & (found >= 0), found + done, refused)
        done += steps_now
    assert all(np.all(array[:, steps // every :] == 9.0) for array in outputs)
    return [array[:, : steps // every] for array in outputs], [given[name] for name in carried], refused


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_many_steps_are_the_steps_one_by_one(name, dtype):
    program, rollout = CASES[name]
    for level in host_levels():
        one = compile_program(program, dtype=dtype, lanes=1, level=level)
        for lanes in (1, None):
            kernel = compile_program(program, dtype=dtype, lanes=lanes, level=level, rollout=rollout)
            for rows, steps in ((1, 1), (kernel.info.lanes + 3, 7), (2 * kernel.info.lanes, 4)):
                given = _inputs(program, rollout, rows, steps, dtype)
                expected = _one_by_one(one, rollout, given, rows, steps)
                for every, chunks in ((1, None), (3, None), (3, [2, 0, steps - 2]), (steps, None)):
                    if chunks and steps < 2:
                        continue
                    outputs, final, refused = _rolled(kernel, given, rows, steps, every, chunks)
                    for found, wanted in zip(outputs, expected[0], strict=True):
                        assert np.array_equal(bits(found), bits(wanted[:, every - 1 :: every]))
                    for found, wanted in zip(final, expected[1], strict=True):
                        assert np.array_equal(bits(found), bits(wanted))
                    assert np.array_equal(refused, expected[2])
    assert (name == "straight") == bool(np.any(expected[2] >= 0))


def test_no_steps_leave_the_state_as_it_is():
    program, rollout = CASES["straight"]
    for lanes in (1, None):
        kernel = compile_program(program, lanes=lanes, rollout=rollout)
        given = _inputs(program, rollout, 11, 0, "float64")
        outputs, final, refused = _rolled(kernel, given, 11, 0, 1)
        assert [array.shape[1] for array in outputs] == [0] * 4
        assert np.array_equal(final[0], given["x"])
        assert np.all(refused == -1)


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    program, rollout = CASES["straight"]
    kernel = compile_program(program, rollout=rollout)
    given = _inputs(program, rollout, 203, 6, "float64")
    before = get_num_threads()
    try:
        found = []
        for count in (1, 3):
            set_num_threads(count)
            found.append(_rolled(kernel, given, 203, 6, 2))
    finally:
        set_num_threads(before)
    for one, three in zip(found[0][0] + found[0][1], found[1][0] + found[1][1], strict=True):
        assert np.array_equal(bits(one), bits(three))
    assert np.array_equal(found[0][2], found[1][2])


def test_rollouts_are_told_apart_on_disk_and_describe_themselves():
    program, rollout = CASES["exchange"]
    other = Rollout((("a", 1), ("b", 0)))
    kernel = compile_program(program, key="exchange", rollout=rollout)
    assert load_kernel("exchange", rollout=other) is None
    assert load_kernel("exchange") is None
    found = load_kernel("exchange", rollout=rollout)
    assert found is not None
    assert found.info == kernel.info == KernelInfo.from_json(json.loads(json.dumps(kernel.info.to_json())))
    single = compile_program(program, lanes=1, rollout=rollout)
    with pytest.raises(ArgumentError, match="of one step"):
        make_entry(single, print, input_shapes=[(5,), (5,)], output_shapes=[(5,), (5,)])


def test_kernels_of_one_step_and_of_many_are_not_mixed_up():
    program, rollout = CASES["exchange"]
    many, one = (compile_program(program, rollout=each) for each in (rollout, None))
    arrays = [np.zeros((4, 5)) for _ in range(4)]
    with pytest.raises(ArgumentError, match="takes many steps"):
        run_arrays(many, arrays[:2], arrays[2:])
    places = [StepArray(address_of(array), array.strides[0]) for array in arrays]
    with pytest.raises(ArgumentError, match="takes one step"):
        BoundSteps(one, places[:2], places[2:], 4)
    with pytest.raises(ShapeError, match="2 inputs and 5 outputs"):
        BoundSteps(many, places[:2], places[2:], 4)


@pytest.mark.parametrize(
    ("rollout", "error", "message"),
    [
        (Rollout((("z", 0),)), UnknownNameError, "z"),
        (Rollout((("x", 1),), ("u",)), UnknownNameError, "u"),
        (Rollout((("x", 9),)), ArgumentError, "there are 4 outputs"),
        (Rollout((("x", 0),)), ShapeError, "has 11 numbers, but the output 'seen'"),
        (Rollout((("x", 1),), ("x",)), ArgumentError, "x, x"),
    ],
)
def test_a_rollout_that_does_not_fit_is_refused(rollout, error, message):
    with pytest.raises(error, match=message):
        compile_program(CASES["straight"][0], rollout=rollout)
