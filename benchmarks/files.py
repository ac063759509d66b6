"""Model files inside packages against the engines that they were written for.

Every URDF file is loaded by us and by Pinocchio, with a fixed and with a floating root; every MJCF file by us
and by MuJoCo. A file agrees if the mass matrix, the bias forces and the forward dynamics are equal to 1e-8 at
20 random moving states. --slow takes more packages, those of them that are installed.
"""

import argparse
import importlib.metadata
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.engines import file_mujoco, file_pinocchio
from tests.engines.file_table import (
    MJCF_PACKAGES,
    SLOW_MJCF_PACKAGES,
    SLOW_URDF_PACKAGES,
    URDF_PACKAGES,
    ModelFile,
    Row,
    files_of,
)

WIDTH = 150


def main() -> int:
    """Print the tables; return 1 if any file differs or fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--slow", action="store_true", help="the large packages instead of the usual ones")
    parser.add_argument("--only", default="", metavar="TEXT", help="files with TEXT in their names")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    urdf = SLOW_URDF_PACKAGES if chosen.slow else URDF_PACKAGES
    mjcf = SLOW_MJCF_PACKAGES if chosen.slow else MJCF_PACKAGES
    rows = [
        *compared("URDF against Pinocchio", urdf, ".urdf", chosen.only, file_pinocchio.row),
        *compared("MJCF against MuJoCo", mjcf, ".xml", chosen.only, file_mujoco.row),
    ]
    return int(any(row.kind in ("differs", "fault") for row in rows))


def compared(
    title: str, packages: Sequence[str], ending: str, only: str, row_of_file: Callable[[ModelFile], Row]
) -> list[Row]:
    """One table with its totals."""
    print(f"{title}: {', '.join(packages)}\n")
    files = [file for file in files_of(installed(packages), ending) if only in file.name]
    rows = [row_of_file(file) for file in files]
    width = max((len(row.name) for row in rows), default=0)
    for row in rows:
        print(f"{row.name:{width}} {'-' if row.nv is None else row.nv:>5}  {row.verdict[:WIDTH]}")
    print("\n" + totals(rows) + "\n")
    return rows


def installed(packages: Sequence[str]) -> list[str]:
    """Those that are there; the others are named."""
    found = []
    for package in packages:
        try:
            importlib.metadata.distribution(package)
            found.append(package)
        except importlib.metadata.PackageNotFoundError:
            print(f"{package} is not installed: pip install --no-deps {package}")
    return found


def totals(rows: Sequence[Row]) -> str:
    """How many of each kind, and the share of those with moving parts which the peer loads."""
    kinds = Counter(row.kind for row in rows)
    counted = len(rows) - kinds["peer refuses"] - kinds["empty"]
    share = f"; {kinds['agrees']} of {counted} = {kinds['agrees'] / counted:.1%} agree" if counted else ""
    return f"{len(rows)} files: " + ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items())) + share


if __name__ == "__main__":
    sys.exit(main())
