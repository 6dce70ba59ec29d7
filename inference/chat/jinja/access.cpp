// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "inference/chat/jinja/methods.h"
#include "inference/chat/jinja/operators.h"
#include "inference/chat/jinja/python_text.h"
#include "inference/chat/jinja/unicode.h"

namespace belvedere::inference::jinja {
namespace {

[[nodiscard]] Value noAttribute(Runtime& runtime, const Value& object, std::string_view name) {
    const std::string type =
        is<NoneType>(object) ? "None" : fmt::format("{} object", typeName(object));
    return runtime.heap.undefined(fmt::format("'{}' has no attribute '{}'", type, name));
}

/// A variable of the loop object; nullopt when it has none of that name.
[[nodiscard]] std::optional<Value> loopVariable(Runtime& runtime,
                                                const Loop& loop,
                                                std::string_view name) {
    const int64_t index0 = static_cast<int64_t>(loop.index0);
    const int64_t length = static_cast<int64_t>(loop.items->items.size());
    const std::pair<std::string_view, Value> variables[] = {
        {"index", index0 + 1},
        {"index0", index0},
        {"revindex", length - index0},
        {"revindex0", length - index0 - 1},
        {"first", index0 == 0},
        {"last", index0 + 1 == length},
        {"length", length},
        {"depth", static_cast<int64_t>(loop.loop_depth)},
        {"depth0", static_cast<int64_t>(loop.loop_depth) - 1},
    };
    for (const auto& [variable, value] : variables) {
        if (variable == name) {
            return value;
        }
    }
    if (name == "previtem") {
        return index0 > 0 ? loop.items->items[loop.index0 - 1]
                          : runtime.heap.undefined("there is no previous item");
    }
    if (name == "nextitem") {
        return index0 + 1 < length ? loop.items->items[loop.index0 + 1]
                                   : runtime.heap.undefined("there is no next item");
    }
    return std::nullopt;
}

/// Python's adjustment of a slice bound to [0, length] (or [-1, length - 1] for a negative step).
[[nodiscard]] int64_t clampBound(int64_t bound, int64_t length, bool is_backward) {
    if (bound < 0) {
        bound = bound < -length ? (is_backward ? -1 : 0) : bound + length;
        return bound < 0 ? -1 : bound;
    }
    return std::min(bound, is_backward ? length - 1 : length);
}

struct SliceRange {
    int64_t begin = 0;
    int64_t step = 1;
    size_t n_items = 0;
};

[[nodiscard]] Result<std::optional<int64_t>> sliceBound(const Value* value) {
    if (value == nullptr || is<NoneType>(*value)) {
        return std::optional<int64_t>();
    }
    if (const std::optional<int64_t> integer = asInteger(*value)) {
        return integer;
    }
    return typeError("slice indices must be integers or None, not {}", typeName(*value));
}

[[nodiscard]] Result<SliceRange> sliceRange(int64_t length,
                                            const Value* begin,
                                            const Value* end,
                                            const Value* step) {
    SliceRange range;
    range.step = BV_TRY(sliceBound(step)).value_or(1);
    if (range.step == 0) {
        return typeError("slice step cannot be zero");
    }
    const bool is_backward = range.step < 0;
    const std::optional<int64_t> wanted_begin = BV_TRY(sliceBound(begin));
    const std::optional<int64_t> wanted_end = BV_TRY(sliceBound(end));
    range.begin = wanted_begin.has_value() ? clampBound(*wanted_begin, length, is_backward)
                                           : (is_backward ? length - 1 : 0);
    const int64_t stop = wanted_end.has_value() ? clampBound(*wanted_end, length, is_backward)
                                                : (is_backward ? -1 : length);
    const int64_t distance = is_backward ? range.begin - stop : stop - range.begin;
    if (distance > 0) {
        const uint64_t stride = is_backward ? uint64_t{0} - static_cast<uint64_t>(range.step)
                                            : static_cast<uint64_t>(range.step);
        range.n_items = static_cast<size_t>((static_cast<uint64_t>(distance) - 1) / stride + 1);
    }
    return range;
}

[[nodiscard]] Value sliceOfText(Runtime& runtime, const Text& text, const SliceRange& range) {
    const std::string_view bytes = text.bytes();
    if (range.n_items == 0) {
        return Value(Text());
    }
    if (range.step == 1) {
        const size_t begin = offsetOfPoint(bytes, static_cast<size_t>(range.begin));
        const size_t end = begin + offsetOfPoint(bytes.substr(begin), range.n_items);
        return sliceText(runtime, text, begin, end);
    }
    std::vector<size_t> offsets;
    for (size_t at = 0; at < bytes.size();) {
        offsets.push_back(at);
        (void)nextPoint(bytes, at);
    }
    offsets.push_back(bytes.size());
    TextBuilder builder(&runtime.meter);
    for (size_t i = 0; i < range.n_items; ++i) {
        const size_t point =
            static_cast<size_t>(range.begin + static_cast<int64_t>(i) * range.step);
        builder.append(text, offsets[point], offsets[point + 1]);
    }
    return builder.finish(text.isMarkup());
}

[[nodiscard]] std::optional<Value> indexed(Runtime& runtime, const Value& object, int64_t index) {
    const Text* text = asText(object);
    const Sequence* sequence = asSequence(object);
    const bool is_indexable = sequence != nullptr && sequence->kind <= SequenceKind::Range;
    if (text == nullptr && !is_indexable) {
        return std::nullopt;
    }
    const int64_t length =
        static_cast<int64_t>(text != nullptr ? text->nPoints() : sequence->items.size());
    const int64_t place = index < 0 ? index + length : index;
    if (place < 0 || place >= length) {
        return std::nullopt;
    }
    if (text == nullptr) {
        return sequence->items[static_cast<size_t>(place)];
    }
    runtime.meter.spendBytes(text->isAscii() ? 0 : text->bytes().size());
    const std::string_view bytes = text->bytes();
    const size_t begin = text->isAscii() ? static_cast<size_t>(place)
                                         : offsetOfPoint(bytes, static_cast<size_t>(place));
    size_t end = begin;
    (void)nextPoint(bytes, end);
    return Value(sliceText(runtime, *text, begin, end));
}

}  // namespace

Result<Value> attributeOf(Runtime& runtime, const Value& object, std::string_view name) {
    if (const Undefined* undefined = std::get_if<Undefined>(&object)) {
        return undefinedError(*undefined);
    }
    if (const auto* space = std::get_if<std::shared_ptr<Namespace>>(&object)) {
        runtime.meter.spend((*space)->attributes.size() / 16);
        const Value* found = (*space)->find(name);
        return found == nullptr ? noAttribute(runtime, object, name) : *found;
    }
    if (const auto* loop = std::get_if<std::shared_ptr<const Loop>>(&object)) {
        if (std::optional<Value> found = loopVariable(runtime, **loop, name)) {
            return *std::move(found);
        }
        if (name == "changed") {
            return fail(ErrorCode::Unsupported, "loop.changed is not supported");
        }
    }
    switch (methodKind(object, name)) {
        case MethodKind::Callable:
            return runtime.heap.callable(BoundMethod{object, std::string(name)});
        case MethodKind::Forbidden:
            return runtime.heap.undefined(fmt::format(
                "access to attribute '{}' of '{}' object is unsafe", name, typeName(object)));
        case MethodKind::Unsupported:
            return fail(ErrorCode::Unsupported, "attribute '{}' of {} is not supported", name,
                        typeName(object));
        case MethodKind::None:
            break;
    }
    if (const Dict* dict = asDict(object)) {
        if (const Value* found = dict->find(name)) {
            return *found;
        }
    }
    return noAttribute(runtime, object, name);
}

Result<Value> itemOf(Runtime& runtime, const Value& object, const Value& index) {
    if (const Undefined* undefined = std::get_if<Undefined>(&object)) {
        return undefinedError(*undefined);
    }
    if (const Dict* dict = asDict(object)) {
        const Value* found =
            isHashable(index, runtime.meter) ? dict->find(index, runtime.meter) : nullptr;
        if (found != nullptr) {
            return *found;
        }
    } else if (const std::optional<int64_t> integer = asInteger(index)) {
        if (std::optional<Value> found = indexed(runtime, object, *integer)) {
            return *std::move(found);
        }
    }
    if (const Text* name = asText(index)) {
        return attributeOf(runtime, object, name->bytes());
    }
    std::string shown;
    BV_TRY(appendRepr(runtime, shown, index));
    return runtime.heap.undefined(
        fmt::format("{} object has no element {}", typeName(object), shown));
}

Result<Value> sliceOf(Runtime& runtime,
                      const Value& object,
                      const Value* begin,
                      const Value* end,
                      const Value* step) {
    if (const Undefined* undefined = std::get_if<Undefined>(&object)) {
        return undefinedError(*undefined);
    }
    const Text* text = asText(object);
    const Sequence* sequence = asSequence(object);
    if (text == nullptr && (sequence == nullptr || sequence->kind > SequenceKind::Range)) {
        return typeError("'{}' object cannot be sliced", typeName(object));
    }
    const size_t length = text != nullptr ? text->nPoints() : sequence->items.size();
    const SliceRange range = BV_TRY(sliceRange(static_cast<int64_t>(length), begin, end, step));
    if (text != nullptr) {
        const bool needs_offsets = range.step != 1;
        BV_TRY(runtime.reserve(text->bytes().size() * (needs_offsets ? sizeof(size_t) : 1)));
        return sliceOfText(runtime, *text, range);
    }
    BV_TRY(runtime.reserve(range.n_items * sizeof(Value)));
    std::vector<Value> items;
    items.reserve(range.n_items);
    for (size_t i = 0; i < range.n_items; ++i) {
        items.push_back(
            sequence
                ->items[static_cast<size_t>(range.begin + static_cast<int64_t>(i) * range.step)]);
    }
    return runtime.heap.sequence(sequence->kind, std::move(items));
}

}  // namespace belvedere::inference::jinja
