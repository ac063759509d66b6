"""Published operation counts: Table 10.1 of Featherstone 2008, and the costs of branched trees (section
10.3.2).

m counts multiplications and divisions, a counts additions and subtractions; sines and cosines are not
counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from dalembert.algorithms.open_tree import variable_parents
from dalembert.algorithms.sparse import operation_sums
from dalembert.errors import ArgumentError, own_errors
from dalembert.model import topology
from dalembert.model.joints import Revolute
from dalembert.model.model import Model, require_model


class Cost(NamedTuple):
    """A number of multiplications and additions."""

    multiplications: int
    additions: int

    @property
    def total(self) -> int:
        """The sum of both; the book's graphs count an addition like a multiplication."""
        return self.multiplications + self.additions

    def __str__(self) -> str:
        return f"{self.multiplications} m + {self.additions} a"


class PublishedCost(NamedTuple):
    """A line of Table 10.1: the algorithm, its formula, its source, and the cost for n joints."""

    algorithm: str
    formula: str
    source: str
    cost: Callable[[int], Cost]


_EXPONENTS: Final = {"": 0, "n": 1, "n²": 2, "n³": 3}


def _cost_of(formula: str) -> Callable[[int], Cost]:
    """Return the function n -> cost of a formula such as "(n³/6 - 2n/3) m + (n² - 7) a"."""

    def value(polynomial: str, n: int) -> int:
        terms = re.findall(r"(-?) ?\b(?=[\dn])(\d*)(n?[²³]?)(?:/(\d+))?", polynomial)
        coefficients = [(Fraction(int(f"{s}{c or 1}"), int(d or 1)), _EXPONENTS[p]) for s, c, p, d in terms]
        return int(sum(c * n**exponent for c, exponent in coefficients))

    return lambda n: Cost(*(value(polynomial, n) for polynomial in re.findall(r"\((.*?)\)", formula)))


TABLE_10_1: Final = tuple(
    PublishedCost(algorithm, formula, source, _cost_of(formula))
    for algorithm, formula, source in (
        ("RNEA", "(93n - 108) m + (81n - 100) a", "Balafoutis and Patel 1991"),
        ("RNEA", "(93n - 69) m + (81n - 66) a", "Balafoutis et al. 1988"),
        ("RNEA", "(130n - 68) m + (101n - 56) a", "Featherstone 1987"),
        ("RNEA", "(150n - 48) m + (131n - 48) a", "Hollerbach 1980"),
        ("CRBA", "(10n² + 22n - 32) m + (6n² + 37n - 43) a", "Featherstone 2005"),
        ("CRBA", "(10n² + 31n - 41) m + (6n² + 40n - 46) a", "Featherstone 1987"),
        ("CRBA", "(10n² + 41n - 51) m + (6n² + 52n - 58) a", "Lilly and Orin 1991"),
        ("CRBA", "(11n² + 11n - 42) m + (11n²/2 + 65n/2 - 54) a", "Balafoutis and Patel 1989"),
        ("CRBA", "(12n² + 56n - 27) m + (7n² + 67n - 53) a", "Walker and Orin 1982"),
        ("F&S", "(n³/6 + 3n²/2 - 2n/3) m + (n³/6 + n² - 7n/6) a", "Featherstone 2008, Table 6.6"),
        ("ABA", "(224n - 259) m + (205n - 248) a", "McMillan et al. 1995"),
        ("ABA", "(250n - 222) m + (220n - 198) a", "Brandl et al. 1988"),
        ("ABA", "(300n - 267) m + (279n - 259) a", "Featherstone 1987"),
    )
)
"""Featherstone 2008 Table 10.1: chains of n general revolute joints; the book's figures use the first line of
each algorithm."""


@own_errors
def published(algorithm: str, n: int) -> Cost:
    """Return the published cost of "RNEA", "CRBA", "F&S" or "ABA" on n general revolute joints (Figure 10.4).

    For example ABA: cost = (224n - 259) m + (205n - 248) a. `TABLE_10_1` has all formulas.

    Source: Featherstone 2008 Table 10.1.

    >>> print(da.textbook.published("ABA", 6))
    1085 m + 982 a
    """
    found = [line for line in TABLE_10_1 if line.algorithm == algorithm]
    if not found:
        names = ", ".join(dict.fromkeys(line.algorithm for line in TABLE_10_1))
        raise ArgumentError(f'Table 10.1 has no algorithm "{algorithm}"; it has {names}')
    return found[0].cost(n)


