"""Every enrolled algorithm as a GPU kernel, run on the CPU: the bits of the CPU's kernel in float64."""

import numpy as np
import pytest
from tests.codegen.gpu.host_kernel import HostKernel
from tests.codegen.gpu.launching import SM90
from tests.codegen.sample_programs import bits, run_arrays
from tests.conformance import models
from tests.conformance.backends import arrays_of, draw_states
from tests.conformance.enrolment import ENROLLED, Enrolled

from dalembert.codegen import host_level
from dalembert.codegen.gpu import emit_gpu
from dalembert.codegen.target import LEVELS
from dalembert.compiler.kernels import Kernels

pytestmark = pytest.mark.skipif(
    not LEVELS[host_level()].fma, reason="a processor without fused multiply-adds rounds otherwise"
)

SAMPLES = 3


@pytest.mark.parametrize("entry", ENROLLED, ids=lambda entry: entry.name)
def test_kernels_compute_what_the_cpu_does(entry: Enrolled):
    tree = getattr(models, entry.models[0] if entry.models else "branched")()
    recipe = entry.recipe(tree)
    kernels = Kernels(recipe, "float64")
    program = kernels.lower().program
    given = arrays_of(recipe, draw_states(tree, SAMPLES, recipe=recipe))
    inputs = [np.ascontiguousarray(array.reshape(SAMPLES, -1), np.float64) for array in given]
    wanted = [np.full((SAMPLES, spec.size), 7.0) for spec in program.outputs]
    found = [np.full((SAMPLES, spec.size), 9.0) for spec in program.outputs]
    assert run_arrays(kernels.kernel("scalar"), inputs, wanted) == -1
    kernel = HostKernel(emit_gpu(program, bits=64, architecture=SM90))
    arrays = [(array.ctypes.data, array.strides[0]) for array in (*inputs, *found)]
    assert kernel.run(arrays, SAMPLES) == -1
    for ours, theirs in zip(found, wanted):
        assert np.array_equal(bits(ours), bits(theirs))
