// When to stop: a deadline, a request from outside, or both. Shared by every long loop of the core.
#pragma once

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <thread>
#include <utility>

namespace blindmatch {

// Any thread may ask `stop()`; it is cheap enough to ask once per assignment problem. The `poll` function (which may
// take Python's lock to look for Ctrl-C) runs only on the thread that made the object, and at most every 50 ms.
class Stop {
 public:
    using Clock = std::chrono::steady_clock;

    explicit Stop(double seconds = INFINITY, std::function<bool()> poll = {})
        : start_(Clock::now()), limit_(seconds), poll_(std::move(poll)), owner_(std::this_thread::get_id()) {}

    Stop(const Stop&) = delete;
    Stop& operator=(const Stop&) = delete;

    bool operator()() {
        if (stopped_.load(std::memory_order_relaxed)) return true;
        const double now = elapsed();
        if (now >= limit_) {
            stopped_ = true;
        } else if (poll_ && std::this_thread::get_id() == owner_ && now >= next_poll_) {
            next_poll_ = now + 0.05;
            if (poll_()) stopped_ = interrupted_ = true;
        }
        return stopped_.load(std::memory_order_relaxed);
    }

    void request() { stopped_ = interrupted_ = true; }
    bool interrupted() const { return interrupted_; }
    double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
    double remaining() const { return limit_ - elapsed(); }

 private:
    Clock::time_point start_;
    double limit_;
    double next_poll_ = 0.05;  // touched by the owner thread alone
    std::function<bool()> poll_;
    std::thread::id owner_;
    std::atomic<bool> stopped_{false}, interrupted_{false};
};

}  // namespace blindmatch
