// A branch-and-bound search that can be put aside and taken up again: everything that it knows, in one file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tree/branch_and_bound.h"
#include "tree/tree_node.h"

namespace blindmatch {

struct TreeState {
    bool root_done = false;  // false: only the root's duals (the last stage of proof[0]) and the incumbent count
    std::vector<int> permutation;
    double cost = 0.0, root_bound = 0.0, closed_bound = 0.0;
    std::int64_t nodes = 0, next_id = 0;
    bool proof_dropped = false;
    std::vector<ProofNode> proof;
    std::vector<Symmetry> symmetries;
    std::vector<OpenNode> open;
};

// A number that tells problems (and what counts as solved) apart.
std::uint64_t fingerprint(const Problem& problem, const DualAscentOptions& options);

// The state as bytes: what a file holds, and what goes to another process.
std::string encode_state(const TreeState& state, std::uint64_t fingerprint);

// Throws std::invalid_argument if the bytes are damaged or belong to another problem, whose symmetries are given: what
// they say of them must be that. `name` is what the error calls them.
TreeState decode_state(std::string_view bytes, const std::string& name, const Problem& problem,
                       const std::vector<Symmetry>& symmetries, std::uint64_t fingerprint);

// Returns the bytes of the file. A kill or a power cut leaves the old file or the new one, whole. Throws
// std::runtime_error where that fails.
std::size_t save_state(const std::filesystem::path& path, const TreeState& state, std::uint64_t fingerprint);

TreeState load_state(const std::filesystem::path& path, const Problem& problem, const std::vector<Symmetry>& symmetries,
                     std::uint64_t fingerprint);

}  // namespace blindmatch
