"""Downloads against a real server on loopback that misbehaves in every way we could think of."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from condense_once.data.download import Checksum, DownloadError, download
from condense_once.errors import BadFile, BadOption
from condense_once.files import exclusive

BODY = bytes(range(256)) * 3000  # 768,000 bytes: more than one read
HALF = len(BODY) // 2
MD5 = Checksum("md5", hashlib.md5(BODY).hexdigest())
SHA256 = Checksum("sha256", hashlib.sha256(BODY).hexdigest())

Site = Any  # that of tests/conftest.py
Answer = Callable[[Any], None]  # to the handler of a request


def serve(
    body: bytes = BODY,
    *,
    etag: str | None = '"one"',
    ranges: bool = True,
    length: bool = True,
    honours_if_range: bool = True,
    cut: int | None = None,  # hang up after so many bytes
    stall: int | None = None,  # fall silent after so many bytes
) -> Answer:
    def answer(handler: Any) -> None:
        asked, wanted = handler.headers["Range"], handler.headers["If-Range"]
        partial = ranges and asked is not None and (wanted in (None, etag) or not honours_if_range)
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if partial else 0
        if start >= len(body):
            handler.send_error(416)
            return
        handler.send_response(206 if partial else 200)
        if partial:
            handler.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        if length:
            handler.send_header("Content-Length", str(len(body) - start))
        if etag:
            handler.send_header("ETag", etag)
        handler.end_headers()
        stop = min(n for n in (cut, stall, len(body) - start) if n is not None)
        try:
            handler.wfile.write(body[start : start + stop])
            if stall is not None:
                handler.site.over.wait(5)
        except ConnectionError:
            pass  # the client had enough

    return answer


def another_range(handler: Any) -> None:
    handler.send_response(206)
    handler.send_header("Content-Range", f"bytes 0-{len(BODY) - 1}/{len(BODY)}")
    handler.send_header("Content-Length", str(len(BODY)))
    handler.send_header("ETag", '"one"')
    handler.end_headers()


def get(
    site: Site,
    path: Path,
    *,
    size: int | None = len(BODY),
    checksum: Checksum = MD5,
    timeout: float = 5.0,
    attempts: int = 3,
    **limits: Any,
) -> Path:
    return download(site.url, path, size=size, checksum=checksum, timeout=timeout, attempts=attempts, pause=0, **limits)


def part_of(path: Path) -> Path:
    return path.with_name(path.name + ".part")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.bin"


@pytest.mark.parametrize("checksum", [MD5, SHA256])
@pytest.mark.parametrize("size", [len(BODY), None])
@pytest.mark.parametrize("length", [True, False])
def test_a_file_arrives_whole(site: Site, path: Path, checksum: Checksum, size: int | None, length: bool) -> None:
    site.plan = [serve(length=length)]
    assert get(site, path, size=size, checksum=checksum) == path
    assert path.read_bytes() == BODY
    assert not part_of(path).exists()
    assert site.ranges == [None]


def test_a_file_that_is_there_and_right_is_not_fetched_again(site: Site, path: Path) -> None:
    path.write_bytes(BODY)
    get(site, path)
    assert site.asked == []


def test_a_wrong_file_under_the_name_is_replaced(site: Site, path: Path) -> None:
    path.write_bytes(b"old")
    site.plan = [serve()]
    get(site, path)
    assert path.read_bytes() == BODY


def test_progress_counts_up_to_the_whole(site: Site, path: Path) -> None:
    site.plan = [serve()]
    seen: list[tuple[int, int | None]] = []
    download(site.url, path, size=None, checksum=MD5, progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert seen[-1] == (len(BODY), len(BODY))


def test_a_cut_download_goes_on_with_the_rest_of_the_same_version(site: Site, path: Path) -> None:
    site.plan = [serve(cut=HALF), serve()]
    get(site, path)
    assert path.read_bytes() == BODY
    assert site.ranges == [None, f"bytes={HALF}-"]
    assert site.asked[1]["If-Range"] == '"one"'


def test_a_weak_etag_is_not_used_to_tell_versions(site: Site, path: Path) -> None:
    site.plan = [serve(cut=HALF, etag='W/"one"'), serve(etag='W/"one"')]
    get(site, path)
    assert path.read_bytes() == BODY
    assert site.ranges == [None, f"bytes={HALF}-"]
    assert site.asked[1]["If-Range"] is None


def test_a_cut_reply_without_a_length_is_noticed_by_the_expected_size(site: Site, path: Path) -> None:
    site.plan = [serve(cut=HALF, length=False), serve()]
    get(site, path)
    assert path.read_bytes() == BODY
    assert site.ranges == [None, f"bytes={HALF}-"]


def test_a_server_without_ranges_starts_over(site: Site, path: Path) -> None:
    site.plan = [serve(cut=HALF, ranges=False), serve(ranges=False)]
    get(site, path)
    assert path.read_bytes() == BODY
    assert len(site.asked) == 2


def test_a_server_that_sends_another_range_than_asked_for_starts_over(site: Site, path: Path) -> None:
    site.plan = [serve(cut=HALF), another_range, serve()]
    get(site, path)
    assert path.read_bytes() == BODY
    assert site.ranges == [None, f"bytes={HALF}-", None]


def test_always_cut_gives_up_and_the_next_call_goes_on(site: Site, path: Path) -> None:
    site.plan = [serve(cut=1000)]
    with pytest.raises(DownloadError, match="broke off 3 times") as caught:
        get(site, path, attempts=3)
    assert str(caught.value).count("\n") == 0
    assert not path.exists()
    assert part_of(path).read_bytes() == BODY[:3000]
    site.plan = [serve()]
    get(site, path)
    assert path.read_bytes() == BODY
    assert site.ranges == [None, "bytes=1000-", "bytes=2000-", "bytes=3000-"]


def test_a_stalled_connection_is_left_and_its_bytes_are_kept(site: Site, path: Path) -> None:
    site.plan = [serve(stall=HALF), serve()]
    get(site, path, timeout=0.2, attempts=9)
    assert path.read_bytes() == BODY
    assert site.ranges[:2] == [None, f"bytes={HALF}-"]


def test_a_stall_before_the_first_byte_counts_as_broken(site: Site, path: Path) -> None:
    site.plan = [site.silence, serve()]
    get(site, path, timeout=0.2, attempts=9)
    assert path.read_bytes() == BODY


def test_a_server_in_trouble_is_asked_again(site: Site, path: Path) -> None:
    site.plan = [site.status(500), serve()]
    get(site, path)
    assert path.read_bytes() == BODY


def test_a_server_always_in_trouble_is_given_up_with_growing_pauses(
    site: Site, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("condense_once.data.download.time.sleep", pauses.append)
    site.plan = [site.status(503)]
    with pytest.raises(DownloadError, match="503"):
        download(site.url, path, size=None, checksum=MD5, attempts=4, pause=0.5)
    assert pauses == [0.5, 1.0, 2.0]
    assert len(site.asked) == 4
    assert not path.exists()


@pytest.mark.parametrize("code", [403, 404, 410])
def test_a_server_that_says_no_is_asked_once(site: Site, path: Path, code: int) -> None:
    site.plan = [site.status(code)]
    with pytest.raises(DownloadError, match=str(code)):
        get(site, path)
    assert len(site.asked) == 1
    assert not path.exists()


def test_what_a_server_says_is_quoted_on_one_short_line(site: Site, path: Path) -> None:
    site.plan = [lambda handler: handler.send_response(404, f"gone \x1b[31m {'x' * 9000}") or handler.end_headers()]
    with pytest.raises(DownloadError, match=r"answered 404 gone \\x1b\[31m xxx") as caught:
        get(site, path)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


def test_a_status_line_that_is_none_is_quoted_on_one_short_line(site: Site, path: Path) -> None:
    site.plan = [lambda handler: handler.wfile.write(b"\x1b[31m" + b"x" * 9000 + b"\r\n\r\n")]
    with pytest.raises(DownloadError, match=r"broke off .*\\x1b\[31mxxx") as caught:
        get(site, path, attempts=2)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


def test_a_host_out_of_reach_is_given_up_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(
        "condense_once.data.download.time.sleep", lambda _: pytest.fail("waited for a host that was never there")
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound, but nobody listens
        with pytest.raises(DownloadError, match="cannot be reached"):
            download(f"http://127.0.0.1:{free.getsockname()[1]}/file", path, size=None, checksum=MD5)
    assert not path.exists()


def test_a_host_that_has_answered_is_asked_again_when_it_vanishes(
    site: Site, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.plan = [serve(cut=HALF), site.redirect("http://127.0.0.1:1/nobody-listens"), serve()]
    get(site, path)
    assert path.read_bytes() == BODY
    assert site.ranges == [None, f"bytes={HALF}-", f"bytes={HALF}-"]


def test_wrong_bytes_are_refused_and_not_kept(site: Site, path: Path) -> None:
    site.plan = [serve(BODY[::-1])]
    with pytest.raises(BadFile, match=f"its md5 is .* not {MD5.hex}"):
        get(site, path)
    assert not path.exists()
    assert not part_of(path).exists()
    assert len(site.asked) == 1


def test_bytes_damaged_since_the_last_call_are_fetched_again(site: Site, path: Path) -> None:
    part_of(path).write_bytes(bytes(HALF))  # as a power cut can leave it: the length is right, the bytes are not
    site.plan = [serve()]
    get(site, path)
    assert path.read_bytes() == BODY
    assert site.ranges == [f"bytes={HALF}-", None]


@pytest.mark.parametrize("honours_if_range", [True, False])
def test_a_file_that_changes_between_two_connections_is_started_over(
    site: Site, path: Path, honours_if_range: bool
) -> None:
    site.plan = [serve(BODY[::-1], cut=HALF), serve(etag='"two"', honours_if_range=honours_if_range)]
    get(site, path)
    assert path.read_bytes() == BODY


def test_a_part_that_is_whole_needs_no_request(site: Site, path: Path) -> None:
    part_of(path).write_bytes(BODY)
    get(site, path)
    assert path.read_bytes() == BODY
    assert site.asked == []


def test_a_part_longer_than_the_file_is_started_over(site: Site, path: Path) -> None:
    part_of(path).write_bytes(BODY + b"more")
    site.plan = [serve()]
    get(site, path)
    assert path.read_bytes() == BODY


@pytest.mark.parametrize("body", [BODY + b"more", BODY[:-4]])
def test_another_length_than_expected_is_refused_before_a_byte_is_taken(site: Site, path: Path, body: bytes) -> None:
    site.plan = [serve(body)]
    with pytest.raises(BadFile, match=f"has {len(body)} bytes, not {len(BODY)}"):
        get(site, path)
    assert list(path.parent.iterdir()) == []


def test_more_bytes_than_expected_are_not_taken(site: Site, path: Path) -> None:
    site.plan = [serve(BODY * 4, length=False)]
    with pytest.raises(BadFile, match=f"more than {len(BODY)} bytes"):
        get(site, path)
    assert not path.exists()
    assert part_of(path).stat().st_size <= len(BODY)


@pytest.mark.parametrize("length", [True, False])
def test_a_file_of_unknown_length_is_stopped_at_the_limit_whatever_the_server_says(
    site: Site, path: Path, length: bool
) -> None:
    site.plan = [serve(length=length)]
    with pytest.raises(BadFile, match="more than 1000 bytes"):
        get(site, path, size=None, max_bytes=1000)
    assert not path.exists()


def test_bytes_that_drip_in_end_at_a_deadline_and_are_kept(site: Site, path: Path) -> None:
    def drip(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY[:1000])
        try:
            while not handler.site.over.wait(0.01):
                handler.wfile.write(b"x")
        except ConnectionError:
            pass

    site.plan = [drip]
    with pytest.raises(DownloadError, match=r"too slow: not complete after 0\.2 seconds; try again to resume"):
        get(site, path, max_seconds=0.2)
    assert len(site.asked) == 1
    assert part_of(path).stat().st_size >= 1000


def test_a_content_range_of_thousands_of_digits_starts_the_file_over(site: Site, path: Path) -> None:
    def digits(handler: Any) -> None:
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes {HALF}-{'9' * 5000}/{'9' * 5000}")
        handler.end_headers()

    part_of(path).write_bytes(BODY[:HALF])
    site.plan = [digits, serve()]
    get(site, path)
    assert path.read_bytes() == BODY


def test_a_redirect_within_http_is_followed_and_keeps_the_range(site: Site, path: Path) -> None:
    part_of(path).write_bytes(BODY[:HALF])
    site.plan = [site.redirect("/elsewhere"), serve()]
    get(site, path)
    assert path.read_bytes() == BODY
    assert site.ranges == [f"bytes={HALF}-"] * 2


@pytest.mark.parametrize("scheme", ["file", "ftp", "data"])
def test_a_redirect_to_another_scheme_is_refused(site: Site, path: Path, tmp_path: Path, scheme: str) -> None:
    (tmp_path / "secret").write_bytes(BODY)
    site.plan = [site.redirect(f"{scheme}://{tmp_path}/secret")]
    with pytest.raises(DownloadError, match="302"):
        get(site, path)
    assert not path.exists()
    assert len(site.asked) == 1


def test_a_redirect_in_circles_ends_in_one_sentence(site: Site, path: Path) -> None:
    site.plan = [site.redirect("/file")]
    with pytest.raises(DownloadError) as caught:
        get(site, path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://host/file", "file.bin", ""])
def test_only_http_addresses_are_accepted(path: Path, url: str) -> None:
    with pytest.raises(BadOption, match="http"):
        download(url, path, size=None, checksum=MD5)


def test_ctrl_c_keeps_what_has_come(site: Site, path: Path) -> None:
    def interrupt(done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    site.plan = [serve()]
    with pytest.raises(KeyboardInterrupt):
        download(site.url, path, size=len(BODY), checksum=MD5, progress=interrupt)
    kept = part_of(path).stat().st_size
    assert 0 < kept < len(BODY)
    assert not path.exists()
    get(site, path)
    assert path.read_bytes() == BODY
    assert site.ranges == [None, f"bytes={kept}-"]


def test_a_folder_that_cannot_be_written_is_one_sentence(site: Site, tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="cannot be written: No such file or directory"):
        get(site, tmp_path / "missing" / "file.bin")


def test_a_second_process_is_kept_away(site: Site, path: Path) -> None:
    with exclusive(path), pytest.raises(BadFile, match="Another process is using"):
        get(site, path)
    assert site.asked == []
    assert not path.exists()
    with pytest.raises(RuntimeError), exclusive(path):
        raise RuntimeError  # frees the lock
    site.plan = [serve()]
    get(site, path)
    assert path.exists()


def test_a_missing_folder_is_not_made_by_the_lock(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), exclusive(tmp_path / "missing" / "file.bin"):
        pass
    assert not (tmp_path / "missing").exists()


def test_a_killed_process_leaves_its_bytes_and_no_lock(site: Site, path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from condense_once.data.download import Checksum, download;"
        "download(sys.argv[1], Path(sys.argv[2]), size=None, checksum=Checksum('md5', sys.argv[3]), timeout=30,"
        " progress=lambda done, total: print(done, flush=True))"
    )
    site.plan = [serve(stall=HALF)]
    with subprocess.Popen(
        [sys.executable, "-c", program, site.url, path, MD5.hex],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        while int(process.stdout.readline()) < HALF:
            pass
        process.kill()
    assert not path.exists()
    site.plan = [serve()]
    get(site, path)
    assert path.read_bytes() == BODY
    kept = site.ranges[1]
    assert kept is not None
    assert kept.startswith("bytes=")
