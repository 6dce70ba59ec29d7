// SPDX-License-Identifier: Apache-2.0
#pragma once

// Words for people, made from an error's code and message: a heading, the message, and what to do.
// Any thread.

#include <QString>

#include "kernels/base/result.h"

namespace belvedere::app {

struct ErrorText {
    QString title;
    QString detail;  ///< the message, as a sentence
    QString advice;
};

/// `what` says what did not work: "The model could not be opened".
[[nodiscard]] ErrorText errorText(const Error& error, const QString& what);

/// The message with a capital letter and a full stop.
[[nodiscard]] QString sentence(const std::string& message);

}  // namespace belvedere::app
