// SPDX-License-Identifier: Apache-2.0
#include "app/models/repository_skipped_model.h"

#include "app/bridge/error_text.h"
#include "app/bridge/text.h"

namespace belvedere::app {

RepositorySkippedModel::RepositorySkippedModel(QObject* parent) : QAbstractListModel(parent) {}

void RepositorySkippedModel::setReport(Report report) {
    beginResetModel();
    report_ = std::move(report);
    endResetModel();
}

int RepositorySkippedModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() || report_ == nullptr ? 0 : static_cast<int>(report_->skipped.size());
}

QVariant RepositorySkippedModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= rowCount()) {
        return {};
    }
    const tools::SkippedFile& file = report_->skipped[static_cast<size_t>(index.row())];
    const auto reason = [&] {
        const QString name = qstring(tools::skipReasonName(file.reason));
        return file.detail.empty() ? name
                                   : QStringLiteral("%1: %2").arg(name, qstring(file.detail));
    };
    switch (role) {
        case Qt::DisplayRole:
            return qstring(file.path);
        case ReasonRole:
            return reason();
        case Qt::ToolTipRole:
        case Qt::AccessibleTextRole:
            return tr("%1, not read: %2").arg(qstring(file.path), reason());
        default:
            return {};
    }
}

}  // namespace belvedere::app
