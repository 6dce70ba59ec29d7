// SPDX-License-Identifier: Apache-2.0
#pragma once

// Errors as values. A function that can fail returns Result<T>; BV_TRY passes the error up.
//
//     Result<Config> readConfig(const Path& path) {
//         const std::string text = BV_TRY(readFile(path));
//         return parseConfig(text);
//     }
//
// Any thread. Exceptions never cross one of our public functions.

#include <string>
#include <utility>

#include <fmt/core.h>
#include <tl/expected.hpp>

namespace belvedere {

/// Named by what the caller does about it.
enum class ErrorCode {
    Cancelled,        ///< the user stopped it: say nothing
    InvalidArgument,  ///< the request is wrong: tell the user what to change
    NotFound,         ///< the thing named does not exist
    Io,               ///< disk or network: try again, free space, check the connection
    Corrupt,          ///< a file is damaged or hostile: fetch or make it anew
    Unsupported,      ///< valid, but not something this program can do
    OutOfMemory,      ///< needs more memory than there is
    Internal,         ///< a bug of ours
};

/// "corrupt", "not found", ...: for logs and JSON.
[[nodiscard]] const char* errorCodeName(ErrorCode code);

/// What failed, with the values: lower case, no full stop.
struct Error {
    ErrorCode code = ErrorCode::Internal;
    std::string message;
};

/// tl::expected<T, Error> that may not be dropped. Use only what std::expected has too.
template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
  public:
    using Base = tl::expected<T, Error>;
    using Base::Base;

    // NOLINTNEXTLINE(google-explicit-constructor): monadic calls return the base class.
    Result(Base&& other) : Base(std::move(other)) {}
};

/// return fail(ErrorCode::Corrupt, "tensor {}: {} bytes missing", name, n);
template <class... Args>
[[nodiscard]] tl::unexpected<Error> fail(ErrorCode code,
                                         fmt::format_string<Args...> text,
                                         Args&&... args) {
    return tl::unexpected<Error>(Error{code, fmt::format(text, std::forward<Args>(args)...)});
}

/// The same error with this layer's fact before it: "loading model.gguf: ...".
[[nodiscard]] inline tl::unexpected<Error> failWithContext(Error error,
                                                           const std::string& context) {
    error.message = context + ": " + error.message;
    return tl::unexpected<Error>(std::move(error));
}

namespace detail {

template <class T>
T unwrap(Result<T>&& result) {
    if constexpr (!std::is_void_v<T>) {
        return std::move(*result);
    }
}

}  // namespace detail
}  // namespace belvedere

/// The value of a Result, or return its error from the enclosing function. A statement expression,
/// so it can stand wherever a value can, except behind something with a destructor inside the same
/// braces, parentheses or new expression: g++ 12 does not destroy that when BV_TRY returns.
#define BV_TRY(expression)                                                                    \
    __extension__({                                                                           \
        _Pragma("GCC diagnostic push")                                                        \
            _Pragma("GCC diagnostic ignored \"-Wshadow\"") auto bv_try_result = (expression); \
        _Pragma("GCC diagnostic pop") if (!bv_try_result.has_value()) {                       \
            return ::tl::unexpected<::belvedere::Error>(std::move(bv_try_result).error());    \
        }                                                                                     \
        ::belvedere::detail::unwrap(std::move(bv_try_result));                                \
    })
