from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import MofNCompleteColumn, ProgressColumn, Task
from rich.text import Text

from condense_once.cli.options import CompileName, Device, Force, Home, Json, PrecisionName
from condense_once.cli.planning import measuring
from condense_once.cli.printing import err_console, note, print_json, suggest, track
from condense_once.errors import BadOption
from condense_once.text import human_bytes, human_time

if TYPE_CHECKING:
    from condense_once.condensed.set import CondensedSet
    from condense_once.condensing.callbacks import Observer, Status, TensorBoard
    from condense_once.data.source import Source
    from condense_once.train.hardware import ComputeConfig

SourceName = Annotated[str, typer.Argument(help="A known source, or the path of one, such as a folder of images.")]
Ipc = Annotated[int, typer.Option("--ipc", min=1, help="Images per class.")]
Method = Annotated[str | None, typer.Option("--method", help="See: condense-once list condensers.")]
PresetName = Annotated[str | None, typer.Option("--preset", help="See: condense-once list presets.")]
MatchedBy = Annotated[
    str | None,
    typer.Option(
        "--net",
        help="By which images are matched: by default convnet-d3, or half as wide with --minutes on a CPU, and above 64 pixels"
        " resnet10-ap. See: condense-once list nets.",
    ),
]
Minutes = Annotated[float | None, typer.Option("--minutes", help="Cut the recipe to this time.")]
Factor = Annotated[
    int | None,
    typer.Option("--factor", min=1, help="Patches along each side of an image; by default the method's: 2, 3 or 1."),
]
Changes = Annotated[
    list[str] | None, typer.Option("--set", help="A field of the recipe, as NAME=VALUE; any number of times.")
]
Size = Annotated[int | None, typer.Option("--size", min=1, help="Side to which the images of a folder are brought.")]


