"""A process may fork while its other threads compile and call: the child compiles and calls at once."""

import os
import subprocess
import sys

import pytest
from tests.stress.amounts import amount

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

FORKS = amount(10, 200)

WORKER = r"""
import os, signal, sys, threading, time, warnings
import numpy as np
import dalembert as da
from dalembert.codegen.cpu import threads

warnings.simplefilter("ignore", DeprecationWarning)  # of forks in processes with threads
threads.WORTH_A_THREAD = 1000
da.set_num_threads(2)
forks, ended = int(sys.argv[1]), threading.Event()
model, humanoid = da.models.arm6(), da.models.humanoid()
rng = np.random.default_rng(0)
arrays = [rng.normal(size=(24000, 6)) for _ in range(3)]
f = da.compile(da.forward_dynamics, model)
expected = f(*arrays)
compiled = [0]


def compile_on():
    # Each function is another, so that nothing comes from the disk.
    while not ended.is_set():
        compiled[0] += 1
        scale = 1.0 + compiled[0] / 1024

        def g(model, q, v, tau):
            return [scale * item for item in da.algorithms.forward_dynamics(model, q, v, tau)]

        chosen = humanoid if compiled[0] % 4 == 1 else model
        da.compile(g, chosen)(chosen.neutral(), *np.ones((2, chosen.nv)))


def call_on():
    while not ended.is_set():
        f(*arrays)


def child(number):
    def h(model, q, v):
        return [(2.0 + number / 1024) * item for item in da.algorithms.bias_forces(model, q, v)]

    assert np.array_equal(f(*arrays), expected)
    found = da.compile(h, model)(arrays[0][0], arrays[1][0])
    assert np.all(np.isfinite(found))


workers = [threading.Thread(target=work, daemon=True) for work in (compile_on, compile_on, call_on)]
for worker in workers:
    worker.start()
hanging = failed = 0
longest = 0.0
for number in range(forks):
    time.sleep(0.001 * (number * 7919 % 40))
    begun = time.monotonic()
    pid = os.fork()
    if not pid:
        status = 1
        try:
            child(number)
            status = 0
        except BaseException as error:
            sys.stderr.write(f"child {number}: {error!r}\n")
        finally:
            os._exit(status)
    longest = max(longest, time.monotonic() - begun)
    limit = time.monotonic() + 60.0
    while not (done := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > limit:
            os.kill(pid, signal.SIGKILL)
            done = os.waitpid(pid, 0)
            hanging += 1
            break
        time.sleep(0.002)
    failed += done[1] != 0
    if hanging >= 3:
        break
ended.set()
print(hanging, failed, compiled[0], f"{longest:.2f}", flush=True)
os._exit(0)
"""


@pytest.mark.timeout(3600)
def test_no_child_hangs():
    done = subprocess.run(
        [sys.executable, "-c", WORKER, str(FORKS)],
        capture_output=True,
        text=True,
        timeout=3000.0,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    hanging, failed, compiled, longest = done.stdout.split()
    assert (int(hanging), int(failed)) == (0, 0), done.stderr[-2000:]
    assert int(compiled) > FORKS // 10, "there was something to be forked into"
    print(f"{FORKS} forks during {compiled} compilations, the longest fork took {longest} s")
