// SPDX-License-Identifier: Apache-2.0
#include "app/bridge/text.h"

#include <QCoreApplication>
#include <QLocale>
#include <cmath>

namespace belvedere::app {

QString countText(size_t n) {
    return QLocale().toString(static_cast<qulonglong>(n));
}

QString shortCountText(size_t n) {
    if (n < 1000) {
        return QString::number(n);
    }
    const bool is_mega = n >= 999'500;
    const double scaled = static_cast<double>(n) / (is_mega ? 1e6 : 1e3);
    return QLocale().toString(scaled, 'f', scaled < 99.95 ? 1 : 0) +
           QLatin1Char(is_mega ? 'M' : 'K');
}

QString bytesText(uint64_t n_bytes) {
    return QLocale().formattedDataSize(static_cast<qint64>(n_bytes), n_bytes < 1'000'000 ? 0 : 1,
                                       QLocale::DataSizeSIFormat);
}

QString durationText(double seconds) {
    const auto whole = static_cast<qint64>(std::ceil(seconds));
    const auto tr = [](const char* text) { return QCoreApplication::translate("Duration", text); };
    if (whole < 60) {
        return tr("%1 s").arg(whole);
    }
    if (whole < 3600) {
        return tr("%1 min").arg((whole + 30) / 60);
    }
    return tr("%1 h %2 min").arg(whole / 3600).arg(whole % 3600 / 60);
}

}  // namespace belvedere::app
