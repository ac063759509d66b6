"""Limits on the size of LLVM functions, and the outlining of a large program into several functions.

LLVM ends the process where a function passes certain limits: assertions and fatal errors call abort(), which
no handler can catch. The one that generated code met (x86-64, LLVM 22):

    ReachingDefAnalysis counts machine instructions since a register was last written, and takes -2^21 for
    "never". In a function that loops, as a kernel does over rows, a register that is not written for 2^21 =
    2,097,152 instructions reaches that number, and an assertion fails ("Defs must be sorted and unique"). A
    loop of 2,089,172 instructions compiles, one of 2,100,694 aborts.

Others are farther away: displacements and jumps of 2^31 bytes (a function has 5 MB of code at most), a frame
of 2^31 bytes (values live in scratch memory), and the stack of the compiling thread, which recursion over a
basic block fills (half a megabyte is enough for blocks of 1,000 instructions). So what LLVM is given is
bounded in every direction:

    function    `MAX_FUNCTION_LINES` lines; a program that cannot be written so is refused
    block       `MAX_BLOCK_LINES` lines
    program     `tracing.graph.MAX_OPERATIONS`

A program above `SPLIT_OPERATIONS` is written as functions of about `FUNCTION_INSTRUCTIONS` instructions, in
modules of about `MODULE_LINES` lines, which are compiled one after another. That bounds what LLVM holds in
memory, and the time for which it does not hear an interrupt, to those of one module.

A cut is like a call: what is needed later goes to the spill slots in scratch memory before it and is loaded
behind it. A condition that is needed later becomes a number, 1 or 0, and a condition again. Each operation
is done on the same values in the same order, so that results have the same bits. A program below
`SPLIT_OPERATIONS` is one function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Final, final

from dalembert.codegen.ir import NEVER, NONEMPTY, Writer
from dalembert.codegen.schedule import Instructions
from dalembert.errors import CompileError
from dalembert.tracing.operations import WEIGHTS

MAX_FUNCTION_LINES: Final = 500_000
"""Lines of LLVM text in one function, divided by the number of registers that a value takes. LLVM aborts at
four times as many machine instructions; a line becomes one or two for each register."""

MAX_BLOCK_LINES: Final = 700
"""Lines of LLVM text in one basic block, about 300 instructions of the graph. LLVM's instruction selection
and scheduler take time and memory that grow with the square of the loads and stores of a block: 20,000 stores
in one block take 14 s and 0.7 GB. Shorter blocks share fewer constants and memory operands."""

SPLIT_OPERATIONS: Final = 300_000
"""Operations of a program above which it is split. The largest programs in daily use are below: derivatives
of the forward dynamics of the bundled humanoid have 175,000. Above, compiling one function takes more than
half a minute."""

FUNCTION_INSTRUCTIONS: Final = 20_000
"""Instructions of the graph in one function of a split program. Of a stack of ten boxes (881,000 operations),
functions of 5,000, 20,000, 50,000 and 100,000 take LLVM 57, 57, 62 and 80 s."""

MIN_FUNCTION_INSTRUCTIONS: Final = 100
"""Instructions of the graph below which code stays where it is: a call costs about ten."""

MODULE_LINES: Final = 40_000
"""Lines of LLVM text in a module of such functions, about a second of LLVM's time."""

SPLIT_CONSTANTS: Final = 10_000
"""Different constants of a program above which it is split: LLVM searches the constants of a function one
by one. A sum of 25,000 products with constants takes it 25 s in one function."""

CONSTANT_WEIGHT: Final = 4
"""Instructions that a new constant counts for, so that a function has 5,000 of them at most."""

_NAME: Final = re.compile(r"%[\w.]+")
_ADDRESS: Final = re.compile(r"getelementptr |load ptr,")
_FIXED_ADDRESS: Final = re.compile(r"getelementptr i8, ptr (%[\w.]+), i64 \d+$")


@final
@dataclass(frozen=True, slots=True)
class OutlinedFunction:
    """A function that the kernel calls: its text, the number of its lines, and its declaration."""

    text: str
    lines: int
    declaration: str


@final
@dataclass(slots=True)
class Outliner:
    """Moves what a writer has written since `open` or the last `cut` into functions, until `close`.

    `length`: instructions of a function, about; 0 leaves all code in place.
    """

    writer: Writer
    attributes: str = ""
    length: int = 0
    functions: list[OutlinedFunction] = field(default_factory=list)
    _start: int | None = None
    _defined: dict[str, str] = field(default_factory=dict)

    def _applies(self, instructions: Instructions) -> bool:
        return self.length > 0 and len(instructions.order) >= MIN_FUNCTION_INSTRUCTIONS

    def cuts(self, instructions: Instructions) -> list[int]:
        """Return the places in the order before which a function ends."""
        return cut_points(instructions, self.length) if self._applies(instructions) else []

    def open(
        self, instructions: Instructions, tasks: Iterable[Callable[[], None]] = ()
    ) -> Callable[[], None] | None:
        """Begin a function for the code that follows, after the tasks, and return what ends it and begins
        another; None where the code stays in place and no task is done."""
        if not self._applies(instructions):
            return None
        for task in tasks:
            task()
        lines = self.writer.lines
        self._start = len(lines)
        self._defined = dict(line.split(" = ", 1) for line in lines if " = " in line)
        return self.cut

    def cut(self) -> None:
        """End the function, call it, and begin another."""
        lines = self.writer.lines
        body = [] if self._start is None else lines[self._start :]
        if not body:
            return
        del lines[self._start :]
        addresses, parameters = self._addresses(_free_names(body) - {NONEMPTY, f"%{NEVER}", "%rows"})
        listed = ", ".join(["i64 %rows", *(f"ptr {name}" for name in parameters)])
        head = f"void @part{len(self.functions)}({listed})"
        code = ["entry:", f"{NONEMPTY} = icmp sgt i64 %rows, 0", *addresses, *body]
        text = [
            f"define {head} {self.attributes} {{",
            *with_short_blocks([*code, "ret void", f"{NEVER}:", "ret void"]),
            "}",
        ]
        self.functions.append(OutlinedFunction("\n".join(text), len(text), f"declare {head}"))
        self.writer.line(f"call {head}")
        self._start = len(lines)

    def cut_long(self) -> None:
        """Begin another function if the present one is as long as a module."""
        if self._start is not None and len(self.writer.lines) - self._start > MODULE_LINES:
            self.cut()

    def close(self) -> None:
        """End the function and call it."""
        self.cut()
        self._start = None

    def _addresses(self, names: Iterable[str]) -> tuple[list[str], list[str]]:
        """Return lines that compute addresses at a fixed distance anew, and the addresses to pass."""
        lines: list[str] = []
        passed: set[str] = set()
        for name in sorted(names):
            definition = self._defined.get(name)
            fixed = _FIXED_ADDRESS.match(definition) if definition else None
            if fixed and fixed[1] not in self._defined:
                lines.append(f"{name} = {definition}")
                passed.add(fixed[1])
            elif definition is None or _ADDRESS.match(definition):
                passed.add(name)
            else:
                raise CompileError(
                    f"a function cannot be given {name} = {definition}, which is not an address"
                )
        return lines, sorted(passed)


