// SPDX-License-Identifier: Apache-2.0
#include "tools/repository/token_tree.h"

#include <algorithm>
#include <numeric>

namespace belvedere::tools {
namespace {

/// The open folders from the root to the one the last file stands in; files come sorted, so each
/// folder is opened once.
class TreeBuilder {
  public:
    explicit TreeBuilder(const std::string& root_name) {
        nodes_.push_back({root_name, "", true, 0, 0, -1, {}});
        open_.push_back(0);
    }

    void add(const FileRecord& file) {
        const std::string& path = file.path;
        const size_t name_begin = path.rfind('/') + 1;
        enterFolder(path.substr(0, name_begin));
        const int parent = open_.back();
        addNode({path.substr(name_begin), path, false, tokenCount(file), 1, parent, {}});
        for (const int folder : open_) {
            nodes_[static_cast<size_t>(folder)].n_tokens += nodes_.back().n_tokens;
            nodes_[static_cast<size_t>(folder)].n_files += 1;
        }
    }

    std::vector<TreeNode> finish() {
        for (TreeNode& node : nodes_) {
            std::stable_sort(node.children.begin(), node.children.end(), [this](int a, int b) {
                const TreeNode& left = nodes_[static_cast<size_t>(a)];
                const TreeNode& right = nodes_[static_cast<size_t>(b)];
                return left.is_folder != right.is_folder ? left.is_folder : left.name < right.name;
            });
        }
        return std::move(nodes_);
    }

  private:
    void addNode(TreeNode node) {
        nodes_[static_cast<size_t>(node.parent)].children.push_back(
            static_cast<int>(nodes_.size()));
        nodes_.push_back(std::move(node));
    }

    /// `folder` with a last '/', "" at the top.
    void enterFolder(const std::string& folder) {
        const auto contains = [&](int node) {
            const std::string& path = nodes_[static_cast<size_t>(node)].path;
            return path.empty() || folder.starts_with(path + "/");
        };
        while (!contains(open_.back())) {
            open_.pop_back();
        }
        size_t begin = nodes_[static_cast<size_t>(open_.back())].path.size();
        begin += begin > 0 ? 1 : 0;
        while (begin < folder.size()) {
            const size_t end = folder.find('/', begin);
            const int parent = open_.back();
            open_.push_back(static_cast<int>(nodes_.size()));
            addNode(
                {folder.substr(begin, end - begin), folder.substr(0, end), true, 0, 0, parent, {}});
            begin = end + 1;
        }
    }

    std::vector<TreeNode> nodes_;
    std::vector<int> open_;
};

}  // namespace

size_t tokenCount(const FileRecord& file) {
    return std::accumulate(
        file.pieces.begin(), file.pieces.end(), size_t{0},
        [](size_t sum, const PieceRecord& piece) { return sum + piece.n_tokens; });
}

std::vector<TreeNode> makeTree(const std::vector<FileRecord>& files, const std::string& root_name) {
    TreeBuilder builder(root_name);
    for (const FileRecord& file : files) {
        builder.add(file);
    }
    return builder.finish();
}

}  // namespace belvedere::tools
