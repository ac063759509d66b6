"""The command line: `info`, `check`, `convert`, `simulate`, `view`, `count`, `doctor`.

Each command is a function that takes the arguments and returns the exit status. Its module is imported when
the command is asked for, so that `dalembert --help` and `dalembert --version` answer at once.
"""

import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
        # The reader of the pipe (head, less) has left, and Python would complain again when it flushes at
        # exit: send the rest of the output nowhere.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, sys.stdout.fileno())
        finally:
            os.close(nowhere)
        return 0


def _run(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names of files and bodies may hold what the terminal's encoding does not.
        sys.stdout.reconfigure(errors="backslashreplace")
    with _interrupts_held():
        content = import_module("dalembert.cli.content")
    module, name = options.run.split(".")
    try:
        status: int = getattr(import_module(f"dalembert.cli.{module}"), name)(options)
    except content.NotUnderstood as error:
        if getattr(options, "json", False):
            content.say_json({"file": " ".join(error.files), "readable": False, "error": str(error)})
        content.complain(str(error))
        return 2
    return status


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let Ctrl-C wait until NumPy is imported, whose C code would print tracebacks of its own."""
    came: list[int] = []
    usual = signal.getsignal(signal.SIGINT)
    own = threading.current_thread() is threading.main_thread()
    if not own or usual is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if came:
        raise KeyboardInterrupt
