"""A set as tensors for the benchmarks of the field.

DD-Ranking's `compute_metrics` takes them as `image_tensor`, `hard_labels` and `soft_labels`; DC-BENCH reads the layout of DC,
DSA and DM.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.soft_labels import targets_of
from condense_once.errors import BadOption
from condense_once.files import atomic_folder


def write_ddranking(data: CondensedSet, path: Path) -> list[str]:
    """Write `images.pt`, `labels.pt` and, if there are any, `soft_labels.pt`, and `dc.pt` for DC-BENCH; returns notes.

    DD-Ranking numbers labels itself in places, class after class with `ipc` images each; so the images are in that order,
    and classes must have equally many.
    """
    import torch

    counts = data.counts()
    if len(set(counts.tolist())) > 1:
        raise BadOption(
            f"DD-Ranking expects as many images of every class, but {data.name} has {counts.min()} to {counts.max()}; resize it"
            " with a balanced budget, such as `ipc`."
        )
    rows = np.argsort(data.labels, kind="stable")
    tensors = {"images": torch.from_numpy(data.inputs(rows)), "labels": torch.from_numpy(data.labels[rows])}
    targets = targets_of(data)
    if targets is not None:
        tensors["soft_labels"] = torch.from_numpy(targets.values[rows])
    with atomic_folder(path) as folder:
        for name, tensor in tensors.items():
            torch.save(tensor.clone(), folder / f"{name}.pt")
        torch.save({"data": [[tensors["images"], tensors["labels"]]]}, folder / "dc.pt")
    mean, std = (", ".join(f"{number:.4g}" for number in numbers) for numbers in (data.space.mean, data.space.std))
    notes = [f"Pass ipc={counts[0]}: patches are full-size images, {counts[0]} per class."]
    notes.append(f"The images are normalised by mean {mean} and std {std}; test images must be, too.")
    if data.space.kind == "zca":
        notes.append("The images are ZCA-whitened; pass use_zca=True, which whitens by kornia's ZCA.")
    return notes
