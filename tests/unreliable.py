"""Executors that lose tasks, or whose workers answer what they should not."""

import threading
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager


class Unreliable(Executor):
    """Threads; of the tasks that call `spoiled`, `spoil` gets the number and what came out, and returns the answer."""

    def __init__(self, spoiled, spoil):
        self.spoiled, self.spoil = spoiled, spoil
        self.pool = ThreadPoolExecutor(2)
        self.tasks = 0
        self.lock = threading.Lock()

    def submit(self, function, *arguments):
        if function is not self.spoiled:
            return self.pool.submit(function, *arguments)
        with self.lock:
            self.tasks += 1
            number = self.tasks

        def call():
            return self.spoil(number, function(*arguments))

        return self.pool.submit(call)

    def shutdown(self, wait=True, *, cancel_futures=False):
        self.pool.shutdown(wait=wait, cancel_futures=cancel_futures)


@contextmanager
def unreliable_executors(spoiled):
    """A function that makes them from their `spoil`; their threads end with the context."""
    made = []

    def make(spoil):
        made.append(Unreliable(spoiled, spoil))
        return made[-1]

    yield make
    for executor in made:
        executor.shutdown()
