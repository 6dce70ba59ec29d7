// SPDX-License-Identifier: Apache-2.0
#include "tests/inference/msa_oracle.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "inference/backend/cpu_backend.h"

namespace belvedere::testing {
namespace {

double dot(const float* a, const float* b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
        sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    }
    return sum;
}

double blockScore(
    const MsaShape& shape, const MsaInput& input, size_t pos, size_t group, size_t block) {
    const float* q = &input.index_q[(pos * shape.n_groups + group) * shape.index_dim];
    const size_t end = std::min(pos + 1, (block + 1) * shape.block_tokens);
    double best = -std::numeric_limits<double>::infinity();
    for (size_t key = block * shape.block_tokens; key < end; ++key) {
        best = std::max(best, dot(q, &input.index_k[key * shape.index_dim], shape.index_dim));
    }
    return best;
}

/// Ascending.
std::vector<size_t> choose(const MsaShape& shape, const MsaInput& input, size_t pos, size_t group) {
    const size_t own = pos / shape.block_tokens;
    std::vector<size_t> forced;
    std::vector<std::pair<double, size_t>> others;  // (-score, id): the order of the choice
    for (size_t block = 0; block <= own; ++block) {
        if (block < shape.n_init || block + shape.n_local > own) {
            forced.push_back(block);
        } else {
            others.emplace_back(-blockScore(shape, input, pos, group, block), block);
        }
    }
    std::sort(others.begin(), others.end());
    const size_t n_others = std::min(others.size(), shape.top_k - forced.size());
    for (size_t i = 0; i < n_others; ++i) {
        forced.push_back(others[i].second);
    }
    std::sort(forced.begin(), forced.end());
    return forced;
}

void attendTo(const MsaShape& shape,
              const MsaInput& input,
              size_t pos,
              size_t head,
              const std::vector<size_t>& blocks,
              float* out) {
    const size_t dim = shape.head_dim;
    const size_t group = head / (shape.n_heads / shape.n_groups);
    const float* q = &input.q[(pos * shape.n_heads + head) * dim];
    std::vector<double> sums(dim);
    std::vector<std::pair<size_t, double>> logits;
    double largest = -std::numeric_limits<double>::infinity();
    for (const size_t block : blocks) {
        const size_t end = std::min(pos + 1, (block + 1) * shape.block_tokens);
        for (size_t key = block * shape.block_tokens; key < end; ++key) {
            const double logit = dot(q, &input.k[(key * shape.n_groups + group) * dim], dim) /
                                 std::sqrt(static_cast<double>(dim));
            logits.emplace_back(key, logit);
            largest = std::max(largest, logit);
        }
    }
    double total = 0;
    for (const auto& [key, logit] : logits) {
        const double weight = std::exp(logit - largest);
        total += weight;
        for (size_t i = 0; i < dim; ++i) {
            sums[i] +=
                weight * static_cast<double>(input.v[(key * shape.n_groups + group) * dim + i]);
        }
    }
    for (size_t i = 0; i < dim; ++i) {
        out[i] = static_cast<float>(sums[i] / total);
    }
}

inference::BackendShape backendShape(const MsaShape& shape,
                                     size_t n_tokens,
                                     size_t max_tokens,
                                     const BackendRun& run) {
    inference::BackendShape backend;
    backend.n_layers = 1;
    backend.n_heads = shape.n_heads;
    backend.n_kv_heads = shape.n_groups;
    backend.head_dim = shape.head_dim;
    backend.cache_type = run.cache_type;
    backend.max_tokens = max_tokens;
    backend.step_width = shape.n_heads * shape.head_dim;
    backend.attention_scale =
        static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_dim)));
    inference::IndexShape& index = backend.index;
    index.n_heads = shape.n_groups;
    index.head_dim = shape.index_dim;
    index.block_tokens = shape.block_tokens;
    index.top_k = shape.top_k;
    index.n_init = shape.n_init;
    index.n_local = shape.n_local;
    index.cache_type = run.index_cache_type;
    index.layers = {true};
    index.max_blocks = (n_tokens + shape.block_tokens - 1) / shape.block_tokens;
    return backend;
}

