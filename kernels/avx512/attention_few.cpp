// SPDX-License-Identifier: Apache-2.0
// Attention of few tokens, as in generation, in products of bf16 (AVX512_BF16): queries, keys,
// weights of the softmax and values are rounded to bf16, sums and the softmax are f32. The walk
// over the keys is that of tile_attention.h.
//
// The query heads that share a KV head are rows. They stand side by side in the lanes of a vector:
// R rows (4, 8 or 16, rows without a head are 0) with E = 16 / R lanes each. So a few elements of a
// key, repeated for all rows, are one load, no key is transposed, and the softmax finds 16 / R keys
// of every row in a vector:
//
//     products   lane r E + e:  pairs e, e + E, ... of row r and a key
//     S          vector v, lane r E + e:  row r and key v E + e
//     P          the same in bf16, so that the weights of two keys stand together
//     O [R, D]   += P V, values of two keys interleaved, lanes along D
//
// Tokens are taken one by one, each with the same R: its bits do not depend on its company.

#include "kernels/avx512/attention_tile.h"
#include "kernels/avx512/avx512_kernels.h"
#include "kernels/avx512/bf16.h"
#include "kernels/avx512/exp.h"
#include "kernels/fetch_ahead.h"

namespace belvedere::kernels::avx512 {
namespace {

/// Heads of a KV head: with fewer, f32 keeps up with memory.
constexpr size_t kMinGroup = 3;
constexpr size_t kMaxGroup = 16;
/// Elements of a head come in multiples of these.
constexpr size_t kUnit = 32;
/// Keys whose products are summed at once.
constexpr size_t kSumKeys = 8;
/// Rows of one call of addValues, at most.
constexpr size_t kOutRows = 8;

constexpr size_t rowsFor(size_t group) {
    return group <= 4 ? 4 : group <= 8 ? 8 : 16;
}

/// The parts of a worker's scratch that belong to a token.
struct TokenScratch {
    uint8_t* q;      ///< [D / 2E][R][2E] bf16, times the scale and log2(e)
    float* out;      ///< [R, D]
    float* largest;  ///< [16], of a row in all its lanes
    float* sum;      ///< [16], of a row in parts
};

/// Those of a step.
struct StepScratch {
    uint16_t* keys;     ///< [64, D] bf16
    float* scores;      ///< [64 / E][16]
    uint32_t* weights;  ///< pairs of bf16, [64 / E][R][E / 2], or with one lane a row [32][R]
    float* shrink;      ///< [16]
};

constexpr size_t kTokenFacts = 2 * 16;

constexpr size_t tokenFloats(size_t head_dim) {
    return kMaxGroup * head_dim / 2 + kMaxGroup * head_dim + kTokenFacts;
}

constexpr size_t fewScratchFloats(size_t head_dim) {
    return kWalkTokens * tokenFloats(head_dim) + kKeys * head_dim / 2 + kKeys * 16 + kKeys * 8 +
           16 + 16;
}

TokenScratch tokenScratch(float* scratch, size_t t, size_t head_dim) {
    float* begin = scratch + t * tokenFloats(head_dim);
    float* out = begin + kMaxGroup * head_dim / 2;
    float* facts = out + kMaxGroup * head_dim;
    return {reinterpret_cast<uint8_t*>(begin), out, facts, facts + 16};
}

StepScratch stepScratch(float* scratch, size_t head_dim) {
    float* keys = scratch + kWalkTokens * tokenFloats(head_dim);
    float* scores = keys + kKeys * head_dim / 2;
    float* weights = scores + kKeys * 16;
    return {reinterpret_cast<uint16_t*>(keys), scores, reinterpret_cast<uint32_t*>(weights),
            weights + kKeys * 8};
}

template <size_t kR>
void beginToken(const Attend& args, const AttendItem& item, size_t t, const TokenScratch& s) {
    constexpr size_t kChunk = 64 / kR;  // bytes of a row in a vector
    const size_t group = args.n_heads / args.n_kv_heads;
    const __m512 scale = _mm512_set1_ps(args.scale * kLog2E);
    for (size_t r = 0; r < kR; ++r) {
        const float* q = r < group ? queryRow(args, item, t * group + r) : nullptr;
        for (size_t i = 0; i < args.head_dim; i += kUnit) {
            alignas(64) uint8_t line[64] = {};
            if (q != nullptr) {
                _mm512_store_si512(line,
                                   toBFloats(_mm512_mul_ps(_mm512_loadu_ps(q + i), scale),
                                             _mm512_mul_ps(_mm512_loadu_ps(q + i + 16), scale)));
            }
            for (size_t chunk = 0; chunk < kR; ++chunk) {
                __builtin_memcpy(s.q + (i / kUnit * kR + chunk) * 64 + r * kChunk,
                                 line + chunk * kChunk, kChunk);
            }
        }
    }
    for (size_t i = 0; i < kR * args.head_dim; i += 16) {
        _mm512_store_ps(s.out + i, _mm512_setzero_ps());
    }
    _mm512_store_ps(s.largest, _mm512_set1_ps(-__builtin_inff()));
    _mm512_store_ps(s.sum, _mm512_setzero_ps());
}

/// Rows of keys or of values in memory.
struct Lines {
    const uint8_t* at;
    size_t line_bytes;
};

/// n keys, where they stand or in the scratch.
template <CacheType kType>
Lines keyLines(const uint8_t* from, size_t n, size_t head_dim, uint16_t* to) {
    const size_t vector_bytes = cacheRowBytes(kType, head_dim);
    if constexpr (kType == CacheType::BF16) {
        return {from, vector_bytes};
    }
    for (size_t key = 0; key < n; ++key) {
        const uint8_t* row = from + key * vector_bytes;
        for (size_t i = 0; i < head_dim; i += kUnit) {
            const __m512 a = loadCache<kType>(row, i, head_dim, 0xffff);
            const __m512 b = loadCache<kType>(row, i + 16, head_dim, 0xffff);
            _mm512_store_si512(to + key * head_dim + i, toBFloats(a, b));
        }
    }
    return {reinterpret_cast<const uint8_t*>(to), head_dim * sizeof(uint16_t)};
}

/// The next 64 / kR bytes of a key, for every row.
template <size_t kR>
__m512bh forAllRows(const uint8_t* key) {
    __m512i all;
    if constexpr (kR == 16) {
        int32_t bits;
        __builtin_memcpy(&bits, key, sizeof(bits));
        all = _mm512_set1_epi32(bits);
    } else if constexpr (kR == 8) {
        int64_t bits;
        __builtin_memcpy(&bits, key, sizeof(bits));
        all = _mm512_set1_epi64(bits);
    } else {
        all = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(key)));
    }
    return reinterpret_cast<const __m512bh&>(all);
}

