from __future__ import annotations

import io
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from condense_once.errors import BadFile
from condense_once.studies.database import ROWS
from condense_once.studies.store import ROW_OVERHEAD, Store, StoredScoringRun, StoredSelection


def test_what_was_put_in_comes_out_of_another_process_view(store: Store) -> None:
    rows = np.array([1, 5, 7])
    store.add_selection("s", {"rule": "yoco"}, StoredSelection(rows, "e", "w"))
    store.add_selection("no", {"rule": "yoco"}, "too short")
    store.add_evaluation("e", {"kept": "x", "net": "n"}, {"accuracy": 0.4}, work=10.0, seconds=2.0)
    store.add_scoring_run("w", {"net": "n", "training": 100}, b"bytes", work=1.0, seconds=1.0)
    other = Store(store.path)
    selected = other.selection("s")
    assert isinstance(selected, StoredSelection)
    assert other.selection("no") == "too short"
    assert (selected.rows.tolist(), selected.evaluation_key, selected.scoring_key) == ([1, 5, 7], "e", "w")
    measured = other.evaluation("e")
    assert measured is not None
    assert (measured.result, measured.error, measured.seconds) == ({"accuracy": 0.4}, None, 2.0)
    assert other.scoring_bytes("w") == b"bytes"
    scoring = other.scoring_run("w")
    assert isinstance(scoring, StoredScoringRun)
    assert (scoring.key, scoring.epochs, scoring.seconds) == ("w", 100, 1.0)


def test_the_pace_is_that_of_a_network_or_else_of_all(store: Store) -> None:
    assert store.seconds_per_work("slow") is None
    store.add_evaluation("a", {"net": "slow"}, {}, work=10.0, seconds=5.0)
    store.add_evaluation("b", {"net": "fast"}, {}, work=30.0, seconds=3.0)
    store.add_evaluation("c", {"net": "slow"}, "it broke", work=10.0, seconds=100.0)
    assert [store.seconds_per_work(net) for net in ("slow", "fast", "other")] == [0.5, 0.1, 0.2]


def test_what_is_too_large_for_a_store_is_a_failure_of_that_run_alone(store: Store) -> None:
    limit = ROW_OVERHEAD + 100
    store._database.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limit)
    store.add_scoring_run("small", {}, bytes(100), work=1.0, seconds=1.0)
    store.add_scoring_run("large", {}, bytes(101), work=1.0, seconds=1.0)
    assert store.scoring_bytes("small") == bytes(100)
    assert "shorter `scoring_epochs`" in str(store.scoring_run("large"))


def test_what_is_not_there_is_none(store: Store) -> None:
    assert store.selection("s") is store.evaluation("e") is store.scoring_bytes("w") is store.scoring_run("w") is None
    assert not store.knows("e")


def test_failures_are_known_until_they_are_forgotten(store: Store) -> None:
    store.add_evaluation("e", {}, "it broke", work=1.0, seconds=1.0)
    store.add_evaluation("good", {}, {"accuracy": 1.0}, work=1.0, seconds=1.0)
    store.add_scoring_run("w", {}, "it broke too", work=1.0, seconds=1.0)
    assert store.knows("e")
    assert store.knows("w")
    assert store.scoring_run("w") == "it broke too"
    assert store.scoring_bytes("w") is None
    store.add_selection("no", {"rule": "yoco"}, "too short")
    assert store.forget_errors(["good", "other"]) == 0
    assert store.forget_errors(["e", "w", "no", "good"]) == 3
    assert store.selection("no") is None
    assert [store.knows(key) for key in ("e", "w", "good")] == [False, False, True]


def test_a_result_is_not_replaced_by_an_error_of_a_process_whose_claim_expired(store: Store) -> None:
    store.add_evaluation("e", {}, {"accuracy": 0.4}, work=1.0, seconds=1.0)
    store.add_evaluation("e", {}, "it broke", work=1.0, seconds=1.0)
    measured = store.evaluation("e")
    assert measured is not None
    assert measured.result == {"accuracy": 0.4}
    store.add_evaluation("f", {}, "it broke", work=1.0, seconds=1.0)
    store.add_evaluation("f", {}, {"accuracy": 0.5}, work=1.0, seconds=1.0)
    assert store.forget_errors("ef") == 0


def test_studies_are_remembered_each_once(store: Store) -> None:
    for key, rule in (("a", "yoco"), ("b", "random"), ("a", "yoco")):
        store.add_study(key, {"rules": [rule]})
    assert sorted(spec["rules"] for spec in Store(store.path).study_specs()) == [["random"], ["yoco"]]


