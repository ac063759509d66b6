"""GPU architectures to generate code for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import llvmlite.binding as llvm

from dalembert.errors import DeviceError

__all__ = ["ARCHITECTURES", "Architecture", "from_capability", "target_machine"]

TRIPLE: Final = "nvptx64-nvidia-cuda"


@final
@dataclass(frozen=True, slots=True)
class Architecture:
    """A GPU architecture: `name` as the assembler knows it, `ptx` the PTX version of its code.

    `shared_bytes`: memory that a block may have for its own; `sm_bytes`: that of a whole processor, of
    which each block costs 1 kB more than it asks for.
    """

    name: str
    ptx: str
    shared_bytes: int
    sm_bytes: int

    @property
    def capability(self) -> tuple[int, int]:
        """Its compute capability: (9, 0) for sm_90."""
        number = int(self.name.removeprefix("sm_"))
        return number // 10, number % 10


ARCHITECTURES: Final[dict[str, Architecture]] = {
    item.name: item
    for item in (
        Architecture("sm_80", "+ptx80", 163 * 1024, 164 * 1024),
        Architecture("sm_90", "+ptx80", 227 * 1024, 228 * 1024),
        Architecture("sm_100", "+ptx86", 227 * 1024, 228 * 1024),
    )
}
"""Those that this release writes code for, oldest first. Newer devices run the code of the newest."""


def from_capability(major: int, minor: int) -> Architecture:
    """Return the newest architecture whose code a device of compute capability `major`.`minor` runs."""
    fitting = [item for item in ARCHITECTURES.values() if item.capability <= (major, minor)]
    if not fitting:
        raise DeviceError(
            f"the device has compute capability {major}.{minor}; kernels need 8.0 (Ampere) or newer"
        )
    return fitting[-1]


def target_machine(architecture: Architecture) -> Any:
    """Return LLVM's code generator for an architecture."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(TRIPLE).create_target_machine(
        cpu=architecture.name, features=architecture.ptx, opt=1
    )
