from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from condense_once.condensed.budget import Budget, parse_bytes, parse_fraction
from condense_once.condensed.bundled import load
from condense_once.condensed.file import SetFile, header_of, save, saved_size
from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.condensed.set_view import SetView
from condense_once.condensed.space import Space
from condense_once.condensed.subset import Subset, choose_subset, count_patches, resize
from condense_once.data.open import open_source
from condense_once.errors import BadOption, UnknownName
from condense_once.studies.grid import StudyInput, cells_of
from condense_once.studies.study import Study

NAMES = ("ant", "bee", "cat", "dog", "eel")


def made(labels: list[int], *, balanced: bool = True, factor: int = 1, soft: bool = False) -> CondensedSet:
    """A ranked set with these labels in stored order; its patches tell their row by their first pixel and origin."""
    count = len(labels)
    cells = np.zeros((count, 1, 2, 2), np.uint8)
    cells[:, 0, 0, 0] = np.arange(count) % 256
    return CondensedSet(
        cells=cells,
        labels=np.array(labels),
        classes=NAMES[: max(labels) + 1],
        size=(2 * factor, 2 * factor),
        factor=factor,
        space=Space("pixels", (0.5,), (0.25,)),
        origin=np.arange(count),
        soft_labels=np.eye(max(labels) + 1, dtype=np.float32)[labels] * 3 if soft else None,
        scores={"lbpe": np.arange(count, dtype=np.float32)},
        ranking=Ranking("lbpe", "easy", balanced),
        name="made",
    )


def take_turns(sizes: list[int]) -> list[int]:
    """Labels of a balanced ranking of classes of these sizes, by plain counting."""
    left, labels = list(sizes), []
    while any(left):
        for label in range(len(left)):
            if left[label]:
                left[label] -= 1
                labels.append(label)
    return labels


def rows_of(data: CondensedSet, **budget: Any) -> list[int]:
    return [int(row) for row in selection(data, **budget).rows]


def selection(data: CondensedSet, **budget: Any) -> Subset:
    return choose_subset(SetView.of(data), Budget(**budget))


def naive(labels: list[int], counts: dict[int, int]) -> list[int]:
    """The first so many rows of each class."""
    left, rows = dict(counts), []
    for row, label in enumerate(labels):
        if left.get(label, 0) > 0:
            left[label] -= 1
            rows.append(row)
    return rows


sizes_of_classes = st.lists(st.integers(1, 9), min_size=1, max_size=5)
mixed_labels = st.lists(st.integers(0, 4), min_size=1, max_size=40)


@given(sizes=sizes_of_classes, factor=st.integers(1, 2), data=st.data())
def test_images_per_class_are_that_many_patches_in_every_class(sizes: list[int], factor: int, data: Any) -> None:
    assume(min(sizes) >= factor**2)
    ipc = data.draw(st.integers(1, min(sizes) // factor**2))
    labels = take_turns(sizes)
    chosen = selection(made(labels, factor=factor), ipc=ipc)
    assert chosen.rows.tolist() == naive(labels, dict.fromkeys(range(len(sizes)), ipc * factor**2))
    assert chosen.prefix == len(chosen.rows) == ipc * factor**2 * len(sizes)
    assert chosen.notes == ()


@given(sizes=sizes_of_classes, data=st.data())
def test_the_first_rows_of_a_ranking_are_its_totals(sizes: list[int], data: Any) -> None:
    total = data.draw(st.integers(1, sum(sizes)))
    for balanced in (True, False):
        chosen = selection(made(take_turns(sizes), balanced=balanced), total=total)
        assert chosen.rows.tolist() == list(range(total))
        assert chosen.prefix == total


@given(labels=mixed_labels, data=st.data())
def test_a_ranking_without_balance_keeps_the_best_whatever_their_class(labels: list[int], data: Any) -> None:
    ranked = made(labels, balanced=False)
    named = data.draw(st.lists(st.sampled_from(sorted(set(labels))), min_size=1, unique=True))
    pool = [row for row, label in enumerate(labels) if label in named]
    total = data.draw(st.integers(1, len(pool)))
    assert rows_of(ranked, total=total, classes=[NAMES[k] for k in named]) == pool[:total]
    if len(named) <= len(pool):
        chosen = selection(ranked, ipc=1, classes=[NAMES[k] for k in named])
        assert chosen.rows.tolist() == pool[: len(named)]
        assert "not balanced" in chosen.notes[0]


@given(sizes=sizes_of_classes, data=st.data())
def test_chosen_classes_take_turns_among_themselves(sizes: list[int], data: Any) -> None:
    labels = take_turns(sizes)
    named = data.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, unique=True))
    pool = [row for row, label in enumerate(labels) if label in named]
    total = data.draw(st.integers(1, len(pool)))
    classes = [NAMES[k] for k in named]
    assert rows_of(made(labels), total=total, classes=classes) == pool[:total]
    assert rows_of(made(labels), classes=classes) == pool
    least = min(sizes[k] for k in named)
    assert rows_of(made(labels), ipc=least, classes=classes) == naive(labels, dict.fromkeys(named, least))


