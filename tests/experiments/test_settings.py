"""Settings, files of embeddings, tables and the command line of experiments: what is taken and what is refused."""

import json
import sys

import numpy as np
import pytest

from blindmatch.cli import main
from blindmatch.experiments.ablation import Ablation
from blindmatch.experiments.data import images, read_catalogue, texts
from blindmatch.experiments.matching_runs import paper_tables, paper_value
from blindmatch.experiments.protocol import make_settings, read_config
from blindmatch.experiments.result_tables import Spread, Table, as_csv, as_latex, as_text
from blindmatch.experiments.sweeps import plan


@pytest.fixture
def run(capsys, monkeypatch):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["blindmatch", "experiment", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, *capsys.readouterr()

    return call


def test_layers_win_in_order_and_text_becomes_values():
    settings = make_settings(Ablation, {"sizes": [8, 9], "seeds": 7}, {"seeds": "2", "time_limits": 3})
    assert (settings.sizes, settings.seeds, settings.time_limits) == ((8, 9), 2, (3.0,))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sise": 3}, "setting='sise' is not known; did you mean 'sizes'"),
        ({"seeds": 0}, "seeds=0; expected a number above 0"),
        ({"seeds": "many"}, "seeds='many'; expected an integer"),
        ({"seeds": True}, "seeds=True; expected an integer"),
        ({"sizes": "10,,20"}, "expected values separated by commas"),
        ({"share": "much"}, "share='much'; expected a number"),
        ({"variants": ["+ auctoin"]}, r"did you mean '\+ auction'"),
        ({"time_limits": [1.0, 2.0, 3.0]}, "time_limits has 3 values for 2 sizes"),
    ],
)
def test_bad_settings_are_refused_by_name(values, message):
    with pytest.raises(ValueError, match=message):
        make_settings(Ablation, values)


def test_a_toml_file_has_settings_for_all_and_for_one(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text("seeds = 2\n[ablation]\nsizes = [8]\n[shuffling]\nlevels = 5\n")
    assert read_config(path, "ablation") == {"seeds": 2, "sizes": [8]}
    path.write_text("[ablatoin]\nsizes = [8]\n")
    with pytest.raises(ValueError, match="did you mean 'ablation'"):
        read_config(path, "ablation")
    path.write_text("seeds = ")
    with pytest.raises(ValueError, match=r"sweep.toml: not a readable TOML file"):
        read_config(path, "ablation")


def test_the_command_runs_shows_counts_and_does_not_repeat(run, tmp_path):
    config = tmp_path / "sweep.toml"
    config.write_text('[ablation]\nsizes = [8]\nseeds = 2\nvariants = ["Hahn-Grant", "+ LAP solutions"]\n')
    options = ("ablation", "--config", config, "--time-limit", "5", "--out", tmp_path / "out")
    code, out, err = run(*options, "--only", "seed=0", "--json", "--workers", "1")
    assert code == 0, err
    told = json.loads(out)
    assert (told["done"], told["total"], told["failed"]) == (2, 2, 0)
    assert [row["solver"] for row in told["tables"][0]["rows"]] == ["Hahn-Grant", "+ LAP solutions"]
    code, out, _ = run(*options, "--status")
    assert code == 0
    assert "2 of 4 runs done, 0 failed" in out
    code, out, _ = run(*options, "--report")
    assert code == 0
    assert "Hahn-Grant" in out
    assert "2 of 4 runs done" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ablaton",), "did you mean 'ablation'"),
        (("ablation", "--set", "sise=3"), "did you mean 'sizes'"),
        (("ablation", "--set", "sizes"), "expected NAME=VALUE"),
        (("ablation", "--only", "sise=3"), "expected NAME=PATTERN"),
        (("ablation", "--vision", "x"), "--set 'vision' is not known"),
        (("ablation", "--embeddings", "."), "uses no embeddings"),
        (("small-scale",), "needs --embeddings FOLDER"),
        (("small-scale", "--embeddings", "nowhere"), "no such folder"),
        (("small-scale", "--quick", "--solver", "tubu"), "did you mean 'tabu'"),
        (("small-scale", "--quick", "--solver", "tabu", "--solver", "faq"), "expected text"),
        (("solvers-small", "--quick", "--solver", "fak"), "did you mean 'faq'"),
        (("solvers-small", "--quick", "--vision", "clip"), "vision model='clip' is not known"),
        (("ablation", "--quick", "--engine", "dask"), "--engine 'dask' needs an address, such as --address 'tcp"),
        (("ablation", "--quick", "--chunk", "0"), "--chunk 0"),
    ],
)
def test_bad_commands_get_one_line(run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*arguments)
    assert code == 2
    assert message in err
    assert out == ""
    assert len(err.strip().splitlines()) == 1


