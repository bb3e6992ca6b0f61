// Clocks that run at another rate, for `tools/clock_rate`: a library to preload. CLOCK_RATE=8 lets eight seconds pass
// in one, for the clocks, sleeps and timeouts of a process and of those that it starts, so a limit of a second comes
// after an eighth of one: to the program, the machine is eight times slower. With 0.25 it is four times faster.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static double rate = 1.0, monotonic_start, wall_start;  // the start is that of the first process: all share it
static int (*read_clock)(clockid_t, struct timespec*);

static double seconds(const struct timespec* time) { return time->tv_sec + 1e-9 * time->tv_nsec; }

static struct timespec spec(double value) {
    struct timespec time;
    if (value < 0) value = 0;
    time.tv_sec = (time_t)value;
    time.tv_nsec = (long)((value - time.tv_sec) * 1e9);
    return time;
}

static double inherited(const char* name, clockid_t clock) {
    struct timespec now;
    char text[64];
    if (getenv(name)) return atof(getenv(name));
    read_clock(clock, &now);
    snprintf(text, sizeof text, "%.9f", seconds(&now));
    setenv(name, text, 1);
    return seconds(&now);
}

__attribute__((constructor)) static void start(void) {
    if (read_clock) return;
    read_clock = NEXT(clock_gettime);
    if (getenv("CLOCK_RATE")) rate = atof(getenv("CLOCK_RATE"));
    monotonic_start = inherited("CLOCK_MONOTONIC_START", CLOCK_MONOTONIC);
    wall_start = inherited("CLOCK_WALL_START", CLOCK_REALTIME);
}

static double start_of(clockid_t clock) {
    switch (clock) {
        case CLOCK_REALTIME:
        case CLOCK_REALTIME_COARSE:
            return wall_start;
        case CLOCK_MONOTONIC:
        case CLOCK_MONOTONIC_COARSE:
        case CLOCK_MONOTONIC_RAW:
        case CLOCK_BOOTTIME:
            return monotonic_start;
        default:
            return 0;  // CPU seconds
    }
}

static struct timespec true_deadline(clockid_t clock, const struct timespec* deadline) {
    const double begin = start_of(clock);
    return spec(begin + (seconds(deadline) - begin) / rate);
}

static int milliseconds(int value) { return value > 0 ? (int)(value / rate) + 1 : value; }

static struct timeval interval(const struct timeval* value) {
    const struct timespec time = spec((value->tv_sec + 1e-6 * value->tv_usec) / rate);
    return (struct timeval){time.tv_sec, time.tv_nsec / 1000};
}

int clock_gettime(clockid_t clock, struct timespec* time) {
    start();
    const int status = read_clock(clock, time);
    const double begin = start_of(clock);
    if (status == 0) *time = spec(begin + (seconds(time) - begin) * rate);
    return status;
}

int gettimeofday(struct timeval* restrict value, void* restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *value = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t* out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}

int nanosleep(const struct timespec* request, struct timespec* rest) {
    const struct timespec time = spec(seconds(request) / rate);
    const int status = NEXT(nanosleep)(&time, rest);
    if (rest && status) *rest = spec(seconds(rest) * rate);
    return status;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec* request, struct timespec* rest) {
    const struct timespec time =
        (flags & TIMER_ABSTIME) ? true_deadline(clock, request) : spec(seconds(request) / rate);
    const int status = NEXT(clock_nanosleep)(clock, flags, &time, rest);
    if (rest && status) *rest = spec(seconds(rest) * rate);
    return status;
}

int sem_timedwait(sem_t* semaphore, const struct timespec* deadline) {
    const struct timespec time = true_deadline(CLOCK_REALTIME, deadline);
    return NEXT(sem_timedwait)(semaphore, &time);
}

int sem_clockwait(sem_t* semaphore, clockid_t clock, const struct timespec* deadline) {
    const struct timespec time = true_deadline(clock, deadline);
    return NEXT(sem_clockwait)(semaphore, clock, &time);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const struct timespec* deadline) {
    // The condition does not tell its clock, but no machine has been up since 2001.
    const clockid_t clock = deadline->tv_sec > 1000000000 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    const struct timespec time = true_deadline(clock, deadline);
    return NEXT(pthread_cond_timedwait)(condition, mutex, &time);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* deadline) {
    const struct timespec time = true_deadline(clock, deadline);
    return NEXT(pthread_cond_clockwait)(condition, mutex, clock, &time);
}

int poll(struct pollfd* files, nfds_t count, int timeout) { return NEXT(poll)(files, count, milliseconds(timeout)); }

int epoll_wait(int file, struct epoll_event* events, int count, int timeout) {
    return NEXT(epoll_wait)(file, events, count, milliseconds(timeout));
}

int select(int count, fd_set* restrict in, fd_set* restrict out, fd_set* restrict other,
           struct timeval* restrict timeout) {
    struct timeval time;
    if (timeout) time = interval(timeout);
    return NEXT(select)(count, in, out, other, timeout ? &time : NULL);
}

int setitimer(__itimer_which_t kind, const struct itimerval* restrict value, struct itimerval* restrict old) {
    const struct itimerval time = {interval(&value->it_interval), interval(&value->it_value)};
    return NEXT(setitimer)(kind, &time, old);
}
