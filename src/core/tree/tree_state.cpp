#include "tree/tree_state.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <stdexcept>
#include <type_traits>

namespace blindmatch {
namespace {

constexpr char kMagic[] = "blindmatch tree 1\n";

std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t hash = 14695981039346656037ull) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (std::size_t k = 0; k < size; ++k) hash = (hash ^ bytes[k]) * 1099511628211ull;  // FNV-1a
    return hash;
}

template <class T>
concept Plain = std::is_trivially_copyable_v<T>;  // written as its bytes; the other types have a `describe`

class Writer {
 public:
    template <class... Values>
    void operator()(const Values&... values) {
        (put(values), ...);
    }
    const std::string& buffer() const { return buffer_; }

 private:
    template <class T>
    void put(const T& value) {
        if constexpr (Plain<T>) {
            buffer_.append(reinterpret_cast<const char*>(&value), sizeof value);
        } else {
            describe(*this, const_cast<T&>(value));  // only read
        }
    }
    template <class T>
    void put(const std::vector<T>& values) {
        put(static_cast<std::uint64_t>(values.size()));
        if constexpr (Plain<T>) {
            buffer_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
        } else {
            for (const T& value : values) put(value);
        }
    }

    std::string buffer_;
};

// Throws std::out_of_range where the bytes cannot be what was written.
class Reader {
 public:
    explicit Reader(std::string_view buffer) : rest_(buffer) {}
    template <class... Values>
    void operator()(Values&... values) {
        (get(values), ...);
    }
    std::string_view rest() const { return rest_; }

 private:
    template <class T>
    void get(T& value) {
        if constexpr (Plain<T>) {
            take(&value, sizeof value);
        } else {
            describe(*this, value);
        }
    }
    void get(bool& value) {  // no other byte may become a bool
        std::uint8_t byte = 0;
        get(byte);
        if (byte > 1) throw std::out_of_range("checkpoint");
        value = byte == 1;
    }
    template <class T>
    void get(std::vector<T>& values) {
        std::uint64_t count = 0;
        get(count);
        if (count > rest_.size() / (Plain<T> ? sizeof(T) : 1)) throw std::out_of_range("checkpoint");
        if constexpr (Plain<T>) {
            values.resize(count);
            take(values.data(), count * sizeof(T));
        } else {
            for (; count > 0; --count) get(values.emplace_back());
        }
    }
    void take(void* out, std::size_t size) {
        if (size > rest_.size()) throw std::out_of_range("checkpoint");
        if (size > 0) std::memcpy(out, rest_.data(), size);
        rest_.remove_prefix(size);
    }

    std::string_view rest_;
};

// One description of each structure serves both directions.
template <class Archive>
void describe(Archive& archive, std::pair<int, int>& pair) {
    archive(pair.first, pair.second);
}

template <class Archive>
void describe(Archive& archive, Stage& stage) {
    archive(stage.n, stage.u, stage.v, stage.beta, stage.forbidden);
}

template <class Archive>
void describe(Archive& archive, Symmetry& symmetry) {
    archive(symmetry.of_rows, symmetry.image);
}

template <class Archive>
void describe(Archive& archive, ProofNode& node) {
    archive(node.parent, node.row, node.column, node.line, node.line_is_row, node.skipped, node.stages);
}

template <class Archive>
void describe(Archive& archive, BranchedNode& node) {
    archive(node.rows, node.columns, node.fixed, node.forbidden, node.assignments, node.proof, node.duals);
}

void describe(Writer& writer, std::shared_ptr<const BranchedNode>& node) { writer(*node); }

void describe(Reader& reader, std::shared_ptr<const BranchedNode>& node) {
    auto read = std::make_shared<BranchedNode>();
    reader(*read);
    node = std::move(read);
}

template <class Archive>
void describe(Archive& archive, TreeState& state) {
    archive(state.root_done, state.permutation, state.cost, state.root_bound, state.closed_bound, state.nodes,
            state.next_id, state.proof_dropped, state.proof, state.symmetries);
}

// The plain part of an open node, with its parent by number: children share their parent.
struct OpenRecord {
    double bound;
    std::int64_t id;
    int row, column;
    std::uint64_t parent;
};

