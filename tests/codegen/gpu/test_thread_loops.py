"""Loops of a thread: each leaves them by itself, inner loops are loops, states are cells: the CPU's bits."""

import numpy as np
import pytest
from tests.codegen.gpu import host_kernel as host
from tests.codegen.gpu.host_kernel import host_module
from tests.codegen.gpu.launching import LAYOUTS, run_on_host, source_of
from tests.codegen.sample_programs import bits, chain_loops, run
from tests.codegen.test_iteration import program_of, samples
from tests.tracing.test_iteration import newton

from dalembert import scalar
from dalembert.codegen import compile_program, host_level
from dalembert.codegen.gpu.shared_memory import FIRST_CELL, STORE_MARK, SpillSlots
from dalembert.codegen.gpu.thread_loops import without_exit_tests
from dalembert.codegen.ir import LaneType, Writer
from dalembert.codegen.target import LEVELS
from dalembert.tracing.expression import live
from dalembert.tracing.program import Loop

TOGETHER = LAYOUTS["planned, loops together"]

ENDS = "ret i1 %own"
"""What tells a thread on the host whether one of its block goes on: itself."""

same_rounding = pytest.mark.skipif(
    not LEVELS[host_level()].fma, reason="a processor without fused multiply-adds rounds otherwise"
)


def three_levels(x):
    def outer(a):
        def middle(b):
            c = scalar.loop(3, lambda c: 0.5 * c + a * 0.1 + b[0], x[2], until=lambda c: c < a)
            return [scalar.sin(c) + b[0], b[1] + 1.0]

        b, n = scalar.loop(4, middle, [a, 0.0], until=lambda b: b[0] > x[0])
        return 0.5 * (a + b) + 0.01 * n

    return [scalar.loop(5, outer, x[1], until=lambda a: a > x[0])]


def two_inner(x):
    """Two loops one after the other inside a third; only the first has an end of its own."""

    def step(carry):
        y, n = carry
        t, k = scalar.loop(
            6, lambda s: (0.5 * s[0] + 0.01 * x[1], s[1] + 1.0), (y, 0.0), until=lambda s: s[0] < 1.0
        )
        u = scalar.loop(3, lambda s: s * 0.25 + t * x[2], y)
        return 0.5 * y + 0.001 * u, n + k

    return list(scalar.loop(20, step, (x[0], 0.0), until=lambda c: c[0] < 0.3))


def single(x):
    """A loop without others inside."""
    return list(
        scalar.loop(
            9, lambda c: (c[0] * 0.5 + x[1] * 0.01, c[1] + 1.0), (x[0], 0.0), until=lambda c: c[0] < 1.5
        )
    )


FUNCTIONS = {"newton": newton, "three levels": three_levels, "two inner": two_inner, "single": single}


@same_rounding
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_iterations_are_the_cpus(name, layout):
    program, given = program_of(FUNCTIONS[name]), samples()
    wanted = run(compile_program(program), {"x": given})["output"]
    found, _ = run_on_host(program, {"x": given}, layout=LAYOUTS[layout])
    assert len(np.unique(wanted[:, 0])) > 5
    assert np.array_equal(bits(found["output"]), bits(wanted))


@same_rounding
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rounds_for_others_change_nothing(name, monkeypatch):
    """As if another thread of the block had not ended before the last iteration."""
    program, given = program_of(FUNCTIONS[name]), samples()
    wanted, _ = run_on_host(program, {"x": given}, layout=TOGETHER)

    def never_alone(source):
        text = host_module(source)
        assert ENDS in text
        return text.replace(ENDS, "ret i1 true")

    monkeypatch.setattr(host, "host_module", never_alone)
    found, _ = run_on_host(program, {"x": given}, layout=TOGETHER)
    assert np.array_equal(bits(found["output"]), bits(wanted["output"]))


def test_neighbours_come_together_unless_they_change_in_between():
    slots, writer = SpillSlots(LaneType(32, 1), 0, 0), Writer(LaneType(32, 1), fma=True, declared=set())
    state = slots.state(4)
    for k in (2, 0, 3, 1):
        state.load(writer, k)
    load = list(writer.lines)
    assert slots.place(0) == 0
    wide = "\n".join(slots.insert_addresses(load))
    assert wide.count("load <4 x float>") == 1
    assert wide.count("extractelement") == 4
    for between in (f"%x {STORE_MARK}{FIRST_CELL}", "next:", "br label %next"):
        apart = slots.insert_addresses([load[0], between, load[1]])
        assert not any("<4 x float>" in line for line in apart)
        assert sum("= load float" in line for line in apart) == 2


def test_a_loop_inside_another_needs_no_table():
    """Three levels go by the table: the innermost begins several times in one round."""
    for name, by_table in (("newton", False), ("two inner", False), ("three levels", True)):
        text = source_of(program_of(FUNCTIONS[name]), 64, TOGETHER).text
        assert ("switch i64" in text) == by_table


@pytest.mark.parametrize("name", ["newton", "two inner", "single"])
def test_the_warps_of_a_block_go_through_a_loop_together(name):
    """Where the layout has barriers."""
    program = program_of(FUNCTIONS[name])
    loops = sum(isinstance(item, Loop) and item.until is not None for item in program.statements)
    assert source_of(program, 64, TOGETHER).text.count("call i1 @any(") == loops == 1
    assert "@any(" not in source_of(program, 64, LAYOUTS["planned slots, most in local memory"]).text


def test_a_thread_inside_a_loop_does_not_ask_whether_it_is_done():
    (loop, _) = [item for item in program_of(newton).statements if isinstance(item, Loop)]
    own = without_exit_tests(loop)

    def asked(given):
        return [
            node.data
            for number, case in enumerate(given.cases)
            for node in live([store.value for store in case])
            if node.op == "load" and node.data in given.flags(number)
        ]

    assert asked(loop)
    assert not asked(own)
    assert [len(case) for case in own.cases] == [len(case) for case in loop.cases]


def test_states_are_no_variables_of_the_assembler():
    """At addresses that it sees through it would keep them in registers, and spill these as it likes."""
    program = program_of(newton)
    assert source_of(program, 32, TOGETHER).text.count("alloca") == 0
    assert source_of(program, 32, LAYOUTS["plain"]).text.count("alloca") > 0


def test_states_of_loops_over_tables_stay_arrays():
    """Their elements are found by a table as the kernel runs."""
    assert source_of(chain_loops(23), 32, TOGETHER).text.count("alloca") > 0
