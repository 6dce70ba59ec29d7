// SPDX-License-Identifier: Apache-2.0
#include "inference/format/gguf_reader.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "inference/format/printable.h"

namespace belvedere::inference {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint64_t kMaxNameBytes = 63;   // of a tensor
constexpr uint32_t kMaxDims = 4;
/// Smallest possible entries: an empty key with a one-byte value; a tensor info without dimensions.
constexpr uint64_t kMinKeyBytes = 8 + 4 + 1;
constexpr uint64_t kMinTensorInfoBytes = 8 + 4 + 4 + 8;

/// 0 for types without a fixed size.
size_t fixedBytes(GgufType type) {
    switch (type) {
        case GgufType::U8:
        case GgufType::I8:
        case GgufType::Bool:
            return 1;
        case GgufType::U16:
        case GgufType::I16:
            return 2;
        case GgufType::U32:
        case GgufType::I32:
        case GgufType::F32:
            return 4;
        case GgufType::U64:
        case GgufType::I64:
        case GgufType::F64:
            return 8;
        case GgufType::String:
        case GgufType::Array:
            return 0;
    }
    return 0;
}

}  // namespace

template <class T>
Result<T> GgufReader::read(const char* what) {
    const std::optional<T> value = cursor_.read<T>();
    if (!value) {
        return fail(ErrorCode::Corrupt, "the file ends at byte {} inside {}", bytes_.size(), what);
    }
    return *value;
}

Result<std::string_view> GgufReader::readString(const char* what, uint64_t max_bytes) {
    const size_t at = cursor_.position();
    const auto n_bytes = BV_TRY(read<uint64_t>(what));
    if (n_bytes > max_bytes) {
        return fail(ErrorCode::Corrupt, "{} at byte {} has {} bytes, more than {}", what, at,
                    n_bytes, max_bytes);
    }
    const auto bytes = cursor_.take(n_bytes);
    if (!bytes) {
        return fail(ErrorCode::Corrupt, "the file ends inside {} at byte {}", what, at);
    }
    return asText(*bytes);
}

Result<void> GgufReader::run() {
    BV_TRY(readHeader());
    BV_TRY(readMetadata());
    BV_TRY(readAlignment());
    BV_TRY(readTensorInfos());
    return placeTensors();
}

Result<void> GgufReader::readHeader() {
    const std::optional<uint32_t> magic = cursor_.read<uint32_t>();
    if (!magic || *magic != kMagic) {
        if (asText(bytes_.first(std::min<size_t>(bytes_.size(), 8))) == "version ") {
            return fail(ErrorCode::Corrupt,
                        "this is a Git LFS pointer, not the model: fetch the real file");
        }
        return fail(ErrorCode::Corrupt, "not a GGUF file");
    }
    const auto version = BV_TRY(read<uint32_t>("the version"));
    if ((version & 0xFFFFU) == 0 && version != 0) {
        return fail(ErrorCode::Unsupported, "a big-endian GGUF: convert it to little-endian");
    }
    if (version != 2 && version != 3) {
        return fail(ErrorCode::Unsupported, "GGUF version {}: only 2 and 3 are supported", version);
    }
    n_tensors_ = BV_TRY(read<uint64_t>("the tensor count"));
    n_keys_ = BV_TRY(read<uint64_t>("the key count"));
    if (n_keys_ > limits_.max_keys || n_keys_ > cursor_.remaining() / kMinKeyBytes) {
        return fail(ErrorCode::Corrupt, "{} metadata keys in a file of {} bytes", n_keys_,
                    bytes_.size());
    }
    if (n_tensors_ > limits_.max_tensors ||
        n_tensors_ > cursor_.remaining() / kMinTensorInfoBytes) {
        return fail(ErrorCode::Corrupt, "{} tensors in a file of {} bytes", n_tensors_,
                    bytes_.size());
    }
    return {};
}

Result<void> GgufReader::readMetadata() {
    for (uint64_t i = 0; i < n_keys_; ++i) {
        const auto key = BV_TRY(readString("a metadata key", limits_.max_key_bytes));
        if (key.empty() || key.find('\0') != std::string_view::npos) {
            return fail(ErrorCode::Corrupt, "metadata key {} is empty or holds a zero byte", i);
        }
        const auto type = BV_TRY(read<uint32_t>("a metadata type"));
        GgufValue value = BV_TRY(readValue(key, type));
        if (!file_.values_.emplace(key, std::move(value)).second) {
            return fail(ErrorCode::Corrupt, "metadata key {} occurs twice", printable(key));
        }
        file_.keys_.push_back(key);
        if (cursor_.position() > limits_.max_metadata_bytes) {
            return fail(ErrorCode::Corrupt, "more than {} bytes of metadata",
                        limits_.max_metadata_bytes);
        }
    }
    return {};
}

