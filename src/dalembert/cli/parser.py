"""The commands of `dalembert` and their arguments."""

import argparse
import math
import re
from collections.abc import Callable
from typing import Final, NamedTuple, NoReturn, TypeVar, final

from dalembert import __version__

Value = TypeVar("Value")


class Push(NamedTuple):
    """A force [N] along world axes at the centre of mass of a body, from a time on, for a while [s]."""

    body: str
    force: tuple[float, float, float]
    at: float
    lasting: float


def _argument_type(
    read: Callable[[str], Value], admits: Callable[[Value], bool], expected: str
) -> Callable[[str], Value]:
    """Return a parser of an argument that reports texts which `read` or `admits` rejects."""

    def parse(text: str) -> Value:
        try:
            value = read(text)
            if admits(value):
                return value
        except (ValueError, KeyError):
            pass
        raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")

    return parse


def _digits(text: str) -> int:
    return int(text) if text.isdecimal() else -1


def _push(text: str) -> Push:
    """Parse body=NAME,force=X,Y,Z,at=SECONDS,for=SECONDS, in any order."""
    parts = re.split(r"(?:^|,)\s*(body|force|at|for)=", text)
    given = dict(zip(parts[1::2], parts[2::2], strict=True))
    if parts[0] or len(given) * 2 + 1 != len(parts):
        raise ValueError
    x, y, z = (float(number) for number in given["force"].split(","))
    return Push(given["body"], (x, y, z), float(given.get("at", "0")), float(given.get("for", "0.1")))


height = _argument_type(float, math.isfinite, "a height in metres")
positive = _argument_type(float, lambda number: 0.0 < number < math.inf, "a number above zero")
gains = _argument_type(
    lambda text: tuple(map(float, text.split(","))),
    lambda pair: len(pair) == 2 and all(0.0 <= gain < math.inf for gain in pair),
    "two gains from 0 on, KP,KD such as 300,30",
)
count = _argument_type(_digits, lambda number: number >= 0, "a whole number")
positive_count = _argument_type(_digits, lambda number: number > 0, "a whole number above zero")
at_least_two = _argument_type(_digits, lambda number: number > 1, "a whole number, 2 or more")
port = _argument_type(_digits, lambda number: 0 <= number < 65536, "a number from 0 to 65535")
push = _argument_type(
    _push,
    lambda push: all(map(math.isfinite, push.force)) and push.at >= 0.0 and 0.0 < push.lasting < math.inf,
    "body=NAME,force=X,Y,Z,at=SECONDS,for=SECONDS",
)


_FILES: Final = ".urdf, .xml (MJCF), .json, .bvh, .asf and .amc, .txt (DeepMimic)"
_STATUS: Final = "exit status: 0 done; 1 {one}; 2 the file or the command line was not understood"
_EPILOG: Final = """\
examples:
  dalembert info robot.urdf                 the tree, masses, limits, and what was ignored
  dalembert check robot.urdf                whether masses, inertias and limits can be meant
  dalembert convert robot.urdf robot.xml    the same robot in another format
  dalembert simulate humanoid -o fall.html  let physics move it, and look at it in the browser
  dalembert view robot.urdf                 look at it in the browser, and move its joints
  dalembert count arm6                      multiplications and additions of every algorithm on a model
  dalembert doctor                          what this machine offers, and whether the library works on it
"""


@final
class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line; argparse would print all options first."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; {self.prog} --help says more\n")