/// Lanes 2 r and 2 r + 1 of a and of b are summed to lane 2 r, and to lane 2 r + 1, of the result.
inline __m512 sumOfPairs(__m512 a, __m512 b) {
    const __m512 same = _mm512_mask_mov_ps(a, 0xaaaa, b);
    const __m512 other = _mm512_mask_mov_ps(b, 0xaaaa, a);
    return _mm512_add_ps(same, _mm512_permute_ps(other, 0xb1));
}

/// Scores of n keys with the rows of a token, in whole vectors. Meanwhile as many of the next
/// values are fetched: those of the same keys would come too late, half a step further on.
template <size_t kR>
void scoreKeys(const uint8_t* q,
               const Lines& keys,
               const Lines& next_values,
               size_t n,
               size_t head_dim,
               float* scores) {
    const size_t n_steps = head_dim / kUnit * kR;
    const size_t bytes_a_step = kSumKeys * next_values.line_bytes / n_steps;
    for (size_t first = 0; first < n; first += kSumKeys) {
        const uint8_t* at[kSumKeys];
        for (size_t k = 0; k < kSumKeys; ++k) {
            // The last key again in place of those that are not there.
            at[k] = keys.at + (first + k < n ? first + k : n - 1) * keys.line_bytes;
        }
        const uint8_t* next = next_values.at + first * next_values.line_bytes;
        __m512 acc[kSumKeys] = {};
        for (size_t step = 0; step < n_steps; ++step) {
            fetchAhead(next + step * bytes_a_step, bytes_a_step);
            const __m512i row = _mm512_load_si512(q + step * 64);
#pragma GCC unroll 8
            for (size_t k = 0; k < kSumKeys; ++k) {
                acc[k] = _mm512_dpbf16_ps(acc[k], reinterpret_cast<const __m512bh&>(row),
                                          forAllRows<kR>(at[k] + step * (64 / kR)));
            }
        }
        float* to = scores + first * kR;
        if constexpr (kR == 16) {
#pragma GCC unroll 8
            for (size_t k = 0; k < kSumKeys; ++k) {
                _mm512_store_ps(to + 16 * k, acc[k]);
            }
        } else if constexpr (kR == 8) {
#pragma GCC unroll 4
            for (size_t k = 0; k < kSumKeys; k += 2) {
                _mm512_store_ps(to + 8 * k, sumOfPairs(acc[k], acc[k + 1]));
            }
        } else {
            _mm512_store_ps(to, sumInLanes(acc[0], acc[1], acc[2], acc[3]));
            _mm512_store_ps(to + 16, sumInLanes(acc[4], acc[5], acc[6], acc[7]));
        }
    }
}

