"""The bundled humanoid stands, is pushed, steps, falls, and is recorded. Run: `make demo`."""

import sys

from dalembert.cli import main

sys.exit(main(["demo", *(sys.argv[1:] or ["build/demo"])]))
