"""Sine and cosine of one angle, together.

    n = round(x 2/pi),  r = x - n pi/2,  polynomials on |r| <= pi/4,  quadrant n mod 4

For |x| up to 1.5e6, r comes from Cody and Waite's reduction with three parts of pi/2 (four shorter ones where
there is no fused multiply-add). Beyond, a lane uses Payne and Hanek's reduction (1983) on its own: the bits
of 2/pi that matter for its exponent.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final

from dalembert.codegen.ir import LaneType, Value, Writer

__all__ = ["ROUNDER", "function_text", "in_quadrant", "sincos_definition", "steps_from"]

MAX_CODY_WAITE_ARGUMENT: Final = 1.5e6
"""[rad] The largest argument of Cody and Waite's reduction: above, n has more than 20 bits, and the three
parts of pi/2 have too few."""

ROUNDER: Final = 1.5 * 2.0**52
"""x + ROUNDER - ROUNDER is x rounded to a whole number, which also stands in the low bits of x + ROUNDER."""

PIO2: Final = (
    float.fromhex("0x1.921fb54442d18p+0"),
    float.fromhex("0x1.1a62633145c07p-54"),
    float.fromhex("-0x1.f1976b7ed8fbcp-110"),
)

PIO2_SHORT: Final = (
    float.fromhex("0x1.921fb544p+0"),
    float.fromhex("0x1.0b4611a6p-34"),
    float.fromhex("0x1.3198a2e0p-69"),
    float.fromhex("0x1.b839a252049c1p-104"),
)
"""pi/2 in pieces of 33 bits, whose products with 20-bit numbers are exact, and a remainder."""

TWO_OVER_PI: Final = (
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561"
    "b7246e3a424dd2e006492eea09d1921cfe1deb1cb129a73ee88235f52ebb4484"
    "e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980f"
    "ef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b"
    "3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6babf0cfbc209af4361d"
)
"""The first 1280 binary digits of 2/pi."""

SINE: Final = (
    -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
    2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
)  # fmt: skip

COSINE: Final = (
    -0.5, 4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
    -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
)  # fmt: skip

SIGN: Final = -(2**63)


def function_text(result: str, name: str, parameters: str, lines: list[str], attributes: str) -> str:
    """Return a function of the module from its lines."""
    body = "\n".join(lines)
    return f"define internal {result} @{name}({parameters}) {attributes} {{\n{body}\n}}\n"


def _two_difference(w: Writer, a: Value, b: Value) -> tuple[Value, Value]:
    """Write Knuth's exact difference: a - b = difference + error."""
    d = w.sub(a, b)
    z = w.sub(d, a)
    return d, w.sub(w.sub(a, w.sub(d, z)), w.add(b, z))


def steps_from(w: Writer, x: Value, n: Value, parts: tuple[float, ...]) -> Value:
    """Write x - n (sum of parts), by fused multiply-adds."""
    minus = w.neg(n)
    for part in parts:
        x = w.fused_multiply_add(minus, w.constant(part), x)
    return x


def _reduce(w: Writer, x: Value) -> tuple[Value, Value]:
    """Write r in [-pi/4, pi/4] with x = n pi/2 + r, and the bits of n, for |x| <= MAX_CODY_WAITE_ARGUMENT."""
    rounder = w.constant(ROUNDER)
    shifted = w.multiply_add(x, w.constant(2.0 / math.pi), rounder)
    n = w.sub(shifted, rounder)
    if w.fma:
        # The first step is exact, the second rounds r once, the third is below its last bit.
        return steps_from(w, x, n, PIO2), w.to_bits(shifted)
    high = w.sub(x, w.mul(n, w.constant(PIO2_SHORT[0])))
    high, error = _two_difference(w, high, w.mul(n, w.constant(PIO2_SHORT[1])))
    high, more = _two_difference(w, high, w.mul(n, w.constant(PIO2_SHORT[2])))
    low = w.sub(w.add(error, more), w.mul(n, w.constant(PIO2_SHORT[3])))
    return w.add(high, low), w.to_bits(shifted)


def _sine_cosine(w: Writer, r: Value, n: Value) -> tuple[Value, Value]:
    """Write sin and cos of n pi/2 + r."""
    z = w.mul(r, r)
    sine = w.multiply_add(w.mul(z, r), w.polynomial(z, SINE), r)
    cosine = w.multiply_add(z, w.polynomial(z, COSINE), w.constant(1.0))
    return in_quadrant(w, sine, cosine, n)