def with_short_blocks(lines: list[str], longest: int = MAX_BLOCK_LINES) -> list[str]:
    """Return the lines of a function with no block of more than `longest` lines.

    A long block is ended by a branch on a condition that always holds, as LLVM joins plain ones. Where a phi
    names the block, it gets the name of its last piece.
    """
    starts = [k for k, line in enumerate(lines) if line.endswith(":")]
    if max(b - a for a, b in pairwise([0, *starts, len(lines)])) <= longest:
        return lines
    result: list[str] = []
    last_piece: dict[str, str] = {}
    label, length = "", 0
    for line in lines:
        if line.endswith(":"):
            label, length = line[:-1], 0
        elif length >= longest:
            piece = f"{label}.{len(result)}"
            result += [
                f"%{piece}.rows = icmp sgt i64 %rows, 0",
                f"br i1 %{piece}.rows, label %{piece}, label %{NEVER}",
                f"{piece}:",
            ]
            last_piece[f"%{label} ]"], length = f"%{piece} ]", 0
        result.append(line)
        length += 1
    if last_piece:
        result = [
            re.sub(r"%[\w.]+ \]", lambda found: last_piece.get(found[0], found[0]), line)
            if " = phi " in line
            else line
            for line in result
        ]
    return result


def _free_names(lines: Sequence[str]) -> set[str]:
    """Return the names that lines use and do not define, blocks included."""
    used: set[str] = set()
    own: set[str] = set()
    for line in lines:
        if line.endswith(":"):
            own.add("%" + line[:-1])
            continue
        found = _NAME.findall(line)
        if " = " in line:
            own.add(found[0])
        used.update(found)
    return used - own


def cut_points(instructions: Instructions, length: int) -> list[int]:
    """Return the places in the order before which code is cut into pieces of about `length` instructions,
    and let conditions that are needed behind a cut pass it as numbers."""
    args = instructions.args
    ends = list(accumulate(_weights(instructions)))
    count = -(-ends[-1] // length) if ends else 0
    if count < 2:
        return []
    piece = {node: min(end * count // ends[-1], count - 1) for node, end in zip(instructions.order, ends)}
    crossing = {
        item
        for node in instructions.order
        for item in args[node]
        if instructions.is_mask(item) and piece[item] != piece[node]
    }

    zero, one = instructions.append("constant", (), 0.0), instructions.append("constant", (), 1.0)
    order: list[int] = []
    last = -1
    cuts: list[int] = []
    numbers: dict[int, int] = {}
    as_condition: dict[tuple[int, int], int] = {}
    for node in instructions.order:
        here = piece[node]
        if order and here > piece[last]:
            cuts.append(len(order))
        last = node
        operands = list(args[node])
        for k, item in enumerate(operands):
            if item in crossing and piece[item] != here:
                if (item, here) not in as_condition:
                    as_condition[item, here] = instructions.append("lt", (zero, numbers[item]))
                    order.append(as_condition[item, here])
                operands[k] = as_condition[item, here]
        args[node] = tuple(operands)
        order.append(node)
        if node in crossing:
            numbers[node] = instructions.append("select", (node, one, zero))
            order.append(numbers[node])
    instructions.order = order
    return cuts


def _weights(instructions: Instructions) -> Iterator[int]:
    """Yield the weight of each instruction in order."""
    ops = instructions.ops
    known: set[int] = set()
    for node in instructions.order:
        constants = {item for item in instructions.args[node] if ops[item] == "constant"} - known
        known |= constants
        yield WEIGHTS.get(ops[node], 1) + CONSTANT_WEIGHT * len(constants)


def as_number(instructions: Instructions, condition: int) -> int:
    """Return a new node, computed last, that is 1 where a condition holds and 0 elsewhere."""
    one, zero = instructions.append("constant", (), 1.0), instructions.append("constant", (), 0.0)
    node = instructions.append("select", (condition, one, zero))
    instructions.order.append(node)
    return node


def group_into_modules(functions: Sequence[OutlinedFunction]) -> list[list[OutlinedFunction]]:
    """Return the functions of each module, in order."""
    groups: list[list[OutlinedFunction]] = []
    room = 0
    for function in functions:
        if function.lines > room:
            groups.append([])
            room = MODULE_LINES
        groups[-1].append(function)
        room -= function.lines
    return groups
