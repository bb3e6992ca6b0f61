"""The report of a classification without labels: what it says about clusters, classes and images."""

from dataclasses import replace

import numpy as np
import pytest
from report.pages import EVIL, Doubt, classified

from blindmatch.matching.classifier import ClassifierScores
from blindmatch.report import Clusters, render
from blindmatch.report.belief import belief

CLUSTERS = Clusters([0, 0, 0, 1, 1, 2], [1, 0, 1], ["ant", "bee"], [1, 1, 0, 0, 0, 1])


def test_counts_and_contents_of_the_clusters() -> None:
    assert CLUSTERS.counts == [3, 2, 1]
    assert CLUSTERS.contents == ["bee 67 %, ant 33 %", "ant 100 %", "bee 100 %"]
    assert replace(CLUSTERS, labels=None).contents is None
    assert CLUSTERS.adoption(2) == "1 image, bee like the nearest named cluster"
    rare = Clusters([0] * 100, [0], ["ant", "bee"], [0] * 97 + [1] * 3)
    assert rare.contents == ["ant 97 %"]


def test_the_page_speaks_of_clusters_and_classes() -> None:
    page = render(classified())
    for word in ("cluster", "class", "images", "what is in it", "right?", "agreement"):
        assert f">{word}<span" in page
    assert "42 images sorted into" in page
    assert "75.0\u00a0% of them right." in page
    assert "2 clusters have no partner" in page
    assert "like the nearest named cluster" in page
    assert "75.0\u00a0% of the images get their class (chance: 20.0\u00a0%)" in page
    assert "No label was given; the labels in the file only check the answer." in page
    assert EVIL[0] not in page  # but escaped it is there
    assert "source<" not in page.partition("<script")[0]


def test_without_labels_nothing_is_claimed() -> None:
    page = render(classified(labelled=False))
    assert "what is in it" not in page
    assert "get their class" not in page
    assert "whether it is right was not tested" in page
    assert "No label was given." in page
    trusted = replace(classified(labelled=False), trust=Doubt(np.linspace(0, 1, 7)))
    assert ">confidence<span" in render(trusted)


@pytest.mark.parametrize(
    ("scores", "level"),
    [
        (ClassifierScores(0.95, 1.0, 0.95), "yes"),
        (ClassifierScores(0.30, 1.0, 0.31), "care"),  # well named, but no classes
        (ClassifierScores(0.5, 0.8, 0.9), "care"),  # five of five right: far more than chance
        (ClassifierScores(0.1, 0.0, 0.9), "no"),
    ],
)
def test_whether_to_believe_it(scores: ClassifierScores, level: str) -> None:
    match = classified()
    assert match.clusters is not None
    if level == "no":
        truth = match.result.permutation.copy()
        truth[truth >= 0] = np.roll(truth[truth >= 0], 1)
        match = replace(match, truth=truth.tolist())
    match = replace(match, clusters=replace(match.clusters, scores=scores))
    found = belief(match)
    assert found.level == level
    assert f"{100 * scores.ceiling:.1f} %" in found.text
