"""What is chosen for a kernel beside its arithmetic: threads, registers, memory.

The assembler allots registers. Ours are the order of the instructions and where values go that find no
register: with `values`, as many are planned to be in registers as that, by Belady's rule, and the others
have slots in the block's shared memory as far as `shared` reaches, then in the thread's local memory. Without
`values` the assembler spills as it likes, always to local memory.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, final

from dalembert.errors import ArgumentError

__all__ = ["Layout"]

WARP = 32
MOST_THREADS = 1024


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """How a kernel uses a processor.

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
        if not (WARP <= self.block <= MOST_THREADS and self.block % WARP == 0):
            raise ArgumentError(
                f"block={self.block}: expected a multiple of {WARP} from {WARP} to {MOST_THREADS}"
            )
        if self.parts < 1 or self.samples % WARP or self.samples * self.parts != self.block:
            raise ArgumentError(
                f"parts={self.parts}: expected to divide the {self.block // WARP} warps of a block"
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
