#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/random.h"
#include "base/threads.h"

using namespace blindmatch;

TEST_CASE("a pool does every task once, round after round") {
    ThreadPool pool(4);
    for (int round = 0; round < 50; ++round) {
        std::vector<std::atomic<int>> done(37);
        pool.run(37, [&](int index, int worker) {
            CHECK(worker < pool.size());
            ++done[index];
        });
        for (const auto& count : done) CHECK(count == 1);
    }
}

TEST_CASE("what a task or the idle caller throws reaches the caller, and the pool goes on") {
    ThreadPool pool(3);
    CHECK_THROWS_AS(pool.run(100,
                             [](int index, int) {
                                 if (index == 50) throw std::runtime_error("task");
                             }),
                    std::runtime_error);
    // The caller leaves its task when a helper is in another one, which waits until the caller has been idle.
    REQUIRE(pool.size() > 1);
    std::atomic<bool> helped{false}, idled{false};
    const auto wait = [&](int, int worker) {
        if (worker > 0) helped = true;
        while (!(worker > 0 ? idled : helped)) std::this_thread::yield();
    };
    const auto idle = [&] {
        idled = true;
        throw std::logic_error("idle");
    };
    CHECK_THROWS_AS(pool.run(3, wait, idle), std::logic_error);
    std::atomic<int> count{0};
    pool.run(10, [&](int, int) { ++count; });
    CHECK(count == 10);
}

TEST_CASE("streams run once each; after a stop only the first is sure to") {
    for (const int threads : {1, 4}) {
        std::vector<std::atomic<int>> done(20);
        Stop stop;
        CHECK(for_each_stream(20, threads, stop, [&](std::int64_t r) { ++done[r]; }, [] {}));
        for (const auto& count : done) CHECK(count == 1);
        Stop over;
        over.request();
        std::atomic<int> count{0};
        CHECK_FALSE(for_each_stream(1'000'000'000'000, threads, over, [&](std::int64_t) { ++count; }, [] {}));
        CHECK(count == 1);
        Stop failing;
        CHECK_THROWS_AS(for_each_stream(
                            20, threads, failing,
                            [](std::int64_t r) {
                                if (r == 3) throw std::bad_alloc();
                            },
                            [] {}),
                        std::bad_alloc);
        CHECK(failing.interrupted());
    }
}
