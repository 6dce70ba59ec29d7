// SPDX-License-Identifier: Apache-2.0
#include "app/headless/sha256.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include <openssl/evp.h>

namespace belvedere::app {
namespace {

constexpr size_t kReadBytes = 1 << 20;

struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

Result<std::string> sha256OfFile(const std::filesystem::path& file,
                                 const std::function<void(uint64_t n_bytes)>& progress,
                                 std::stop_token stop) {
    const std::unique_ptr<std::FILE, CloseFile> in(std::fopen(file.c_str(), "rbe"));
    if (in == nullptr) {
        const ErrorCode code = errno == ENOENT ? ErrorCode::NotFound : ErrorCode::Io;
        return fail(code, "{}: {}", file.string(), std::strerror(errno));
    }
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest(EVP_MD_CTX_new(),
                                                                         &EVP_MD_CTX_free);
    if (digest == nullptr || EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr) != 1) {
        return fail(ErrorCode::Internal, "SHA-256 is not available");
    }
    std::vector<unsigned char> buffer(kReadBytes);
    uint64_t n_bytes = 0;
    while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), in.get())) {
        if (stop.stop_requested()) {
            return fail(ErrorCode::Cancelled, "cancelled");
        }
        EVP_DigestUpdate(digest.get(), buffer.data(), n);
        n_bytes += n;
        if (progress) {
            progress(n_bytes);
        }
    }
    if (std::ferror(in.get()) != 0) {
        return fail(ErrorCode::Io, "{}: {}", file.string(), std::strerror(errno));
    }
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned int n_hash = 0;
    EVP_DigestFinal_ex(digest.get(), hash, &n_hash);
    std::string hex;
    for (unsigned int i = 0; i < n_hash; ++i) {
        hex += fmt::format("{:02x}", hash[i]);
    }
    return hex;
}

}  // namespace belvedere::app