def test_files_of_embeddings_are_checked(tmp_path):
    with pytest.raises(ValueError, match="no file vision__DATASET__MODEL"):
        read_catalogue(tmp_path)
    path = tmp_path / "vision__a__m.npz"
    np.savez(path, embeddings=np.ones((4, 2)), labels=[0, 1, 2, 7], class_names=["x", "y", "z"])
    (source,) = read_catalogue(tmp_path).sources
    with pytest.raises(ValueError, match="labels from 0 to 7, but 3 class names"):
        images(source)
    np.savez(path, embeddings=np.ones((4, 2)))
    with pytest.raises(ValueError, match="changed since the sweep was planned"):
        images(source)
    np.savez(path, other=np.ones(3))
    (source,) = read_catalogue(tmp_path).sources
    with pytest.raises(ValueError, match="no array 'embeddings' in it; it holds other"):
        images(source)
    with pytest.raises(ValueError, match="these settings leave no run"):
        plan("small-scale", embeddings=tmp_path)


def test_safetensors_and_rows_of_prompts_are_read(tmp_path):
    from safetensors.numpy import save_file

    values = np.arange(12, dtype=np.float32).reshape(4, 3) + 1
    names = json.dumps(["cat", "dog"])
    path = tmp_path / "language__a__m.safetensors"
    save_file({"embeddings": values, "labels": np.array([0, 0, 1, 1])}, path, {"class_names": names, "model": "m"})
    (source,) = read_catalogue(tmp_path).sources
    means, classes = texts(source)
    assert classes == ("cat", "dog")
    unit = values / np.linalg.norm(values, axis=1, keepdims=True)
    expected = unit[2:].mean(axis=0)
    assert np.allclose(means[1], expected / np.linalg.norm(expected))


def test_tables_in_every_format():
    rows = (("x_1", Spread(1.0, 0.5)), ("<y>", None))
    item = Table("t", "A & B", ("name", "value"), (0, 2), rows, ("A note.",))
    assert as_text(item).splitlines() == [
        "A & B",
        "name        value",
        "----  -----------",
        "x_1   1.00 ± 0.50",
        "<y>             -",
        "A note.",
    ]
    assert as_csv(item) == "name,value,value deviation\nx_1,1.0,0.5\n<y>,,\n"
    assert r"x\_1 & 1.00 $\pm$ 0.50 \\" in as_latex(item)
    assert r"\caption{A \& B A note.}" in as_latex(item)
    assert item.classes() == [None, "number"]
    assert item.cells() == [[("x_1", None), ("1.00 ± 0.50", 1.0)], [("<y>", None), ("-", None)]]


def test_the_papers_numbers_are_those_of_its_tables():
    assert paper_value("table-1", "global", solver="MPOpt") == Spread(90.0, 30.779350562554622)
    assert paper_value("table-4", "bound", solver="Hahn-Grant") is None
    assert paper_value("table-4", "cost", solver="+ primal heuristic") == -1.979521
    assert paper_value("table-3", "accuracy", dataset="CINIC-10", measure="cka").mean == 80.0
    seventh = {"dataset": "CINIC-10", "vision": "DINOv2", "language": "All-Roberta-large-v1", "solver": "MPOpt"}
    assert paper_value("table-7", "cost", **seventh).mean == pytest.approx(0.6134, abs=1e-4)
    assert len(paper_tables()["table-7"]["rows"]) == 2 * 3 * 2 * 7
    assert paper_value("table-6", "accuracy", solver="nobody") is None
