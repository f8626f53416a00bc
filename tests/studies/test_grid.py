from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from condense_once.data.image_folder import load_image_folder
from condense_once.data.source import ArraySplit, Source
from condense_once.errors import BadOption
from condense_once.metrics import ScoringRun
from condense_once.studies.grid import SAMPLED, Cell, StudyInput, cells_of, key_of, set_labels
from condense_once.studies.jobs import scoring_job
from condense_once.studies.study import Study


def test_every_place_has_as_many_cells_as_repeats(study: Study, inputs: dict[str, StudyInput]) -> None:
    cells = list(cells_of(study, inputs))
    places = [(cell.at("rule"), cell.at("size"), cell.repeat) for cell in cells]
    assert places == [(rule, size, k) for size in ("1", "2") for rule in ("random", "yoco") for k in (0, 1)]
    assert [cell.patches for cell in cells] == [3] * 4 + [6] * 4


def test_scoring_runs_are_taken_in_turns(study: Study, inputs: dict[str, StudyInput]) -> None:
    cells = list(cells_of(study.replace(repeats=5, scoring_runs=2, sizes=("1",), rules=("yoco",)), inputs))
    assert [cell.config.seed for cell in cells] == [0, 1, 0, 1, 0]
    assert [cell.repeat for cell in cells] == [0, 1, 2, 3, 4]
    assert len({job.key for cell in cells if (job := scoring_job(cell))}) == 2


def test_keys_are_of_what_decides_the_number(
    study: Study, inputs: dict[str, StudyInput], make_input: Callable[..., StudyInput]
) -> None:
    def keys(changed: Study, pair: StudyInput | None = None) -> list[str]:
        chosen = inputs if pair is None else {"tiny": pair}
        return [cell.key for cell in cells_of(changed, chosen)]

    usual = keys(study)
    assert len(set(usual)) == len(usual)
    assert keys(study.replace(name="other", summary="other", rows=("rule",), columns=("size",))) == usual
    pair = inputs["tiny"]
    assert keys(study, StudyInput(replace(pair.data, name="renamed"), pair.test)) == usual
    changes: list[dict[str, object]] = [{"protocol": "paper"}, {"nets": ("convnet-d1-w16",)}]
    for change in changes:
        assert not set(keys(study.replace(**change))) & set(usual)
    assert not set(keys(study, make_input(seed=1))) & set(usual)


def test_results_in_the_stores_of_users_stay_valid(inputs: dict[str, StudyInput]) -> None:
    """Keys as they have been since there are stores; `authors` changes nothing for a set of pixels."""
    usual = Study("small", "", sets=("tiny",), rules=("random", "yoco", "aum"), sizes=("1",), repeats=1)
    usual = usual.replace(nets=("convnet-d1-w8",), scored_by="convnet-d1-w8", precision="float32")
    run = "8258ae8918bf06177da8980f7d3ed6ae"
    for protocol, keys, evaluation in (
        ("quick", ("e20b96fb9894", "3e22ab276fa7", "f3bbdeb68744"), "7f6d0bb2d99a"),
        ("authors", ("88d1fca09290", "4de2ef18e0e3", "569f3684621b"), "12f1a2c31ec6"),
    ):
        cells = list(cells_of(usual.replace(protocol=protocol), inputs))
        assert tuple(cell.key[:12] for cell in cells) == keys
        assert [job and job.key for job in map(scoring_job, cells)] == [None, run, run]
        assert {key_of(cell.evaluation_facts(np.array([0, 4, 8])))[:12] for cell in cells} == {evaluation}


def test_a_longer_training_is_another_thing_to_rules_that_look_at_all_of_it(
    study: Study, inputs: dict[str, StudyInput]
) -> None:
    both = study.replace(rules=("yoco", "aum"))
    for old, new in zip(cells_of(both, inputs), cells_of(both.replace(scoring_epochs=7), inputs), strict=True):
        assert (old.key == new.key) == (old.rule.metric == "lbpe")


@pytest.mark.parametrize("change", [{"epochs": ("0-2",)}, {"scored_by": "convnet-d1-w16"}])
def test_random_rules_do_not_depend_on_how_others_are_scored(
    change: dict[str, object], study: Study, inputs: dict[str, StudyInput]
) -> None:
    for old, new in zip(cells_of(study, inputs), cells_of(study.replace(**change), inputs), strict=True):
        assert (old.key == new.key) == (old.rule.metric == "random")


