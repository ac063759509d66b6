"""Elementary functions in single precision, without a double in the common way.

    sine, cosine   n = round(x 2/pi), r = x - n pi/2 in three parts of pi/2 by fused multiply-adds,
                   polynomials on |r| <= pi/4 (Moshier's Cephes, 1989), quadrant n mod 4. Above 1e5 a sample
                   takes the way of double precision, as a call.

The first of the three steps is exact: n pi_1 and x are multiples of 2^-24, and so is their difference, which
is below one.
"""

from __future__ import annotations

import math
from typing import Final

from dalembert.codegen import elementary
from dalembert.codegen.ir import Value, Writer
from dalembert.codegen.trigonometry import function_text

__all__ = ["call", "sincos_definition"]

FAR: Final = 1e5
ROUNDER: Final = 1.5 * 2.0**23
PIO2: Final = (
    float.fromhex("0x1.921fb6p+0"),
    float.fromhex("-0x1.777a5cp-25"),
    float.fromhex("-0x1.ee59dap-50"),
)
SINE: Final = (-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4)
COSINE: Final = (4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5)
PAIR: Final = "{ float, float }"


def call(writer: Writer, op: str, operands: list[Value]) -> dict[str, Value]:
    """As `elementary.call`; sine and cosine in the precision of the writer."""
    if writer.type.bits == 64 or op not in ("sin", "cos"):
        return elementary.call(writer, op, operands)
    both = writer.let(f"call {PAIR} @sincos_single(float {operands[0]})")
    return {name: writer.let(f"extractvalue {PAIR} {both}, {k}") for k, name in enumerate(("sin", "cos"))}


def sincos_definition(writer: Writer, near: str, far: str) -> str:
    """The text of `sincos_single`, with the attributes of the functions for near and far arguments."""
    w = writer
    w.line("entry:")
    rounder = w.constant(ROUNDER)
    shifted = w.fused("%x", w.constant(2.0 / math.pi), rounder)
    minus = w.neg(w.sub(shifted, rounder))
    r = "%x"
    for part in PIO2:
        r = w.fused(minus, w.constant(part), r)
    sine, cosine = _sine_cosine(w, r, w.to_bits(shifted))
    beyond = w.compare("ugt", w.abs("%x"), w.constant(FAR))
    w.line(f"br i1 {beyond}, label %far, label %done, !prof !0")
    w.line("far:")
    pair = w.let(f"call {PAIR} @sincos_far(float %x)")
    far_sine, far_cosine = (w.let(f"extractvalue {PAIR} {pair}, {k}") for k in range(2))
    w.line("br label %done")
    w.line("done:")
    w.line(f"%sine = phi float [ {sine}, %entry ], [ {far_sine}, %far ]")
    w.line(f"%cosine = phi float [ {cosine}, %entry ], [ {far_cosine}, %far ]")
    first = w.let(f"insertvalue {PAIR} poison, float %sine, 0")
    w.line(f"ret {PAIR} {w.let(f'insertvalue {PAIR} {first}, float %cosine, 1')}")
    return _far_definition(far) + function_text(PAIR, "sincos_single", "float %x", w.lines, near)


def _sine_cosine(w: Writer, r: Value, n: Value) -> tuple[Value, Value]:
    """sin and cos of n pi/2 + r."""
    z = w.mul(r, r)
    sine = w.fused(w.mul(z, r), w.polynomial(z, SINE), r)
    cosine = w.fused(w.mul(z, z), w.polynomial(z, COSINE), w.fused(z, w.constant(-0.5), w.constant(1.0)))
    odd = w.integer_compare("ne", w.integer("and", n, 1), 0)
    sine, cosine = w.select(odd, cosine, sine), w.select(odd, sine, cosine)
    sine_sign = w.integer("shl", w.integer("and", n, 2), 30)
    cosine_sign = w.integer("shl", w.integer("and", w.integer("add", n, 1), 2), 30)
    return (
        w.from_bits(w.integer("xor", w.to_bits(sine), sine_sign)),
        w.from_bits(w.integer("xor", w.to_bits(cosine), cosine_sign)),
    )


def _far_definition(attributes: str) -> str:
    wide = "{ double, double }"
    return function_text(
        PAIR,
        "sincos_far",
        "float %x",
        [
            "%wide = fpext float %x to double",
            f"%both = call {wide} @sincos(double %wide)",
            *(
                line
                for k, name in enumerate(("sine", "cosine"))
                for line in (
                    f"%{name}.wide = extractvalue {wide} %both, {k}",
                    f"%{name} = fptrunc double %{name}.wide to float",
                )
            ),
            f"%first = insertvalue {PAIR} poison, float %sine, 0",
            f"%pair = insertvalue {PAIR} %first, float %cosine, 1",
            f"ret {PAIR} %pair",
        ],
        attributes,
    )
