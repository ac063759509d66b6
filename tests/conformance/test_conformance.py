"""One source, every arithmetic: floats, NumPy, SymPy, the interpreter, scalar and lane machine code agree."""

import numpy as np
import pytest
from tests.conformance import models
from tests.conformance.backends import (
    draw_states,
    on_floats,
    on_interpreter,
    on_lanes,
    on_numpy,
    on_scalar_kernel,
    on_symbols,
)
from tests.conformance.enrolment import ENROLLED, Enrolled

SAMPLES = 3
COMPILED = ("arm", "branched")
SYMBOLIC = ("pendulum", "two_link_arm", "cart_pole")

ON_TREES = [entry for entry in ENROLLED if not entry.models]

every_entry = pytest.mark.parametrize("entry", ENROLLED, ids=lambda entry: entry.name)
every_tree_entry = pytest.mark.parametrize("entry", ON_TREES, ids=lambda entry: entry.name)


def agree(found: np.ndarray, reference: np.ndarray, tolerance: float) -> None:
    """Equal to a tolerance relative to the largest number of the result, sample by sample."""
    assert found.shape == reference.shape
    scale = np.maximum(1.0, np.abs(reference).max(axis=1, initial=0.0, keepdims=True))
    np.testing.assert_allclose(found / scale, reference / scale, rtol=0.0, atol=tolerance)


ON_MODELS = [(entry, name) for entry in ENROLLED for name in entry.models or COMPILED]


@pytest.mark.parametrize(("entry", "model"), ON_MODELS, ids=[f"{model}-{e.name}" for e, model in ON_MODELS])
def test_machine_code_agrees_with_floats(entry: Enrolled, model: str):
    """Scalar kernel, lanes, interpreter and NumPy scalars, on a fixed arm and on a free, branching tree."""
    tree = getattr(models, model)()
    recipe = entry.recipe(tree)
    states = draw_states(tree, SAMPLES, recipe=recipe)
    reference = on_floats(recipe, states)
    assert np.all(np.isfinite(reference))
    agree(on_numpy(recipe, states), reference, 1e-12)
    agree(on_interpreter(recipe, states), reference, 1e-11)
    lanes = on_lanes(recipe, states)
    agree(lanes, reference, 1e-11)
    np.testing.assert_array_equal(on_scalar_kernel(recipe, states), lanes)


@every_entry
def test_single_precision_agrees_with_floats(entry: Enrolled):
    """float32, scalar and lanes; states are drawn in float32, so that only the arithmetic differs."""
    tree = getattr(models, entry.models[0] if entry.models else "arm")()
    recipe = entry.recipe(tree)
    states = {
        name: x.astype(np.float32).astype(np.float64)
        for name, x in draw_states(tree, SAMPLES, recipe=recipe).items()
    }
    reference = on_floats(recipe, states)
    lanes = on_lanes(recipe, states, "float32")
    assert lanes.dtype == np.float32
    agree(lanes, reference, 2e-5)
    np.testing.assert_array_equal(on_scalar_kernel(recipe, states, "float32"), lanes)


@every_tree_entry
def test_every_joint_type_agrees_with_floats(entry: Enrolled):
    """One tree with a joint of every kind; machine code where it compiles in a moment."""
    tree = models.every_joint()
    recipe = entry.recipe(tree)
    states = draw_states(tree, SAMPLES, recipe=recipe)
    reference = on_floats(recipe, states)
    agree(on_numpy(recipe, states), reference, 1e-11)
    agree(on_interpreter(recipe, states), reference, 1e-10)
    if entry.broad:
        agree(on_lanes(recipe, states), reference, 1e-10)


@every_tree_entry
@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbols_agree_with_floats(entry: Enrolled, name: str):
    """SymPy expressions of textbook systems, evaluated after the algorithm has run on symbols."""
    pytest.importorskip("sympy")
    tree = models.textbook(name)
    recipe = entry.recipe(tree)
    states = draw_states(tree, 2, recipe=recipe)
    agree(on_symbols(recipe, states), on_floats(recipe, states), 1e-11)
