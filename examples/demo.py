"""The bundled humanoid: print its tree, compute its dynamics both ways, check, and time. Run: `make demo`."""

import sys

from dalembert.cli import main

sys.exit(main(["demo"]))
