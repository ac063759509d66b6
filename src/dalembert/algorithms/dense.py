"""Vectors and matrices as lists of generic scalars: sums and products, of any size.

Entries that are literal zeros are left out of sums, so that a product of sparse blocks costs what it must
even where nothing folds it afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from dalembert.scalar import Scalar, Scalars, absolute, is_one, is_zero, maximum, select
from dalembert.scalar.row_sets import sum_all

Matrix = list[list[Scalar]]
"""By rows."""
Vector = list[Scalar]
Rows = Sequence[Scalars]
"""A matrix that is only read."""


def dot(a: Scalars, b: Scalars) -> Scalar:
    """Return a^T b; the literal 0.0 if there is nothing to add."""
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        if not (is_zero(x) or is_zero(y)):
            total = x * y if is_zero(total) else total + x * y
    return total


def inner_product(a: Scalars, b: Scalars) -> Scalar:
    """Return a^T b of vectors of all variables of a tree, which may be wide (`scalar.Rows.every`)."""
    products = zip(a, b, strict=True)
    return sum_all(x * y for x, y in products if not (is_zero(x) or is_zero(y)))


def total(values: Iterable[Any], zero: Any = 0.0) -> Any:
    """Return the sum, term after term, as compiled code does; Python's `sum` compensates errors of floats."""
    for value in values:
        zero = zero + value
    return zero


def largest(values: Iterable[Scalar], least: Scalar = 0.0) -> Scalar:
    """Return the largest of the values, or `least` if that is larger."""
    for value in values:
        least = maximum(least, value)
    return least


def times(A: Rows, x: Scalars) -> Vector:
    """Return A x."""
    return [dot(row, x) for row in A]


def product(A: Rows, B: Rows) -> Matrix:
    """Return A B."""
    columns = transpose(B)
    return [[dot(row, column) for column in columns] for row in A]


def symmetric_product(A: Rows, B: Rows) -> Matrix:
    """Return A B^T, which is known to be symmetric: half of it is computed."""
    lower = [[dot(A[i], B[j]) for j in range(i + 1)] for i in range(len(A))]
    return symmetric_from_lower(lower)


