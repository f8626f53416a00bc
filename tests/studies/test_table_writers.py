"""Tables as people and programs read them, whatever the names in them are."""

from __future__ import annotations

import csv
import sys
from dataclasses import replace
from math import nan
from pathlib import Path

import pyarrow.parquet
import pytest

from condense_once.errors import BadOption, MissingExtra
from condense_once.studies.table import Entry, PublishedNumber, Row, Table
from condense_once.studies.table_text import text_rows, to_latex, to_markdown, to_text
from condense_once.studies.table_writers import check_suffix, write_table

ODD = 'a&b_c%d|e\n"f"'
ENTRIES = (
    Entry(
        {0: 0.42, 1: 0.43},
        expected=2,
        seconds_of={"a": 40, "shared": 20},
        best=True,
        ahead=True,
        published=PublishedNumber(0.4228, 0.0015),
        test="cifar10",
    ),
    Entry({0: 0.30, 2: 0.32}, expected=9, seconds_of={"b": 15, "shared": 20}),
)
TABLE = Table(
    title="Rules & sets, 100 %",
    axes=("set", "size"),
    columns=("yoco", "el2n_easy"),
    rows=(
        Row((ODD, "1"), ENTRIES),
        Row(
            (ODD, "2"),
            (
                Entry({0: 0.5}, expected=1, seconds_of={"c": 0.4}),
                Entry({}, expected=9, published=PublishedNumber(0.1668)),
            ),
        ),
        Row(
            (ODD, "Diff."),
            (Entry({}, 0, difference=0.0), Entry({}, 0, difference=-0.1149, published=PublishedNumber(-0.1937))),
        ),
        Row((ODD, "none"), (Entry({}, 0), Entry({}, 0, difference=nan))),
    ),
    notes=("* yoco is ahead.", "n = 1 to 2"),
    protocol="quick-1234",
)


def test_entries_say_mean_spread_and_how_much_is_known() -> None:
    columns, rows = text_rows(TABLE)
    assert columns == ("set", "size", "yoco", "el2n_easy", "evaluated in")
    assert rows == [
        (ODD, "1", "42.5 ± 0.7* (n = 2; paper 42.3)", "31.0 ± 1.4 (2 of 9)", "1 min 15 s"),
        (ODD, "2", "50.0 (n = 1)", "– (paper 16.7)", "0.4 s"),
        (ODD, "Diff.", "+0.0", "-11.5 (paper -19.4)", "–"),
        (ODD, "none", "–", "–", "–"),
    ]


def test_exact_entries_have_two_decimals_and_the_std_of_the_paper() -> None:
    _, rows = text_rows(TABLE, exact=True)
    assert rows[0][2:4] == ("42.50 ± 0.71* (n = 2; paper 42.28 ± 0.15)", "31.00 ± 1.41 (2 of 9)")
    assert rows[1][2:4] == ("50.00 (n = 1)", "– (paper 16.68)")
    assert rows[2][2:4] == ("+0.00", "-11.49 (paper -19.37)")


def test_the_number_of_runs_stands_in_the_notes_if_it_is_the_same_everywhere() -> None:
    entries = tuple(Entry({0: 0.4, 1: 0.5}, expected=2, published=paper) for paper in (None, PublishedNumber(0.41)))
    difference = Row(("Diff.",), (Entry({}, 0, difference=0.1),) * 2)
    same = Table("", ("size",), ("a", "b"), (Row(("1",), entries), difference), ())
    assert same.runs == 2
    assert text_rows(same)[1] == [("1", "45.0 ± 7.1", "45.0 ± 7.1 (paper 41.0)", "–"), ("Diff.", "+10.0", "+10.0", "–")]
    short = replace(same, rows=(*same.rows, Row(("2",), (Entry({0: 0.4, 1: 0.5}, expected=3),) * 2)))
    assert short.runs is None
    assert text_rows(short)[1][0][1] == "45.0 ± 7.1 (n = 2)"


def test_bare_tables_are_tables_alone_and_others_can_be_referred_to() -> None:
    named = replace(TABLE, name="my study_1")
    assert r"  \label{tab:my-study-1}" in to_latex(named).splitlines()
    tabular = to_latex(named, bare=True).splitlines()[1:]
    assert (tabular[0], tabular[-1]) == (r"\begin{tabular}{llrrr}", r"\end{tabular}")
    assert "\n".join(f"  {line}" for line in tabular) in to_latex(named)
    assert to_markdown(named, bare=True).splitlines() == to_markdown(TABLE).splitlines()[2:-4]


