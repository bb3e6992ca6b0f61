// Independent random streams, and the loop that spreads them over threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/stop.h"
#include "base/thread_pool.h"

namespace blindmatch {

// xoshiro256** by Blackman and Vigna. Stream r of a seed depends on (seed, r) alone, so work that is split into streams
// gives the same result whichever thread runs which stream.
class Random {
 public:
    explicit Random(std::uint64_t seed, std::uint64_t stream = 0) {
        std::uint64_t x = mix(seed) ^ mix(~stream);
        for (std::uint64_t& word : state_) word = mix(x += 0x9e3779b97f4a7c15ULL);
    }

    std::uint64_t next() {
        const std::uint64_t result = rotate(state_[1] * 5, 7) * 9, t = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= t;
        state_[3] = rotate(state_[3], 45);
        return result;
    }

    // 0 <= below(bound) < bound. The bias of the multiplication is under bound / 2^32: nothing for a search.
    int below(int bound) { return static_cast<int>(((next() >> 32) * static_cast<std::uint64_t>(bound)) >> 32); }

    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // in [0, 1)

    template <class T>
    void shuffle(std::vector<T>& values) {
        for (int i = static_cast<int>(values.size()) - 1; i > 0; --i) std::swap(values[i], values[below(i + 1)]);
    }

 private:
    static std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
    static std::uint64_t mix(std::uint64_t z) {  // splitmix64's finaliser
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }

    std::uint64_t state_[4];
};

// Calls work(0) ... work(count - 1), each once, on the calling thread and up to `threads` - 1 helpers. After a stop no
// further ones are begun, except work(0), which always runs; false if any was left out. While helpers are still busy
// the calling thread calls idle(), so that Ctrl-C and progress are served. An exception anywhere stops the others and
// is thrown again here, after every helper has ended.
template <class Work, class Idle>
bool for_each_stream(std::int64_t count, int threads, Stop& stop, const Work& work, const Idle& idle) {
    std::atomic<std::int64_t> next{0};
    std::atomic<bool> left_out{false};
    const auto guarded = [&](const auto& body) {
        try {
            body();
        } catch (...) {
            next = count;
            stop.request();
            throw;
        }
    };
    const auto drain = [&] {
        for (std::int64_t r; (r = next.fetch_add(1)) < count;) {
            if (r > 0 && stop()) {
                left_out = true;
                return;
            }
            work(r);
        }
    };
    ThreadPool pool(static_cast<int>(std::min<std::int64_t>(threads, count)));
    pool.run(pool.size(), [&](int, int) { guarded(drain); }, [&] { guarded(idle); });
    return !left_out;
}

}  // namespace blindmatch
