"""How images are moved: gradient descent with momentum, each class by itself."""

from __future__ import annotations

from torch import Tensor


def descend(images: Tensor, velocity: Tensor, gradient: Tensor, *, rate: float, momentum: float, idle: int = 0) -> None:
    """Move the images of a class one step, in place, and then as their momentum moves them in `idle` steps of others.

    IDC's one optimiser for all classes also moves those whose turn it is not, by their decaying momentum: a step with
    gradient zero, C − 1 times between two turns of a class. They are taken all at once here, in closed form, so that no
    class needs to know of another. With v the velocity and m the momentum, they are
    `images −= rate · v · (m + m² + … + m^idle)` and `v ← m^idle · v`.

    >>> import torch
    >>> images, velocity = torch.zeros(1), torch.zeros(1)
    >>> descend(images, velocity, torch.ones(1), rate=1.0, momentum=0.5, idle=2)
    >>> images.item(), velocity.item()  # 1 for its own step, a half and a quarter for the two after
    (-1.75, 0.25)
    """
    velocity.mul_(momentum).add_(gradient)
    ahead = momentum * (1 - momentum**idle) / (1 - momentum)
    images.sub_(velocity, alpha=rate * (1 + ahead))
    velocity.mul_(momentum**idle)
