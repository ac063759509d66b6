"""The layout a kernel gets by rule fits its architecture, and large results are written row by row."""

import pytest
from tests.codegen.gpu.launching import SM90, source_of
from tests.codegen.gpu.test_host_run import PROGRAMS, several_large
from tests.codegen.sample_programs import random_straight, straight, wide_output

from dalembert.codegen import Rollout
from dalembert.codegen.gpu import ARCHITECTURES, Layout, default_layout, emit_gpu
from dalembert.codegen.gpu.gpu_function import max_live_values, planned_layout
from dalembert.codegen.schedule import schedule
from dalembert.tracing.graph import Graph


def _products(count):
    """`count` values that are all alive until the last is computed."""
    graph = Graph()
    x = [graph.input("x", k) for k in range(count)]
    return [a * b for a, b in zip(x, x[1:] + x[:1])]


def _all_alive(count, more=0):
    """A program in which about `count` values are alive at once, and `more` operations."""
    values = _products(count)
    total = values[0]
    for value in values[1:]:
        total = total + value * value
    results = [value / total for value in values]
    for k in range(more):
        results[k % 60] = results[k % 60] * results[k % 59]
    return straight({"x": count}, {"y": [sum(results[k::60], start=results[0]) for k in range(60)]})


def test_values_alive_are_counted():
    values = _products(40)
    total = values[0]
    for value in values[1:]:
        total = total + value * value
    assert max_live_values(schedule(values, fma=True)) == 0
    assert max_live_values(schedule([total], fma=True)) <= 3
    # Forty values, the sum so far, and the sum that takes its place.
    assert max_live_values(schedule([total, *(value / total for value in values)], fma=True)) == 42


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_rule_fits_the_architecture(name, architecture, bits):
    chosen = ARCHITECTURES[architecture]
    source = emit_gpu(PROGRAMS[name], bits=bits, architecture=chosen)
    assert source.info.shared_bytes <= source.info.layout.shared <= chosen.shared_bytes
    assert source.info.layout == default_layout(PROGRAMS[name], bits=bits, architecture=chosen)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=ARCHITECTURES)
def test_planned_blocks_share_a_processor(architecture, bits):
    """As many as planned fit: 65,536 registers, and memory with the kilobyte that each block costs."""
    for block, registers, blocks in ((64, 255, 4), (64, 168, 6), (64, 128, 8), (32, 255, 5), (128, 255, 1)):
        layout = planned_layout(architecture, bits, block=block, registers=registers, blocks=blocks)
        assert blocks * (layout.shared + 1024) <= architecture.sm_bytes
        assert blocks * block * -(-registers // 8) * 8 <= 65_536
        assert layout.values * bits // 32 < registers


@pytest.mark.parametrize(("count", "registers"), [(100, (128, 128)), (400, (168, 255)), (600, (255, 255))])
def test_long_programs_have_four_threads_a_sample(count, registers):
    """As measured (design/gpu.md): their registers hold about as many numbers as are alive."""
    program = _all_alive(count, more=5000)
    for bits, wanted in zip((32, 64), registers):
        layout = default_layout(program, bits=bits, architecture=SM90)
        assert (layout.registers, layout.parts) == (wanted, 4)


@pytest.mark.parametrize(("count", "more", "parts"), [(150, 3000, 4), (200, 3000, 1), (150, 1000, 1)])
def test_shorter_programs_have_four_where_their_numbers_fit_with_ease(count, more, parts):
    assert default_layout(_all_alive(count, more), bits=32, architecture=SM90).parts == parts


@pytest.mark.parametrize(("count", "registers"), [(60, (None, None)), (200, (168, 255)), (400, (255, 128))])
def test_the_rule_for_one_thread_goes_by_the_values_alive(count, registers):
    """As measured: the assembler's choice, 168 registers or all; of float64 all, then 128."""
    program = _all_alive(count)
    for bits, wanted in zip((32, 64), registers):
        layout = default_layout(program, bits=bits, architecture=SM90, alone=True)
        assert (layout.registers, layout.parts) == (wanted, 1)


def test_what_cannot_be_divided_has_one_thread_a_sample():
    """Results in pieces, loops, and a rollout whose carried values do not fit shared memory."""
    assert default_layout(several_large(40), bits=32, architecture=SM90).parts == 1
    assert default_layout(PROGRAMS["large loops"], bits=32, architecture=SM90).parts == 1
    values = _products(1700)
    total = sum(values[1:], start=values[0])
    program = straight({"x": 1700}, {"y": [value / total for value in values]})
    rollout = Rollout((("x", 0),))
    assert default_layout(program, bits=64, architecture=SM90, rollout=rollout).parts == 1


def test_one_large_result_is_gathered():
    source = emit_gpu(wide_output(30), bits=32, architecture=SM90)
    assert source.phases == ("load", "compute", "store")
    assert "@columns.out0" in source.text


def test_several_large_results_come_in_pieces():
    layout = Layout(block=64, values=40, shared=40 * 1024)
    source = source_of(several_large(20), 32, layout)
    pieces = [phase for phase in source.phases if phase.startswith("compute")]
    assert len(pieces) == 2 * -(-400 // 128)
    assert source.phases.index("store0") == source.phases.index("compute0") + 1
    assert source.info.shared_bytes <= 40 * 1024


def test_small_results_take_the_columns_of_dead_inputs():
    """No column is added for results where inputs leave enough."""
    program = random_straight(3)
    inputs = sum(spec.size for spec in program.inputs)
    roomy = source_of(program, 32, Layout(block=64, values=200, shared=100 * 1024))
    plain = source_of(program, 32, Layout(block=64, shared=100 * 1024))
    assert roomy.info.shared_bytes < plain.info.shared_bytes
    assert roomy.info.shared_bytes >= inputs * 64 * 4


def test_rollouts_of_vast_code_run_in_phase():
    """As measured (design/gpu.md): blocks of 128 threads that wait for each other, in loops too."""

    def layout(count, steps, alone=True):
        graph = Graph()
        x = [graph.input("x", k) for k in range(8)]
        for k in range(count):
            x[k % 8] = x[k % 8] * x[(k + 3) % 8] + x[(k + 5) % 8]
        rollout = Rollout((("x", 0),)) if steps else None
        program = straight({"x": 8}, {"y": x})
        return default_layout(program, bits=32, architecture=SM90, rollout=rollout, alone=alone)

    assert layout(7000, steps=True, alone=False).parts == 4
    vast = layout(7000, steps=True)
    assert (vast.block, vast.registers, vast.barriers) == (128, 255, 8)
    assert 2 * (vast.shared + 1024) <= SM90.sm_bytes
    assert layout(7000, steps=False).barriers == layout(300, steps=True).barriers == 0
