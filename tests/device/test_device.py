"""Subsets of a ranked set, from files and from a real server on loopback that misbehaves in many ways."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import interpolate

from condense_once.condensed.budget import Budget
from condense_once.condensed.bundled import load
from condense_once.condensed.file import block_size, block_sums, from_bytes, header_of, save
from condense_once.condensed.header import Checksums
from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.condensed.subset import resize
from condense_once.container import header_bytes, tensor_bytes
from condense_once.device import open_set
from condense_once.errors import BadFile, BadOption
from condense_once.selection.rank import rank

Site = Any  # that of tests/conftest.py
Answer = Callable[[Any], None]  # to the handler of a request
BUDGETS: list[dict[str, Any]] = [
    {"ipc": 1},
    {"total": 25},
    {"fraction": "0.1"},
    {"bytes": "32KiB"},
    {"classes": ["cat", "dog"], "ipc": 2},
    {"classes": ["cat", "dog"], "ipc": 2, "renumber": True},
    {"per_class": {"frog": 7, "ship": 2}},
    {},
]


def serve(
    body: bytes,
    *,
    ranges: bool = True,
    length: bool = True,
    cut: int = 0,  # hang up so many bytes before the end
    stall: bool = False,  # fall silent in the middle
    drip: bool = False,  # send one byte at a time from the middle on
    shift: int = 0,  # claim and send bytes that begin so much later
    say: str | None = None,  # a Content-Range of its own
    **headers: str,
) -> Answer:
    def answer(handler: Any) -> None:
        start, stop = 0, len(body)
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", handler.headers["Range"] or "")
        if ranges and asked:
            start, stop = int(asked[1]) + shift, min(int(asked[2]) + 1 + shift, len(body))
            if start >= stop:
                handler.send_error(416)
                return
        handler.send_response(206 if ranges else 200)
        if ranges:
            handler.send_header("Content-Range", say or f"bytes {start}-{stop - 1}/{len(body)}")
        if length:
            handler.send_header("Content-Length", str(stop - start))
        for name, value in ({"ETag": '"one"'} | headers).items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        part = body[start : (start + stop) // 2 if stall or drip else stop - cut]
        handler.site.sent += len(part)
        try:
            handler.wfile.write(part)
            if stall:
                handler.site.over.wait(5)
            while drip and not handler.site.over.wait(0.01):
                handler.wfile.write(b"x")
        except ConnectionError:
            pass  # the client had enough

    return answer


@pytest.fixture
def ranked() -> CondensedSet:
    """Four hundred patches of CIFAR-10, ten classes, factor 2: 311 kB."""
    data = load("cifar10-real-ipc10")
    return replace(data, ranking=Ranking("lbpe"), scores={"lbpe": np.linspace(0, 1, 400, dtype=np.float32)})


@pytest.fixture
def large(ranked: CondensedSet) -> CondensedSet:
    """Forty times as many, in eight bits: 12 MB, and labels beyond the first 64 KiB of the file."""
    return ranked.take(np.tile(np.arange(400), 40))


@pytest.fixture
def path(ranked: CondensedSet, tmp_path: Path) -> Path:
    save(ranked, tmp_path / "ranked.safetensors")
    return tmp_path / "ranked.safetensors"


def body_of(data: CondensedSet, folder: Path) -> bytes:
    save(data, folder / "body.safetensors", force=True)
    return (folder / "body.safetensors").read_bytes()


# ---------------------------------------------------------------- what comes out


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("over_http", [False, True])
def test_a_device_takes_the_subset_that_resize_keeps(
    budget: dict[str, Any], over_http: bool, ranked: CondensedSet, path: Path, site: Site
) -> None:
    site.plan = [serve(path.read_bytes())]
    subset = open_set(site.url if over_http else path).take(**budget)
    expected = resize(ranked, Budget(**budget))
    np.testing.assert_array_equal(subset.patches, expected.patches())
    np.testing.assert_array_equal(subset.inputs, expected.inputs())
    assert subset.labels.tolist() == expected.labels.tolist()
    assert (subset.classes, subset.soft_labels, len(subset)) == (expected.classes, None, len(expected))
    np.testing.assert_array_equal(subset.mean, np.array(ranked.space.mean, np.float32))
    np.testing.assert_array_equal(subset.std, np.array(ranked.space.std, np.float32))


def test_a_subset_is_printed_in_one_line(path: Path, ranked: CondensedSet) -> None:
    subset = open_set(path).take(total=1)
    assert repr(subset) == f"<DeviceSubset: 1 patch {'×'.join(map(str, ranked.shape))}, {len(ranked.classes)} classes>"


def test_patches_are_those_that_torch_decodes(ranked: CondensedSet, path: Path) -> None:
    cells = torch.from_numpy(ranked.cells[:40].astype(np.float32) / 255)
    expected = interpolate(cells, size=(32, 32), mode="bilinear", align_corners=False)
    assert np.abs(open_set(path).take(ipc=1).patches - expected.numpy()).max() < 1e-6


def test_soft_labels_and_normalised_values_are_read(soft_set: CondensedSet, tmp_path: Path) -> None:
    soft = replace(soft_set, ranking=Ranking("lbpe", balanced=False))
    save(soft, tmp_path / "soft.safetensors")
    subset = open_set(tmp_path / "soft.safetensors").take(total=2)
    np.testing.assert_array_equal(subset.soft_labels, soft_set.soft_labels[:2])  # type: ignore[index]
    np.testing.assert_array_equal(subset.inputs, soft_set.patches()[:2])  # not normalised once more


def test_a_whitened_set_says_that_mean_and_std_are_not_enough(soft_set: CondensedSet, tmp_path: Path) -> None:
    whitening = {"recipe": "kip", "regularisation": 0.1, "source": "cifar10"}
    save(replace(soft_set, space=replace(soft_set.space, kind="zca", zca=whitening)), tmp_path / "zca.safetensors")
    assert "whiten the device's own images" in open_set(tmp_path / "zca.safetensors").take().notes[-1]


def test_a_file_that_is_cut_short_while_open_is_told(tmp_path: Path) -> None:
    path = tmp_path / "ranked.safetensors"
    save(rank(load("cifar10-real-ipc10"), "random"), path)
    opened = open_set(path)
    os.truncate(path, 30_000)
    with pytest.raises(BadFile, match="truncated while it was open"):
        opened.take(ipc=5)


def test_a_name_means_the_same_here_and_elsewhere(
    pixel_set: CondensedSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save(pixel_set, Path("cifar10-real-ipc10"))
    assert len(open_set("cifar10-real-ipc10")) == len(load("cifar10-real-ipc10")) == len(pixel_set)


def test_an_unranked_set_is_had_whole_or_not_at_all() -> None:
    opened = open_set("cifar10-real-ipc10")
    assert len(opened.take()) == len(opened) == 400
    with pytest.raises(BadOption, match="rank it first"):
        opened.take(ipc=1)


@pytest.mark.parametrize("name", ["missing.safetensors", "cifar10-real-ipc11"])
def test_a_file_that_is_not_there_is_one_sentence(name: str) -> None:
    with pytest.raises(Exception, match="There is no file") as caught:
        open_set(name)
    assert "\n" not in str(caught.value)


# ---------------------------------------------------------------- what is fetched


def test_a_small_subset_takes_few_requests_and_bytes(path: Path, site: Site) -> None:
    site.plan = [serve(path.read_bytes())]
    open_set(site.url).take(ipc=1)
    assert site.ranges[0] == "bytes=0-4095"
    assert len(site.ranges) <= 3
    assert site.sent <= 2**16 < path.stat().st_size // 4


def test_of_a_large_file_only_header_and_first_rows_are_fetched(
    large: CondensedSet, tmp_path: Path, site: Site
) -> None:
    site.plan = [serve(body_of(large, tmp_path))]
    opened = open_set(site.url)
    opened.take(ipc=1)
    assert len(site.ranges) <= 4  # header in one or two, labels, cells
    assert site.sent <= 2**16 + 2 * 4096 + 40 * 3 * 16 * 16
    opened.take(ipc=1)
    assert len(site.ranges) <= 4
    before = site.sent
    opened.take(ipc=2)
    assert site.sent - before <= 2 * 4096 + 40 * 3 * 16 * 16  # only what is new


def test_of_chosen_classes_all_labels_are_fetched_and_cells_up_to_the_last(
    large: CondensedSet, tmp_path: Path, site: Site
) -> None:
    site.plan = [serve(body_of(large, tmp_path))]
    assert open_set(site.url).take(classes=["cat"], total=3).labels.tolist() == [3, 3, 3]
    assert site.sent <= 2**16 + 2 * 16_000 + 4096 + 24 * 3 * 16 * 16


def test_a_header_longer_than_the_first_requests_is_fetched_in_one_more(
    ranked: CondensedSet, tmp_path: Path, site: Site
) -> None:
    wordy = replace(ranked, provenance={"story": "once " * 20_000})
    site.plan = [serve(body_of(wordy, tmp_path))]
    subset = open_set(site.url).take(ipc=1)
    np.testing.assert_array_equal(subset.patches, ranked.patches()[:40])
    assert site.ranges[:2] == ["bytes=0-4095", "bytes=4096-65535"]
    assert str(site.ranges[2]).startswith("bytes=65536-")


@pytest.mark.parametrize("budget", [5000, 20_000, 40_000])
def test_of_a_layered_file_no_byte_is_fetched_beyond_the_budget(
    ranked: CondensedSet, tmp_path: Path, site: Site, budget: int
) -> None:
    save(ranked, tmp_path / "coded.safetensors", codec="layered")
    content = (tmp_path / "coded.safetensors").read_bytes()
    site.plan = [serve(content)]
    subset = open_set(site.url).take(bytes=budget)
    assert site.sent <= budget < len(content)
    cut = from_bytes(content[:budget], "the beginning")
    np.testing.assert_array_equal(subset.patches, cut.patches())
    assert any(f"{len(cut)} patches" in note for note in subset.notes)


@pytest.mark.parametrize("length", [True, False])
def test_a_small_file_is_fetched_whole_from_a_server_without_ranges_and_that_is_said(
    path: Path, ranked: CondensedSet, site: Site, length: bool
) -> None:
    site.plan = [serve(path.read_bytes(), ranges=False, length=length)]
    opened = open_set(site.url)
    subset = opened.take(ipc=5)
    np.testing.assert_array_equal(subset.patches, ranked.patches()[:200])
    assert subset.notes == (
        f"The server does not support range requests, so all {path.stat().st_size:,} bytes were downloaded.",
    )
    assert len(site.ranges) == 1


def test_redirects_within_http_are_followed_with_their_range(path: Path, site: Site) -> None:
    site.plan = [site.redirect("/elsewhere"), serve(path.read_bytes())]
    assert len(open_set(site.url).take(ipc=1)) == 40
    assert site.ranges[:2] == ["bytes=0-4095"] * 2


# ---------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize("length", [True, False])
def test_a_large_file_is_not_fetched_whole(large: CondensedSet, tmp_path: Path, site: Site, length: bool) -> None:
    site.plan = [serve(body_of(large, tmp_path), ranges=False, length=length)]
    with pytest.raises(BadFile, match="does not support range requests"):
        open_set(site.url)


@pytest.mark.parametrize(
    "headers", [{"ETag": '"two"'}, {"Last_Modified": "Fri, 01 Aug 2025 00:00:00 GMT"}, {"ETag": 'W/"one"'}]
)
def test_a_file_that_changes_between_two_requests_is_not_mixed(path: Path, site: Site, headers: dict[str, Any]) -> None:
    body = path.read_bytes()
    site.plan = [serve(body), serve(body, **headers)]
    with pytest.raises(BadFile, match="changed during reading"):
        open_set(site.url).take(ipc=5)


def test_a_file_that_changes_its_length_is_noticed_without_a_version(path: Path, site: Site) -> None:
    site.plan = [serve(path.read_bytes()), serve(path.read_bytes() + b"more")]
    with pytest.raises(BadFile, match="changed during reading, from 31"):
        open_set(site.url).take(ipc=5)


def test_another_file_of_the_same_length_is_noticed_by_its_checksums(path: Path, site: Site) -> None:
    body = path.read_bytes()
    site.plan = [serve(body), serve(body[:70_000] + bytes(100) + body[70_100:])]
    with pytest.raises(BadFile, match="'cells' does not match its checksum"):
        open_set(site.url).take(ipc=5)


def test_a_file_that_is_cut_or_longer_on_the_server_is_refused(path: Path, site: Site) -> None:
    for body, complaint in ((path.read_bytes()[:-1], "truncated"), (path.read_bytes() + b"x", "too long")):
        site.plan = [serve(body)]
        with pytest.raises(BadFile, match=complaint):
            open_set(site.url)


@pytest.mark.parametrize("which", [0, 1])
def test_a_cut_connection_is_said_so(path: Path, site: Site, which: int) -> None:
    body = path.read_bytes()
    site.plan = [serve(body), serve(body)]
    site.plan[which] = serve(body, cut=10)
    with pytest.raises(BadFile, match="connection lost"):
        open_set(site.url).take(ipc=5)


def test_a_cut_connection_of_unknown_length_is_said_so(path: Path, site: Site) -> None:
    for ranges, complaint in ((True, "connection lost"), (False, "truncated")):
        site.plan = [serve(path.read_bytes(), cut=10, length=False, ranges=ranges)]
        with pytest.raises(BadFile, match=complaint):
            open_set(site.url)


def test_a_silent_server_is_given_up(path: Path, site: Site) -> None:
    site.plan = [serve(path.read_bytes(), stall=True)]
    with pytest.raises(BadFile, match=r"connection lost \(timed out"):
        open_set(site.url, timeout=0.2)
    site.plan = [site.silence]
    with pytest.raises(BadFile, match="timed out"):
        open_set(site.url, timeout=0.2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"shift": 1},
        {"say": "bytes 0-65535/*"},
        {"say": "bytes 0-9/SIZE"},
        {"say": "items 0-65535/SIZE"},
        {"Content_Encoding": "gzip"},
    ],
)
@pytest.mark.parametrize("which", [0, 1])
def test_bytes_that_were_not_asked_for_are_refused(path: Path, site: Site, wrong: dict[str, Any], which: int) -> None:
    body = path.read_bytes()
    site.plan = [serve(body), serve(body)]
    if "say" in wrong:
        wrong = {"say": wrong["say"].replace("SIZE", str(len(body)))}
    site.plan[which] = serve(body, **wrong)
    with pytest.raises(BadFile, match="invalid response") as caught:
        open_set(site.url).take(ipc=5)
    assert "\n" not in str(caught.value)


def test_a_server_that_stops_sending_parts_is_left(path: Path, site: Site) -> None:
    site.plan = [serve(path.read_bytes()), serve(path.read_bytes(), ranges=False)]
    with pytest.raises(BadFile, match="stopped supporting range requests"):
        open_set(site.url).take(ipc=5)


@pytest.mark.parametrize("code", [404, 416, 500])
@pytest.mark.parametrize("which", [0, 1])
def test_a_server_that_says_no_is_quoted(path: Path, site: Site, code: int, which: int) -> None:
    site.plan = [serve(path.read_bytes()), serve(path.read_bytes())]
    site.plan[which] = site.status(code)
    with pytest.raises(BadFile, match="shorter" if code == 416 else str(code)) as caught:
        open_set(site.url).take(ipc=5)
    assert site.url in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_a_server_says_is_quoted_on_one_short_line(site: Site) -> None:
    site.plan = [lambda handler: handler.send_response(404, f"gone \x1b[31m {'x' * 9000}") or handler.end_headers()]
    with pytest.raises(BadFile, match=r"answered 404 gone \\x1b\[31m xxx") as caught:
        open_set(site.url)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


def test_something_else_than_a_set_is_refused(site: Site) -> None:
    for body in (b"<html>", b"<html>" * 20_000):
        site.plan = [serve(body)]
        with pytest.raises(BadFile, match="condensed set"):
            open_set(site.url)


@pytest.mark.parametrize("scheme", ["file", "ftp", "data"])
def test_a_redirect_to_another_scheme_is_refused(path: Path, site: Site, scheme: str) -> None:
    site.plan = [site.redirect(f"{scheme}://{path}")]
    with pytest.raises(BadFile, match="302"):
        open_set(site.url)


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://host/file", "://", "http://a\nb/"])
def test_only_http_addresses_are_accepted(url: str) -> None:
    with pytest.raises(BadOption, match="http"):
        open_set(url)


@pytest.mark.parametrize("url", ["http://[", "http://", "http://127.0.0.1:port/", "http://127.0.0.1/a b"])
def test_invalid_addresses_are_one_sentence(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with pytest.raises(BadFile, match="cannot be reached"):
        open_set(url)


def test_a_host_out_of_reach_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound, but nobody listens
        with pytest.raises(BadFile, match="cannot be reached"):
            open_set(f"http://127.0.0.1:{free.getsockname()[1]}/file")


# ---------------------------------------------------------------- what a server may not decide


def drip(beginning: bytes) -> Answer:
    """Sends the beginning of an answer at once and then one byte at a time, as long as anybody listens."""

    def send(handler: Any) -> None:
        handler.wfile.write(beginning)
        try:
            while not handler.site.over.wait(0.01):
                handler.wfile.write(b"x")
        except ConnectionError:
            pass  # the client had enough

    return send


@pytest.mark.parametrize("beginning", [b"", b"HTTP/1.0 206 Partial\r\n", b"HTTP/1.0 200 OK\r\n\r\n"])
def test_bytes_that_drip_in_end_at_a_deadline(site: Site, beginning: bytes) -> None:
    site.plan = [drip(beginning)]
    with pytest.raises(BadFile, match=r"too slow: not complete after 0\.2 seconds; .* raise `max_seconds`"):
        open_set(site.url, max_seconds=0.2)


def test_the_deadline_is_that_of_a_take_not_of_all_together(path: Path, site: Site) -> None:
    body = path.read_bytes()
    site.plan = [serve(body), serve(body, drip=True), serve(body)]
    opened = open_set(site.url, max_seconds=0.5)
    with pytest.raises(BadFile, match="too slow"):
        opened.take(ipc=5)
    assert len(opened.take(ipc=5)) == 200


def test_the_page_of_a_redirect_is_not_read(path: Path, site: Site) -> None:
    def endless(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.0 302 Found\r\nLocation: /elsewhere\r\n\r\n")
        try:
            while handler.site.sent < 2**27:
                handler.wfile.write(bytes(2**16))
                handler.site.sent += 2**16
        except ConnectionError:
            pass

    site.plan = [endless, serve(path.read_bytes())]
    open_set(site.url)
    assert site.sent < 2**25


@pytest.mark.parametrize("most", [1000, 100_000])
def test_no_more_bytes_are_fetched_than_allowed(path: Path, site: Site, most: int) -> None:
    site.plan = [serve(path.read_bytes())]
    with pytest.raises(BadOption, match=rf"bytes more, and `max_bytes` allows {most:,} in all; take fewer"):
        open_set(site.url, max_bytes=most).take(ipc=5)
    assert site.sent <= most


def test_a_server_without_ranges_is_held_to_the_limit_too(path: Path, site: Site) -> None:
    site.plan = [serve(path.read_bytes(), ranges=False, length=False)]
    with pytest.raises(BadFile, match="more than 100,000 bytes and its server does not support range"):
        open_set(site.url, max_bytes=100_000)


@pytest.mark.parametrize("wrong", [{"max_bytes": 0}, {"max_seconds": 0.0}, {"timeout": float("nan")}])
def test_limits_must_be_positive(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadOption, match=f"`{next(iter(wrong))}` must be positive"):
        open_set("http://127.0.0.1/file", **wrong)


def forged(data: CondensedSet, *, patches: int, side: int, block: int | None = None) -> Answer:
    """A server that claims to have a set of such images and sends zeros for as long as it is asked."""
    header = replace(header_of(data), patches=patches, image=(3, side, side), factor=1)
    layout = {
        "origin": ("U32", (patches,)),
        "labels": ("U16", (patches,)),
        "cells": ("U8", (patches, 3, side, side)),
    }
    sizes = {name: tensor_bytes(*tensor) for name, tensor in layout.items()}
    block = block or block_size(sum(sizes.values()))
    sums = {name: "0" * 8 * min(-(-size // block), 1000) for name, size in sizes.items()}
    labels = (np.arange(min(patches, 10**6)) % 10).astype("<u2").tobytes()
    if patches <= 10**6:
        sums["labels"] = block_sums(memoryview(labels), min(block, len(labels)))
        sums["cells"] = "0" * 8 * -(-sizes["cells"] // block)
    start = header_bytes(layout, replace(header, checksums=Checksums(block, sums, "0" * 64)).to_metadata())
    size = len(start) + sum(sizes.values())
    start += bytes(min(sizes["origin"], 2**22)) + labels

    def answer(handler: Any) -> None:
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", handler.headers["Range"])
        assert found
        begin, end = int(found[1]), int(found[2]) + 1
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes {begin}-{end - 1}/{size}")
        handler.end_headers()
        try:
            while begin < end:
                piece = start[begin : min(begin + 2**16, end)]
                handler.wfile.write(piece + bytes(min(2**16, end - begin) - len(piece)))
                handler.site.sent += min(2**16, end - begin)
                begin += 2**16
        except ConnectionError:
            pass

    return answer


@pytest.mark.parametrize(
    ("claim", "complaint"),
    [
        ({"patches": 1000, "side": 8, "block": 2**62}, "checksum blocks are larger than 4,096 bytes"),
        ({"patches": 10**12, "side": 32, "block": 2**36}, "checksum blocks are larger than 4,194,304 bytes"),
        ({"patches": 10**12, "side": 32}, "its checksums are not those of its tensors"),
        ({"patches": 1000, "side": 2048}, "`max_bytes` allows 268,435,456 in all"),
    ],
)
def test_a_forged_header_does_not_decide_how_much_is_fetched(
    ranked: CondensedSet, site: Site, claim: dict[str, int], complaint: str
) -> None:
    site.plan = [forged(replace(ranked, scores={}), **claim)]
    with pytest.raises((BadFile, BadOption), match=complaint):
        open_set(site.url).take(total=100)
    assert site.sent < 2**20


def test_overhead_of_a_few_rows_is_bounded_by_the_block(ranked: CondensedSet, site: Site) -> None:
    site.plan = [forged(ranked, patches=10**6, side=64)]  # claims 12 GB: blocks of 4 MiB
    with pytest.raises(BadFile, match="'cells' does not match its checksum"):
        open_set(site.url).take(ipc=1)
    assert site.sent <= 2**16 + 2 * 10**6 + 4 * 2**20  # header, labels up to the end of their block, cells likewise


# ---------------------------------------------------------------- on numpy alone

ALONE = """
import sys

