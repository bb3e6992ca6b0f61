#include <algorithm>
#include <iterator>
#include <memory>
#include <stdexcept>

#include "tree/branch_and_bound.h"

namespace blindmatch {
namespace {

bool lower(const OpenNode& x, const OpenNode& y) { return x.bound != y.bound ? x.bound < y.bound : x.id < y.id; }

// Copies of the parents with other places in the proof; children share the copy as they shared the original.
void replant(std::vector<OpenNode>& nodes, const std::function<int(int)>& place) {
    std::map<const BranchedNode*, std::shared_ptr<const BranchedNode>> copies;
    for (OpenNode& node : nodes) {
        auto& copy = copies[node.parent.get()];
        if (!copy) {
            auto moved = std::make_shared<BranchedNode>(*node.parent);
            moved->proof = place(moved->proof);
            copy = std::move(moved);
        }
        node.parent = copy;
    }
}

}  // namespace

SharedTree::SharedTree(const Problem& problem, const BranchAndBoundOptions& options, TreeResult root)
    : problem_(problem),
      options_(options),
      fingerprint_(fingerprint(problem, options.root.target)),
      state_(std::move(root)) {
    state_.next_id = 0;
    for (OpenNode& node : state_.open) node.id = state_.next_id++;
}

std::pair<std::int64_t, std::string> SharedTree::take(std::size_t count) {
    const double goal = this->goal();
    std::erase_if(state_.open, [&](const OpenNode& node) {
        if (node.bound < goal) return false;
        state_.closed_bound = std::min(state_.closed_bound, node.bound);
        return true;
    });
    if (state_.open.empty()) return {-1, ""};
    count = std::clamp<std::size_t>(count, 1, state_.open.size());
    const auto end = state_.open.begin() + static_cast<std::ptrdiff_t>(count);
    std::ranges::nth_element(state_.open, end - 1, lower);

    Piece piece;
    piece.nodes.assign(std::make_move_iterator(state_.open.begin()), std::make_move_iterator(end));
    state_.open.erase(state_.open.begin(), end);
    // Its proof begins with a stand-in for each parent.
    TreeState state{.root_done = true,
                    .permutation = state_.permutation,
                    .cost = state_.cost,
                    .proof_dropped = state_.proof_dropped,
                    .symmetries = state_.symmetries,
                    .open = piece.nodes};
    replant(state.open, [&](int proof) {
        if (state.proof_dropped) return -1;
        const auto place = static_cast<int>(piece.anchors.size());
        piece.anchors.push_back(proof);
        const int first = place == 0 ? -1 : 0;
        state.proof.push_back({.parent = first, .row = first, .column = first});
        return place;
    });
    for (OpenNode& node : state.open) node.id = state.next_id++;
    std::string bytes = encode_state(state, fingerprint_);
    out_.emplace(next_number_, std::move(piece));
    return {next_number_++, std::move(bytes)};
}

void SharedTree::absorb(std::int64_t number, const std::string& bytes) {
    const auto found = out_.find(number);
    if (found == out_.end()) throw std::invalid_argument("this piece is not out");
    TreeState grown = decode_state(bytes, "the piece", problem_, state_.symmetries, fingerprint_);
    const std::vector<int>& anchors = found->second.anchors;
    if (!grown.proof_dropped && grown.proof.size() < anchors.size())
        throw std::invalid_argument("the piece is damaged");
    const double cost = problem_.cost(grown.permutation.data());
    if (cost < state_.cost) {
        state_.cost = cost;
        state_.permutation = std::move(grown.permutation);
    }
    state_.nodes += grown.nodes;
    state_.closed_bound = std::min(state_.closed_bound, grown.closed_bound);
    if (grown.proof_dropped) state_.drop_proof();
    const auto first = anchors.size();
    const auto base = state_.proof.size();
    const auto place = [&](int index) {
        if (state_.proof_dropped) return -1;
        const auto at = static_cast<std::size_t>(index);
        return at < first ? anchors[at] : static_cast<int>(base + at - first);
    };
    replant(grown.open, place);
    for (OpenNode& node : grown.open) {
        node.id = state_.next_id++;
        state_.open.push_back(std::move(node));
    }
    for (std::size_t index = first; index < grown.proof.size(); ++index) {
        grown.proof[index].parent = place(grown.proof[index].parent);
        state_.add_to_proof(std::move(grown.proof[index]), options_.proof_limit);
    }
    out_.erase(found);
}

void SharedTree::give_back(std::int64_t number) {
    const auto found = out_.find(number);
    if (found == out_.end()) throw std::invalid_argument("this piece is not out");
    for (OpenNode& node : found->second.nodes) state_.open.push_back(std::move(node));
    out_.erase(found);
}

double SharedTree::bound() const {
    double bound = state_.closed_bound;
    for (const OpenNode& node : state_.open) bound = std::min(bound, node.bound);
    for (const auto& [number, piece] : out_)
        for (const OpenNode& node : piece.nodes) bound = std::min(bound, node.bound);
    return std::min(std::max(state_.root_bound, bound), state_.cost);
}

std::string SharedTree::encoded() const {
    TreeState state = state_;
    for (const auto& [number, piece] : out_)
        state.open.insert(state.open.end(), piece.nodes.begin(), piece.nodes.end());
    return encode_state(state, fingerprint_);
}

TreeResult SharedTree::finish(BoundStatus status) {
    const double bound = this->bound();
    if (bound >= goal()) status = BoundStatus::optimal;
    return {std::move(state_), bound, status};
}

std::string grow_piece(const Problem& problem, const BranchAndBoundOptions& options, const std::string& piece,
                       Stop& stop) {
    const std::vector<Symmetry> symmetries = symmetries_for(problem, options);
    const std::uint64_t owner = fingerprint(problem, options.root.target);
    TreeState state = decode_state(piece, "the piece", problem, symmetries, owner);
    return encode_state(grow(problem, options, std::move(state), stop), owner);
}

}  // namespace blindmatch
