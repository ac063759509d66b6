"""The arguments of the `dalembert` command."""

import argparse
from typing import NoReturn, final

from dalembert import __version__
from dalembert.cli.argument_types import (
    at_least_two,
    count,
    gains,
    height,
    port,
    positive,
    positive_count,
    push,
)

__all__ = ["parser"]

_EPILOG = """\
examples:
  dalembert info robot.urdf                 the tree, masses, limits, and what was ignored
  dalembert check robot.urdf                whether masses, inertias and limits can be meant
  dalembert convert robot.urdf robot.xml    the same robot in another format
  dalembert simulate humanoid -o fall.html  let physics move it, and look at it in the browser
  dalembert view robot.urdf                 look at it in the browser, and move its joints
  dalembert count arm6                      multiplications and additions of every algorithm on a model
  dalembert doctor                          what this machine offers, and whether the library works on it
  dalembert demo                            the bundled humanoid stands, is pushed and falls, on record
  dalembert bench --quick                   speed beside Pinocchio, in about twenty seconds
"""

_FILES = ".urdf, .xml (MJCF), .json, .bvh, .asf and .amc, .txt (DeepMimic)"
_STATUS = "exit status: 0 done; 1 {one}; 2 the file or the command line was not understood"


@final
class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line; argparse would print all options first."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; {self.prog} --help says more\n")