class Bare:
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top not in sys.stdlib_module_names and top not in ("numpy", "condense_once"):
            raise ModuleNotFoundError(f"{name} is not on this device")

sys.meta_path.insert(0, Bare())
from condense_once.container import header_bytes, tensor_bytes
from condense_once.device import open_set
from condense_once.errors import UnknownName
for where in sys.argv[1:]:
    opened = open_set(where)
    for budget in ({"ipc": 1}, {"bytes": "40KB"}, {"classes": ["cat"], "total": 3}, {"per_class": {"dog": 2}}):
        subset = opened.take(**budget)
        print(len(subset), float(subset.inputs.sum()))
    try:
        opened.take(classes=["catt"])
    except UnknownName as error:
        print(error)
print(sorted({name.split(".")[0] for name in sys.modules} & {"torch", "PIL", "safetensors", "sklearn", "rich", "typer"}))
"""


def test_it_runs_where_nothing_but_numpy_is_installed(path: Path, ranked: CondensedSet, site: Site) -> None:
    site.plan = [serve(path.read_bytes())]
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(path), site.url],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    *lines, foreign = done.stdout.splitlines()
    assert foreign == "[]"
    assert lines[:5] == lines[5:]
    assert lines[0].split() == ["40", str(float(ranked.inputs(slice(40)).sum()))]
    assert [line.split()[0] for line in lines[1:4]] == ["40", "3", "2"]
    assert "did you mean 'cat'" in lines[4]


def test_importing_the_reader_loads_neither_torch_nor_selection() -> None:
    program = (
        "import sys, condense_once.device; loaded = sorted(name for name in sys.modules if name.startswith('condense_once.'));"
        "print(*loaded, 'torch' if 'torch' in sys.modules else '')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = done.stdout.split()
    assert "condense_once.device.reader" in loaded
    heavy = {"selection", "metrics", "train", "evaluation", "nets", "augment", "data", "studies", "cli", "condensing"}
    assert "torch" not in loaded
    assert not {name.split(".")[1] for name in loaded} & heavy


def test_local_files_need_no_network_code(path: Path) -> None:
    program = (
        "import sys; from condense_once.device import open_set; open_set(sys.argv[1]).take(ipc=1);"
        "print([m for m in ('urllib.request', 'http.client', 'ssl', 'email', 'importlib.metadata') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_a_content_range_of_thousands_of_digits_is_an_invalid_response(site: Site) -> None:
    site.plan = [serve(b"0" * 100, say=f"bytes 0-{'9' * 5000}/{'9' * 5000}")]
    with pytest.raises(BadFile, match="Content-Range header is missing or malformed"):
        open_set(site.url)
