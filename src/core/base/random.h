// Independent random streams.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

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

}  // namespace blindmatch
