from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from condense_once.cli.options import Force, Json, Size, split_names
from condense_once.cli.printing import classes_there, echo, note, print_json, set_facts, suggest
from condense_once.errors import BadOption
from condense_once.files import refuse_existing
from condense_once.text import plural


def import_(
    files: Annotated[list[Path], typer.Argument(help="One file or folder, or a pair: images and labels.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The condensed-set file to write.")],
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format", help="Format of the files; by default recognised by content. See: condense-once list formats."
        ),
    ] = None,
    factor: Annotated[
        int | None, typer.Option(min=1, help="Each image is a mosaic of FACTOR×FACTOR patches; 1 for plain images.")
    ] = None,
    space: Annotated[
        str | None,
        typer.Option(
            metavar="pixels|normalised|zca",
            help="What the values are: pixels, normalised by mean and std, or ZCA-whitened.",
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|PATH",
            help="Source it was condensed from, by name or path: class names, mean and std. See: condense-once list sources.",
        ),
    ] = None,
    mean: Annotated[str | None, typer.Option(metavar="R,G,B", help="Mean of each channel, of pixels in 0…1.")] = None,
    std: Annotated[
        str | None, typer.Option(metavar="R,G,B", help="Standard deviation of each channel, of pixels in 0…1.")
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help='Class names in label order; quote "names, with commas".'),
    ] = None,
    images: Annotated[
        str | None, typer.Option(metavar="KEY", help="Name of the images in an .npz or a dict; by default images.")
    ] = None,
    labels: Annotated[
        str | None, typer.Option(metavar="KEY", help="Name of the labels in an .npz or a dict; by default labels.")
    ] = None,
    experiment: Annotated[int | None, typer.Option(min=0, help="Which set of a DC, DSA or DM file, from 0.")] = None,
    tile: Annotated[int | None, typer.Option(min=1, help="Side of the tiles of a grid image, in pixels.")] = None,
    border: Annotated[
        int | None, typer.Option(min=0, help="Pixels between the tiles of a grid image; by default 2.")
    ] = None,
    shrink: Annotated[
        int | None, typer.Option(min=1, help="Times that the tiles of a grid image were enlarged, such as 4.")
    ] = None,
    size: Size = None,
    zca_method: Annotated[
        Literal["kip", "kornia", "rfad"] | None,
        typer.Option(help="ZCA variant: KIP's, kornia's (MTT) or RFAD's; by default kip for learned labels."),
    ] = None,
    label_kind: Annotated[
        Literal["probabilities", "logits", "regression"] | None,
        typer.Option(help="What soft labels are; by default found out from their values and the format."),
    ] = None,
    zca_regularisation: Annotated[float | None, typer.Option(help="Regularisation of the ZCA; by default 0.1.")] = None,
    dtype: Annotated[
        Literal["float16", "float32"] | None,
        typer.Option(help="Data type of values other than pixels; by default float32."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the set; by default that of the output file, or that which the set has.")
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="Condensation method, such as dsa, if several share the format.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Import a condensed set made by another project.

    Example: `condense-once import images_best.pt labels_best.pt --space normalised --dataset cifar10 -o mtt.safetensors`

    Pass what the files do not record: nothing is guessed, and no code in them is executed.
    """
    from condense_once.condensed.file import save
    from condense_once.condensed.huggingface import is_dataset_folder
    from condense_once.condensed.importers import ImportOptions, import_set
    from condense_once.condensed.space import space_kind
    from condense_once.metrics.config import MetricConfig

    refuse_existing(out, force, inputs=files)
    options = ImportOptions(
        factor=factor,
        space=space_kind(space) if space else None,
        dataset=dataset,
        mean=_numbers(mean, "--mean"),
        std=_numbers(std, "--std"),
        classes=split_names(classes) if classes else None,
        images=images,
        labels=labels,
        experiment=experiment,
        tile=tile,
        border=border,
        shrink=shrink,
        size=size,
        zca_method=zca_method,
        label_kind=label_kind,
        zca_regularisation=zca_regularisation,
        dtype=dtype,
        name=name or (None if is_dataset_folder(files[0]) else out.stem),
        method=method,
    )
    data = import_set(files, options, format_name)
    save(data, out, force=force)
    imported = data.provenance.get("imported") or {"format": "huggingface", "notes": []}
    if as_json:
        print_json(set_facts(data, out))
    else:
        made = f"{plural(len(data), 'patch')} of {classes_there(data)}"
        echo(f"{out}: {made}, read as {imported['format']}, {data.space.kind}.")
    note(imported["notes"])
    if method is not None:
        epochs = MetricConfig.for_data(data).lbpe_epochs
        over = "all epochs" if epochs.stop is None else f"the epochs {epochs}"
        note([f"Sets by {method} are scored by lbpe over {over}."])
    if not as_json:
        suggest("show", out)


def _numbers(text: str | None, option: str) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise BadOption(f"{option} takes numbers separated by commas, such as 0.49,0.48,0.45, not {text!r}.") from None