/// Lanes of the v-th vector whose key is one of the first n.
template <size_t kE>
__mmask16 lanesOf(size_t v, size_t n) {
    constexpr uint32_t kRowStarts = kE == 1 ? 0xffff : kE == 2 ? 0x5555 : 0x1111;
    const size_t n_left = n > v * kE ? n - v * kE : 0;
    const uint32_t of_row = n_left >= kE ? (1U << kE) - 1U : (1U << n_left) - 1U;
    return static_cast<__mmask16>(kRowStarts * of_row);
}

/// The largest of each row's lanes in all of them.
template <size_t kE>
__m512 largestOfLanes(__m512 x) {
    if constexpr (kE >= 2) {
        x = _mm512_max_ps(x, _mm512_permute_ps(x, 0xb1));
    }
    if constexpr (kE >= 4) {
        x = _mm512_max_ps(x, _mm512_permute_ps(x, 0x4e));
    }
    return x;
}

/// Scores of n keys into weights; the largest score and the sum of each row follow, and by what its
/// output so far shrinks.
template <size_t kR>
void softmax(const TokenScratch& t, const StepScratch& s, size_t n) {
    constexpr size_t kE = 16 / kR;
    const __m512 lowest = _mm512_set1_ps(-__builtin_inff());
    const size_t n_vectors = (n + kE - 1) / kE;
    const __m512 before = _mm512_load_ps(t.largest);
    __m512 largest = before;
    for (size_t v = 0; v < n_vectors; ++v) {
        const __m512 score =
            _mm512_mask_mov_ps(lowest, lanesOf<kE>(v, n), _mm512_load_ps(s.scores + 16 * v));
        largest = _mm512_max_ps(largest, score);
    }
    const __m512 now = largestOfLanes<kE>(largest);
    __m512 sum = _mm512_setzero_ps();
    const auto weightsOf = [&](size_t v) {
        const __m512 score = _mm512_load_ps(s.scores + 16 * v);
        const __m512 weight =
            _mm512_maskz_mov_ps(lanesOf<kE>(v, n), powerOf2(_mm512_sub_ps(score, now)));
        sum = _mm512_add_ps(sum, weight);
        return weight;
    };
    if constexpr (kE == 1) {
        for (size_t v = 0; v < n_vectors; v += 2) {
            const __m512 low = weightsOf(v);
            const __m512 high = v + 1 < n_vectors ? weightsOf(v + 1) : _mm512_setzero_ps();
            _mm512_store_si512(s.weights + 8 * v, pairsOf(low, high));
        }
    } else {
        for (size_t v = 0; v < n_vectors; ++v) {
            const __m256bh weights = _mm512_cvtneps_pbh(weightsOf(v));
            _mm256_store_si256(reinterpret_cast<__m256i*>(s.weights + 8 * v),
                               reinterpret_cast<const __m256i&>(weights));
        }
    }
    // Where nothing was seen yet, before - now is no number.
    const __mmask16 changed = _mm512_cmp_ps_mask(before, now, _CMP_NEQ_UQ);
    const __m512 shrink =
        _mm512_mask_mov_ps(_mm512_set1_ps(1.0F), changed, powerOf2(_mm512_sub_ps(before, now)));
    _mm512_store_ps(t.sum, _mm512_fmadd_ps(_mm512_load_ps(t.sum), shrink, sum));
    _mm512_store_ps(t.largest, now);
    _mm512_store_ps(s.shrink, shrink);
}

