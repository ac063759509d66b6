"""The text of an emitted GPU kernel and the description that a launch needs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, final

from dalembert.codegen.gpu.layout import Layout
from dalembert.codegen.rollout import Rollout

__all__ = ["GpuInfo", "GpuSource"]


@final
@dataclass(frozen=True, slots=True)
class GpuInfo:
    """The description of a kernel that a launch needs.

    `inputs`, `outputs`: (name, numbers a row); of a rollout also the final values and the refused steps,
    which are 64-bit integers. `block`: threads of a block, for `samples` samples. `shared_bytes`: dynamic
    shared memory of a block. `scratch_bytes`: global memory for each thread in flight; if there is any, the
    kernel takes its address, and a grid of any size goes over all rows. `checks`: whether rows may be
    refused.
    """

    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    bits: int
    block: int
    shared_bytes: int
    scratch_bytes: int
    checks: bool
    architecture: str
    layout: Layout
    rollout: Rollout | None = None

    @property
    def samples(self) -> int:
        """Samples of a block."""
        return self.layout.samples

    @property
    def dtype(self) -> str:
        return f"float{self.bits}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> GpuInfo:
        rollout = data["rollout"]
        return cls(
            **{
                **data,
                "inputs": tuple((str(name), int(size)) for name, size in data["inputs"]),
                "outputs": tuple((str(name), int(size)) for name, size in data["outputs"]),
                "layout": Layout.from_json(data["layout"]),
                "rollout": None if rollout is None else Rollout.from_json(rollout),
            }
        )


@final
@dataclass(frozen=True, slots=True)
class GpuSource:
    """The phases of a kernel and the functions they call, without an entry point: `entry_points` adds one for
    the GPU or the host.

    `parameters` are those of the kernel, `phases` the names of the functions in `text`, in order: of load,
    stream, compute, store, finish those that there are, or compute0, store0, compute1 … of results in pieces.
    `local_bytes`: memory of a thread that lasts over the phases. `workers`: the code of each, where several
    threads compute a sample.
    """

    text: str
    declared: frozenset[str]
    parameters: tuple[str, ...]
    phases: tuple[str, ...]
    local_bytes: int
    info: GpuInfo
    tables: bytes
    workers: tuple[tuple[str, ...], ...] = ()
