"""A batch call ends only when its threads have stopped writing, whatever happens to the call."""

import _thread
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tests.codegen.sample_programs import bits, random_inputs, random_straight, run, run_arrays, straight

from dalembert import codegen
from dalembert.codegen import compile_program, set_num_threads
from dalembert.codegen.cpu import cpu_kernel, threads
from dalembert.codegen.cpu.threads import CLOSED, FIELDS
from dalembert.tracing.graph import Graph

ROOT = Path(__file__).parents[2]
PROGRAM = random_straight(7)
ROWS = 203
UNTOUCHED = 777.0


@pytest.fixture
def many_threads(monkeypatch):
    """Three threads for any batch."""
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    before = codegen.get_num_threads()
    set_num_threads(3)
    yield
    set_num_threads(before)


@pytest.fixture
def hasty(monkeypatch):
    """The leader returns to Python after every piece."""
    native = threads._native_functions()._replace(ticks=0)
    monkeypatch.setattr(threads, "_native_functions", lambda: native)


class Interrupted(BaseException):
    """What a signal handler raises."""


class Call:
    """A call with results of its own."""

    def __init__(self, rows=ROWS):
        self.kernel = compile_program(PROGRAM)
        self.inputs = random_inputs(PROGRAM, rows, "float64")
        self.expected = run(self.kernel, self.inputs, threads=False)
        self.outputs = [np.full((rows, size), UNTOUCHED) for _, size in self.kernel.info.outputs]

    def __call__(self):
        arrays = [self.inputs[name] for name, _ in self.kernel.info.inputs]
        return run_arrays(self.kernel, arrays, self.outputs)

    def is_right(self):
        names = [name for name, _ in self.kernel.info.outputs]
        pairs = zip(self.outputs, names, strict=True)
        return all(np.array_equal(bits(array), bits(self.expected[name])) for array, name in pairs)

    def clear(self):
        for array in self.outputs:
            array[:] = UNTOUCHED

    def is_untouched(self):
        return all(np.all(array == UNTOUCHED) for array in self.outputs)


def raising_at(number):
    """A trace function that raises at bytecode `number` of the driver's functions, and counts them."""
    seen = [0]

    def local(frame, event, argument):
        if event == "opcode":
            seen[0] += 1
            if seen[0] == number:
                raise Interrupted
        return local

    def trace(frame, event, argument):
        if frame.f_code.co_filename not in (threads.__file__, cpu_kernel.__file__):
            return None
        frame.f_trace_opcodes = True
        return local

    return trace, seen


def test_an_exception_at_any_bytecode_leaves_no_writer_behind(many_threads, hasty):
    call = Call()
    call()
    trace, seen = raising_at(-1)
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
    assert seen[0] > 200
    raised = 0
    for number in range(1, seen[0] + 1, 3 if seen[0] > 1500 else 1):
        trace, _ = raising_at(number)
        sys.settrace(trace)
        try:
            call()
        except Interrupted:
            raised += 1
        finally:
            sys.settrace(None)
        call.clear()
        time.sleep(2e-4)  # let helpers run that might still be about
        assert call.is_untouched(), f"a helper wrote after bytecode {number}"
        if number % 16 == 0:
            call()
            assert call.is_right(), f"a call after bytecode {number}"
    assert raised > 150


def test_a_helper_that_comes_before_or_after_the_leader_touches_nothing(many_threads, monkeypatch):
    call, requests = Call(), []

    class Helpers:
        def ask(self, count, request):
            requests.append(request)
            raise Interrupted

    monkeypatch.setattr(threads, "_HELPERS", Helpers())
    with pytest.raises(Interrupted):
        call()
    (request,) = requests
    native = threads._native_functions()
    scratch, _keep = threads.SCRATCH.take(request.scratch_bytes)
    begun = time.monotonic()
    native.help_with(request.address, scratch)
    assert time.monotonic() - begun < 1.0, "a helper gives up on a leader that never comes"
    assert call.is_untouched()
    while native.lead(request.address, scratch):
        pass
    assert call.is_right()
    call.clear()
    native.help_with(request.address, scratch)
    assert call.is_untouched()


