"""Small parts of the experiments: settings from texts, the paper's numbers, cells of tables, shuffling."""

import numpy as np
import pytest

from blindmatch import experiments
from blindmatch.experiments.executors import Local, make_engine
from blindmatch.experiments.matching_runs import paper_dataset, paper_model, paper_value
from blindmatch.experiments.protocol import Settings, Trial, convert, make_settings, parse_assignments
from blindmatch.experiments.result_tables import Spread, cell_text, spread
from blindmatch.experiments.shuffling import partial_shuffle, steps
from blindmatch.experiments.sweeps import select


def test_settings_come_from_texts():
    assert make_settings(Settings, {"seeds": "3"}) == Settings(seeds=3)
    with pytest.raises(ValueError, match="setting='sedes' is not known; did you mean 'seeds'"):
        make_settings(Settings, {"sedes": 3})
    assert convert("sizes", "10,20", tuple[int, ...]) == (10, 20)
    assert convert("polish", "no", bool) is False
    assert parse_assignments(["levels=5"]) == {"levels": "5"}
    assert make_engine("local", workers=2) == Local(processes=2)
    assert experiments.load("ablation").about.startswith("Hahn-Grant with and without each change")


def test_the_papers_numbers_are_found_by_its_names():
    assert paper_value("table-5", "bound", solver="+ auction") == -1.949529
    assert round(paper_value("table-2", "accuracy", vision="DINOv2", language="all-mpnet-base-v2").mean, 2) == 37.27
    assert (paper_dataset("cifar10"), paper_dataset("tinyimagenet200")) == ("CIFAR-10", "tinyimagenet200")
    assert paper_model("all_mpnet_base_v2") == "all-mpnet-base-v2"
    assert paper_model("vit_giant_patch14_dinov2.lvd142m") == "DINOv2"


def test_cells_of_tables():
    assert spread([1.0, None, 3.0]) == Spread(2.0, np.sqrt(2.0))
    assert [cell_text(cell, 1) for cell in (Spread(51.14, 7.11), None, 0.25, 3)] == ["51.1 ± 7.1", "-", "0.2", "3"]


def test_shuffling_and_its_steps():
    assert partial_shuffle(4, 0.0, np.random.default_rng(0)).tolist() == [0, 1, 2, 3]
    assert steps([[0.0, 0.1, 0.2], [1.0, 1.1, 1.2], [1.0, 1.1, 1.2]], rising=True) == (1, 1, 0)


def test_runs_are_selected_by_patterns():
    runs = [Trial("ablation", {"size": size, "seed": 0}) for size in (40, 100)]
    assert [run.parameters["size"] for run in select(runs, ["size=4?"])] == [40]
