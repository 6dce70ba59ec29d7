// SPDX-License-Identifier: Apache-2.0
// The repository as the rest of the program sees it.
//
// Words: a snapshot is what one ingestion found; it never changes, the next ingestion puts another
// in its place. Invariants: (1) query_mutex_ is held for every use of a snapshot's index, and while
// an update is committed and the snapshot exchanged, so a question sees the state before or after,
// never between; (2) snapshot_mutex_ only guards the pointer, so the window's tree never waits for
// a query; (3) at most one process uses an index file: the others work in memory.

#include "tools/repository/repository.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <system_error>
#include <unordered_map>

#include <fcntl.h>
#include <sys/file.h>

#include "kernels/base/check.h"
#include "kernels/base/log.h"
#include "tools/repository/choice.h"
#include "tools/repository/read_files.h"
#include "tools/repository/source_text.h"
#include "tools/repository/token_tree.h"
#include "tools/repository/walk.h"

namespace belvedere::tools {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Snapshot {
    Catalog catalog;
    std::shared_ptr<SearchIndex> index;
    std::shared_ptr<const std::vector<TreeNode>> tree;
    std::shared_ptr<const IngestReport> report;
};

/// One run of ingest(): the state it gathers, thrown away when it fails.
struct Ingestion {
    IngestReport report;
    std::vector<FileRecord> kept;
    std::unique_ptr<IndexUpdate> update;  ///< from the first difference on
};

class RepositoryImpl final : public Repository {
  public:
    RepositoryImpl(fs::path root,
                   RepositoryConfig config,
                   std::shared_ptr<const agent::TokenCounter> counter)
        : root_(std::move(root)), config_(std::move(config)), counter_(std::move(counter)) {}

    [[nodiscard]] std::string name() const override {
        return root_.has_filename() ? root_.filename().native() : root_.native();
    }

    [[nodiscard]] std::string root() const override { return root_.native(); }

    Result<IngestReport> ingest(const std::function<void(const IngestProgress&)>& progress,
                                std::stop_token stop) override;

    [[nodiscard]] bool isIngested() const override { return snapshot() != nullptr; }

    [[nodiscard]] std::shared_ptr<const std::vector<TreeNode>> tree() const override {
        const auto current = snapshot();
        return current == nullptr ? nullptr : current->tree;
    }

    [[nodiscard]] std::shared_ptr<const IngestReport> report() const override {
        const auto current = snapshot();
        return current == nullptr ? nullptr : current->report;
    }

    [[nodiscard]] Result<agent::ContextChoice> choose(std::string_view question,
                                                      size_t budget_tokens,
                                                      std::stop_token stop) const override;
    [[nodiscard]] Result<std::string> readFile(std::string_view path) const override;

  private:
    std::shared_ptr<const Snapshot> snapshot() const {
        const std::scoped_lock lock(snapshot_mutex_);
        return snapshot_;
    }

    Result<void> openIndex();
    Result<void> readAll(const WalkResult& walk,
                         std::vector<FileRecord> stored,
                         bool is_counter_same,
                         Ingestion& ingestion,
                         const std::function<void(const IngestProgress&)>& progress,
                         const std::stop_token& stop);
    Result<void> store(ReadResult& result, Ingestion& ingestion);
    Result<IngestReport> ingestOnce(const std::function<void(const IngestProgress&)>& progress,
                                    const std::stop_token& stop);
    Result<IngestReport> publish(Ingestion ingestion);
    using Piece = std::shared_ptr<const agent::SourcePiece>;
    Result<std::vector<Piece>> makePieces(const Snapshot& current,
                                          const std::vector<PiecePlace>& places,
                                          const std::stop_token& stop) const;

    const fs::path root_;
    const RepositoryConfig config_;
    const std::shared_ptr<const agent::TokenCounter> counter_;
    FileDescriptor index_lock_;           ///< while we own the index file
    std::shared_ptr<SearchIndex> index_;  ///< of the newest snapshot, or as opened

