// SPDX-License-Identifier: Apache-2.0
#include "tools/files/file_io.h"

#include <atomic>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temp_dir.h"

namespace belvedere::tools {
namespace {

namespace fs = std::filesystem;

class FileIo : public ::testing::Test {
  protected:
    FileIo() {
        dir_.write("outside/secret.txt", "secret");
        dir_.write("root/sub/a.txt", "inside");
        workspace_ = *Workspace::open(root_);
    }

    static std::string content(const fs::path& path) {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }

    size_t nFiles(const fs::path& folder) const {
        return static_cast<size_t>(
            std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
    }

    belvedere::testing::TempDir dir_;
    const fs::path root_ = dir_.path() / "root";
    std::shared_ptr<const Workspace> workspace_;
};

TEST_F(FileIo, ReadsBytesAndMode) {
    fs::permissions(root_ / "sub/a.txt", fs::perms(0640));
    const FileContent file = *readWholeFile(*workspace_, root_ / "sub/a.txt", 100);
    EXPECT_EQ(file.bytes, "inside");
    EXPECT_EQ(file.mode, 0640U);
}

TEST_F(FileIo, RefusesALinkThatAppearedAfterResolve) {
    const fs::path file = *workspace_->resolve("sub/a.txt");
    fs::remove(file);
    fs::create_symlink(dir_.path() / "outside/secret.txt", file);
    EXPECT_EQ(readWholeFile(*workspace_, file, 100).error().code, ErrorCode::InvalidArgument);
}

TEST_F(FileIo, RefusesAFolderThatBecameALink) {
    const fs::path file = *workspace_->resolve("sub/secret.txt");
    fs::rename(root_ / "sub", root_ / "old");
    fs::create_symlink(dir_.path() / "outside", root_ / "sub");
    EXPECT_EQ(readWholeFile(*workspace_, file, 100).error().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(writeWholeFile(*workspace_, file, "x", nullptr).error().code,
              ErrorCode::InvalidArgument);
    EXPECT_EQ(openFolder(*workspace_, root_ / "sub").error().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(content(dir_.path() / "outside/secret.txt"), "secret");
    EXPECT_EQ(nFiles(dir_.path() / "outside"), 1U);
}

TEST_F(FileIo, NeverReadsOutsideWhileAFolderFlipsToALink) {
    dir_.write("root/real/secret.txt", "inside");
    fs::create_symlink(dir_.path() / "outside", root_ / "fake");
    std::atomic<size_t> n_flips{0};
    const std::jthread flipper([&](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            // Swaps the two names in one step.
            renameat2(AT_FDCWD, (root_ / "real").c_str(), AT_FDCWD, (root_ / "fake").c_str(),
                      RENAME_EXCHANGE);
            ++n_flips;
        }
    });
    size_t n_read = 0;
    for (int i = 0; i < 3000 || (n_flips < 1000 && i < 300'000); ++i) {
        const Result<fs::path> path = workspace_->resolve("real/secret.txt");
        if (!path.has_value()) {
            continue;
        }
        const Result<FileContent> file = readWholeFile(*workspace_, *path, 100);
        if (file.has_value()) {
            ASSERT_EQ(file->bytes, "inside");
            ++n_read;
        }
    }
    EXPECT_GT(n_read, 0U);
}

TEST_F(FileIo, RefusesFoldersPipesAndLargeFiles) {
    ASSERT_EQ(mkfifo((root_ / "pipe").c_str(), 0600), 0);
    EXPECT_EQ(readWholeFile(*workspace_, root_ / "pipe", 100).error().message,
              "pipe: is no regular file (a device, pipe or socket)");
    EXPECT_EQ(readWholeFile(*workspace_, root_ / "sub", 100).error().message, "sub: is a folder");
    EXPECT_EQ(readWholeFile(*workspace_, root_, 100).error().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(readWholeFile(*workspace_, root_ / "sub/a.txt", 5).error().code,
              ErrorCode::Unsupported);
    EXPECT_EQ(readWholeFile(*workspace_, root_ / "none", 5).error().code, ErrorCode::NotFound);
    EXPECT_EQ(readWholeFile(*workspace_, root_ / "sub/a.txt/b", 5).error().code,
              ErrorCode::InvalidArgument);
}

TEST_F(FileIo, ReplacesInOneStepAndKeepsTheMode) {
    const fs::path path = root_ / "sub/a.txt";
    fs::permissions(path, fs::perms(0751));
    const FileContent old_content = *readWholeFile(*workspace_, path, 100);
    ASSERT_TRUE(writeWholeFile(*workspace_, path, "new", &old_content).has_value());
    EXPECT_EQ(content(path), "new");
    EXPECT_EQ(fs::status(path).permissions(), fs::perms(0751));
    EXPECT_EQ(nFiles(root_ / "sub"), 1U);  // nothing left beside it
}

TEST_F(FileIo, MakesMissingFolders) {
    ASSERT_TRUE(writeWholeFile(*workspace_, root_ / "x/y/z.txt", "new", nullptr).has_value());
    EXPECT_EQ(content(root_ / "x/y/z.txt"), "new");
}

TEST_F(FileIo, DoesNotOverwriteWhatAppearedOrChanged) {
    const fs::path path = root_ / "sub/a.txt";
    EXPECT_EQ(writeWholeFile(*workspace_, path, "new", nullptr).error().code,
              ErrorCode::InvalidArgument);
    const FileContent old_content = *readWholeFile(*workspace_, path, 100);
    dir_.write("root/sub/a.txt", "changed by hand");
    EXPECT_EQ(writeWholeFile(*workspace_, path, "new", &old_content).error().code,
              ErrorCode::InvalidArgument);
    EXPECT_EQ(content(path), "changed by hand");
    EXPECT_EQ(nFiles(root_ / "sub"), 1U);
}

}  // namespace
}  // namespace belvedere::tools
