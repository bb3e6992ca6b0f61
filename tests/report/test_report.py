"""The report: one page that needs nothing else, whatever the names are. `tests/report` opens it in a browser."""

import base64
import json
import re
import sys
from contextlib import suppress
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from report.pages import EVIL, PROBLEM, Doubt, found, sets, shown
from report.parsing import RESULT, RNG, Page, square

import blindmatch as bm
from blindmatch.geometry.correlation import pair_agreement
from blindmatch.problem import task as task_module
from blindmatch.report import Match, render
from blindmatch.report.content import (
    dissimilarity,
    drawings,
    lay_over,
    moments,
    pair_costs,
    plane,
    random_costs,
    similar_together,
)
from blindmatch.report.html import certificate_digest
from blindmatch.report.pairs import columns as pair_columns
from blindmatch.report.verdict import quality
from blindmatch.solvers.progress import Progress


def test_names_are_shown_and_not_run() -> None:
    names = [*EVIL[:2], "$verdict ${x} &amp;"]
    page = Page(
        render(shown(RESULT, source_names=names, target_names=names, title=EVIL[0], settings={EVIL[1]: EVIL[2]}))
    )
    assert [attributes.get("type") for tag, attributes in page.tags if tag == "script"] == ["application/json", None]
    assert "img" not in {tag for tag, _ in page.tags}
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    for name in names:
        assert page.text.count(name) >= 2
    assert json.loads(page.data)["source"] == names


