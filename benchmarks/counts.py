"""Operation counts against Featherstone 2008: GU(n), the sparse factorisations, the example of section 10.4.

m counts multiplications and divisions, a counts additions and subtractions; sines and cosines are not counted
and a change of sign is free. Counting is exact, so this prints the same on every machine.
"""

import argparse
import sys

import numpy as np
from timing import table

import dalembert as da
from dalembert.algorithms import sparse
from dalembert.spatial import Mat3, Vec3
from dalembert.tracing import BOOK_RULES, NO_RULES, RULES, ArrayArgument, count_operations, trace

ALGORITHMS = {"inverse_dynamics": "RNEA", "mass_matrix": "CRBA", "forward_dynamics": "ABA"}


def main() -> int:
    """Print the tables; return 1 where a count is above the book's."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--largest", type=int, default=30, metavar="N", help="longest chain (default: 30)")
    largest = parser.parse_args().largest
    missed = [*chains(largest), *binary_trees(), *factorisations(), *example()]
    print("Every count is at or below the book's." if not missed else "Above the book: " + "; ".join(missed))
    return int(bool(missed))


def chains(largest: int) -> list[str]:
    """RNEA, CRBA and ABA on GU(2) to GU(largest), beside the best line of Table 10.1."""
    print("GU(n): book, ours and ratio of the totals (Table 10.1)\n")
    headers = ["n"]
    for name in ("RNEA", "CRBA", "ABA"):
        headers += [f"{name} book", "ours", "ours m", "ours a", "ratio"]
    rows, missed = [], []
    for n in range(2, largest + 1):
        model, row = da.models.gu(n), [str(n)]
        for name, algorithm in ALGORITHMS.items():
            ours, total = da.analysis.count_function(model, name), da.textbook.published(algorithm, n).total
            row += [str(total), str(ours.total), str(ours.multiplications), str(ours.additions)]
            row.append(f"{ours.total / total:.3f}")
            if ours.total > total:
                missed.append(f"{name} of GU({n})")
        rows.append(row)
    print(table(headers, rows), end="\n\n")
    return missed


def binary_trees() -> list[str]:
    """Forward dynamics of binary trees by both methods, beside chains (Figure 10.5)."""
    print("Forward dynamics, totals: binary trees and chains of general revolute joints (Figure 10.5)\n")
    headers = ["n", "matrix, tree", "ours", "matrix, chain", "ours", "ABA", "ours, tree", "ours, chain"]
    rows, missed = [], []
    for n in (3, 7, 15, 31):
        tree, chain = da.analysis.binary_tree(n), da.models.gu(n)
        book = da.textbook.branched_total(da.textbook.tree_sums(tree)).total
        ours = {
            (model, method): da.analysis.count_function(made, "forward_dynamics", method).total
            for model, made in (("tree", tree), ("chain", chain))
            for method in ("crba", "aba")
        }
        row = [n, book, ours["tree", "crba"], da.textbook.chain_total(n).total, ours["chain", "crba"]]
        row += [da.textbook.published("ABA", n).total, ours["tree", "aba"], ours["chain", "aba"]]
        rows.append([str(cell) for cell in row])
        if ours["tree", "crba"] > book:
            missed.append(f"forward_dynamics by the mass matrix of the binary tree of {n}")
    print(table(headers, rows), end="\n\n")
    return missed


def factorisations() -> list[str]:
    """LTL and LTDL with their solves and products on a branched tree, beside Table 6.6."""
    rng = np.random.default_rng(6)
    lam = [int(rng.integers(-1, k)) if k else -1 for k in range(24)]
    n, (d1, d2) = len(lam), sparse.operation_sums(lam)
    x, H = ArrayArgument("x", (n,)), ArrayArgument("H", (n, n))
    both = {"unit": True}
    lines = {
        "LTL factor": (lambda H: sparse.factor_ltl(H, lam), (H,), (d1 + d2, d2, n)),
        "LTL solve": (lambda L, b: sparse.solve_ltl(L, lam, b), (H, x), (2 * n + 2 * d1, 2 * d1, 0)),
        "L x": (lambda L, b: sparse.multiply_l(L, lam, b), (H, x), (n + d1, d1, 0)),
        "L^T x": (lambda L, b: sparse.multiply_l_transposed(L, lam, b), (H, x), (n + d1, d1, 0)),
        "L^-1 x": (lambda L, b: sparse.solve_l(L, lam, b), (H, x), (n + d1, d1, 0)),
        "L^-T x": (lambda L, b: sparse.solve_l_transposed(L, lam, b), (H, x), (n + d1, d1, 0)),
        "LTDL factor": (lambda H: sparse.factor_ltdl(H, lam), (H,), (d1 + d2, d2, 0)),
        "LTDL solve": (lambda L, D, b: sparse.solve_ltdl(L, D, lam, b), (H, ArrayArgument("D", (n,)), x),
                       (n + 2 * d1, 2 * d1, 0)),
        "L x, unit": (lambda L, b: sparse.multiply_l(L, lam, b, **both), (H, x), (d1, d1, 0)),
        "L^-1 x, unit": (lambda L, b: sparse.solve_l(L, lam, b, **both), (H, x), (d1, d1, 0)),
        "H x": (lambda H, b: sparse.multiply_h(H, lam, b), (H, x), (n + 2 * d1, 2 * d1, 0)),
    }  # fmt: skip
    print(f"Sparse factors on a tree of {n} joints, D1 = {d1}, D2 = {d2} (Table 6.6)\n")
    rows, missed = [], []
    for name, (function, inputs, book) in lines.items():
        count = count_operations(trace(function, inputs).values)
        ours = (count.multiplications, count.additions, count.square_roots)
        rows.append([name, *(str(number) for pair in zip(book, ours) for number in pair)])
        if ours != book:
            missed.append(name)
    print(table(["", "m book", "ours", "a book", "ours", "sqrt book", "ours"], rows), end="\n\n")
    return missed


def example() -> list[str]:
    """tau = (v x I v) . s with I = diag(1.5, 1.6, 1.7) and s = e3: 29 operations become 5 (Table 10.3)."""

    def tau(v):
        I = Mat3(1.5, 0.0, 0.0, 0.0, 1.6, 0.0, 0.0, 0.0, 1.7)
        v = Vec3(*v)
        return v.cross(I @ v).dot(Vec3(0.0, 0.0, 1.0))

    print("tau = (v x I v) . s (section 10.4)\n")
    rows, missed = [], []
    for label, rules, share, book in (
        ("as written", NO_RULES, False, 29),
        ("the book's rules", BOOK_RULES, False, 5),
        ("all our rules", RULES, True, 5),
    ):
        total = count_operations(
            trace(tau, [ArrayArgument("v", (3,))], rules=rules, share=share).values
        ).total
        rows.append([label, str(book), str(total)])
        if total > book:
            missed.append(f"section 10.4, {label}")
    print(table(["", "book", "ours"], rows), end="\n\n")
    return missed


if __name__ == "__main__":
    sys.exit(main())
