// SPDX-License-Identifier: Apache-2.0
#include "inference/tokenizer/token_trie.h"

namespace belvedere::inference {

int32_t TokenTrie::addNode(char byte) {
    nodes_.push_back({.byte = byte});
    return static_cast<int32_t>(nodes_.size()) - 1;
}

int32_t TokenTrie::childOf(int32_t node, char byte) const {
    int32_t child = nodes_[static_cast<size_t>(node)].first_child;
    while (child >= 0 && nodes_[static_cast<size_t>(child)].byte != byte) {
        child = nodes_[static_cast<size_t>(child)].next_sibling;
    }
    return child;
}

void TokenTrie::add(std::string_view text, int32_t id) {
    int32_t& root = roots_[static_cast<unsigned char>(text[0])];
    if (root < 0) {
        root = addNode(text[0]);
    }
    int32_t node = root;
    for (const char byte : text.substr(1)) {
        int32_t child = childOf(node, byte);
        if (child < 0) {
            child = addNode(byte);
            Node& parent = nodes_[static_cast<size_t>(node)];
            nodes_[static_cast<size_t>(child)].next_sibling = parent.first_child;
            parent.first_child = child;
        }
        node = child;
    }
    nodes_[static_cast<size_t>(node)].id = id;
}

TokenTrie::Match TokenTrie::findFirst(std::string_view text, size_t begin, size_t end) const {
    for (size_t start = begin; start < end; ++start) {
        int32_t node = roots_[static_cast<unsigned char>(text[start])];
        Match longest;
        for (size_t i = start + 1; node >= 0; ++i) {
            if (nodes_[static_cast<size_t>(node)].id >= 0) {
                longest = {start, i, nodes_[static_cast<size_t>(node)].id};
            }
            node = i < end ? childOf(node, text[i]) : -1;
        }
        if (longest.id >= 0) {
            return longest;
        }
    }
    return {};
}

}  // namespace belvedere::inference
