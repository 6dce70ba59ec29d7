// SPDX-License-Identifier: Apache-2.0
#include "tests/inference/format/gguf_layout.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "kernels/base/check.h"

namespace belvedere::testing {
namespace {

constexpr size_t kTypeBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
constexpr uint64_t kString = 8;
constexpr uint64_t kArray = 9;
constexpr size_t kAlignment = 32;

}  // namespace

GgufLayout::GgufLayout(std::string_view file) : file_(file) {
    number("version", 4);
    const uint64_t n_tensors = number("n_tensors", 8);
    const uint64_t n_keys = number("n_keys", 8);
    for (uint64_t i = 0; i < n_keys; ++i) {
        readKey();
    }
    for (uint64_t i = 0; i < n_tensors; ++i) {
        readTensor();
    }
    data_begin_ = (position_ + kAlignment - 1) / kAlignment * kAlignment;
}

uint64_t GgufLayout::number(const std::string& name, size_t n_bytes) {
    fields_.push_back({name, position_, n_bytes});
    position_ += n_bytes;
    return readField(file_, fields_.back());
}

std::string GgufLayout::text(const std::string& name) {
    const size_t n_bytes = number(name, 8);
    position_ += n_bytes;
    return std::string(file_.substr(position_ - n_bytes, n_bytes));
}

void GgufLayout::readKey() {
    const std::string key = text("");
    const std::string name = "key " + key;
    fields_.back().name = name + " length";
    readValue(name, number(name + " type", 4));
}

void GgufLayout::readValue(const std::string& key, uint64_t type) {
    if (type == kString) {
        text(key + " value");
        return;
    }
    if (type != kArray) {
        number(key + " value", kTypeBytes[type]);
        return;
    }
    const uint64_t element_type = number(key + " element_type", 4);
    const uint64_t count = number(key + " count", 8);
    if (element_type != kString) {
        position_ += count * kTypeBytes[element_type];
        return;
    }
    for (uint64_t i = 0; i < count; ++i) {
        text(fmt::format("{} length of element {}", key, i));
    }
}

void GgufLayout::readTensor() {
    const std::string name = "tensor " + text("");
    fields_.back().name = name + " length";
    const uint64_t n_dims = number(name + " n_dims", 4);
    for (uint64_t d = 0; d < n_dims; ++d) {
        number(fmt::format("{} dim {}", name, d), 8);
    }
    number(name + " type", 4);
    number(name + " offset", 8);
}

const GgufField& GgufLayout::at(std::string_view name) const {
    const auto found = std::find_if(fields_.begin(), fields_.end(),
                                    [&](const GgufField& field) { return field.name == name; });
    BV_CHECK(found != fields_.end());
    return *found;
}

void GgufLayout::set(std::string& file, std::string_view name, uint64_t value) const {
    writeField(file, at(name), value);
}

uint64_t readField(std::string_view file, const GgufField& field) {
    uint64_t value = 0;
    std::memcpy(&value, file.data() + field.position, field.n_bytes);
    return value;
}

void writeField(std::string& file, const GgufField& field, uint64_t value) {
    std::memcpy(file.data() + field.position, &value, field.n_bytes);
}

}  // namespace belvedere::testing
