// SPDX-License-Identifier: Apache-2.0
// Pages of the cache on the CPU. One of our own holds, for each layer, K, V and, where it has an
// index branch, index keys, all in one block of memory. One that stands in a file is read where the
// file is mapped, each part after it was checked once; nothing is copied.
#include <algorithm>
#include <cstring>

#include "inference/backend/cpu_backend.h"
#include "kernels/base/check.h"

namespace belvedere::inference {
namespace {

constexpr PagePart kParts[] = {PagePart::KeysAndValues, PagePart::IndexKeys};

}  // namespace

void CpuBackend::placePages() {
    page_shape_ = {shape_.n_layers,    shape_.n_kv_heads,     shape_.head_dim,
                   shape_.cache_type,  shape_.index.head_dim, shape_.index.cache_type,
                   shape_.index.layers};
    for (size_t layer = 0; layer < shape_.n_layers; ++layer) {
        for (const PagePart part : kParts) {
            part_offsets_.push_back(page_bytes_);
            page_bytes_ += page_shape_.has(part, layer) ? page_shape_.partBytes(part) : 0;
        }
    }
}

size_t CpuBackend::partOffset(PagePart part, size_t layer) const {
    return part_offsets_[2 * layer + (part == PagePart::IndexKeys ? 1 : 0)];
}

const std::byte* CpuBackend::partOf(const Page& page, PagePart part, size_t layer) const {
    return page.stored != nullptr
               ? page.stored->parts(part, layer) + page.index * page_shape_.partBytes(part)
               : page.memory.data() + partOffset(part, layer);
}

PageId CpuBackend::addPage(Page page) {
    if (!free_pages_.empty()) {
        const PageId id = free_pages_.back();
        free_pages_.pop_back();
        pages_[id] = std::move(page);
        return id;
    }
    pages_.push_back(std::move(page));
    return static_cast<PageId>(pages_.size() - 1);
}

Result<PageId> CpuBackend::allocatePage() {
    BV_CHECK(!shape_.is_measured);
    AlignedBuffer<std::byte> memory(pageBytes());
    if (!memory.ok()) {
        return fail(ErrorCode::OutOfMemory, "{} bytes for a page of the KV cache", pageBytes());
    }
#ifndef NDEBUG
    // NaN in every cache type: whoever reads an entry that was never written is found out by any
    // test.
    std::memset(memory.data(), 0xFF, memory.size());
#endif
    return addPage({std::move(memory), nullptr, 0});
}

PageId CpuBackend::addStoredPage(std::shared_ptr<StoredPages> pages, size_t index) {
    return addPage({{}, std::move(pages), index});
}

void CpuBackend::freePage(PageId page) {
    pages_[page] = Page();
    free_pages_.push_back(page);
}

Result<void> CpuBackend::copyPage(PageId from, PageId to, size_t n_tokens) {
    BV_CHECK(pages_[to].stored == nullptr);
    for (size_t layer = 0; layer < shape_.n_layers; ++layer) {
        for (const PagePart part : kParts) {
            if (!page_shape_.has(part, layer)) {
                continue;
            }
            const std::span<const std::byte> source = BV_TRY(readPage(from, part, layer));
            page_shape_.copyRows(part, source.data(),
                                 pages_[to].memory.data() + partOffset(part, layer), n_tokens);
        }
    }
    return {};
}

Result<std::span<const std::byte>> CpuBackend::readPage(PageId page, PagePart part, size_t layer) {
    const Page& place = pages_[page];
    if (place.stored != nullptr && !place.stored->check(part, layer, place.index)) {
        return fail(ErrorCode::Corrupt, "{}", place.stored->damage(part, layer, place.index));
    }
    return std::span(partOf(place, part, layer), page_shape_.partBytes(part));
}

bool CpuBackend::isDamaged(PageId page) const {
    const Page& place = pages_[page];
    return place.stored != nullptr && place.stored->isDamaged(place.index);
}

/// Where the pages of the pass have their parts of a layer.
void CpuBackend::findPages(const AttendStep& step) {
    const size_t kv_offset = partOffset(PagePart::KeysAndValues, step.layer);
    const size_t index_offset = partOffset(PagePart::IndexKeys, step.layer);
    const size_t v_offset = page_shape_.partBytes(PagePart::KeysAndValues) / 2;
    for (size_t i = 0; i < pass_pages_.size(); ++i) {
        const std::byte* page = pages_[pass_pages_[i]].memory.data();
        if (page != nullptr) {
            k_pages_[i] = page + kv_offset;
            v_pages_[i] = page + kv_offset + v_offset;
            index_pages_[i] = page + index_offset;
        }
    }
    for (const size_t i : stored_places_) {
        const Page& page = pages_[pass_pages_[i]];
        const std::byte* kv = partOf(page, PagePart::KeysAndValues, step.layer);
        k_pages_[i] = kv;
        v_pages_[i] = kv + v_offset;
        index_pages_[i] =
            step.index != nullptr ? partOf(page, PagePart::IndexKeys, step.layer) : nullptr;
    }
}

void CpuBackend::checkIndexKeys(size_t layer) {
    checkStored(PagePart::IndexKeys, layer, stored_places_);
}

/// Of the pages that the step reads: all, or those of the chosen blocks.
void CpuBackend::checkKeysAndValues(const AttendStep& step) {
    if (stored_places_.empty()) {
        return;
    }
    if (step.index == nullptr) {
        checkStored(PagePart::KeysAndValues, step.layer, stored_places_);
        return;
    }
    is_attended_.assign(pass_pages_.size(), 0);
    const IndexShape& index = shape_.index;
    for (const Run& run : runs_) {
        const size_t n_pages =
            (run.first_pos + run.n_tokens + kernels::kPageTokens - 1) / kernels::kPageTokens;
        const int32_t* ids = blocksOf(step.layer, run.row);
        for (size_t i = 0; i < run.n_tokens * index.n_heads * index.top_k; ++i) {
            if (ids[i] < 0) {
                continue;
            }
            const size_t begin = static_cast<size_t>(ids[i]) * index.block_tokens;
            const size_t end = begin + index.block_tokens;
            for (size_t page = begin / kernels::kPageTokens;
                 page * kernels::kPageTokens < end && page < n_pages; ++page) {
                is_attended_[run.page_begin + page] = 1;
            }
        }
    }
    std::vector<size_t> places;
    std::copy_if(stored_places_.begin(), stored_places_.end(), std::back_inserter(places),
                 [&](size_t place) { return is_attended_[place] != 0; });
    checkStored(PagePart::KeysAndValues, step.layer, places);
}

/// A damaged part ends the pass with an error, in await(); until then its bytes are numbers like
/// any.
void CpuBackend::checkStored(PagePart part, size_t layer, std::span<const size_t> places) {
    std::vector<size_t> unchecked;
    for (const size_t place : places) {
        const Page& page = pages_[pass_pages_[place]];
        if (!page.stored->isChecked(part, layer, page.index)) {
            unchecked.push_back(place);
        }
    }
    if (unchecked.empty()) {
        return;
    }
    pool_.parallelFor(unchecked.size(), 1, [&](size_t begin, size_t end, size_t) {
        for (size_t i = begin; i < end; ++i) {
            const Page& page = pages_[pass_pages_[unchecked[i]]];
            static_cast<void>(page.stored->check(part, layer, page.index));
        }
    });
    for (const size_t place : unchecked) {
        const Page& page = pages_[pass_pages_[place]];
        if (pass_result_.has_value() && page.stored->isDamaged(page.index) &&
            !page.stored->check(part, layer, page.index)) {
            pass_result_ =
                fail(ErrorCode::Corrupt, "{}", page.stored->damage(part, layer, page.index));
        }
    }
}

}  // namespace belvedere::inference
