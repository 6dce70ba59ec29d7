// SPDX-License-Identifier: Apache-2.0
#pragma once

// One row of the transcript laid out for a width: boxes, icons, labels and blocks of text, and the
// places that react to a click or a key. makeRow() knows each kind of row; painting knows only
// these parts. GUI thread only.

#include <QPainter>
#include <QRectF>
#include <QString>
#include <optional>
#include <vector>

#include "app/models/transcript_model.h"
#include "app/theme/theme.h"
#include "app/views/block_layout.h"

namespace belvedere::app {

struct RowAction {
    enum class Kind { Toggle, Copy, OpenCitation, OpenLink, Retry };
    Kind kind = Kind::Toggle;
    QString payload;  ///< the text to copy, "path:first-last", an address
    QString name;     ///< for menus and screen readers: "Copy code"

    bool operator==(const RowAction&) const = default;
};

struct RowLayout {
    struct Box {
        QRectF rect;
        Colour fill = Colour::Window;
        std::optional<Colour> stroke;
        qreal radius = 0;
    };

    struct Icon {
        QString name;
        Colour colour = Colour::TextMuted;
        QPointF position;
        int size = 16;
    };

    struct Label {
        QString text;
        QRectF rect;
        Text style = Text::Small;
        Colour colour = Colour::TextMuted;
        Qt::Alignment alignment = Qt::AlignLeft | Qt::AlignVCenter;
    };

    struct Area {
        QRectF rect;
        RowAction action;
        bool is_button = false;  ///< shows itself under the pointer
    };

    qreal width = 0;
    qreal height = 0;
    std::vector<Box> boxes;
    std::vector<Icon> icons;
    std::vector<Label> labels;
    std::vector<BlockLayout> blocks;
    std::vector<Area> areas;
    size_t n_stable = 0;   ///< leading blocks that a later layout takes over unseen
    bool checked = false;  ///< citations were checked when this was made
};

/// Lays a row out; `previous` is the layout of the same row before it changed, or nullptr.
[[nodiscard]] RowLayout makeRow(const TranscriptItem& item,
                                qreal width,
                                const Theme& theme,
                                RowLayout* previous);

/// What the row offers, for its menu: the areas and every link and citation in its text.
[[nodiscard]] std::vector<RowAction> rowActions(const RowLayout& row);

}  // namespace belvedere::app
