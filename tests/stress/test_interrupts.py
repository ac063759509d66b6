"""Interrupts at random moments of threaded calls: later calls are right, nothing hangs or is corrupted."""

import glob
import os
import signal
import subprocess
import sys

import pytest
from tests.stress.amounts import amount

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer on this system")

THREADS = (1, 2, 4, 8)
INTERRUPTS = amount(25, 2500)
"""For each number of threads and each kind of interrupt."""

WORKER = r"""
import os, random, signal, sys, time
import numpy as np
import dalembert as da
from dalembert.call import arguments
from dalembert.codegen.cpu import threads
from dalembert.compiler.library import library_recipe
from dalembert.compiler.rollout_execution import compile_rollout

kind, interrupts, counts = sys.argv[1], int(sys.argv[2]), [int(text) for text in sys.argv[3].split(",")]
threads.WORTH_A_THREAD = 1000
UNTOUCHED = 777.0
arrived = [0]


class Interrupted(BaseException):
    pass


def handle(number, frame):
    arrived[0] += 1
    if kind == "sigint":
        raise KeyboardInterrupt
    if arrived[0] % 5 == 0:  # a handler that calls before it raises
        f(q, v, tau)
    raise Interrupted


def exceptions():
    return (KeyboardInterrupt, Interrupted)


# A finalizer that is interrupted reports it there.
sys.unraisablehook = lambda found: issubclass(found.exc_type, exceptions()) or sys.__unraisablehook__(found)
signal.signal(signal.SIGINT, handle)
signal.signal(signal.SIGALRM, handle)
killer = None
if kind == "sigint":
    # Another process sends real SIGINTs: a byte asks for one, some microseconds later.
    reading, writing = os.pipe()
    own = os.getpid()
    killer = os.fork()
    if not killer:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.close(writing)
        while asked := os.read(reading, 1):
            time.sleep(asked[0] * 1e-5)
            os.kill(own, signal.SIGINT)
        os._exit(0)
    os.close(reading)


def interrupt_soon(rng):
    if kind == "sigint":
        os.write(writing, bytes([rng.randrange(256)]))
    else:
        signal.setitimer(signal.ITIMER_REAL, 1e-6 + rng.random() * 2.5e-3)


model = da.models.arm6()
rows, steps, samples = 24000, 40, 320
rng = np.random.default_rng(0)
q, v, tau = (rng.normal(size=(rows, 6)) for _ in range(3))
f = da.compile(da.forward_dynamics, model)
da.set_num_threads(1)
expected = f(q, v, tau)
assert expected.nbytes >= arguments.MIN_REUSED_BYTES
step = library_recipe(model, "step", options=(("integrator", "semi_implicit"),))
rollout = compile_rollout(step, carried={"q": 0, "v": 1})
given = (q[:samples], v[:samples], tau[:samples], 1e-3)
whole = rollout(*given, steps=steps)
chooser = random.Random(1)
wrong = total = 0
for count in counts:
    da.set_num_threads(count)
    for trial in range(interrupts):
        before = arrived[0]
        out = np.full((rows, 6), UNTOUCHED)
        run = rollout.start(*given, steps=steps)
        try:
            interrupt_soon(chooser)
            while arrived[0] == before:
                if trial % 4 == 0:
                    f(q, v, tau, out=out)
                elif trial % 4 == 1 and run.done < steps:
                    run.advance()
                else:
                    f(q, v, tau)
        except exceptions():
            pass
        total += 1
        out[:] = UNTOUCHED
        found = f(q, v, tau)
        wrong += int(np.sum(np.any(found != expected, axis=1)))
        while trial % 4 == 1 and run.done < steps:
            run.advance()
        if trial % 4 == 1:
            pairs = zip((*run.outputs, *run.state.values()), (*whole.outputs, *whole.state.values()))
            wrong += sum(int(np.sum(a != b)) for a, b in pairs)
        wrong += int(np.sum(out != UNTOUCHED))
if killer:
    os.close(writing)
    os.waitpid(killer, 0)
print(total, wrong)
sys.exit(1 if wrong else 0)
"""


def outcome(kind, counts=THREADS, interrupts=INTERRUPTS, **environment):
    """The number of interrupts and of wrong rows that a process counts."""
    found = subprocess.run(
        [sys.executable, "-c", WORKER, kind, str(interrupts), ",".join(map(str, counts))],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=amount(120, 1800),
        check=False,
    )
    assert found.returncode in (0, 1), f"ended by {found.returncode}: {found.stderr[-2000:]}"
    assert found.stdout, found.stderr[-2000:]
    return tuple(map(int, found.stdout.split()))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["sigint", "handler"])
def test_no_later_row_is_wrong(kind):
    assert outcome(kind) == (len(THREADS) * INTERRUPTS, 0)


@pytest.mark.timeout(3600)
def test_nothing_is_corrupted_under_a_checking_allocator():
    """NumPy's memory is that of the C library, whose checks end the process at the first damage."""
    environment = {"PYTHONMALLOC": "debug", "MALLOC_PERTURB_": "165", "MALLOC_CHECK_": "3"}
    library = "libc_malloc_debug.so.0"
    places = [
        path for folder in ("/lib64", "/lib/*", "/usr/lib64") for path in glob.glob(f"{folder}/{library}")
    ]
    if places:
        environment["LD_PRELOAD"] = places[0]
    interrupts = amount(10, 1000)
    assert outcome("handler", (1, 4), interrupts, **environment) == (2 * interrupts, 0)
