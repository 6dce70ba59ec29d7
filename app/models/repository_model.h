// SPDX-License-Identifier: Apache-2.0
#pragma once

// The attached folder as a tree with the tokens of each folder and file. Reads the repository's
// immutable token tree; a hundred thousand files cost nothing here. GUI thread only.

#include <QAbstractItemModel>
#include <memory>
#include <vector>

#include "tools/repository/repository.h"

namespace belvedere::app {

class RepositoryModel : public QAbstractItemModel {
    Q_OBJECT

  public:
    enum Role { PathRole = Qt::UserRole, IsFolderRole, TokensRole, ShareRole };

    using Tree = std::shared_ptr<const std::vector<tools::TreeNode>>;

    explicit RepositoryModel(QObject* parent = nullptr);

    /// nullptr: nothing attached.
    void setTree(Tree tree);

    [[nodiscard]] bool hasTree() const { return tree_ != nullptr && !tree_->empty(); }

    [[nodiscard]] QModelIndex index(int row, int column, const QModelIndex& parent) const override;
    [[nodiscard]] QModelIndex parent(const QModelIndex& child) const override;
    [[nodiscard]] int rowCount(const QModelIndex& parent) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;

    [[nodiscard]] QModelIndex indexOfPath(const QString& path) const;

  private:
    [[nodiscard]] const tools::TreeNode& node(const QModelIndex& index) const;

    Tree tree_;              // shared with the repository, immutable
    std::vector<int> rows_;  ///< of each node below its parent
};

}  // namespace belvedere::app
