"""What one client of the federation has, without Flower: its budget, its share of the file, and local training."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from condense_once.device import DeviceSubset, open_set
from condense_once.nets import make_net

NET = "convnet-d3-w16"
BUDGETS = ("16KiB", "32KiB", "64KiB", "128KiB")  # of files, in the order of clients


def budget_of(client: int) -> str:
    """The bytes that a client has room for.

    >>> [budget_of(client) for client in range(5)]
    ['16KiB', '32KiB', '64KiB', '128KiB', '16KiB']
    """
    return BUDGETS[client % len(BUDGETS)]


def fetch_share(where: str | Path, client: int) -> DeviceSubset:
    """What a client takes of the file, by path, name or URL: no bytes are read beyond the last patch kept."""
    return open_set(where).take(bytes=budget_of(client))


def new_network(seed: int = 0) -> nn.Module:
    return make_net(NET, (3, 32, 32), 10, generator=torch.Generator().manual_seed(seed))


def train_locally(net: nn.Module, share: DeviceSubset, *, epochs: int, seed: int, lr: float = 0.01) -> float:
    """Train on a share in place; returns the mean loss of the last epoch."""
    images, labels = torch.from_numpy(share.inputs), torch.from_numpy(share.labels)
    optimiser = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
    random, losses = torch.Generator().manual_seed(seed), [0.0]
    for _ in range(epochs):
        losses = []
        for rows in torch.randperm(len(labels), generator=random).split(32):  # type: ignore[no-untyped-call]
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(net(images[rows]), labels[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            losses.append(loss.item())
    return float(np.mean(losses))


@torch.inference_mode()
def accuracy(weights: OrderedDict[str, Tensor], images: Tensor, labels: Tensor) -> float:
    """Of a network with these weights, in %."""
    net = new_network()
    net.load_state_dict(weights)
    return 100 * float((net(images).argmax(1) == labels).float().mean())
