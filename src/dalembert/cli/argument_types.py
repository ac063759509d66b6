"""Parsers of command-line arguments: numbers, gains, pushes."""

import argparse
import math

__all__ = [
    "at_least_two",
    "count",
    "gains",
    "height",
    "port",
    "positive",
    "positive_count",
    "push",
]


def height(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"expected a height in metres, got {text!r}")
    return number


def gains(text: str) -> tuple[float, float]:
    try:
        kp, kd = (float(number) for number in text.split(","))
    except ValueError:
        kp, kd = math.nan, math.nan
    if not (0.0 <= kp < math.inf and 0.0 <= kd < math.inf):
        raise argparse.ArgumentTypeError(f"expected two gains from 0 on, KP,KD such as 300,30, got {text!r}")
    return kp, kd


def push(text: str) -> object:
    from dalembert.cli import scenario  # what it imports is not needed to print help

    return scenario.push(text)


def count(text: str) -> int:
    number = int(text) if text.isdecimal() else -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}")
    return number


def positive_count(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number above zero, got {text!r}")
    return number


def at_least_two(text: str) -> int:
    number = positive_count(text)
    if number < 2:
        raise argparse.ArgumentTypeError(f"expected 2 or more, got {text!r}")
    return number


def port(text: str) -> int:
    number = int(text) if text.isdecimal() else -1
    if not 0 <= number < 65536:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 65535, got {text!r}")
    return number


def positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number above zero, got {text!r}")
    return number
