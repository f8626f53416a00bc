"""The last look at the patches: what the trained network says of them, and what its last layer reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor, nn

BATCH = 100  # as in evaluation: activations of more do not stay in the caches


def final_outputs(net: nn.Module, inputs: NDArray[Any] | Tensor) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Probabilities `[N, C]` and penultimate features `[N, d]` in evaluation mode, for `Evidence`.

    >>> import torch
    >>> from condense_once.nets import make_net
    >>> net = make_net("convnet-d3-w32", (3, 8, 8), 5, generator=torch.Generator().manual_seed(0))
    >>> [part.shape for part in final_outputs(net, np.zeros((7, 3, 8, 8), np.float32))]
    [(7, 5), (7, 32)]
    """
    import torch

    from condense_once.nets import Network, penultimate

    device = next(net.parameters()).device
    was_training = net.training
    net.eval()
    probabilities, features = [], []
    with torch.inference_mode():
        for part in torch.split(torch.as_tensor(inputs), BATCH):
            x = part.to(device)
            read = penultimate(net, x)
            logits = net.classifier(read) if isinstance(net, Network) else net(x)
            probabilities.append(logits.float().softmax(1).cpu())
            features.append(read.float().cpu())
    net.train(was_training)
    return torch.cat(probabilities).numpy(), torch.cat(features).numpy()