@given(labels=mixed_labels, balanced=st.booleans(), data=st.data())
def test_counts_of_each_class_are_kept_exactly(labels: list[int], balanced: bool, data: Any) -> None:
    counts = {k: data.draw(st.integers(0, labels.count(k))) for k in sorted(set(labels))}
    assume(any(counts.values()))
    per_class = {NAMES[k]: count for k, count in counts.items()}
    assert rows_of(made(labels, balanced=balanced), per_class=per_class) == naive(labels, counts)


@given(sizes=sizes_of_classes, data=st.data())
def test_what_the_first_rows_tell_is_what_all_labels_tell(sizes: list[int], data: Any) -> None:
    ranked = made(take_turns(sizes), factor=1)
    whole = saved_size(header_of(ranked), ranked.scores)
    budget: dict[str, Any] = data.draw(
        st.one_of(
            st.builds(dict, ipc=st.integers(1, min(sizes))),
            st.builds(dict, total=st.integers(1, sum(sizes))),
            st.builds(dict, bytes=st.integers(whole - 100, whole)),
            st.builds(dict, bytes=st.integers(whole - 100, whole), total=st.integers(1, sum(sizes))),
        )
    )
    every = list(ranked.classes)  # naming classes makes it look at all labels
    try:
        plain = rows_of(ranked, **budget)
    except BadOption:
        with pytest.raises(BadOption):
            rows_of(ranked, **budget, classes=every)
    else:
        assert plain == rows_of(ranked, **budget, classes=every)


