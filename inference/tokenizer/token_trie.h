// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds added tokens in text: the leftmost one, and the longest of those that start there. Built
// once, then read by any thread. The work is at most text length times token length, and tokens are
// at most kMaxTokenBytes long.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace belvedere::inference {

class TokenTrie {
  public:
    static constexpr size_t kMaxTokenBytes = 1024;

    struct Match {
        size_t begin = 0;
        size_t end = 0;
        int32_t id = -1;  ///< -1: no match
    };

    /// Requires: text not empty. A later token with the same text replaces the earlier one.
    void add(std::string_view text, int32_t id);

    [[nodiscard]] bool empty() const { return nodes_.empty(); }

    /// The first match inside text[begin, end).
    [[nodiscard]] Match findFirst(std::string_view text, size_t begin, size_t end) const;

  private:
    struct Node {
        int32_t first_child = -1;
        int32_t next_sibling = -1;
        int32_t id = -1;
        char byte = 0;
    };

    [[nodiscard]] int32_t childOf(int32_t node, char byte) const;
    int32_t addNode(char byte);

    std::vector<Node> nodes_;
    std::array<int32_t, 256> roots_ = makeRoots();  ///< the node of each first byte, -1 for none

    static constexpr std::array<int32_t, 256> makeRoots() {
        std::array<int32_t, 256> roots{};
        roots.fill(-1);
        return roots;
    }
};

}  // namespace belvedere::inference