def test_sets_that_call_themselves_the_same_are_told_apart(
    study: Study, inputs: dict[str, StudyInput], make_input: Callable[..., StudyInput]
) -> None:
    both = study.replace(sets=("tiny", "other"))
    cells = cells_of(both, {**inputs, "other": make_input(seed=1)})
    assert list(dict.fromkeys(cell.at("set") for cell in cells)) == ["tiny", "other"]
    files = study.replace(sets=("/a/x.safetensors", "/b/y.safetensors", "/c/y.safetensors"))
    alike = {name: make_input(seed=seed) for seed, name in enumerate(files.sets)}
    keys = [alike[name].set_key[:8] for name in files.sets]
    assert list(set_labels(files, alike).values()) == ["x", f"tiny ({keys[1]})", f"tiny ({keys[2]})"]
    same = dict.fromkeys(files.sets, make_input())
    assert list(set_labels(files, same).values()) == ["x", "/b/y.safetensors", "/c/y.safetensors"]
    whole = make_input()
    resized = dict(
        zip(files.sets, (whole, replace(whole, data=whole.data.take(np.arange(0, 12, 2))), whole), strict=True)
    )
    assert list(set_labels(files, resized).values()) == ["x", "tiny (ipc 2)", "y"]
    named = cells_of(both, {**inputs, "other": make_input("mine", seed=1)})
    assert list(dict.fromkeys(cell.at("set") for cell in named)) == ["tiny", "mine"]


def test_all_rules_share_a_scoring_run_but_for_those_that_need_more(
    study: Study, inputs: dict[str, StudyInput]
) -> None:
    rules = ("yoco", "el2n", "aum-easy", "ssp", "lbpe-clean")
    several = study.replace(rules=rules, sizes=("1",), repeats=1, epochs=("0-1", "2-2"), columns=("rule", "epochs"))
    cells = cells_of(several, inputs)
    keys = {(cell.rule.name, cell.at("epochs")): job.key for cell in cells if (job := scoring_job(cell))}
    assert len(keys) == 10
    assert len({key for (rule, _), key in keys.items() if not rule.startswith("lbpe-clean")}) == 1
    assert len(set(keys.values())) == 2


def test_rules_that_keep_the_same_are_one_evaluation(study: Study, inputs: dict[str, StudyInput]) -> None:
    everything = study.replace(rules=("random", "random-balanced"), sizes=("100%",), repeats=1)
    first, second = cells_of(everything, inputs)

    def facts(cell: Cell) -> dict[str, object]:
        labels = cell.input.data.labels
        return cell.evaluation_facts(cell.rows(ScoringRun(labels)))

    assert first.key != second.key
    assert facts(first) == facts(second)


def test_other_test_images_are_another_test(inputs: dict[str, StudyInput]) -> None:
    pair = inputs["tiny"]
    split = pair.test.test
    changed = split.take(slice(None)).copy()
    changed[1, 0, 0, 0] ^= 1
    other = Source(
        "tiny-test",
        pair.test.classes,
        pair.test.mean,
        pair.test.std,
        {"test": ArraySplit(changed, split.labels)},
    )
    assert StudyInput(pair.data, other).test_key != pair.test_key
    assert StudyInput(pair.data, replace(pair.test, name="svhn")).test_key != pair.test_key
    relabelled = replace(other, splits={"test": ArraySplit(split.take(slice(None)), np.roll(split.labels, 1))})
    assert StudyInput(pair.data, relabelled).test_key != pair.test_key


def test_other_files_in_a_folder_are_another_test(inputs: dict[str, StudyInput], tmp_path: Path) -> None:
    def key() -> str:
        return StudyInput(inputs["tiny"].data, load_image_folder(tmp_path)).test_key

    for number in range(3 * SAMPLED):
        place = tmp_path / "test" / f"kind {number % 3}"
        place.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (number, 0, 0)).save(place / f"{number:03}.png")
    before = key()
    assert key() == before
    unseen = tmp_path / "test" / "kind 1" / "001.png"
    Image.effect_noise((8, 8), 50).convert("RGB").save(unseen)
    assert key() != before


def test_the_key_of_a_folder_is_of_its_folders_not_of_words_for_them(
    inputs: dict[str, StudyInput], tmp_path: Path
) -> None:
    for name in ("n01440764", "n03028079", "n03445777"):
        (tmp_path / "test" / name).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "test" / name / "a.png")
    test = load_image_folder(tmp_path)
    assert test.classes == ("tench", "church", "golf ball")
    by_id = replace(test, classes=("n01440764", "n03028079", "n03445777"))
    assert StudyInput(inputs["tiny"].data, test).test_key == StudyInput(inputs["tiny"].data, by_id).test_key


def test_sizes_that_leave_nothing_out_are_passed_over_on_request(study: Study, inputs: dict[str, StudyInput]) -> None:
    sizes = study.replace(sizes=("1", "2", "4", "10"), fitting=True)
    assert {cell.at("size") for cell in cells_of(sizes, inputs)} == {"1", "2"}


def test_a_size_that_is_too_large_is_said_before_anything_runs(study: Study, inputs: dict[str, StudyInput]) -> None:
    with pytest.raises(BadOption, match="fewer than 27"):
        list(cells_of(study.replace(sizes=("9",)), inputs))


def test_a_number_by_a_metric_whose_ties_are_resolved_otherwise_has_another_key(
    inputs: dict[str, StudyInput],
) -> None:
    study = Study("ties", "keys", sets=("tiny",), rules=("forgetting", "el2n", "ssp"), sizes=("1",), repeats=1)
    facts = {cell.rule.name: cell.facts["scores"].get("ties") for cell in cells_of(study, inputs)}
    assert facts == {"forgetting": "last", "el2n": None, "ssp": None}
