// Short vectors by the compiler's vector extension, and one macro that compiles a kernel twice (any x86-64, and AVX2)
// where that can be.
//
// A kernel is a plain function over raw pointers marked BLINDMATCH_KERNEL; the helpers that it calls are marked
// BLINDMATCH_INLINE so that each clone gets its own copy. Whole files are never compiled for AVX2: templates of the
// standard library instantiated there could be picked by the linker for every other file.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <vector>

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are passed only to inlined helpers
#endif

// The loader of glibc chooses the clone. Others (musl, macOS, Windows) cannot, clang's clones lose constructors, and
// ARM has its vectors in every processor: there a kernel is compiled once, for any processor of the target.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(BLINDMATCH_NO_CLONES)
#define BLINDMATCH_KERNEL __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define BLINDMATCH_KERNEL
#endif
#define BLINDMATCH_INLINE [[gnu::always_inline]] inline

namespace blindmatch {

// 32 bytes of Real: 8 floats or 4 doubles. Without AVX2 the compiler splits it into two SSE registers.
template <class Real>
struct Simd;
template <>
struct Simd<float> {
    typedef float Vector __attribute__((vector_size(32)));
    static constexpr int width = 8;
};
template <>
struct Simd<double> {
    typedef double Vector __attribute__((vector_size(32)));
    static constexpr int width = 4;
};
template <class Real>
using Vector = typename Simd<Real>::Vector;

template <class Real>
BLINDMATCH_INLINE Vector<Real> load(const Real* p) {
    Vector<Real> v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

template <class Real>
BLINDMATCH_INLINE void store(Real* p, const Vector<Real>& v) {
    std::memcpy(p, &v, sizeof v);
}

template <class Real>
BLINDMATCH_INLINE Vector<Real> broadcast(Real x) {
    return x - Vector<Real>{};
}

template <class V>
BLINDMATCH_INLINE V smaller(const V& x, const V& y) {
    return x < y ? x : y;
}

template <class V>
BLINDMATCH_INLINE V larger(const V& x, const V& y) {
    return x > y ? x : y;
}

template <class Real>
BLINDMATCH_INLINE Real smallest_lane(const Vector<Real>& v);

template <>
BLINDMATCH_INLINE float smallest_lane<float>(const Vector<float>& v) {
    const Vector<float> a = smaller(v, Vector<float>(__builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3)));
    const Vector<float> b = smaller(a, Vector<float>(__builtin_shufflevector(a, a, 2, 3, 0, 1, 6, 7, 4, 5)));
    return b[1] < b[0] ? b[1] : b[0];
}

template <>
BLINDMATCH_INLINE double smallest_lane<double>(const Vector<double>& v) {
    const Vector<double> a = smaller(v, Vector<double>(__builtin_shufflevector(v, v, 2, 3, 0, 1)));
    return a[1] < a[0] ? a[1] : a[0];
}

template <class Real>
BLINDMATCH_INLINE Real sum_of_lanes(const Vector<Real>& v) {
    Real sum = v[0];
    for (int t = 1; t < Simd<Real>::width; ++t) sum += v[t];
    return sum;
}

// Rows are padded to this many elements, so that kernels need no remainder loops.
inline int padded(int n) { return (n + 7) / 8 * 8; }

template <class T>
struct CacheAligned {
    using value_type = T;
    CacheAligned() = default;
    template <class U>
    CacheAligned(const CacheAligned<U>&) {}
    T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64})); }
    void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t{64}); }
    bool operator==(const CacheAligned&) const { return true; }
};
template <class T>
using AlignedVector = std::vector<T, CacheAligned<T>>;

}  // namespace blindmatch