OPENING = """
import os, sys
from pathlib import Path
from condense_once.studies.store import Store

gate, starter = os.pipe()
children = []
for name in "abcd":
    child = os.fork()
    if child == 0:
        os.close(starter)
        os.read(gate, 1)  # until the parent closes its end
        for number in range(20):
            Store(Path(sys.argv[1]) / f"{number}.sqlite").add_study(name, {"name": name})
        os._exit(0)
    children.append(child)
os.close(starter)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
"""


def test_several_processes_may_create_one_store_at_the_same_time(tmp_path: Path) -> None:
    words = [sys.executable, "-c", OPENING, tmp_path]
    ended = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    assert (ended.stdout, ended.stderr) == ("[0, 0, 0, 0]\n", "")
    for number in range(20):
        assert sorted(spec["name"] for spec in Store(tmp_path / f"{number}.sqlite").study_specs()) == list("abcd")


KILLED = """
import os, sqlite3, sys
from pathlib import Path
from condense_once.studies.store import Store

connect = sqlite3.connect
for last in range(int(sys.argv[2])):
    path = Path(sys.argv[1]) / f"{last}.sqlite"
    child = os.fork()
    if child == 0:
        left = [last]

        def look(statement):
            left[0] -= 1
            if left[0] < 0:
                os._exit(9)

        def watched(*given, **named):
            db = connect(*given, **named)
            db.set_trace_callback(look)
            return db

        sqlite3.connect = watched
        Store(path)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    Store(path).add_study("mine", {})
    print(code)
"""


def test_a_process_that_dies_while_it_makes_a_store_leaves_none_that_is_refused(tmp_path: Path) -> None:
    """It dies before its first statement to the store, before its second, and so on, until it does not any more."""
    words = [sys.executable, "-c", KILLED, tmp_path, "20"]
    codes = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, timeout=120).stdout.split()
    deaths = codes.count("9")
    assert deaths > 5
    assert codes == ["9"] * deaths + ["0"] * (20 - deaths)


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    path.write_bytes(b"this is some text that is no database at all" * 50)
    with pytest.raises(BadFile, match="cannot be used"):
        Store(path)
    stranger = tmp_path / "stranger.sqlite"
    with closing(sqlite3.connect(stranger)) as db, db:
        db.execute("create table songs (title text)")
    before = stranger.read_bytes()
    with pytest.raises(BadFile, match="not a store of studies"):
        Store(stranger)
    assert stranger.read_bytes() == before
    with pytest.raises(BadFile, match="does not exist"):
        Store(tmp_path / "nowhere" / "s.sqlite")


def test_a_store_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "newer.sqlite"
    Store(path).close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("pragma user_version = 99")
    with pytest.raises(BadFile, match="newer condense-once"):
        Store(path)


def test_a_damaged_store_is_reported_in_one_sentence(store: Store) -> None:
    for number in range(200):
        store.add_evaluation(str(number), {}, {"accuracy": 0.4}, work=1.0, seconds=1.0)
    store.close()
    content = bytearray(store.path.read_bytes())
    content[4096 : len(content)] = b"x" * (len(content) - 4096)
    store.path.write_bytes(content)
    with pytest.raises(BadFile, match="is damaged"):
        Store(store.path).seconds_per_work("n")


RESULT = {"accuracy": 0.4, "test": "t", "test_images": 3, "machine": {"processor": "p"}, "versions": {"torch": "2"}}


def fill(store: Store) -> None:
    store.add_study("mine", {"study": {"name": "mine", "sets": ["a"], "protocol": "quick"}, "home": None})
    store.add_selection("s", {"rule": "yoco"}, StoredSelection(np.array([1, 5, 7]), "e", "w"))
    store.add_evaluation("e", {"net": "n"}, RESULT, work=10.0, seconds=2.0)
    store.add_evaluation("broken", {"net": "n"}, "it broke", work=10.0, seconds=2.0)
    archive = io.BytesIO()
    np.savez(archive, labels=np.arange(3))
    store.add_scoring_run("w", {"net": "n", "training": 100}, archive.getvalue(), work=1.0, seconds=1.0)


def content(store: Store) -> list[object]:
    """Everything that a store knows, except when it was written."""
    selected, measured, failed = store.selection("s"), store.evaluation("e"), store.evaluation("broken")
    scoring = store.scoring_run("w")
    return [
        None if selected is None else (str(selected.rows), selected.evaluation_key, selected.scoring_key),
        None if measured is None else (measured.result, measured.error, measured.work, measured.seconds),
        None if failed is None else (failed.result, failed.error),
        None if scoring is None else (scoring.epochs, scoring.seconds),
        store.scoring_bytes("w"),
        store.study_specs() or None,
        store.seconds_per_work("n"),
    ]


