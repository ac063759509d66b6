"""Elementary functions in single precision, without double precision on the common path.

    sine, cosine,    n = round(x 2/pi), r = x - n pi/2 in three parts of pi/2 by fused multiply-adds,
    tangent          polynomials on |r| <= pi/4, quadrant n mod 4. Above 1e5 a sample calls the function of
                     double precision.
    atan2, asin,     as in double precision (`codegen.elementary`), with shorter polynomials
    acos, exp, log

Polynomials are those of Moshier's Cephes library (1989). Of the three steps of the reduction the first is
exact: x and n pi_1 are multiples of 2^-24, and so is their difference, which is below one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from dalembert.codegen import elementary
from dalembert.codegen.elementary import in_quadrant, steps_from
from dalembert.codegen.ir import LaneType, Value, Writer, function_text

MAX_CODY_WAITE_ARGUMENT: Final = 1e5
"""[rad] The largest argument of Cody and Waite's reduction: above, the three parts of pi/2 have too few
bits."""

ROUNDER: Final = 1.5 * 2.0**23
PIO2: Final = (
    float.fromhex("0x1.921fb6p+0"),
    float.fromhex("-0x1.777a5cp-25"),
    float.fromhex("-0x1.ee59dap-50"),
)
SINE: Final = (-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4)
COSINE: Final = (4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5)
TANGENT: Final = (
    3.33331568548e-1, 1.33387994085e-1, 5.34112807005e-2, 2.44301354525e-2, 3.11992232697e-3,
    9.38540185543e-3,
)  # fmt: skip
ARCTANGENT: Final = (-3.33329491539e-1, 1.99777106478e-1, -1.38776856032e-1, 8.05374449538e-2)
ARCSINE: Final = (1.6666752422e-1, 7.4953002686e-2, 4.5470025998e-2, 2.4181311049e-2, 4.2163199048e-2)
EXPONENTIAL: Final = (
    5.0000001201e-1, 1.6666665459e-1, 4.1665795894e-2, 8.3334519073e-3, 1.3981999507e-3, 1.9875691500e-4,
)  # fmt: skip
LOGARITHM: Final = (
    3.3333331174e-1, -2.4999993993e-1, 2.0000714765e-1, -1.6668057665e-1, 1.4249322787e-1, -1.2420140846e-1,
    1.1676998740e-1, -1.1514610310e-1, 7.0376836292e-2,
)  # fmt: skip
LN2_HIGH: Final = 0.693359375
LN2_LOW: Final = -2.12194440e-4
PIO2_LOW: Final = -4.371139000186241e-8
SUFFIX: Final = "_single"
PAIR: Final = LaneType(32, 1).pair


def call(writer: Writer, op: str, operands: list[Value]) -> dict[str, Value]:
    """Call the function of an operation in the precision of the writer; results as from `elementary.call`."""
    if writer.type.bits == 64:
        return elementary.call(writer, op, operands)
    given = ", ".join(f"float {x}" for x in operands)
    name = elementary.function_of(op) + SUFFIX
    if op not in ("sin", "cos"):
        return {op: writer.let(f"call float @{name}({given})")}
    both = writer.let(f"call {PAIR} @{name}({given})")
    return dict(zip(("sin", "cos"), writer.unpack(PAIR, both)))


def definition(name: str, *, near: str, far: str, declared: set[str]) -> str:
    """Return the text of a function in single precision: attributes `near`, and `far` of what is called for
    huge arguments, which needs the function of double precision beside it."""
    writer = Writer(LaneType(32, 1), fma=True, declared=declared)
    if name in _FAR:
        return _reduced_definition(writer, name, near, far)
    return elementary.plain_definition(writer, name + SUFFIX, *_BODIES[name], near)


def _reduced_definition(w: Writer, name: str, near: str, far: str) -> str:
    """Return a function of an angle: the path for small arguments, and the call for large ones."""
    body, count = _FAR[name]
    result = PAIR if count == 2 else "float"
    w.line("entry:")
    rounder = w.constant(ROUNDER)
    shifted = w.fused_multiply_add("%x", w.constant(2.0 / math.pi), rounder)
    r = steps_from(w, "%x", w.sub(shifted, rounder), PIO2)
    values = body(w, r, w.to_bits(shifted))
    beyond = w.compare("ugt", w.abs("%x"), w.constant(MAX_CODY_WAITE_ARGUMENT))
    w.line(f"br i1 {beyond}, label %far, label %done, !prof !0")
    w.line("far:")
    other = w.let(f"call {result} @{name}_far(float %x)")
    others = [other] if count == 1 else w.unpack(PAIR, other)
    w.line("br label %done")
    w.line("done:")
    chosen = [
        w.let(f"phi float [ {value}, %entry ], [ {far_value}, %far ]")
        for value, far_value in zip(values, others)
    ]
    w.line(f"ret {result} {chosen[0] if count == 1 else w.pack(*chosen)}")
    text = function_text(result, name + SUFFIX, "float %x", w.lines, near)
    # The function in double precision, rounded.
    w, double = Writer(w.type, fma=True, declared=w.declared), "double" if count == 1 else elementary.DOUBLES
    found = w.let(f"call {double} @{name}(double {w.let('fpext float %x to double')})")
    parts = [found] if count == 1 else w.unpack(double, found)
    parts = [w.let(f"fptrunc double {part} to float") for part in parts]
    w.line(f"ret {result} {parts[0] if count == 1 else w.pack(*parts)}")
    return function_text(result, f"{name}_far", "float %x", w.lines, far) + text


def _sine_cosine(w: Writer, r: Value, n: Value) -> list[Value]:
    """Write sin and cos of n pi/2 + r."""
    z = w.mul(r, r)
    sine = w.fused_multiply_add(w.mul(z, r), w.polynomial(z, SINE), r)
    cosine = w.fused_multiply_add(
        w.mul(z, z), w.polynomial(z, COSINE), w.fused_multiply_add(z, w.constant(-0.5), w.constant(1.0))
    )
    return [*in_quadrant(w, sine, cosine, n)]


def _tangent(w: Writer, r: Value, n: Value) -> list[Value]:
    """Write tan of n pi/2 + r."""
    z = w.mul(r, r)
    tangent = w.fused_multiply_add(w.mul(z, r), w.polynomial(z, TANGENT), r)
    odd = w.integer_compare("ne", w.integer("and", n, 1), 0)
    return [w.select(odd, w.div(w.constant(-1.0), tangent), tangent)]


def _arc_parts(w: Writer, x: Value) -> tuple[Value, Value, Value]:
    """Return |x| < 1/2; s = |x| or sqrt((1 - |x|)/2); s^3 times the polynomial of asin(s) - s."""
    size = w.abs(x)
    small = w.compare("olt", size, w.constant(0.5))
    half = w.fused_multiply_add(size, w.constant(-0.5), w.constant(0.5))
    z = w.select(small, w.mul(x, x), half)
    s = w.select(small, size, w.sqrt(half))
    return small, s, w.mul(w.mul(s, z), w.polynomial(z, ARCSINE))


def _asin(w: Writer, x: Value) -> Value:
    small, s, rest = _arc_parts(w, x)
    twice = w.fused_multiply_add(w.constant(-2.0), rest, w.constant(PIO2_LOW))
    large = w.add(w.fused_multiply_add(w.constant(-2.0), s, w.constant(PIO2[0])), twice)
    return w.copysign(w.select(small, w.add(s, rest), large), x)


def _acos(w: Writer, x: Value) -> Value:
    small, s, rest = _arc_parts(w, x)
    low, signed = w.constant(PIO2_LOW), w.copysign(rest, x)
    middle = w.sub(w.constant(PIO2[0]), w.sub(x, w.sub(low, signed)))
    right = w.mul(w.constant(2.0), w.add(s, rest))
    left = w.fused_multiply_add(w.constant(-2.0), s, w.constant(2.0 * PIO2[0]))
    left = w.add(left, w.fused_multiply_add(w.constant(-2.0), rest, w.constant(2.0 * PIO2_LOW)))
    outer = w.select(w.compare("olt", x, w.constant(0.0)), left, right)
    return w.select(small, middle, outer)


def _atan2(w: Writer, y: Value, x: Value) -> Value:
    def arctangent(t: Value) -> Value:
        z = w.mul(t, t)
        return w.fused_multiply_add(w.mul(t, z), w.polynomial(z, ARCTANGENT), t)

    return elementary.angle_of(w, y, x, arctangent, near_overflow=2.0**126, pio2=(PIO2[0], PIO2_LOW))


def _exp(w: Writer, x: Value) -> Value:
    bounded = elementary.between(w, x, -105.0, 89.0)
    rounder = w.constant(ROUNDER)
    shifted = w.fused_multiply_add(bounded, w.constant(1.4426950408889634), rounder)
    r = steps_from(w, bounded, w.sub(shifted, rounder), (LN2_HIGH, LN2_LOW))
    tail = w.fused_multiply_add(w.mul(r, r), w.polynomial(r, EXPONENTIAL), r)
    result = w.add(w.constant(1.0), tail)
    return elementary.scale_by_power_of_two(
        w, result, w.integer("sub", w.to_bits(shifted), w.to_bits(rounder))
    )


def _log(w: Writer, x: Value) -> Value:
    zero, one = w.constant(0.0), w.constant(1.0)
    tiny = w.compare("olt", x, w.constant(2.0**-126))
    bits = w.to_bits(w.select(tiny, w.mul(x, w.constant(2.0**25)), x))
    # x = 2^k m with m from sqrt(1/2) to sqrt(2).
    moved = w.integer("sub", bits, 0x3F3504F3)
    k = w.let(f"sitofp i32 {w.integer('ashr', moved, 23)} to float")
    k = w.sub(k, w.select(tiny, w.constant(25.0), zero))
    mantissa = w.from_bits(w.integer("add", w.integer("and", moved, 0x7FFFFF), 0x3F3504F3))
    f = w.sub(mantissa, one)
    z = w.mul(f, f)
    tail = w.mul(w.mul(f, z), w.polynomial(f, LOGARITHM))
    tail = w.fused_multiply_add(k, w.constant(LN2_LOW), tail)
    tail = w.fused_multiply_add(z, w.constant(-0.5), tail)
    result = w.fused_multiply_add(k, w.constant(LN2_HIGH), w.add(f, tail))
    return elementary.logarithm_at_ends(w, x, result)


_FAR: Final[dict[str, tuple[Callable[[Writer, Value, Value], list[Value]], int]]] = {
    "sincos": (_sine_cosine, 2),
    "tan": (_tangent, 1),
}

CALLS_DOUBLE: Final = frozenset(_FAR)
"""The functions that call the one in double precision."""

_BODIES: Final[dict[str, tuple[Callable[..., Value], int]]] = {
    "asin": (_asin, 1),
    "acos": (_acos, 1),
    "atan2": (_atan2, 2),
    "exp": (_exp, 1),
    "log": (_log, 1),
}
