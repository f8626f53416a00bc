"""How expert networks are trained, and which folder their trajectories are kept in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from condense_once.condensing.config import fingerprint
from condense_once.data.source import Source, data_folder
from condense_once.errors import BadOption
from condense_once.nets import NetChoice, net_name
from condense_once.train.recipe import Recipe

# TGDD's training on real images: 60 epochs, learning rate ×0.2 at 2/3 and 5/6, CutMix on half of the batches.
TGDD_EXPERTS = Recipe(epochs=60, batch=128, augmentation="color_crop")
# MTT's: plain SGD at one learning rate, with one operation of DSA's augmentation per batch.
MTT_EXPERTS = Recipe(
    epochs=50,
    batch=256,
    lr=0.01,
    momentum=0.0,
    weight_decay=0.0,
    gamma=1.0,
    augmentation="dsa:color_crop_cutout_flip_scale_rotate",
    cutmix=0.0,
)


@dataclass(frozen=True)
class ExpertConfig:
    """Two equal configs train the same networks on the same source."""

    net: NetChoice
    recipe: Recipe = field(default=TGDD_EXPERTS)
    every: int = 1  # epochs between two snapshots
    seed: int = 0
    batches: int = 0  # of an epoch, which may be a part of a pass over the images or several; 0: one pass
    zca: Mapping[str, Any] | None = None  # how the images are whitened, as in `Space.zca`; None: they are normalised

    def __post_init__(self) -> None:
        if self.every < 1 or self.recipe.epochs % self.every:
            raise BadOption(
                f"Snapshots `every` {self.every} epochs do not fit {self.recipe.epochs} epochs; choose a divisor of them."
            )

    @property
    def snapshots(self) -> int:
        """Snapshots of one run: the initial weights, and one after every `every` epochs."""
        return self.recipe.epochs // self.every + 1

    def identity(self, source: Source) -> dict[str, Any]:
        """Everything that decides the weights, as plain JSON."""
        identity = {
            "source": source.name,
            "images": fingerprint(source),
            "net": net_name(self.net),
            "recipe": asdict(self.recipe),
            "every": self.every,
            "seed": self.seed,
        }
        parts = {"batches": self.batches} if self.batches else {}
        return identity | parts | ({} if self.zca is None else {"zca": dict(self.zca)})

    def folder(self, source: Source, root: Path | None = None) -> Path:
        """The folder of these experts under `root`, by default `experts` in the folder of downloaded datasets."""
        digest = hashlib.sha256(json.dumps(self.identity(source), sort_keys=True).encode()).hexdigest()[:8]
        root = data_folder() / "experts" if root is None else root
        length = f"{self.recipe.epochs}-epochs{f'-of-{self.batches}-batches' if self.batches else ''}"
        return root / f"{source.name}-{net_name(self.net)}-{length}-{digest}"
