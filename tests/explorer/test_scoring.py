from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.explorer.conftest import ranked_set

from condense_once.explorer.same_patches import SamePatches
from condense_once.explorer.scoring import seen_as_pixels, seen_by_new_run, seen_by_stored_run
from condense_once.metrics import ScoringRun
from condense_once.studies.grid import set_key
from condense_once.studies.scoring_run_io import pack
from condense_once.studies.store import Store
from condense_once.train.dynamics import Dynamics


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store.sqlite")
    yield made
    made.close()


def test_a_scoring_run_of_the_set_before_it_was_ranked_is_put_in_order(store: Store) -> None:
    data = ranked_set()
    before = data.take(np.argsort(data.origin))
    errors = np.tile(before.origin.astype(np.float32), (2, 1)) / 100
    dynamics = Dynamics(error=errors, margin=errors, probability=errors, correct=errors > 0, settings={})
    run = ScoringRun(before.labels, dynamics=dynamics, features=before.origin[:, None].astype(np.float32))
    store.add_scoring_run("key", {"set": set_key(before), "net": "convnet-d3"}, pack(run), work=1.0, seconds=1.0)
    seen = seen_by_stored_run(data, SamePatches.of(data), store)
    assert seen is not None
    assert seen.errors is not None
    assert seen.source == "features of convnet-d3"
    np.testing.assert_array_equal(seen.features[:, 0], data.origin)
    np.testing.assert_allclose(seen.errors[1], data.origin / 100, rtol=1e-6)


def test_a_store_without_a_run_of_the_set_has_nothing_to_show(store: Store) -> None:
    data = ranked_set()
    assert seen_by_stored_run(data, SamePatches.of(data), store) is None


def test_a_new_run_records_features_and_errors_of_every_patch(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from condense_once.metrics import MetricConfig

    short = MetricConfig(scoring_epochs=2, lbpe_epochs="0-1", el2n_epochs=1)  # type: ignore[arg-type]
    monkeypatch.setattr(MetricConfig, "for_data", lambda _data: short)
    data = ranked_set(factor=2)
    assert data.ranking is not None
    data = replace(data, ranking=replace(data.ranking, settings={"net": "convnet-d2-w8", "seed": 3}))
    seen = seen_by_new_run(data)
    assert seen.source == "features of convnet-d2-w8"
    assert seen.errors is not None
    assert seen.errors.shape == (2, len(data))
    assert len(seen.features) == len(data)


def test_without_training_the_map_is_by_pixels() -> None:
    data = ranked_set()
    seen = seen_as_pixels(data)
    assert (seen.features.shape, seen.errors, seen.source) == ((len(data), 48), None, "pixels")
