// SPDX-License-Identifier: Apache-2.0
#include "inference/format/gguf_split.h"

#include "inference/format/gguf.h"

namespace belvedere::inference {
namespace {

constexpr size_t kDigits = 5;
constexpr std::string_view kMiddle = "-of-";
constexpr std::string_view kEnd = ".gguf";

std::optional<size_t> fiveDigits(std::string_view text) {
    size_t number = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') {
            return std::nullopt;
        }
        number = number * 10 + static_cast<size_t>(c - '0');
    }
    return number;
}

/// split.no and split.count must be those of the name.
Result<void> checkPart(const GgufFile& file, const SplitName& name) {
    const uint64_t no = BV_TRY(file.requiredUint("split.no"));
    const uint64_t count = BV_TRY(file.requiredUint("split.count"));
    if (no != name.part - 1 || count != name.n_parts) {
        return fail(ErrorCode::Corrupt,
                    "{}: expected split.no {} and split.count {}, found {} and {}", file.name(),
                    name.part - 1, name.n_parts, no, count);
    }
    return {};
}

}  // namespace

std::string SplitName::pathOf(size_t of_part) const {
    return fmt::format("{}-{:05}-of-{:05}.gguf", stem, of_part, n_parts);
}

std::optional<SplitName> parseSplitName(const std::string& path) {
    constexpr size_t kTail = 1 + kDigits + kMiddle.size() + kDigits + kEnd.size();
    if (path.size() <= kTail) {
        return std::nullopt;
    }
    const std::string_view tail = std::string_view(path).substr(path.size() - kTail);
    const auto part = fiveDigits(tail.substr(1, kDigits));
    const auto n_parts = fiveDigits(tail.substr(1 + kDigits + kMiddle.size(), kDigits));
    if (tail[0] != '-' || tail.substr(1 + kDigits, kMiddle.size()) != kMiddle ||
        !tail.ends_with(kEnd) || !part || !n_parts || *part == 0 || *part > *n_parts) {
        return std::nullopt;
    }
    return SplitName{path.substr(0, path.size() - kTail), *part, *n_parts};
}

Result<GgufFile> GgufFile::open(const std::string& path, const GgufLimits& limits) {
    GgufFile file = BV_TRY(openOne(path, limits));
    if (BV_TRY(file.findUint("split.count")).value_or(0) <= 1) {
        return file;
    }
    std::optional<SplitName> name = parseSplitName(path);
    if (!name) {
        return fail(ErrorCode::Corrupt,
                    "{}: a part of a split model, whose name must end in -00001-of-0000N.gguf",
                    path);
    }
    if (name->part != 1) {
        name->part = 1;
        file = BV_TRY(openOne(name->pathOf(1), limits));
    }
    BV_TRY(checkPart(file, *name));
    BV_TRY(file.addParts(*name, limits));
    return file;
}

Result<void> GgufFile::addParts(SplitName name, const GgufLimits& limits) {
    for (name.part = 2; name.part <= name.n_parts; ++name.part) {
        GgufFile part = BV_TRY(openOne(name.pathOf(name.part), limits));
        BV_TRY(checkPart(part, name));
        file_bytes_ += part.file_bytes_;
        for (const ModelTensor& tensor : part.tensors_) {
            if (!tensor_index_.emplace(tensor.name, tensors_.size()).second) {
                return fail(ErrorCode::Corrupt, "{}: tensor {} is in another part too", part.name_,
                            tensor.name);
            }
            tensors_.push_back(tensor);
        }
        if (tensors_.size() > limits.max_tensors) {
            return fail(ErrorCode::Corrupt, "{}: more than {} tensors in all parts", name_,
                        limits.max_tensors);
        }
        more_mappings_.push_back(std::move(part.mapping_));
    }
    const auto n_tensors = BV_TRY(findUint("split.tensors.count"));
    if (n_tensors && *n_tensors != tensors_.size()) {
        return fail(ErrorCode::Corrupt, "{}: split.tensors.count: expected {}, found {} tensors",
                    name_, *n_tensors, tensors_.size());
    }
    return {};
}

}  // namespace belvedere::inference
