"""The `dalembert` command: `doctor`, `bench` and `demo`.

Each command is one module with a `run` function that returns the exit status. They are imported when asked
for, so that `dalembert --help` and `dalembert --version` answer at once.
"""

import argparse
import sys
from collections.abc import Sequence

from dalembert import __version__
from dalembert.errors import DalembertError

__all__ = ["main"]

_EPILOG = """\
examples:
  dalembert doctor          what this machine offers, and whether the library works on it
  dalembert demo            the bundled humanoid: dynamics both ways, checked and timed
  dalembert bench --quick   speed beside Pinocchio, in about twenty seconds
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    0: success; 1: a check failed; 2: the command line was not understood. `arguments` defaults to
    `sys.argv[1:]`.
    """
    options = _parser().parse_args(arguments)
    try:
        return _dispatch(options)
    except DalembertError as error:
        print(f"dalembert: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of a pipe (head, less) has left; Python would complain again when it flushes at exit.
        sys.stderr.close()
        return 0


def _dispatch(options: argparse.Namespace) -> int:
    if options.command == "doctor":
        from dalembert.cli import doctor

        return doctor.run(as_json=options.json)
    if options.command == "bench":
        from dalembert.cli import bench

        return bench.run(quick=options.quick, as_json=options.json)
    from dalembert.cli import demo

    return demo.run(batch=options.batch)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dalembert",
        description="Rigid-body dynamics, written once in Python and compiled to SIMD machine code.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"dalembert {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    doctor = commands.add_parser(
        "doctor",
        help="show versions, CPU features, lanes, cache and GPU, and test the compiler",
        description="Show what the library found on this machine and compile a pendulum to test it. "
        "The exit status is 1 if something does not work.",
    )
    doctor.add_argument("--json", action="store_true", help="print one JSON object instead of text")

    bench = commands.add_parser(
        "bench",
        help="time the central computations, beside Pinocchio where it is installed",
        description="Time forward dynamics, inverse dynamics and the mass matrix of an arm and a humanoid on "
        "one thread, in a batch of 4096 rows and in single calls. Where Pinocchio is installed it runs in "
        "the same process on the same robots and the results are compared first.",
    )
    bench.add_argument("--quick", action="store_true", help="fewer repetitions: about twenty seconds")
    bench.add_argument("--json", action="store_true", help="print one JSON object instead of tables")

    demo = commands.add_parser(
        "demo",
        help="the bundled humanoid: dynamics both ways, checked and timed",
        description="Build the bundled humanoid, print its tree, compute its inverse and forward dynamics on "
        "a batch of random states, check that they invert each other, and print samples per second.",
    )
    demo.add_argument(
        "--batch", type=_positive, default=4096, metavar="N", help="number of states (default: 4096)"
    )
    return parser


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number above zero, got {text!r}")
    return number
