"""`dalembert count`: the operation counts of the algorithms on a model, beside the published counts."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dalembert as da
from dalembert import analysis, models
from dalembert.analysis.operation_counts import COSTLY_METHODS
from dalembert.cli.content import content, say, say_json, table, understanding
from dalembert.errors import ArgumentError
from dalembert.model.joints import Revolute
from dalembert.textbook import published_costs
from dalembert.textbook.published_costs import BranchSums, Cost
from dalembert.tracing import OperationCount

MAX_NV_OF_COSTLY_METHODS = 12
"""Velocity variables up to which methods of cubic cost are counted without --all."""

MATRIX = "RNEA + CRBA + F&S"
ALGORITHMS = ("RNEA", "CRBA", "F&S", "ABA", "matrix")
METHODS = {
    "RNEA": ("inverse_dynamics", "rnea"),
    "CRBA": ("mass_matrix", "crba"),
    "ABA": ("forward_dynamics", "aba"),
    "matrix": ("forward_dynamics", "crba"),
}
"""Our functions and methods, by the algorithms of the book."""
DEFAULT_NUMBER = 6


def run(options: argparse.Namespace) -> int:
    """Print the counts; 2 where the model cannot be read."""
    with understanding([options.model]):
        if options.up_to is not None:
            return _series(options)
        name, model = _model(options)
    skip = () if options.all or model.nv <= MAX_NV_OF_COSTLY_METHODS else COSTLY_METHODS
    facts = _facts(name, model, skip)
    if options.json:
        say_json(facts)
    else:
        say(_text(facts, skip))
    return 0


def _model(options: argparse.Namespace) -> tuple[str, da.Model]:
    """Return a family of models by name and number, a bundled model by name, or the content of a file."""
    if options.model in _families() and not Path(options.model).exists():
        model = _families()[options.model](options.n or DEFAULT_NUMBER)
        return model.name, model
    if options.n is not None:
        raise ArgumentError(f'-n is for {" and ".join(_families())}; "{options.model}" has one size')
    found = content([options.model], options)
    return found.path, found.model


def _families() -> dict[str, Callable[[int], da.Model]]:
    return {"gu": models.gu, "binary_tree": analysis.binary_tree}


def _facts(name: str, model: da.Model, skip: Sequence[str]) -> dict[str, Any]:
    sums = published_costs.tree_sums(model)
    revolute = all(isinstance(body.joint, Revolute) for body in model.bodies) and not model.couplings
    methods = analysis.count_methods(model, skip=skip)
    ours = {"F&S": analysis.factoring_count(model)}
    counts = {(found.function, found.method): found.count for found in methods}
    for algorithm, key in METHODS.items():
        if (count := counts[key]) is not None:
            ours[algorithm] = count
    return {
        "model": name,
        "bodies": len(model.bodies),
        "nv": model.nv,
        "sums": sums._asdict(),
        "methods": [
            {
                "function": found.function,
                "method": found.method,
                "count": found.count and asdict(found.count) | {"total": found.count.total},
                "reason": found.reason,
            }
            for found in methods
        ],
        "factor_and_solve": asdict(ours["F&S"]) | {"total": ours["F&S"].total},
        "table_10_1": _book(ours, model.nv) if published_costs.is_general_chain(model) else None,
        "branches": _branches(ours, sums) if revolute and not model.loops and model.nv else None,
    }


def _book(ours: dict[str, OperationCount], n: int) -> list[dict[str, Any]]:
    """Return every line of Table 10.1, ours beside it."""
    lines = [
        _comparison(line.algorithm, line.formula, line.source, line.cost(n), ours[line.algorithm])
        for line in published_costs.TABLE_10_1
    ]
    whole = published_costs.chain_total(n)
    return [*lines, _comparison(MATRIX, "the best of each", "Featherstone 2008", whole, ours["matrix"])]


def _branches(ours: dict[str, OperationCount], sums: BranchSums) -> list[dict[str, Any]]:
    """Return the costs of section 10.3.2, ours beside them."""
    book = published_costs
    return [
        _comparison("CRBA", "Eq. 10.12", "Featherstone 2005", book.branched_crba(sums), ours["CRBA"]),
        _comparison("F&S", "Table 6.6", "Featherstone 2008", book.factor_and_solve(sums), ours["F&S"]),
        _comparison(MATRIX, "Figure 10.5", "Featherstone 2008", book.branched_total(sums), ours["matrix"]),
    ]


def _comparison(
    algorithm: str, formula: str, source: str, book: Cost, count: OperationCount
) -> dict[str, Any]:
    names = ("multiplications", "additions", "total")
    return {
        "algorithm": algorithm,
        "formula": formula,
        "source": source,
        "book": {name: getattr(book, name) for name in names},
        "ours": {name: getattr(count, name) for name in names},
        "ratio": count.total / book.total if book.total else None,
    }


def _text(facts: dict[str, Any], skip: Sequence[str]) -> str:
    sums = facts["sums"]
    parts = [
        f"{facts['model']}: {facts['bodies']} bodies, nv = {facts['nv']}, depth {sums['depth']}; "
        f"D0 = {sums['D0']}, D1 = {sums['D1']}, D2 = {sums['D2']}",
        "m: multiplications and divisions (/), a: additions and subtractions; sines and cosines apart\n",
        _methods_text(facts),
    ]
    if skip:
        parts.append(f"left out: {', '.join(skip)} (--all counts them)")
    refused = [row for row in facts["methods"] if row["count"] is None]
    if refused:
        listed = ", ".join(f"{row['function']} {row['method']}" for row in refused)
        parts.append(f"not for this model: {listed}")
    if facts["table_10_1"]:
        parts += ["", f"Table 10.1 of Featherstone 2008 for n = {facts['nv']}, and ours", ""]
        parts.append(_compared_text(facts["table_10_1"]))
        best = {row["algorithm"]: row for row in reversed(facts["table_10_1"])}
        parts += ["", _cheaper(best[MATRIX], best["ABA"])]
    elif facts["branches"]:
        parts += [
            "",
            f"Branches: D0 = {sums['D0_dh']} + {sums['D0_general']}, D1 = {sums['D1_dh']} + "
            f"{sums['D1_general']} (Denavit-Hartenberg + general transforms)",
            "",
            _compared_text(facts["branches"]),
        ]
    return "\n".join(parts)


def _methods_text(facts: dict[str, Any]) -> str:
    factoring = {"function": "factor and solve", "method": "ltdl", "count": facts["factor_and_solve"]}
    columns = ("multiplications", "additions", "total", "divisions", "trigonometric")
    rows, last = [], ""
    for row in [*facts["methods"], factoring]:
        name, count = row["function"], row["count"]
        if count is not None:
            shown = "" if name == last else name
            rows.append([shown, row["method"], *(str(count[column]) for column in columns)])
            last = name
    return table(["function", "method", "m", "a", "total", "/", "sin cos"], rows, names=2)


def _compared_text(lines: Sequence[dict[str, Any]]) -> str:
    rows = []
    for line in lines:
        row = [line["algorithm"], line["formula"], line["source"]]
        for side in ("book", "ours"):
            row += [str(line[side][key]) for key in ("multiplications", "additions", "total")]
        rows.append([*row, f"{line['ratio']:.2f}" if line["ratio"] else "-"])
    headers = ["algorithm", "formula", "source", "book m", "a", "total", "ours m", "a", "total", "ratio"]
    return table(headers, rows, names=3)


def _cheaper(matrix: dict[str, Any], aba: dict[str, Any]) -> str:
    texts = []
    for side, whose in (("book", "the book's"), ("ours", "our")):
        ratio = matrix[side]["total"] / aba[side]["total"]
        texts.append(
            f"by {whose} counts the mass-matrix method costs {ratio:.2f} times the articulated-body one"
        )
    return "Forward dynamics: " + "; ".join(texts)


def _series(options: argparse.Namespace) -> int:
    """Print the family's costs for every size up to the given one, and where they cross."""
    families = _families()
    if options.model not in families:
        raise ArgumentError(f"--up-to is for the families {' and '.join(families)}")
    numbers = range(2, options.up_to + 1)
    chain = options.model == "gu"
    lines: dict[int, dict[str, dict[str, int]]] = {}
    for n in numbers:
        model = families[options.model](n)
        sums = published_costs.tree_sums(model)
        book = {
            "RNEA": published_costs.published("RNEA", n).total,
            "CRBA": published_costs.branched_crba(sums).total,
            "F&S": published_costs.factor_and_solve(sums).total,
            "ABA": published_costs.published("ABA", n).total,
            "matrix": published_costs.branched_total(sums).total,
        }
        ours = {name: analysis.count_function(model, *key).total for name, key in METHODS.items()}
        ours["F&S"] = analysis.factoring_count(model).total
        lines[n] = {"book": book, "ours": ours}
    found = {side: _crossovers(lines, side) for side in ("book", "ours")}
    if options.json:
        say_json({"family": options.model, "totals": lines, "crossovers": found})
        return 0
    columns = [(name, side) for name in ALGORITHMS for side in ("book", "ours")]
    headers = ["n", *(f"{name} {side}" for name, side in columns)]
    rows = [[str(n), *(str(lines[n][side][name]) for name, side in columns)] for n in numbers]
    say(f"{options.model}: m + a; matrix: forward dynamics by RNEA, CRBA, factors and solve\n")
    say(table(headers, rows))
    say()
    for side, whose in (("book", "the book's counts"), ("ours", "ours")):
        say(f"{whose}: {_crossover_text(found[side], chain=chain)}")
    return 0


def _crossovers(lines: dict[int, dict[str, dict[str, int]]], side: str) -> dict[str, int | None]:
    return published_costs.crossovers(lambda name, n: lines[n][side][name], numbers=tuple(lines))._asdict()


def _crossover_text(found: dict[str, int | None], *, chain: bool) -> str:
    parts = [
        ("aba_cheaper", "ABA is cheaper from n = {}", "ABA is never cheaper"),
        ("crba_dominant", "CRBA is the greatest part from n = {}", "CRBA is never the greatest part"),
        ("factoring_smallest", "F&S is the smallest up to n = {}", "F&S is the smallest throughout"),
        ("factoring_overtakes", "F&S overtakes CRBA at n = {}", "F&S never overtakes CRBA"),
    ]
    return "; ".join(
        (never if found[key] is None else text.format(found[key]))
        for key, text, never in (parts if chain else parts[:1])
    )
