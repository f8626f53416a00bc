from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condense_once.cli.options import Force, Net, split_names
from condense_once.cli.planning import measuring
from condense_once.cli.printing import classes_there, note, suggest, track
from condense_once.cli.score import runs_text
from condense_once.errors import BadFile, BadOption
from condense_once.text import human_bytes

if TYPE_CHECKING:
    from condense_once.condensed.budget import Budget
    from condense_once.condensed.set import CondensedSet
    from condense_once.select.rule import Rule


def resize(
    file: Annotated[str, typer.Argument(help="A ranked file, or with --rule any.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The smaller file to write.")],
    ipc: Annotated[int | None, typer.Option(min=1, help="Images per class.")] = None,
    total: Annotated[int | None, typer.Option(min=1, help="Patches in all.")] = None,
    fraction: Annotated[str | None, typer.Option(help="Share of the patches, such as 0.25 or 25%.")] = None,
    most_bytes: Annotated[str | None, typer.Option("--bytes", help="The file is never larger, such as 64KiB.")] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Training on it takes no longer here, as far as planned.")
    ] = None,
    classes: Annotated[
        str | None, typer.Option(metavar="A,B,…", help='Only these classes; "in quotes" with commas.')
    ] = None,
    per_class: Annotated[Path | None, typer.Option(help="JSON file: class name to number of patches.")] = None,
    renumber: Annotated[bool, typer.Option("--renumber", help="Number the chosen classes from 0.")] = False,
    rule: Annotated[
        str | None,
        typer.Option(help="Choose by this rule, not by the order of the file; see: condense-once list rules."),
    ] = None,
    protocol: Annotated[str | None, typer.Option(help="Whose training --seconds is about; by default quick.")] = None,
    net: Net = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="With --rule, seed of everything drawn; by default 0.")
    ] = None,
    force: Force = False,
) -> None:
    """Take a smaller set from a ranked one, in milliseconds: no training, no condensing.

    With --rule from any set, by scores that it has (see `condense-once score`) or else by a training run.

    Example: `condense-once resize ranked.safetensors --ipc 1 -o small.safetensors`
    """
    from condense_once.condensed.budget import Budget
    from condense_once.condensed.bundled import find_set
    from condense_once.condensed.file import SetFile, refuse_output, save
    from condense_once.condensed.subset import Stock, choose, require_ranking
    from condense_once.select.rule import Rule

    path = find_set(file)
    refuse_output(out, force, inputs=[path])
    stray = (protocol and seconds is None) or (net and seconds is None and rule is None)
    if stray or (seed is not None and rule is None):
        raise BadOption("--protocol is about --seconds, --seed about --rule, and --net about either; leave it out.")
    by = None if rule is None else Rule.parse(rule)
    budget = Budget(
        ipc=ipc,
        total=total,
        fraction=fraction,
        bytes=most_bytes,
        classes=None if classes is None else split_names(classes),
        per_class=None if per_class is None else _counts(per_class),
        renumber=renumber,
    )
    if seconds is not None and (ipc or total or fraction or per_class):
        raise BadOption(
            "--seconds says how many patches there are in all, so leave out --ipc, --total, --fraction and --per-class."
        )
    if seconds is None and classes is None and not budget.cuts:
        raise BadOption(
            "Say how much to keep: --ipc, --total, --fraction, --bytes, --seconds, --classes or --per-class."
        )
    opened = SetFile.open(path)
    if seconds is not None:
        if by is None:
            require_ranking(opened.header, file)
        budget = _in_time(opened.read(), seconds, budget, protocol or "quick", net)
    if by is None:
        chosen = choose(budget, Stock.on_file(opened, called=file))
        data, notes = chosen.of(opened.read(chosen.stop)), chosen.notes
    else:
        data, notes = _by_rule(opened.read(), by, budget, net, seed, file)
    save(data, out, force=force)
    typer.echo(f"{out}: {len(data)} patches of {classes_there(data)} classes, {human_bytes(out.stat().st_size)}.")
    note(notes)
    suggest("evaluate", out)


def _by_rule(
    data: CondensedSet, rule: Rule, budget: Budget, net: str | None, seed: int | None, file: str
) -> tuple[CondensedSet, tuple[str, ...]]:
    from condense_once.select.select import find_out, has_scores, keep_by, size_up

    size_up(data, rule, budget)  # says no before any training
    if net is None and seed is None and has_scores(data, rule):
        note([f"Chosen by the scores by {rule.metric} that {file} has."])
    elif rule.metric != "random":
        why = (
            "features, which no file holds"
            if rule.kind == "ssp"
            else f"scores by {rule.metric}, which condense-once score keeps"
        )
        note([f"The rule {rule.name} goes by {why}; one network is trained for them."])
    with track(runs_text(1)) as progress:
        known, basis = find_out(data, rule, net=net, seed=seed, progress=progress)
    kept = keep_by(known, basis, rule, budget)
    return kept.data, kept.notes


def _in_time(data: CondensedSet, seconds: float, budget: Budget, protocol: str, net: str | None) -> Budget:
    """The budget with as many patches in all as can be trained on in time, if these are fewer than there are."""
    from condense_once.condensed.budget import Budget
    from condense_once.condensed.subset import resize as resized
    from condense_once.select.time_budget import patches_within

    pool = resized(data, Budget(classes=budget.classes)) if budget.classes else data
    with measuring():
        count = patches_within(pool, seconds, protocol=protocol, net=net)
    note([f"One training on {count} of {len(pool)} patches is planned to take up to {seconds:g} s here."])
    return budget if count == len(pool) else replace(budget, total=count)


def _counts(path: Path) -> dict[str, int]:
    from condense_once.files import existing_file

    def once(pairs: list[tuple[str, int]]) -> dict[str, int]:
        if len(dict(pairs)) < len(pairs):
            raise BadFile(f"{path} names a class twice.")
        return dict(pairs)

    try:
        counts = json.loads(existing_file(path).read_text(encoding="utf-8"), object_pairs_hook=once)
    except BadFile:
        raise
    except (ValueError, RecursionError):
        raise BadFile(f"{path} is not JSON.") from None
    if not isinstance(counts, dict) or not all(type(count) is int for count in counts.values()):
        raise BadFile(f"{path} must map class names to whole numbers.")
    return counts
