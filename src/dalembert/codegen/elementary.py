"""Elementary functions in plain arithmetic, written once for one lane and for many.

Every function is computed in double precision and without regard to what the other lanes hold, so that the
bits of a sample are the same alone and in any row of a batch; single precision is rounded from it at the
end. Constants and splittings are those of Sun's fdlibm (1993); accuracy is about 1 ulp, sine and cosine
within 2 ulp for every finite argument, NaN for infinity and NaN.

    sine, cosine   n = round(x 2/pi), r = x - n pi/2 in three parts of pi/2 (four shorter ones without fused
                   multiply-add), polynomials on |r| <= pi/4 and the quadrant n mod 4. Above 1.5e6 a lane uses
                   Payne and Hanek's reduction (1983): the bits of 2/pi that matter for its exponent. The sine
                   of -0 is +0.
    atan2          one division: min/max of |x|, |y|, or (min - max)/(min + max) beyond tan(pi/8)
    asin, acos     rational approximation in x^2, or in (1 - |x|)/2 beyond one half
    exp, log       powers of two split off, then polynomials
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Final

from dalembert.codegen.ir import LaneType, Value, Writer, function_text

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
DOUBLES: Final = LaneType(64, 1).pair


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


def _sincos_definition(w: Writer, attributes: str) -> str:
    text, lanes = w.type.text, w.type.lanes
    result = w.type.pair
    w.line("entry:")
    r, n = _reduce(w, "%x")
    sine, cosine = _sine_cosine(w, r, n)
    huge = w.any(w.compare("ugt", w.abs("%x"), w.constant(MAX_CODY_WAITE_ARGUMENT)))
    w.line(f"br i1 {huge}, label %lane, label %done, !prof !0")
    w.line("lane:")
    if lanes == 1:
        slow_sine, slow_cosine = w.unpack(DOUBLES, w.let(f"call {DOUBLES} @sincos_huge(double %x)"))
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
        own_sine, own_cosine = w.unpack(DOUBLES, w.let(f"call {DOUBLES} @sincos_huge(double {own})"))
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
    w.line(f"ret {result} {w.pack('%sine', '%cosine')}")
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
    w.line(f"ret {DOUBLES} {{ double 0x7FF8000000000000, double 0x7FF8000000000000 }}")
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
    w.line(f"ret {DOUBLES} {w.pack(sine, cosine)}")
    constants = f"@two_over_pi = private constant [{len(words)} x i64] [{table}]\n"
    return constants + function_text(DOUBLES, "sincos_huge", "double %x", w.lines, f"{attributes} cold")


ELEMENTARY_OPS: Final = frozenset({"sin", "cos", "tan", "asin", "acos", "atan2", "exp", "log"})
"""Operations that become calls of functions defined here."""

ARCTANGENT: Final = (
    3.33333333333329318027e-01, -1.99999999998764832476e-01, 1.42857142725034663711e-01,
    -1.11111104054623557880e-01, 9.09088713343650656196e-02, -7.69187620504482999495e-02,
    6.66107313738753120669e-02, -5.83357013379057348645e-02, 4.97687799461593236017e-02,
    -3.65315727442169155270e-02, 1.62858201153657823623e-02,
)  # fmt: skip
ARCSINE_P: Final = (
    1.66666666666666657415e-01, -3.25565818622400915405e-01, 2.01212532134862925881e-01,
    -4.00555345006794114027e-02, 7.91534994289814532176e-04, 3.47933107596021167570e-05,
)  # fmt: skip
ARCSINE_Q: Final = (
    1.0, -2.40339491173441421878e00, 2.02094576023350569471e00, -6.88283971605453293030e-01,
    7.70381505559019352791e-02,
)  # fmt: skip
LOGARITHM: Final = (
    6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
    1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01,
)  # fmt: skip
LN2_HIGH: Final = 6.93147180369123816490e-01
LN2_LOW: Final = 1.90821492927058770002e-10
PI: Final = 3.141592653589793
PIO2_LOW: Final = 6.123233995736766e-17


def function_of(op: str) -> str:
    """Return the function that computes an operation: sine and cosine come from the same."""
    return "sincos" if op in ("sin", "cos") else op


def call(writer: Writer, op: str, operands: list[Value]) -> dict[str, Value]:
    """Call the function of an operation: {"sin": …, "cos": …}, or one result by the operation's name."""
    lane_type = writer.type
    name, wide = function_of(op), writer
    if lane_type.bits == 32:
        wide = writer.as_type(LaneType(64, lane_type.lanes))
        operands = [writer.let(f"fpext {lane_type.text} {x} to {wide.type.text}") for x in operands]
    text = wide.type.text
    result = wide.type.pair if name == "sincos" else text
    value = writer.let(f"call {result} @{name}({', '.join(f'{text} {x}' for x in operands)})")
    results = {op: value}
    if name == "sincos":
        results = dict(zip(("sin", "cos"), writer.unpack(result, value)))
    if lane_type.bits == 32:
        results = {
            each: writer.let(f"fptrunc {text} {wide_value} to {lane_type.text}")
            for each, wide_value in results.items()
        }
    return results