def test_the_leader_waits_for_a_helper_that_began_later(many_threads, monkeypatch):
    """Two long pieces: the leader takes one, and a while later the helper takes the other."""
    requests = []

    class Helpers:
        def ask(self, count, request):
            requests.append(request)
            raise Interrupted

    monkeypatch.setattr(threads, "_HELPERS", Helpers())
    monkeypatch.setattr(threads, "MIN_PIECES_PER_THREAD", 1)
    monkeypatch.setattr(threads, "PIECE_INSTRUCTIONS", 1 << 62)
    set_num_threads(2)
    call = Call(rows=1)
    arrays = [*(call.inputs[name] for name, _ in call.kernel.info.inputs)], call.outputs
    with pytest.raises(Interrupted):  # all rows are the same one
        call.kernel.run(*[[(array.ctypes.data, 0) for array in side] for side in arrays], 4_000_000)
    (request,) = requests
    native, gate, taken = threads._native_functions(), FIELDS.index("gate"), FIELDS.index("next")

    def help_late():
        scratch, _keep = threads.SCRATCH.take(request.scratch_bytes)
        while request.batch[taken] == 0:
            time.sleep(0.001)
        time.sleep(0.02)
        native.help_with(request.address, scratch)

    helper = threading.Thread(target=help_late)
    helper.start()
    scratch, _keep = threads.SCRATCH.take(request.scratch_bytes)
    assert native.lead(request.address, scratch) == 0
    inside = request.batch[gate] - CLOSED
    helper.join(timeout=60.0)
    assert inside == 0


def test_results_do_not_depend_on_how_often_the_leader_returns(many_threads, hasty):
    call = Call()
    assert call() == -1
    assert call.is_right()
    graph = Graph()
    x = graph.input("x", 0)
    check = graph.operation("lt", 1.0, graph.operation("abs", x))
    kernel = compile_program(straight({"x": 1}, {"y": [x * 2.0]}, check=check))
    values = np.zeros((999, 1))
    values[[411, 77, 998]] = 3.0
    for count in (1, 2, 5):
        set_num_threads(count)
        assert run_arrays(kernel, [values], [np.empty_like(values)]) == 77


def test_a_batch_is_computed_where_no_thread_can_be_started(many_threads, monkeypatch):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_HELPERS", threads._Helpers())
    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    call = Call()
    for _ in range(20):
        call.clear()
        call()
        assert call.is_right()
    assert threads._HELPERS._requests.qsize() <= 8


def test_a_helper_that_died_is_replaced(many_threads, monkeypatch):
    helpers = threads._Helpers()
    monkeypatch.setattr(threads, "_HELPERS", helpers)
    call = Call()
    call()
    limit = time.monotonic() + 30.0
    while len(helpers._running) < 2 and time.monotonic() < limit:
        time.sleep(0.001)
    helpers._requests.put(None)  # not a request: its helper ends with an error
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    while len(helpers._running) > 1 and time.monotonic() < limit:
        time.sleep(0.001)
    assert len(helpers._running) == 1
    call()
    while len(helpers._running) < 2 and time.monotonic() < limit:
        time.sleep(0.001)
    assert len(helpers._running) == 2
    assert call.is_right()


def test_a_call_within_a_call_is_as_good_as_any(many_threads, hasty):
    """As made by a signal handler or a finalizer, at any bytecode of the driver."""
    outer, inner = Call(), Call()
    calls = []

    def local(frame, event, argument):
        if event == "opcode" and len(calls) % 7 == 0:
            sys.settrace(None)
            inner.clear()
            inner()
            assert inner.is_right()
            sys.settrace(trace)
        calls.append(event)
        return local

    def trace(frame, event, argument):
        if frame.f_code.co_filename != threads.__file__:
            return None
        frame.f_trace_opcodes = True
        return local

    sys.settrace(trace)
    try:
        outer()
    finally:
        sys.settrace(None)
    assert len(calls) > 100
    assert outer.is_right()


