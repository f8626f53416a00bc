from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from condense_once.condensed.bundled import load
from condense_once.condensed.codec.layered import coder_of, decode_layers, fit_code
from condense_once.condensed.codec.within import best_within
from condense_once.condensed.file import from_bytes, to_bytes
from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.condensed.space import Space
from condense_once.condensing.refine import Quantiser, _Matching, refine
from condense_once.errors import BadOption
from condense_once.train.compute_config import ComputeConfig

PLAIN = ComputeConfig("float32", "off")


def ranked(
    count: int = 40, *, channels: int = 3, size: tuple[int, int] = (16, 16), factor: int = 1, kind: str = "pixels"
) -> CondensedSet:
    """Two classes of noisy gradients in turns, one from left to right, the other from top to bottom."""
    rng = np.random.default_rng(0)
    labels = np.arange(count) % 2
    rows, columns = np.meshgrid(np.linspace(0, 1, size[0]), np.linspace(0, 1, size[1]), indexing="ij")
    slope = np.where(labels[:, None, None], rows, columns)[:, None] * rng.uniform(0.3, 1, (count, channels, 1, 1))
    values = (slope + rng.normal(0, 0.15, (count, channels, *size))).clip(0, 1)
    zca = {"recipe": "kip", "regularisation": 0.1, "source": "cifar10"} if kind == "zca" else {}
    cells = np.rint(255 * values).astype(np.uint8) if kind == "pixels" else (4 * values - 2).astype(np.float32)
    return CondensedSet(
        cells=cells,
        labels=labels,
        classes=("across", "down"),
        size=(factor * size[0], factor * size[1]),
        factor=factor,
        space=Space(kind, (0.5,) * channels, (0.25,) * channels, zca),  # type: ignore[arg-type]
        origin=np.arange(count),
        ranking=Ranking("lbpe"),
        name="slopes",
        provenance={"curve": {}, "method": "drawn"},
    )


def run(data: CondensedSet, limit: int, **others: Any) -> CondensedSet:
    return refine(data, limit, **{"steps": 12, "net": "convnet-d1-w8", "compute": PLAIN, **others})


SHAPES: list[dict[str, Any]] = [
    {},
    {"channels": 1},
    {"size": (11, 9)},
    {"kind": "normalised"},
    {"kind": "zca", "factor": 2},
]


@pytest.mark.parametrize("how", SHAPES, ids=str)
@pytest.mark.parametrize("layers", [1, 3])
def test_it_rounds_as_a_decoder_does(how: dict[str, Any], layers: int) -> None:
    data = ranked(**how)
    code = fit_code(data)
    quantiser = Quantiser(coder_of(data, code).transform, code)
    steps = quantiser.steps(torch.full((len(data),), layers))
    exact = quantiser.coefficients(torch.from_numpy(data.cells.astype(np.float32)))
    cells = quantiser.cells(quantiser.rounded(exact, steps)).numpy()
    decoded = decode_layers(data, layers).astype(np.float32)
    unit = 1.0 if code.exponent is None else 2.0**-code.exponent  # what the decoder rounds to
    cells = cells.clip(0, 255) if code.exponent is None else cells
    assert np.abs(cells - decoded).max() < 2.5 * unit
    np.testing.assert_allclose(quantiser.cells(exact).numpy(), data.cells, atol=0.2 * unit)


def test_the_gradient_of_rounding_is_that_of_no_rounding() -> None:
    values = torch.tensor([[0.4, -1.7, 3.2]], requires_grad=True)
    weights = torch.tensor([[1.0, 2.0, 3.0]])
    rounded = Quantiser.rounded(values, torch.ones(1, 3))
    assert rounded.tolist() == [[0.0, pytest.approx(-1.4375), pytest.approx(3.4375)]]
    (rounded * weights).sum().backward()
    assert values.grad is not None
    assert values.grad.tolist() == weights.tolist()


def test_gentle_steps_let_networks_see_more_of_the_set_in_a_file_of_the_same_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("condense_once.condensing.refine.RATE", 0.006)
    data, limit = load("cifar10-nested-ipc10", first=100), 4_000
    other = _Matching(data, fit_code(data), torch.ones(len(data), dtype=torch.int64), "convnet-d3-w16", 9, PLAIN)

    def error(content: bytes) -> float:
        read, total = from_bytes(content, "a file"), 0.0
        for snapshot in other._snapshots[::5]:
            other._net.load_state_dict(snapshot)
            with torch.no_grad():
                seen, wanted = (other._features(torch.from_numpy(each.inputs())) for each in (read, data))
            total += float((seen - wanted).square().sum() / (wanted - wanted.mean(0)).square().sum())
        return total

    plain = best_within(data, limit)
    refined = best_within(refine(data, limit, steps=60, net="convnet-d3-w16", compute=PLAIN), limit)
    assert len(refined) <= limit
    assert error(refined) < 0.98 * error(plain)


@pytest.mark.parametrize("how", SHAPES, ids=str)
def test_sets_of_any_space_and_shape_can_be_refined_again_to_the_same_bits(how: dict[str, Any]) -> None:
    data = ranked(**how)
    limit = len(to_bytes(data, codec="layered")) // 2
    made = run(data, limit)
    assert (made.cells.dtype, made.cells.shape) == (data.cells.dtype, data.cells.shape)
    assert (made.cells != data.cells).any()
    np.testing.assert_array_equal(run(data, limit).cells, made.cells)
    assert made.provenance["refined"] == {"bytes": limit, "steps": 12}


def test_patches_without_room_stay_as_they_are_and_what_was_measured_before_goes() -> None:
    data = ranked(200)
    limit = 1_600
    kept = len(from_bytes(best_within(data, limit), "a file"))
    made = run(data, limit, steps=3)
    assert 0 < kept < len(data)
    np.testing.assert_array_equal(made.cells[kept:], data.cells[kept:])
    assert "curve" not in made.provenance
    assert made.provenance["method"] == "drawn"


def test_a_set_that_fits_is_not_touched_and_unranked_ones_are_refused() -> None:
    data = ranked()
    assert run(data, 10**6) is data
    with pytest.raises(BadOption, match="not ranked"):
        run(replace(data, ranking=None), 2_000)
    with pytest.raises(BadOption, match="`steps` must be at least 1"):
        run(data, 2_000, steps=0)