@own_errors
def chain_total(n: int) -> Cost:
    """Return cost = RNEA + CRBA + F&S, forward dynamics of a chain of n joints by its mass matrix.

    Source: Featherstone 2008 Table 10.1 and Figure 10.4.

    >>> print(da.textbook.chain_total(8).total, da.textbook.published("ABA", 8).total)
    2921 2925
    """
    return _sum(published(algorithm, n) for algorithm in ("RNEA", "CRBA", "F&S"))


class BranchSums(NamedTuple):
    """The sums on which the cost of a tree depends (Featherstone 2008 Eqs 10.4, 10.5, 10.11 and 6.27).

    `D0` = n - (children of the base): bodies whose inertia is transformed to a parent; `D1` = sum of (depth -
    1): elements of the mass matrix below its diagonal; `D2`: products in its factorisation. `dh` and
    `general` split D0 and D1 into bodies whose transform is two axial screws, one child of each body, and the
    others.
    """

    n: int
    depth: int
    D0: int
    D0_dh: int
    D0_general: int
    D1: int
    D1_dh: int
    D1_general: int
    D2: int


@own_errors
def branch_sums(parents: Sequence[int]) -> BranchSums:
    """Compute D0 = n - |mu(0)|, D1 = sum of (|kappa(i)| - 1) and their parts from a parent array (-1: base).

    The child with the largest subtree has the Denavit-Hartenberg transform.

    Source: Featherstone 2008 section 10.3.2, Eqs 10.4 to 10.11.

    >>> sums = da.textbook.branch_sums([-1, 0, 1, 1])
    >>> print(sums.D0, sums.D0_general, sums.D1, sums.D1_dh)
    3 1 5 4
    """
    n = len(parents)
    subtree_sizes = [1] * n
    for i in reversed(range(n)):
        if parents[i] >= 0:
            subtree_sizes[parents[i]] += subtree_sizes[i]
    inner = [i for i in range(n) if parents[i] >= 0]
    largest = {parents[k]: k for k in sorted(inner, key=lambda k: (subtree_sizes[k], -k))}  # child of each
    dh, general = (
        [i for i in inner if largest[parents[i]] == i],
        [i for i in inner if largest[parents[i]] != i],
    )
    D1, D2 = operation_sums(parents)
    depth = max(topology.depths(tuple(parents)), default=0)
    D1_dh, D1_general = sum(subtree_sizes[i] for i in dh), sum(subtree_sizes[i] for i in general)
    return BranchSums(n, depth, len(inner), len(dh), len(general), D1, D1_dh, D1_general, D2)


@own_errors
def tree_sums(model: Model) -> BranchSums:
    """Compute D1 = sum of (depth - 1) and the other sums of `branch_sums` for a model's velocity variables.

    Couplings fill the mass matrix, so that a model with couplings is counted as a chain.

    Source: Featherstone 2008 section 10.3.2.

    >>> print(da.textbook.tree_sums(da.models.quadruped()).D1)
    99
    """
    require_model(model)
    return branch_sums(variable_parents(model))


@own_errors
def is_general_chain(model: Model) -> bool:
    """Return whether Table 10.1 applies: a chain, parent(i) = i - 1, of revolute joints without loops.

    Source: Featherstone 2008 section 10.3.

    >>> print(da.textbook.is_general_chain(da.models.arm6()))
    True
    """
    return (
        len(model.bodies) > 1
        and not model.loops
        and not model.couplings
        and all(body.parent == body.index - 1 for body in model.bodies)
        and all(isinstance(body.joint, Revolute) for body in model.bodies)
    )


