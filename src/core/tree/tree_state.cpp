#include "tree/tree_state.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "tree/durable_file.h"
#include "tree/tree_check.h"

namespace blindmatch {
namespace {

constexpr char kMagic[] = "blindmatch tree 1\n";

std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t hash = 14695981039346656037ull) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (std::size_t k = 0; k < size; ++k) hash = (hash ^ bytes[k]) * 1099511628211ull;  // FNV-1a
    return hash;
}

class Writer {
 public:
    template <class T>
        requires std::is_trivially_copyable_v<T>
    void put(const T& value) {
        buffer_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    template <class T>
        requires std::is_trivially_copyable_v<T>
    void put(const std::vector<T>& values) {
        put(static_cast<std::uint64_t>(values.size()));
        buffer_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    }
    const std::string& buffer() const { return buffer_; }

 private:
    std::string buffer_;
};

// Throws std::out_of_range where the bytes cannot be what was written.
class Reader {
 public:
    explicit Reader(std::string_view buffer) : buffer_(buffer) {}
    template <class T>
        requires std::is_trivially_copyable_v<T>
    void get(T& value) {
        take(&value, sizeof value);
    }
    void get(bool& value) {  // no other byte may become a bool
        std::uint8_t byte = 0;
        get(byte);
        if (byte > 1) throw std::out_of_range("checkpoint");
        value = byte == 1;
    }
    template <class T>
        requires std::is_trivially_copyable_v<T>
    void get(std::vector<T>& values) {
        values.resize(count(sizeof(T)));
        take(values.data(), values.size() * sizeof(T));
    }
    // The length of a list whose items take at least `size` bytes each: never more than the file can hold.
    std::size_t count(std::size_t size) {
        std::uint64_t length = 0;
        get(length);
        if (length > (buffer_.size() - at_) / size) throw std::out_of_range("checkpoint");
        return length;
    }

 private:
    void take(void* out, std::size_t size) {
        if (size > buffer_.size() - at_) throw std::out_of_range("checkpoint");
        if (size > 0) std::memcpy(out, buffer_.data() + at_, size);
        at_ += size;
    }

