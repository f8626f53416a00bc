"""A set as a Hugging Face dataset: a folder that `datasets.load_dataset` opens, with the set itself beside it.

`data/train-00000-of-00001.parquet` has the patches as images, best first if the set is ranked; `README.md` is the dataset
card; `set.safetensors` is the file of the set, which any budget can be taken from, also by range requests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from condense_once.condensed.accuracy_curve import AccuracyCurve
from condense_once.condensed.file import save
from condense_once.condensed.set import CondensedSet
from condense_once.files import atomic_folder
from condense_once.text import class_list, plural, short_line

SET_FILE = "set.safetensors"
PARQUET_FILE = Path("data", "train-00000-of-00001.parquet")
CARD = "README.md"
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def is_dataset_folder(path: Path) -> bool:
    """Whether a folder is such a dataset, with a set in it."""
    return (path / SET_FILE).is_file()


def write_dataset_folder(data: CondensedSet, path: Path) -> list[str]:
    """Write the folder; returns notes on what the images of the parquet file cannot hold."""
    from condense_once.condensed.exporters import pixel_patches, write_parquet  # late: it lists this format, too

    pixels, notes = pixel_patches(data)
    with atomic_folder(path) as folder:
        (folder / "data").mkdir()
        write_parquet(data, pixels, folder / PARQUET_FILE)
        save(data, folder / SET_FILE)
        sizes = (folder / PARQUET_FILE).stat().st_size, pixels.nbytes
        (folder / CARD).write_text(dataset_card(data, *sizes), encoding="utf-8")
    return [f"{note} The set itself is stored beside the images, unchanged." for note in notes]


def dataset_card(data: CondensedSet, download_size: int, dataset_size: int) -> str:
    """The README of the dataset: a YAML header that the hub and `datasets` read, and the card itself.

    >>> from condense_once.condensed.bundled import load
    >>> print(dataset_card(load("cifar10-idc-ipc10"), 1, 2).split("---")[2].strip().splitlines()[0])
    # cifar10-idc-ipc10
    """
    return "\n".join(["---", *_yaml(_metadata(data, download_size, dataset_size)), "---", "", *_text(data)]) + "\n"


def _metadata(data: CondensedSet, download_size: int, dataset_size: int) -> dict[str, Any]:
    features: list[dict[str, Any]] = [
        {"name": "image", "dtype": "image"},
        {"name": "label", "dtype": {"class_label": {"names": {str(n): name for n, name in enumerate(data.classes)}}}},
    ]
    if data.soft_labels is not None:
        features.append({"name": "soft_label", "list": "float32"})
    licence = data.provenance.get("licence")
    return {
        "pretty_name": data.name,
        "license": short_line(licence) if isinstance(licence, str) else "unknown",
        "task_categories": ["image-classification"],
        "size_categories": [next((name for most, name in SIZES if len(data) < most), "n>1M")],
        "tags": ["dataset-condensation", "dataset-distillation", "condense-once"],
        "dataset_info": {
            "features": features,
            "splits": [{"name": "train", "num_bytes": dataset_size, "num_examples": len(data)}],
            "download_size": download_size,
            "dataset_size": dataset_size,
        },
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": "data/train-*"}]}],
    }


def _yaml(value: Any, indent: str = "") -> Iterator[str]:
    """Lines of YAML: mappings and lists as blocks, everything else as JSON, which YAML contains."""
    items = value.items() if isinstance(value, Mapping) else ((None, each) for each in value)
    for key, each in items:
        head = f"{indent}-" if key is None else f"{indent}{_scalar(key)}:"
        if isinstance(each, Mapping | list):
            inner = list(_yaml(each, f"{indent}  "))
            if key is None:  # the first line of an item stands beside its dash
                yield f"{head} {inner[0].strip()}"
                yield from inner[1:]
            else:
                yield head
                yield from inner
        else:
            yield f"{head} {_scalar(each)}"


def _scalar(value: Any) -> str:
    plain = isinstance(value, str) and value.isidentifier() and value.islower() and value not in ("y", "n", "yes", "no")
    plain = plain and value not in ("on", "off", "true", "false", "null")
    return str(value) if plain else json.dumps(value, ensure_ascii=False)


def _text(data: CondensedSet) -> Iterator[str]:
    """What a reader wants to know: what it is, how good it is, how to use and resize it, and whose images they are."""
    shape = "×".join(map(str, data.shape))
    yield f"# {data.name}"
    yield ""
    yield f"A condensed dataset of {plural(len(data), 'patch')} {shape}, {plural(len(data.classes), 'class')}: a small"
    yield "training set that stands for a large one. Made with condense-once."
    yield ""
    yield from (f"- {line}" for line in _facts(data))
    yield ""
    yield "## Use"
    yield ""
    yield "```python"
    yield "from datasets import load_dataset"
    yield ""
    yield 'patches = load_dataset("PATH OR REPOSITORY", split="train")  # image, label'
    yield "```"
    yield ""
    yield f"The images are 8-bit copies. The exact values ({data.space.kind}), scores and ranking are in `{SET_FILE}`:"
    yield ""
    yield "```python"
    yield "import condense_once"
    yield ""
    yield 'data = condense_once.load("PATH")  # of this folder, downloaded'
    yield "inputs, labels = data.inputs(), data.labels  # normalised exactly once"
    yield "```"
    yield ""
    yield "## Resize"
    yield ""
    yield from _resizing(data)
    yield ""
    yield "## Licence"
    yield ""
    licence = data.provenance.get("licence")
    unknown = "Not recorded. The licence of the dataset it was condensed from applies."
    yield f"{short_line(licence)}." if isinstance(licence, str) else unknown


def _facts(data: CondensedSet) -> Iterator[str]:
    said = data.provenance
    config = said.get("config")
    config = config if isinstance(config, Mapping) else {}
    yield f"Classes: {class_list(data.classes)}"
    yield f"Method: {short_line(said.get('method') or config.get('method') or 'not recorded')}"
    yield f"Source: {short_line(said.get('source') or config.get('source') or said.get('dataset') or 'not recorded')}"
    yield f"Factor: {data.factor} ({data.factor**2} patches per stored image)"
    mean, std = (", ".join(f"{number:.4g}" for number in numbers) for numbers in (data.space.mean, data.space.std))
    yield f"Normalise pixels in 0…1 by mean {mean} and std {std}"
    if isinstance(command := said.get("command"), str):
        yield f"Made by `{short_line(command, 500)}`"
    measured = said.get("accuracy")
    for entry in measured if isinstance(measured, list) else []:
        if isinstance(entry, Mapping) and "mean, %" in entry:
            spread = f" ± {entry['sample std']}" if "sample std" in entry else ""
            how = ", ".join(str(entry[name]) for name in ("net", "protocol", "test") if name in entry)
            yield short_line(f"Accuracy: {entry['mean, %']}{spread} % (n = {entry.get('runs', '?')}; {how})", 300)
    if curve := AccuracyCurve.of(said):
        stored = sorted((point.patches, point.accuracy) for point in curve.points if point.layers is None)
        sizes = ", ".join(f"{100 * accuracy:.1f} % with {patches}" for patches, accuracy in stored)
        yield short_line(f"Accuracy by number of patches: {sizes} ({curve.net}, {curve.protocol}, {curve.test})", 500)


def _resizing(data: CondensedSet) -> Iterator[str]:
    if data.ranking is None:
        yield "The set is not ranked: `condense_once.rank` ranks it once, and any smaller set is then a prefix."
        return
    each = int(np.count_nonzero(data.counts())) * data.factor**2
    yield "The set is ranked, best patches first, so any smaller set is a prefix; nothing is condensed or trained again:"
    yield ""
    yield "```python"
    if data.ranking.balanced and each <= len(data):
        yield f"patches.select(range({each}))  # one image per class: {plural(each, 'patch')}"
    yield 'condense_once.resize("PATH", ipc=1)  # or total, fraction, bytes, classes'
    yield "```"
    yield ""
    yield f"A device needs numpy alone, and fetches from `{SET_FILE}` only the bytes it keeps: `condense_once.device`."