LABELS = Table("What & why", ("metric", "label"), (), (Row(("a_b", "yes"), ()), Row(("c", "–"), ())), ())


def test_a_table_of_labels_alone_is_written_like_any_other(tmp_path: Path) -> None:
    for ending in ("md", "tex", "csv", "parquet"):
        write_table(LABELS, tmp_path / f"a.{ending}")
    assert (tmp_path / "a.md").read_text(encoding="utf-8").splitlines() == [
        r"## What \& why",
        *("", "| metric | label |", "| --- | --- |", r"| a\_b | yes |", "| c | – |"),
    ]
    assert r"    a\_b & yes \\" in (tmp_path / "a.tex").read_text(encoding="utf-8").splitlines()
    assert (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines() == ["metric,label", "a_b,yes", "c,–"]
    assert pyarrow.parquet.read_table(tmp_path / "a.parquet").to_pylist() == [
        {"metric": "a_b", "label": "yes"},
        {"metric": "c", "label": "–"},
    ]


def test_plain_text_is_aligned_between_title_and_notes() -> None:
    assert to_text(TABLE).splitlines() == [
        "Rules & sets, 100 %",
        "",
        "set             size   yoco                             el2n_easy            evaluated in",
        r'a&b_c%d|e\n"f"  1      42.5 ± 0.7* (n = 2; paper 42.3)  31.0 ± 1.4 (2 of 9)  1 min 15 s',
        r'a&b_c%d|e\n"f"  2      50.0 (n = 1)                     – (paper 16.7)       0.4 s',
        r'a&b_c%d|e\n"f"  Diff.  +0.0                             -11.5 (paper -19.4)  –',
        r'a&b_c%d|e\n"f"  none   –                                –                    –',
        "",
        "* yoco is ahead.",
        "n = 1 to 2",
    ]
    assert to_text(LABELS).splitlines() == ["What & why", "", "metric  label", "a_b     yes", "c       –"]


def test_a_difference_that_rounds_to_nothing_has_no_minus() -> None:
    table = Table("", ("size",), ("el2n",), (Row(("Diff.",), (Entry({}, 0, difference=-0.0001),)),), ())
    assert text_rows(table)[1][0][1] == "+0.0"


def test_markdown() -> None:
    name = r'a\&b\_c%d\|e\\n"f"'
    assert to_markdown(TABLE).splitlines() == [
        r"## Rules \& sets, 100 %",
        "",
        r"| set | size | yoco | el2n\_easy | evaluated in |",
        "| --- | --- | ---: | ---: | ---: |",
        rf"| {name} | 1 | **42.5 ± 0.7**\* (n = 2; paper 42.3) | 31.0 ± 1.4 (2 of 9) | 1 min 15 s |",
        f"| {name} | 2 | 50.0 (n = 1) | – (paper 16.7) | 0.4 s |",
        f"| {name} | Diff. | +0.0 | -11.5 (paper -19.4) | – |",
        f"| {name} | none | – | – | – |",
        "",
        r"\* yoco is ahead.",
        "",
        "n = 1 to 2",
    ]


def test_latex() -> None:
    name = r"a\&b\_c\%d\textbar{}e\textbackslash{}n\symbol{34}f\symbol{34}"
    assert to_latex(TABLE).splitlines()[1:] == [
        r"\begin{table}",
        r"  \centering",
        r"  \caption{Rules \& sets, 100 \%}",
        r"  \begin{tabular}{llrrr}",
        r"    \toprule",
        r"    set & size & yoco & el2n\_easy & evaluated in \\",
        r"    \midrule",
        rf"    {name} & 1 & \textbf{{42.5 $\pm$ 0.7}}{{*}} (n = 2; paper 42.3) & 31.0 $\pm$ 1.4 (2 of 9) & 1 min 15 s \\",
        rf"    {name} & 2 & 50.0 (n = 1) & \textendash{{}} (paper 16.7) & 0.4 s \\",
        rf"    {name} & Diff. & +0.0 & $-$11.5 (paper $-$19.4) & \textendash{{}} \\",
        rf"    {name} & none & \textendash{{}} & \textendash{{}} & \textendash{{}} \\",
        r"    \bottomrule",
        r"  \end{tabular}",
        r"  \par {\footnotesize {*} yoco is ahead.}",
        r"  \par {\footnotesize n = 1 to 2}",
        r"\end{table}",
    ]


@pytest.mark.parametrize(
    ("label", "written"),
    [
        ("[5mm]", "{[}5mm{]}"),  # after the \\ of a row above it would be a distance
        ("*", "{*}"),
        ("$x^2$ ~ {y} #1", r"\$x\textasciicircum{}2\$ \textasciitilde{} \{y\} \#1"),
        (r"\input{a}", r"\textbackslash{}input\{a\}"),
        ("a---b", "a-{}-{}-b"),
        ("cifar-10 -3", "cifar-10 $-$3"),
        ("`<it's>`", r"\textasciigrave{}\textless{}it\textquotesingle{}s\textgreater{}\textasciigrave{}"),
        ("\x1b[0m\ud800", r"\textbackslash{}x1b{[}0m\textbackslash{}ud800"),
    ],
)
def test_no_name_is_a_command_of_latex(label: str, written: str) -> None:
    table = Table("", ("set",), (), (Row((label,), ()),), ())
    assert rf"    {written} \\" in to_latex(table).splitlines()


def test_no_name_is_a_mark_of_markdown() -> None:
    table = Table("", ("set",), (), (Row((r"\*a*_b_`c`[d](e)<f>|~g~&amp;$h$#i",), ()),), ())
    written = r"| \\\*a\*\_b\_\`c\`\[d\](e)\<f\>\|\~g\~\&amp;\$h\$\#i |"
    assert written in to_markdown(table).splitlines()


@pytest.mark.parametrize("label", ["=1+1", "+1", "-cmd|' /C calc'!A0", "@SUM(A1)", "\t=1"])
def test_labels_are_no_formulas_for_spreadsheets(tmp_path: Path, label: str) -> None:
    write_table(
        replace(TABLE, rows=(replace(TABLE.rows[0], labels=(label, *TABLE.rows[0].labels[1:])),)), tmp_path / "a.csv"
    )
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        assert {line[TABLE.axes[0]] for line in csv.DictReader(file)} == {f"'{label}"}


def test_csv_has_a_line_for_each_entry(tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 8
    assert {line["set"] for line in lines} == {ODD}
    first = dict(lines[0])
    assert float(first.pop("std")) == pytest.approx(0.01 / 2**0.5)
    assert first == {
        **{"set": ODD, "size": "1", "column": "yoco", "mean": "0.425", "n": "2", "expected": "2", "seconds": "60"},
        **{"best": "True", "ahead": "True", "published": "0.4228", "protocol": "quick-1234", "test": "cifar10"},
        "published_std": "0.0015",
    }
    single, unknown, difference = lines[2], lines[3], lines[5]
    assert (single["mean"], single["std"], single["n"]) == ("0.5", "", "1")
    assert (unknown["mean"], unknown["n"], unknown["published"]) == ("", "0", "0.1668")
    assert (difference["size"], difference["mean"], difference["best"]) == ("Diff.", "-0.1149", "False")


def test_parquet_has_the_same_with_types(tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "a.parquet")
    rows = pyarrow.parquet.read_table(tmp_path / "a.parquet").to_pylist()
    assert len(rows) == 8
    assert rows[1] == {
        **{"set": ODD, "size": "1", "column": "el2n_easy", "mean": pytest.approx(0.31)},
        **{"std": pytest.approx(0.02 / 2**0.5), "n": 2, "expected": 9, "seconds": 35.0},
        **{"best": False, "ahead": False, "published": None, "protocol": "quick-1234", "test": ""},
        "published_std": None,
    }
    assert rows[7]["mean"] is None


@pytest.mark.parametrize("ending", ["csv", "parquet", "md", "tex"])
def test_half_a_character_does_not_stop_a_table(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{ending}"
    write_table(Table("\ud800", ("set",), ("\ud800",), (Row(("\ud800",), (Entry({}, 0),)),), ()), path)
    assert b"ud800" in path.read_bytes()


def test_the_ending_chooses_the_format(tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "a.MD", exact=True)
    write_table(TABLE, tmp_path / "a.tex")
    assert (tmp_path / "a.MD").read_text(encoding="utf-8") == to_markdown(TABLE, exact=True)
    assert (tmp_path / "a.tex").read_text(encoding="utf-8") == to_latex(TABLE)
    for name in ("a.xlsx", "table"):
        with pytest.raises(BadOption, match=r"\.md.*\.tex.*\.csv.*\.parquet"):
            write_table(TABLE, tmp_path / name)


def test_files_are_replaced_on_request_only(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("mine")
    with pytest.raises(BadOption, match="exists already"):
        write_table(TABLE, path)
    assert path.read_text() == "mine"
    write_table(TABLE, path, force=True)
    assert path.read_text(encoding="utf-8") == to_markdown(TABLE)


def test_parquet_without_its_extra_is_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="with the extra 'hf'"):
        check_suffix(tmp_path / "a.parquet")
    check_suffix(tmp_path / "a.csv")
