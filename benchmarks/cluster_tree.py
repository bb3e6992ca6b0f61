"""Speed-up of many workers on the tree of the semidefinite bound, from a recorded run.

python benchmarks/cluster_tree.py nug18 nug20

One thread solves the problem. The CPU seconds of each node are recorded: those of a worker to bound it, those of the
coordinator to serialise what it starts from, to read its result and to take that in. A simulation replays the tree.
"""

from __future__ import annotations

import argparse
import heapq
import time
from dataclasses import dataclass, field, replace

from cluster import PROOF_LIMIT, problem
from distributed.protocol import deserialize_bytes, serialize_bytes

import blindmatch as bm
from blindmatch.solvers import strengthened
from blindmatch.solvers.semidefinite_node import Bounded, NodeBounder
from blindmatch.solvers.semidefinite_tree import OpenNode, SemidefiniteTree
from blindmatch.solvers.shared_tree import _AHEAD


@dataclass
class Record:
    """CPU seconds of a run; of its nodes by their number, the root excepted."""

    start: float = 0.0  # level 1 and the root, in this process
    bounding: dict[int, float] = field(default_factory=dict)
    sending: dict[int, float] = field(default_factory=dict)
    receiving: dict[int, float] = field(default_factory=dict)
    children: dict[int, list[int]] = field(default_factory=dict)
    check: float = 0.0


def recorded(name: str) -> Record:
    record, seconds = Record(), dict[int, float]()
    child, begin, take_in = NodeBounder.child, SemidefiniteTree.begin, SemidefiniteTree._take_in

    def timed_child(self: NodeBounder, parent: Bounded, i: int, j: int, target: float) -> Bounded | None:
        start = time.thread_time()
        node = child(self, parent, i, j, target)
        seconds[id(node)] = time.thread_time() - start
        return node

    def timed_begin(self: SemidefiniteTree, root: Bounded) -> None:
        begin(self, root)
        record.start = time.process_time() - cpu

    def timed_take_in(self: SemidefiniteTree, entry: OpenNode, node: Bounded | None) -> bool:
        assert node is not None
        _, _, parent, i, j = entry
        start = time.thread_time()
        serialize_bytes((replace(parent, stages=(), match=None), i, j))
        sent = time.thread_time() - start
        answer = serialize_bytes(node)
        start = time.thread_time()
        deserialize_bytes(answer)
        whole = take_in(self, entry, node)
        index = node.index
        record.receiving[index] = time.thread_time() - start
        record.sending[index], record.bounding[index] = sent, seconds.pop(id(node))
        record.children.setdefault(parent.index, []).append(index)
        return whole

    NodeBounder.child, SemidefiniteTree.begin = timed_child, timed_begin
    SemidefiniteTree._take_in = timed_take_in
    cpu = time.process_time()
    result = bm.solve(problem(name), bm.BranchAndBound(proof_limit=PROOF_LIMIT), rng=0, threads=1)
    NodeBounder.child, SemidefiniteTree.begin, SemidefiniteTree._take_in = child, begin, take_in
    assert result.certificate is not None
    cpu = time.process_time()
    assert bm.verify(problem(name), result.certificate, threads=1) == result.cost
    record.check = time.process_time() - cpu
    return record


def replayed(record: Record, workers: int, here: int, largest: int) -> tuple[float, float]:
    """Seconds of the tree on workers, and of the coordinator in them. It bounds the first nodes, then serves one task
    after the other; nodes go out in the order of the recorded run, the best bound first.
    """
    waiting = list(record.children.get(0, []))
    heapq.heapify(waiting)
    now = busy = 0.0
    for _ in range(min(here, len(record.bounding))):
        index = heapq.heappop(waiting)
        now += record.bounding[index]
        for grandchild in record.children.get(index, []):
            heapq.heappush(waiting, grandchild)
    free = [now] * workers  # when each worker has done what it has
    out: list[tuple[float, list[int]]] = []
    room = _AHEAD * workers
    while waiting or out:
        while waiting and len(out) < room:
            size = min(largest, 1 + len(waiting) // (2 * room), len(waiting))
            group = [heapq.heappop(waiting) for _ in range(size)]
            sent = sum(record.sending[index] for index in group)
            now, busy = now + sent, busy + sent
            done = max(heapq.heappop(free), now) + sum(record.bounding[index] for index in group)
            heapq.heappush(free, done)
            heapq.heappush(out, (done, group))
        done, group = heapq.heappop(out)
        received = sum(record.receiving[index] for index in group)
        now, busy = max(now, done) + received, busy + received
        for index in group:
            for grandchild in record.children.get(index, []):
                heapq.heappush(waiting, grandchild)
    return now, busy


def longest_path(record: Record) -> float:
    """Seconds of the nodes of the longest path: no number of workers is faster."""
    ends = {0: 0.0}
    for parent in sorted(record.children):  # parents have smaller numbers
        for index in record.children[parent]:
            ends[index] = ends[parent] + record.bounding[index]
    return max(ends.values())


def simulate(name: str) -> None:
    record = recorded(name)
    node = strengthened._NODE_STEPS * strengthened._step_seconds(problem(name))
    here, largest = int(strengthened._HERE / node), max(1, int(strengthened._TASK / node))
    count, bounding = len(record.bounding), sum(record.bounding.values())
    serving = sum(record.sending.values()) + sum(record.receiving.values())
    print(
        f"{name}: {count} nodes below the root. CPU seconds: level 1 and the root {record.start:.1f}; a node "
        f"{bounding / count * 1e3:.0f} ms on a worker, {serving / count * 1e3:.1f} ms on the coordinator; the first "
        f"{min(here, count)} on the coordinator; the check {record.check:.1f}; the longest path "
        f"{longest_path(record):.1f}"
    )
    alone = record.start + bounding + record.check
    print("| workers | whole run, s | speed-up | of the tree alone, all nodes on workers | coordinator busy in it |")
    for workers in (1, 4, 16, 64, 256):
        whole = record.start + replayed(record, workers, here, largest)[0] + record.check / workers
        tree, busy = replayed(record, workers, 0, largest)
        cells = [workers, f"{whole:.1f}", f"{alone / whole:.1f}", f"{bounding / tree:.1f}", f"{busy / tree:.0%}"]
        print("|", " | ".join(map(str, cells)), "|", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+")
    for name in parser.parse_args().names:
        simulate(name)


if __name__ == "__main__":
    main()
