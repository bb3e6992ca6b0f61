#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "problems.h"
#include "tree/branch_and_bound.h"
#include "tree/durable_file.h"
#include "tree/tree_state.h"

using namespace blindmatch;
namespace fs = std::filesystem;

namespace {

// A folder whose name is not ASCII and has a space, and that goes with its contents.
struct Folder {
    fs::path path = fs::temp_directory_path() / fs::path(u8"blindmatch \u00fc\u4e2d test");
    Folder() {
        fs::remove_all(path);
        fs::create_directories(path);
    }
    ~Folder() { fs::remove_all(path); }
};

std::string text_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a file is replaced whole, or the old one stays") {
    const Folder folder;
    const fs::path file = folder.path / u8"\u00e9tat.tree";
    replace_file(file, "one\r\ntwo\n");
    CHECK(text_of(file) == "one\r\ntwo\n");
    replace_file(file, "new");
    CHECK(text_of(file) == "new");
    fs::create_directory(folder.path / "taken.tree.new");  // where the temporary file would be written
    CHECK_THROWS_AS(replace_file(folder.path / "taken.tree", "new"), std::system_error);
    CHECK_FALSE(fs::exists(folder.path / "taken.tree"));
    CHECK_THROWS_AS(replace_file(folder.path / "none" / "a.tree", "new"), std::system_error);
    CHECK(shown(fs::path(u8"\u00e9")) == "\xc3\xa9");
}

TEST_CASE("an unfinished root is taken up, with a start match or without one") {
    const Folder folder;
    const Problem problem = grid_problem(8, 1);
    BranchAndBoundOptions options;
    options.root.target = {.granularity = 1.0};
    options.root.memory_limit = 0;
    options.checkpoint = folder.path / u8"\u4e2d.tree";
    TreeState state;  // as a run leaves it that was stopped before its first bound
    state.permutation = {7, 6, 5, 4, 3, 2, 1, 0};
    state.proof.resize(1);
    const double optimum = Enumerated(problem).optimum;
    for (const std::vector<int>& start : {std::vector<int>{}, std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}}) {
        save_state(options.checkpoint, state, fingerprint(problem, options.root.target));
        Stop stop;
        const TreeResult tree = branch_and_bound(problem, options, start, stop);
        CHECK(tree.status == BoundStatus::optimal);
        CHECK(tree.cost == optimum);
        CHECK(tree.checkpoint_error.empty());
    }
}
