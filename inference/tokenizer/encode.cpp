// SPDX-License-Identifier: Apache-2.0
// Spans -> joined text -> added tokens cut out -> pieces -> ids. The piece loop is the hot path of
// repository ingestion.
#include <algorithm>

#include "inference/tokenizer/nfc.h"
#include "inference/tokenizer/split.h"
#include "inference/tokenizer/tokenizer_model.h"

namespace belvedere::inference::detail {
namespace {

// A piece longer than this is cut, so that one word of a hostile file cannot take more than about
// 150 MB to merge. No published tokenizer has a limit; text with such a word has no meaning to any
// model.
constexpr size_t kMaxPieceBytes = 4 << 20;
constexpr size_t kGuessedBytesPerToken = 3;

struct Range {
    size_t begin = 0;
    size_t end = 0;
};

struct PairFinder {
    const MergeTable& table;

    [[nodiscard]] Merge find(const Symbol& left, const Symbol& right) const {
        return table.find(left.id, right.id);
    }
};

struct ScoreFinder {
    const TokenizerModel& model;
    std::string_view piece;

    [[nodiscard]] Merge find(const Symbol& left, const Symbol& right) const {
        const size_t n_bytes = right.end - left.begin;
        if (n_bytes > model.max_ordinary_bytes) {
            return {};
        }
        const TokenId id = model.findOrdinary(piece.substr(left.begin, n_bytes));
        return id < 0 ? Merge{} : Merge{model.score_ranks[static_cast<size_t>(id)], id};
    }
};

/// Encodes text without added tokens.
class PieceEncoder {
  public:
    PieceEncoder(const TokenizerModel& model, Workspace& work, std::vector<TokenId>& out)
        : model_(model), work_(work), out_(out) {}

    void encode(std::string_view text) {
        if (text.empty()) {
            return;
        }
        if (!model_.byte_level) {
            encodeSentence(text);
        } else if (model_.nfc && !isAscii(text)) {
            encodeByteLevel(composeNfc(text));
        } else {
            encodeByteLevel(text);
        }
    }

