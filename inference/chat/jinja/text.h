// SPDX-License-Identifier: Apache-2.0
#pragma once

// Text that knows, run by run, where it came from. Immutable and shared; copying is cheap. Any
// thread.
//
// Invariants: (1) bytes are well-formed UTF-8; (2) runs cover the bytes in order, none is empty,
// neighbours differ; (3) text that came from a value is never in a trusted run.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace belvedere::inference::jinja {

/// An estimate of what an allocated text or container costs beside what it holds.
inline constexpr size_t kNodeBytes = 96;

/// What one rendering has used: memory of its live values (an estimate) and work. Loops over
/// foreign data stop when it is exhausted; the interpreter turns that into an error before the
/// result is used.
class Meter {
  public:
    Meter(size_t max_bytes, size_t max_steps) : max_bytes_(max_bytes), steps_left_(max_steps) {}

    void add(size_t n_bytes) { used_bytes_ += n_bytes; }

    void remove(size_t n_bytes) { used_bytes_ -= n_bytes; }

    /// False when there is nothing left to spend.
    bool spend(size_t n_steps) {
        if (n_steps > steps_left_) {
            steps_left_ = 0;
            out_of_steps_ = true;
        } else {
            steps_left_ -= n_steps;
        }
        return !out_of_steps_;
    }

    /// Work on n_bytes of text: one step for each 128.
    bool spendBytes(size_t n_bytes) { return spend(n_bytes / 128); }

    [[nodiscard]] bool outOfSteps() const { return out_of_steps_; }

    [[nodiscard]] bool outOfMemory() const { return used_bytes_ > max_bytes_; }

    /// Whether n_bytes more would be too much: asked before an operation that multiplies its input.
    [[nodiscard]] bool hasRoomFor(size_t n_bytes) const {
        return used_bytes_ <= max_bytes_ && n_bytes <= max_bytes_ - used_bytes_;
    }

  private:
    size_t used_bytes_ = 0;
    size_t max_bytes_;
    size_t steps_left_;
    bool out_of_steps_ = false;
};

/// Adds to a meter for as long as it lives. A null meter counts nothing (constants of a compiled
/// template).
class MemoryCharge {
  public:
    MemoryCharge() = default;

    MemoryCharge(Meter* meter, size_t n_bytes) : meter_(meter), n_bytes_(n_bytes) {
        if (meter_ != nullptr) {
            meter_->add(n_bytes_);
        }
    }

    MemoryCharge(MemoryCharge&& other) noexcept
        : meter_(std::exchange(other.meter_, nullptr)), n_bytes_(other.n_bytes_) {}

    ~MemoryCharge() {
        if (meter_ != nullptr) {
            meter_->remove(n_bytes_);
        }
    }

    MemoryCharge(const MemoryCharge&) = delete;
    MemoryCharge& operator=(const MemoryCharge&) = delete;
    MemoryCharge& operator=(MemoryCharge&&) = delete;

    void grow(size_t n_bytes) {
        if (meter_ != nullptr) {
            meter_->add(n_bytes);
            n_bytes_ += n_bytes;
        }
    }

  private:
    Meter* meter_ = nullptr;
    size_t n_bytes_ = 0;
};

struct Origin {
    bool trusted = false;
    int64_t source = -1;

    friend bool operator==(const Origin&, const Origin&) = default;
};

inline constexpr Origin kTemplateOrigin{true, -1};
inline constexpr Origin kValueOrigin{false, -1};

/// Bytes from the end of the run before up to `end`.
struct TextRun {
    size_t end = 0;
    Origin origin;
};

class Text {
  public:
    Text() = default;  // empty
    Text(Meter* meter, std::string bytes, std::vector<TextRun> runs, bool is_markup);

    [[nodiscard]] std::string_view bytes() const {
        return data_ == nullptr ? std::string_view() : std::string_view(data_->bytes);
    }

    [[nodiscard]] std::span<const TextRun> runs() const {
        return data_ == nullptr ? std::span<const TextRun>()
                                : std::span<const TextRun>(data_->runs);
    }

    [[nodiscard]] bool empty() const { return bytes().empty(); }

    [[nodiscard]] size_t nPoints() const { return data_ == nullptr ? 0 : data_->n_points; }

    [[nodiscard]] bool isAscii() const { return nPoints() == bytes().size(); }

    /// Marked by the filter `safe` (Python's Markup): adding plain text to it escapes that text.
    [[nodiscard]] bool isMarkup() const { return data_ != nullptr && data_->is_markup; }

    [[nodiscard]] bool isTrusted() const;

  private:
    struct Data {
        Data(Meter* meter, std::string b, std::vector<TextRun> r, bool markup);

        std::string bytes;
        std::vector<TextRun> runs;
        size_t n_points;
        bool is_markup;
        MemoryCharge charge;
    };

    std::shared_ptr<const Data> data_;
};

/// Joins pieces and keeps where each came from.
class TextBuilder {
  public:
    explicit TextBuilder(Meter* meter) : meter_(meter) {}

    /// Requires: well-formed UTF-8.
    void append(std::string_view bytes, Origin origin);

    void append(const Text& text) { append(text, 0, text.bytes().size()); }

    /// Bytes [begin, end) of text. Requires: begin and end lie between code points.
    void append(const Text& text, size_t begin, size_t end);

    [[nodiscard]] size_t size() const { return bytes_.size(); }

    [[nodiscard]] std::string_view bytes() const { return bytes_; }

    [[nodiscard]] Text finish(bool is_markup = false) {
        return Text(meter_, std::move(bytes_), std::move(runs_), is_markup);
    }

  private:
    Meter* meter_;
    std::string bytes_;
    std::vector<TextRun> runs_;
};

}  // namespace belvedere::inference::jinja
