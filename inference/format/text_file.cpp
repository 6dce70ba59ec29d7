// SPDX-License-Identifier: Apache-2.0
#include "inference/format/text_file.h"

#include "inference/format/byte_cursor.h"
#include "inference/format/mapped_file.h"

namespace belvedere::inference {

Result<std::string> readTextFile(const std::filesystem::path& path, size_t max_bytes) {
    const std::unique_ptr<MappedFile> file = BV_TRY(MappedFile::open(path.string()));
    if (file->bytes().size() > max_bytes) {
        return fail(ErrorCode::Corrupt, "{}: {} bytes, more than {}", path.string(),
                    file->bytes().size(), max_bytes);
    }
    return std::string(asText(file->bytes()));
}

}  // namespace belvedere::inference
