"""The command line: what is known about the items beside their embeddings: names, pictures, the truth."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from report.pages import sets
from typer.testing import CliRunner

from blindmatch.cli.app import app

QUICK = ("--solver", "two-opt")


@pytest.fixture(autouse=True)
def truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Two files of embeddings of six animals, and the true partner of each source."""
    monkeypatch.chdir(tmp_path)
    X, Y, partners = sets(6, noise=0.02)
    words = ["ant", "bee", "cat", "dog", "emu", "fox"]
    np.savez("a.npz", embeddings=X, names=words)
    np.save("b.npy", Y)
    backwards = np.argsort(partners)
    Path("names.txt").write_text("\n".join(words[i] for i in backwards) + "\n\n", encoding="utf-8")
    lines = [f"{words[i]},{j}" for i, j in enumerate(partners)]
    Path("truth.csv").write_text("source,target\n" + "\n".join(lines), encoding="utf-8")
    Path("photos").mkdir()
    for at, word in enumerate(words):
        Image.new("RGB", (300, 200), (40 * at, 0, 0)).save(f"photos/{word}.{'jpg' if at % 2 else 'png'}")
    return partners.tolist()


def run(*arguments: object):
    return CliRunner().invoke(app, [str(word) for word in arguments])


def match(*arguments: object) -> dict:
    done = run("match", "a.npz", "b.npy", *QUICK, "--json", *arguments)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_truth_from_a_file_and_by_names(truth: list[int]) -> None:
    found = match("--truth", "truth.csv")
    assert found["permutation"] == truth
    assert found["right"] == 6
    assert [pair["right"] for pair in found["pairs"]] == [True] * 6
    named = match("--truth", "names", "--target-names", "names.txt")
    assert named["right"] == 6
    assert all(pair["source_name"] == pair["target_name"] for pair in named["pairs"])
    shown = run("match", "a.npz", "b.npy", *QUICK, "--truth", "truth.csv").stdout
    assert "6 of 6 pairs are right (chance: 1)." in shown
    assert re.search(r"The true pairing costs [\d.e-]+, the same as this match\.", shown)
    away = run("match", "a.npz", "b.npy", *QUICK, "--truth", "truth.csv", "--forbid", f"0:{truth[0]}").stdout
    assert "less than this match: the search missed it, or known or forbidden pairs exclude it." in away
    assert "right" not in match()


def test_truth_by_rows_and_of_a_few(truth: list[int]) -> None:
    same = sum(i == j for i, j in enumerate(truth))
    assert match("--truth", "rows")["right"] == same
    Path("few.csv").write_text(
        f"0,{truth[0]}\n1,{(truth[1] + 1) % 6 if (truth[1] + 1) % 6 != truth[0] else truth[2]}\n"
    )
    found = match("--truth", "few.csv")
    assert found["right"] == 1
    assert "1 of 2 pairs are right" in run("match", "a.npz", "b.npy", *QUICK, "--truth", "few.csv").stdout


def test_known_pairs_may_use_the_names_of_a_file(truth: list[int]) -> None:
    found = match("--target-names", "names.txt", "--known", "ant:fox")
    assert found["permutation"][0] == truth[5]


def pictures(page: str) -> list[str]:
    return re.findall(r'<td class="name"><span><img src="data:image/jpeg;base64,([^"]+)"', page)


def test_pictures_of_a_folder_by_name() -> None:
    match("--source-images", "photos", "--report", "r.html")
    page = Path("r.html").read_text(encoding="utf-8")
    assert len(pictures(page)) == len(set(pictures(page))) == 6
    Path("photos/bee.jpg").unlink()
    match("--source-images", "photos", "--report", "r.html")
    assert len(pictures(Path("r.html").read_text(encoding="utf-8"))) == 5


