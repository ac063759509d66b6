"""Branch-free quotients and square roots in float32.

What the assembler makes of a division or a root has a branch to a slow path for extreme operands. It ends the
basic block, so that no load begins before it and the chains of two quotients follow each other; code with
hundreds of them waits more than it computes. Here operands beyond 2^100 or below 2^-100 are scaled by powers
of two, and the same steps are taken for all (Markstein 1990):

    y = 1/b:  y_1 = y_0 + y_0 (1 - b y_0)                 a/b:  q_1 = q_0 + y_1 (a - b q_0), twice
    sqrt(x):  s_0 = x / sqrt(x), s_1 = s_0 + (x - s_0 s_0) / (2 sqrt(x))

from the processor's approximations. The result is the correctly rounded one, as the assembler's own, but for
a last place where it, or a divided by 2^100, is no normal number. 1 / sqrt(x) is one step, within one unit of
the last place.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["without_branches"]

_QUOTIENT: Final = re.compile(r"= fdiv float (\S+), (\S+)$")
_ROOT: Final = re.compile(r"^(\S+) = call float @llvm\.sqrt\.f32\(float (\S+)\)$")
_ONE: Final = "0x3FF0000000000000"

_LARGE, _SMALL = "0x4630000000000000", "0x39B0000000000000"
"""2^100 and 2^-100."""

_UP, _DOWN = "0x43F0000000000000", "0x3BF0000000000000"
_HALF_UP, _HALF_DOWN = "0x41F0000000000000", "0x3DF0000000000000"
"""2^64, 2^-64, 2^32, 2^-32."""

_DEFINITIONS: Final = f"""
declare float @llvm.fabs.f32(float)
declare float @llvm.fma.f32(float, float, float)
define internal float @scale(float %b) alwaysinline nounwind {{
%size = call float @llvm.fabs.f32(float %b)
%large = fcmp ogt float %size, {_LARGE}
%small = fcmp olt float %size, {_SMALL}
%down = select i1 %large, float {_DOWN}, float {_ONE}
%factor = select i1 %small, float {_UP}, float %down
ret float %factor
}}
define internal float @reciprocal(float %given) alwaysinline nounwind {{
%factor = call float @scale(float %given)
%b = fmul float %given, %factor
%y0 = call float asm "rcp.approx.ftz.f32 $0, $1;", "=f,f"(float %b)
%minus = fneg float %b
%left = call float @llvm.fma.f32(float %minus, float %y0, float {_ONE})
%y1 = call float @llvm.fma.f32(float %y0, float %left, float %y0)
%good = fcmp ord float %y1, %y1
%y = select i1 %good, float %y1, float %y0
%result = fmul float %y, %factor
ret float %result
}}
define internal float @quotient(float %above, float %below) alwaysinline nounwind {{
%factor = call float @scale(float %below)
%b = fmul float %below, %factor
%a = fmul float %above, %factor
%y0 = call float asm "rcp.approx.ftz.f32 $0, $1;", "=f,f"(float %b)
%minus = fneg float %b
%left = call float @llvm.fma.f32(float %minus, float %y0, float {_ONE})
%y1 = call float @llvm.fma.f32(float %y0, float %left, float %y0)
%q0 = fmul float %a, %y1
%r0 = call float @llvm.fma.f32(float %minus, float %q0, float %a)
%q1 = call float @llvm.fma.f32(float %r0, float %y1, float %q0)
%r1 = call float @llvm.fma.f32(float %minus, float %q1, float %a)
%q2 = call float @llvm.fma.f32(float %r1, float %y1, float %q1)
%good = fcmp ord float %q2, %q2
%extreme = fmul float %a, %y0
%result = select i1 %good, float %q2, float %extreme
ret float %result
}}
define internal float @inverse_root(float %given) alwaysinline nounwind {{
%small = fcmp olt float %given, {_SMALL}
%up = select i1 %small, float {_UP}, float {_ONE}
%back = select i1 %small, float {_HALF_UP}, float {_ONE}
%x = fmul float %given, %up
%y0 = call float asm "rsqrt.approx.ftz.f32 $0, $1;", "=f,f"(float %x)
%s = fmul float %x, %y0
%half = fmul float %y0, 0x3FE0000000000000
%minus = fneg float %s
%left = call float @llvm.fma.f32(float %minus, float %y0, float {_ONE})
%y1 = call float @llvm.fma.f32(float %left, float %half, float %y0)
%good = fcmp ord float %y1, %y1
%y = select i1 %good, float %y1, float %y0
%result = fmul float %y, %back
ret float %result
}}
define internal float @root(float %given) alwaysinline nounwind {{
%small = fcmp olt float %given, {_SMALL}
%up = select i1 %small, float {_UP}, float {_ONE}
%down = select i1 %small, float {_HALF_DOWN}, float {_ONE}
%x = fmul float %given, %up
%y = call float asm "rsqrt.approx.ftz.f32 $0, $1;", "=f,f"(float %x)
%s0 = fmul float %x, %y
%half = fmul float %y, 0x3FE0000000000000
%minus = fneg float %s0
%left = call float @llvm.fma.f32(float %minus, float %s0, float %x)
%s1 = call float @llvm.fma.f32(float %left, float %half, float %s0)
%good = fcmp ord float %s1, %s1
%inside = fcmp oge float %given, 0.0
%extreme = select i1 %inside, float %given, float 0x7FF8000000000000
%s = fmul float %s1, %down
%result = select i1 %good, float %s, float %extreme
ret float %result
}}
"""


def without_branches(text: str) -> str:
    """Return the text of a kernel in float32 with its quotients and roots replaced, and what it calls
    then."""
    lines: list[str] = []
    under: dict[str, str] = {}
    for line in text.split("\n"):
        quotient, root = _QUOTIENT.search(line), _ROOT.search(line)
        if line.startswith("define"):
            under.clear()
        if root:
            under[root[1]] = root[2]
            line = f"{root[1]} = call float @root(float {root[2]})"
        elif quotient:
            start, above, below = line[: quotient.start()], quotient[1], quotient[2]
            if above == _ONE and below in under:
                line = f"{start}= call float @inverse_root(float {under[below]})"
            elif above == _ONE:
                line = f"{start}= call float @reciprocal(float {below})"
            else:
                line = f"{start}= call float @quotient(float {above}, float {below})"
        lines.append(line)
    return "\n".join(lines) + _DEFINITIONS
