// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the metadata keys of one architecture from a GGUF, each checked against a range. Private to
// inference/model.

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inference/format/gguf.h"
#include "kernels/base/result.h"

namespace belvedere::inference {

class KeyReader {
  public:
    KeyReader(const GgufFile& file, std::string_view prefix) : file_(file), prefix_(prefix) {}

    [[nodiscard]] std::string key(std::string_view name) const {
        return fmt::format("{}.{}", prefix_, name);
    }

    [[nodiscard]] Result<size_t> count(std::string_view name, uint64_t max) const {
        return checked(name, BV_TRY(file_.requiredUint(key(name))), max);
    }

    [[nodiscard]] Result<size_t> countOr(std::string_view name,
                                         uint64_t max,
                                         size_t fallback) const {
        const std::optional<uint64_t> value = BV_TRY(file_.findUint(key(name)));
        if (!value) {
            return fallback;
        }
        return checked(name, *value, max);
    }

    /// 0 where the key is absent, and where it says so.
    [[nodiscard]] Result<size_t> countOrNone(std::string_view name, uint64_t max) const {
        const uint64_t value = BV_TRY(file_.findUint(key(name))).value_or(0);
        return value == 0 ? Result<size_t>(size_t{0}) : checked(name, value, max);
    }

    /// A number, or an array with one number a layer: these must all be the same.
    [[nodiscard]] Result<size_t> countOfLayers(std::string_view name,
                                               uint64_t max,
                                               size_t n_layers) const {
        const GgufValue* value = file_.findValue(key(name));
        const auto* array = value != nullptr ? std::get_if<GgufArray>(&value->value) : nullptr;
        if (array == nullptr) {
            return count(name, max);
        }
        if (array->element_type != GgufType::I32 && array->element_type != GgufType::U32) {
            return fail(ErrorCode::Corrupt, "{}: {} is an array of {}", file_.name(), key(name),
                        ggufTypeName(array->element_type));
        }
        if (array->n_elements != n_layers) {
            return fail(ErrorCode::Corrupt, "{}: {} has {} values for {} layers", file_.name(),
                        key(name), array->n_elements, n_layers);
        }
        std::vector<uint32_t> values(n_layers);
        std::memcpy(values.data(), array->bytes.data(), n_layers * sizeof(uint32_t));
        for (const uint32_t element : values) {
            if (element != values[0]) {
                return fail(ErrorCode::Unsupported, "{}: {} differs between layers", file_.name(),
                            key(name));
            }
        }
        return checked(name, values[0], max);
    }

    [[nodiscard]] Result<double> floatOr(std::string_view name, double fallback) const {
        return BV_TRY(file_.findFloat(key(name))).value_or(fallback);
    }

    [[nodiscard]] Result<std::string_view> textOr(std::string_view name,
                                                  std::string_view fallback) const {
        return BV_TRY(file_.findString(key(name))).value_or(fallback);
    }

    /// Refuses a feature that is on.
    [[nodiscard]] Result<void> refuse(std::string_view name, const char* what) const {
        if (BV_TRY(file_.findUint(key(name))).value_or(0) != 0) {
            return fail(ErrorCode::Unsupported, "{}: {} ({}) is not supported yet", file_.name(),
                        what, key(name));
        }
        return {};
    }

  private:
    [[nodiscard]] Result<size_t> checked(std::string_view name,
                                         uint64_t value,
                                         uint64_t max) const {
        if (value == 0 || value > max) {
            return fail(ErrorCode::Corrupt, "{}: {} is {}, expected 1 to {}", file_.name(),
                        key(name), value, max);
        }
        return static_cast<size_t>(value);
    }

    const GgufFile& file_;
    std::string_view prefix_;
};

}  // namespace belvedere::inference
