"""The real images that the patches of a condensed set started from, found again from its provenance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from condense_once.condensed.set import CondensedSet
from condense_once.condensing.config import fingerprint
from condense_once.condensing.init import rows_to_start_from
from condense_once.condensing.real_images import RealImages
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.nets import initialise, make_net, use_native_kernels
from condense_once.nets.native import has_compiler
from condense_once.train.seeds import Stream, generator

REAL = ("first", "random", "representatives")


def original_rows(data: CondensedSet, source: Source) -> NDArray[np.int64]:
    """The row in the train split of `source` of the real image that each patch started from, `[n]`.

    A patch keeps its origin when a set is ranked or resized, so this works for subsets, too. Sets that began with noise or
    another set, or that others made, have no originals. k-means representatives depend on the last digits of features, so
    they are found on the processor that condensed the set; not all others round in the same way.
    """
    config, recipe = (_mapping(data.provenance.get(name)) for name in ("config", "recipe"))
    init, ipc, seed = recipe.get("init"), config.get("ipc"), config.get("seed")
    if init not in REAL or not isinstance(ipc, int) or not isinstance(seed, int):
        raise BadOption(f"{data.name} does not record real images that its patches started from.")
    if config.get("images") != fingerprint(source):
        raise BadOption(f"{data.name} was not condensed from these images of {source.name}.")
    each = ipc * data.factor**2
    real = RealImages(source, seed, torch.device("cpu"), real_batch=1, pool=int(recipe.get("pool", 0)))
    labels = data.origin // each  # as condensed: class by class, within each in the order of the initial rows

    def found_by(net: nn.Module) -> NDArray[np.int64]:
        rows = {int(label): rows_to_start_from(init, real, int(label), each, net) for label in np.unique(labels)}
        return np.array([rows[int(label)][place] for label, place in zip(labels, data.origin % each, strict=True)])

    candidates = map(found_by, _networks(str(config["net"]), data, seed, several=init == "representatives"))
    return min(candidates, key=lambda rows: _difference(data, source, rows))


def _networks(name: str, data: CondensedSet, seed: int, *, several: bool) -> Iterator[nn.Module]:
    """The network whose features chose representatives, with either kind of kernels: a set does not record which."""
    for native in (False, True) if several and has_compiler() else (False,):
        net = make_net(name, data.shape, len(data.classes), generator=torch.Generator().manual_seed(0))
        if native:
            use_native_kernels(net)
        net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # weights are sampled in this order
        initialise(net, generator(seed, Stream.INIT))
        yield net


def _difference(data: CondensedSet, source: Source, rows: NDArray[np.int64]) -> float:
    """Between patches and real images, in pixels: condensing changes images less than another choice would."""
    real = source.train.take(rows).astype(np.float32) / 255
    patches = data.space.to_pixels(data.patches())
    return float(np.abs(patches - real).mean())


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