    std::string_view buffer_;
    std::size_t at_ = 0;
};

// One description of each structure serves both directions.
template <class Archive, class Value>
void field(Archive& archive, Value& value) {
    if constexpr (std::is_same_v<Archive, Writer>) {
        archive.put(value);
    } else {
        archive.get(value);
    }
}

// Items that take at least `least` bytes each.
template <class Archive, class Item, class Describe>
void list(Archive& archive, std::vector<Item>& items, std::size_t least, Describe describe) {
    if constexpr (std::is_same_v<Archive, Writer>) {
        archive.put(static_cast<std::uint64_t>(items.size()));
    } else {
        items.resize(archive.count(least));
    }
    for (Item& item : items) describe(item);
}

template <class Archive>
void describe(Archive& archive, Stage& stage) {
    field(archive, stage.n);
    field(archive, stage.u);
    field(archive, stage.v);
    field(archive, stage.beta);
    field(archive, stage.forbidden);
}

template <class Archive>
void describe(Archive& archive, ProofNode& node) {
    field(archive, node.parent);
    field(archive, node.row);
    field(archive, node.column);
    field(archive, node.line);
    field(archive, node.line_is_row);
    field(archive, node.skipped);
    list(archive, node.stages, 36, [&](Stage& stage) { describe(archive, stage); });
}

template <class Archive>
void describe(Archive& archive, BranchedNode& node) {
    field(archive, node.rows);
    field(archive, node.columns);
    list(archive, node.fixed, 8, [&](std::pair<int, int>& pair) {
        field(archive, pair.first);
        field(archive, pair.second);
    });
    field(archive, node.forbidden);
    field(archive, node.assignments);
    field(archive, node.proof);
    describe(archive, node.duals);
}

template <class Archive>
void describe(Archive& archive, TreeState& state) {
    field(archive, state.root_done);
    field(archive, state.permutation);
    field(archive, state.cost);
    field(archive, state.root_bound);
    field(archive, state.closed_bound);
    field(archive, state.nodes);
    field(archive, state.next_id);
    field(archive, state.proof_dropped);
    list(archive, state.proof, 33, [&](ProofNode& node) { describe(archive, node); });
    list(archive, state.symmetries, 9, [&](Symmetry& symmetry) {
        field(archive, symmetry.of_rows);
        field(archive, symmetry.image);
    });
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
    std::vector<const BranchedNode*> parents;
    std::vector<OpenRecord> records;
    for (const OpenNode& node : open) {
        const auto [at, fresh] = number.try_emplace(node.parent.get(), parents.size());
        if (fresh) parents.push_back(node.parent.get());
        records.push_back({node.bound, node.id, node.row, node.column, at->second});
    }
    writer.put(static_cast<std::uint64_t>(parents.size()));
    for (const BranchedNode* parent : parents) describe(writer, const_cast<BranchedNode&>(*parent));  // only read
    writer.put(records);
}

std::vector<OpenNode> get_open(Reader& reader) {
    std::vector<std::shared_ptr<const BranchedNode>> parents(reader.count(80));
    for (auto& parent : parents) {
        auto node = std::make_shared<BranchedNode>();
        describe(reader, *node);
        parent = std::move(node);
    }
    std::vector<OpenRecord> records;
    reader.get(records);
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

std::uint64_t fingerprint(const Problem& problem, const DualAscentOptions& options) {
    const auto add = [](const auto& values, std::uint64_t hash) {
        return hash_bytes(values.data(), values.size() * sizeof(values[0]), hash);
    };
    std::uint64_t hash = hash_bytes(&problem.n, sizeof problem.n);
    for (const Factor& factor : problem.factors) hash = add(factor.target, add(factor.source, hash));
    hash = add(problem.forbidden, add(problem.linear, hash));
    hash = hash_bytes(&problem.constant, sizeof problem.constant, hash);
    hash = hash_bytes(&options.target.granularity, sizeof options.target.granularity, hash);
    return hash_bytes(&options.target.tolerance, sizeof options.target.tolerance, hash);
}

std::string encode_state(const TreeState& state, std::uint64_t fingerprint) {
    Writer body;
    describe(body, const_cast<TreeState&>(state));  // only read
    put_open(body, state.open);
    const std::string& bytes = body.buffer();
    Writer head;
    head.put(fingerprint);
    head.put(static_cast<std::uint64_t>(bytes.size()));
    head.put(hash_bytes(bytes.data(), bytes.size()));
    return kMagic + head.buffer() + bytes;
}

TreeState decode_state(std::string_view bytes, const std::string& name, const Problem& problem,
                       const std::vector<Symmetry>& symmetries, std::uint64_t fingerprint) {
    const std::string_view magic(kMagic);
    if (!bytes.starts_with(magic)) throw std::invalid_argument(name + " is not a checkpoint");
    try {
        const std::string_view rest = bytes.substr(magic.size());
        Reader head(rest);
        std::uint64_t owner = 0, size = 0, hash = 0;
        head.get(owner);
        head.get(size);
        head.get(hash);
        if (owner != fingerprint) {
            throw std::invalid_argument(name + " belongs to another problem, or to the same one with another seed");
        }
        const std::string_view payload = rest.substr(3 * sizeof(std::uint64_t));
        if (payload.size() == size && hash_bytes(payload.data(), payload.size()) == hash) {
            Reader body(payload);
            TreeState state;
            describe(body, state);
            state.open = get_open(body);
            if (equal(state.symmetries, symmetries) && is_consistent(state, problem)) return state;
        }
    } catch (const std::out_of_range&) {
    }
    throw std::invalid_argument(name + " is damaged");
}

std::size_t save_state(const std::filesystem::path& path, const TreeState& state, std::uint64_t fingerprint) {
    const std::string bytes = encode_state(state, fingerprint);
    try {
        replace_file(path, {bytes});
    } catch (const std::system_error& error) {
        throw std::runtime_error("cannot write the checkpoint " + shown(path) + ": " + error.code().message());
    }
    return bytes.size();
}

TreeState load_state(const std::filesystem::path& path, const Problem& problem, const std::vector<Symmetry>& symmetries,
                     std::uint64_t fingerprint) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    return decode_state(bytes, shown(path), problem, symmetries, fingerprint);
}

}  // namespace blindmatch
