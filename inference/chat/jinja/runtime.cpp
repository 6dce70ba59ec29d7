// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/jinja/runtime.h"

#include <algorithm>

#include "inference/chat/jinja/unicode.h"

namespace belvedere::inference::jinja {

Result<void> Runtime::check() const {
    if (meter.outOfSteps()) {
        return fail(ErrorCode::Corrupt, "the template runs longer than {} steps", limits.max_steps);
    }
    if (meter.outOfMemory()) {
        return fail(ErrorCode::Corrupt, "the template's values need more than {} bytes",
                    limits.max_value_bytes);
    }
    return {};
}

Result<void> Runtime::reserve(size_t n_bytes) {
    if (!meter.hasRoomFor(n_bytes)) {
        return fail(ErrorCode::Corrupt, "the template's values need more than {} bytes",
                    limits.max_value_bytes);
    }
    meter.spendBytes(n_bytes);
    return check();
}

tl::unexpected<Error> undefinedError(const Undefined& value) {
    return fail(ErrorCode::InvalidArgument, "{}", *value.message);
}

Result<std::vector<const Value*>> bindArguments(std::string_view callee,
                                                const CallArguments& arguments,
                                                std::initializer_list<std::string_view> parameters,
                                                size_t n_required) {
    if (arguments.positional.size() > parameters.size()) {
        return typeError("{} takes at most {} arguments, {} given", callee, parameters.size(),
                         arguments.positional.size());
    }
    std::vector<const Value*> bound(parameters.size(), nullptr);
    for (size_t i = 0; i < arguments.positional.size(); ++i) {
        bound[i] = &arguments.positional[i];
    }
    for (const auto& [name, value] : arguments.named) {
        const auto* found = std::ranges::find(parameters, std::string_view(name));
        if (found == parameters.end()) {
            return typeError("{} has no argument '{}'", callee, name);
        }
        const Value*& place = bound[static_cast<size_t>(found - parameters.begin())];
        if (place != nullptr) {
            return typeError("{}: argument '{}' is given twice", callee, name);
        }
        place = &value;
    }
    for (size_t i = 0; i < n_required; ++i) {
        if (bound[i] == nullptr) {
            return typeError("{}: argument '{}' is missing", callee, *(parameters.begin() + i));
        }
    }
    return bound;
}

Result<Text> requireText(const Value& value, std::string_view what) {
    if (const Text* text = asText(value)) {
        return *text;
    }
    if (const Undefined* undefined = std::get_if<Undefined>(&value)) {
        return undefinedError(*undefined);
    }
    return typeError("{} must be a str, not {}", what, typeName(value));
}

Result<int64_t> requireInteger(const Value& value, std::string_view what) {
    if (const std::optional<int64_t> integer = asInteger(value)) {
        return *integer;
    }
    if (const Undefined* undefined = std::get_if<Undefined>(&value)) {
        return undefinedError(*undefined);
    }
    return typeError("{} must be an int, not {}", what, typeName(value));
}

Result<SequencePtr> iterateShared(Runtime& runtime, const Value& value) {
    if (const SequencePtr* sequence = std::get_if<SequencePtr>(&value)) {
        runtime.meter.spend((*sequence)->items.size() / 16);
        if ((*sequence)->kind != SequenceKind::Generator) {
            return *sequence;
        }
        if (!(*sequence)->used_up) {
            (*sequence)->used_up = true;
            return *sequence;
        }
        return std::get<SequencePtr>(runtime.heap.list({}));
    }
    std::vector<Value> items;
    if (const Text* text = asText(value)) {
        const std::string_view bytes = text->bytes();
        for (size_t at = 0;
             at < bytes.size() && runtime.meter.spend(4) && !runtime.meter.outOfMemory();) {
            const size_t begin = at;
            (void)nextPoint(bytes, at);
            TextBuilder character(&runtime.meter);  // not marked safe, even when the whole is
            character.append(*text, begin, at);
            items.emplace_back(character.finish());
        }
    } else if (const Dict* dict = asDict(value)) {
        runtime.meter.spend(dict->items().size());
        for (const Dict::Item& item : dict->items()) {
            items.push_back(item.first);
        }
    } else if (!is<Undefined>(value)) {
        return typeError("'{}' object is not iterable", typeName(value));
    }
    BV_TRY(runtime.check());
    return std::get<SequencePtr>(runtime.heap.list(std::move(items)));
}

Result<std::vector<Value>> iterate(Runtime& runtime, const Value& value) {
    const SequencePtr items = BV_TRY(iterateShared(runtime, value));
    BV_TRY(runtime.reserve(items->items.size() * sizeof(Value)));
    return items->items;
}

Result<int64_t> lengthOf(const Value& value) {
    if (const Text* text = asText(value)) {
        return static_cast<int64_t>(text->nPoints());
    }
    if (const Dict* dict = asDict(value)) {
        return static_cast<int64_t>(dict->items().size());
    }
    const Sequence* sequence = asSequence(value);
    if (sequence != nullptr && sequence->kind != SequenceKind::Generator) {
        return static_cast<int64_t>(sequence->items.size());
    }
    if (is<Undefined>(value)) {
        return 0;
    }
    if (const auto* loop = std::get_if<std::shared_ptr<const Loop>>(&value)) {
        return static_cast<int64_t>((*loop)->items->items.size());
    }
    return typeError("object of type '{}' has no len()", typeName(value));
}

Text sliceText(Runtime& runtime, const Text& text, size_t begin, size_t end) {
    if (begin == 0 && end == text.bytes().size()) {
        return text;
    }
    runtime.meter.spendBytes(end - begin);
    TextBuilder builder(&runtime.meter);
    builder.append(text, begin, end);
    return builder.finish(text.isMarkup());
}

Value derivedText(Runtime& runtime,
                  std::string_view bytes,
                  std::initializer_list<const Text*> inputs) {
    const bool trusted =
        std::ranges::all_of(inputs, [](const Text* text) { return text->isTrusted(); });
    return runtime.heap.text(bytes, trusted ? kTemplateOrigin : kValueOrigin);
}

}  // namespace belvedere::inference::jinja
