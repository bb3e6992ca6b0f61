"""What a run uses of its machine."""

import os
import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from blindmatch.machine import one_blas_thread


def threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_blas_has_one_thread_for_a_while() -> None:
    with one_blas_thread():  # the libraries are found here
        pass
    before = threads()
    with one_blas_thread():
        assert set(threads()) == {1}
        with one_blas_thread():
            assert set(threads()) == {1}
        assert set(threads()) == {1}
    assert threads() == before


def test_the_first_that_is_done_does_not_end_the_limit_of_another() -> None:
    with one_blas_thread():  # the libraries are found here
        pass
    with threadpool_limits(2, user_api="blas"):
        first, second = threading.Event(), threading.Event()

        def briefly() -> None:
            with one_blas_thread():
                first.set()
                second.wait()

        other = threading.Thread(target=briefly)
        other.start()
        first.wait()
        with one_blas_thread():
            second.set()
            other.join()
            assert set(threads()) == {1}
        assert set(threads()) == {2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_process_forked_while_another_thread_wants_one_keeps_one() -> None:
    begun, done = threading.Event(), threading.Event()

    def wait() -> None:
        with one_blas_thread():
            begun.set()
            done.wait()

    other = threading.Thread(target=wait)
    other.start()
    begun.wait()
    child = os.fork()
    if not child:
        with one_blas_thread():
            pass
        os._exit(0 if set(threads()) == {1} else 1)
    done.set()
    other.join()
    assert os.waitpid(child, 0)[1] == 0
