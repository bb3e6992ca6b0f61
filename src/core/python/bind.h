// What the binding files share. Only the files of this folder know of both the core and Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "search/search.h"
#include "tree/branch_and_bound.h"

namespace blindmatch {}
namespace nb = nanobind;
using namespace nb::literals;
using namespace blindmatch;

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Mask = nb::ndarray<const bool, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;  // that are written to
using Cube = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const int, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void bind_bounds(nb::module_& m);
void bind_proofs(nb::module_& m);
void bind_subsets(nb::module_& m);

// Returns the value if it is in range; otherwise the ValueError names it.
template <class T>
T in_range(const char* name, T value, std::type_identity_t<T> least,
           std::type_identity_t<T> most = std::numeric_limits<T>::max()) {
    if (value < least || value > most)
        throw std::invalid_argument(std::string(name) + "=" + std::to_string(value) + "; expected " +
                                    std::to_string(least) + " to " + std::to_string(most));
    return value;
}

// No machine starts more threads.
inline int thread_count(int threads) { return in_range("threads", threads, 1, 1 << 20); }

inline std::vector<int> to_vector(const Indices& values) { return {values.data(), values.data() + values.size()}; }

inline int side_of(const char* name, const Matrix& matrix) {
    if (matrix.shape(1) != matrix.shape(0))
        throw std::invalid_argument(std::string(name) + ": expected a square matrix");
    return static_cast<int>(matrix.shape(0));
}

// Hands a vector over to numpy without a copy.
template <class T, class... Sizes>
nb::ndarray<nb::numpy, T, nb::ndim<sizeof...(Sizes)>> to_numpy(std::vector<T> values, Sizes... sizes) {
    auto* owned = new std::vector<T>(std::move(values));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return {owned->data(), {static_cast<std::size_t>(sizes)...}, owner};
}

// A read-only view of a vector that lives as long as the object whose property it is.
template <class T, class... Sizes>
auto view_of(const std::vector<T>& values, Sizes... sizes) {
    return nb::ndarray<nb::numpy, const T, nb::ndim<sizeof...(Sizes)>>(values.data(),
                                                                       {static_cast<std::size_t>(sizes)...});
}

// The getter of a property: a view of the whole vector.
template <class Self, class Base, class T>
auto view(std::vector<T> Base::* member) {
    return [member](const Self& self) { return view_of(self.*member, (self.*member).size()); };
}

// The budget of a run, as the core sees it. This is the only place where the core reaches into a Python budget.
//
// Python objects under the names that the stub shall give to their types. The type is asked, not the object: to read
// `remaining` would run Python code, and a Ctrl-C in it would look like a missing attribute.
inline bool is_budget(nb::handle object) {
    const nb::handle type = object.type();
    return nb::hasattr(type, "remaining") && nb::hasattr(type, "fail");
}

struct CoreBudget : nb::object {
    NB_OBJECT(CoreBudget, nb::object, "blindmatch.solvers.base.Budget | blindmatch.solvers.core_problem.RescaledBudget",
              is_budget)
};
struct BoundBudget : nb::object {
    NB_OBJECT(BoundBudget, nb::object, "blindmatch.solvers.core_problem.RescaledBudget", is_budget)
};
struct SearchBudget : nb::object {
    NB_OBJECT(SearchBudget, nb::object, "blindmatch.solvers.base.Budget", is_budget)
};

// A Stop that looks for Ctrl-C, and reports that may ask to stop. Exceptions never cross the core: the budget keeps
// them, and `solve` raises them when the incumbent is safe.
class Run {
 public:
    explicit Run(nb::object budget)
        : budget_(std::move(budget)), stop(to_double(budget_.attr("remaining")), [this] { return signalled(); }) {
        if (is_true(budget_.attr("interrupted"))) stop.request();
    }

    // Tells a BoundBudget of a bound and a cost; whatever goes wrong there stops the run.
    BoundReport bound_report() {
        return [this](const BoundProgress& now) {
            nb::gil_scoped_acquire lock;
            const bool go_on = guarded([&] {
                return is_true(
                    budget_.attr("report")(now.bound, now.cost, now.iteration, now.proof_size, now.nodes, now.open));
            });
            if (!go_on) stop.request();
        };
    }

    // Passes the state of a tree on to a BoundBudget, which says in how many seconds it wants the next.
    KeepState keep_state() {
        return [this](const std::string& state) {
            nb::gil_scoped_acquire lock;
            double pause = kInfinity;
            const bool kept = guarded([&] {
                auto* bytes = const_cast<char*>(state.data());  // only read
                const auto size = static_cast<Py_ssize_t>(state.size());
                pause =
                    to_double(budget_.attr("keep_state")(nb::steal(PyMemoryView_FromMemory(bytes, size, PyBUF_READ))));
                return true;
            });
            if (!kept) stop.request();
            return pause;
        };
    }

    // Passes the best permutation so far on to a SearchBudget.
    Progress progress() {
        return [this](double cost, const std::vector<int>& permutation) {
            nb::gil_scoped_acquire lock;
            const bool go_on = guarded([&] {
                budget_.attr("keep")(to_numpy(permutation, permutation.size()), cost);
                return is_true(budget_.attr("report")(nb::none(), cost));
            });
            if (!go_on) stop.request();
        };
    }

 private:
    // Whether Ctrl-C was pressed, or the main thread has ended.
    bool signalled() {
        nb::gil_scoped_acquire lock;
        return !guarded([&] {
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
            return !is_true(budget_.attr("orphaned"));
        });
    }

    // Whether to go on: what the call returns, or no if it raises.
    template <class Call>
    bool guarded(const Call& call) {
        try {
            return call();
        } catch (nb::python_error& error) {
            budget_.attr("fail")(error.value());
            return false;
        }
    }

    static double to_double(const nb::object& object) {
        const double value = PyFloat_AsDouble(object.ptr());
        if (value == -1.0 && PyErr_Occurred()) throw nb::python_error();
        return value;
    }

    static bool is_true(const nb::object& object) {
        const int truth = PyObject_IsTrue(object.ptr());
        if (truth < 0) throw nb::python_error();
        return truth > 0;
    }

    nb::object budget_;  // before `stop`, which is built from it

 public:
    Stop stop;
};

// Calls body(run) without Python's lock.
template <class Body>
auto run_with(nb::object budget, const Body& body) {
    Run run(std::move(budget));
    nb::gil_scoped_release release;
    return body(run);
}
