from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from condense_once.cli.app import find_command
from condense_once.condensed.bundled import load
from condense_once.condensed.file import save
from condense_once.condensed.set import CondensedSet
from condense_once.evaluation.protocols import PROTOCOLS, Protocol
from condense_once.train.recipe import Recipe

Run = Callable[..., tuple[int, str, str]]
BUNDLED = "cifar10-real-ipc10"


def test_a_set_goes_in_is_looked_at_and_comes_out(run: Run, rng: np.random.Generator) -> None:
    images, labels = torch.from_numpy(rng.random((20, 3, 32, 32), dtype=np.float32)), torch.arange(20) // 2
    torch.save([images, labels], "data.pt")
    code, out, err = run("import", "data.pt", "--factor", 2, "--dataset", "cifar10", "-o", "idc.safetensors")
    assert (code, out.split(":")[0]) == (0, "idc.safetensors")
    assert "next: condense-once show idc.safetensors" in err
    assert run("verify", "idc.safetensors")[0] == 0
    code, out, _ = run("info", "idc.safetensors", "--json")
    facts = json.loads(out)
    assert (facts["name"], facts["patches"], facts["factor"], facts["space"]["kind"]) == ("idc", 80, 2, "pixels")
    assert (facts["format"], facts["version"]) == ("condense-once", 1)
    assert run("show", "idc.safetensors", "-o", "sheet.png")[0] == 0
    with Image.open("sheet.png") as sheet:
        assert sheet.width > 8 * 64
    for name in ("a.npz", "a.pt", "a.parquet", "folder"):
        assert run("export", "idc.safetensors", "-o", name)[0] == 0
        assert Path(name).exists()