/// Elements [i, i + 16) of the values of two keys in pairs.
template <CacheType kType>
__m512bh valuePairs(const uint8_t* first, const uint8_t* second, size_t i, size_t head_dim) {
    __m512i pairs;
    if constexpr (kType == CacheType::BF16) {
        const auto load = [i](const uint8_t* row) {
            return _mm512_cvtepu16_epi32(
                _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + 2 * i)));
        };
        pairs = _mm512_or_si512(load(first), _mm512_slli_epi32(load(second), 16));
    } else {
        pairs = pairsOf(loadCache<kType>(first, i, head_dim, 0xffff),
                        loadCache<kType>(second, i, head_dim, 0xffff));
    }
    return reinterpret_cast<const __m512bh&>(pairs);
}

/// Where the weights of two keys stand: those of row r at [r * kPerVector].
template <size_t kR>
struct WeightPairs {
    static constexpr size_t kPerVector = kR == 4 ? 2 : 1;

    const uint32_t* at;

    [[nodiscard]] const uint32_t* of(size_t pair) const {
        return at + pair / kPerVector * (kR * kPerVector) + pair % kPerVector;
    }
};

/// out [kRows, D] = out * shrink + the weights of n keys times their values. Meanwhile as many of
/// the next keys are fetched, evenly: requests that come in a burst find no place in the queue.
template <CacheType kType, size_t kR, size_t kRows>
void addValues(WeightPairs<kR> weights,
               const uint8_t* values,
               const uint8_t* next_keys,
               size_t n,
               size_t head_dim,
               const float* shrink,
               float* out) {
    constexpr size_t kV = 2;
    constexpr size_t kE = 16 / kR;
    const size_t vector_bytes = cacheRowBytes(kType, head_dim);
    const size_t bytes_a_pass = 2 * vector_bytes * 16 * kV / head_dim;
    for (size_t i = 0; i < head_dim; i += 16 * kV) {
        const uint8_t* next = next_keys + i / (16 * kV) * (n / 2 * bytes_a_pass);
        __m512 acc[kRows][kV];
#pragma GCC unroll 8
        for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
            for (size_t v = 0; v < kV; ++v) {
                acc[r][v] = _mm512_mul_ps(_mm512_load_ps(out + r * head_dim + i + 16 * v),
                                          _mm512_set1_ps(shrink[r * kE]));
            }
        }
        const auto addPair = [&](size_t pair, const uint8_t* first, const uint8_t* second) {
            const uint32_t* at = weights.of(pair);
#pragma GCC unroll 2
            for (size_t v = 0; v < kV; ++v) {
                const __m512bh value = valuePairs<kType>(first, second, i + 16 * v, head_dim);
#pragma GCC unroll 8
                for (size_t r = 0; r < kRows; ++r) {
                    const __m512i weight =
                        _mm512_set1_epi32(static_cast<int>(at[r * WeightPairs<kR>::kPerVector]));
                    acc[r][v] = _mm512_dpbf16_ps(acc[r][v], value,
                                                 reinterpret_cast<const __m512bh&>(weight));
                }
            }
        };
        size_t key = 0;
        for (; key + 2 <= n; key += 2) {
            fetchAhead(next + key / 2 * bytes_a_pass, bytes_a_pass);
            addPair(key / 2, values + key * vector_bytes, values + (key + 1) * vector_bytes);
        }
        if (key < n) {
            // The second weight is 0.
            addPair(key / 2, values + key * vector_bytes, values + key * vector_bytes);
        }
#pragma GCC unroll 8
        for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
            for (size_t v = 0; v < kV; ++v) {
                _mm512_store_ps(out + r * head_dim + i + 16 * v, acc[r][v]);
            }
        }
    }
}

/// All rows of a token, up to kOutRows at a time.
template <CacheType kType, size_t kR>
void addAllValues(const StepScratch& s,
                  const uint8_t* values,
                  const uint8_t* next_keys,
                  size_t n,
                  size_t head_dim,
                  size_t group,
                  float* out) {
    const auto add = [&](size_t begin, auto rows) {
        constexpr size_t kRows = decltype(rows)::kValue;
        addValues<kType, kR, kRows>({s.weights + begin * WeightPairs<kR>::kPerVector}, values,
                                    next_keys, n, head_dim, s.shrink + begin * (16 / kR),
                                    out + begin * head_dim);
    };
    const auto addRest = [&](size_t begin) {
        switch (group - begin) {
            case 8:
                return add(begin, Count<8>{});
            case 7:
                return add(begin, Count<7>{});
            case 6:
                return add(begin, Count<6>{});
            case 5:
                return add(begin, Count<5>{});
            case 4:
                return add(begin, Count<4>{});
            case 3:
                return add(begin, Count<3>{});
            case 2:
                return add(begin, Count<2>{});
            default:
                return add(begin, Count<1>{});
        }
    };
    if (group > kOutRows) {
        add(0, Count<kOutRows>{});
        return addRest(kOutRows);
    }
    addRest(0);
}