@given(labels=mixed_labels, balanced=st.booleans(), data=st.data())
def test_smaller_budgets_keep_parts_of_larger_ones(labels: list[int], balanced: bool, data: Any) -> None:
    ranked = made(labels, balanced=balanced)
    most = saved_size(header_of(ranked), ranked.scores)
    kind, pair = data.draw(
        st.one_of(
            st.tuples(st.just("total"), st.tuples(*[st.integers(1, len(labels))] * 2)),
            st.tuples(st.just("ipc"), st.tuples(*[st.integers(1, 3)] * 2)),
            st.tuples(st.just("fraction"), st.tuples(*[st.floats(0.01, 1)] * 2)),
            st.tuples(st.just("bytes"), st.tuples(*[st.integers(most // 2, most)] * 2)),
        )
    )
    try:
        small, large = (resize(ranked, Budget(**{kind: amount})) for amount in sorted(pair))
    except BadOption:
        assume(False)
    assert set(small.origin) <= set(large.origin)
    again = resize(large, Budget(**{kind: min(pair)})) if kind in ("total", "ipc", "bytes") else small
    assert again.origin.tolist() == small.origin.tolist()
    assert again.cells.tobytes() == small.cells.tobytes()


def test_five_and_then_one_image_a_class_is_one_image_a_class() -> None:
    ranked = replace(load("cifar10-real-ipc10"), ranking=Ranking("lbpe"))
    at_once = selection(ranked, ipc=1)
    assert (at_once.prefix, np.bincount(at_once.labels).tolist()) == (40, [4] * 10)  # 40 of 400: paper, CIFAR-10 10→1
    twice = resize(resize(ranked, Budget(ipc=5)), Budget(ipc=1))
    assert twice.origin.tolist() == resize(ranked, Budget(ipc=1)).origin.tolist()


def test_a_class_that_is_not_among_the_best_still_counts() -> None:
    ranked = made([0, 0, 1, 0], balanced=False)
    once = resize(ranked, Budget(ipc=1))
    assert once.labels.tolist() == [0, 0]
    assert resize(once, Budget(ipc=1)).labels.tolist() == [0, 0]


def test_a_choice_of_classes_can_be_made_smaller_later() -> None:
    ranked = made(take_turns([4, 4, 4]))
    two = resize(ranked, Budget(classes=["ant", "cat"]))
    assert resize(two, Budget(ipc=2)).origin.tolist() == rows_of(ranked, classes=["ant", "cat"], ipc=2)


def test_a_plain_budget_looks_at_no_more_labels_than_it_keeps() -> None:
    ranked, seen = made(take_turns([9, 9, 9])), []

    def labels(stop: int) -> np.ndarray[Any, Any]:
        seen.append(stop)
        return ranked.labels[:stop]

    view = replace(SetView.of(ranked), labels=labels)
    for budget in ({"ipc": 2}, {"total": 7}, {"fraction": 0.5}):
        choose_subset(view, Budget(**budget))
    assert seen == [6, 7, 13]


@pytest.mark.parametrize("percent", range(1, 101))
def test_fractions_are_the_decimals_they_are_written_as(percent: int) -> None:
    ranked = made(take_turns([50, 50]))
    for fraction in (percent / 100, f"{percent / 100}", f"{percent}/100", np.float64(percent / 100)):
        assert len(rows_of(ranked, fraction=fraction)) == percent


def test_a_limit_in_bytes_that_whole_rounds_do_not_use_up_says_what_would(tmp_path: Path) -> None:
    ranked = made(take_turns([9, 9, 9]))
    size = SetView.of(ranked).file_size(14, ranked.classes)
    chosen = selection(ranked, bytes=size)
    assert (len(chosen.rows), chosen.notes) == (
        12,
        (
            "12 patches in whole rounds of one per class; 14 would fit, and `total` 14 keeps them, with one more of the first"
            " classes.",
        ),
    )
    save(resize(ranked, total=14), tmp_path / "small.safetensors")
    assert (tmp_path / "small.safetensors").stat().st_size <= size
    assert not selection(ranked, bytes=SetView.of(ranked).file_size(12, ranked.classes)).notes


def test_the_remainder_goes_to_the_first_classes_with_a_note() -> None:
    chosen = selection(made(take_turns([5, 5, 5])), total=8)
    assert np.bincount(chosen.labels).tolist() == [3, 3, 2]
    assert chosen.notes == (
        "The classes cannot share 8 patches evenly, so the first keep one more: between 2 and 3 per class.",
    )


def test_others_make_up_for_classes_with_too_few_patches() -> None:
    chosen = selection(made(take_turns([5, 2, 5])), total=9)
    assert np.bincount(chosen.labels).tolist() == [4, 2, 3]
    assert chosen.notes == ("Some classes have too few patches, so others contribute more: between 2 and 4 per class.",)


def test_a_fraction_may_be_a_percentage() -> None:
    assert parse_fraction("25%") == parse_fraction("1/4") == parse_fraction(0.25) == Fraction(1, 4)


def test_labels_keep_their_numbers_or_get_new_ones() -> None:
    ranked = made(take_turns([3, 3, 3]), soft=True)
    kept = resize(ranked, Budget(ipc=1, classes=["cat", "ant"]))
    assert (kept.labels.tolist(), kept.classes) == ([0, 2], NAMES[:3])
    renumbered = resize(ranked, Budget(ipc=1, classes=["cat", "ant"], renumber=True))
    assert (renumbered.labels.tolist(), renumbered.classes) == ([0, 1], ("ant", "cat"))
    assert renumbered.soft_labels is not None
    assert renumbered.soft_labels.tolist() == [[3, 0], [0, 3]]
    counted = resize(ranked, Budget(per_class={"cat": 2, "bee": 1, "ant": 0}, renumber=True))
    assert (counted.labels.tolist(), counted.classes) == ([0, 1, 1], ("bee", "cat"))


# ---------------------------------------------------------------- bytes


@pytest.mark.parametrize("classes", [None, NAMES[:4]])
def test_where_fewer_patches_make_a_larger_file_the_limit_holds_all_the_same(classes: tuple[str, ...] | None) -> None:
    """Where the blocks of checksums double, at 16 MiB, whole turns may take more bytes than a few patches more."""
    data = made(take_turns([5500] * 4))
    cells, space = np.zeros((22_000, 3, 16, 16), np.uint8), Space("pixels", *[(0.5,) * 3] * 2)
    view = SetView.of(replace(data, cells=cells, size=(16, 16), space=space))
    sizes = {count: view.file_size(count, data.classes) for count in range(21_500, 21_600)}
    step = next(count for count in sizes if sizes[count] < sizes.get(count - 1, 0))
    assert step % 4 == 1  # so that one patch less makes whole turns
    for more in range(1, 100):
        chosen = choose_subset(view, Budget(total=step + more, bytes=sizes[step], classes=classes))
        assert sizes[len(chosen.rows)] <= sizes[step]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(share=st.floats(0, 1.1), balanced=st.booleans(), classes=st.sampled_from([None, ("bee", "dog")]))
def test_a_file_within_its_bytes_is_as_large_as_can_be(
    share: float, balanced: bool, classes: tuple[str, ...] | None, tmp_path: Path
) -> None:
    ranked = made(take_turns([60] * 4), balanced=balanced, soft=True)
    step = 1 if not balanced else 4 if classes is None else 2
    budget = Budget(classes=classes, renumber=classes is not None)
    least, most = (
        saved_size(header_of(resize(ranked, b)), ranked.scores) for b in (replace(budget, total=step), budget)
    )
    limit = least + int(share * (most - least))
    small = resize(ranked, replace(budget, bytes=limit))
    save(small, tmp_path / "small.safetensors", force=True)
    assert (tmp_path / "small.safetensors").stat().st_size <= limit
    if balanced:
        assert len({n for n in small.counts() if n}) == 1
    more = resize(ranked, replace(budget, total=min(len(small) + step, 240 if classes is None else 120)))
    save(more, tmp_path / "more.safetensors", force=True)
    assert len(more) == len(small) or (tmp_path / "more.safetensors").stat().st_size > limit


@pytest.mark.parametrize("which", ["pixel_set", "soft_set"])
@pytest.mark.parametrize("times", [1, 30])
def test_the_size_of_a_file_is_known_before_it_is_written(
    which: str, times: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    data: CondensedSet = request.getfixturevalue(which)
    data = data.take(np.tile(np.arange(len(data)), times))
    data = replace(data, scores={"é": np.zeros(len(data), np.float32)}, provenance={"said": 'a "quote" ü'})
    save(data, tmp_path / "a.safetensors")
    size = (tmp_path / "a.safetensors").stat().st_size
    file = SetFile.open(tmp_path / "a.safetensors")
    assert size == saved_size(header_of(data), data.scores) == saved_size(file.header, file.metrics)


def test_the_size_of_a_file_is_known_where_its_blocks_double(tmp_path: Path) -> None:
    row = made([0]).cells.nbytes + 2 + 4 + 4
    for count in (2**24 // row, 2**24 // row + 1):
        data = made([0] * count)
        save(data, tmp_path / "a.safetensors", force=True)
        assert (tmp_path / "a.safetensors").stat().st_size == saved_size(header_of(data), data.scores)


def test_bytes_are_a_limit_for_other_budgets() -> None:
    ranked = made(take_turns([50, 50]))
    size = saved_size(header_of(resize(ranked, Budget(ipc=20))), ranked.scores)
    assert selection(ranked, ipc=10, bytes=size).notes == ()
    cut = selection(ranked, ipc=30, bytes=size)
    assert (cut.prefix, cut.notes) == (40, (f"Only 40 of the 60 patches asked for fit in {size:,} bytes.",))
    assert len(rows_of(ranked, per_class={"bee": 20}, bytes=size)) == 20
    with pytest.raises(BadOption, match="above the limit of `bytes`"):
        rows_of(ranked, per_class={"bee": 50}, bytes=size // 2)


@pytest.mark.parametrize(
    ("text", "size"),
    [("64KiB", 65536), ("1.5MB", 1_500_000), ("1.5 mib", 1572864), ("10", 10), (10, 10), ("2k", 2000), ("0.1KB", 100)],
)
def test_sizes_have_units(text: str | int, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "KiB", "-5", "1e3", "64 KiX", "٣", "1,5MB", 1.5j, None, True, "1.2.3"])
def test_invalid_sizes_in_bytes_are_refused(text: Any) -> None:
    with pytest.raises(BadOption, match="64KiB"):
        parse_bytes(text)


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("budget", "complaint"),
    [
        ({"ipc": 1, "total": 5}, "either `ipc` or `total`"),
        ({"total": 1, "fraction": 0.5}, "either `total` or `fraction`"),
        ({"ipc": 1, "per_class": {"ant": 1}}, "either `ipc` or `per_class`"),
        ({"classes": ["ant"], "per_class": {"ant": 1}}, "either `per_class` or `classes`"),
        ({"renumber": True}, "`renumber` applies to a choice of classes"),
        ({"ipc": 0}, "integer of at least 1"),
        ({"ipc": True}, "integer of at least 1"),
        ({"total": 2.0}, "integer of at least 1"),
        ({"total": -1}, "integer of at least 1"),
        ({"fraction": 0}, "above 0 and at most 1"),
        ({"fraction": 1.01}, "above 0 and at most 1"),
        ({"fraction": float("nan")}, "above 0 and at most 1"),
        ({"fraction": "1/0"}, "above 0 and at most 1"),
        ({"fraction": "half"}, "above 0 and at most 1"),
        ({"bytes": "big"}, "64KiB"),
        ({"classes": "ant"}, "list of names"),
        ({"classes": []}, "list of names"),
        ({"classes": ["ant", "ant"]}, "distinct"),
        ({"per_class": {"ant": 1.5}}, "`per_class` 'ant'"),
        ({"per_class": {"ant": 0}}, "no patch at all"),
        ({"per_class": {}}, "no patch at all"),
        ({"per_class": ["ant"]}, "must map class names"),
    ],
)
def test_invalid_budgets_are_refused(budget: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadOption, match=complaint) as caught:
        Budget(**budget)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("budget", "complaint"),
    [
        ({"ipc": 3}, r"made has 2 images per class \(its smallest class has 8 patches\), fewer than 3; lower `ipc`"),
        ({"total": 21}, "made has 20 patches to choose from, fewer than 21"),
        ({"total": 9, "classes": ["ant"]}, "made has 8 patches to choose from, fewer than 9"),
        ({"fraction": 0.01}, "A fraction of 1 % keeps none of the 20 patches"),
        ({"per_class": {"bee": 13}}, "made has 12 patches of class 'bee', fewer than 13"),
        ({"bytes": 100}, r"The smallest subset of made makes a file of [\d,]+ bytes"),
        ({"classes": ["aunt"]}, "no class 'aunt' in made; did you mean 'ant'"),
        ({"per_class": {"aunt": 0, "bee": 1}}, "no class 'aunt' in made; did you mean 'ant'"),
    ],
)
def test_budgets_that_ask_for_what_is_not_there_name_what_is(budget: dict[str, Any], complaint: str) -> None:
    ranked = made(take_turns([8, 12]), factor=2)
    with pytest.raises((BadOption, UnknownName), match=complaint):
        selection(ranked, **budget)


def test_an_unranked_set_has_no_best_part_but_can_be_had_whole() -> None:
    data = replace(made(take_turns([3, 3])), ranking=None)
    for budget in ({"ipc": 1}, {"total": 1}, {"fraction": 0.5}, {"bytes": 9999}, {"per_class": {"ant": 1}}):
        with pytest.raises(BadOption, match="rank it first"):
            selection(data, **budget)
    assert selection(data).prefix == 6
    assert rows_of(data, classes=["bee"]) == [1, 3, 5]


def test_a_class_without_patches_cannot_be_chosen() -> None:
    data = replace(made(take_turns([2, 2])), classes=NAMES)
    with pytest.raises(BadOption, match="0 patches of class 'eel', fewer than 1"):
        selection(data, classes=["ant", "eel"])


@pytest.mark.parametrize(
    "budget", [{"ipc": 1}, {"total": 5}, {"fraction": 0.4}, {"classes": ["ant"]}, {"per_class": {"bee": 2}}, {}]
)
def test_a_file_gives_the_same_rows_as_the_set_in_memory(budget: dict[str, Any], tmp_path: Path) -> None:
    ranked = made(take_turns([4, 6, 5]))
    save(ranked, tmp_path / "a.safetensors")
    file = SetFile.open(tmp_path / "a.safetensors")
    chosen = choose_subset(SetView.of_file(file), Budget(**budget))
    assert chosen.take_from(file.read(chosen.stop)).origin.tolist() == rows_of(ranked, **budget)


# ---------------------------------------------------------------- one size type


@pytest.mark.parametrize(
    ("written", "patches", "back"),
    [
        *(("1", 3, "1"), (4, 12, "4"), ("50%", 6, "50 %"), ("50 %", 6, "50 %"), ("0.25", 3, "25 %"), (0.25, 3, "25 %")),
        *(
            ("all", 12, "100 %"),
            ("100 %", 12, "100 %"),
            ("12.7%", 1, "12.7 %"),
            ("1/3", 4, "1/3"),
            ("99.9999999%", 11, None),
        ),
    ],
)
def test_sizes_are_read_counted_and_written_back(written: str | float, patches: int, back: str | None) -> None:
    budget = Budget.parse(written)
    assert count_patches(made([0, 1, 2] * 4), budget) == patches
    assert str(budget) == (back or str(budget))
    assert Budget.parse(str(budget)) == budget


@pytest.mark.parametrize("written", ["0", "-1", "120%", "0%", "1.5", "1.0", "many", "", "nan", "inf", "64KiB"])
def test_other_sizes_are_refused(written: str) -> None:
    with pytest.raises(BadOption, match="A size is images per class"):
        Budget.parse(written)


def test_a_size_keeps_at_least_one_patch_and_at_most_all() -> None:
    data = made([0, 1, 2] * 4)
    with pytest.raises(BadOption, match="has 12 patches to choose from, fewer than 15"):
        count_patches(data, Budget.parse("5"))
    with pytest.raises(BadOption, match="A fraction of 1 % keeps none of the 12 patches"):
        count_patches(data, Budget.parse("1%"))


def test_a_study_and_resize_round_a_fraction_alike() -> None:
    """Down: 12.7 % of 400 patches are 50.8."""
    study = Study("mine", "a fraction", rules=("yoco",), sizes=("12.7%",), repeats=1)
    data = load(study.sets[0])
    (cell,) = cells_of(study, {study.sets[0]: StudyInput(data, open_source("cifar10-sample"))})
    assert cell.patches == len(resize(data, fraction="12.7%")) == len(resize(data, "12.7%")) == 50


def test_resize_takes_a_name_a_path_or_a_set(tmp_path: Path) -> None:
    data = load("cifar10-idc-ipc10")
    save(data, tmp_path / "ranked.safetensors")
    expected = resize(data, Budget(ipc=1))
    for source in ("cifar10-idc-ipc10", tmp_path / "ranked.safetensors", str(tmp_path / "ranked.safetensors"), data):
        small = resize(source, ipc=1)
        assert small.origin.tolist() == expected.origin.tolist()
        assert small.provenance == expected.provenance
    with pytest.raises(BadOption, match="either `budget` or `total`"):
        resize(data, Budget(ipc=1), total=3)


def test_equal_fractions_make_equal_budgets() -> None:
    assert Budget(fraction=0.3) == Budget(fraction="30%") == Budget(fraction=Fraction(3, 10)) == Budget.parse("0.3")
    assert len({Budget(fraction=0.3, classes=["cat"]), Budget(fraction="30 %", classes=("cat",))}) == 1
    assert Budget(bytes="1KiB") == Budget(bytes=1024)
    assert str(Budget(ipc=1, classes=["cat"])).startswith("Budget(")