@pytest.mark.parametrize("table", ["selections", "evaluations", "evidence", "studies"])
def test_a_row_that_changed_on_the_disk_is_missing_and_can_be_written_again(store: Store, table: str) -> None:
    fill(store)
    before = content(store)
    with closing(sqlite3.connect(store.path)) as db, db:
        columns = [row[1] for row in db.execute(f"pragma table_info({table})")]
    for column in columns[1:]:
        with closing(sqlite3.connect(store.path)) as db, db:
            db.execute(f"update {table} set {column} = 'x' || coalesce({column}, '')")
        with closing(Store(store.path, readonly=True)) as reader:
            assert None in content(reader), column
            assert set(reader.damaged.values()) == {table}
        other = Store(store.path)
        content(other)
        assert other.damaged
        fill(other)
        assert content(other) == before
        assert not other.damaged
        assert not any(Store(store.path).damaged)


def test_no_flipped_bit_changes_what_is_read(store: Store, tmp_path: Path) -> None:
    """What is read is what was written, or missing, or the file is refused in one sentence."""
    fill(store)
    before = content(store)
    store.close()
    intact = store.path.read_bytes()
    assert not Path(f"{store.path}-wal").exists()
    used = np.flatnonzero(np.frombuffer(intact, np.uint8))
    seen: Counter[str] = Counter()
    for place in np.random.default_rng(0).choice(used, 300, replace=False):
        changed = bytearray(intact)
        changed[place] ^= 1 << int(place) % 8
        path = tmp_path / "flipped.sqlite"
        path.write_bytes(changed)
        try:
            with closing(Store(path, readonly=True)) as reader:
                found = content(reader)
        except BadFile:
            seen["refused"] += 1
            continue
        for was, now in zip(before[:-1], found[:-1], strict=True):
            assert now in (None, was)
        seen["missing" if None in found else "the same"] += 1
    assert min(seen[what] for what in ("refused", "missing", "the same")) > 0


def make_old(path: Path) -> None:
    """A store of version 1, whose rows had no digests."""
    with closing(Store(path)) as store:
        fill(store)
    with closing(sqlite3.connect(path)) as db, db:
        for table in ROWS:
            db.execute(f"alter table {table} drop column digest")
        db.execute("pragma user_version = 1")


def test_an_old_store_is_read_as_it_is_and_gets_digests_when_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    make_old(path)
    with closing(Store(tmp_path / "new.sqlite")) as new:
        fill(new)
        expected = content(new)
    before = path.read_bytes()
    with closing(Store(path, readonly=True)) as reader:
        assert content(reader) == expected
    assert path.read_bytes() == before
    with closing(Store(path)) as upgraded:
        assert content(upgraded) == expected
        fill(upgraded)
        assert content(upgraded) == expected
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("update evaluations set seconds = 3 where key = 'e'")
    assert Store(path).evaluation("e") is None


@pytest.mark.parametrize("readonly", [True, False])
@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("evaluations", "result = substr(result, 2)"),
        ("evaluations", "result = json_set(result, '$.accuracy', 1.5)"),
        ("evaluations", "result = json_remove(result, '$.versions')"),
        ("evaluations", "result = '[[[[' || printf('%.*c', 100000, '[')"),
        ("evaluations", "facts = cast(x'7bff7d' as text)"),
        ("selections", "rows = x'00'"),
        ("selections", "facts = 'null'"),
        ("evidence", "content = x'504b'"),
        ("evidence", "content = zeroblob(length(content))"),
        ("evidence", "facts = '{}'"),
        ("studies", "spec = '{}'"),
        ("studies", "spec = json_set(spec, '$.study.sets', 3)"),
    ],
)
def test_what_cannot_be_read_of_an_old_store_is_missing(
    tmp_path: Path, table: str, change: str, readonly: bool
) -> None:
    path = tmp_path / "old.sqlite"
    make_old(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"update {table} set {change} where key != 'broken'")
    with closing(Store(path, readonly=readonly)) as store:
        assert None in content(store)
        assert table in store.damaged.values()


def test_reading_leaves_a_store_and_its_folder_as_they_are(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store)
    store.close()
    before = store.path.read_bytes()
    for writable in (True, False):
        monkeypatch.setattr("os.access", lambda *_, there=writable: there)
        with closing(Store(store.path, readonly=True)) as reader:
            assert reader.evaluation("e") is not None
            with pytest.raises(BadFile, match="readonly database"):
                reader.add_study("other", {})
        assert [path.name for path in store.path.parent.iterdir()] == [store.path.name]
        assert store.path.read_bytes() == before
