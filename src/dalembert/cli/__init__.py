"""The command line: `info`, `check`, `convert`, `simulate`, `view`, `count`, `doctor`, `bench`, `demo`.

Each command is the module of its name, whose `run` takes the arguments and returns the exit status. They are
imported when asked for, so that `dalembert --help` and `dalembert --version` answer at once.
"""

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from dalembert.cli.parser import parser
from dalembert.errors import DalembertError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    0: success; 1: a check failed; 2: the command line, or the file it names, was not understood; 130: Ctrl-C.
    `arguments` defaults to `sys.argv[1:]`; none at all asks for help.
    """
    try:
        try:
            return _run((sys.argv[1:] if arguments is None else arguments) or ["--help"])
        finally:
            sys.stdout.flush()  # here, since a reader that has left would be an error at exit otherwise
    except DalembertError as error:
        print(f"dalembert: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _discard_output()
        return 0


def _run(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names of files and bodies may hold what the terminal's encoding does not.
        sys.stdout.reconfigure(errors="backslashreplace")
    status: int = import_module(f"dalembert.cli.{options.command}").run(options)
    return status


def _discard_output() -> None:
    """Send the rest of the output nowhere: the reader of the pipe (head, less) has left, and Python would
    complain again when it flushes at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    finally:
        os.close(nowhere)
