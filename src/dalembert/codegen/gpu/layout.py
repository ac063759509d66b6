"""Launch layouts: threads, registers and memory of a kernel.

The assembler allocates registers. This library chooses the order of the instructions and the place of spilled
values: with `values`, so many values are planned to be in registers, by Belady's rule, and the others have
slots in the block's shared memory up to `shared` bytes, then in the thread's local memory. Without `values`
the assembler spills, always to local memory.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, final

from dalembert.errors import ArgumentError

__all__ = ["Layout"]

WARP_SIZE = 32
MAX_BLOCK_THREADS = 1024
"""Threads of a warp, and of a block at most, on every CUDA architecture."""


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """The launch layout of a kernel.

    `block`: threads. `parts`: threads a sample; the warps of a block then have different parts of the
    arithmetic (`stages.py`). `registers`: the most a thread may have; None leaves it to the assembler.
    `values`: how many values are planned to be in registers, or None. `shared`: bytes of shared memory a
    block may have. `staged`: rows go through shared memory, so that neighbouring threads read and write
    neighbouring numbers. `barriers`: places in the arithmetic where the threads of a block wait for each
    other, so that they run the same instructions while these are in the caches; with some, they go through
    loops together, too.
    """

    block: int = 128
    registers: int | None = None
    values: int | None = None
    shared: int = 48 * 1024
    staged: bool = True
    barriers: int = 0
    parts: int = 1

    def __post_init__(self) -> None:
        if not (WARP_SIZE <= self.block <= MAX_BLOCK_THREADS and self.block % WARP_SIZE == 0):
            raise ArgumentError(
                f"block={self.block}: expected a multiple of {WARP_SIZE} "
                f"from {WARP_SIZE} to {MAX_BLOCK_THREADS}"
            )
        if self.parts < 1 or self.samples % WARP_SIZE or self.samples * self.parts != self.block:
            raise ArgumentError(
                f"parts={self.parts}: expected to divide the {self.block // WARP_SIZE} warps of a block"
            )
        if self.registers is not None and not 24 <= self.registers <= 255:
            raise ArgumentError(f"registers={self.registers}: expected 24 to 255, or None")

    @property
    def samples(self) -> int:
        """Samples of a block."""
        return self.block // self.parts

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Layout:
        return cls(**data)