def in_quadrant(w: Writer, sine: Value, cosine: Value, n: Value) -> tuple[Value, Value]:
    """Write sin and cos of n pi/2 + r from those of r."""
    top = w.type.bits - 2
    odd = w.integer_compare("ne", w.integer("and", n, 1), 0)
    sine, cosine = w.select(odd, cosine, sine), w.select(odd, sine, cosine)
    sine_sign = w.integer("shl", w.integer("and", n, 2), top)
    cosine_sign = w.integer("shl", w.integer("and", w.integer("add", n, 1), 2), top)
    return (
        w.from_bits(w.integer("xor", w.to_bits(sine), sine_sign)),
        w.from_bits(w.integer("xor", w.to_bits(cosine), cosine_sign)),
    )


def sincos_definition(w: Writer, attributes: str) -> str:
    text, lanes = w.type.text, w.type.lanes
    result = f"{{ {text}, {text} }}"
    w.line("entry:")
    r, n = _reduce(w, "%x")
    sine, cosine = _sine_cosine(w, r, n)
    huge = w.any(w.compare("ugt", w.abs("%x"), w.constant(MAX_CODY_WAITE_ARGUMENT)))
    w.line(f"br i1 {huge}, label %lane, label %done, !prof !0")
    w.line("lane:")
    if lanes == 1:
        pair = w.let("call { double, double } @sincos_huge(double %x)")
        slow_sine = w.let(f"extractvalue {{ double, double }} {pair}, 0")
        slow_cosine = w.let(f"extractvalue {{ double, double }} {pair}, 1")
        w.line("br label %done")
        source = "lane"
    else:
        w.line("%k = phi i32 [ 0, %entry ], [ %k1, %next ]")
        w.line(f"%s = phi {text} [ {sine}, %entry ], [ %s2, %next ]")
        w.line(f"%c = phi {text} [ {cosine}, %entry ], [ %c2, %next ]")
        own = w.let(f"extractelement {text} %x, i32 %k")
        size = w.let(f"call double @llvm.fabs.f64(double {own})")
        limit = LaneType(64, 1).constant(MAX_CODY_WAITE_ARGUMENT)
        w.line(f"br i1 {w.let(f'fcmp ugt double {size}, {limit}')}, label %slow, label %next")
        w.line("slow:")
        pair = w.let(f"call {{ double, double }} @sincos_huge(double {own})")
        own_sine = w.let(f"extractvalue {{ double, double }} {pair}, 0")
        own_cosine = w.let(f"extractvalue {{ double, double }} {pair}, 1")
        w.line(f"%s1 = insertelement {text} %s, double {own_sine}, i32 %k")
        w.line(f"%c1 = insertelement {text} %c, double {own_cosine}, i32 %k")
        w.line("br label %next")
        w.line("next:")
        w.line(f"%s2 = phi {text} [ %s, %lane ], [ %s1, %slow ]")
        w.line(f"%c2 = phi {text} [ %c, %lane ], [ %c1, %slow ]")
        w.line("%k1 = add i32 %k, 1")
        w.line(f"%more = icmp ult i32 %k1, {lanes}")
        w.line("br i1 %more, label %lane, label %done")
        slow_sine, slow_cosine, source = "%s2", "%c2", "next"
    w.line("done:")
    w.line(f"%sine = phi {text} [ {sine}, %entry ], [ {slow_sine}, %{source} ]")
    w.line(f"%cosine = phi {text} [ {cosine}, %entry ], [ {slow_cosine}, %{source} ]")
    first = w.let(f"insertvalue {result} poison, {text} %sine, 0")
    both = w.let(f"insertvalue {result} {first}, {text} %cosine, 1")
    w.line(f"ret {result} {both}")
    w.declared.add("declare double @llvm.fabs.f64(double)")
    main = function_text(result, "sincos", f"{text} %x", w.lines, attributes)
    return _huge_definition(w, attributes) + main


