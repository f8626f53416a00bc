from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import MofNCompleteColumn, ProgressColumn, Task
from rich.text import Text

from condense_once.cli.estimates import measuring
from condense_once.cli.options import (
    CompileName,
    DataDir,
    Device,
    Force,
    Json,
    PrecisionName,
    Seed,
    Size,
    StoredDtypeName,
    Values,
)
from condense_once.cli.printing import echo, err_console, note, print_json, set_facts, suggest, track
from condense_once.cli.sources import open_shown
from condense_once.errors import BadOption, InaccessibleFile
from condense_once.text import human_bytes, human_time, plural, time_range

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from condense_once.condensed.set import CondensedSet
    from condense_once.condensing.callbacks import Callback, RunProgress

SourceName = Annotated[str, typer.Argument(help="The name of a source, or a path, such as a folder of images.")]
Ipc = Annotated[int, typer.Option("--ipc", min=1, help="Stored images per class.")]
Method = Annotated[
    str | None,
    typer.Option(
        "--method",
        help="Condensation method; by default the one of --preset, or the strongest for --minutes, tgdd. See: condense-once list"
        " condensers.",
    ),
]
PresetName = Annotated[
    str | None,
    typer.Option(
        "--preset", help="A method with its paper's changes for one dataset. See: condense-once list presets."
    ),
]
MatchingNet = Annotated[
    str | None,
    typer.Option(
        "--net",
        help="Network to match images with; by default convnet-d3 up to 64 pixels (half as wide with --minutes on a CPU),"
        " resnet10-ap above. See: condense-once list nets.",
    ),
]
Minutes = Annotated[
    float | None,
    typer.Option("--minutes", help="Time budget: fewer steps than the paper's, and the run ends when the time is up."),
]
Factor = Annotated[
    int | None,
    typer.Option(
        "--factor",
        min=1,
        help="Pack FACTOR×FACTOR smaller patches into each stored image, upsampled for training; 1 packs none. By default"
        " the method's choice.",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--override",
        metavar="NAME=VALUE",
        help="Override a hyperparameter of the method, such as image_lr=0.01; repeatable. See: docs/recipes.md.",
    ),
]

Nested = Annotated[
    bool,
    typer.Option(
        "--nested",
        help="Condense so that the first images of every class are a good set of their own, for every number of them; the"
        " set is then ranked by construction.",
    ),
]
ExpertsFolder = Annotated[
    Path | None,
    typer.Option("--experts", help="Folder of trained networks (see `experts`), for methods that use them."),
]


