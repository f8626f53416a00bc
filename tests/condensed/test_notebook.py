from __future__ import annotations

import html
import json
import re
from dataclasses import replace

import condense_once


def contents(shown: str) -> dict[str, object]:
    page = html.unescape(shown)
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_a_notebook_shows_the_first_patches_of_each_class() -> None:
    data = condense_once.load("cifar10-idc-ipc10")
    shown = data._repr_html_()
    assert len(shown) < 300_000
    found = contents(shown)
    assert (found["ranked"], found["step"], found["patches"]) == (True, 10, 400)
    assert len(found["rows"]) == 200  # type: ignore[arg-type]
    assert found["classes"] == [*data.classes]


def test_names_stay_inside_the_frame_of_a_notebook() -> None:
    data = condense_once.load("cifar10-idc-ipc10", first=10)
    evil = '"></iframe><script>alert(1)</script>'
    shown = replace(data, name=evil, classes=(evil, *data.classes[1:]))._repr_html_()
    assert shown.count("<") == 2  # the frame alone
    assert contents(shown)["classes"][0] == evil  # type: ignore[index]
    assert "<script>alert" not in html.unescape(shown).partition("srcdoc=")[2]