template <size_t kR>
void endToken(const Attend& args, const AttendItem& item, size_t t, const TokenScratch& s) {
    constexpr size_t kE = 16 / kR;
    const size_t group = args.n_heads / args.n_kv_heads;
    for (size_t r = 0; r < group; ++r) {
        float sum = 0;
        for (size_t e = 0; e < kE; ++e) {
            sum += s.sum[r * kE + e];
        }
        const OutputRow out = outputRow(args, item, t * group + r, s.largest[r * kE] / kLog2E, sum);
        scaleOut(s.out + r * args.head_dim, args.head_dim, out.factor, out.at);
    }
}

template <CacheType kType, size_t kR>
void attendFew(const Attend& args, const AttendItem& item) {
    const size_t group = args.n_heads / args.n_kv_heads;
    const size_t vector_bytes = cacheRowBytes(kType, args.head_dim);
    float* scratch = aligned(args.scratch);
    const StepScratch s = stepScratch(scratch, args.head_dim);
    for (size_t t = 0; t < item.n_tokens; ++t) {
        beginToken<kR>(args, item, t, tokenScratch(scratch, t, args.head_dim));
    }
    const KeyRange range = keyRange(args, item.split);
    KeyWalk walk(args, item.t_begin, item.n_tokens, item.kv_head, range.begin, range.end);
    KeyWalk ahead = walk;
    bool has_next = ahead.next();
    while (walk.next()) {
        has_next = has_next && ahead.next();
        const uint8_t* values = stepRows(args.v_pages, item, walk, vector_bytes);
        const KeyWalk& next = has_next ? ahead : walk;
        const uint8_t* next_keys = stepRows(args.k_pages, item, next, vector_bytes);
        const uint8_t* next_values = stepRows(args.v_pages, item, next, vector_bytes);
        const Lines keys = keyLines<kType>(stepRows(args.k_pages, item, walk, vector_bytes),
                                           walk.n_keys, args.head_dim, s.keys);
        for (size_t run = 0; run < walk.n_runs; ++run) {
            for (size_t t = walk.runs[run].begin; t < walk.runs[run].end; ++t) {
                const TokenScratch token = tokenScratch(scratch, t, args.head_dim);
                const size_t n_before = walk.seenBy(t) - walk.key;
                const size_t n_seen = n_before < walk.n_keys ? n_before : walk.n_keys;
                scoreKeys<kR>(token.q, keys, {next_values, vector_bytes}, n_seen, args.head_dim,
                              s.scores);
                softmax<kR>(token, s, n_seen);
                addAllValues<kType, kR>(s, values, next_keys, n_seen, args.head_dim, group,
                                        token.out);
            }
        }
    }
    for (size_t t = 0; t < item.n_tokens; ++t) {
        endToken<kR>(args, item, t, tokenScratch(scratch, t, args.head_dim));
    }
}

/// By the shape of the model alone: within kIndependentTokens a token's result must not depend on
/// the others.
bool hasFewRows(const Attend& args) {
    const size_t group = args.n_heads / args.n_kv_heads;
    return args.n_tokens <= kIndependentTokens && args.n_keys == 0 && group >= kMinGroup &&
           group <= kMaxGroup && args.head_dim % kUnit == 0;
}

}  // namespace

size_t attendFewScratchFloats(size_t n_heads, size_t n_kv_heads, size_t head_dim) noexcept {
    const size_t many = attendScratchFloats(n_heads, n_kv_heads, head_dim);
    const size_t few = fewScratchFloats(head_dim);
    return many > few ? many : few;
}

void attendFewTokens(const Attend& args) noexcept {
    if (args.exact || !hasFewRows(args)) {
        return attend(args);
    }
    const size_t rows = rowsFor(args.n_heads / args.n_kv_heads);
    forEachItem(args, [&args, rows](const AttendItem& item, auto type) {
        constexpr CacheType kType = decltype(type)::kType;
        if (rows == 4) {
            attendFew<kType, 4>(args, item);
        } else if (rows == 8) {
            attendFew<kType, 8>(args, item);
        } else {
            attendFew<kType, 16>(args, item);
        }
    });
}

}  // namespace belvedere::kernels::avx512
