"""The command line: `info`, `check`, `convert`, `simulate`, `view`, `count`, `doctor`, `bench`, `demo`.

Each command is one module with a `run` function that returns the exit status. They are imported when asked
for, so that `dalembert --help` and `dalembert --version` answer at once.
"""

import argparse
import io
import sys
from collections.abc import Sequence

from dalembert.cli.parser import parser
from dalembert.errors import DalembertError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    0: success; 1: a check failed; 2: the command line, or the file it names, was not understood. `arguments`
    defaults to `sys.argv[1:]`.
    """
    options = parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names of files and bodies may hold what the terminal's encoding does not.
        sys.stdout.reconfigure(errors="backslashreplace")
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
    if options.command == "info":
        from dalembert.cli import info

        return info.run(options)
    if options.command == "check":
        from dalembert.cli import check

        return check.run(options)
    if options.command == "convert":
        from dalembert.cli import convert

        return convert.run(options)
    if options.command == "simulate":
        from dalembert.cli import simulate

        return simulate.run(options)
    if options.command == "view":
        from dalembert.cli import view

        return view.run(options)
    if options.command == "count":
        from dalembert.cli import count

        return count.run(options)
    if options.command == "doctor":
        from dalembert.cli import doctor

        return doctor.run(as_json=options.json)
    if options.command == "bench":
        from dalembert.cli import bench

        return bench.run(quick=options.quick, as_json=options.json)
    from dalembert.cli import demo

    return demo.run(folder=options.folder)
