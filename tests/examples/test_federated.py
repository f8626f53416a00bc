"""Clients take different shares of one file, also over HTTP, and learn from them; Flower's engine, where it is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from examples.federated.client_data import BUDGETS, accuracy, fetch_share, new_network, train_locally

import condense_once

SET = "cifar10-idc-ipc10"


def test_every_client_takes_a_prefix_of_the_next_larger_share() -> None:
    shares = [fetch_share(SET, client) for client in range(len(BUDGETS))]
    assert [len(share) for share in shares] == sorted({len(share) for share in shares})
    for smaller, larger in pairwise(shares):
        np.testing.assert_array_equal(smaller.patches, larger.patches[: len(smaller)])


def test_a_share_over_http_is_the_same_as_from_the_file(
    site: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ranked.safetensors"
    condense_once.save(condense_once.load(SET), file)
    body = file.read_bytes()

    def whole(handler: object) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    plan: list[Callable[[object], None]] = site.plan
    plan.append(whole)
    np.testing.assert_array_equal(fetch_share(site.url, 1).patches, fetch_share(file, 1).patches)


def test_local_training_lowers_the_loss() -> None:
    net, share = new_network(), fetch_share(SET, 0)
    first = train_locally(net, share, epochs=1, seed=0)
    assert train_locally(net, share, epochs=5, seed=0) < first
    assert 0 <= accuracy(net.state_dict(), torch.from_numpy(share.inputs), torch.from_numpy(share.labels)) <= 100


@pytest.mark.skipif(importlib.util.find_spec("flwr") is None, reason="Flower (flwr[simulation]) is not installed")
@pytest.mark.filterwarnings("default")  # of Flower and of the packages that it starts
def test_flowers_engine_runs_the_federation_and_it_learns() -> None:
    from examples.federated.app import simulate

    reached = simulate(clients=3, rounds=2, epochs=3, test_images=200)
    assert sorted(reached) == [0, 1, 2]
    assert reached[2] > reached[0]