def definitions(names: set[str], *, lanes: int, fma: bool, attributes: str, declared: set[str]) -> list[str]:
    """Return the texts of functions, and of all they need, in double precision."""
    texts = []
    for name in sorted(names | ({"sincos"} if "tan" in names else set())):
        writer = Writer(LaneType(64, lanes), fma=fma, declared=declared)
        if name == "sincos":
            texts.append(_sincos_definition(writer, attributes))
        else:
            texts.append(plain_definition(writer, name, *_BODIES[name], attributes))
    return texts


def plain_definition(w: Writer, name: str, body: Callable[..., Value], arity: int, attributes: str) -> str:
    """Return the text of the function `name` of `arity` arguments, whose result `body` writes."""
    text, names = w.type.text, [f"%x{k}" for k in range(arity)]
    result = body(w, *names)
    parameters = ", ".join(f"{text} {item}" for item in names)
    return function_text(text, name, parameters, [*w.lines, f"ret {text} {result}"], attributes)


def _tan(w: Writer, x: Value) -> Value:
    results = call(w, "sin", [x])
    return w.div(results["sin"], results["cos"])


def _arc_parts(w: Writer, x: Value) -> tuple[Value, Value, Value, Value, Value]:
    """Return |x| < 1/2, R = (asin(sqrt z) - sqrt z) / sqrt z, s = sqrt((1 - |x|)/2), s rounded to 21 bits and
    its remainder; z = x^2 or s^2."""
    size = w.abs(x)
    small = w.compare("olt", size, w.constant(0.5))
    half = w.mul(w.sub(w.constant(1.0), size), w.constant(0.5))
    z = w.select(small, w.mul(x, x), half)
    ratio = w.div(w.mul(z, w.polynomial(z, ARCSINE_P)), w.polynomial(z, ARCSINE_Q))
    root = w.sqrt(half)
    short = w.from_bits(w.integer("and", w.to_bits(root), -(2**32)))
    missing = w.div(w.sub(half, w.mul(short, short)), w.add(root, short))
    missing = w.select(w.compare("oeq", root, w.constant(0.0)), w.constant(0.0), missing)
    return small, ratio, root, short, missing


def _asin(w: Writer, x: Value) -> Value:
    small, ratio, root, short, missing = _arc_parts(w, x)
    two = w.constant(2.0)
    p = w.sub(w.mul(w.mul(two, root), ratio), w.sub(w.constant(PIO2_LOW), w.mul(two, missing)))
    quarter = w.constant(PI / 4.0)
    large = w.sub(quarter, w.sub(p, w.sub(quarter, w.mul(two, short))))
    return w.select(small, w.multiply_add(x, ratio, x), w.copysign(large, x))


def _acos(w: Writer, x: Value) -> Value:
    small, ratio, root, short, missing = _arc_parts(w, x)
    two, low = w.constant(2.0), w.constant(PIO2_LOW)
    middle = w.sub(w.constant(PI / 2.0), w.sub(x, w.sub(low, w.mul(x, ratio))))
    scaled = w.mul(ratio, root)
    right = w.mul(two, w.add(short, w.add(scaled, missing)))
    left = w.sub(w.constant(PI), w.mul(two, w.add(root, w.sub(scaled, low))))
    outer = w.select(w.compare("olt", x, w.constant(0.0)), left, right)
    return w.select(small, middle, outer)


def _atan2(w: Writer, y: Value, x: Value) -> Value:
    def arctangent(t: Value) -> Value:
        z = w.mul(t, t)
        return w.sub(t, w.mul(w.mul(t, z), w.polynomial(z, ARCTANGENT)))

    return angle_of(w, y, x, arctangent, near_overflow=2.0**1020, pio2=(PI / 2.0, PIO2_LOW))


