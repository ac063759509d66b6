"""`dalembert check`: check a model for implausible values."""

import argparse
from dataclasses import asdict

from dalembert.analysis import near_singular_loops
from dalembert.analysis.plausibility import findings
from dalembert.cli.content import content, say, say_json, unreadable
from dalembert.errors import DalembertError

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Print the findings; 1 where there are errors or warnings (`strict`: anything), 2 where the file cannot
    be read.
    """
    try:
        found = content(options.file, options)
    except DalembertError as error:
        return unreadable(options.file, error, as_json=options.json)
    doubts = [*findings(found.model), *near_singular_loops(found.model)]
    failed = any(options.strict or doubt.severity != "note" for doubt in doubts)
    counts = {name: sum(doubt.severity == name for doubt in doubts) for name in ("error", "warning", "note")}
    if options.json:
        say_json(
            {
                "file": found.path,
                "readable": True,
                "ok": not failed,
                "counts": counts,
                "findings": [asdict(doubt) for doubt in doubts],
            }
        )
        return int(failed)
    for doubt in doubts:
        message = doubt.message.replace(f"{found.path} line", "line")  # the last line names the file
        say(f"{doubt.severity}: {doubt.where}: {message} [{doubt.rule}]")
    listed = ", ".join(
        f"{count} {name}{'s' if count != 1 else ''}" for name, count in counts.items() if count
    )
    model = found.model
    say(f"{found.path}: {len(model.bodies)} bodies, nv = {model.nv}: {listed or 'no problems found'}")
    return int(failed)
