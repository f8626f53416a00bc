"""One training run on disk: the weights at every snapshot, in half precision, and what resumes an unfinished run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from condense_once.condensing.array_file import FileKind
from condense_once.errors import BadFile
from condense_once.train.step_trainer import to_array

FILE = FileKind("a trajectory", "condense_once.trajectory", version=1)
SNAPSHOT, STATE = "snapshots/", "state/"

State = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Trajectory:
    """The snapshots of one run, in order; the first one are its initial weights."""

    identity: Mapping[str, Any]  # of the config and the source
    run: int
    epochs: int  # completed
    seconds: float
    weights: Mapping[str, NDArray[Any]] = field(repr=False)  # name → [snapshots, …], float16; counters as bytes
    state: State = field(repr=False, default_factory=dict)  # of the trainer, while epochs are left

    @property
    def snapshots(self) -> int:
        return len(next(iter(self.weights.values())))

    def load_into(self, net: nn.Module, snapshot: int) -> None:
        """Set the weights and running statistics of `net` to those of a snapshot."""
        with torch.no_grad():
            for name, tensor in net.state_dict().items():
                values = torch.from_numpy(self.weights[name][snapshot].copy())
                tensor.copy_(values if tensor.is_floating_point() else values.view(tensor.dtype).reshape(tensor.shape))

    def save(self, path: Path) -> None:
        header = {"identity": self.identity, "run": self.run, "epochs": self.epochs, "seconds": self.seconds}
        snapshots = {SNAPSHOT + name: values for name, values in self.weights.items()}
        FILE.write(path, header, snapshots | {STATE + name: values for name, values in self.state.items()})


def load_trajectory(path: Path) -> Trajectory:
    """Read and verify a trajectory."""
    header, arrays = FILE.read(path)
    weights, state = (
        {name.removeprefix(kind): values for name, values in arrays.items() if name.startswith(kind)}
        for kind in (SNAPSHOT, STATE)
    )
    try:
        if not weights or len({len(values) for values in weights.values()}) != 1:
            raise ValueError("its snapshots are incomplete")
        return Trajectory(
            identity=dict(header["identity"]),
            run=int(header["run"]),
            epochs=int(header["epochs"]),
            seconds=float(header["seconds"]),
            weights=weights,
            state=state,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadFile(f"{path} is damaged: its header is invalid ({error}).") from None


def snapshot(net: nn.Module) -> dict[str, NDArray[Any]]:
    """The weights of a network, one snapshot long."""
    return {name: _half(tensor)[None] for name, tensor in net.state_dict().items()}


def snapshot_bytes(net: nn.Module) -> int:
    """What a snapshot of this network takes on disk."""
    return sum(values.nbytes for values in snapshot(net).values())


def _half(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().cpu().numpy().astype(np.float16) if tensor.dtype == torch.float32 else to_array(tensor)
