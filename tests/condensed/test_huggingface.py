"""Sets as Hugging Face datasets: opened by the real `datasets`, exactly as they were on the way back."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import condense_once
from condense_once.condensed.accuracy_curve import AccuracyCurve, CurvePoint
from condense_once.condensed.exporters import export_set, pixel_patches
from condense_once.condensed.file import save, to_bytes
from condense_once.condensed.importers import ImportOptions, import_set
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.open import open_source
from condense_once.errors import BadFile, BadOption

OPEN = """
import json, sys
import numpy as np, datasets
found = datasets.load_dataset(sys.argv[1], cache_dir=sys.argv[2])
rows = found["train"]
np.save(sys.argv[3], np.stack([np.array(row["image"]) for row in rows]))
soft = rows["soft_label"][:] if "soft_label" in rows.features else None
names = rows.features["label"].names
print(json.dumps([list(found), list(rows.features), names, [row["label"] for row in rows], soft]))
"""


def run(program: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", **variables}
    return subprocess.run(
        [sys.executable, *program], capture_output=True, text=True, timeout=240, env=environment, check=False
    )


def opened(folder: Path, scratch: Path) -> tuple[Any, np.ndarray[Any, Any]]:
    done = run(["-c", OPEN, str(folder), str(scratch / "cache"), str(scratch / "images.npy")], HF_HOME=str(scratch))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), np.load(scratch / "images.npy")


def test_load_dataset_opens_an_exported_set(pixel_set: CondensedSet, tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="the library datasets, which opens exported folders, is not installed")
    export_set(pixel_set, tmp_path / "tiny.hf")
    (splits, features, names, labels, _), images = opened(tmp_path / "tiny.hf", tmp_path)
    assert (splits, features, tuple(names)) == (["train"], ["image", "label"], pixel_set.classes)
    assert labels == pixel_set.labels.tolist()
    np.testing.assert_array_equal(images.transpose(0, 3, 1, 2), pixel_patches(pixel_set)[0])


def test_load_dataset_opens_soft_labels_and_difficult_names(soft_set: CondensedSet, tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="the library datasets, which opens exported folders, is not installed")
    data = replace(soft_set, label_kind="logits", classes=("no", 'the "quoted": one', "naïve ✓"))
    notes = export_set(data, tmp_path / "soft.hf")
    assert len(notes) == 1
    assert "clipped. The set itself is stored beside the images, unchanged." in notes[0]
    (_, features, names, _, soft), _ = opened(tmp_path / "soft.hf", tmp_path)
    assert (features, tuple(names)) == (["image", "label", "soft_label"], data.classes)
    np.testing.assert_array_equal(np.float32(soft), data.soft_labels)


@pytest.mark.parametrize("kind", ["pixel_set", "soft_set"])
def test_a_set_comes_back_to_the_bit(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    data = request.getfixturevalue(kind)
    export_set(data, tmp_path / "a.hf")
    assert to_bytes(import_set(tmp_path / "a.hf")) == to_bytes(data)
    assert to_bytes(condense_once.load(tmp_path / "a.hf")) == to_bytes(data)
    renamed = import_set(tmp_path / "a.hf", ImportOptions(name="other"))
    assert renamed.name == "other"
    with pytest.raises(BadOption, match="states everything about its set; leave out `factor`"):
        import_set(tmp_path / "a.hf", ImportOptions(factor=2))


def test_a_ranked_folder_is_resized_as_its_file_is(tmp_path: Path) -> None:
    export_set("cifar10-idc-ipc10", tmp_path / "c", "huggingface")
    small, same = (condense_once.resize(path, ipc=1) for path in (tmp_path / "c", "cifar10-idc-ipc10"))
    assert to_bytes(small) == to_bytes(same)


def test_an_exported_folder_is_a_source_too(pixel_set: CondensedSet, tmp_path: Path) -> None:
    export_set(pixel_set, tmp_path / "a.hf")
    source = open_source(tmp_path / "a.hf")
    assert source.classes == pixel_set.classes
    np.testing.assert_array_equal(source.train.take(slice(None)), pixel_patches(pixel_set)[0])


def test_the_card_says_what_the_set_records(tmp_path: Path) -> None:
    export_set("cifar10-idc-ipc10", tmp_path / "c.hf")
    _, header, text = (tmp_path / "c.hf" / "README.md").read_text().split("---\n", 2)
    said = yaml.safe_load(header)
    assert said["dataset_info"]["splits"][0]["num_examples"] == 400
    assert said["configs"][0]["data_files"] == [{"split": "train", "path": "data/train-*"}]
    assert said["license"] == "unknown"
    for fact in ("Method: idc", "Accuracy: 60.41 ± 0.32 % (n = 3", "patches.select(range(40))", "mean 0.4914"):
        assert fact in text


def test_the_card_has_the_accuracies_of_a_curve(pixel_set: CondensedSet, tmp_path: Path) -> None:
    points = (CurvePoint(24, None, 0.5), CurvePoint(24, 1, 0.4), CurvePoint(6, None, 0.25))
    curve = AccuracyCurve("quick", "convnet-d3", "cifar10", classes=3, layers=6, points=points)
    export_set(replace(pixel_set, provenance={"curve": curve.to_json()}), tmp_path / "a.hf")
    text = (tmp_path / "a.hf" / "README.md").read_text()
    assert "- Accuracy by number of patches: 25.0 % with 6, 50.0 % with 24 (convnet-d3, quick, cifar10)\n" in text


def test_the_card_of_an_unranked_set_says_so_and_names_a_licence(pixel_set: CondensedSet, tmp_path: Path) -> None:
    data = replace(pixel_set, provenance={"licence": "mit", "method": "x\n---\n# y", "accuracy": "high"})
    export_set(data, tmp_path / "a.hf")
    _, header, text = (tmp_path / "a.hf" / "README.md").read_text().split("---\n", 2)
    assert yaml.safe_load(header)["license"] == "mit"
    assert "is not ranked" in text
    assert "Method: not recorded" not in text
    assert "\n# y" not in text


def test_whitened_sets_have_no_images_to_show(soft_set: CondensedSet, tmp_path: Path) -> None:
    zca = {"source": "cifar10", "recipe": "kip", "regularisation": 0.1}
    data = replace(soft_set, space=Space("zca", (0.3,), (0.4,), zca))
    with pytest.raises(BadOption, match="no pixels to export"):
        export_set(data, tmp_path / "a.hf")
    assert not (tmp_path / "a.hf").exists()


def test_a_damaged_set_in_a_folder_is_refused(pixel_set: CondensedSet, tmp_path: Path) -> None:
    export_set(pixel_set, tmp_path / "a.hf")
    path = tmp_path / "a.hf" / "set.safetensors"
    path.write_bytes(path.read_bytes()[:-3] + b"abc")
    with pytest.raises(BadFile, match="damaged"):
        import_set(tmp_path / "a.hf")


@dataclass
class Hub:
    """A stand-in for the hub, as far as one dataset is pushed and pulled."""

    url: str
    files: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        self.requests.append(f"{method} {path}")
        if path.startswith("/api/repos/create"):
            return 200, {}, json.dumps({"url": f"{self.url}/datasets/me/tiny"}).encode()
        if path.startswith("/api/validate-yaml"):
            return 200, {}, b'{"errors": [], "warnings": []}'
        if "/preupload/" in path:
            modes = [
                {"path": one["path"], "uploadMode": "regular", "shouldIgnore": False}
                for one in json.loads(body)["files"]
            ]
            return 200, {}, json.dumps({"files": modes}).encode()
        if "/commit/" in path:
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    self.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            commit = {"commitUrl": f"{self.url}/datasets/me/tiny/commit/{'a' * 40}", "commitOid": "a" * 40}
            return 200, {}, json.dumps({**commit, "commitMessage": ""}).encode()
        name = path.partition("/resolve/main/")[2].partition("?")[0]
        if path.startswith("/datasets/me/tiny/resolve/main/") and name in self.files:
            content = self.files[name]
            tag = hashlib.sha1(content).hexdigest()
            return 200, {"ETag": f'"{tag}"', "X-Repo-Commit": "a" * 40}, content
        missing = "EntryNotFound" if path.startswith("/datasets/me/tiny/") else "RepoNotFound"
        return 404, {"X-Error-Code": missing}, b"{}"


@pytest.fixture
def hub() -> Iterator[Hub]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 20

        def reply(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            code, headers, content = stand_in.answer(self.command, self.path, body)
            self.send_response(code)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_HEAD = do_POST = reply

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stand_in = Hub(f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield stand_in
    server.shutdown()
    server.server_close()


def command(hub: Hub, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    settings = {"HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_x", "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1"}
    return run(["-m", "condense_once", "hub", *words], HF_HUB_OFFLINE="0", **settings)


def test_a_set_is_pushed_and_pulled_as_it_was(hub: Hub, pixel_set: CondensedSet, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    save(pixel_set, tmp_path / "a.safetensors")
    pushed = command(hub, tmp_path, "push", str(tmp_path / "a.safetensors"), "me/tiny")
    assert pushed.returncode == 0, pushed.stderr
    assert f"me/tiny pushed: {hub.url}/datasets/me/tiny/commit/" in pushed.stdout
    assert set(hub.files) == {"README.md", "set.safetensors", "data/train-00000-of-00001.parquet"}
    assert len(hub.requests) < 12
    pulled = command(hub, tmp_path, "pull", "me/tiny", "-o", str(tmp_path / "b.safetensors"))
    assert pulled.returncode == 0, pulled.stderr
    assert (tmp_path / "b.safetensors").read_bytes() == (tmp_path / "a.safetensors").read_bytes()


def test_what_the_hub_lacks_is_said_in_one_sentence(hub: Hub, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    out = ["-o", str(tmp_path / "b.safetensors")]
    for name, sentence in {
        "me/tiny": "error: The dataset me/tiny has no set.safetensors",
        "me/other": "error: There is no dataset me/other that you may read or write",
        "no/such/name": "error: A repository is OWNER/NAME, not 'no/such/name'",
    }.items():
        done = command(hub, tmp_path, "pull", name, *out)
        assert done.returncode == 2
        assert done.stderr.startswith(sentence), done.stderr
        assert done.stderr.count("\n") == 1
    assert len(hub.requests) < 20