def angle_of(
    w: Writer,
    y: Value,
    x: Value,
    arctangent: Callable[[Value], Value],
    *,
    near_overflow: float,
    pio2: tuple[float, float],
) -> Value:
    """Write atan2(y, x) from the arctangent on |t| <= tan(pi/8) and pi/2 in two parts."""
    zero, one = w.constant(0.0), w.constant(1.0)
    ax, ay = w.abs(x), w.abs(y)
    steep = w.compare("ogt", ay, ax)
    largest = w.select(steep, ay, ax)
    least = w.select(steep, ax, ay)
    # Near the largest number the sum below would overflow; infinities of both have the ratio one.
    scale = w.select(w.compare("ogt", largest, w.constant(near_overflow)), w.constant(0.25), one)
    infinite = w.compare("oeq", least, w.constant(float("inf")))
    largest = w.select(infinite, one, w.mul(largest, scale))
    least = w.select(infinite, one, w.mul(least, scale))
    beyond = w.compare("ogt", least, w.mul(largest, w.constant(0.41421356237309503)))
    numerator = w.select(beyond, w.sub(least, largest), least)
    denominator = w.select(beyond, w.add(least, largest), largest)
    angle = arctangent(w.div(numerator, w.select(w.compare("oeq", denominator, zero), one, denominator)))
    high, low = pio2
    quarter = w.add(w.constant(high / 2.0), w.add(angle, w.constant(low / 2.0)))
    angle = w.select(beyond, quarter, angle)
    angle = w.select(steep, w.sub(w.constant(high), w.sub(angle, w.constant(low))), angle)
    negative = w.integer_compare("slt", w.to_bits(x), 0)
    turned = w.sub(w.constant(2.0 * high), w.sub(angle, w.constant(2.0 * low)))
    angle = w.select(negative, turned, angle)
    return w.select(w.compare("uno", x, y), w.add(x, y), w.copysign(angle, y))


def _exp(w: Writer, x: Value) -> Value:
    bounded = between(w, x, -750.0, 710.0)
    rounder = w.constant(ROUNDER)
    shifted = w.multiply_add(bounded, w.constant(1.4426950408889634), rounder)
    k = w.sub(shifted, rounder)
    r = w.sub(w.sub(bounded, w.mul(k, w.constant(LN2_HIGH))), w.mul(k, w.constant(LN2_LOW)))
    factorial, coefficients = 1.0, []
    for power in range(2, 14):
        factorial *= power
        coefficients.append(1.0 / factorial)
    tail = w.multiply_add(w.mul(r, r), w.polynomial(r, tuple(coefficients)), r)
    result = w.add(w.constant(1.0), tail)
    return scale_by_power_of_two(w, result, w.integer("sub", w.to_bits(shifted), w.to_bits(rounder)))


def between(w: Writer, x: Value, low: float, high: float) -> Value:
    """Clamp x to its bounds; NaN stays."""
    greatest, least = w.constant(high), w.constant(low)
    bounded = w.select(w.compare("ogt", x, greatest), greatest, x)
    return w.select(w.compare("olt", bounded, least), least, bounded)


def scale_by_power_of_two(w: Writer, x: Value, power: Value) -> Value:
    """Return x 2^power by two factors: the result may be subnormal or infinite."""
    digits, bias = (52, 1023) if w.type.bits == 64 else (23, 127)
    half = w.integer("ashr", power, 1)
    for part in (half, w.integer("sub", power, half)):
        x = w.mul(x, w.from_bits(w.integer("shl", w.integer("add", part, bias), digits)))
    return x


def _log(w: Writer, x: Value) -> Value:
    tiny = w.compare("olt", x, w.constant(2.0**-1022))
    bits = w.to_bits(w.select(tiny, w.mul(x, w.constant(2.0**54)), x))
    mantissa = w.integer("and", bits, 2**52 - 1)
    carry = w.integer("and", w.integer("add", mantissa, 0x95F64 << 32), 1 << 52)
    reduced = w.from_bits(w.integer("or", mantissa, w.integer("xor", carry, 0x3FF << 52)))
    exponent = w.integer("add", w.integer("lshr", bits, 52), w.integer("lshr", carry, 52))
    biased = w.from_bits(w.integer("or", exponent, w.to_bits(w.constant(2.0**52))))
    offset = w.select(tiny, w.constant(2.0**52 + 1023.0 + 54.0), w.constant(2.0**52 + 1023.0))
    k = w.sub(biased, offset)
    f = w.sub(reduced, w.constant(1.0))
    s = w.div(f, w.add(f, w.constant(2.0)))
    z = w.mul(s, s)
    ratio = w.mul(z, w.polynomial(z, LOGARITHM))
    square = w.mul(w.mul(f, f), w.constant(0.5))
    low = w.multiply_add(s, w.add(square, ratio), w.mul(k, w.constant(LN2_LOW)))
    result = w.sub(w.mul(k, w.constant(LN2_HIGH)), w.sub(w.sub(square, low), f))
    return logarithm_at_ends(w, x, result)


def logarithm_at_ends(w: Writer, x: Value, result: Value) -> Value:
    """Extend log x, which is `result` for positive finite x, to every x."""
    zero, infinity = w.constant(0.0), w.constant(float("inf"))
    result = w.select(w.compare("oeq", x, zero), w.constant(float("-inf")), result)
    result = w.select(w.compare("oeq", x, infinity), infinity, result)
    return w.select(w.compare("ult", x, zero), w.constant(float("nan")), result)


_BODIES: Final[dict[str, tuple[Callable[..., Value], int]]] = {
    "tan": (_tan, 1),
    "asin": (_asin, 1),
    "acos": (_acos, 1),
    "atan2": (_atan2, 2),
    "exp": (_exp, 1),
    "log": (_log, 1),
}
