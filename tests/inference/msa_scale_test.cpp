// SPDX-License-Identifier: Apache-2.0
// Positions beyond 1,048,576 and files beyond 4 GiB: msa.md 7, test 14. The cache is sparse: nearly
// all of its pages are the same one, so a million tokens take a few pages of memory, and what must
// be chosen is known.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "inference/backend/cpu_backend.h"
#include "inference/cache/snapshot.h"
#include "inference/cache/snapshot_header.h"
#include "tests/inference/msa_oracle.h"
#include "tests/support/temp_dir.h"

namespace belvedere::testing {
namespace {

using namespace inference;
using kernels::Isa;
using kernels::kPageTokens;

constexpr size_t kDim = 16;
constexpr size_t kTopK = 16;
constexpr size_t kNew = 6;  ///< tokens of the far pass

class MsaScale : public ::testing::TestWithParam<std::tuple<Isa, size_t>> {
  protected:
    void SetUp() override {
        const kernels::KernelTable* table = kernels::tableFor(std::get<0>(GetParam()));
        if (table == nullptr) {
            GTEST_SKIP() << "no kernels here for " << kernels::isaName(std::get<0>(GetParam()));
        }
        first_pos_ = std::get<1>(GetParam());
        BackendShape shape;
        shape.n_layers = 1;
        shape.n_heads = 2;
        shape.n_kv_heads = 1;
        shape.head_dim = kDim;
        shape.cache_type = kernels::CacheType::F32;
        shape.max_tokens = kPageTokens;
        shape.step_width = 2 * kDim;
        shape.attention_scale = 0.25F;
        shape.index.n_heads = 1;
        shape.index.head_dim = kDim;
        shape.index.block_tokens = kPageTokens;
        shape.index.top_k = kTopK;
        shape.index.cache_type = kernels::CacheType::F32;
        shape.index.layers = {true};
        shape.index.max_blocks = first_pos_ / kPageTokens + 2;
        backend_ = *CpuBackend::create(shape, Precision::Exact, *table, 2);
        q_ = *backend_->addBuffer(kPageTokens, 2 * kDim);
        k_ = *backend_->addBuffer(kPageTokens, kDim);
        v_ = *backend_->addBuffer(kPageTokens, kDim);
        out_ = *backend_->addBuffer(kPageTokens, 2 * kDim);
        index_q_ = *backend_->addBuffer(kPageTokens, kDim);
        index_k_ = *backend_->addBuffer(kPageTokens, kDim);
    }

    /// Rows of an input at positions from first_pos on.
    void pass(const MsaInput& input,
              size_t first_pos,
              std::span<const PageId> pages,
              bool is_dense) {
        backend_->write(input.q, 0, *q_);
        backend_->write(input.k, 0, *k_);
        backend_->write(input.v, 0, *v_);
        backend_->write(input.index_q, 0, *index_q_);
        backend_->write(input.index_k, 0, *index_k_);
        const PassRun run = {input.n_tokens, first_pos, pages};
        backend_->beginPass(std::span(&run, 1), PassKind::Prompt);
        const IndexStep index = {index_q_.get(), index_k_.get(), nullptr, nullptr};
        AttendStep step;
        step.q = q_.get();
        step.k = k_.get();
        step.v = v_.get();
        step.index = is_dense ? nullptr : &index;
        step.out = out_.get();
        backend_->attend(step);
        ASSERT_TRUE(backend_->await().has_value());
    }

    static MsaInput input(size_t n_tokens, uint64_t seed) {
        const MsaShape shape = {
            .n_heads = 2, .n_groups = 1, .head_dim = kDim, .index_dim = kDim, .block_tokens = 128};
        return randomInput(shape, n_tokens, seed);
    }

    /// A page that holds an input of 128 tokens, whose index keys all are (score, 0, 0, ...).
    PageId pageOf(MsaInput& in, float score) {
        for (size_t i = 0; i < in.index_k.size(); ++i) {
            in.index_k[i] = i % kDim == 0 ? score : 0.0F;
        }
        const PageId page = *backend_->allocatePage();
        pass(in, 0, std::span(&page, 1), false);
        return page;
    }