    mutable std::mutex query_mutex_;
    mutable std::unordered_map<int64_t, Piece>
        made_pieces_;  ///< by row; so that a repeated context costs no tokenizing
    mutable size_t n_made_tokens_ = 0;
    mutable std::mutex snapshot_mutex_;
    std::shared_ptr<const Snapshot> snapshot_;
};

/// The index file where a folder is configured, can be written and nobody else uses the file; else
/// memory.
Result<void> RepositoryImpl::openIndex() {
    fs::path file;
    if (!config_.index_dir.empty()) {
        std::error_code code;
        fs::create_directories(config_.index_dir, code);
        const fs::path stem =
            config_.index_dir / fmt::format("{:016x}", contentHash(root_.native()));
        FileDescriptor lock(
            ::open((stem.native() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        if (!lock.isOpen()) {
            BV_LOG(LogLevel::Warn, "tools", "search index in memory: cannot write in {}",
                   config_.index_dir.native());
        } else if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
            BV_LOG(LogLevel::Info, "tools", "search index in memory: another window uses {}.db",
                   stem.native());
        } else {
            index_lock_ = std::move(lock);
            file = stem.native() + ".db";
        }
    }
    index_ = BV_TRY(SearchIndex::open(file, root_.native()));
    return {};
}

Result<IngestReport> RepositoryImpl::ingest(
    const std::function<void(const IngestProgress&)>& progress, std::stop_token stop) {
    Result<IngestReport> report = ingestOnce(progress, stop);
    if (!report.has_value() && report.error().code == ErrorCode::Corrupt && index_ != nullptr) {
        BV_LOG(LogLevel::Warn, "tools", "search index is made anew: {}", report.error().message);
        {
            const std::scoped_lock lock(query_mutex_);
            BV_TRY(index_->recreate());
        }
        report = ingestOnce(progress, stop);
    }
    return report;
}

Result<IngestReport> RepositoryImpl::ingestOnce(
    const std::function<void(const IngestProgress&)>& progress, const std::stop_token& stop) {
    if (index_ == nullptr) {
        BV_TRY(openIndex());
    }
    if (progress) {
        progress({});
    }
    const Clock::time_point start = Clock::now();
    WalkResult walk = BV_TRY(walkRepository(root_, config_.max_files, stop));
    Ingestion ingestion;
    ingestion.report.walk_seconds = secondsSince(start);
    ingestion.report.is_git = walk.is_git;
    ingestion.report.head = walk.head;
    ingestion.report.skipped = std::move(walk.skipped);
    std::vector<FileRecord> stored;
    bool is_counter_same = false;
    {
        const std::scoped_lock lock(query_mutex_);
        stored = BV_TRY(index_->files());
        is_counter_same = BV_TRY(index_->counterKey()) == counter_->key();
    }
    const Clock::time_point read_start = Clock::now();
    BV_TRY(readAll(walk, std::move(stored), is_counter_same, ingestion, progress, stop));
    ingestion.report.read_seconds = secondsSince(read_start);
    return publish(std::move(ingestion));
}

Result<void> RepositoryImpl::readAll(const WalkResult& walk,
                                     std::vector<FileRecord> stored,
                                     bool is_counter_same,
                                     Ingestion& ingestion,
                                     const std::function<void(const IngestProgress&)>& progress,
                                     const std::stop_token& stop) {
    // A file written twice within the clock's grain looks unchanged the second time; git calls it
    // racy.
    constexpr std::chrono::seconds kSettled(2);
    const auto now = std::chrono::system_clock::now() - kSettled;
    const ReadJob job{
        root_, config_, *counter_, is_counter_same,
        std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count()};
    std::vector<FileTask> tasks;
    tasks.reserve(walk.files.size());
    size_t next = 0;  // both lists are in byte order
    const auto removeBefore = [&](const std::string* path) -> Result<void> {
        for (; next < stored.size() && (path == nullptr || stored[next].path < *path); ++next) {
            if (ingestion.update == nullptr) {
                const std::scoped_lock lock(query_mutex_);
                ingestion.update = BV_TRY(index_->beginUpdate());
            }
            BV_TRY(ingestion.update->remove(stored[next]));
        }
        return {};
    };
    for (const std::string& path : walk.files) {
        BV_TRY(removeBefore(&path));
        const bool is_known = next < stored.size() && stored[next].path == path;
        tasks.push_back({&path, is_known ? &stored[next++] : nullptr});
    }
    BV_TRY(removeBefore(nullptr));

    IngestProgress state;
    state.n_files_total = tasks.size();
    Clock::time_point told = Clock::now();
    const auto take = [&](ReadResult&& result) -> Result<void> {
        const Clock::time_point start = Clock::now();
        BV_TRY(store(result, ingestion));
        ingestion.report.index_seconds += secondsSince(start);
        state.n_files_done += 1;
        state.n_bytes += result.record.n_bytes;
        state.n_tokens += tokenCount(result.record);
        if (result.record.skip) {
            ingestion.report.skipped.push_back(
                {result.record.path, *result.record.skip, result.record.detail});
        } else {
            ingestion.kept.push_back(std::move(result.record));
        }
        return {};
    };
    const auto idle = [&] {
        constexpr std::chrono::milliseconds kInterval(100);
        if (progress &&
            (Clock::now() - told >= kInterval || state.n_files_done == state.n_files_total)) {
            told = Clock::now();
            progress(state);
        }
    };
    return readFiles(job, tasks, take, idle, stop);
}

Result<void> RepositoryImpl::store(ReadResult& result, Ingestion& ingestion) {
    ingestion.report.n_read += result.was_read ? 1 : 0;
    if (!result.is_changed) {
        return {};
    }
    if (ingestion.update == nullptr) {
        const std::scoped_lock lock(query_mutex_);
        ingestion.update = BV_TRY(index_->beginUpdate());
    }
    return ingestion.update->put(result.record,
                                 result.is_content_changed ? &result.content : nullptr);
}

Result<IngestReport> RepositoryImpl::publish(Ingestion ingestion) {
    const Clock::time_point start = Clock::now();
    IngestReport& report = ingestion.report;
    std::sort(report.skipped.begin(), report.skipped.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    auto next = std::make_shared<Snapshot>();
    next->catalog = makeCatalog(std::move(ingestion.kept));
    next->tree =
        std::make_shared<const std::vector<TreeNode>>(makeTree(next->catalog.files, name()));
    report.n_files = next->catalog.files.size();
    report.n_pieces = next->catalog.n_pieces;
    report.n_tokens = next->catalog.n_tokens;
    for (const FileRecord& file : next->catalog.files) {
        report.n_bytes += file.n_bytes;
        report.n_repaired += file.n_repaired > 0 ? 1 : 0;
    }
    for (const TreeNode& node : *next->tree) {
        report.n_folders += node.is_folder && node.parent >= 0 ? 1 : 0;
    }
    const std::scoped_lock lock(query_mutex_);
    if (ingestion.update != nullptr) {
        index_ = BV_TRY(ingestion.update->commit(counter_->key()));
        made_pieces_.clear();
        n_made_tokens_ = 0;
    }
    report.index_seconds += secondsSince(start);
    next->index = index_;
    next->report = std::make_shared<const IngestReport>(report);
    BV_LOG(LogLevel::Info, "tools",
           "ingested files={} pieces={} tokens={} skipped={} walk_s={:.2f} read_s={:.2f} "
           "index_s={:.2f}",
           report.n_files, report.n_pieces, report.n_tokens, report.skipped.size(),
           report.walk_seconds, report.read_seconds, report.index_seconds);
    const std::scoped_lock pointer_lock(snapshot_mutex_);
    snapshot_ = std::move(next);
    return *snapshot_->report;
}

Result<agent::ContextChoice> RepositoryImpl::choose(std::string_view question,
                                                    size_t budget_tokens,
                                                    std::stop_token stop) const {
    std::error_code code;
    if (!fs::is_directory(root_, code)) {
        return fail(ErrorCode::NotFound, "{}: the folder has vanished: attach it again",
                    root_.native());
    }
    const std::scoped_lock lock(query_mutex_);
    const std::shared_ptr<const Snapshot> current = snapshot();
    if (current == nullptr) {
        return fail(ErrorCode::InvalidArgument, "{}: not read yet", root_.native());
    }
    const Question asked = readQuestion(question);
    std::vector<RankedPiece> ranked;
    agent::ContextChoice choice;
    {
        const std::stop_callback interrupt(stop, [&] { current->index->interrupt(); });
        ranked = BV_TRY(rankPieces(asked, current->catalog, *current->index));
        choice.absent_names = BV_TRY(absentNames(asked, *current->index));
    }
    const auto n_code_names =
        std::count_if(asked.names.begin(), asked.names.end(),
                      [](const Question::Name& name) { return name.is_code; });
    choice.asks_only_absent =
        n_code_names > 0 && choice.absent_names.size() == static_cast<size_t>(n_code_names);
    const PlaceChoice places = choosePlaces(current->catalog, ranked, budget_tokens);
    choice.pieces = BV_TRY(makePieces(*current, places.pieces, stop));
    for (const PiecePlace best : places.best) {
        const auto found = std::lower_bound(places.pieces.begin(), places.pieces.end(), best);
        choice.best.push_back(choice.pieces[static_cast<size_t>(found - places.pieces.begin())]);
    }
    choice.is_whole_repository = places.is_whole;
    choice.n_tokens = places.n_tokens;
    choice.n_tokens_total = current->catalog.n_tokens;
    choice.n_files_total = current->catalog.files.size();
    for (size_t i = 0; i < places.pieces.size(); ++i) {
        choice.n_files += i == 0 || places.pieces[i].file != places.pieces[i - 1].file ? 1U : 0U;
    }
    return choice;
}

Result<std::vector<RepositoryImpl::Piece>> RepositoryImpl::makePieces(
    const Snapshot& current,
    const std::vector<PiecePlace>& places,
    const std::stop_token& stop) const {
    constexpr size_t kMaxMadeTokens = 4'000'000;
    std::vector<Piece> pieces;
    pieces.reserve(places.size());
    std::string text;
    std::vector<std::string_view> lines;
    size_t text_file = SIZE_MAX;  // whose text that is
    for (const PiecePlace place : places) {
        const FileRecord& file = current.catalog.files[place.file];
        Piece& piece = made_pieces_[(file.id << kPieceBits) + static_cast<int64_t>(place.piece)];
        if (piece == nullptr) {
            if (stop.stop_requested()) {
                return fail(ErrorCode::Cancelled, "choosing pieces: cancelled");
            }
            if (text_file != place.file) {
                text = BV_TRY(current.index->text(file.id));
                lines = splitLines(text);
                text_file = place.file;
            }
            if (lines.size() < file.pieces[place.piece].last_line) {
                return fail(ErrorCode::Corrupt,
                            "search database: {} has {} lines: read the folder again", file.path,
                            lines.size());
            }
            piece = makePiece(file, place.piece, lines, *counter_);
            n_made_tokens_ += piece->ids->size();
        }
        pieces.push_back(piece);
    }
    if (n_made_tokens_ > kMaxMadeTokens) {
        made_pieces_.clear();
        n_made_tokens_ = 0;
    }
    return pieces;
}

Result<std::string> RepositoryImpl::readFile(std::string_view path) const {
    constexpr uint64_t kMaxShownBytes = 64U << 20;
    if (path.empty() || path.find('\0') != std::string_view::npos || path.front() == '/') {
        return fail(ErrorCode::InvalidArgument, "\"{}\": not a path in the repository", path);
    }
    std::error_code code;
    const fs::path real = fs::canonical(root_ / path, code);
    if (code) {
        return fail(ErrorCode::NotFound, "{}: {}", path, code.message());
    }
    const std::string relative = real.lexically_relative(root_).generic_string();
    if (relative == ".." || relative.starts_with("../")) {
        return fail(ErrorCode::InvalidArgument, "{}: leads outside the repository", path);
    }
    std::string bytes;
    SafeReader reader(root_);
    BV_TRY(reader.read(relative, kMaxShownBytes, bytes));
    size_t bad_line = 0;
    std::optional<SourceText> source = readSourceText(bytes, bad_line);
    if (!source || source->text.find('\0') != std::string::npos) {
        return fail(ErrorCode::InvalidArgument, "{}: not UTF-8 text", path);
    }
    return std::move(source->text);
}

}  // namespace

Result<std::shared_ptr<Repository>> Repository::attach(
    const fs::path& root,
    const RepositoryConfig& config,
    std::shared_ptr<const agent::TokenCounter> counter) {
    BV_CHECK(counter != nullptr);
    std::error_code code;
    const fs::path canonical = fs::canonical(root, code);
    if (code) {
        const bool is_missing = code == std::errc::no_such_file_or_directory;
        return fail(is_missing ? ErrorCode::NotFound : ErrorCode::Io, "repository {}: {}",
                    root.native(), code.message());
    }
    if (!fs::is_directory(canonical, code)) {
        return fail(ErrorCode::InvalidArgument, "repository {}: not a folder", root.native());
    }
    const fs::directory_iterator readable(canonical, code);
    if (code) {
        return fail(ErrorCode::Io, "repository {}: {}", root.native(), code.message());
    }
    return std::make_shared<RepositoryImpl>(canonical, config, std::move(counter));
}

}  // namespace belvedere::tools