def parser() -> Parser:
    """Return the parser of the whole command line; `run` of its result is module.function of this package."""
    whole = Parser(
        prog="dalembert",
        description="Rigid-body dynamics, written once in Python and compiled to SIMD machine code.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action="version", version=f"dalembert {__version__}")
    commands = whole.add_subparsers(dest="command", required=True, metavar="command")
    json, reading, motion = Parser(add_help=False), _reading_options(), _motion_options()
    json.add_argument("--json", action="store_true", help="print one JSON object instead of text")

    def command(
        name: str,
        run: str,
        parents: tuple[Parser, ...],
        help: str,
        description: str,
        status: str = "does not occur",
    ) -> Parser:
        epilog = _STATUS.format(one=status)
        added = commands.add_parser(name, parents=parents, help=help, description=description, epilog=epilog)
        added.set_defaults(run=run)
        return added

    info = command(
        "info",
        "model_commands.info",
        (json, reading, motion),
        help="show what a model or motion file holds",
        description="Show the tree of a model with its joints, degrees of freedom and masses, the total "
        "mass, the centre of mass at the neutral pose, limits, and what the loader ignored, doubted or "
        "repaired. For a motion file, show its frames too.",
    )
    info.add_argument("file", nargs="+", metavar="FILE", help=f"{_FILES}; or a bundled model: arm6")

    check = command(
        "check",
        "model_commands.check",
        (json, reading, motion),
        help="check whether a model is physically plausible",
        description="Check for inertias that no body can have, joints that move no mass, frames far from the "
        "bodies they belong to, extreme mass ratios, limits that exclude the neutral pose, and an "
        "ill-conditioned mass matrix. Findings are errors (dynamics are wrong or undefined), warnings "
        "(probably not meant, or digits are lost) and notes.",
        status="errors or warnings were found (with --strict: anything)",
    )
    check.add_argument("file", nargs="+", metavar="FILE", help=f"{_FILES}; or a bundled model: arm6")
    check.add_argument("--strict", action="store_true", help="notes count as findings too")

    convert = command(
        "convert",
        "model_commands.convert",
        (json, reading),
        help="write a model in another format",
        description="Read a model and write it in the format of the second file's ending. What is lost is "
        "listed; a loss that would change the dynamics is refused unless --accept-losses is given.",
        status="nothing was written (the file exists, or its format cannot hold the model)",
    )
    convert.add_argument("source", metavar="A", help="file to read: .urdf, .xml (MJCF), .json, .bvh")
    convert.add_argument("target", metavar="B", help="file to write: .urdf, .xml (MJCF), .json")
    convert.add_argument("--force", action="store_true", help="replace B if it exists")
    convert.add_argument(
        "--accept-losses", action="store_true", help="write B even if its dynamics are not those of A"
    )

    _add_simulate_options(
        command(
            "simulate",
            "simulate.run",
            (json, reading, motion),
            help="simulate a model with contact and pushes",
            description="Simulate a model from a pose and print energies, contacts and the real-time factor. "
            "A figure without a world gets a ground plane. Ctrl-C ends a simulation early; the frames "
            "until then are written.",
            status="a sample failed, or a file was not written; 130 Ctrl-C",
        )
    )

    view = command(
        "view",
        "model_commands.view",
        (reading, motion),
        help="view a model or a motion in the browser",
        description="Show a model with sliders for its joints, or play a motion, in the browser of this "
        "machine, until Ctrl-C. With --html the same page is written to a file instead, which plays in any "
        "browser without Python and without a network.",
        status="nothing was shown or written",
    )
    add = view.add_argument
    add(
        "file",
        nargs="+",
        metavar="FILE",
        help=f"{_FILES}, .npz (trajectory), .html (recording); or a bundled model: humanoid",
    )
    add("--html", metavar="OUT", help="write a recording to this file and show nothing")
    add("--force", action="store_true", help="replace OUT if it exists")
    add("--port", type=port, default=0, metavar="N", help="port (default: any that is free)")
    add("--no-open", action="store_true", help="print the address and open no browser")
    add("--title", metavar="TEXT", help="title of the page (default: the name of the file)")
    add("--fps", type=positive, default=60.0, metavar="N", help="frames per second, at most (default: 60)")
    add("--follow", metavar="BODY", help="the body that the camera follows, or com")
    add("--sample", type=count, default=0, metavar="I", help="which of a batch of trajectories (default: 0)")

    counting = command(
        "count",
        "count.run",
        (json, reading),
        help="count the operations of the algorithms on a model",
        description="Count multiplications and additions of every method on a model, as it is compiled, "
        "beside the published formulas (Featherstone 2008 Table 10.1) where the model is a chain of revolute "
        "joints, and beside the costs of branched trees where it branches.",
    )
    add = counting.add_argument
    add(
        "model",
        metavar="MODEL",
        help="a file (.urdf, .xml, .json), or a bundled model such as arm6, humanoid, gu, binary_tree",
    )
    add("-n", type=positive_count, metavar="N", help="number of joints of gu and binary_tree")
    add(
        "--up-to",
        type=at_least_two,
        metavar="N",
        help="of gu or binary_tree: totals of every size from 2 to N, and where the methods cross",
    )
    add("--all", action="store_true", help="include methods of cubic cost on large models")

    command(
        "doctor",
        "doctor.run",
        (json,),
        help="show versions, CPU features, lanes, cache and GPU, and test the compiler",
        description="Show what the library found on this machine and compile a pendulum to test it.",
        status="something does not work",
    )
    return whole


def _add_simulate_options(simulate: Parser) -> None:
    add = simulate.add_argument
    add("file", metavar="FILE", help=".urdf, .xml (MJCF), .json, .bvh; or a bundled model: humanoid")
    add(
        "-o",
        "--output",
        action="append",
        metavar="OUT",
        help="file to write: .npz, .parquet, .html; repeatable",
    )
    add("--force", action="store_true", help="replace files that exist")
    add("--duration", type=positive, default=5.0, metavar="S", help="simulated seconds (default: 5)")
    add("--dt", type=positive, default=0.002, metavar="S", help="time step in seconds (default: 0.002)")
    add("--every", type=positive_count, metavar="N", help="steps per frame (default: frames of 10 ms)")
    add(
        "--integrator",
        metavar="NAME",
        help="integrator of motion without contact, such as rk4 (default: midpoint)",
    )
    add(
        "--contact",
        choices=("rigid", "compliant", "none"),
        help="contact law (default: rigid if anything can collide)",
    )
    add(
        "--self-collision",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="parts of a figure collide with each other, as the file lets them (default), or pass through",
    )
    add("--no-ground", action="store_true", help="add no ground plane under the figure")
    add(
        "--pose",
        metavar="P",
        help="neutral, a pose of the file (keyframe of MJCF, group state of SRDF), a .json file (q, joints "
        "by name), or an .npz file (q and v; of a trajectory its last frame); default: a pose of the file "
        "whose name begins with standing, half_sitting or home, else where an MJCF file places its "
        "bodies (qpos0), else neutral, within the limits of joints",
    )
    add(
        "--initial-height",
        type=height,
        metavar="M",
        help="height of the lowest point above the ground in metres (default: 0); in a model with its own "
        "world, the increase of the root's height",
    )
    add("--seed", type=count, metavar="N", help="random initial velocities from this seed")
    add("--samples", type=positive_count, metavar="N", help="number of samples, with random velocities")
    motors = simulate.add_mutually_exclusive_group()
    motors.add_argument(
        "--pd", type=gains, metavar="KP,KD", help="servos with these gains hold the initial pose"
    )
    motors.add_argument("--hold", action="store_true", help="stiff servos hold the initial pose")
    add(
        "--push",
        action="append",
        type=push,
        metavar="body=NAME,force=X,Y,Z,at=S,for=S",
        help="push a body at its centre of mass [N]; repeatable",
    )
    add(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="show a progress bar with the real-time factor (default: on a terminal)",
    )


def _reading_options() -> Parser:
    options = Parser(add_help=False)
    reading = options.add_argument_group("how to read a model")
    reading.add_argument(
        "--root",
        choices=("fixed", "floating"),
        help="how the root is attached to the world (default: as the file says)",
    )
    reading.add_argument(
        "--inertia",
        choices=("as_given", "strict", "repair"),
        help="what to do with inertias that no body can have (default: as_given)",
    )
    reading.add_argument(
        "--allow",
        action="append",
        metavar="FOLDER",
        help="another folder below which files that the model names may be; may be repeated",
    )
    reading.add_argument(
        "--trust", action="store_true", help="let the model name files anywhere on this machine"
    )
    return options


def _motion_options() -> Parser:
    options = Parser(add_help=False)
    motion = options.add_argument_group("how to read a motion")
    motion.add_argument("--up", choices=("y", "z"), help="the axis that points up in the file (default: y)")
    motion.add_argument("--scale", type=positive, metavar="S", help="metres in one length unit of the file")
    motion.add_argument("--frame-time", type=positive, metavar="S", help="seconds between frames")
    motion.add_argument("--skip", type=count, metavar="N", help="leave out the first N frames")
    motion.add_argument("--mass", type=positive, metavar="KG", help="mass of the whole figure")
    motion.add_argument("--height", type=positive, metavar="M", help="height of the whole figure")
    return options
