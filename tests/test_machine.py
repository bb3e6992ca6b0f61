"""What a run uses of its machine."""

from threadpoolctl import threadpool_info

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
