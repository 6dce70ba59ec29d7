// SPDX-License-Identifier: Apache-2.0
#include "inference/format/safetensors.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "inference/format/byte_cursor.h"
#include "inference/format/printable.h"
#include "inference/format/unique_json.h"

namespace belvedere::inference {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMaxEntries = 1'000'000;
constexpr int kMaxDepth = 4;
constexpr size_t kMaxTensorDims = 8;

struct DtypeInfo {
    const char* name;
    uint64_t bits;
};

constexpr DtypeInfo kDtypes[] = {
    {"BOOL", 8},    {"U8", 8},      {"I8", 8},          {"U16", 16},        {"I16", 16},
    {"F16", 16},    {"BF16", 16},   {"U32", 32},        {"I32", 32},        {"F32", 32},
    {"U64", 64},    {"I64", 64},    {"F64", 64},        {"C64", 64},        {"F8_E5M2", 8},
    {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F6_E2M3", 6},
    {"F6_E3M2", 6}, {"F4", 4},
};

std::optional<uint64_t> dtypeBits(std::string_view name) {
    for (const DtypeInfo& info : kDtypes) {
        if (info.name == name) {
            return info.bits;
        }
    }
    return std::nullopt;
}

Result<std::vector<uint64_t>> readUints(const Json& entry,
                                        const char* field,
                                        const std::string& name) {
    const auto found = entry.find(field);
    if (found == entry.end() || !found->is_array() || found->size() > kMaxTensorDims) {
        return fail(ErrorCode::Corrupt, "tensor {}: {} is no list of at most {} numbers", name,
                    field, kMaxTensorDims);
    }
    std::vector<uint64_t> values;
    for (const Json& value : *found) {
        if (!value.is_number_unsigned()) {
            return fail(ErrorCode::Corrupt,
                        "tensor {}: {} holds something else than numbers from 0", name, field);
        }
        values.push_back(value.get<uint64_t>());
    }
    return values;
}

struct Placed {
    SafetensorsEntry entry;
    uint64_t begin = 0;
    uint64_t end = 0;
};

Result<Placed> readEntry(const std::string& name, const Json& json) {
    if (!json.is_object()) {
        return fail(ErrorCode::Corrupt, "tensor {} is no JSON object", name);
    }
    Placed placed;
    placed.entry.name = name;
    const auto dtype = json.find("dtype");
    if (dtype == json.end() || !dtype->is_string()) {
        return fail(ErrorCode::Corrupt, "tensor {} has no dtype", name);
    }
    placed.entry.dtype = dtype->get<std::string>();
    const std::optional<uint64_t> bits = dtypeBits(placed.entry.dtype);
    if (!bits) {
        return fail(ErrorCode::Unsupported, "tensor {} has the unknown dtype {}", name,
                    printable(placed.entry.dtype));
    }
    placed.entry.shape = BV_TRY(readUints(json, "shape", name));
    const std::vector<uint64_t> offsets = BV_TRY(readUints(json, "data_offsets", name));
    if (offsets.size() != 2 || offsets[1] < offsets[0]) {
        return fail(ErrorCode::Corrupt, "tensor {}: data_offsets are no range", name);
    }
    placed.begin = offsets[0];
    placed.end = offsets[1];
    std::optional<uint64_t> n_bits = *bits;
    for (const uint64_t dim : placed.entry.shape) {
        n_bits = n_bits ? checkedMul(*n_bits, dim) : std::nullopt;
    }
    if (!n_bits || *n_bits % 8 != 0 || *n_bits / 8 != placed.end - placed.begin) {
        return fail(ErrorCode::Corrupt, "tensor {}: its shape does not fill its {} bytes", name,
                    placed.end - placed.begin);
    }
    return placed;
}

Result<std::string_view> headerText(std::span<const std::byte> bytes) {
    if (asText(bytes.first(std::min<size_t>(bytes.size(), 8))) == "version ") {
        return fail(ErrorCode::Corrupt,
                    "this is a Git LFS pointer, not the tensors: fetch the real file");
    }
    ByteCursor cursor(bytes);
    const std::optional<uint64_t> n_header = cursor.read<uint64_t>();
    if (!n_header || *n_header > kMaxHeaderBytes || *n_header > cursor.remaining()) {
        return fail(ErrorCode::Corrupt, "not a safetensors file, or cut off inside its header");
    }
    const std::string_view text = asText(*cursor.take(*n_header));
    if (!text.starts_with('{')) {
        return fail(ErrorCode::Corrupt, "not a safetensors file: its header is no JSON object");
    }
    return text;
}

Result<std::vector<Placed>> readEntries(std::string_view text) {
    const Json header = BV_TRY(parseUniqueJson(text, "the header", kMaxDepth));
    if (header.size() > kMaxEntries) {
        return fail(ErrorCode::Corrupt, "the header has {} entries", header.size());
    }
    std::vector<Placed> entries;
    for (const auto& [name, json] : header.items()) {
        if (name == "__metadata__") {
            continue;
        }
        if (std::any_of(name.begin(), name.end(), [](char c) { return c >= 0 && c < ' '; })) {
            return fail(ErrorCode::Corrupt, "the name of tensor {} holds control characters",
                        printable(name));
        }
        entries.push_back(BV_TRY(readEntry(name, json)));
    }
    std::sort(entries.begin(), entries.end(), [](const Placed& a, const Placed& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
    return entries;
}

Result<std::vector<SafetensorsEntry>> readFile(std::span<const std::byte> bytes) {
    const std::string_view text = BV_TRY(headerText(bytes));
    const std::span<const std::byte> data = bytes.subspan(sizeof(uint64_t) + text.size());
    std::vector<SafetensorsEntry> entries;
    uint64_t covered = 0;
    for (Placed& placed : BV_TRY(readEntries(text))) {
        if (placed.begin != covered) {
            return fail(ErrorCode::Corrupt, "tensor {} begins at byte {} of the data, expected {}",
                        placed.entry.name, placed.begin, covered);
        }
        if (placed.end > data.size()) {
            return fail(ErrorCode::Corrupt, "tensor {} ends at byte {} of {}: {} bytes are missing",
                        placed.entry.name, placed.end, data.size(), placed.end - data.size());
        }
        covered = placed.end;
        placed.entry.bytes = data.subspan(static_cast<size_t>(placed.begin),
                                          static_cast<size_t>(placed.end - placed.begin));
        entries.push_back(std::move(placed.entry));
    }
    if (covered != data.size()) {
        return fail(ErrorCode::Corrupt, "{} bytes behind the last tensor", data.size() - covered);
    }
    return entries;
}

template <class Stored, class T>
std::vector<T> convert(const SafetensorsEntry& entry) {
    std::vector<T> values(static_cast<size_t>(entry.elementCount()));
    for (size_t i = 0; i < values.size(); ++i) {
        Stored value;
        std::memcpy(&value, entry.bytes.data() + i * sizeof(Stored), sizeof(Stored));
        values[i] = static_cast<T>(value);
    }
    return values;
}

}  // namespace

uint64_t SafetensorsEntry::elementCount() const {
    uint64_t n = 1;
    for (const uint64_t dim : shape) {
        n *= dim;
    }
    return n;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
    std::unique_ptr<MappedFile> mapping = BV_TRY(MappedFile::open(path));
    SafetensorsFile file = BV_TRY(parse(mapping->bytes(), path));
    file.mapping_ = std::move(mapping);
    return file;
}

Result<SafetensorsFile> SafetensorsFile::parse(std::span<const std::byte> bytes,
                                               const std::string& name) {
    SafetensorsFile file;
    file.name_ = name;
    Result<std::vector<SafetensorsEntry>> entries = readFile(bytes);
    if (!entries.has_value()) {
        return failWithContext(std::move(entries).error(), name);
    }
    file.entries_ = std::move(*entries);
    return file;
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const SafetensorsEntry& e) { return e.name == name; });
    return found == entries_.end() ? nullptr : &*found;
}

Result<std::vector<float>> SafetensorsFile::readF32(std::string_view name) const {
    const SafetensorsEntry* entry = find(name);
    if (entry == nullptr) {
        return fail(ErrorCode::NotFound, "{}: there is no tensor {}", name_, name);
    }
    if (entry->dtype != "F32") {
        return fail(ErrorCode::Unsupported, "{}: tensor {} is {}, not F32", name_, name,
                    entry->dtype);
    }
    return convert<float, float>(*entry);
}

Result<std::vector<int64_t>> SafetensorsFile::readInts(std::string_view name) const {
    const SafetensorsEntry* entry = find(name);
    if (entry == nullptr) {
        return fail(ErrorCode::NotFound, "{}: there is no tensor {}", name_, name);
    }
    if (entry->dtype == "I32") {
        return convert<int32_t, int64_t>(*entry);
    }
    if (entry->dtype == "I64") {
        return convert<int64_t, int64_t>(*entry);
    }
    return fail(ErrorCode::Unsupported, "{}: tensor {} is {}, not I32 or I64", name_, name,
                entry->dtype);
}

}  // namespace belvedere::inference