def condense(
    source: SourceName,
    ipc: Ipc,
    out: Annotated[Path, typer.Option("--out", "-o", help="The condensed-set file to write.")],
    method: Method = None,
    preset: PresetName = None,
    minutes: Minutes = None,
    factor: Factor = None,
    net: MatchedBy = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same machine: same set, unless --minutes cuts it.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint beside the output.")] = False,
    save_every: Annotated[float, typer.Option("--save-every", min=0, help="Minutes between two checkpoints.")] = 3.0,
    changes: Changes = None,
    start: Annotated[str | None, typer.Option("--start", help="A condensed set to begin from.")] = None,
    snapshot: Annotated[bool, typer.Option("--snapshot", help="Draw a contact sheet now and then.")] = False,
    eval_every: Annotated[
        int | None,
        typer.Option(
            "--eval-every", min=1, help="Networks after which the images are tried on training images held back."
        ),
    ] = None,
    tensorboard: Annotated[Path | None, typer.Option("--tensorboard", help="A folder for TensorBoard.")] = None,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    size: Size = None,
    home: Home = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Condense real images to a few per class. The run is saved every few minutes and when it is stopped.

    Example: `condense-once condense cifar10 --method idc --ipc 10 --minutes 60 -o mine.safetensors`
    """
    from condense_once.condensed.bundled import load
    from condense_once.condensed.file import refuse_output, save
    from condense_once.condensing.callbacks import TensorBoard
    from condense_once.condensing.distributed import is_first
    from condense_once.condensing.runner import condense as run
    from condense_once.condensing.signals import Stopped
    from condense_once.data.open import open_source
    from condense_once.train.hardware import ComputeConfig

    refuse_output(out, force, inputs=[Path(start)] if start else [])
    checkpoint = out.with_name(f"{out.name}.checkpoint")
    images = open_source(source, home=home, size=size)
    first = is_first()
    compute = ComputeConfig(precision, compilation, device)
    # Pictures, boards and bars are the first process's affair, but all hold back the same images
    board = TensorBoard(tensorboard) if tensorboard and first else None
    picture = out.with_name(f"{out.name}.png") if snapshot else None
    images, observers = _watch(images, picture, eval_every, board, net, seed, compute)
    latest = _Latest()
    bars = track("condensing", MofNCompleteColumn(), latest) if first else nullcontext(lambda done, total: None)
    try:
        with bars as bar:
            data = run(
                images,
                ipc=ipc,
                method=method,
                factor=factor,
                preset=preset,
                minutes=minutes,
                net=net,
                seed=seed,
                changes=read_changes(changes),
                start=None if start is None else load(start),
                checkpoint=checkpoint,
                resume=resume,
                save_every=60 * save_every,
                compute=compute,
                observers=[*observers, latest.look, lambda status: bar(status.done, status.total)],
                say=lambda sentence: note([sentence]),
            )
    except Stopped as stopped:
        if first:
            note([str(stopped)])
        raise typer.Exit(stopped.exit_code) from None
    if not first:
        return
    save(data, out, force=force)
    checkpoint.unlink(missing_ok=True)
    _tell(data, out, as_json=as_json)


def plan(
    source: SourceName,
    ipc: Ipc,
    method: Method = None,
    preset: PresetName = None,
    minutes: Minutes = None,
    factor: Factor = None,
    net: MatchedBy = None,
    changes: Changes = None,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    size: Size = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Estimate the time and memory of `condense` without running it.

    Example: `condense-once plan condense cifar10 --preset idc-cifar10 --ipc 10`
    """
    from condense_once.condensing.config import make_request
    from condense_once.condensing.plan import plan_condensing
    from condense_once.data.open import open_source
    from condense_once.train.hardware import ComputeConfig

    images = open_source(source, home=home, size=size)
    request = make_request(
        images,
        ipc=ipc,
        method=method,
        factor=factor,
        preset=preset,
        minutes=minutes,
        net=net,
        changes=read_changes(changes),
    )
    compute = ComputeConfig(precision, compilation, device)
    with measuring():
        estimate = plan_condensing(images, request, compute)
    if as_json:
        print_json(asdict(estimate))
        return
    memory = "" if estimate.bytes is None else f" and {human_bytes(estimate.bytes)} of memory"
    cut = "" if minutes is None else ", cut to fit"
    typer.echo(
        f"{estimate.networks} networks with {estimate.steps} steps per class each{cut}: about"
        f" {human_time(estimate.seconds)}{memory}; one step of one class takes {human_time(estimate.step_seconds)}."
    )


def read_changes(given: list[str] | None) -> dict[str, Any]:
    """`NAME=VALUE` texts as a table."""
    found: dict[str, Any] = {}
    for text in given or []:
        name, separator, value = text.partition("=")
        if not separator or not name or not value:
            raise BadOption(f"--set takes NAME=VALUE, such as rate=0.01, not {text!r}.")
        if name in found:
            raise BadOption(f"--set {name} is given twice; give it once.")
        found[name] = value
    return found


class _Latest(ProgressColumn):
    """Loss and speed beside the bar; where there is no terminal, a line whenever the run is saved."""

    def __init__(self) -> None:
        super().__init__()
        self._text = ""

    def look(self, status: Status) -> None:
        loss = "" if status.loss is None else f"loss {status.loss:.4g}, "
        self._text = f"{loss}{status.images_per_second:.0f} images/s"
        if status.moment == "saved" and not err_console.is_terminal:
            left = "" if status.seconds_left is None else f", {human_time(status.seconds_left)} left"
            note([f"{status.done / status.total:.1%}, {self._text}{left}; saved."])

    def render(self, task: Task) -> Text:
        return Text(self._text)


def _tell(data: CondensedSet, out: Path, *, as_json: bool) -> None:
    facts = {"file": str(out), "patches": len(data), "bytes": out.stat().st_size, **data.provenance}
    if as_json:
        print_json(facts)
        return
    typer.echo(
        f"{out}: {len(data)} patches of {len(data.classes)} classes, {human_bytes(facts['bytes'])},"
        f" in {human_time(facts['seconds'])}."
    )
    suggest("rank", out, "-o", f"{out.stem}-ranked{out.suffix}")


def _watch(
    images: Source,
    picture: Path | None,
    eval_every: int | None,
    board: TensorBoard | None,
    net: str | None,
    seed: int,
    compute: ComputeConfig,
) -> tuple[Source, list[Observer]]:
    """Who watches, as asked for; and the source without what is held back for them."""
    from condense_once.condensing.callbacks import accuracies, snapshots
    from condense_once.data.split import hold_out

    observers: list[Observer] = [] if board is None else [board]
    if picture is not None:
        observers.append(snapshots(picture))
    if eval_every is None:
        return images, observers

    def say(networks: int, share: float) -> None:
        note([f"After {networks} networks: {share:.2%} on training images held back (quick protocol, n = 1)."])
        if board is not None:
            board.accuracy(networks, share)

    kept, held = hold_out(images)
    return kept, [*observers, accuracies(held, eval_every, say, net=net, seed=seed, compute=compute)]
