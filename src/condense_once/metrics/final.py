"""The last look at the patches: what the trained network says of them, and what its last layer reads."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import nn

    from condense_once.train.images import Images

BATCH = 100  # as in evaluation: activations of more do not stay in the caches


def final_outputs(
    net: nn.Module, inputs: NDArray[Any] | Images, needs: Collection[str], folder: Path | None = None
) -> dict[str, NDArray[np.float32]]:
    """In evaluation mode, what is needed for `Evidence`: probabilities `[N, C]`, penultimate features `[N, d]`, or both.

    With a folder they are files in it, not memory.

    >>> import torch
    >>> from condense_once.nets import make_net
    >>> net = make_net("convnet-d3-w32", (3, 8, 8), 5, generator=torch.Generator().manual_seed(0))
    >>> last = final_outputs(net, np.zeros((7, 3, 8, 8), np.float32), {"probabilities", "features"})
    >>> last["probabilities"].shape, last["features"].shape
    ((7, 5), (7, 32))
    """
    import torch

    from condense_once.nets import Network, penultimate
    from condense_once.train.memmap import new_array

    device = next(net.parameters()).device
    was_training = net.training
    net.eval()
    kept: dict[str, NDArray[np.float32]] = {}
    with torch.inference_mode():
        for at in range(0, len(inputs), BATCH):
            x = torch.as_tensor(inputs[at : at + BATCH]).to(device)
            features = penultimate(net, x)
            logits = net.classifier(features) if isinstance(net, Network) else net(x)
            for name, values in (("probabilities", logits.float().softmax(1)), ("features", features.float())):
                if name not in needs:
                    continue
                if name not in kept:
                    kept[name] = new_array((len(inputs), values.shape[1]), np.float32, folder, name)
                kept[name][at : at + BATCH] = values.cpu().numpy()
    net.train(was_training)
    return kept