ENDLESS = """
import ctypes, os, signal, sys, threading, time
import numpy as np
from dalembert import codegen
from tests.codegen.sample_programs import random_straight, random_inputs
signal.signal(signal.SIGINT, signal.default_int_handler)
codegen.set_num_threads(int(sys.argv[1]))
program = random_straight(7)
kernel = codegen.compile_program(program)
inputs = [random_inputs(program, 1, "float64")[name] for name, _ in kernel.info.inputs]
outputs = [np.empty((1, size)) for _, size in kernel.info.outputs]
places = [[(array.ctypes.data, 0) for array in side] for side in (inputs, outputs)]
kernel.run(*places, 10_000_000)
times = []
def interrupt():
    time.sleep(0.3)
    times.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    kernel.run(*places, 10**15)
except KeyboardInterrupt:
    print(time.monotonic() - times[0])
"""


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends the process there")
def test_ctrl_c_ends_a_batch_that_would_take_days(count):
    done = subprocess.run(
        [sys.executable, "-c", ENDLESS, str(count)],
        capture_output=True,
        text=True,
        timeout=60.0,
        check=True,
        cwd=ROOT,
    )
    assert float(done.stdout) < 1.0, "0.2 s on a machine with nothing else to do"


AT_EXIT = """
import atexit, signal, sys
import numpy as np
from dalembert import codegen
from dalembert.codegen.cpu import threads
from tests.codegen.sample_programs import random_straight, random_inputs, run
threads.WORTH_A_THREAD = 1
codegen.set_num_threads(3)
program = random_straight(7)
arrays = random_inputs(program, 203, "float64")
kernel = codegen.compile_program(program)
expected = run(kernel, arrays, threads=False)["first"]
def compare():
    for _ in range(20):
        found = run(codegen.compile_program(program), arrays, threads=True)["first"]
        assert np.array_equal(found, expected)
    print("right")
atexit.register(compare)
if sys.argv[1] == "used":
    compare()
"""


@pytest.mark.parametrize("before", ["used", "unused"])
def test_threaded_calls_work_in_atexit_handlers(before):
    done = subprocess.run(
        [sys.executable, "-c", AT_EXIT, before],
        capture_output=True,
        text=True,
        timeout=60.0,
        check=True,
        cwd=ROOT,
    )
    assert done.stdout.split() == ["right"] * (1 + (before == "used"))
    assert not done.stderr


def test_scratch_memory_is_never_smaller_than_what_is_asked_for():
    """Also after an exception between any two bytecodes that keep it."""
    for number in range(1, 200):
        scratch = codegen.cpu.threads._Scratch()

        def local(frame, event, argument, number=number, seen=[0]):  # noqa: B006
            if event == "opcode":
                seen[0] += 1
                if seen[0] == number:
                    raise Interrupted
            return local

        def trace(frame, event, argument, local=local):
            frame.f_trace_opcodes = True
            return local

        scratch.take(64)
        sys.settrace(trace)
        try:
            scratch.take(1 << 16)
        except Interrupted:
            pass
        finally:
            sys.settrace(None)
        size, address, buffer = scratch.kept
        assert buffer.size >= size
        assert address == buffer.ctypes.data


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer on this system")
def test_signal_handlers_may_call(many_threads):
    call, other = Call(), Call()
    arrivals = []

    def handle(*_):
        other.clear()
        other()
        arrivals.append(other.is_right())

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        limit = time.monotonic() + 20.0
        while len(arrivals) < 100 and time.monotonic() < limit:
            call.clear()
            call()
            assert call.is_right()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert len(arrivals) >= 100
    assert all(arrivals)


def test_calls_of_several_threads_share_the_helpers(many_threads):
    calls = [Call() for _ in range(5)]
    wrong = []

    def work(call):
        for _ in range(50):
            call.clear()
            call()
            if not call.is_right():
                wrong.append(call)

    workers = [threading.Thread(target=work, args=[call]) for call in calls]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60.0)
        assert not worker.is_alive()
    assert not wrong