/// The backend, its pages and the buffers of a pass.
class AttendRunner {
  public:
    AttendRunner(const MsaShape& shape, size_t n_tokens, size_t max_tokens, const BackendRun& run)
        : shape_(shape),
          run_(run),
          backend_(*inference::CpuBackend::create(backendShape(shape, n_tokens, max_tokens, run),
                                                  inference::Precision::Exact,
                                                  *run.table,
                                                  run.n_threads)),
          q_(*backend_->addBuffer(max_tokens, shape.n_heads * shape.head_dim)),
          k_(*backend_->addBuffer(max_tokens, shape.n_groups * shape.head_dim)),
          v_(*backend_->addBuffer(max_tokens, shape.n_groups * shape.head_dim)),
          out_(*backend_->addBuffer(max_tokens, shape.n_heads * shape.head_dim)),
          index_q_(*backend_->addBuffer(max_tokens, shape.n_groups * shape.index_dim)),
          index_k_(*backend_->addBuffer(max_tokens, shape.index_dim)) {
        const size_t n_pages = (n_tokens + kernels::kPageTokens - 1) / kernels::kPageTokens;
        std::vector<inference::PageId> pool(n_pages + kOtherPages);
        for (inference::PageId& page : pool) {
            page = *backend_->allocatePage();
        }
        if (run.order == PageOrder::Descending) {
            std::reverse(pool.begin(), pool.end());
        } else if (run.order == PageOrder::Scattered) {
            std::shuffle(pool.begin(), pool.end(), std::mt19937(5));
        }
        const auto end = pool.begin() + static_cast<std::ptrdiff_t>(n_pages);
        pages_.assign(pool.begin(), end);
        others_.assign(end, pool.end());
    }

    void pass(const MsaInput& input, size_t first_pos, size_t n_tokens, MsaOutput& output) {
        fill(*q_, input.q, first_pos, n_tokens, shape_.n_heads * shape_.head_dim);
        fill(*k_, input.k, first_pos, n_tokens, shape_.n_groups * shape_.head_dim);
        fill(*v_, input.v, first_pos, n_tokens, shape_.n_groups * shape_.head_dim);
        fill(*index_q_, input.index_q, first_pos, n_tokens, shape_.n_groups * shape_.index_dim);
        fill(*index_k_, input.index_k, first_pos, n_tokens, shape_.index_dim);
        const size_t n_pages =
            (first_pos + n_tokens + kernels::kPageTokens - 1) / kernels::kPageTokens;
        if (run_.filling) {
            fillInvalid(first_pos, *run_.filling);
        }
        inference::PassRun run = {n_tokens, first_pos, std::span(pages_).first(n_pages)};
        if (!run_.banned.empty()) {
            run.banned_blocks = run_.banned.at(first_pos);
        }
        backend_->beginPass(std::span(&run, 1), PassKind::Prompt);
        const inference::IndexStep index = {index_q_.get(), index_k_.get(), nullptr, nullptr};
        inference::AttendStep step;
        step.q = q_.get();
        step.k = k_.get();
        step.v = v_.get();
        step.index = run_.is_dense ? nullptr : &index;
        step.out = out_.get();
        backend_->attend(step);
        ASSERT_TRUE(backend_->await().has_value());
        const std::span<float> out = backend_->read(*out_, n_tokens);
        output.out.insert(output.out.end(), out.begin(), out.end());
        if (!run_.is_dense) {
            const std::span<const int32_t> blocks = backend_->chosenBlocks(0);
            output.blocks.insert(output.blocks.end(), blocks.begin(), blocks.end());
        }
    }

  private:
    static constexpr size_t kOtherPages = 3;  ///< of nobody

    void fillInvalid(size_t n_valid, float number) {
        for (size_t i = 0; i < pages_.size(); ++i) {
            const size_t begin = i * kernels::kPageTokens;
            fillRows(*backend_, pages_[i], n_valid > begin ? n_valid - begin : 0, number);
        }
        for (const inference::PageId page : others_) {
            fillRows(*backend_, page, 0, number);
        }
    }

    void fill(inference::DeviceBuffer& buffer,
              const std::vector<float>& values,
              size_t first,
              size_t n_tokens,
              size_t width) {
        const std::span<float> rows = backend_->read(buffer, n_tokens);
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first * width), n_tokens * width,
                    rows.begin());
    }

    using Buffer = std::unique_ptr<inference::DeviceBuffer>;

    const MsaShape shape_;
    const BackendRun run_;
    std::unique_ptr<inference::CpuBackend> backend_;
    Buffer q_, k_, v_, out_, index_q_, index_k_;
    std::vector<inference::PageId> pages_;
    std::vector<inference::PageId> others_;
};

}  // namespace