def symmetric_from_lower(lower: Rows) -> Matrix:
    """Return the symmetric matrix with this lower triangle."""
    n = len(lower)
    return [[lower[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]


def transpose(A: Rows) -> Matrix:
    """Return A^T; a matrix without rows has a transpose without rows."""
    return [list(column) for column in zip(*A, strict=True)]


def plus(A: Rows, B: Rows) -> Matrix:
    """Return A + B."""
    return [[x + y for x, y in zip(a, b, strict=True)] for a, b in zip(A, B, strict=True)]


def minus(A: Rows, B: Rows) -> Matrix:
    """Return A - B."""
    return [[x - y for x, y in zip(a, b, strict=True)] for a, b in zip(A, B, strict=True)]


def identity(n: int) -> Matrix:
    """Return the unit matrix, of literals."""
    return [unit(n, i) for i in range(n)]


def unit(n: int, i: int) -> Vector:
    """Return column i of the identity, of literals."""
    return [1.0 if k == i else 0.0 for k in range(n)]


def zeros(rows: int, columns: int) -> Matrix:
    """Return the zero matrix, of literals."""
    return [[0.0] * columns for _ in range(rows)]


# Thresholds of all decisions on rank, each in double and in single precision.
#
# Rank is decided while a kernel runs, and a trace does not know the float type of the kernel that it becomes.
# So the kernel tests it, and holds both numbers of a pair: `threshold(PAIR, size)`.
#
# In single precision a row counts as dependent at 3e-3, in double precision already at 1e-5: noise in
# overconstrained loops is far below, and a loop that is open by less does not lock.

DEPENDENT_ROW_RATIO: Final = (1e-5, 3e-3)
"""A row depends on others if its distance from their span is less than this fraction of its length."""

DEPENDENT_ROW_RATIO_SQUARED: Final = (1e-10, 1e-5)
"""The same for squared distances, such as the pivots of a Gram matrix."""

NEGLIGIBLE_ROW_RATIO: Final = (1e-12, 3e-6)
"""A row is zero up to rounding if its length is less than this fraction of the longest row."""

NEGLIGIBLE_ROW_RATIO_SQUARED: Final = (1e-24, 1e-11)
"""The same for squared lengths."""

CANCELLATION_RATIO: Final = (1e-10, 1e-5)
"""A difference is rounding error if it is less than this fraction of its terms."""


def threshold(pair: tuple[float, float], positive: Scalar) -> Scalar:
    """Return the number of a pair for the precision of a positive number."""
    return select(is_double(positive), *pair)


def is_double(positive: Scalar) -> Scalar:
    """Return whether the arithmetic of a positive number is in double precision: whether 1 + 1e-10 > 1."""
    return positive < positive * 1.0000000001


# Dense symmetric systems of a small size, unrolled, without pivoting.
#
# D = L diag(d) L^T with unit lower-triangular L; the reciprocals of d are kept, so that one factorisation of
# size n costs n divisions and every solution none. `factor` is for positive-definite matrices, such as a
# joint's inertia; `factor_semidefinite` for those that may lack rank, such as K M^-1 K^T of dependent
# constraints.


def factor(D: Rows) -> SymmetricFactor:
    """Factor a symmetric positive-definite D, of which the lower triangle is read."""
    n = len(D)
    L: Matrix = [[0.0] * n for _ in range(n)]
    reciprocals: list[Scalar] = []
    for i in range(n):
        d = _row(D, L, reciprocals, i)
        reciprocals.append(1.0 / d)
    return SymmetricFactor(L, reciprocals)


def factor_semidefinite(
    D: Rows, *, scale: Scalars | None = None, least: tuple[float, float] = NEGLIGIBLE_ROW_RATIO_SQUARED
) -> SymmetricFactor:
    """Factor a symmetric positive-semidefinite D; dependent rows are dropped, and `solve` gives them zeros.

    Without pivoting the i-th pivot d_i is the squared distance of row i from the rows before it, in the norm
    of which D is the Gram matrix. A row is dropped if this distance is small relative to the row itself
    (it depends on the rows before), or relative to the longest row (it is zero up to rounding):

        keep row i  if  d_i > DEPENDENT_SQUARE D_ii + least max_k D_kk

    `least` is for a D whose own entries hold the rounding errors and not the rows' entries. `scale` is for a
    D whose diagonal itself is a difference of larger numbers, and says how large these were:

        keep row i  if  d_i > DEPENDENT_SQUARE scale_i
    """
    n = len(D)
    if n == 0:
        return SymmetricFactor([], [])
    sizes = [D[i][i] for i in range(n)] if scale is None else scale
    longest = largest(sizes[1:], sizes[0])
    double = is_double(longest)
    relative = select(double, *DEPENDENT_ROW_RATIO_SQUARED)
    shortest = longest * select(double, *least) if scale is None else 0.0
    L: Matrix = [[0.0] * n for _ in range(n)]
    reciprocals: list[Scalar] = []
    for i in range(n):
        d = _row(D, L, reciprocals, i)
        kept = sizes[i] * relative + shortest < d
        reciprocals.append(0.0 if is_zero(d) else select(kept, 1.0 / select(kept, d, 1.0), 0.0))
    return SymmetricFactor(L, reciprocals)


def _row(D: Rows, L: Matrix, reciprocals: Scalars, i: int) -> Scalar:
    """Compute row i of L in place, and return the pivot d_i; with W_ij = L_ij d_j."""
    W: list[Scalar] = []
    for j in range(i):
        w = D[i][j]
        for k in range(j):
            w = w - W[k] * L[j][k]
        W.append(w)
    d = D[i][i]
    for j in range(i):
        L[i][j] = W[j] * reciprocals[j]
        d = d - W[j] * L[i][j]
    return d


@final
@dataclass(frozen=True, slots=True)
class SymmetricFactor:
    """The factors of D = L diag(d) L^T. `solve(b)` is x of D x = b."""

    L: Matrix
    reciprocals: list[Scalar]

    @property
    def independent_rows(self) -> list[Scalar]:
        """Return one for each independent row of a semidefinite D, zero for each row that was dropped."""
        return [select(reciprocal > 0.0, 1.0, 0.0) for reciprocal in self.reciprocals]

    def solve(self, b: Scalars) -> list[Scalar]:
        """Solve D x = b for x."""
        return self.backward([y * r for y, r in zip(self.forward(b), self.reciprocals, strict=True)])

    def forward(self, b: Scalars) -> list[Scalar]:
        """Return L^-1 b."""
        x = list(b)
        for i in range(len(x)):
            for j in range(i):
                x[i] = x[i] - self.L[i][j] * x[j]
        return x

    def backward(self, b: Scalars) -> list[Scalar]:
        """Return L^-T b."""
        x = list(b)
        for i in reversed(range(len(x))):
            for j in range(i + 1, len(x)):
                x[i] = x[i] - self.L[j][i] * x[j]
        return x


# The pseudo-inverse of a symmetric positive-semidefinite matrix of any rank, without a branch.
#
# A = L diag(d) L^T by elimination, of which `factor_semidefinite` drops the pivots of dependent rows. With
# the columns B of L that were kept, B has full column rank, so that (Courrieu 2005)
#
#     A^+ = (B^+)^T diag(1/d) B^+ = B (B^T B)^-1 diag(1/d) (B^T B)^-1 B^T                          (1)
#
# For J of any rank, J^+ = (J^T J)^+ J^T.


def symmetric_pseudo_inverse(A: Rows, *, regular: bool = False) -> PseudoInverse:
    """Return A^+ of a symmetric positive-semidefinite A; only the lower triangle is read.

    `regular`: A is known to be positive definite, which saves three quarters of the work. Else a row counts
    as dependent beside its own diagonal entry.
    """
    places = [i for i in range(len(A)) if not is_zero(A[i][i])]  # a zero on the diagonal: a zero row
    kept = [[A[i][j] for j in places] for i in places]
    if regular:
        return PseudoInverse(len(A), places, None, factor(kept), [])
    return _of_factors(
        factor_semidefinite(kept, scale=[row[i] for i, row in enumerate(kept)]), places, len(A)
    )


def minimum_norm_solution(factors: SymmetricFactor, b: Scalars) -> list[Scalar]:
    """Return A^+ b of a factored positive-semidefinite A: the shortest x that minimises |A x - b|."""
    return _of_factors(factors, range(len(b)), len(b)).solve(b)


def _of_factors(factors: SymmetricFactor, places: Sequence[int], size: int) -> PseudoInverse:
    """Return the factors of (1).

    The rows and columns of B^T B that belong to dropped pivots are those of
    the unit matrix instead, and reciprocals are zero there, so that sizes do not depend on the rank."""
    kept = factors.independent_rows
    n = len(kept)
    B = [
        [kept[j] if i == j else factors.L[i][j] if j < i else 0.0 for j in range(n)] for i in range(n)
    ]  # L of a dropped pivot is zero but for its diagonal
    columns = transpose(B)
    gram = symmetric_product(columns, columns)
    for i, one in enumerate(kept):
        gram[i][i] = gram[i][i] + (1.0 - one)
    return PseudoInverse(size, places, B, factor(gram), factors.reciprocals)


@final
@dataclass(frozen=True, slots=True)
class PseudoInverse:
    """A^+ in factors: `solve(b)` is A^+ b, the shortest x among those that come nearest to A x = b.

    `size` of A, and the `places` of its rows that are not zero by structure; B, B^T B and 1/d of (1), or no B
    and A itself in place of B^T B.
    """

    size: int
    places: Sequence[int]
    B: Matrix | None
    gram: SymmetricFactor
    reciprocals: list[Scalar]

    def solve(self, b: Scalars) -> list[Scalar]:
        """Return A^+ b."""
        x: list[Scalar] = [b[i] for i in self.places]
        if self.B is None:
            x = self.gram.solve(x)
        else:
            x = self.gram.solve(times(transpose(self.B), x))
            x = self.gram.solve([x_i * r for x_i, r in zip(x, self.reciprocals, strict=True)])
            x = times(self.B, x)  # (1)
        full: list[Scalar] = [0.0] * self.size
        for place, value in zip(self.places, x, strict=True):
            full[place] = value
        return full


# Elimination on generic scalars: pivots are found through `select`.
#
# Sizes are fixed and no index depends on a value, so that one straight-line program serves every sample.


def solve(A: Rows, B: Rows) -> Matrix:
    """Solve A X = B for X, for any square A of full rank."""
    n = len(A)
    rows = reduce_rows([[*a, *b] for a, b in zip(A, B, strict=True)], n)
    return [row[n:] for row in rows]


def reduce_rows(rows: Rows, n: int) -> Matrix:
    """Reduce rows by Gauss-Jordan elimination with row exchange: the first n columns become [1; 0].

    Which row is the pivot depends on values, so that rows are exchanged by `select`; where entries are
    numbers the exchange happens while tracing.
    """
    work = [list(row) for row in rows]
    for k in range(n):
        for i in range(k + 1, len(work)):
            if not is_zero(work[i][k]):
                larger = absolute(work[i][k]) > absolute(work[k][k])
                upper, lower = work[k], work[i]
                work[k] = [select(larger, y, x) for x, y in zip(upper, lower, strict=True)]
                work[i] = [select(larger, x, y) for x, y in zip(upper, lower, strict=True)]
        pivot = work[k][k]
        if not is_one(pivot):
            work[k] = [1.0 if j == k else x / pivot for j, x in enumerate(work[k])]
        for i, row in enumerate(work):
            if i != k and not is_zero(row[k]):
                factor = row[k]
                work[i] = [
                    0.0 if j == k else x if is_zero(y) else x - factor * y
                    for j, (x, y) in enumerate(zip(row, work[k], strict=True))
                ]
    return work