def test_pictures_that_are_numbered_or_listed() -> None:
    Path("numbered").mkdir()
    for at in range(6):
        Image.new("RGB", (30, 20), (0, 40 * at, 0)).save(f"numbered/{at + 6}.png")  # 10 comes after 9
    Path("list.txt").write_text("".join(f"numbered/{at + 6}.png\n" for at in range(6)))
    pages = []
    for given in ("numbered", "list.txt"):
        match("--target-images", given, "--report", "r.html")
        pages.append(pictures(Path("r.html").read_text(encoding="utf-8")))
    assert pages[0] == pages[1]
    assert len(set(pages[0])) == 6
    Path("list.txt").write_text("\n\nnumbered/6.png\n\n\n\n")
    match("--target-images", "list.txt", "--report", "r.html")
    assert len(pictures(Path("r.html").read_text(encoding="utf-8"))) == 1


def test_a_saved_result_takes_them_too() -> None:
    assert run("match", "a.npz", "b.npy", "--save", "m.npz").exit_code == 0
    arguments = ("--truth", "truth.csv", "--target-names", "names.txt", "--source-images", "photos")
    assert run("report", "m.npz", *arguments).exit_code == 0
    page = Path("report.html").read_text(encoding="utf-8")
    assert len(pictures(page)) == 6
    assert "6 of 6 pairs are right" in page


def test_a_hundred_photographs_stay_small() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    np.save("x.npy", X)
    Path("many").mkdir()
    for at in range(100):  # noise: nothing compresses worse
        Image.fromarray(rng.integers(0, 256, size=(120, 160, 3), dtype=np.uint8)).save(f"many/{at}.png")
    both = ("--source-images", "many", "--target-images", "many")
    done = run("match", "x.npy", "x.npy", "--solver", "random", *both, "--report", "r.html")
    assert done.exit_code == 0
    assert Path("r.html").read_text(encoding="utf-8").count("<img ") == 200
    assert Path("r.html").stat().st_size < 2_000_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--source-images", "photos"), "pictures are shown in a report; add --report FILE"),
        (("--source-images", "empty", "--report", "r.html"), "has 0 pictures, none of them named like an item"),
        (("--target-images", "photos", "--report", "r.html"), "has 6 pictures, none of them named like an item"),
        (("--source-images", "broken.txt", "--report", "r.html"), "text.png: it is not an image that can be read"),
        (("--source-images", "missing.txt", "--report", "r.html"), "nothing.png: no such file"),
        (("--source-images", "truth.csv", "--report", "r.html"), "has 7 lines; expected 6, one for each item"),
        (("--target-names", "truth.csv"), "--target-names truth.csv: has 7 lines; expected 6"),
        (("--target-names", "b.npy"), "not a text file with one line per item"),
        (("--truth", "names"), "both files need names"),
        (("--truth", "names", "--target-names", "other.txt"), "no name is in both files"),
        (("--truth", "wrong.csv"), "source 1 or target 2 has two partners"),
        (("--truth", "far.csv"), "(0, 99) is out of range; there are 6 sources and 6 targets"),
        (("--truth", "nothing.csv"), "--truth nothing.csv: no such file, and neither 'rows' nor 'names'"),
        (("--truth", "truth.csv", "--report", "truth.csv"), "this would overwrite an input"),
    ],
)
def test_bad_input_is_told_in_one_line(arguments: tuple[str, ...], message: str) -> None:
    Path("empty").mkdir()
    Path("text.png").write_text("no picture")
    Path("broken.txt").write_text("text.png\n" + "\n" * 5)
    Path("missing.txt").write_text("nothing.png\n" + "\n" * 5)
    Path("other.txt").write_text("1\n2\n3\n4\n5\n6\n")
    Path("wrong.csv").write_text("0,2\n1,2\n")
    Path("far.csv").write_text("0,99\n")
    done = run("match", "a.npz", "b.npy", *QUICK, *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not Path("r.html").exists()


def test_without_pillow_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    done = run("match", "a.npz", "b.npy", *QUICK, "--source-images", "photos", "--report", "r.html")
    assert done.exit_code == 1
    assert "[plot]'" in done.stderr
