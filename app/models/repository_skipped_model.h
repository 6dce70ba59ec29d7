// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files of the attached folder that are not read, each with its reason. Reads the repository's
// immutable report; rows are made when they are shown. GUI thread only.

#include <QAbstractListModel>
#include <memory>
#include <vector>

#include "tools/repository/repository.h"

namespace belvedere::app {

class RepositorySkippedModel : public QAbstractListModel {
    Q_OBJECT

  public:
    enum Role { ReasonRole = Qt::UserRole };

    using Report = std::shared_ptr<const tools::IngestReport>;

    explicit RepositorySkippedModel(QObject* parent = nullptr);

    /// nullptr: nothing attached.
    void setReport(Report report);

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    /// DisplayRole is the path.
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;

  private:
    Report report_;  // shared with the repository, immutable
};

}  // namespace belvedere::app
