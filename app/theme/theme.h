// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the window looks: colours, sizes and text styles of one file, resources/theme/theme.json, in
// its light or its dark form. Views ask it while painting and repaint on changed(). GUI thread
// only.

#include <QColor>
#include <QFont>
#include <QHash>
#include <QIcon>
#include <QObject>
#include <QPalette>
#include <QPixmap>
#include <array>
#include <memory>

#include "kernels/base/result.h"

namespace belvedere::app {

enum class Scheme { System, Light, Dark };

enum class Colour {
    Window,
    Sidebar,
    Surface,
    SurfaceHover,
    SurfacePressed,
    Border,
    BorderStrong,
    Text,
    TextMuted,
    TextFaint,
    Accent,
    AccentHover,
    AccentText,
    AccentSoft,
    Positive,
    PositiveSoft,
    Warning,
    WarningSoft,
    Danger,
    DangerSoft,
    Selection,
    CodeBackground,
    CodeInline,
    LineHighlight,
    Keyword,
    String,
    Number,
    Comment,
    Type,
    Function,
    Preprocessor,
    MeterSystem,
    MeterSources,
    MeterConversation,
    MeterTools,
    MeterOther,
    Shadow,
};
inline constexpr size_t kNumColours = size_t{static_cast<size_t>(Colour::Shadow)} + 1;

enum class Text {
    Title,
    Heading1,
    Heading2,
    Heading3,
    Body,
    BodyStrong,
    Ui,
    UiStrong,
    Small,
    SmallStrong,
    Caption,
    Code,
    CodeSmall,
};
inline constexpr size_t kNumTexts = size_t{static_cast<size_t>(Text::CodeSmall)} + 1;

/// Lengths in device-independent pixels.
struct Sizes {
    int column = 0;  ///< widest line of the transcript
    int gutter = 0;  ///< least space beside it
    int row_gap = 0;
    int block_gap = 0;
    int card_padding = 0;
    int radius = 0;
    int radius_small = 0;
    int control = 0;
    int icon = 0;
    int header = 0;
    int strip = 0;
    int sidebar = 0;
    int source = 0;
    int indent = 0;
};

class Theme : public QObject {
    Q_OBJECT

  public:
    /// Reads the embedded theme file. Errors: Corrupt naming the key that is missing or wrong.
    static Result<std::unique_ptr<Theme>> load();
    /// The same from text, for tests.
    static Result<std::unique_ptr<Theme>> fromJson(const QByteArray& json);

    [[nodiscard]] QColor colour(Colour name) const {
        return palettes_[is_dark_ ? 1 : 0][static_cast<size_t>(name)];
    }

    [[nodiscard]] QFont font(Text style) const { return fonts_[static_cast<size_t>(style)]; }

    /// Height of a line of this style.
    [[nodiscard]] qreal lineHeight(Text style) const {
        return line_heights_[static_cast<size_t>(style)];
    }

    [[nodiscard]] const Sizes& sizes() const { return sizes_; }

    [[nodiscard]] bool isDark() const { return is_dark_; }

    [[nodiscard]] Scheme scheme() const { return scheme_; }

    /// System follows setSystemDark().
    void setScheme(Scheme scheme);
    void setSystemDark(bool is_dark);

    /// Style sheet and palette of the whole application in the present form.
    [[nodiscard]] QString styleSheet() const;
    [[nodiscard]] QPalette palette() const;

    /// An icon of resources/icons in a colour of the theme.
    [[nodiscard]] QPixmap pixmap(const QString& icon,
                                 Colour colour,
                                 int size,
                                 qreal pixel_ratio) const;
    [[nodiscard]] QIcon icon(const QString& icon, Colour colour = Colour::TextMuted) const;

  Q_SIGNALS:
    void changed();

  private:
    Theme() = default;

    void update();

    std::array<std::array<QColor, kNumColours>, 2> palettes_;  ///< light, dark
    std::array<QFont, kNumTexts> fonts_;
    std::array<qreal, kNumTexts> line_heights_{};
    Sizes sizes_;
    QHash<QString, QString> style_values_;  ///< "%body%" -> "font: ..."
    QString style_template_;
    Scheme scheme_ = Scheme::System;
    bool system_is_dark_ = false;
    bool is_dark_ = false;
    mutable QHash<QString, QPixmap> pixmaps_;
};

}  // namespace belvedere::app