Result<GgufValue> GgufReader::readValue(std::string_view key, uint32_t type) {
    if (type > static_cast<uint32_t>(GgufType::F64)) {
        return fail(ErrorCode::Corrupt, "metadata key {} has the unknown type {}", printable(key),
                    type);
    }
    const auto known = static_cast<GgufType>(type);
    if (known == GgufType::String) {
        return GgufValue{known, BV_TRY(readString("a metadata string", limits_.max_string_bytes))};
    }
    if (known == GgufType::Array) {
        return GgufValue{known, BV_TRY(readArray(key))};
    }
    return readNumber(key, known);
}

Result<GgufValue> GgufReader::readNumber(std::string_view key, GgufType type) {
    constexpr const char* kWhat = "a metadata value";
    switch (type) {
        case GgufType::U8:
            return GgufValue{type, uint64_t{BV_TRY(read<uint8_t>(kWhat))}};
        case GgufType::U16:
            return GgufValue{type, uint64_t{BV_TRY(read<uint16_t>(kWhat))}};
        case GgufType::U32:
            return GgufValue{type, uint64_t{BV_TRY(read<uint32_t>(kWhat))}};
        case GgufType::U64:
            return GgufValue{type, BV_TRY(read<uint64_t>(kWhat))};
        case GgufType::I8:
            return GgufValue{type, int64_t{BV_TRY(read<int8_t>(kWhat))}};
        case GgufType::I16:
            return GgufValue{type, int64_t{BV_TRY(read<int16_t>(kWhat))}};
        case GgufType::I32:
            return GgufValue{type, int64_t{BV_TRY(read<int32_t>(kWhat))}};
        case GgufType::I64:
            return GgufValue{type, BV_TRY(read<int64_t>(kWhat))};
        case GgufType::F32:
            return GgufValue{type, static_cast<double>(BV_TRY(read<float>(kWhat)))};
        case GgufType::F64:
            return GgufValue{type, BV_TRY(read<double>(kWhat))};
        case GgufType::Bool: {
            const auto value = BV_TRY(read<uint8_t>(kWhat));
            if (value > 1) {
                return fail(ErrorCode::Corrupt, "metadata key {}: {} is no boolean", printable(key),
                            value);
            }
            return GgufValue{type, value == 1};
        }
        case GgufType::String:
        case GgufType::Array:
            break;
    }
    return fail(ErrorCode::Internal, "metadata key {} is no number", printable(key));
}

Result<GgufArray> GgufReader::readArray(std::string_view key) {
    const auto type = BV_TRY(read<uint32_t>("an array type"));
    const auto n_elements = BV_TRY(read<uint64_t>("an array count"));
    if (type > static_cast<uint32_t>(GgufType::F64)) {
        return fail(ErrorCode::Corrupt, "metadata key {}: array of the unknown type {}",
                    printable(key), type);
    }
    GgufArray array;
    array.element_type = static_cast<GgufType>(type);
    if (array.element_type == GgufType::Array) {
        return fail(ErrorCode::Unsupported, "metadata key {}: an array of arrays", printable(key));
    }
    const size_t element_bytes = fixedBytes(array.element_type);
    const uint64_t min_bytes = element_bytes > 0 ? element_bytes : sizeof(uint64_t);
    // Dividing keeps the product below the remaining bytes, so it cannot wrap.
    if (n_elements > limits_.max_array_elements || n_elements > cursor_.remaining() / min_bytes) {
        return fail(ErrorCode::Corrupt,
                    "metadata key {}: array of {} elements with {} bytes left in the file",
                    printable(key), n_elements, cursor_.remaining());
    }
    array.n_elements = static_cast<size_t>(n_elements);
    if (array.element_type != GgufType::String) {
        array.bytes = *cursor_.take(n_elements * element_bytes);
        return array;
    }
    array.strings.reserve(array.n_elements);
    for (size_t i = 0; i < array.n_elements; ++i) {
        array.strings.push_back(BV_TRY(readString("a metadata string", limits_.max_string_bytes)));
    }
    return array;
}

Result<void> GgufReader::readAlignment() {
    const GgufValue* value = file_.findValue("general.alignment");
    if (value == nullptr) {
        return {};
    }
    if (value->type != GgufType::U32) {
        return fail(ErrorCode::Corrupt, "general.alignment is {}, not u32",
                    ggufTypeName(value->type));
    }
    alignment_ = std::get<uint64_t>(value->value);
    if (!std::has_single_bit(alignment_) || alignment_ > limits_.max_alignment) {
        return fail(ErrorCode::Corrupt, "general.alignment {} is no power of two up to {}",
                    alignment_, limits_.max_alignment);
    }
    return {};
}

Result<void> GgufReader::readTensorInfos() {
    file_.tensors_.reserve(static_cast<size_t>(n_tensors_));
    placed_.reserve(static_cast<size_t>(n_tensors_));
    for (uint64_t i = 0; i < n_tensors_; ++i) {
        BV_TRY(readTensorInfo(i));
    }
    return {};
}

