"""Names that are formulas, scripts, links or written backwards, very long ones; numbers of the page's scripts."""

import csv
import io
import json
import re
import shutil
import subprocess
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from report.pages import found, sets
from report.parsing import Page

from blindmatch.io.exchange import REPLACED, csv_text
from blindmatch.report import Match, pictures, render
from blindmatch.report.verdict import lower_number

FORMULAS = ["=1+1", "@SUM(A1)", "+cmd|x", "-2+3", "\t=1", '=HYPERLINK("http://e","x")', "\uff1d1", "-", "-5e3x", "-.e1"]
PLAIN = ["-5", "+1.5e-3", ".5", "cat", "a=b", "e-5", "'cat", ""]
REORDERED = ["a\u202egnp.exe", "\u2066x", "\u2069\u202bא", "half \ud800 of a pair"]
EVIL = [
    "<script>alert(1)</script>",
    "</text></svg><svg onload=alert(1)>",
    "<a xlink:href='javascript:alert(1)'>x</a>",
    "<![CDATA[</svg>]]><image href=//e/x>",
    "\"><use href='data:image/svg+xml,x'/>",
    "</script><script>alert(1)</script>",
]
NAMES = [*FORMULAS, *REORDERED, *EVIL]
NODE = shutil.which("node")


def page_of(names: list[str]) -> str:
    X, Y, truth = sets(len(names))
    result = found(X, Y, truth, source_names=names, target_names=names)
    return render(Match(replace(result, title=names[0]), truth=truth[::-1].tolist()))


def test_names_cannot_be_markup_links_or_controls() -> None:
    """Neither in the tables nor in the SVG pictures; what a picture or a link loads is inside the page."""
    text = page_of(NAMES)
    page = Page(text)
    plain = Page(page_of([f"name {i}" for i in range(len(NAMES))]))
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    links = [value for _, tag in page.tags for name, value in tag.items() if name in ("href", "src", "xlink:href")]
    assert links
    assert all(value.startswith(("#", "data:,", "data:image/png")) for value in links)
    assert text.translate(REPLACED) == text
    assert text.encode()
    assert json.loads(page.data)["source"][:10] == FORMULAS


def test_a_right_to_left_name_is_isolated() -> None:
    assert "<bdi>שלום</bdi>" in page_of(["שלום", "cat", "dog"])


def test_csv_for_spreadsheets() -> None:
    cells = [row[0] for row in csv.reader(io.StringIO(csv_text([name] for name in (*FORMULAS, *PLAIN)), newline=""))]
    assert cells == [f"'{name}" for name in FORMULAS] + PLAIN
    assert csv_text([[name] for name in REORDERED]) == "a�gnp.exe\n�x\n��א\nhalf � of a pair\n"
    assert csv_text([["a\r=1"], ["\r\n=1"]]) == '"a\n=1"\n"\'\n=1"\n'
    assert csv_text([[-5, 2.5, None]]) == "-5,2.5,\n"


def test_a_name_of_200000_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    """The picture looks at the letters that may fit, not at all of them again and again."""
    looked: list[str] = []
    width = pictures.east_asian_width
    monkeypatch.setattr(pictures, "east_asian_width", lambda letter: looked.append(letter) or width(letter))
    page_of(["L" * 200_000, "北" * 200_000, "cat", "dog"])
    assert 20 < len(looked) < 2000


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("m" * 18, "m" * 18),
        ("m" * 23, "m" * 20 + "…"),
        ("北" * 13, "北" * 13),
        ("北" * 14, "北" * 12 + "…"),
        ("abc        " * 4, "abc        abc…"),
        ("", ""),
    ],
)
def test_names_in_the_picture_are_cut_where_they_no_longer_fit(name: str, shown: str) -> None:
    assert pictures._short(name, 178) == shown


def script(name: str, start: str, end: str) -> str:
    """A piece of the page's scripts."""
    text = (files("blindmatch.report") / "assets" / name).read_text("utf-8")
    return text[text.index(start) : text.index(end)]


def run_node(code: str) -> object:
    done = subprocess.run([str(NODE), "-e", code], capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


@pytest.mark.skipif(NODE is None, reason="no node to run the page's scripts")
def test_bounds_in_tips_are_rounded_down() -> None:
    bounds = [
        26.45319974,
        -0.123456749,
        9.99999999,
        -9.99999949,
        578.0,
        123456.78,
        1234567.89,
        -1e-7 / 3,
        2e-5 / 3,
        0.0,
    ]
    bounds += [5e-324, 1e300 / 3, 99999.99, 999999.96, 0.00099999999, 2 / 3 * 1e6, None]
    functions = script("page.js", "function formatted", "// Each part")
    for digits in (3, 5, 7):
        shown = run_node(
            f"{functions} console.log(JSON.stringify({json.dumps(bounds)}.map((x) => lowered(x, {digits}))))"
        )
        assert shown[-1] == "-"
        for bound, text in zip(bounds[:-1], shown[:-1], strict=True):
            assert float(text) <= bound, f"{bound} with {digits} digits: {text}"
            assert bound - float(text) <= 1.01 * 10 ** (1 - digits) * abs(bound), (
                f"{bound} with {digits} digits: {text}"
            )
            if digits == 7:
                assert float(text) == float(lower_number(bound))


def test_every_bound_of_the_charts_is_rounded_down() -> None:
    charts = (files("blindmatch.report") / "assets" / "charts.js").read_text("utf-8")
    assert not re.search(r"bound \$\{formatted", charts)
    assert charts.count("lowered") == 3


@pytest.mark.skipif(NODE is None, reason="no node to run the page's scripts")
def test_the_page_copies_the_same_csv() -> None:
    names = [*FORMULAS, *PLAIN, 'quoted "cat"', "a,b", "a\rb"]
    code = (
        f"const data = {{source: {json.dumps(names)}, target: {json.dumps(names)}, confidence: null, right: null}};"
        "const rows = data.source.map((_, pair) => ({dataset: {pair, ids: `${pair},${pair}`}}));"
        f"{script('table.js', 'function csv', 'function startTable')} console.log(JSON.stringify(csv()))"
    )
    titles = ["source", "target", "source_name", "target_name"]
    assert run_node(code) == csv_text([titles, *([i, i, name, name] for i, name in enumerate(names))])


def test_the_report_of_a_file_with_such_names(tmp_path: Path) -> None:
    X, Y, truth = sets(len(NAMES))
    path = found(X, Y, truth, source_names=NAMES, target_names=NAMES).report(tmp_path / "r.html")
    assert "\u202e" not in path.read_text("utf-8")
