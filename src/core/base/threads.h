// When to stop, and threads that wait for work. Every long loop of the core asks the one and runs on the other.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

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

// Threads that wait for work: run(count, task) calls task(index, worker) for every index, on all of them and the
// caller.
//
// Which worker gets which index is not fixed, so tasks must write to places that depend on the index alone: then
// results do not depend on the number of threads.
class ThreadPool {
 public:
    // Where the system has no more threads to give, there are fewer.
    explicit ThreadPool(int threads) {
        try {
            for (int worker = 1; worker < threads; ++worker) workers_.emplace_back([this, worker] { serve(worker); });
        } catch (const std::system_error&) {
        }
    }

    ~ThreadPool() {
        {
            std::lock_guard lock(mutex_);
            closing_ = true;
        }
        wake_.notify_all();
        for (std::thread& thread : workers_) thread.join();
    }

    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int size() const { return static_cast<int>(workers_.size()) + 1; }

    // The caller is worker 0. While it waits for the others it calls idle(), so that Ctrl-C and progress are served.
    // What a task or idle() throws is thrown again here, when all threads are done with theirs.
    void run(int count, const std::function<void(int, int)>& task, const std::function<void()>& idle = {}) {
        if (workers_.empty() || count <= 1) {
            for (int index = 0; index < count; ++index) task(index, 0);
            return;
        }
        {
            std::lock_guard lock(mutex_);
            task_ = &task;
            count_ = count;
            next_ = 0;
            busy_ = static_cast<int>(workers_.size());
            ++round_;
        }
        wake_.notify_all();
        work(0);
        std::unique_lock lock(mutex_);
        const auto all_done = [this] { return busy_ == 0; };
        while (idle && !done_.wait_for(lock, std::chrono::milliseconds(10), all_done)) {
            lock.unlock();
            guarded(idle);
            lock.lock();
        }
        done_.wait(lock, all_done);
        if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    }

 private:
    void work(int worker) {
        guarded([&] {
            for (int index = next_++; index < count_; index = next_++) (*task_)(index, worker);
        });
    }

    template <class Body>
    void guarded(const Body& body) {
        try {
            body();
        } catch (...) {
            const std::lock_guard lock(mutex_);
            if (!failure_) failure_ = std::current_exception();
            next_ = count_;
        }
    }

    void serve(int worker) {
        for (std::int64_t seen = 0;;) {
            {
                std::unique_lock lock(mutex_);
                wake_.wait(lock, [&] { return closing_ || round_ != seen; });
                if (closing_) return;
                seen = round_;
            }
            work(worker);
            std::lock_guard lock(mutex_);
            if (--busy_ == 0) done_.notify_one();
        }
    }

    std::vector<std::thread> workers_;
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    const std::function<void(int, int)>* task_ = nullptr;
    int count_ = 0, busy_ = 0;
    std::int64_t round_ = 0;
    std::exception_ptr failure_;
    std::atomic<int> next_{0};
    bool closing_ = false;
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
