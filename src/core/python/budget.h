// The budget of a run, as the core sees it. This is the only place where the core reaches into a Python budget; its
// protocols are typed in blindmatch/solvers/core_budget.py.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/stop.h"
#include "bound/dual_ascent.h"
#include "python/bind.h"
#include "search/two_opt.h"

// Python objects under the names that the stub shall give to their types.
inline bool is_budget(nb::handle object) { return nb::hasattr(object, "remaining") && nb::hasattr(object, "fail"); }

struct CoreBudget : nb::object {
    NB_OBJECT(CoreBudget, nb::object, "blindmatch.solvers.core_budget.CoreBudget", is_budget)
};
struct BoundBudget : nb::object {
    NB_OBJECT(BoundBudget, nb::object, "blindmatch.solvers.core_budget.BoundBudget", is_budget)
};
struct SearchBudget : nb::object {
    NB_OBJECT(SearchBudget, nb::object, "blindmatch.solvers.core_budget.SearchBudget", is_budget)
};

// A Stop that looks for Ctrl-C, and reports that may ask to stop. Exceptions never cross the core: the budget keeps
// them, and `solve` raises them when the incumbent is safe.
class Run {
 public:
    explicit Run(nb::object budget)
        : budget_(std::move(budget)),
          stop(nb::cast<double>(budget_.attr("remaining")), [this] { return signalled(); }) {
        if (nb::cast<bool>(budget_.attr("interrupted"))) stop.request();
    }

    // Tells a BoundBudget of a bound and a cost; whatever goes wrong there stops the run.
    BoundReport bound_report() {
        return [this](const BoundProgress& now) {
            nb::gil_scoped_acquire lock;
            guarded([&] {
                const nb::object go_on = budget_.attr("report")(now.bound, now.cost, now.iteration, now.proof_size);
                if (!nb::cast<bool>(go_on)) stop.request();
            });
        };
    }

    // Passes the best permutation so far on to a SearchBudget.
    Progress progress() {
        return [this](double cost, const std::vector<int>& permutation) {
            nb::gil_scoped_acquire lock;
            guarded([&] {
                budget_.attr("keep")(to_numpy(permutation, permutation.size()), cost);
                if (!nb::cast<bool>(budget_.attr("report")(nb::none(), cost))) stop.request();
            });
        };
    }

 private:
    bool signalled() {
        nb::gil_scoped_acquire lock;
        if (PyErr_CheckSignals() == 0) return nb::cast<bool>(budget_.attr("orphaned"));
        nb::python_error error;
        budget_.attr("fail")(error.value());
        return true;
    }

    template <class Call>
    void guarded(const Call& call) {
        try {
            call();
        } catch (nb::python_error& error) {
            budget_.attr("fail")(error.value());
            stop.request();
        }
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
