"""Recursive against closed-form kinematics of a chain: equal results, and the vector operations of section
5.2.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest


@dataclass
class Tally:
    """Counts products of a vector by a scalar or vector (m) and sums of vectors (a)."""

    m: int = 0
    a: int = 0


@dataclass
class Counted:
    """A 6-D motion vector whose operations are tallied."""

    value: np.ndarray
    tally: Tally = field(repr=False)

    def __add__(self, other):
        self.tally.a += 1
        return Counted(self.value + other.value, self.tally)

    def __mul__(self, scalar):
        self.tally.m += 1
        return Counted(self.value * scalar, self.tally)

    def cross(self, other):
        self.tally.m += 1
        w, v = self.value[:3], self.value[3:]
        x, y = other.value[:3], other.value[3:]
        return Counted(np.concatenate([np.cross(w, x), np.cross(w, y) + np.cross(v, x)]), self.tally)


def chain(n, seed=0):
    rng = np.random.default_rng(seed)
    tally = Tally()
    axes = [Counted(rng.normal(size=6), tally) for _ in range(n)]
    return axes, rng.normal(size=n), rng.normal(size=n), Counted(np.zeros(6), tally), tally


def recursive_velocities(s, qd, zero):
    v = []
    for axis, rate in zip(s, qd):
        v.append((v[-1] if v else zero) + axis * rate)
    return v


def closed_form_velocities(s, qd):
    result = []
    for i in range(len(s)):
        total = s[0] * qd[0]
        for j in range(1, i + 1):
            total = total + s[j] * qd[j]
        result.append(total)
    return result


def recursive_accelerations(s, qd, qdd, zero):
    v, a = zero, []
    for axis, rate, acceleration in zip(s, qd, qdd):
        joint = axis * rate
        v = v + joint
        a.append((a[-1] if a else zero) + axis * acceleration + v.cross(joint))
    return a


def closed_form_accelerations(s, qd, qdd):
    """a_i = sum_j s_j q''_j + sum_j sum_{k<=j} s_k x s_j q'_k q'_j (Eq. 5.5)."""
    result = []
    for i in range(len(s)):
        total = s[0] * qdd[0]
        for j in range(1, i + 1):
            total = total + s[j] * qdd[j]
        for j in range(i + 1):
            for k in range(j + 1):
                total = total + s[k].cross(s[j]) * (qd[k] * qd[j])
        result.append(total)
    return result


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_velocities_cost_n_against_n_squared_over_two(n):
    """RBDA-5.2-RECUR, RBDA-5.1-COMPLEXITY: n (m + a) recursive, (n(n+1) m + n(n-1) a) / 2 in closed form."""
    s, qd, _, zero, tally = chain(n)
    recursive = recursive_velocities(s, qd, zero)
    assert (tally.m, tally.a) == (n, n)
    tally.m = tally.a = 0
    closed = closed_form_velocities(s, qd)
    assert (2 * tally.m, 2 * tally.a) == (n * (n + 1), n * (n - 1))
    for one, other in zip(recursive, closed):
        np.testing.assert_allclose(one.value, other.value, atol=1e-13)


def test_accelerations_cost_linear_against_cubic():
    """RBDA-5.2-RECUR, RBDA-5.1-COMPLEXITY: doubling n doubles one count and multiplies the other by almost
    eight.
    """
    totals = []
    for n in (16, 32, 64):
        s, qd, qdd, zero, tally = chain(n)
        recursive = recursive_accelerations(s, qd, qdd, zero)
        linear = tally.m + tally.a
        tally.m = tally.a = 0
        closed = closed_form_accelerations(s, qd, qdd)
        totals.append((linear, tally.m + tally.a))
        np.testing.assert_allclose(recursive[-1].value, closed[-1].value, rtol=1e-10, atol=1e-8)
    assert totals[1][0] == 2 * totals[0][0]
    assert totals[2][0] == 4 * totals[0][0]
    assert 7.0 < totals[2][1] / totals[1][1] < 8.0
