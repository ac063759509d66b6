"""Launch layouts of GPU kernels that are worth measuring."""

from dataclasses import replace
from functools import partial

from dalembert.codegen.gpu import Architecture, Layout
from dalembert.codegen.gpu.gpu_function import ROLLOUT_BARRIERS, planned_layout
from dalembert.codegen.gpu.launch import WARP_SIZE


def choices(architecture: Architecture, bits: int) -> list[Layout]:
    """Return the layouts."""
    plan = partial(planned_layout, architecture, bits)
    found = [Layout(block=block) for block in (64, 128, 256)]
    found += [Layout(block=block, shared=0) for block in (64, 128)]
    for block, registers, blocks in ((64, 255, 4), (128, 255, 2), (64, 200, 5), (64, 168, 6), (64, 128, 8)):
        found.append(plan(block=block, registers=registers, blocks=blocks))
    shares = ((2, 255, 4), (4, 128, 4), (4, 168, 3), (4, 255, 2), (8, 128, 2), (8, 255, 1))
    for parts, registers, blocks in shares:
        found.append(plan(block=WARP_SIZE * parts, registers=registers, blocks=blocks, parts=parts))
    for k in (1, 2):
        layout = plan(block=128 * k, registers=255, blocks=2 // k)
        found.append(replace(layout, barriers=ROLLOUT_BARRIERS))
    return found