  private:
    static bool isAscii(std::string_view text) {
        return std::all_of(text.begin(), text.end(),
                           [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    }

    void encodeByteLevel(std::string_view text) {
        text_end_ = text.data() + text.size();
        forEachPiece(model_.split, text, [this](std::string_view piece) { encodePiece(piece); });
    }

    /// SentencePiece: U+2581 and space are one character, here a space.
    void encodeSentence(std::string_view text) {
        std::string& plain = work_.text;
        plain.assign(model_.add_space_prefix ? 1 : 0, ' ');
        for (size_t mark = text.find(kSpaceMark); mark != text.npos; mark = text.find(kSpaceMark)) {
            plain += text.substr(0, mark);
            plain += ' ';
            text.remove_prefix(mark + kSpaceMark.size());
        }
        plain += text;
        const std::string_view rest = plain;
        text_end_ = rest.data() + rest.size();
        for (size_t begin = 0; begin < rest.size();) {
            size_t end = rest.size();
            if (model_
                    .cut_at_spaces) {  // no merge crosses these borders, so the result is the same
                end = std::min(end, rest.find(' ', rest.find_first_not_of(' ', begin)));
            }
            encodePiece(rest.substr(begin, end - begin));
            begin = end;
        }
    }

    void encodePiece(std::string_view piece) {
        if (piece.size() <= Workspace::ShortCache::kMaxTextBytes) {
            encodeCached(work_.short_pieces, piece);
        } else if (piece.size() <= Workspace::LongCache::kMaxTextBytes) {
            encodeCached(work_.long_pieces, piece);
        } else {
            mergePiece(piece);
        }
    }

    template <class Cache>
    void encodeCached(Cache& cache, std::string_view piece) {
        const auto key = Cache::keyOf(piece, text_end_);
        const std::span<const TokenId> known = cache.find(key);
        for (const TokenId id : known) {
            out_.push_back(id);
        }
        if (known.empty()) {
            const size_t n_before = out_.size();
            mergePiece(piece);
            cache.insert(key, std::span<const TokenId>(out_).subspan(n_before));
        }
    }

    void mergePiece(std::string_view piece) {
        while (piece.size() > kMaxPieceBytes) {
            size_t cut = kMaxPieceBytes;
            while (cut > kMaxPieceBytes - 4 &&
                   (static_cast<unsigned char>(piece[cut]) & 0xC0U) == 0x80U) {
                --cut;
            }
            mergePiece(piece.substr(0, cut));
            piece.remove_prefix(cut);
        }
        if (model_.byte_level) {
            mergeBytes(piece);
        } else {
            mergeCharacters(piece);
        }
    }

    void mergeBytes(std::string_view piece) {
        if (model_.ignore_merges) {
            if (const TokenId id = model_.findOrdinary(piece); id >= 0) {
                out_.push_back(id);
                return;
            }
        }
        std::vector<Symbol>& symbols = work_.merge.symbols;
        symbols.clear();
        for (uint32_t i = 0; i < piece.size(); ++i) {
            const TokenId id = model_.byte_ids[static_cast<unsigned char>(piece[i])];
            if (id >= 0 || model_.substitute >= 0) {
                symbols.push_back({id >= 0 ? id : model_.substitute, i, i + 1});
            }
        }
        mergeAll(work_.merge, PairFinder{model_.merges});
        for (const Symbol& symbol : symbols) {
            out_.push_back(symbol.id);
        }
    }

    void mergeCharacters(std::string_view piece) {
        std::vector<Symbol>& symbols = work_.merge.symbols;
        symbols.clear();
        const char* const end = piece.data() + piece.size();
        for (uint32_t i = 0; i < piece.size();) {
            const uint32_t n = decodeUtf8(piece.data() + i, end).n_bytes;
            symbols.push_back({model_.findOrdinary(piece.substr(i, n)), i, i + n});
            i += n;
        }
        mergeAll(work_.merge, ScoreFinder{model_, piece});
        for (const Symbol& symbol : symbols) {
            if (symbol.id >= 0) {
                out_.push_back(symbol.id);
                continue;
            }
            for (const char byte : piece.substr(symbol.begin, symbol.end - symbol.begin)) {
                const TokenId id = model_.byte_ids[static_cast<unsigned char>(byte)];
                out_.push_back(id >= 0 ? id : model_.substitute);
            }
        }
    }

    const TokenizerModel& model_;
    Workspace& work_;
    std::vector<TokenId>& out_;
    const char* text_end_ = nullptr;
};

using Matches = std::vector<TokenTrie::Match>;

/// Takes white space beside a match where its token wants that, from `first_free` on.
void widen(const TokenizerModel& model,
           std::string_view text,
           size_t first_free,
           TokenTrie::Match& match) {
    const auto rule = model.added_rules.find(match.id);
    if (rule == model.added_rules.end()) {
        return;
    }
    if (rule->second.strip_right) {
        const char* const end = text.data() + text.size();
        match.end = static_cast<size_t>(split::skip(text.data() + match.end, end, split::kSpace) -
                                        text.data());
    }
    if (rule->second.strip_left) {
        // Forward over the run, as UTF-8 cannot be read backwards safely: the last stretch of white
        // space that ends here.
        size_t space_begin = first_free;
        const char* const begin = text.data() + match.begin;
        for (const char* p = text.data() + first_free; p < begin;) {
            const split::Char c = split::charAt(p, begin);
            p += c.n_bytes;
            space_begin = c.in(split::kSpace) ? space_begin : static_cast<size_t>(p - text.data());
        }
        match.begin = space_begin;
    }
}

/// The matches inside `ranges`, in order.
Matches findAll(const TokenizerModel& model,
                const TokenTrie& trie,
                std::string_view text,
                const std::vector<Range>& ranges) {
    Matches matches;
    size_t first_free = 0;
    for (const Range& range : ranges) {
        size_t from = std::max(range.begin, first_free);
        while (from < range.end) {
            TokenTrie::Match match = trie.findFirst(text, from, range.end);
            if (match.id < 0) {
                break;
            }
            widen(model, text, first_free, match);
            matches.push_back(match);
            from = first_free = match.end;
        }
    }
    return matches;
}

/// What the matches leave of the ranges.
std::vector<Range> withoutMatches(const std::vector<Range>& ranges, const Matches& matches) {
    std::vector<Range> left;
    size_t i = 0;
    for (const Range& range : ranges) {
        size_t begin = range.begin;
        for (; i < matches.size() && matches[i].begin < range.end; ++i) {
            left.push_back({begin, std::max(begin, matches[i].begin)});
            begin = matches[i].end;
        }
        left.push_back({begin, std::max(begin, range.end)});
    }
    return left;
}

Matches findAdded(const TokenizerModel& model,
                  std::string_view text,
                  const std::vector<Range>& trusted) {
    Matches matches;
    if (!model.added.empty()) {
        matches = findAll(model, model.added, text, trusted);
    }
    if (!model.added_normalized.empty()) {
        const Matches more =
            findAll(model, model.added_normalized, text, withoutMatches(trusted, matches));
        matches.insert(matches.end(), more.begin(), more.end());
        std::sort(matches.begin(), matches.end(),
                  [](const auto& a, const auto& b) { return a.begin < b.begin; });
    }
    return matches;
}

/// Joins the spans and says where the trusted text stands; neighbouring trusted spans are one.
std::string_view join(std::span<const TextSpan> spans,
                      std::string& joined,
                      std::vector<Range>& trusted) {
    size_t position = 0;
    for (const TextSpan& span : spans) {
        const size_t end = position + span.text.size();
        if (span.trusted && !trusted.empty() && trusted.back().end == position) {
            trusted.back().end = end;
        } else if (span.trusted) {
            trusted.push_back({position, end});
        }
        position = end;
    }
    if (spans.size() == 1) {
        return spans[0].text;
    }
    joined.reserve(position);
    for (const TextSpan& span : spans) {
        joined += span.text;
    }
    return joined;
}

class WorkspaceLease {
  public:
    explicit WorkspaceLease(WorkspacePool& pool) : pool_(pool), workspace_(pool.take()) {}

    ~WorkspaceLease() { pool_.giveBack(std::move(workspace_)); }

    WorkspaceLease(const WorkspaceLease&) = delete;
    WorkspaceLease& operator=(const WorkspaceLease&) = delete;

    Workspace& operator*() { return *workspace_; }

  private:
    WorkspacePool& pool_;
    std::unique_ptr<Workspace> workspace_;
};

}  // namespace

std::unique_ptr<Workspace> WorkspacePool::take() {
    {
        const std::lock_guard lock(mutex_);
        if (!idle_.empty()) {
            std::unique_ptr<Workspace> workspace = std::move(idle_.back());
            idle_.pop_back();
            return workspace;
        }
    }
    return std::make_unique<Workspace>();
}

void WorkspacePool::giveBack(std::unique_ptr<Workspace> workspace) {
    constexpr size_t kKeptBytes = 1 << 20;
    if (workspace->merge.symbols.capacity() * sizeof(Symbol) > kKeptBytes) {
        workspace->merge = {};  // a giant word came by
    }
    if (workspace->text.capacity() > kKeptBytes) {
        workspace->text = {};
    }
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(workspace));
}

void encodeSpans(const TokenizerModel& model,
                 std::span<const TextSpan> spans,
                 std::vector<TokenId>& out) {
    std::string joined;
    std::vector<Range> trusted;
    const std::string_view text = join(spans, joined, trusted);
    out.reserve(out.size() + text.size() / kGuessedBytesPerToken + 1);
    WorkspaceLease workspace(model.workspaces);
    PieceEncoder encoder(model, *workspace, out);
    size_t begin = 0;
    for (const TokenTrie::Match& match : findAdded(model, text, trusted)) {
        encoder.encode(text.substr(begin, match.begin - begin));
        out.push_back(match.id);
        begin = match.end;
    }
    encoder.encode(text.substr(begin));
}

}  // namespace belvedere::inference::detail
