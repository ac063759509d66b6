"""Elementary functions in plain arithmetic, written once for one lane and for many.

Every function is computed in double precision and without regard to what the other lanes hold, so that the
bits of a sample are the same alone and in any row of a batch; single precision is rounded from it at the
end. Constants and splittings are those of Sun's fdlibm (1993); accuracy is about 1 ulp, sine and cosine
within 2 ulp for every finite argument, NaN for infinity and NaN.

    sine, cosine   n = round(x 2/pi), r = x - n pi/2 in three parts of pi/2, polynomials on |r| <= pi/4 and
                   the quadrant n mod 4. Above 1.5e6 a lane uses Payne and Hanek's reduction: the bits of 2/pi
                   that matter for its exponent. The sine of -0 is +0.
    atan2          one division: min/max of |x|, |y|, or (min - max)/(min + max) beyond tan(pi/8)
    asin, acos     rational approximation in x^2, or in (1 - |x|)/2 beyond one half
    exp, log       powers of two split off, then polynomials
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dalembert.codegen.ir import LaneType, Value, Writer
from dalembert.codegen.trigonometry import ROUNDER, function_text, sincos_definition

__all__ = [
    "ELEMENTARY_OPS",
    "angle_of",
    "between",
    "call",
    "definition",
    "function_of",
    "logarithm_at_ends",
    "scale_by_power_of_two",
]

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
    result = f"{{ {text}, {text} }}" if name == "sincos" else text
    value = writer.let(f"call {result} @{name}({', '.join(f'{text} {x}' for x in operands)})")
    results = {op: value}
    if name == "sincos":
        results = {
            each: writer.let(f"extractvalue {result} {value}, {k}") for k, each in enumerate(("sin", "cos"))
        }
    if lane_type.bits == 32:
        results = {
            each: writer.let(f"fptrunc {text} {wide_value} to {lane_type.text}")
            for each, wide_value in results.items()
        }
    return results


def definition(name: str, *, lanes: int, fma: bool, attributes: str, declared: set[str]) -> str:
    """Return the text of a function and all it needs."""
    writer = Writer(LaneType(64, lanes), fma=fma, declared=declared)
    text = writer.type.text
    if name == "sincos":
        return sincos_definition(writer, attributes)
    body, arity = _BODIES[name]
    names = [f"%x{k}" for k in range(arity)]
    result = body(writer, *names)
    return function_text(
        text,
        name,
        ", ".join(f"{text} {item}" for item in names),
        [*writer.lines, f"ret {text} {result}"],
        attributes,
    )


def _tan(w: Writer, x: Value) -> Value:
    results = call(w, "sin", [x])
    return w.div(results["sin"], results["cos"])


def _arcsine_ratio(w: Writer, z: Value) -> Value:
    """Write (asin(sqrt z) - sqrt z) / sqrt z on [0, 1/4]."""
    return w.div(w.mul(z, w.polynomial(z, ARCSINE_P)), w.polynomial(z, ARCSINE_Q))


def _arc_parts(w: Writer, x: Value) -> tuple[Value, Value, Value, Value, Value]:
    """Return |x| < 1/2, the ratio R, s = sqrt((1 - |x|)/2), s rounded to 21 bits and its remainder."""
    size = w.abs(x)
    small = w.compare("olt", size, w.constant(0.5))
    half = w.mul(w.sub(w.constant(1.0), size), w.constant(0.5))
    ratio = _arcsine_ratio(w, w.select(small, w.mul(x, x), half))
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