def test_what_may_be_wrong_with_an_import_is_told(run: Run, rng: np.random.Generator) -> None:
    np.savez("a.npz", images=rng.integers(0, 256, (20, 3, 32, 32), dtype=np.uint8), labels=np.arange(20) // 2)
    words = ("import", "a.npz", "--factor", 1, "--space", "pixels", "--dataset", "cifar100", "--method", "DSA")
    code, out, err = run(*words, "-o", "a b.safetensors")
    assert (code, out.split(",")[0]) == (0, "a b.safetensors: 20 patches of 10 of 100 classes")
    assert "There are images of 10 of the 100 classes of cifar100; check --dataset." in err
    assert "Sets by DSA are scored by lbpe over all epochs." in err
    assert "next: condense-once show 'a b.safetensors'" in err
    assert "use it directly" in run("import", "a b.safetensors", "-o", "x.safetensors")[2]
    assert "if another project made it, import it first" in run("info", "a.npz")[2]
    assert "Patches are decoded" in run("export", BUNDLED, "-o", "b.npz")[2]


def test_the_bundled_set_works_wherever_a_file_does(run: Run) -> None:
    for words in (("info", BUNDLED), ("verify", BUNDLED), ("show", BUNDLED), ("export", BUNDLED, "-o", "x.npz")):
        assert run(*words)[0] == 0


def test_info_tells_people_what_matters(run: Run) -> None:
    _, out, _ = run("info", BUNDLED)
    for fact in ("400, each 3×32×32", "cells of 3×16×16 uint8", "factor 2", "10: airplane", "pixels", "not ranked"):
        assert fact in out


def test_info_tells_people_only_the_beginning_of_what_is_long(run: Run) -> None:
    _, out, _ = run("info", "cifar10-idc-ipc10")
    assert "… (all of it with --json)" in out
    assert max(map(len, out.splitlines())) < 700
    assert len(json.loads(run("info", "cifar10-idc-ipc10", "--json")[1])["provenance"]["loss"]) > 100


@pytest.mark.parametrize("kind", ["sources", "sets", "formats", "exporters", "nets", "protocols", "metrics"])
def test_kinds_are_listed_from_their_registries(run: Run, kind: str) -> None:
    _, out, _ = run("list", kind, "--json")
    entries = json.loads(out)[kind]
    assert entries
    _, table, _ = run("list", kind)
    assert all(entry["name"] in table for entry in entries)


def test_sources_are_described(run: Run) -> None:
    assert "cifar10-sample" in run("data", "list")[1]
    _, out, _ = run("data", "info", "cifar10-sample", "--json")
    assert json.loads(out)["splits"]["test"]["counts"] == [100] * 10


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("info", "missing.safetensors"), "There is no file missing.safetensors"),
        (("info", "cifar10-real"), "did you mean 'cifar10-real-ipc10'?"),
        (("info", "."), ". is a folder, not the file of a condensed set; `condense-once import`"),
        (("list", "soucres"), "did you mean 'sources'"),
        (("data", "info", "cifar11"), "'cifar10'"),
        (("data", "get", "imagenet10"), "imagenet10"),
        (("import", "nothing.pt", "-o", "x.safetensors"), "There is no file nothing.pt"),
        (("export", BUNDLED, "-o", "x.docx"), "--format"),
        (("export", BUNDLED, "-o", "no/where.npz"), "does not exist; create it first"),
        (("import", "x.pt", "--mean", "a,b", "-o", "y"), "--mean takes numbers"),
        (("show", BUNDLED, "-o", "sheet.jpg"), "a name that ends in .png, not sheet.jpg"),
        (("frobnicate",), "No such command 'frobnicate'; see: condense-once --help"),
        (("infoo",), "did you mean 'info'?"),
        (("data", "gett"), "did you mean 'get'?"),
        (("info",), "Missing argument 'file'; see: condense-once info --help"),
        (("info", BUNDLED, "more"), "more"),
        (("info", BUNDLED, "--jsn"), "--json"),
        (("info", BUNDLED, "--json=3"), "--json"),
        (("show", BUNDLED, "--columns"), "--columns"),
        (("show", BUNDLED, "--columns", "0"), "--columns"),
        (("import", "x.pt"), "--out"),
        (("import", "x.pt", "--space", "lab", "-o", "y"), "lab"),
        (("info", "a\nb"), "a\\nb"),
    ],
)
def test_mistakes_end_in_one_sentence_and_exit_code_2(run: Run, words: tuple[str, ...], complaint: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    (line,) = filter(None, err.splitlines())
    assert line.startswith("error: ")
    assert line.endswith((".", "?"))
    assert complaint in line


@pytest.mark.parametrize("words", [(), ("data",), ("plan",)])
def test_help_is_shown_to_who_says_nothing_more(run: Run, words: tuple[str, ...]) -> None:
    code, out, err = run(*words)
    assert (code, err) == (2, "")
    assert "Commands" in out


def test_a_stop_by_the_keyboard_has_its_own_exit_code(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("condense_once.condensed.bundled.find_set", stop)
    assert run("info", BUNDLED) == (130, "", "stopped\n")


def test_outputs_are_not_overwritten_unless_forced(run: Run) -> None:
    Path("sheet.png").write_text("precious")
    code, _, err = run("show", BUNDLED, "-o", "sheet.png")
    assert (code, Path("sheet.png").read_text()) == (2, "precious")
    assert "--force" in err
    assert run("show", BUNDLED, "-o", "sheet.png", "--force")[0] == 0


def test_verify_lists_what_is_off_and_fails(run: Run, pixel_set: CondensedSet, soft_set: CondensedSet) -> None:
    save(soft_set, "soft.safetensors")
    code, out, _ = run("verify", "soft.safetensors")
    assert code == 0
    assert "warning: Classes are not balanced" in out
    assert out.endswith("soft.safetensors: valid.\n")
    assert run("verify", "soft.safetensors", "--strict")[0] == 1
    save(pixel_set.take(np.arange(5)), "odd.safetensors")
    code, out, _ = run("verify", "odd.safetensors")
    assert code == 1
    assert "error: Classes are not balanced" in out
    assert out.endswith("odd.safetensors: invalid.\n")
    raw = bytearray(Path("odd.safetensors").read_bytes())
    raw[-1] ^= 1
    Path("odd.safetensors").write_bytes(raw)
    code, out, _ = run("verify", "odd.safetensors", "--json")
    assert code == 1
    assert "checksum" in json.loads(out)["findings"][0]["text"]
    assert run("info", "odd.safetensors")[0] == 2


def test_every_verb_has_an_example_in_its_help(run: Run) -> None:
    verbs = ("import", "export", "info", "show", "verify", "list", "evaluate", "plan evaluate", "plan rank")
    for verb in (*verbs, "data list", "data get", "data info"):
        code, out, _ = run(*verb.split(), "--help")
        assert code == 0
        assert f"condense-once {verb}" in out.replace("\n", " ")
        assert "Example" in out


def modules_after(program: str) -> set[str]:
    """Names of the modules that a program has imported, run in a process of its own."""
    code = f"import sys\ntry:\n    {program}\nexcept SystemExit:\n    pass\nprint('\\n'.join(['', *sys.modules]))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(ran.stdout.splitlines())


def test_importing_the_package_does_not_import_torch() -> None:
    assert "torch" not in modules_after("import condense_once, condense_once.cli.app; condense_once.load")


@pytest.mark.parametrize("words", [["--help"], ["--version"], []])
def test_the_list_of_verbs_imports_no_verb_and_nothing_heavy(words: list[str]) -> None:
    loaded = modules_after(f"sys.argv[1:] = {words}; import condense_once.cli; condense_once.cli.main()")
    ours = {name for name in loaded if name.startswith("condense_once")}
    assert ours == {
        *("condense_once", "condense_once._version", "condense_once.errors", "condense_once.lazy"),
        *("condense_once.text", "condense_once.cli", "condense_once.cli.app", "condense_once.cli.option_names"),
    }
    assert not loaded & {"torch", "numpy", "PIL", "rich.progress"}


@pytest.mark.parametrize("verb", ["import", "info", "resize", "data get", "study"])
def test_the_help_of_a_verb_imports_neither_torch_nor_numpy(verb: str) -> None:
    loaded = modules_after(f"sys.argv[1:] = {[*verb.split(), '--help']}; import condense_once.cli as c; c.main()")
    assert f"condense_once.cli.{verb.split()[0]}" in {name.rstrip("_") for name in loaded}
    assert not loaded & {"torch", "numpy", "PIL"}


def test_the_module_runs_as_a_program() -> None:
    result = subprocess.run([sys.executable, "-m", "condense_once", "--version"], capture_output=True, text=True)
    assert result.stdout.startswith("condense-once ")


def test_what_the_bundled_set_says_of_itself() -> None:
    data = load(BUNDLED)
    assert "real" in data.provenance["method"]
    assert data.counts().tolist() == [40] * 10
    assert data.ranking is None


def test_the_first_patches_of_the_bundled_set_are_of_every_class() -> None:
    first = load(BUNDLED, first=40)
    assert first.labels.tolist() == [*range(10)] * 4
    assert first.origin[:12].tolist() == [0, 40, 80, 120, 160, 200, 240, 280, 320, 360, 1, 41]


@pytest.fixture
def tiny_protocol() -> Iterator[str]:
    recipe = Recipe(epochs=2)
    with PROTOCOLS.registered(Protocol("tiny-of-a-test", "two epochs", recipe, recipe)) as protocol:
        yield protocol.name


def test_a_set_is_evaluated_with_its_spread(run: Run, tiny_protocol: str) -> None:
    words = ("evaluate", BUNDLED, "--net", "convnet-d3-w32", "--protocol", tiny_protocol, "--repeats", 2)
    code, out, err = run(*words, "--test", "cifar10-sample")
    assert code == 0
    assert " ± " in out
    assert "1000 images of cifar10-sample (bundled sample) at the last epoch" in err
    code, out, _ = run(*words, "--test", "cifar10-sample", "--json")
    result = json.loads(out)
    assert (result["n"], len(result["runs"]), len(result["classes"])) == (2, 2, 10)
    assert result["mean"] == pytest.approx(sum(one["accuracy"] for one in result["runs"]) / 2)


def test_a_plan_is_made_without_running(run: Run, tiny_protocol: str) -> None:
    words = ("plan", "evaluate", BUNDLED, "--net", "convnet-d3-w32", "--protocol", tiny_protocol, "--json")
    code, out, _ = run(*words, "--test", "cifar10-sample")
    assert code == 0
    assert json.loads(out)["steps"] == 3 * 2 * 7


def test_a_ranked_set_is_cut_to_any_size_and_takes_part_everywhere(run: Run, tiny_protocol: str) -> None:
    code, out, err = run("rank", BUNDLED, "--metric", "random", "-o", "ranked.safetensors")
    assert code == 0
    assert "balanced classes" in out
    assert "next: condense-once resize ranked.safetensors" in err
    assert run("verify", "ranked.safetensors")[0] == 0
    for words, patches in (
        (("--ipc", 1), 40),
        (("--fraction", "0.5"), 200),
        (("--classes", "cat,dog", "--ipc", 2), 16),
    ):
        code, out, _ = run("resize", "ranked.safetensors", *words, "-o", "small.safetensors", "--force")
        assert (code, f"{patches} patches" in out) == (0, True)
    Path("counts.json").write_text('{"cat": 3, "dog": 1}')
    assert (
        "4 patches" in run("resize", "ranked.safetensors", "--per-class", "counts.json", "-o", "skewed.safetensors")[1]
    )
    assert run("resize", "ranked.safetensors", "--bytes", "64KiB", "-o", "bytes.safetensors")[0] == 0
    assert Path("bytes.safetensors").stat().st_size <= 65536
    net = ("--net", "convnet-d3-w32", "--protocol", tiny_protocol, "--repeats", 1)
    assert run("evaluate", "small.safetensors", "--test", "cifar10-sample", *net)[0] == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("resize", BUNDLED, "--ipc", "1", "-o", "x.safetensors"), "not ranked"),
        (("resize", BUNDLED, "--ipc", "1", "--total", "9", "-o", "x.safetensors"), "total"),
        (("resize", BUNDLED, "--per-class", "no.json", "-o", "x.safetensors"), "There is no file no.json"),
        (("rank", BUNDLED, "--metric", "lbpee", "-o", "x.safetensors"), "'lbpe'"),
    ],
)
def test_ranking_and_resizing_answer_mistakes(run: Run, words: tuple[str, ...], complaint: str) -> None:
    code, _, err = run(*words)
    assert code == 2
    assert complaint in err
    assert not Path("x.safetensors").exists()


def test_every_option_of_the_demo_exists() -> None:
    script = (Path(__file__).parents[2] / "examples" / "demo.sh").read_text()
    shared = dict(re.findall(r'^(\w+)="(.*)"$', script, re.MULTILINE))
    commands = re.findall(r"^ *run (.*)$", script, re.MULTILINE)
    assert len(commands) > 5
    for written in commands:
        command = written
        for _ in range(2):  # a variable may stand in another
            command = re.sub(r"\$(\w+)", lambda found: shared.get(found[1], "1"), command)
        words = command.split()
        known = {option for parameter in find_command(words).params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known, command


def test_sigterm_ends_a_program_with_a_word_and_its_exit_code() -> None:
    program = (
        "import os, signal, sys\nfrom condense_once import cli\nfrom condense_once.cli import app\n"
        "app.app = lambda **_: os.kill(os.getpid(), signal.SIGTERM) or signal.pause()\ncli.main()"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stderr) == (143, "stopped\n")
