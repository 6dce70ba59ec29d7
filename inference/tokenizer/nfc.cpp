// SPDX-License-Identifier: Apache-2.0
#include "inference/tokenizer/nfc.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>

#include "inference/tokenizer/utf8.h"
#include "kernels/base/check.h"

namespace belvedere::inference {
namespace {

void appendComposed(const icu::Normalizer2& nfc, std::string_view valid, std::string& out) {
    UErrorCode status = U_ZERO_ERROR;
    icu::StringByteSink<std::string> sink(&out);
    nfc.normalizeUTF8(0, icu::StringPiece(valid.data(), static_cast<int32_t>(valid.size())), sink,
                      nullptr, status);
    BV_CHECK(U_SUCCESS(status) != 0);
}

}  // namespace

std::string composeNfc(std::string_view text) {
    // ICU counts in 32 bits; a stretch is cut before an ASCII character, which composes with
    // nothing before it.
    constexpr ptrdiff_t kMaxStretchBytes = 1 << 24;
    UErrorCode status = U_ZERO_ERROR;
    const icu::Normalizer2* nfc = icu::Normalizer2::getNFCInstance(status);
    BV_CHECK(U_SUCCESS(status) != 0);
    std::string out;
    out.reserve(text.size());
    const char* const end = text.data() + text.size();
    const char* begin = text.data();
    const auto flush = [&](const char* until) {
        appendComposed(*nfc, {begin, static_cast<size_t>(until - begin)}, out);
        begin = until;
    };
    for (const char* p = begin; p < end;) {
        const CodePoint c = decodeUtf8(p, end);
        if (c.value == kInvalidCodePoint) {
            flush(p);
            out.push_back(*p);
            begin = p + 1;
        } else if (p - begin >= kMaxStretchBytes &&
                   (c.value < 0x80 || p - begin >= 16 * kMaxStretchBytes)) {
            flush(p);
        }
        p += c.n_bytes;
    }
    flush(end);
    return out;
}

}  // namespace belvedere::inference