void fillRows(inference::Backend& backend, inference::PageId page, size_t n_valid, float number) {
    using inference::PagePart;
    const inference::PageShape& shape = backend.pageShape();
    for (size_t layer = 0; layer < shape.n_layers; ++layer) {
        for (const PagePart part : {PagePart::KeysAndValues, PagePart::IndexKeys}) {
            if (!shape.has(part, layer)) {
                continue;
            }
            const bool is_kv = part == PagePart::KeysAndValues;
            const size_t n = is_kv ? shape.head_dim : shape.index_head_dim;
            const kernels::CacheType type = is_kv ? shape.cache_type : shape.index_cache_type;
            std::vector<uint8_t> row(shape.rowBytes(part), 0x7f);
            if (type == kernels::CacheType::Q8_0) {
                // Scales take what the row could not: NaN, infinity, the largest number there is.
                const std::vector<float> scales((row.size() - kernels::cacheScalesBegin(n)) / 2,
                                                std::min(number, 65504.0F));
                kernels::tableFor(kernels::Isa::Scalar)
                    ->to_cache(kernels::CacheType::F16,
                               std::isfinite(number)
                                   ? scales.data()
                                   : std::vector<float>(scales.size(), number).data(),
                               row.data() + kernels::cacheScalesBegin(n), scales.size());
            } else {
                kernels::tableFor(kernels::Isa::Scalar)
                    ->to_cache(type, std::vector<float>(n, number).data(), row.data(), n);
            }
            // The page is the test's own: it may write where the backend lets it look.
            auto* bytes = const_cast<std::byte*>(backend.readPage(page, part, layer)->data());
            for (size_t head = 0; head < shape.headCount(part); ++head) {
                for (size_t t = std::min(n_valid, kernels::kPageTokens); t < kernels::kPageTokens;
                     ++t) {
                    std::memcpy(bytes + (head * kernels::kPageTokens + t) * row.size(), row.data(),
                                row.size());
                }
            }
        }
    }
}

MsaInput randomInput(const MsaShape& shape, size_t n_tokens, uint64_t seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    // Uniform by hand: the library's distributions differ between machines.
    const auto values = [&](size_t width) {
        std::vector<float> all(n_tokens * width);
        for (float& value : all) {
            value = static_cast<float>(random() >> 8) * 0x1p-23F * 1.7F - 1.7F;
        }
        return all;
    };
    MsaInput input;
    input.n_tokens = n_tokens;
    input.q = values(shape.n_heads * shape.head_dim);
    input.k = values(shape.n_groups * shape.head_dim);
    input.v = values(shape.n_groups * shape.head_dim);
    input.index_q = values(shape.n_groups * shape.index_dim);
    input.index_k = values(shape.index_dim);
    return input;
}

MsaOutput msaOracle(const MsaShape& shape, const MsaInput& input) {
    MsaOutput output;
    output.out.resize(input.n_tokens * shape.n_heads * shape.head_dim);
    output.blocks.assign(input.n_tokens * shape.n_groups * shape.top_k, -1);
    const size_t n_group_heads = shape.n_heads / shape.n_groups;
    for (size_t pos = 0; pos < input.n_tokens; ++pos) {
        for (size_t group = 0; group < shape.n_groups; ++group) {
            const std::vector<size_t> blocks = choose(shape, input, pos, group);
            std::copy(blocks.begin(), blocks.end(),
                      &output.blocks[(pos * shape.n_groups + group) * shape.top_k]);
            for (size_t i = 0; i < n_group_heads; ++i) {
                const size_t head = group * n_group_heads + i;
                attendTo(shape, input, pos, head, blocks,
                         &output.out[(pos * shape.n_heads + head) * shape.head_dim]);
            }
        }
    }
    return output;
}

MsaOutput runBackend(const MsaShape& shape, const MsaInput& input, const BackendRun& run) {
    const size_t max_tokens = *std::max_element(run.chunks.begin(), run.chunks.end());
    AttendRunner runner(shape, input.n_tokens, max_tokens, run);
    MsaOutput output;
    for (size_t begin = 0, i = 0; begin < input.n_tokens; ++i) {
        const size_t chunk = run.chunks[std::min(i, run.chunks.size() - 1)];
        const size_t n_tokens = std::min(chunk, input.n_tokens - begin);
        runner.pass(input, begin, n_tokens, output);
        begin += n_tokens;
    }
    return output;
}

}  // namespace belvedere::testing