Result<void> GgufReader::readTensorInfo(uint64_t index) {
    ModelTensor tensor;
    tensor.name = BV_TRY(readString("a tensor name", kMaxNameBytes));
    if (tensor.name.empty() || tensor.name.find('\0') != std::string_view::npos) {
        return fail(ErrorCode::Corrupt, "the name of tensor {} is empty or holds a zero byte",
                    index);
    }
    tensor.is_vision = tensor.name.starts_with("v.") || tensor.name.starts_with("mm.");
    const std::string name = printable(tensor.name);
    const auto n_dims = BV_TRY(read<uint32_t>("a tensor's number of dimensions"));
    if (n_dims == 0 || n_dims > kMaxDims) {
        return fail(ErrorCode::Corrupt, "tensor {} has {} dimensions", name, n_dims);
    }
    tensor.n_dims = n_dims;
    for (uint32_t d = 0; d < n_dims; ++d) {
        tensor.dims[d] = BV_TRY(read<uint64_t>("a tensor's shape"));
        if (tensor.dims[d] == 0) {
            return fail(ErrorCode::Corrupt, "tensor {}: dimension {} is 0", name, d);
        }
    }
    const auto type = BV_TRY(read<uint32_t>("a tensor's type"));
    tensor.type = findTensorType(type);
    if (tensor.type == nullptr) {
        return fail(ErrorCode::Unsupported, "tensor {} has the unknown type {}", name, type);
    }
    PlacedTensor placed;
    placed.offset = BV_TRY(read<uint64_t>("a tensor's offset"));
    if (tensor.dims[0] % tensor.type->block_elements != 0) {
        return fail(ErrorCode::Corrupt,
                    "tensor {}: rows of {} elements do not fill blocks of {} ({})", name,
                    tensor.dims[0], tensor.type->block_elements, tensor.type->name);
    }
    std::optional<uint64_t> n_bytes =
        checkedMul(tensor.dims[0] / tensor.type->block_elements, tensor.type->block_bytes);
    std::optional<uint64_t> n_elements = tensor.dims[0];
    for (size_t d = 1; d < kMaxDims; ++d) {
        n_bytes = n_bytes ? checkedMul(*n_bytes, tensor.dims[d]) : std::nullopt;
        n_elements = n_elements ? checkedMul(*n_elements, tensor.dims[d]) : std::nullopt;
    }
    if (!n_bytes || !n_elements) {
        return fail(ErrorCode::Corrupt, "tensor {}: the shape {} x {} x {} x {} overflows", name,
                    tensor.dims[0], tensor.dims[1], tensor.dims[2], tensor.dims[3]);
    }
    placed.n_bytes = *n_bytes;
    if (!file_.tensor_index_.emplace(tensor.name, file_.tensors_.size()).second) {
        return fail(ErrorCode::Corrupt, "tensor {} occurs twice", name);
    }
    file_.tensors_.push_back(tensor);
    placed_.push_back(placed);
    return {};
}

Result<void> GgufReader::placeTensors() {
    if (file_.tensors_.empty()) {
        return {};  // a vocabulary: nothing follows the metadata, not even padding
    }
    const std::optional<uint64_t> data_begin = checkedAlign(cursor_.position(), alignment_);
    if (!data_begin || *data_begin > bytes_.size()) {
        return fail(ErrorCode::Corrupt, "the file ends at byte {} before its tensor data",
                    bytes_.size());
    }
    const uint64_t data_bytes = bytes_.size() - *data_begin;
    for (size_t i = 0; i < placed_.size(); ++i) {
        ModelTensor& tensor = file_.tensors_[i];
        const PlacedTensor& placed = placed_[i];
        if (placed.offset % alignment_ != 0) {
            return fail(ErrorCode::Corrupt,
                        "tensor {}: offset {} is no multiple of the alignment {}",
                        printable(tensor.name), placed.offset, alignment_);
        }
        if (placed.offset > data_bytes || placed.n_bytes > data_bytes - placed.offset) {
            return fail(
                ErrorCode::Corrupt,
                "tensor {}: {} bytes at offset {} of {} bytes of data: the file is truncated",
                printable(tensor.name), placed.n_bytes, placed.offset, data_bytes);
        }
        tensor.bytes = bytes_.subspan(static_cast<size_t>(*data_begin + placed.offset),
                                      static_cast<size_t>(placed.n_bytes));
    }
    return checkOverlap(*data_begin);
}

Result<void> GgufReader::checkOverlap(uint64_t data_begin) const {
    std::vector<size_t> order(placed_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return placed_[a].offset < placed_[b].offset; });
    for (size_t i = 1; i < order.size(); ++i) {
        const PlacedTensor& before = placed_[order[i - 1]];
        const PlacedTensor& after = placed_[order[i]];
        if (before.offset + before.n_bytes > after.offset) {
            return fail(ErrorCode::Corrupt, "tensors {} and {} overlap at byte {}",
                        printable(file_.tensors_[order[i - 1]].name),
                        printable(file_.tensors_[order[i]].name), data_begin + after.offset);
        }
    }
    return {};
}

}  // namespace belvedere::inference