def test_nothing_is_loaded_from_anywhere() -> None:
    text = render(shown(RESULT, (square(3), square(3))))
    assert not re.search(r"https?:", text)
    assert "@import" not in text
    assert "url(" not in text
    for tag, attributes in Page(text).tags:
        assert (attributes.get("src") or "data:").startswith("data:")
        assert (attributes.get("href") or "#").startswith(("#", "data:")), tag
    policy = next(a["content"] for t, a in Page(text).tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy


def test_the_page_tells_the_match_and_its_proof() -> None:
    page = Page(render(shown(RESULT, source_names="abc", target_names="xyz", settings={"seed": "17"})))
    assert "3 pairs matched, no other pairing costs less by more than 5\u00a0%." in page.text
    assert [row[:2] for row in page.rows if len(row) == 2] == [["a", "z"], ["b", "x"], ["c", "y"]]
    assert ["17"] in page.rows
    assert "right?" not in page.text
    told = json.loads(page.text[page.text.index('{\n "title"') :].rpartition("}")[0] + "}")
    assert told["result"]["permutation"] == [2, 0, 1]
    assert told["settings"] == {"seed": "17"}
    assert told["versions"]["numpy"] == np.__version__


def test_a_bound_far_below_the_cost_is_no_claim() -> None:
    assert quality(replace(RESULT, lower_bound=-RESULT.cost)).endswith("too weak to tell how good the match is")


def test_truth_is_counted() -> None:
    match = shown(RESULT, (square(3), square(3)), target_names="xyz", truth=[2, 1, 0])
    assert match.right == 1
    page = Page(render(match))
    assert "1 of 3 pairs are right" in page.text
    assert [row[2] for row in page.rows if len(row) == 3] == ["✓right", "✗is y", "✗is x"]


def decoded(side: dict, n: int) -> np.ndarray:
    bytes_ = np.frombuffer(base64.b64decode(side["data"]), dtype=np.uint8).reshape(n, n)
    return side["low"] + side["step"] * bytes_


def test_kernels_are_sent_in_the_order_of_the_match() -> None:
    source = square(3)
    target = np.empty((3, 3))
    target[np.ix_(RESULT.permutation, RESULT.permutation)] = source
    drawn = drawings(shown(RESULT, (source, target)))["matrices"]
    off = ~np.eye(3, dtype=bool)
    assert drawn["source"]["data"] == drawn["target"]["data"]
    assert np.abs(decoded(drawn["source"], 3) - source)[off].max() <= drawn["source"]["step"] / 2 + 1e-12
    assert sorted(drawn["order"]) == [0, 1, 2]


def test_small_integers_are_sent_exactly() -> None:
    result = bm.solve(PROBLEM, "brute-force")
    drawn = drawings(Match(result))["matrices"]
    A, B = PROBLEM.factors[0]
    p = result.permutation
    assert (decoded(drawn["source"], 6) == A).all()
    assert (decoded(drawn["target"], 6) == B[np.ix_(p, p)]).all()
    assert drawn["mode"] == "product"


def test_more_pairs_than_can_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blindmatch.report.content.MOST_DRAWN", 5)
    X, Y, truth = sets(12)
    match = Match(found(X, Y, truth))
    assert render(match).count("5 of 12 pairs are drawn") == 2
    drawn = drawings(match)
    assert drawn["matrices"]["drawn"] == drawn["plane"]["drawn"] == [0, 2, 5, 8, 11]
    assert len(drawn["plane"]["source"]) == 5
    assert len(drawn["source"]) == 12


@pytest.mark.parametrize(("n", "m"), [(9, 6), (6, 9)])
def test_unequal_sizes_show_what_is_left_over(n: int, m: int) -> None:
    X, Y, _ = sets(n, m)
    result = bm.match(X, Y, solver="two-opt", rng=0)
    match = Match(result)
    page = Page(render(match))
    word, other = ("source", "target") if n > m else ("target", "source")
    assert f"3 {word}s have no partner" in page.text
    assert f"{other} has no partner" not in page.text
    assert match.cost_of(result.permutation) == pytest.approx(result.cost)
    data = json.loads(page.data)
    assert len(data["plane"][f"left{word.capitalize()}"]) == 3
    assert len(data["plane"][word]) == 9


def test_costs_of_other_pairings() -> None:
    match = Match(bm.solve(PROBLEM, "brute-force"))
    assert match.cost_of(range(6)) == PROBLEM.objective(range(6))
    assert match.cost_of([0, 1, 2, 3, 4, -1]) is None
    assert match.cost_of([0, 1, 2, 3, 4, 4]) is None
    assert sum(pair_costs(match) or []) == pytest.approx(match.result.cost)


def test_random_pairings_keep_what_was_given() -> None:
    known = PROBLEM.with_known_pairs([(0, 3), (1, 2), (2, 5), (3, 0)])
    match = Match(bm.solve(known, "brute-force"))
    costs = random_costs(match, known, np.random.default_rng(0))
    both = {known.objective([3, 2, 5, 0, *rest]) for rest in ((1, 4), (4, 1))}
    assert {round(cost, 9) for cost in costs.tolist()} == {round(cost, 9) for cost in both}
    free = random_costs(Match(replace(match.result, task=PROBLEM)), PROBLEM, np.random.default_rng(0))
    assert len({round(cost, 9) for cost in free.tolist()}) > 20
    assert min(free) >= bm.solve(PROBLEM, "brute-force").cost - 1e-9


def test_random_pairings_use_no_forbidden_pair() -> None:
    forbidden = np.zeros((6, 6), dtype=bool)
    forbidden[0, 1:] = forbidden[1:, 0] = True  # given
    forbidden[1, 1] = forbidden[2, 2:5] = forbidden[3, 1:3] = True
    problem = bm.QAP(*PROBLEM.factors[0], forbidden=forbidden)
    match = Match(bm.solve(problem, "brute-force"))
    allowed = [(0, *p) for p in permutations(range(1, 6)) if problem.allows((0, *p))]
    costs = random_costs(match, problem, np.random.default_rng(0))
    assert {round(cost, 9) for cost in costs.tolist()} == {round(problem.objective(p), 9) for p in allowed}
    assert "random assignments that keep the given pairs and use no forbidden pair" in render(match)


def test_random_pairings_where_an_item_has_no_partner_left() -> None:
    X, Y, _ = sets(6, 7)
    forbidden = np.zeros((6, 7), dtype=bool)
    forbidden[2] = True
    hints = {"forbidden_pairs": forbidden, "unmatched_cost": 1e3, "max_unmatched": 2}
    result = bm.match(X, Y, solver="two-opt", rng=0, **hints)
    problem = bm.Task(X, Y, **hints).problem
    match = Match(result)
    seen: list[np.ndarray] = []
    object.__setattr__(match, "cost_of", lambda partners: seen.append(partners.copy()) or 1.0)
    random_costs(match, problem, np.random.default_rng(0))
    assert len(seen) >= 200
    for partners in seen:
        assert partners[2] == -1
        assert (partners >= 0).sum() == len(result.pairs) == 5
        assert len(set(partners[partners >= 0])) == 5


def test_agreement() -> None:
    kernel = square(6)
    result = replace(RESULT, permutation=np.arange(6))
    assert shown(result, (kernel, 3 * kernel + 1)).agreement == pytest.approx(1.0)
    assert shown(result, (kernel, -kernel)).agreement == pytest.approx(-1.0)
    assert shown(result, (kernel, np.ones((6, 6)))).agreement is None
    assert pair_agreement((kernel, kernel), np.arange(6)) == pytest.approx([1.0] * 6)
    changed = kernel.copy()
    changed[0, 1:] = changed[1:, 0] = -kernel[0, 1:]
    assert np.argmin(pair_agreement((kernel, changed), np.arange(6))) == 0
    assert np.isnan(pair_agreement((kernel, kernel), np.array([0, 1, 2, -1, -1, -1]))).all()


def test_moments_are_those_where_something_changed() -> None:
    assert moments(shown(RESULT)) == [(0.0, None, 12.0), (0.5, 9.0, 10.0), (1.0, 9.5, 10.0), (1.25, 9.5, 10.0)]
    proved = replace(RESULT, lower_bound=9.75, cost=9.9)  # the checker found more than the last step told
    assert moments(shown(proved))[-2:] == [(1.0, 9.5, 10.0), (1.25, 9.75, 9.9)]
    assert moments(shown(replace(RESULT, seconds=np.nan)))[-1] == (1.0, 9.5, 10.0)
    long = tuple(Progress(k / 100, k, k / 2, 1e4 - k) for k in range(3000))
    kept = moments(shown(replace(RESULT, trace=long, seconds=0.0)))
    assert len(kept) == 400
    assert kept[-1][0] == long[-1].seconds
    for trace in ((), (Progress(0.0, 0, None, None),), (Progress(0.0, 0, -np.inf, None),)):
        assert moments(shown(replace(RESULT, trace=trace))) == []
        assert "not recorded" in render(shown(replace(RESULT, trace=trace)))
    last = Progress(RESULT.seconds, 0, None, 1.0)
    assert "not recorded" in render(shown(replace(RESULT, trace=(last,))))
    assert "not recorded" not in render(shown(RESULT))


def test_layout() -> None:
    points = RNG.normal(size=(7, 2))
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    drawn, share = plane(distances)
    assert share == pytest.approx(1.0)
    assert np.linalg.norm(drawn[:, None] - drawn[None], axis=2) == pytest.approx(distances)
    assert lay_over(drawn, drawn, points) == pytest.approx(points)
    spread = np.linalg.norm(points - points.mean(axis=0))
    wrong = lay_over(drawn, drawn[::-1], points)
    assert np.linalg.norm(wrong - wrong.mean(axis=0)) == pytest.approx(spread)  # a bad match does not shrink
    near, far = dissimilarity(distances, False), dissimilarity(-distances, True)
    assert near == pytest.approx(far)
    assert near.min() == 0 == np.diag(near).max()


def test_similar_rows_come_next_to_each_other() -> None:
    groups = RNG.permutation(np.repeat([0, 1, 2], 4))
    kernel = (groups[:, None] != groups[None]).astype(float)
    ordered = groups[similar_together(kernel, kernel)]
    assert (np.diff(ordered) != 0).sum() == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source_names": "ab"}, "source_names has 2 items; expected 3"),
        ({"truth": [0, 1, 9]}, "truth="),
        ({"truth": [0, 1]}, "truth has 2 items; expected 3"),
        ({"trust": Doubt(np.ones(2))}, "trust is about 2 sources"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shown(RESULT, (square(3), square(3)), **changes)


def test_a_report_in_a_missing_folder_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("blindmatch.report.html.render", lambda match: pytest.fail("too late"))
    path = tmp_path / "no" / "r.html"
    with pytest.raises(FileNotFoundError) as caught:
        bm.match(np.eye(3), np.eye(3), rng=0).report(path)
    assert caught.value.filename == str(path)


def test_a_report_checks_again_what_was_changed(tmp_path: Path) -> None:
    X, Y, _ = sets(8)
    result = bm.match(X, Y, rng=0)
    assert "proved optimal" in result.report(tmp_path / "r.html").read_text()
    wrong = np.roll(result.permutation, 1)
    for forged in (
        replace(result, permutation=wrong),
        replace(result, permutation=wrong, whole=np.roll(wrong, 1)),
        replace(result, permutation=wrong, solver="alignment", cost=0.1),
        replace(result, permutation=wrong, proof=None),
    ):
        path = tmp_path / "forged.html"
        path.unlink(missing_ok=True)
        with suppress(ValueError):
            forged.report(path)
        assert not path.exists() or "proved optimal" not in path.read_text()
    dear = replace(bm.match(X, Y, solver="two-opt", rng=0), permutation=wrong, status="optimal", lower_bound=1.0)
    text = dear.report(tmp_path / "dear.html").read_text()
    assert "proved optimal" not in text
    assert f"{bm.Task(X, Y).problem.objective(wrong):.7g}" in text


def test_a_report_refuses_the_assessment_of_another_match(tmp_path: Path) -> None:
    X, Y, _ = sets(8)
    result, quick = bm.match(X, Y, rng=0), {"draws": 1, "resamples": 1, "regret": False, "rng": 0}
    trust = result.assess(**quick)
    result.report(tmp_path / "r.html", trust=trust)
    for other in (bm.match(X, Y[::-1], rng=0), bm.match(X, Y, distortion="cka", rng=0)):
        with pytest.raises(ValueError, match="trust is about another match or other data"):
            other.report(tmp_path / "other.html", trust=trust)
    assert not (tmp_path / "other.html").exists()


def test_a_report_tells_the_hints_of_the_match(tmp_path: Path) -> None:
    X, Y, _ = sets(7)
    hints = {"known_pairs": [(0, 3)], "unmatched_cost": 2.0, "max_unmatched": 2}
    result = bm.match(X, Y, solver="two-opt", rng=0, **hints)
    text = Page(result.report(tmp_path / "r.html").read_text()).text
    assert "Also given: 1 pair." in text
    assert "No pair was given" not in text
    assert "random pairings that keep the given pairs" in text


def test_size_of_a_hundred_pairs_with_pictures(tmp_path: Path) -> None:
    X, Y, truth = sets(100)
    images = list(RNG.integers(0, 256, size=(100, 32, 32, 3), dtype=np.uint8))  # noise: nothing compresses worse
    result = found(X, Y, truth)
    plain = result.report(tmp_path / "a.html", truth=truth)
    full = result.report(tmp_path / "b.html", source_images=images, target_images=images)
    assert plain.stat().st_size < 200_000
    assert full.stat().st_size < 2_000_000


def test_fingerprint_tells_certificates_apart() -> None:
    certificate = bm.solve(PROBLEM, "dual-ascent", rng=0).certificate
    assert certificate is not None
    stage = certificate.nodes[0].stages[0]
    U = stage.U.copy()
    U[0, 1, 2] += 1
    node = replace(certificate.nodes[0], stages=(replace(stage, U=U), *certificate.nodes[0].stages[1:]))
    other = replace(certificate, nodes=(node, *certificate.nodes[1:]))
    assert certificate_digest(certificate) == certificate_digest(replace(certificate))
    assert certificate_digest(certificate) != certificate_digest(other)


def test_only_our_own_files_skip_escaping() -> None:
    """Styles and scripts; everything else in the templates is escaped."""
    package = Path(sys.modules["blindmatch"].__file__ or "").parent
    text = "".join(path.read_text(encoding="utf-8") for path in package.rglob("assets/*.html"))
    assert sorted(re.findall(r"\{\{([^}]*)\|\s*safe\b", text)) == [" script", " style"]
    assert "autoescape" not in text
    assert "Markup" not in "".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py"))


@pytest.mark.parametrize("place", ["title", "names", "settings", "command", "cut", "groups", "truth"])
def test_text_is_escaped_in_every_place(place: str) -> None:
    """What closes a tag, an attribute of either kind or a script stays text, wherever it is shown."""
    evil = "</title></script><b x='\"'>{{ 7 * 7 }}{% raw %}&amp;"
    names = [evil, "b" * 200 + evil, "c"]
    given = {
        "title": {"title": evil},
        "names": {"source_names": [evil, "b", "c"], "target_names": [evil, "y", "z", evil]},
        "settings": {"settings": {evil: evil}},
        "command": {"settings": {"command": evil}},
        "cut": {"source_names": names},
        "groups": {"source_names": [evil, "b", "c"], "trust": Doubt(np.ones(3), ambiguous=[[0, 1]])},
        "truth": {"target_names": names, "truth": [1, 0, 2]},
    }[place]
    text = render(shown(RESULT, **given))
    page = Page(text)
    assert not any("x" in attributes for tag, attributes in page.tags if tag == "b")
    assert evil in page.text or any(evil in str(value) for _, attributes in page.tags for value in attributes.values())
    assert json.loads(page.data)["cost"] == RESULT.cost
    assert text.count("</script>") == 2
    assert text.count("</title>") == 1


def test_a_large_match_shows_its_confidence_and_other_partners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_module, "QUADRATIC", 100)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 12)) * np.geomspace(2, 0.5, 12) + 2 * rng.normal(size=(6, 12))[rng.integers(6, size=150)]
    task = bm.Task(X, X @ np.linalg.qr(rng.normal(size=(12, 12)))[0], target_names=[f"item{j}" for j in range(150)])
    result = bm.match(task, rng=0)
    assert result.confidence is not None
    match = Match(result)
    assert match.problem is None
    columns = {column.title: column.cells for column in pair_columns(match)}
    assert columns["confidence"][0].text == f"{100 * result.confidence[0]:.0f} %"
    others = columns["or else"][0].text.split(", ")
    assert len(others) == 3
    assert f"item{result.permutation[0]}" not in others
    assert "or else" in render(match)


def test_an_assignment_problem_is_told_in_its_own_words() -> None:
    page = Page(render(Match(replace(bm.solve(PROBLEM, "brute-force"), title="six"))))
    told = page.text.split("What was run")[0].replace("blindmatch", "")
    assert "6 facilities assigned, proved optimal: no other assignment costs less." in told
    assert "6 locations" in told
    assert [word for word in ("pair", "source", "target", "match") if word in told] == []