    size_t first_pos_ = 0;
    std::unique_ptr<CpuBackend> backend_;
    std::unique_ptr<DeviceBuffer> q_, k_, v_, out_, index_q_, index_k_;
};

/// Keys and values of an input, each as often as it stands in the context.
struct Seen {
    const MsaInput* input;
    size_t n_tokens;
    double times;
};

std::vector<double> attentionOf(const float* q, const std::vector<Seen>& seen) {
    std::vector<double> out(kDim, 0);
    double total = 0;
    for (const Seen& part : seen) {
        for (size_t t = 0; t < part.n_tokens; ++t) {
            double score = 0;
            for (size_t i = 0; i < kDim; ++i) {
                score += static_cast<double>(q[i]) *
                         static_cast<double>(part.input->k[t * kDim + i]) * 0.25;
            }
            const double weight = std::exp(score) * part.times;
            total += weight;
            for (size_t i = 0; i < kDim; ++i) {
                out[i] += weight * static_cast<double>(part.input->v[t * kDim + i]);
            }
        }
    }
    for (double& value : out) {
        value /= total;
    }
    return out;
}

TEST_P(MsaScale, T14_FarPositionsChooseAndAttendAsNearOnes) {
    MsaInput common = input(kPageTokens, 1);
    MsaInput rare = input(kPageTokens, 2);
    const PageId common_page = pageOf(common, 1.0F);
    const PageId rare_page = pageOf(rare, 2.0F);
    MsaInput fresh = input(kNew, 3);
    std::fill(fresh.index_k.begin(), fresh.index_k.end(), 0.0F);  // less than all others
    for (size_t i = 0; i < fresh.index_q.size(); ++i) {
        fresh.index_q[i] = i % kDim == 0 ? 1.0F : 0.0F;
    }

    const size_t n_pages = (first_pos_ + kNew + kPageTokens - 1) / kPageTokens;
    const size_t own = first_pos_ / kPageTokens;
    std::vector<PageId> pages(n_pages, common_page);
    const std::vector<size_t> rare_blocks = {17, own / 2, own / 2 + 1, own - 1};
    for (const size_t block : rare_blocks) {
        pages[block] = rare_page;
    }
    for (size_t page = own; page < n_pages; ++page) {
        pages[page] = *backend_->allocatePage();
    }
    const size_t n_before = first_pos_ % kPageTokens;  // of the own block, from the common page
    ASSERT_TRUE(backend_->copyPage(common_page, pages[own], n_before).has_value());

    for (const bool is_dense : {false, true}) {
        pass(fresh, first_pos_, pages, is_dense);
        const std::span<float> out = backend_->read(*out_, kNew);
        for (size_t t = 0; t < kNew; ++t) {
            const size_t block = (first_pos_ + t) / kPageTokens;
            std::vector<int32_t> expected;
            for (const size_t id : rare_blocks) {
                expected.push_back(static_cast<int32_t>(id));
            }
            expected.push_back(static_cast<int32_t>(block));
            // All common pages score alike: the lower ids win.
            for (int32_t id = 0; expected.size() < kTopK; ++id) {
                expected.push_back(id);
            }
            std::sort(expected.begin(), expected.end());
            // Of fresh tokens, those up to t in the own block; in dense attention all of them.
            const size_t in_block =
                is_dense || block == own ? t + 1 : (first_pos_ + t) % kPageTokens + 1;
            MsaInput tail = fresh;
            const size_t skipped = t + 1 - in_block;
            tail.k.erase(tail.k.begin(),
                         tail.k.begin() + static_cast<std::ptrdiff_t>(skipped * kDim));
            tail.v.erase(tail.v.begin(),
                         tail.v.begin() + static_cast<std::ptrdiff_t>(skipped * kDim));
            const double n_common = is_dense ? static_cast<double>(own - rare_blocks.size())
                                             : static_cast<double>(kTopK - rare_blocks.size() - 1);
            std::vector<Seen> seen = {{&common, kPageTokens, n_common},
                                      {&rare, kPageTokens, static_cast<double>(rare_blocks.size())},
                                      {&tail, in_block, 1}};
            if (is_dense || block == own) {
                seen.push_back({&common, n_before, 1});
            }
            if (!is_dense) {
                const auto ids = backend_->chosenBlocks(0).subspan(t * kTopK, kTopK);
                EXPECT_TRUE(std::equal(ids.begin(), ids.end(), expected.begin())) << t;
            }
            for (size_t head = 0; head < 2; ++head) {
                const auto want = attentionOf(&fresh.q[(t * 2 + head) * kDim], seen);
                for (size_t i = 0; i < kDim; ++i) {
                    ASSERT_NEAR(static_cast<double>(out[(t * 2 + head) * kDim + i]), want[i], 2e-4)
                        << (is_dense ? "dense" : "MSA") << " token " << t;
                }
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(,
                         MsaScale,
                         ::testing::Combine(::testing::Values(Isa::Scalar, Isa::Avx2, Isa::Avx512),
                                            ::testing::Values(size_t{524'285},
                                                              size_t{524'288},
                                                              size_t{1'048'573},
                                                              size_t{1'048'653})),
                         [](const auto& one) {
                             return std::string(kernels::isaName(std::get<0>(one.param))) + "_" +
                                    std::to_string(std::get<1>(one.param));
                         });

/// A snapshot of 5 GiB that takes a few kB of the disk: all its pages are zeros.
TEST(SnapshotScale, T14_PartsBehind4GiBAreFoundAndChecked) {
    const TempDir dir;
    SnapshotKey key;
    key.shape = {1, 64, 1024, kernels::CacheType::F32, 0, kernels::CacheType::F32, {}};
    key.max_tokens = 20'000;
    key.vocab_size = 10;
    constexpr size_t kTokens = 80 * kPageTokens;
    const SnapshotLayout layout = *SnapshotLayout::of(key.shape, kTokens, 0);
    ASSERT_GT(layout.file_bytes, size_t{5} << 30);
    const size_t n_bytes = key.shape.partBytes(PagePart::KeysAndValues);
    std::vector<std::byte> tables(layout.tables_end);
    const uint64_t sum = checksumOf(std::vector<std::byte>(n_bytes));
    for (size_t page = 0; page < layout.n_pages; ++page) {
        std::memcpy(&tables[layout.sums_begin + 8 * page], &sum, sizeof sum);
    }
    SnapshotHeader header{};
    kSnapshotMagic.copy(header.magic, sizeof header.magic);
    header.version = kSnapshotVersion;
    header.header_bytes = sizeof header;
    header.file_bytes = layout.file_bytes;
    header.n_layers = 1;
    header.n_kv_heads = 64;
    header.head_dim = 1024;
    header.page_tokens = kPageTokens;
    header.n_tokens = kTokens;
    header.ban_begin = UINT64_MAX;
    header.tables_sum = checksumOf(std::span<const std::byte>(tables).subspan(sizeof header));
    std::memcpy(tables.data(), &header, sizeof header);
    header.header_sum =
        checksumOf(std::span<const std::byte>(tables).first(offsetof(SnapshotHeader, header_sum)));
    std::memcpy(tables.data(), &header, sizeof header);

    const std::string path = dir.write("sparse", {}).string();
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(file, 0);
    ASSERT_EQ(::pwrite(file, tables.data(), tables.size(), 0), static_cast<ssize_t>(tables.size()));
    ASSERT_EQ(::ftruncate(file, static_cast<off_t>(layout.file_bytes)), 0);
    // One bit of the last page, in what a 32-bit offset would take for an earlier one.
    const char bit = 1;
    const size_t at = layout.parts_begin[0] + 79 * n_bytes + n_bytes / 2;
    ASSERT_EQ(::pwrite(file, &bit, 1, static_cast<off_t>(at)), 1);
    ::close(file);

    const auto snapshot = SnapshotFile::open(path, key);
    ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
    EXPECT_TRUE((*snapshot)->check(PagePart::KeysAndValues, 0, 78));
    EXPECT_FALSE((*snapshot)->check(PagePart::KeysAndValues, 0, 79));
    EXPECT_TRUE((*snapshot)->check(PagePart::KeysAndValues, 0, 79 - 64)) << "4 GiB before";
    EXPECT_EQ((*snapshot)->parts(PagePart::KeysAndValues, 0)[79 * n_bytes + n_bytes / 2],
              std::byte{1});
}

}  // namespace
}  // namespace belvedere::testing
