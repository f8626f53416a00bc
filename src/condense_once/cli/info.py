from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from condense_once.cli.options import File, Json
from condense_once.cli.printing import echo, print_fields, print_json, print_rows, suggest
from condense_once.text import class_list, decimals, human_bytes, value_range

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from condense_once.condensed.accuracy_curve import AccuracyCurve
    from condense_once.condensed.codec.layered_tensors import LayeredTensors
    from condense_once.condensed.file import SetFile
    from condense_once.condensed.header import Header
    from condense_once.condensed.set import CondensedSet

MAX_SHOWN = 600  # characters of one provenance entry


def info(file: File, as_json: Json = False) -> None:
    """Print everything a condensed-set file records about itself.

    Example: `condense-once info cifar10-idc-ipc10`
    """
    from condense_once.condensed.accuracy_curve import AccuracyCurve
    from condense_once.condensed.bundled import find_set
    from condense_once.condensed.file import SetFile

    path = find_set(file)
    opened = SetFile.open(path)
    data = opened.read()
    sizes = _sizes(opened, data.counts()) if data.ranking is not None else []
    curve = AccuracyCurve.of(data.provenance)
    if as_json:
        print_json(
            {
                **opened.full_header.to_json(),
                "file": str(path),
                "bytes": opened.file.size,
                "counts": data.counts().tolist(),
                "scores": opened.metrics,
                "sizes": sizes,
                **({} if opened.layered is None else {"prefixes": opened.layered.prefixes()}),
                **({} if curve is None else {"expected": _expected(curve, data, sizes)}),
                "range": [float(data.cells.min()), float(data.cells.max())],
            }
        )
        return
    print_fields(f"{data.name}  ({path}, {human_bytes(opened.file.size)})", _fields(opened, data, sizes))
    if curve is not None:
        _print_expected(curve, data, sizes)
    suggest("show", file)


def _fields(file: SetFile, data: CondensedSet, sizes: list[dict[str, int]]) -> dict[str, str]:
    from condense_once.condensed.making import describe_ranking, describe_slimming

    header, counts = file.full_header, data.counts()
    slimmed = describe_slimming(header.provenance)
    shown = (
        ("curve",) if slimmed is None else ("curve", "slimmed", "source")
    )  # in words: it has no source of real images
    balance = "" if counts.min() == counts.max() else " (not balanced)"
    stored = f"cells of {'×'.join(map(str, data.cells.shape[1:]))} {data.cells.dtype.name}"
    return {
        "patches": f"{header.patches}, each {'×'.join(map(str, header.image))}",
        "stored as": f"{stored} (factor {header.factor}, codec {header.codec})",
        "images per class": f"{value_range(counts / header.factor**2)}{balance}",
        "classes": class_list(header.classes),
        "labels": _labels(header),
        "values": f"{header.space.kind}, {data.cells.min():g} to {data.cells.max():g}",
        "mean / std": f"{decimals(header.space.mean)} / {decimals(header.space.std)}",
        **({"zca": json.dumps(dict(header.space.zca))} if header.space.zca else {}),
        "ranking": describe_ranking(header.ranking),
        **({"resizes to": f"any size, such as {', '.join(map(_size, sizes))} images per class"} if sizes else {}),
        **({} if file.layered is None else {"every prefix": _prefixes(file.layered, len(header.classes))}),
        "scores": ", ".join(file.metrics) or "none",
        **({"sha256": header.checksums.sha256} if header.checksums.sha256 else {}),
        **({} if slimmed is None else {"slimmed": slimmed}),
        **{f"provenance: {key}": _provenance(value) for key, value in header.provenance.items() if key not in shown},
    }


def _print_expected(curve: AccuracyCurve, data: CondensedSet, sizes: list[dict[str, int]]) -> None:
    """Accuracy over size and over bytes, as predicted."""
    echo(f"Expected accuracy (in brackets: 9 times of 10), by {curve.protocol}, {curve.net}, on {curve.test}:")
    rows = [
        (each["patches"], "as stored" if each["layers"] is None else f"{each['layers']:.1f} of {curve.layers}",
         human_bytes(each["bytes"]), each["accuracy"])
        for each in _expected(curve, data, sizes)
    ]  # fmt: skip
    print_rows(("patches", "layers", "file", "accuracy"), rows)


def _expected(curve: AccuracyCurve, data: CondensedSet, sizes: list[dict[str, int]]) -> list[dict[str, Any]]:
    from condense_once.condensed.codec.within import expected_cuts

    stored = [{**size, "layers": None, "accuracy": curve.predict(size["patches"])} for size in sizes]
    coded = [
        {"patches": cut.patches, "bytes": cut.bytes, "layers": cut.layers}
        | {"accuracy": curve.predict(cut.patches, cut.layers)}
        for cut in expected_cuts(data, curve)
    ]
    return stored + coded


def _sizes(file: SetFile, counts: NDArray[Any]) -> list[dict[str, int]]:
    """Images per class that a ranked file can be resized to, with the bytes of each."""
    from condense_once.condensed.budget import common_sizes
    from condense_once.condensed.set_view import SetView

    view, header = SetView.of_file(file), file.header
    return [
        {"ipc": ipc, "patches": patches, "bytes": view.file_size(patches, header.classes)}
        for ipc, patches in common_sizes(counts, header.factor, balanced=view.balanced)
    ]


def _prefixes(layered: LayeredTensors, classes: int) -> str:
    """What the first bytes of a layered file hold."""
    ends = (f"{layer} in {size:,} bytes ({size // classes:,} per class)" for layer, size in layered.prefixes())
    last = layered.quality()["patches"]
    return f"of the file is a set; layers of all patches: {', '.join(ends)}; patches by their last layer: {last}"


def _size(size: Mapping[str, int]) -> str:
    return f"{size['ipc']} ({human_bytes(size['bytes'])})"


def _labels(header: Header) -> str:
    from condense_once.condensed.label_coding import LabelCoding

    if not header.soft_labels:
        return "hard"
    size = LabelCoding.parse(header.label_coding).bytes_per_label(len(header.classes))
    kind = header.label_kind or "learned vectors"
    return f"soft ({kind}), class by largest entry; {size} bytes each ({header.label_coding})"


def _provenance(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… (all of it with --json)"
