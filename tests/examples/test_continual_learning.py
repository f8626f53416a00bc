"""A replay memory never exceeds its bytes, keeps the best of every class, and runs resume."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from examples.continual_learning.experiment import ALL_IMAGES, NO_MEMORY, Data, Run, Setting, run
from examples.continual_learning.memory import ReplayMemory, at_half_size
from examples.continual_learning.policies import POLICIES, Task, herded_exemplars
from examples.continual_learning.report import table
from examples.continual_learning.run import append, jobs, read_log

from condense_once import BadOption, CondensedSet, Source, coreset, load

SETTING = Setting(net="convnet-d3-w16", steps=2, images=5, test_images=50)


@pytest.fixture(scope="module")
def condensed() -> CondensedSet:
    return load("cifar10-idc-ipc10")


@pytest.fixture(scope="module")
def data() -> Data:
    return Data.bundled(SETTING)


def one_class(condensed: CondensedSet, label: int) -> CondensedSet:
    return condensed.take(condensed.labels == label)


def test_each_new_task_cuts_the_stored_classes_to_prefixes(condensed: CondensedSet) -> None:
    memory = ReplayMemory(30 * 1024)
    for first in range(0, 10, 2):
        memory.store({label: one_class(condensed, label) for label in (first, first + 1)})
        assert memory.used <= memory.capacity
        for label, kept in memory.exemplars.items():
            np.testing.assert_array_equal(kept.cells, one_class(condensed, label).cells[: len(kept)])
    assert memory.counts() == dict.fromkeys(range(10), 4)
    assert memory.used == memory.capacity


def test_a_remainder_is_used_and_a_memory_too_small_drops_classes(condensed: CondensedSet) -> None:
    memory = ReplayMemory(5 * 768 + 767)
    memory.store({label: one_class(condensed, label) for label in range(3)})
    assert memory.counts() == {0: 2, 1: 2, 2: 1}
    tiny = ReplayMemory(768)
    tiny.store({label: one_class(condensed, label) for label in range(3)})
    assert tiny.counts() == {0: 1}
    none = ReplayMemory(0)
    none.store({0: one_class(condensed, 0)})
    assert len(none.inputs()[1]) == 0


def test_images_of_different_sizes_cannot_share_a_memory(condensed: CondensedSet, data: Data) -> None:
    with pytest.raises(BadOption, match="one size"):
        ReplayMemory(9999).store({0: one_class(condensed, 0), 1: coreset(data.source, data.rows[1])})
    with pytest.raises(BadOption, match="at least 0"):
        ReplayMemory(-1)


def test_at_half_size_an_image_takes_a_quarter_of_the_bytes_and_keeps_its_mean(source: Source) -> None:
    real = coreset(source, np.arange(4))
    small = at_half_size(real)
    assert small.cells.nbytes * 4 == real.cells.nbytes
    assert small.patches().shape == real.patches().shape
    np.testing.assert_allclose(small.patches().mean((2, 3)), real.patches().mean((2, 3)), atol=0.02)
    with pytest.raises(BadOption, match="factor 1"):
        at_half_size(small)


def test_herding_stores_first_the_image_nearest_to_the_class_mean(data: Data) -> None:
    features = np.array([[0.0], [3.0], [4.0], [5.0], [13.0]], np.float32)  # mean 5
    task = Task(data.source, data.rows, data.condensed, lambda rows: features, np.random.default_rng(0))
    assert herded_exemplars(task, 2).origin[0] == data.rows[2][3]


@pytest.mark.parametrize("policy", [*POLICIES, NO_MEMORY, ALL_IMAGES])
def test_a_run_tests_after_every_task_and_stores_what_fits(policy: str, data: Data) -> None:
    done = run(data, policy, 30 * 1024, seed=0, setting=SETTING)
    assert len(done.accuracies) == len(done.stored) == 5
    at_the_end = {NO_MEMORY: 0, ALL_IMAGES: 50}.get(policy, 10 if "32×32" in policy else 40)
    assert done.stored[-1] == at_the_end
    assert done.accuracies == run(data, policy, 30 * 1024, seed=0, setting=SETTING).accuracies


def test_only_what_is_missing_in_the_log_runs_also_after_a_crash_within_a_line(tmp_path: Path) -> None:
    log, done = tmp_path / "log.jsonl", Run(NO_MEMORY, 0, 0, (50.0, 25.0), (0, 0), 1.5)
    append(log, done, SETTING)
    with log.open("a") as file:
        file.write('{"policy": "cut sho')
    append(log, Run(ALL_IMAGES, 0, 0, (60.0, 45.0), (9, 18), 1.5), SETTING)
    assert [each.policy for each in read_log(log, SETTING)] == [NO_MEMORY, ALL_IMAGES]
    assert read_log(log, SETTING)[0] == done
    assert read_log(log, Setting()) == []  # of another setting
    assert len(list(jobs(3, [1024]))) == 3 * (len(POLICIES) + 2)


def test_the_table_has_the_best_policy_first_and_the_average_over_tasks() -> None:
    runs = [Run("worse", 1024, 0, (50.0, 20.0), (2, 2), 1.0), Run("better", 1024, 0, (50.0, 30.0), (2, 2), 1.0)]
    lines = table([*runs, Run("better", 1024, 1, (54.0, 30.0), (2, 2), 1.0)]).splitlines()
    assert lines[2] == "| better | 2 | 52.0 ± 2.8 | 30.0 ± 0.0 | 41.0 ± 1.4 | 2 |"
    assert lines[3] == "| worse | 2 | 50.0 | 20.0 | 35.0 | 1 |"
