"""`dalembert convert`: a model in another format."""

import argparse
from pathlib import Path

import dalembert as da
from dalembert.cli.content import complain, content, say, say_json, unreadable
from dalembert.errors import DalembertError

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Write the model and list what was lost; 1 where nothing was written, 2 where A cannot be read."""
    target = Path(options.target)
    if target.exists() and not options.force:
        return _report_refusal(options, f"{target} exists; give another name, or --force to replace it")
    try:
        found = content([options.source], options)
    except DalembertError as error:
        return unreadable([options.source], error, as_json=options.json)
    model = found.model
    try:
        losses = [*da.save(model, target, accept_losses=options.accept_losses)]
    except DalembertError as error:
        return _report_refusal(options, str(error))
    if found.clip is not None:
        losses.append(f"the motion of {len(found.clip.time)} frames: the format holds the skeleton only")
    if options.json:
        report = list(model.report)
        say_json(
            {"source": found.path, "target": str(target), "written": True, "losses": losses, "report": report}
        )
        return 0
    for line in model.report:
        say(f"read: {line}")
    for line in losses:
        say(f"lost: {line}")
    count = {0: "nothing lost", 1: "1 loss"}.get(len(losses), f"{len(losses)} losses")
    say(f"wrote {target}: {len(model.bodies)} bodies, nq = {model.nq}, nv = {model.nv}, {count}")
    return 0


def _report_refusal(options: argparse.Namespace, reason: str) -> int:
    if options.json:
        say_json({"source": options.source, "target": options.target, "written": False, "error": reason})
    complain(reason)
    return 1
