"""Time by CUDA events, and what a card can do at most: bytes and operations a second, measured."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from itertools import pairwise

from dalembert.call.cuda.device import Device
from dalembert.compiler.gpu_calls import link

BITS = {"float64": 64, "float32": 32}


class Clock:
    """Milliseconds between two events on the default stream."""

    def __init__(self, home: Device) -> None:
        self.home = home
        self.events = []
        with home.current():
            for _ in range(2):
                found = ctypes.c_void_p()
                home.driver("cuEventCreate", ctypes.byref(found), 0)
                self.events.append(found.value)

    def best(self, call: Callable[[], None], rounds: int = 10, inner: int = 1) -> float:
        call()
        self.home.synchronize()
        times = []
        for _ in range(rounds):
            with self.home.current():
                self.home.driver("cuEventRecord", self.events[0], 0)
                for _ in range(inner):
                    call()
                self.home.driver("cuEventRecord", self.events[1], 0)
                self.home.driver("cuEventSynchronize", self.events[1])
                elapsed = ctypes.c_float()
                self.home.driver("cuEventElapsedTime", ctypes.byref(elapsed), *self.events)
            times.append(elapsed.value / inner)
        return min(times)


def ceilings(home: Device, clock: Clock) -> dict[str, float]:
    """Bytes a second of a copy (read and written) and of a fill, and operations a second of FMAs."""
    size = 1 << 30
    first, second = home.allocate(size), home.allocate(size)
    copy = clock.best(lambda: home.copy_rows((second, size), (first, size), size, 1, 0))

    def fill() -> None:
        with home.current():
            home.driver("cuMemsetD8Async", first, 0, size, 0)

    found = {"copy": 2e3 * size / copy, "fill": 1e3 * size / clock.best(fill)}
    home.release(first)
    home.release(second)
    for dtype, bits in BITS.items():
        found[f"fma {dtype}"] = fma_rate(home, clock, bits)
    return found


def fma_rate(home: Device, clock: Clock, bits: int) -> float:
    """Operations a second of a kernel that does nothing but fused multiply-adds, eight at a time."""
    kind, many, rounds, block = f"f{bits}", 8, 256, 256
    letter = "f" if bits == 32 else "d"
    names = [f"%{letter}{k}" for k in range(many + 2)]
    body = "\n".join(f"fma.rn.{kind} {x}, {x}, {names[-1]}, {names[-2]};" for x in names[:many] * 8)
    # Values that the assembler does not know, each another, so that nothing is computed beforehand.
    pairs = reversed(list(pairwise(names)))
    loads = [f"ld.global.{kind} {x}, [%t];" for x in names]
    start = "\n".join(loads + [f"add.rn.{kind} {x}, {x}, {y};" for x, y in pairs])
    sums = "\n".join(f"add.rn.{kind} {names[0]}, {names[0]}, {x};" for x in names[1:many])
    text = f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry dalembert_kernel(.param .u64 target)
{{
.reg .{kind} %{letter}<{many + 2}>;
.reg .u32 %r<2>;
.reg .u64 %t;
.reg .pred %p<2>;
ld.param.u64 %t, [target];
{start}
mov.u32 %r0, 0;
again:
{body}
add.u32 %r0, %r0, 1;
setp.lt.u32 %p0, %r0, {rounds};
@%p0 bra again;
{sums}
setp.eq.{kind} %p1, {names[0]}, {names[-1]};
@%p1 bra done;
st.global.{kind} [%t], {names[0]};
done:
ret;
}}
"""
    code = link(text, home, "fused multiply-adds")
    driver, grid = home.driver, home.processors * 32
    with home.current():
        module = driver.handle("cuModuleLoadData", code)
        kernel = driver.handle("cuModuleGetFunction", module, b"dalembert_kernel")
    target = ctypes.c_int64(home.unread())
    place = (ctypes.c_void_p * 1)(ctypes.addressof(target))

    def launch() -> None:
        with home.current():
            driver("cuLaunchKernel", kernel, grid, 1, 1, block, 1, 1, 0, 0, place, None)

    return 2e3 * grid * block * rounds * many * 8 / clock.best(launch)