def _huge_definition(outer: Writer, attributes: str) -> str:
    """Write sin and cos of one huge x = m 2^e by Payne and Hanek.

    Of the digits of 2/pi, those that give multiples of four quarter turns are skipped; 192 digits from
    there, times the 53 bits of m, leave two bits of quadrant and a fraction right to 2^-126 of a quarter
    turn.
    """
    w = Writer(LaneType(64, 1), fma=outer.fma, declared=outer.declared)
    words = ["0" * 16] + [TWO_OVER_PI[k : k + 16] for k in range(0, len(TWO_OVER_PI), 16)]
    table = ", ".join(f"i64 {int(word, 16)}" for word in words)
    w.declared.add("declare i64 @llvm.fshl.i64(i64, i64, i64)")
    w.declared.add("declare i128 @llvm.ctlz.i128(i128, i1)")
    w.line("entry:")
    bits = w.to_bits("%x")
    exponent = w.integer("and", w.integer("lshr", bits, 52), 2047)
    special = w.integer_compare("eq", exponent, 2047)
    w.line(f"br i1 {special}, label %nan, label %finite")
    w.line("nan:")
    w.line("ret { double, double } { double 0x7FF8000000000000, double 0x7FF8000000000000 }")
    w.line("finite:")
    mantissa = w.integer("or", w.integer("and", bits, 2**52 - 1), 2**52)
    position = w.integer("sub", exponent, 1013)
    word, shift = w.integer("lshr", position, 6), w.integer("and", position, 63)
    loaded = []
    for k in range(4):
        index = w.integer("add", word, k)
        place = w.let(f"getelementptr [{len(words)} x i64], ptr @two_over_pi, i64 0, i64 {index}")
        loaded.append(w.let(f"load i64, ptr {place}, align 8"))
    digits = [w.let(f"call i64 @llvm.fshl.i64(i64 {a}, i64 {b}, i64 {shift})") for a, b in pairwise(loaded)]
    wide = [w.let(f"zext i64 {item} to i128") for item in (mantissa, *digits[1:])]
    low = w.let(f"mul i128 {wide[0]}, {wide[2]}")
    middle = w.let(f"mul i128 {wide[0]}, {wide[1]}")
    middle = w.let(f"add i128 {middle}, {w.let(f'lshr i128 {low}, 64')}")
    top = w.let(f"trunc i128 {w.let(f'lshr i128 {middle}, 64')} to i64")
    top = w.integer("add", top, w.integer("mul", mantissa, digits[0]))
    quadrant = w.integer("lshr", w.integer("add", top, 2**61), 62)
    fraction = w.let(f"shl i128 {w.let(f'zext i64 {top} to i128')}, 64")
    fraction = w.let(f"or i128 {fraction}, {w.let(f'and i128 {middle}, {2**64 - 1}')}")
    turned = w.let(f"shl i128 {w.let(f'zext i64 {quadrant} to i128')}, 126")
    fraction = w.let(f"sub i128 {fraction}, {turned}")
    negative = w.let(f"icmp slt i128 {fraction}, 0")
    size = w.let(f"select i1 {negative}, i128 {w.let(f'sub i128 0, {fraction}')}, i128 {fraction}")
    zeros = w.let(f"call i128 @llvm.ctlz.i128(i128 {size}, i1 false)")
    size = w.let(f"shl i128 {size}, {zeros}")
    parts = []
    for distance in (75, 22):
        part = w.let(f"trunc i128 {w.let(f'lshr i128 {size}, {distance}')} to i64")
        parts.append(w.let(f"sitofp i64 {w.integer('and', part, 2**53 - 1)} to double"))
    high, low_part = parts[0], w.mul(parts[1], w.constant(2.0**-53))
    exponent = w.let(f"sub i64 {1023 - 51}, {w.let(f'trunc i128 {zeros} to i64')}")
    scale = w.from_bits(w.integer("shl", exponent, 52))
    small = w.add(w.mul(high, w.constant(PIO2[1])), w.mul(low_part, w.constant(PIO2[0])))
    r = w.mul(w.multiply_add(high, w.constant(PIO2[0]), small), scale)
    r = w.select(negative, w.neg(r), r)
    sine, cosine = _sine_cosine(w, r, quadrant)
    sine = w.from_bits(w.integer("xor", w.to_bits(sine), w.integer("and", bits, SIGN)))
    first = w.let(f"insertvalue {{ double, double }} poison, double {sine}, 0")
    both = w.let(f"insertvalue {{ double, double }} {first}, double {cosine}, 1")
    w.line(f"ret {{ double, double }} {both}")
    constants = f"@two_over_pi = private constant [{len(words)} x i64] [{table}]\n"
    return constants + function_text(
        "{ double, double }", "sincos_huge", "double %x", w.lines, f"{attributes} cold"
    )
