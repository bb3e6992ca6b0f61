"""Every reader of files, with sound files to break: name -> (file name, contents, what reads it)."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from strategies import gw_problem, optimum, random_problem, slack

import blindmatch as bm
from blindmatch.alignment.map import SpaceMap
from blindmatch.experiments.protocol import Settings, make_settings, read_config
from blindmatch.io import qaplib
from blindmatch.io.embeddings import load_embeddings
from blindmatch.io.files import read_arrays
from blindmatch.problem.problem_files import load_problem

VALUES = np.arange(12.0).reshape(4, 3) / 8
NAMES = ["cat", "dog", "été", "<b>"]


class Target(NamedTuple):
    file: str
    contents: list[bytes]
    read: Callable[[Path], object]


def written(name: str, write: Callable[[Path], object]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / name)
        return (Path(folder) / name).read_bytes()


def small_problem() -> bm.QAP:
    return random_problem(3, 6, "symmetric", integer=True, linear=True)


@cache
def certificate() -> tuple[bm.QAP, float, bytes]:
    """A problem, its optimum, and a proof with several nodes."""
    from proofs import branching_certificate

    problem = small_problem()
    proof = branching_certificate(problem, np.random.default_rng(0))
    return problem, optimum(problem), written("c.npz", proof.save)


def read_certificate(path: Path) -> float:
    """Whatever a file claims, the bound that it proves is true."""
    problem, best, _ = certificate()
    proof = bm.Certificate.load(path)
    try:
        bound = bm.verify(problem, proof)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    assert bound <= best + slack(problem), f"{bound} is above the optimum {best}"
    return bound


def read_settings(path: Path) -> Settings:
    values = read_config(path, "small-scale")
    try:
        return make_settings(Settings, values)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def parquet() -> list[bytes]:
    import pyarrow as pa
    from pyarrow import parquet as pq

    columns = pa.table({"name": NAMES, **{f"d{k}": VALUES[:, k] for k in range(3)}, "label": [1, 2, 3, 4]})
    lists = pa.table({"text": NAMES, "embedding": VALUES.astype("float32").tolist()})
    return [written("e.parquet", lambda path, table=table: pq.write_table(table, path)) for table in (columns, lists)]


def safetensors() -> bytes:
    from safetensors.numpy import save

    return save({"embeddings": VALUES, "labels": np.arange(4)}, metadata={"names": json.dumps(NAMES)})


def spreadsheet() -> bytes:
    from openpyxl import Workbook

    book = Workbook()
    for name, row in zip(NAMES, VALUES.tolist(), strict=True):
        book.active.append([name, *row])
    return written("e.xlsx", book.save)


def database() -> bytes:
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE towns(name, x REAL, y REAL, z REAL)")
    base.executemany("INSERT INTO towns VALUES(?, ?, ?, ?)", [(n, *row) for n, row in zip(NAMES, VALUES, strict=True)])
    base.commit()
    return base.serialize()


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz(**arrays: object) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def alignment() -> bytes:
    rng = np.random.default_rng(0)
    frame = {"mean": np.zeros(3), "axes": np.linalg.qr(rng.normal(size=(3, 2)))[0], "spread": np.array(1.0)}
    sides = {f"{side}_{key}": value for side in ("source", "target") for key, value in frame.items()}
    from blindmatch.alignment import map as module

    return npz(kind=np.array(module._KIND), rotation=np.eye(2), **sides)


@cache
def targets() -> dict[str, Target]:
    problem = small_problem()
    A, B = problem.factors[0]
    numbers = "\n".join(" ".join(f"{x:g}" for x in row) for row in (*A, *B))
    table = "\n".join(
        ["name,x,y,z", *(f"{n},{row[0]},{row[1]},{row[2]}" for n, row in zip(NAMES, VALUES, strict=True))]
    )
    result = bm.solve(gw_problem(0, 5), "dual-ascent", rng=0)
    lines = b"".join(b'{"name": "n%d", "x": %d, "y": 0.5}\n' % (row, row) for row in range(4))
    toml = b'seeds = 3\n[small-scale]\nseeds = 5\n[larger-scale]\nx = [1, 2.5, "a"]\ny = {a = 1979-05-27}\n'
    return {
        "npy": Target("e.npy", [npy(VALUES), npy(VALUES.astype(">f2"))], load_embeddings),
        "npz": Target("e.npz", [npz(embeddings=VALUES, names=NAMES, labels=np.arange(4))], load_embeddings),
        "safetensors": Target("e.safetensors", [safetensors()], load_embeddings),
        "parquet": Target("e.parquet", parquet(), load_embeddings),
        "csv": Target("e.csv", [table.encode()], load_embeddings),
        "tsv": Target("e.tsv", [table.replace(",", "\t").encode("utf-8-sig")], load_embeddings),
        "jsonl": Target("e.jsonl", [lines], load_embeddings),
        "csv.gz": Target("e.csv.gz", [gzip.compress(table.encode(), mtime=0)], load_embeddings),
        "xlsx": Target("e.xlsx", [spreadsheet()], load_embeddings),
        "db": Target("e.db", [database()], load_embeddings),
        "dat": Target("p.dat", [f"6\n\n{numbers}\n".encode()], load_problem),
        "dd": Target("p.dd", [b"p 2 2 3 2\na 0 0 0 1\na 1 0 1 2.5\na 2 1 1 -3\ne 0 2 4\ne 1 2 1\n"], load_problem),
        "problem npz": Target("p.npz", [npz(source_cost=A, target_cost=B, linear=problem.linear)], load_problem),
        "sln": Target("p.sln", [b"6 578\n 2 1 4 3 6 5\n"], qaplib.read_sln),
        "certificate": Target("c.npz", [certificate()[2]], read_certificate),
        "alignment": Target("a.npz", [alignment()], SpaceMap.load),
        "saved match": Target("m.npz", [written("m.npz", result.save)], bm.load),
        "settings": Target("s.toml", [toml], read_settings),
        "manifest npz": Target("m.npz", [npz(embeddings=VALUES, classes=NAMES)], read_arrays),
        "manifest safetensors": Target("m.safetensors", [safetensors()], read_arrays),
    }


NAMES_OF_TARGETS = (
    *("npy", "npz", "safetensors", "parquet", "csv", "tsv", "jsonl", "csv.gz", "xlsx", "db", "dat", "problem npz"),
    *("dd", "sln", "certificate", "alignment", "saved match", "settings", "manifest npz", "manifest safetensors"),
)