void put_open(Writer& writer, const std::vector<OpenNode>& open) {
    std::map<const BranchedNode*, std::uint64_t> number;
    std::vector<std::shared_ptr<const BranchedNode>> parents;
    std::vector<OpenRecord> records;
    for (const OpenNode& node : open) {
        const auto [at, fresh] = number.try_emplace(node.parent.get(), parents.size());
        if (fresh) parents.push_back(node.parent);
        records.push_back({node.bound, node.id, node.row, node.column, at->second});
    }
    writer(parents, records);
}

std::vector<OpenNode> get_open(Reader& reader) {
    std::vector<std::shared_ptr<const BranchedNode>> parents;
    std::vector<OpenRecord> records;
    reader(parents, records);
    std::vector<OpenNode> open;
    for (const OpenRecord& record : records) {
        if (record.parent >= parents.size()) throw std::out_of_range("checkpoint");
        open.push_back({record.bound, record.id, record.row, record.column, parents[record.parent]});
    }
    return open;
}

bool equal(const std::vector<Symmetry>& a, const std::vector<Symmetry>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Symmetry& x, const Symmetry& y) {
        return x.of_rows == y.of_rows && x.image == y.image;
    });
}

}  // namespace

std::size_t bytes_of(const Stage& stage) {
    return sizeof(float) * (stage.u.size() + stage.v.size()) + sizeof(double) * stage.beta.size() +
           stage.forbidden.size();
}

void TreeState::add_to_proof(ProofNode node, std::size_t limit) {
    if (proof_dropped) return;
    for (const Stage& stage : node.stages) proof_bytes += bytes_of(stage);
    proof.push_back(std::move(node));
    if (proof_bytes > limit) drop_proof();
}

void TreeState::drop_proof() {
    proof = {};
    proof_dropped = true;
}

std::uint64_t fingerprint(const Problem& problem, const Target& target) {
    const auto add = [](const auto& values, std::uint64_t hash) {
        return hash_bytes(values.data(), values.size() * sizeof(values[0]), hash);
    };
    std::uint64_t hash = hash_bytes(&problem.n, sizeof problem.n);
    for (const Factor& factor : problem.factors) hash = add(factor.target.values, add(factor.source.values, hash));
    hash = add(problem.forbidden, add(problem.linear.values, hash));
    hash = hash_bytes(&problem.constant, sizeof problem.constant, hash);
    hash = hash_bytes(&target.granularity, sizeof target.granularity, hash);
    hash = hash_bytes(&target.tolerance, sizeof target.tolerance, hash);
    // Only where they are set: checkpoints without them keep their number.
    if (target.gap > 0.0) hash = hash_bytes(&target.gap, sizeof target.gap, hash);
    if (std::isfinite(target.enough)) hash = hash_bytes(&target.enough, sizeof target.enough, hash);
    return hash;
}

std::string encode_state(const TreeState& state, std::uint64_t fingerprint) {
    Writer body, head;
    body(state);
    put_open(body, state.open);
    const std::string& bytes = body.buffer();
    head(fingerprint, static_cast<std::uint64_t>(bytes.size()), hash_bytes(bytes.data(), bytes.size()));
    return kMagic + head.buffer() + bytes;
}

TreeState decode_state(std::string_view bytes, const std::string& name, const Problem& problem,
                       const std::vector<Symmetry>& symmetries, std::uint64_t fingerprint) {
    const std::string_view magic(kMagic);
    if (!bytes.starts_with(magic)) throw std::invalid_argument(name + " is not a checkpoint");
    try {
        Reader reader(bytes.substr(magic.size()));
        std::uint64_t owner = 0, size = 0, hash = 0;
        reader(owner, size, hash);
        if (owner != fingerprint) {
            throw std::invalid_argument(name + " belongs to another problem, or to the same one with another seed");
        }
        if (reader.rest().size() == size && hash_bytes(reader.rest().data(), size) == hash) {
            TreeState state;
            reader(state);
            state.open = get_open(reader);
            for (const ProofNode& node : state.proof)
                for (const Stage& stage : node.stages) state.proof_bytes += bytes_of(stage);
            if (equal(state.symmetries, symmetries) && is_consistent(state, problem)) return state;
        }
    } catch (const std::out_of_range&) {
    }
    throw std::invalid_argument(name + " is damaged");
}

}  // namespace blindmatch