def parser() -> Parser:
    """Return the parser of the whole command line."""
    whole = Parser(
        prog="dalembert",
        description="Rigid-body dynamics, written once in Python and compiled to SIMD machine code.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action="version", version=f"dalembert {__version__}")
    commands = whole.add_subparsers(dest="command", required=True, metavar="command")
    for add in (
        _add_info,
        _add_check,
        _add_convert,
        _add_simulate,
        _add_view,
        _add_count,
        _add_doctor,
        _add_bench,
        _add_demo,
    ):
        add(commands)
    return whole


Commands = argparse._SubParsersAction  # the only name that argparse has for it


def _add_info(commands: "Commands[Parser]") -> None:
    info = commands.add_parser(
        "info",
        help="show what a model or motion file holds",
        description="Show the tree of a model with its joints, degrees of freedom and masses, the total "
        "mass, the centre of mass at the neutral pose, limits, and what the loader ignored, doubted or "
        "repaired. For a motion file, show its frames too.",
        epilog=_STATUS.format(one="does not occur"),
    )
    info.add_argument("file", nargs="+", metavar="FILE", help=f"{_FILES}; or a bundled model: arm6")
    _add_reading(info)
    _add_motion(info)
    _add_json(info)


def _add_check(commands: "Commands[Parser]") -> None:
    check = commands.add_parser(
        "check",
        help="check whether a model is physically plausible",
        description="Check for inertias that no body can have, joints that move no mass, frames far from the "
        "bodies they belong to, extreme mass ratios, limits that exclude the neutral pose, and an "
        "ill-conditioned mass matrix. Findings are errors (dynamics are wrong or undefined), warnings "
        "(probably not meant, or digits are lost) and notes.",
        epilog=_STATUS.format(one="errors or warnings were found (with --strict: anything)"),
    )
    check.add_argument("file", nargs="+", metavar="FILE", help=f"{_FILES}; or a bundled model: arm6")
    _add_reading(check)
    _add_motion(check)
    check.add_argument("--strict", action="store_true", help="notes count as findings too")
    _add_json(check)


def _add_convert(commands: "Commands[Parser]") -> None:
    convert = commands.add_parser(
        "convert",
        help="write a model in another format",
        description="Read a model and write it in the format of the second file's ending. What is lost is "
        "listed; a loss that would change the dynamics is refused unless --accept-losses is given.",
        epilog=_STATUS.format(
            one="nothing was written (the file exists, or its format cannot hold the model)"
        ),
    )
    convert.add_argument("source", metavar="A", help="file to read: .urdf, .xml (MJCF), .json, .bvh")
    convert.add_argument("target", metavar="B", help="file to write: .urdf, .xml (MJCF), .json")
    convert.add_argument("--force", action="store_true", help="replace B if it exists")
    convert.add_argument(
        "--accept-losses", action="store_true", help="write B even if its dynamics are not those of A"
    )
    _add_reading(convert)
    _add_json(convert)


def _add_simulate(commands: "Commands[Parser]") -> None:
    simulate = commands.add_parser(
        "simulate",
        help="simulate a model with contact and pushes",
        description="Simulate a model from a pose and print energies, contacts and the real-time factor. A "
        "free figure without a world gets a ground plane. Ctrl-C ends a simulation early; the frames until "
        "then are written.",
        epilog=_STATUS.format(one="a sample failed, or a file was not written; 130 Ctrl-C"),
    )
    simulate.add_argument(
        "file", metavar="FILE", help=".urdf, .xml (MJCF), .json, .bvh; or a bundled model: humanoid"
    )
    add = simulate.add_argument
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
        help="contact law (default: rigid on a ground, or if free bodies have something to touch)",
    )
    add(
        "--self-collision",
        action="store_true",
        help="parts of a figure collide with each other (slow to compile)",
    )
    add("--no-ground", action="store_true", help="add no ground plane under a free figure")
    add(
        "--pose",
        metavar="P",
        help="neutral, a keyframe of an MJCF file, a .json file (q, or joints by name), or an .npz file (q "
        "and v; of a trajectory its last frame); default: where an MJCF file places its bodies, else neutral",
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
    _add_json(simulate)
    _add_reading(simulate)
    _add_motion(simulate)


def _add_view(commands: "Commands[Parser]") -> None:
    view = commands.add_parser(
        "view",
        help="view a model or a motion in the browser",
        description="Show a model with sliders for its joints, or play a motion, in the browser of this "
        "machine, until Ctrl-C. With --html the same page is written to a file instead, which plays in any "
        "browser without Python and without a network.",
        epilog=_STATUS.format(one="nothing was shown or written"),
    )
    view.add_argument(
        "file",
        nargs="+",
        metavar="FILE",
        help=f"{_FILES}, .npz (trajectory), .html (recording); or a bundled model: humanoid",
    )
    view.add_argument("--html", metavar="OUT", help="write a recording to this file and show nothing")
    view.add_argument("--force", action="store_true", help="replace OUT if it exists")
    view.add_argument("--port", type=port, default=0, metavar="N", help="port (default: any that is free)")
    view.add_argument("--no-open", action="store_true", help="print the address and open no browser")
    view.add_argument("--title", metavar="TEXT", help="title of the page (default: the name of the file)")
    view.add_argument(
        "--fps", type=positive, default=60.0, metavar="N", help="frames per second, at most (default: 60)"
    )
    view.add_argument("--follow", metavar="BODY", help="the body that the camera follows, or com")
    view.add_argument(
        "--sample", type=count, default=0, metavar="I", help="which of a batch of trajectories (default: 0)"
    )
    _add_reading(view)
    _add_motion(view)


def _add_count(commands: "Commands[Parser]") -> None:
    counting = commands.add_parser(
        "count",
        help="count the operations of the algorithms on a model",
        description="Count multiplications and additions of every method on a model, as it is compiled, "
        "beside the published formulas (Featherstone 2008 Table 10.1) where the model is a chain of revolute "
        "joints, and beside the costs of branched trees where it branches.",
        epilog=_STATUS.format(one="does not occur"),
    )
    counting.add_argument(
        "model",
        metavar="MODEL",
        help="a file (.urdf, .xml, .json), or a bundled model such as arm6, humanoid, gu, binary_tree",
    )
    counting.add_argument(
        "-n", type=positive_count, metavar="N", help="number of joints of gu and binary_tree"
    )
    counting.add_argument(
        "--up-to",
        type=at_least_two,
        metavar="N",
        help="of gu or binary_tree: totals of every size from 2 to N, and where the methods cross",
    )
    counting.add_argument("--all", action="store_true", help="include methods of cubic cost on large models")
    _add_reading(counting)
    _add_json(counting)


def _add_doctor(commands: "Commands[Parser]") -> None:
    doctor = commands.add_parser(
        "doctor",
        help="show versions, CPU features, lanes, cache and GPU, and test the compiler",
        description="Show what the library found on this machine and compile a pendulum to test it. "
        "The exit status is 1 if something does not work.",
    )
    _add_json(doctor)


def _add_bench(commands: "Commands[Parser]") -> None:
    bench = commands.add_parser(
        "bench",
        help="time the central computations, beside Pinocchio where it is installed",
        description="Time forward dynamics, inverse dynamics and the mass matrix of an arm and a humanoid on "
        "one thread, in a batch of 4096 rows and in single calls. Where Pinocchio is installed it runs in "
        "the same process on the same robots and the results are compared first.",
    )
    bench.add_argument("--quick", action="store_true", help="fewer repetitions: about twenty seconds")
    _add_json(bench)


def _add_demo(commands: "Commands[Parser]") -> None:
    demo = commands.add_parser(
        "demo",
        help="the bundled humanoid stands, is pushed, steps, falls, and is recorded",
        description="Simulate the bundled humanoid with contact: it stands under stable PD control, is "
        "pushed several times, and falls in the end. Prints energies, contacts and the real-time factor, and "
        "writes demo.html, a recording for any browser, and demo.png, a strip of pictures.",
    )
    demo.add_argument(
        "folder", nargs="?", default=".", metavar="FOLDER", help="where to write (default: here)"
    )


def _add_json(command: Parser) -> None:
    command.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def _add_reading(command: Parser) -> None:
    reading = command.add_argument_group("how to read a model")
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


def _add_motion(command: Parser) -> None:
    motion = command.add_argument_group("how to read a motion")
    motion.add_argument("--up", choices=("y", "z"), help="the axis that points up in the file (default: y)")
    motion.add_argument("--scale", type=positive, metavar="S", help="metres in one length unit of the file")
    motion.add_argument("--frame-time", type=positive, metavar="S", help="seconds between frames")
    motion.add_argument("--skip", type=count, metavar="N", help="leave out the first N frames")
    motion.add_argument("--mass", type=positive, metavar="KG", help="mass of the whole figure")
    motion.add_argument("--height", type=positive, metavar="M", help="height of the whole figure")
