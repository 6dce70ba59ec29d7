// SPDX-License-Identifier: Apache-2.0
#include "app/models/repository_model.h"

#include "app/bridge/text.h"

namespace belvedere::app {

RepositoryModel::RepositoryModel(QObject* parent) : QAbstractItemModel(parent) {}

void RepositoryModel::setTree(Tree tree) {
    beginResetModel();
    tree_ = std::move(tree);
    rows_.assign(tree_ ? tree_->size() : 0, 0);
    if (tree_) {
        for (const tools::TreeNode& folder : *tree_) {
            for (size_t row = 0; row < folder.children.size(); ++row) {
                rows_[static_cast<size_t>(folder.children[row])] = static_cast<int>(row);
            }
        }
    }
    endResetModel();
}

const tools::TreeNode& RepositoryModel::node(const QModelIndex& index) const {
    return (*tree_)[index.isValid() ? static_cast<size_t>(index.internalId()) : 0];
}

QModelIndex RepositoryModel::index(int row, int column, const QModelIndex& parent) const {
    if (!hasTree() || column != 0 || row < 0) {
        return {};
    }
    const auto& children = node(parent).children;
    if (static_cast<size_t>(row) >= children.size()) {
        return {};
    }
    return createIndex(row, column, static_cast<quintptr>(children[static_cast<size_t>(row)]));
}

QModelIndex RepositoryModel::parent(const QModelIndex& child) const {
    if (!hasTree() || !child.isValid()) {
        return {};
    }
    const int above = node(child).parent;
    if (above <= 0) {
        return {};  // node 0 is the folder itself: the invisible root
    }
    return createIndex(rows_[static_cast<size_t>(above)], 0, static_cast<quintptr>(above));
}

int RepositoryModel::rowCount(const QModelIndex& parent) const {
    return hasTree() ? static_cast<int>(node(parent).children.size()) : 0;
}

int RepositoryModel::columnCount(const QModelIndex& /*parent*/) const {
    return 1;
}

QVariant RepositoryModel::data(const QModelIndex& index, int role) const {
    if (!hasTree() || !index.isValid()) {
        return {};
    }
    const tools::TreeNode& item = node(index);
    switch (role) {
        case Qt::DisplayRole:
            return qstring(item.name);
        case Qt::AccessibleTextRole:
        case Qt::ToolTipRole: {
            const QString tokens = tr("%1 tokens").arg(countText(item.n_tokens));
            return item.is_folder ? tr("%1, folder, %2 files, %3")
                                        .arg(qstring(item.path), countText(item.n_files), tokens)
                                  : tr("%1, %2").arg(qstring(item.path), tokens);
        }
        case PathRole:
            return qstring(item.path);
        case IsFolderRole:
            return item.is_folder;
        case TokensRole:
            return static_cast<qulonglong>(item.n_tokens);
        case ShareRole: {
            const size_t total = (*tree_)[0].n_tokens;
            return total == 0 ? 0.0
                              : static_cast<double>(item.n_tokens) / static_cast<double>(total);
        }
        default:
            return {};
    }
}

QModelIndex RepositoryModel::indexOfPath(const QString& path) const {
    if (!hasTree()) {
        return {};
    }
    QModelIndex at;
    for (const QString& name : path.split(QLatin1Char('/'), Qt::SkipEmptyParts)) {
        QModelIndex next;
        for (int row = 0; row < rowCount(at) && !next.isValid(); ++row) {
            const QModelIndex child = index(row, 0, at);
            if (data(child, Qt::DisplayRole).toString() == name) {
                next = child;
            }
        }
        if (!next.isValid()) {
            return {};
        }
        at = next;
    }
    return at;
}

}  // namespace belvedere::app