def condense(
    source: SourceName,
    ipc: Ipc,
    out: Annotated[Path, typer.Option("--out", "-o", help="The condensed-set file to write.")],
    method: Method = None,
    preset: PresetName = None,
    minutes: Minutes = None,
    factor: Factor = None,
    net: MatchingNet = None,
    seed: Seed = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Resume from the checkpoint next to the output.")] = False,
    save_every: Annotated[
        float, typer.Option("--save-every", min=0, help="Minutes between checkpoints, for --resume.")
    ] = 3.0,
    overrides: Overrides = None,
    init: Annotated[
        str | None,
        typer.Option("--init", help="Start from this condensed set (file or bundled name) instead of real images."),
    ] = None,
    nested: Nested = False,
    experts: ExpertsFolder = None,
    draw_images: Annotated[
        bool, typer.Option("--contact-sheet", help="Draw the images to a PNG next to the output at every checkpoint.")
    ] = False,
    eval_every: Annotated[
        int | None,
        typer.Option("--eval-every", min=1, help="Every N matching networks, evaluate on held-out training images."),
    ] = None,
    tensorboard: Annotated[
        Path | None, typer.Option("--tensorboard", help="Folder to write TensorBoard logs to.")
    ] = None,
    dtype: StoredDtypeName = None,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    size: Size = None,
    values: Values = None,
    data_dir: DataDir = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Condense real images to a few per class, with checkpoints every few minutes and on Ctrl-C.

    Example: `condense-once condense cifar10 --ipc 10 --minutes 30 -o mine.safetensors`
    """
    began = time.perf_counter()  # importing torch takes seconds, which count towards --minutes
    from condense_once.condensed.file import refuse_output
    from condense_once.condensing.callbacks import ContactSheet, TensorBoard
    from condense_once.condensing.distributed import is_primary
    from condense_once.condensing.runner import condense as run
    from condense_once.data.open import open_source
    from condense_once.files import refuse_existing
    from condense_once.train.compute_config import ComputeConfig

    refuse_output(out, force, inputs=[Path(init)] if init else [])
    opened = open_shown if is_primary() else open_source
    images = opened(source, data_dir=data_dir, size=size, values=values)
    compute = ComputeConfig(precision, compilation, device)
    # Rank 0 alone draws and logs.
    callbacks: list[Callback] = [TensorBoard(tensorboard)] if tensorboard and is_primary() else []
    if draw_images:
        sheet = out.with_name(f"{out.name}.png")
        refuse_existing(sheet, force or resume)
        callbacks.append(ContactSheet(sheet))
    run_to_file(
        partial(
            run,
            images,
            ipc=ipc,
            method=method,
            factor=factor,
            preset=preset,
            minutes=minutes,
            net=net,
            seed=seed,
            overrides=read_overrides(overrides),
            init=init,
            nested=nested,
            experts=experts_root(experts, data_dir),
            resume=resume,
            save_every=save_every,
            eval_every=eval_every,
            compute=compute,
            dtype=dtype,
            began=began,
        ),
        out,
        callbacks,
        force=force,
        as_json=as_json,
    )


def checkpoint_of(out: Path) -> Path:
    return out.with_name(f"{out.name}.checkpoint")


def run_to_file(
    run: Callable[..., CondensedSet], out: Path, callbacks: Sequence[Callback], *, force: bool, as_json: bool
) -> None:
    """Run a condenser with a progress bar and a checkpoint beside its output, save the set, and print what was made."""
    from condense_once.condensed.file import save
    from condense_once.condensing.distributed import is_primary
    from condense_once.condensing.stop_signals import Interrupted

    checkpoint, primary, speed = checkpoint_of(out), is_primary(), _Speed()
    bars = track("condensing", MofNCompleteColumn(), speed) if primary else nullcontext(lambda done, total: None)
    try:
        with bars as bar:
            data = run(
                checkpoint=checkpoint,
                callbacks=[*callbacks, _display(speed, bar)],
                notify=lambda sentence: note([sentence]),
            )
    except Interrupted as interrupted:
        if primary:
            note([str(interrupted)])
        raise typer.Exit(interrupted.exit_code) from None
    if not primary:
        return
    try:
        save(data, out, force=force)
    except InaccessibleFile as error:
        left = checkpoint.exists()
        again = f"repeat the command with --resume to continue from {checkpoint}" if left else "repeat the command"
        raise InaccessibleFile(f"{str(error).rstrip('.')}; free some space, then {again}.") from error
    checkpoint.unlink(missing_ok=True)
    _print_result(data, out, as_json=as_json)


def plan(
    source: SourceName,
    ipc: Ipc,
    method: Method = None,
    preset: PresetName = None,
    minutes: Minutes = None,
    factor: Factor = None,
    net: MatchingNet = None,
    overrides: Overrides = None,
    nested: Nested = False,
    experts: ExpertsFolder = None,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    size: Size = None,
    values: Values = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Estimate the time and memory of `condense` without running it.

    Example: `condense-once plan condense cifar10 --method idc --ipc 10`
    """
    from condense_once.condensing.config import CondenseConfig
    from condense_once.condensing.runner import estimate_condensing
    from condense_once.train.compute_config import ComputeConfig

    images = open_shown(source, data_dir=data_dir, size=size, values=values)
    config = CondenseConfig.for_source(
        images,
        ipc=ipc,
        method=method,
        factor=factor,
        preset=preset,
        minutes=minutes,
        net=net,
        overrides=read_overrides(overrides),
        nested=nested,
        device=device,
    )
    root = experts_root(experts, data_dir)
    with measuring():
        estimate = estimate_condensing(images, config, ComputeConfig(precision, compilation, device), experts=root)
    if as_json:
        print_json(asdict(estimate))
        return
    memory = "" if estimate.bytes is None else f" and {human_bytes(estimate.bytes)} of memory"
    shortened = "" if minutes is None else ", shortened to fit"
    total = time_range(*(estimate.seconds_range or (estimate.seconds, estimate.seconds)))
    echo(
        f"{plural(estimate.iterations, 'network')} with {plural(estimate.steps, 'step')} per class each{shortened}: {total}"
        f"{memory}; one step of one class takes {human_time(estimate.step_seconds)}."
    )


def experts_root(folder: Path | None, data_dir: Path | None) -> Path | None:
    """The folder of all experts: the one that is named, or the one in the folder of datasets that is named."""
    return folder or (data_dir / "experts" if data_dir is not None else None)


def read_overrides(given: list[str] | None) -> dict[str, Any]:
    """`NAME=VALUE` texts as a mapping."""
    found: dict[str, Any] = {}
    for text in given or []:
        name, separator, value = text.partition("=")
        if not separator or not name or not value:
            raise BadOption(f"--override takes NAME=VALUE, such as image_lr=0.01, not {text!r}.")
        if name in found:
            raise BadOption(f"--override {name} is given twice; give it once.")
        found[name] = value
    return found


class _Speed(ProgressColumn):
    """Loss and speed beside the progress bar."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def render(self, task: Task) -> Text:
        return Text(self.text)


def _display(speed: _Speed, bar: Callable[[int, int | None], None]) -> Callback:
    """Updates the progress bar; without a terminal, prints a line at every checkpoint."""
    from condense_once.condensing.callbacks import Callback

    class Display(Callback):
        def on_item_end(self, progress: RunProgress) -> None:
            loss = "" if progress.loss is None else f"loss {progress.loss:.4g}, "
            speed.text = f"{loss}{progress.images_per_second:.0f} images/s"
            bar(progress.done, progress.total)

        def on_checkpoint(self, progress: RunProgress) -> None:
            if not err_console.is_terminal:
                left = "" if progress.seconds_left is None else f", {human_time(progress.seconds_left)} left"
                note([f"{progress.done / progress.total:.1%}, {speed.text}{left}; saved."])

    return Display()


def _print_result(data: CondensedSet, out: Path, *, as_json: bool) -> None:
    if as_json:
        print_json(set_facts(data, out))
        return
    echo(
        f"{out}: {plural(len(data), 'patch')} of {plural(len(data.classes), 'class')}, {human_bytes(out.stat().st_size)},"
        f" in {human_time(data.provenance['seconds'])}."
    )
    if data.ranking is None:
        suggest("rank", out, "-o", f"{out.stem}-ranked{out.suffix}")
    else:
        suggest("resize", out, "--ipc", 1, "-o", f"{out.stem}-ipc1{out.suffix}")
