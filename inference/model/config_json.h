// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads keys of a config.json, each checked against a type and a range; an error names the file,
// the key, what was expected and what was found. null counts as absent. Does not own. Any thread.
//
//     const ConfigJson config(json, "m3/config.json");
//     const size_t n_layers = BV_TRY(config.count("num_hidden_layers", kMaxLayers));

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/base/result.h"

namespace belvedere::inference {

class ConfigJson {
  public:
    /// `where`: the path of the object inside the file, "" or "text_config.".
    ConfigJson(const nlohmann::json& object, std::string file, std::string where = {})
        : object_(object), file_(std::move(file)), where_(std::move(where)) {}

    [[nodiscard]] const std::string& file() const { return file_; }

    /// With its path, for messages.
    [[nodiscard]] std::string path(const char* key) const { return where_ + key; }

    [[nodiscard]] bool has(const char* key) const { return find(key) != nullptr; }

    // Errors: Corrupt where the key is absent, of another type or out of range.
    [[nodiscard]] Result<size_t> count(const char* key, uint64_t max) const;
    [[nodiscard]] Result<double> number(const char* key) const;
    [[nodiscard]] Result<bool> flag(const char* key) const;
    [[nodiscard]] Result<std::string> text(const char* key) const;
    [[nodiscard]] Result<ConfigJson> object(const char* key) const;

    // nullopt where the key is absent. Errors: Corrupt, as above.
    /// From 1.
    [[nodiscard]] Result<std::optional<size_t>> findCount(const char* key, uint64_t max) const;
    /// From 0.
    [[nodiscard]] Result<std::optional<size_t>> findUint(const char* key, uint64_t max) const;
    [[nodiscard]] Result<std::optional<double>> findNumber(const char* key) const;
    [[nodiscard]] Result<std::optional<bool>> findFlag(const char* key) const;
    [[nodiscard]] Result<std::optional<std::string>> findText(const char* key) const;
    [[nodiscard]] Result<std::optional<ConfigJson>> findObject(const char* key) const;
    /// A list of n numbers 0 or 1. Errors: Corrupt.
    [[nodiscard]] Result<std::optional<std::vector<bool>>> findSwitches(const char* key,
                                                                        size_t n) const;
    /// A list of n texts, each one of two: true for the second. Errors: Corrupt, Unsupported for
    /// another text.
    [[nodiscard]] Result<std::optional<std::vector<bool>>> findChoices(const char* key,
                                                                       size_t n,
                                                                       const char* off,
                                                                       const char* on) const;
    /// A number or a list of numbers from 0, each below `end`; empty where the key is absent.
    [[nodiscard]] Result<std::vector<size_t>> findUints(const char* key, uint64_t end) const;

    /// Errors: Unsupported where the key is there and holds another text.
    [[nodiscard]] Result<void> textIsOr(const char* key, const char* expected) const;
    [[nodiscard]] Result<void> flagIsOr(const char* key, bool expected) const;

    /// Corrupt: "FILE: KEY: expected a number, found "x"".
    [[nodiscard]] tl::unexpected<Error> mismatch(const char* key,
                                                 const std::string& expected) const;

  private:
    [[nodiscard]] const nlohmann::json* find(const char* key) const;
    [[nodiscard]] Result<const nlohmann::json*> findList(const char* key, size_t n) const;

    template <class T>
    [[nodiscard]] Result<T> required(const char* key, Result<std::optional<T>> found) const;

    const nlohmann::json& object_;
    std::string file_;
    std::string where_;
};

}  // namespace belvedere::inference