@own_errors
def branched_crba(sums: BranchSums) -> Cost:
    """Return cost = D0 (ra + rx) + D1 vx of the CRBA on a tree of revolute joints.

    A transform has two or three axial screws: D0_dh (32 m + 43 a) + D0_g (47 m + 58 a) + D1_dh (20 m + 12 a)
    + D1_g (24 m + 18 a).

    Source: Featherstone 2008 Eqs 10.10 and 10.12.

    >>> print(da.textbook.branched_crba(da.textbook.branch_sums([-1, 0, 1, 2, 3, 4])))
    460 m + 395 a
    """
    return Cost(
        32 * sums.D0_dh + 47 * sums.D0_general + 20 * sums.D1_dh + 24 * sums.D1_general,
        43 * sums.D0_dh + 58 * sums.D0_general + 12 * sums.D1_dh + 18 * sums.D1_general,
    )


@own_errors
def factor_and_solve(sums: BranchSums) -> Cost:
    """Return cost = (n + 3 D1 + D2) m + (2 D1 + D2) a of L^T D L without fill-in, and one solve.

    Source: Featherstone 2008 Table 6.6, Eqs 6.26 and 6.27.

    >>> print(da.textbook.factor_and_solve(da.textbook.branch_sums([-1, 0, 1, 2, 3, 4])))
    86 m + 65 a
    """
    return Cost(sums.n + 3 * sums.D1 + sums.D2, 2 * sums.D1 + sums.D2)


@own_errors
def branched_total(sums: BranchSums) -> Cost:
    """Return cost = RNEA + CRBA + F&S on a tree, O(n d^2).

    Branches hardly change the cost of RNEA (section 10.3.2).

    Source: Featherstone 2008 Figure 10.5.

    >>> binary = [(i - 1) // 2 for i in range(31)]
    >>> print(da.textbook.branched_total(da.textbook.branch_sums(binary)).total)
    12477
    """
    return _sum((published("RNEA", sums.n), branched_crba(sums), factor_and_solve(sums)))


class Crossovers(NamedTuple):
    """The numbers n of joints at which parts of forward dynamics on chains overtake one another, or None.

    `aba_cheaper`: first n at which ABA costs less than RNEA + CRBA + F&S; `crba_dominant`: first n from which
    CRBA is the largest of the three; `factoring_smallest`: last n at which F&S is the smallest;
    `factoring_overtakes`: first n at which F&S costs more than CRBA. None: not within the numbers examined.
    """

    aba_cheaper: int | None
    crba_dominant: int | None
    factoring_smallest: int | None
    factoring_overtakes: int | None


@own_errors
def crossovers(
    cost: Callable[[str, int], int] | None = None, *, numbers: Sequence[int] = tuple(range(2, 61))
) -> Crossovers:
    """Find the crossovers of Figure 10.4 for the published costs or another `cost(algorithm, n)` (totals).

    The algorithms are "RNEA", "CRBA", "F&S", "ABA", and "matrix" = RNEA + CRBA + F&S.

    Source: Featherstone 2008 section 10.3 and Figure 10.4. (Its text has CRBA dominate from n = 8; the
    formulas give n = 6.)

    >>> da.textbook.crossovers()
    Crossovers(aba_cheaper=9, crba_dominant=6, factoring_smallest=18, factoring_overtakes=45)
    """

    def book(algorithm: str, n: int) -> int:
        return chain_total(n).total if algorithm == "matrix" else published(algorithm, n).total

    price = cost or book
    table = {n: {name: price(name, n) for name in ("RNEA", "CRBA", "F&S", "ABA", "matrix")} for n in numbers}
    dominant = [n for n in numbers if table[n]["CRBA"] >= max(table[n]["RNEA"], table[n]["F&S"])]
    smallest = [n for n in numbers if table[n]["F&S"] <= min(table[n]["RNEA"], table[n]["CRBA"])]
    return Crossovers(
        aba_cheaper=next((n for n in numbers if table[n]["ABA"] < table[n]["matrix"]), None),
        crba_dominant=dominant[0] if dominant else None,
        factoring_smallest=smallest[-1] if smallest and smallest[-1] != numbers[-1] else None,
        factoring_overtakes=next((n for n in numbers if table[n]["F&S"] > table[n]["CRBA"]), None),
    )


def _sum(costs: Iterable[Cost]) -> Cost:
    listed = list(costs)
    return Cost(sum(cost.multiplications for cost in listed), sum(cost.additions for cost in listed))
