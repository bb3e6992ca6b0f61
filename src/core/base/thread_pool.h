// Threads that wait for work: run(count, task) calls task(index, worker) for every index, on all of them and the
// caller.
#pragma once

#include <atomic>
#include <chrono>
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

}  // namespace blindmatch
