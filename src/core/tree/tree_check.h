// Whether a state read from a file can be used at all: every size and every index in it, before anything relies on
// them.
#pragma once

#include "base/problem.h"
#include "tree/tree_state.h"

namespace blindmatch {

// The file may come from anybody. What it claims of bounds is another matter: the proof is checked in the end.
bool is_consistent(const TreeState& state, const Problem& problem);

}  // namespace blindmatch
