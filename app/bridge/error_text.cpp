// SPDX-License-Identifier: Apache-2.0
#include "app/bridge/error_text.h"

#include <QCoreApplication>

#include "app/bridge/text.h"

namespace belvedere::app {

namespace {

QString advice(ErrorCode code) {
    const auto tr = [](const char* text) { return QCoreApplication::translate("ErrorText", text); };
    switch (code) {
        case ErrorCode::Cancelled:
            return {};
        case ErrorCode::InvalidArgument:
            return tr("Change what the message names and try again.");
        case ErrorCode::NotFound:
            return tr("Check that it still exists at this place, or choose another.");
        case ErrorCode::Io:
            return tr("Check free space, permissions and the connection, then try again.");
        case ErrorCode::Corrupt:
            return tr("The file is damaged or not what it claims to be. Fetch or make it anew.");
        case ErrorCode::Unsupported:
            return tr("This version cannot use it. Choose another, or a newer Belvedere.");
        case ErrorCode::OutOfMemory:
            return tr(
                "Close other programs, choose a smaller model or lower the context window in "
                "Settings.");
        case ErrorCode::Internal:
            return tr(
                "This is a mistake of Belvedere. Please report it with the log (menu, Copy log).");
    }
    return {};
}

}  // namespace

QString sentence(const std::string& message) {
    QString text = qstring(message).trimmed();
    if (!text.isEmpty()) {
        // "src/a.cpp: ..." begins with a name and keeps its case.
        const qsizetype end = text.indexOf(QLatin1Char(' '));
        const QStringView first = QStringView(text).left(end < 0 ? text.size() : end);
        if (!first.contains(QLatin1Char('/')) && !first.contains(QLatin1Char('.')) &&
            !first.contains(QLatin1Char('_'))) {
            text[0] = text[0].toUpper();
        }
        if (!text.endsWith(QLatin1Char('.'))) {
            text += QLatin1Char('.');
        }
    }
    return text;
}

ErrorText errorText(const Error& error, const QString& what) {
    return {what, sentence(error.message), advice(error.code)};
}

}  // namespace belvedere::app
