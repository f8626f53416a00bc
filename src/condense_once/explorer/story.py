"""How a set was made and how to cite it, in words for a page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from condense_once.condensed.set import CondensedSet
from condense_once.metrics.config import method_of
from condense_once.text import human_time, plural, readable, short_line

MAX_VALUE = 400  # characters of one fact
LEFT_OUT = ("loss", "accuracy")  # long, or shown elsewhere
NAMES = {
    "command": "made by",
    "config": "settings",
    "scores": "scored by",
    "versions": "software",
    "kept": "a subset of",
}

YOCO = """@inproceedings{he2023yoco,
  title     = {You Only Condense Once: Two Rules for Pruning Condensed Datasets},
  author    = {He, Yang and Xiao, Lingao and Zhou, Joey Tianyi},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2023}
}"""
METHODS = {
    "idc": """@inproceedings{kim2022idc,
  title     = {Dataset Condensation via Efficient Synthetic-Data Parameterization},
  author    = {Kim, Jang-Hyun and Kim, Jinuk and Oh, Seong Joon and Yun, Sangdoo and Song, Hwanjun and Jeong, Joonhyun
               and Ha, Jung-Woo and Song, Hyun Oh},
  booktitle = {International Conference on Machine Learning},
  year      = {2022}
}""",
    "dream": """@inproceedings{liu2023dream,
  title     = {DREAM: Efficient Dataset Distillation by Representative Matching},
  author    = {Liu, Yanqing and Gu, Jianyang and Wang, Kai and Zhu, Zheng and Jiang, Wei and You, Yang},
  booktitle = {International Conference on Computer Vision},
  year      = {2023}
}""",
    "dc": """@inproceedings{zhao2021dc,
  title     = {Dataset Condensation with Gradient Matching},
  author    = {Zhao, Bo and Mopuri, Konda Reddy and Bilen, Hakan},
  booktitle = {International Conference on Learning Representations},
  year      = {2021}
}""",
    "dsa": """@inproceedings{zhao2021dsa,
  title     = {Dataset Condensation with Differentiable Siamese Augmentation},
  author    = {Zhao, Bo and Bilen, Hakan},
  booktitle = {International Conference on Machine Learning},
  year      = {2021}
}""",
    "dm": """@inproceedings{zhao2023dm,
  title     = {Dataset Condensation with Distribution Matching},
  author    = {Zhao, Bo and Bilen, Hakan},
  booktitle = {Winter Conference on Applications of Computer Vision},
  year      = {2023}
}""",
    "mtt": """@inproceedings{cazenavette2022mtt,
  title     = {Dataset Distillation by Matching Training Trajectories},
  author    = {Cazenavette, George and Wang, Tongzhou and Torralba, Antonio and Efros, Alexei A. and Zhu, Jun-Yan},
  booktitle = {Conference on Computer Vision and Pattern Recognition},
  year      = {2022}
}""",
}


def summary_of(data: CondensedSet) -> str:
    """What the set is, for somebody who has never seen one."""
    method, source = method_of(data), data.provenance.get("source")
    of = f" {source}" if isinstance(source, str) else " a whole dataset"
    kind, made = "synthetic", f" that stand in for{of}" + (f", condensed by {method.upper()}" if method else "")
    if method is not None and "not condensed" in method:
        kind, made = "real", f" of{of}"
    mosaics = f" {data.factor**2} patches share one stored image." if data.factor > 1 else ""
    classes = plural(len(data.classes), "class")
    return readable(f"{len(data):,} small {kind} training pictures (patches) in {classes}{made}.{mosaics}")


def facts_of(data: CondensedSet) -> list[tuple[str, str]]:
    """How the set was made, by its provenance, name by name."""
    return list(_facts(data))


def _facts(data: CondensedSet) -> Iterator[tuple[str, str]]:
    channels, height, width = data.shape
    stored = f", stored at {'×'.join(map(str, data.cells.shape[2:]))}" if data.factor > 1 else ""
    yield "patches", f"{len(data):,} of {channels}×{height}×{width}{stored}"
    if data.factor > 1:
        yield "mosaics", f"{data.factor}×{data.factor} patches in each stored image"
    for name, value in data.provenance.items():
        if name in LEFT_OUT:
            continue
        if name == "seconds" and isinstance(value, int | float):
            yield "time", human_time(value)
        else:
            yield readable(NAMES.get(name, name)), short_line(_text(value), MAX_VALUE)


def citations_of(data: CondensedSet) -> list[str]:
    """BibTeX entries: of the method that condensed the set, if it is known, and of the paper on resizing."""
    method = (method_of(data) or "").lower()
    return [*([METHODS[method]] if method in METHODS else []), YOCO]


def recorded_accuracies(data: CondensedSet) -> list[dict[str, Any]]:
    """Accuracies of the whole set that its file records."""
    entries = data.provenance.get("accuracy")
    if not isinstance(entries, list):
        return []
    found = []
    for entry in entries:
        mean = entry.get("mean, %") if isinstance(entry, Mapping) else None
        if isinstance(mean, int | float):
            std, runs = entry.get("sample std"), entry.get("runs")
            how = ", ".join(readable(entry[name]) for name in ("net", "protocol", "test") if name in entry)
            found.append(
                {
                    "mean": mean,
                    "std": std if isinstance(std, int | float) else None,
                    "runs": runs if isinstance(runs, int) else None,
                    "how": how,
                }
            )
    return found


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(each)}" for name, each in value.items() if each not in (None, {}, []))
    if isinstance(value, list):
        return "; ".join(map(_text, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
