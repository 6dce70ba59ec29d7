// SPDX-License-Identifier: Apache-2.0
#include "inference/format/gguf.h"

#include "inference/format/gguf_reader.h"

namespace belvedere::inference {

const char* ggufTypeName(GgufType type) {
    constexpr const char* kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                      "bool", "string", "array", "u64", "i64", "f64"};
    return kNames[static_cast<size_t>(type)];
}

Result<GgufFile> GgufFile::openOne(const std::string& path, const GgufLimits& limits) {
    std::unique_ptr<MappedFile> mapping = BV_TRY(MappedFile::open(path));
    GgufFile file = BV_TRY(parseOne(mapping->bytes(), path, limits));
    file.mapping_ = std::move(mapping);
    return file;
}

Result<void> GgufFile::checkWhole() const {
    if (mapping_ != nullptr) {
        BV_TRY(mapping_->checkWhole());
    }
    for (const std::unique_ptr<MappedFile>& mapping : more_mappings_) {
        BV_TRY(mapping->checkWhole());
    }
    return {};
}

Result<GgufFile> GgufFile::parse(std::span<const std::byte> bytes,
                                 const std::string& name,
                                 const GgufLimits& limits) {
    GgufFile file = BV_TRY(parseOne(bytes, name, limits));
    const uint64_t n_parts = BV_TRY(file.findUint("split.count")).value_or(0);
    if (n_parts > 1) {
        return fail(ErrorCode::Unsupported, "{}: one of {} parts of a split model", name, n_parts);
    }
    return file;
}

Result<GgufFile> GgufFile::parseOne(std::span<const std::byte> bytes,
                                    const std::string& name,
                                    const GgufLimits& limits) {
    GgufFile file;
    file.name_ = name;
    file.file_bytes_ = bytes.size();
    Result<void> read = GgufReader(bytes, limits, file).run();
    if (!read.has_value()) {
        return failWithContext(std::move(read).error(), name);
    }
    return file;
}

const ModelTensor* GgufFile::findTensor(std::string_view name) const {
    const auto found = tensor_index_.find(name);
    return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

const GgufValue* GgufFile::findValue(std::string_view key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
}

Result<std::optional<uint64_t>> GgufFile::findUint(std::string_view key) const {
    const GgufValue* value = findValue(key);
    if (value == nullptr) {
        return std::optional<uint64_t>();
    }
    if (const auto* number = std::get_if<uint64_t>(&value->value)) {
        return std::optional(*number);
    }
    const auto* number = std::get_if<int64_t>(&value->value);
    if (number == nullptr || *number < 0) {
        return fail(ErrorCode::Corrupt, "{}: {} is {}, not a number from 0", name_, key,
                    number != nullptr ? "negative" : ggufTypeName(value->type));
    }
    return std::optional(static_cast<uint64_t>(*number));
}

Result<std::optional<double>> GgufFile::findFloat(std::string_view key) const {
    const GgufValue* value = findValue(key);
    if (value == nullptr) {
        return std::optional<double>();
    }
    if (const auto* number = std::get_if<double>(&value->value)) {
        return std::optional(*number);
    }
    return fail(ErrorCode::Corrupt, "{}: {} is {}, not a float", name_, key,
                ggufTypeName(value->type));
}

Result<std::optional<bool>> GgufFile::findBool(std::string_view key) const {
    const GgufValue* value = findValue(key);
    if (value == nullptr) {
        return std::optional<bool>();
    }
    if (const auto* flag = std::get_if<bool>(&value->value)) {
        return std::optional(*flag);
    }
    return fail(ErrorCode::Corrupt, "{}: {} is {}, not a boolean", name_, key,
                ggufTypeName(value->type));
}

Result<std::optional<std::string_view>> GgufFile::findString(std::string_view key) const {
    const GgufValue* value = findValue(key);
    if (value == nullptr) {
        return std::optional<std::string_view>();
    }
    if (const auto* text = std::get_if<std::string_view>(&value->value)) {
        return std::optional(*text);
    }
    return fail(ErrorCode::Corrupt, "{}: {} is {}, not a string", name_, key,
                ggufTypeName(value->type));
}

Result<const GgufArray*> GgufFile::findArray(std::string_view key, GgufType element_type) const {
    const GgufValue* value = findValue(key);
    if (value == nullptr) {
        return nullptr;
    }
    const auto* array = std::get_if<GgufArray>(&value->value);
    if (array == nullptr) {
        return fail(ErrorCode::Corrupt, "{}: {} is {}, not an array", name_, key,
                    ggufTypeName(value->type));
    }
    if (array->element_type != element_type) {
        return fail(ErrorCode::Corrupt, "{}: {} is an array of {}, not of {}", name_, key,
                    ggufTypeName(array->element_type), ggufTypeName(element_type));
    }
    return array;
}

Result<uint64_t> GgufFile::requiredUint(std::string_view key) const {
    const std::optional<uint64_t> value = BV_TRY(findUint(key));
    if (!value) {
        return fail(ErrorCode::Corrupt, "{}: {} is missing", name_, key);
    }
    return *value;
}

Result<double> GgufFile::requiredFloat(std::string_view key) const {
    const std::optional<double> value = BV_TRY(findFloat(key));
    if (!value) {
        return fail(ErrorCode::Corrupt, "{}: {} is missing", name_, key);
    }
    return *value;
}

Result<std::string_view> GgufFile::requiredString(std::string_view key) const {
    const std::optional<std::string_view> value = BV_TRY(findString(key));
    if (!value) {
        return fail(ErrorCode::Corrupt, "{}: {} is missing", name_, key);
    }
    return *value;
}

}  // namespace belvedere::inference
