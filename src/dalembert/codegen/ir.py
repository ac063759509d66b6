"""A writer of LLVM's intermediate representation as text, for one lane or many.

A `Writer` appends instructions on values of one `LaneType`: `double`, or a vector whose elements are
samples. A value is the text that names it (`%7`, or a constant). Nothing here knows a processor; no
fast-math flag is ever written, so that each line is one correctly rounded IEEE operation and a lane's bits
never depend on its neighbours.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple, final

Value = str
"""The name of a value in the text, or a constant."""

_ELEMENT: Final = {32: "float", 64: "double"}


def function_text(
    result: str, name: str, parameters: str, lines: list[str], attributes: str, *, exported: bool = False
) -> str:
    """Return a function of the module from its lines."""
    body, linkage = "\n".join(lines), "" if exported else "internal "
    return f"define {linkage}{result} @{name}({parameters}) {attributes} {{\n{body}\n}}\n"


NONEMPTY: Final = "%nonempty"
NEVER: Final = "never"
"""A condition that always holds in a kernel, and the block that ends the function if it did not. A branch on
it ends a long basic block where the code generator would join plain ones."""

TIME_STEP: Final = (
    "time.step:",
    "%now = phi i64 [ 0, %time.enter ], [ %now.next, %time.again ]",
    "%wait = phi i64 [ FIRST, %time.enter ], [ %wait.next, %time.again ]",
    "%written = phi i64 [ 0, %time.enter ], [ %written.next, %time.again ]",
)
TIME_DELIVER: Final = (
    "%wait.less = sub i64 %wait, 1",
    "%due = icmp eq i64 %wait.less, 0",
    "br i1 %due, label %time.deliver, label %time.again",
    "time.deliver:",
)
TIME_AGAIN: Final = (
    "%wait.next = select i1 %due, i64 %every, i64 %wait.less",
    "%written.more = zext i1 %due to i64",
    "%written.next = add i64 %written, %written.more",
    "%now.next = add i64 %now, 1",
    "%again = icmp slt i64 %now.next, %steps",
    "br i1 %again, label %time.step, label %time.over",
    "time.over:",
)
"""The loop of a rollout over `steps` steps, of which FIRST and then every `every`th is written: lines
at the start of a step, after its arithmetic, and, in the block time.again, at its end."""


@final
class LaneType:
    """A type of `lanes` numbers of `bits` bits side by side, one per sample; one lane is a plain scalar."""

    __slots__ = ("align", "bits", "element", "integer", "lanes", "mask", "pair", "size", "suffix", "text")

    def __init__(self, bits: int, lanes: int) -> None:
        self.bits = bits
        self.lanes = lanes
        self.element = _ELEMENT[bits]
        self.text = self.of(self.element)
        self.pair = f"{{ {self.text}, {self.text} }}"
        self.mask = self.of("i1")
        self.integer = self.of(f"i{bits}")
        self.suffix = f"f{bits}" if lanes == 1 else f"v{lanes}f{bits}"
        self.size = bits // 8 * lanes
        self.align = min(self.size, 64)

    def of(self, element: str) -> str:
        """Return the type of one such element per lane."""
        return element if self.lanes == 1 else f"<{self.lanes} x {element}>"

    def splat(self, kind: str, text: object) -> Value:
        """Return the same constant of the type `kind` in every lane."""
        return str(text) if self.lanes == 1 else f"splat ({kind} {text})"

    def constant(self, value: float) -> Value:
        """Return the same number in every lane: its bits as a double, after rounding, in hexadecimal."""
        if self.bits == 32:
            try:
                value = struct.unpack("<f", struct.pack("<f", value))[0]
            except OverflowError:
                value = float("inf") if value > 0 else float("-inf")
        return self.splat(self.element, f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}")


def _arithmetic(name: str) -> Callable[[Writer, Value, Value], Value]:
    """Return the method that writes an operation of LLVM on two numbers."""
    return lambda writer, a, b: writer.let(f"{name} {writer.type.text} {a}, {b}")


class LoopBlocks(NamedTuple):
    """A loop that is being written: its counter, the block that ends an iteration, the block behind it."""

    counter: Value
    tail: str
    after: str


@dataclass(slots=True)
class Writer:
    """A writer that appends instructions to `lines` and adds the intrinsics that they call to `declared`.

    `fma` tells whether the target has a fused multiply-add: `multiply_add` then rounds once, else twice.
    """

    type: LaneType
    fma: bool = field(kw_only=True)
    declared: set[str] = field(kw_only=True)
    lines: list[str] = field(default_factory=list, kw_only=True)
    _names: Iterator[int] = field(default_factory=itertools.count, kw_only=True)
    _constant_offsets: dict[Value, tuple[Value, int]] = field(default_factory=dict, kw_only=True)

    def as_type(self, lane_type: LaneType) -> Writer:
        """Return a writer of another type onto the same lines."""
        return Writer(
            lane_type,
            fma=self.fma,
            declared=self.declared,
            lines=self.lines,
            _names=self._names,
            _constant_offsets=self._constant_offsets,
        )

    def line(self, text: str) -> None:
        self.lines.append(text)

    def let(self, text: str) -> Value:
        """Define a new value by the right-hand side `text`."""
        name = f"%t{next(self._names)}"
        self.lines.append(f"{name} = {text}")
        return name

    def label(self) -> str:
        """Return a new name for a basic block."""
        return f"b{next(self._names)}"

    def begin(self, label: str) -> None:
        """Start the basic block `label`."""
        self.lines.append(f"{label}:")

    # Control flow -------------------------------------------------------------------------------------------

    def jump(self, label: str, then: str | None = None) -> None:
        """Go to the block `label`; begin the block `then`."""
        self.lines.append(f"br label %{label}")
        if then is not None:
            self.begin(then)

    def enter(self, label: str) -> None:
        """Go on in the new block `label`."""
        self.jump(label, then=label)

    def branch(self, condition: Value, yes: str, no: str, then: str | None = None) -> None:
        """Go to the block `yes` if a condition holds, else to `no`; begin the block `then`."""
        self.lines.append(f"br i1 {condition}, label %{yes}, label %{no}")
        if then is not None:
            self.begin(then)

    def leave(self, condition: Value, target: str) -> None:
        """Go to the block `target` if a condition holds, else on."""
        label = self.label()
        self.branch(condition, target, label, then=label)

    def require(self, condition: Value, otherwise: str) -> None:
        """Go on if a condition holds, else to the block `otherwise`."""
        label = self.label()
        self.branch(condition, label, otherwise, then=label)

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """Write what runs only if a condition holds."""
        inside, outside = self.label(), self.label()
        self.branch(condition, inside, outside, then=inside)
        yield
        self.enter(outside)

    def exit_if(self, condition: Value, *lines: str) -> None:
        """Write lines that end the function if a condition holds."""
        inside, outside = self.label(), self.label()
        self.branch(condition, inside, outside, then=inside)
        self.lines += lines
        self.begin(outside)

    @contextmanager
    def loop(
        self,
        count: int | Value,
        *,
        start: int | Value = 0,
        step: int = 1,
        kind: str = "i64",
        after: str | None = None,
        tail: bool = True,
    ) -> Iterator[LoopBlocks]:
        """Write a loop whose counter goes from `start` to below `count`, with at least one iteration.

        Without `tail` the iteration must end in the block that it begins in, and has no block of its own for
        the next number. A block `after` that is given is begun by the caller.
        """
        before, head = self.label(), self.label()
        last = self.label() if tail else head
        behind = after or (self.label() if tail else "")
        counter = f"%{head}.i"
        self.enter(before)
        self.enter(head)
        self.line(f"{counter} = phi {kind} [ {start}, %{before} ], [ {counter}.next, %{last} ]")
        yield LoopBlocks(counter, last, behind)
        if tail:
            self.enter(last)
        behind = behind or self.label()
        self.line(f"{counter}.next = add {kind} {counter}, {step}")
        self.branch(self.let(f"icmp ult {kind} {counter}.next, {count}"), head, behind)
        if after is None:
            self.begin(behind)

    @contextmanager
    def for_each(self, count: Value) -> Iterator[Value]:
        """Write a loop over the numbers below `count`, which may be none."""
        before, head, body, last, after = (self.label() for _ in range(5))
        counter = f"%{head}.i"
        self.enter(before)
        self.enter(head)
        self.line(f"{counter} = phi i64 [ 0, %{before} ], [ {counter}.next, %{last} ]")
        self.branch(self.let(f"icmp ult i64 {counter}, {count}"), body, after, then=body)
        yield counter
        self.enter(last)
        self.line(f"{counter}.next = add i64 {counter}, 1")
        self.jump(head, then=after)

    def intrinsic(self, name: str, *operands: Value) -> Value:
        """Call the lane-wise intrinsic `llvm.<name>` on operands of this type."""
        text = self.type.text
        function = f"@llvm.{name}.{self.type.suffix}"
        self.declared.add(f"declare {text} {function}({', '.join([text] * len(operands))})")
        return self.let(f"call {text} {function}({', '.join(f'{text} {item}' for item in operands)})")

    # Memory -------------------------------------------------------------------------------------------------

    def address(self, base: Value, byte_offset: int | Value) -> Value:
        """Return the address `byte_offset` [bytes] behind `base`.

        Constant offsets are added up and refer to the first address of their chain. An address that thousands
        of others are computed from costs LLVM time that grows with the square of their number.
        """
        root, distance = self.constant_offset(base)
        if isinstance(byte_offset, str):
            return self.let(f"getelementptr i8, ptr {base}, i64 {byte_offset}")
        if distance + byte_offset == 0:
            return root
        found = self.let(f"getelementptr i8, ptr {root}, i64 {distance + byte_offset}")
        self._constant_offsets[found] = root, distance + byte_offset
        return found

    def constant_offset(self, address: Value) -> tuple[Value, int]:
        """Return the address that this one was computed from by a constant offset, and the offset [bytes]."""
        return self._constant_offsets.get(address, (address, 0))

    def load(self, base: Value, byte_offset: int | Value, align: int) -> Value:
        return self.let(f"load {self.type.text}, ptr {self.address(base, byte_offset)}, align {align}")

    def store(self, value: Value, base: Value, byte_offset: int | Value, align: int) -> None:
        self.line(f"store {self.type.text} {value}, ptr {self.address(base, byte_offset)}, align {align}")

    def read(self, kind: str, base: Value, byte_offset: int | Value = 0, align: int = 8) -> Value:
        """Load a value of the type `kind`."""
        return self.let(f"load {kind}, ptr {self.address(base, byte_offset)}, align {align}")

    def write(self, kind: str, value: Value, base: Value, byte_offset: int | Value = 0) -> None:
        """Store a value of the type `kind`."""
        self.line(f"store {kind} {value}, ptr {self.address(base, byte_offset)}, align 8")

    def pack(self, first: Value, second: Value) -> Value:
        """Write the pair of two values."""
        kind, text = self.type.pair, self.type.text
        half = self.let(f"insertvalue {kind} poison, {text} {first}, 0")
        return self.let(f"insertvalue {kind} {half}, {text} {second}, 1")

    def unpack(self, kind: str, pair: Value) -> list[Value]:
        """Write the two values of a pair of the type `kind`."""
        return [self.let(f"extractvalue {kind} {pair}, {k}") for k in range(2)]

    def splat(self, kind: str, number: Value) -> Value:
        """Write one number of the type `kind` in every lane."""
        if self.type.lanes == 1:
            return number
        text = self.type.of(kind)
        first = self.let(f"insertelement {text} poison, {kind} {number}, i32 0")
        zeros = f"<{self.type.lanes} x i32> zeroinitializer"
        return self.let(f"shufflevector {text} {first}, {text} poison, {zeros}")

    # Arithmetic ---------------------------------------------------------------------------------------------

    def constant(self, value: float) -> Value:
        return self.type.constant(value)

    add, sub, mul, div = (_arithmetic(name) for name in ("fadd", "fsub", "fmul", "fdiv"))

    def neg(self, a: Value) -> Value:
        return self.let(f"fneg {self.type.text} {a}")

    def abs(self, a: Value) -> Value:
        return self.intrinsic("fabs", a)

    def sqrt(self, a: Value) -> Value:
        return self.intrinsic("sqrt", a)

    def fused_multiply_add(self, a: Value, b: Value, c: Value) -> Value:
        """Write a b + c, rounded once; only for targets that have it."""
        return self.intrinsic("fma", a, b, c)

    def multiply_add(self, a: Value, b: Value, c: Value) -> Value:
        """Write a b + c, fused if the target has it; the same in scalar and lane code."""
        return self.fused_multiply_add(a, b, c) if self.fma else self.add(self.mul(a, b), c)

    def polynomial(self, x: Value, coefficients: tuple[float, ...]) -> Value:
        """Write the sum of coefficients[k] x^k by Horner's rule."""
        result = self.constant(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = self.multiply_add(result, x, self.constant(coefficient))
        return result

    def floor(self, a: Value) -> Value:
        """Write the largest whole number not above a, for which baseline x86 has no instruction.

        Adding and subtracting 2^52 (2^23) rounds to a whole number; from there on all numbers are whole.
        """
        whole = self.constant(2.0**52 if self.type.bits == 64 else 2.0**23)
        size = self.abs(a)
        signed = self.copysign(whole, a)
        rounded = self.sub(self.add(a, signed), signed)
        above = self.compare("ogt", rounded, a)
        lower = self.sub(rounded, self.select(above, self.constant(1.0), self.constant(0.0)))
        inside = self.compare("olt", size, whole)
        zero = self.compare("oeq", lower, self.constant(0.0))  # of the sign of a
        lower = self.select(zero, self.copysign(self.constant(0.0), a), lower)
        return self.select(inside, lower, a)

    def copysign(self, size: Value, sign: Value) -> Value:
        return self.intrinsic("copysign", size, sign)

    # Conditions ---------------------------------------------------------------------------------------------

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        return self.let(f"fcmp {predicate} {self.type.text} {a}, {b}")

    def select(self, mask: Value, a: Value, b: Value) -> Value:
        text = self.type.text
        # Without this LLVM makes branches of some, which takes it most of its time and serves nothing.
        plain = ", !unpredictable !{}" if self.type.mask == "i1" else ""
        return self.let(f"select {self.type.mask} {mask}, {text} {a}, {text} {b}{plain}")

    def logic(self, operation: str, a: Value, b: Value) -> Value:
        return self.let(f"{operation} {self.type.mask} {a}, {b}")

    def invert(self, mask: Value) -> Value:
        return self.let(f"xor {self.type.mask} {mask}, {self.type.splat('i1', 'true')}")

    def any(self, mask: Value) -> Value:
        """Write one bit: whether the condition holds in any lane."""
        return self._reduce("or", mask)

    def every(self, mask: Value) -> Value:
        """Write one bit: whether the condition holds in all lanes."""
        return self._reduce("and", mask)

    def _reduce(self, operation: str, mask: Value) -> Value:
        if self.type.lanes == 1:
            return mask
        function = f"@llvm.vector.reduce.{operation}.v{self.type.lanes}i1"
        self.declared.add(f"declare i1 {function}({self.type.mask})")
        return self.let(f"call i1 {function}({self.type.mask} {mask})")

    # Integers as wide as the float -------------------------------------------------------------------------

    def to_bits(self, a: Value) -> Value:
        return self.let(f"bitcast {self.type.text} {a} to {self.type.integer}")

    def from_bits(self, a: Value) -> Value:
        return self.let(f"bitcast {self.type.integer} {a} to {self.type.text}")

    def integer(self, operation: str, a: Value, b: Value | int) -> Value:
        """Write an integer operation of LLVM: add, sub, and, or, xor, shl, lshr, ashr."""
        right = self.type.splat(f"i{self.type.bits}", b) if isinstance(b, int) else b
        return self.let(f"{operation} {self.type.integer} {a}, {right}")

    def integer_compare(self, predicate: str, a: Value, b: Value | int) -> Value:
        return self.integer(f"icmp {predicate}", a, b)


@final
class RecordWriter(Writer):
    """A writer of a function that reads a record of 64-bit words at the address `base`, named by `fields`."""

    __slots__ = ("base", "fields")

    def __init__(self, fields: tuple[str, ...], base: Value) -> None:
        super().__init__(LaneType(64, 1), fma=False, declared=set())
        self.fields = fields
        self.base = base
        self.begin("entry")

    def at(self, field: str) -> Value:
        """Write the address of a word."""
        return self.address(self.base, 8 * self.fields.index(field))

    def word(self, field: str, kind: str = "i64") -> Value:
        """Load a word."""
        return self.read(kind, self.at(field))
