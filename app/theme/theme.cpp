// SPDX-License-Identifier: Apache-2.0
#include "app/theme/theme.h"

#include <QFile>
#include <QFontDatabase>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QPainter>
#include <QSvgRenderer>

#include "app/bridge/text.h"

// The resource of a static library has to be named once, outside any namespace.
static void initResources() {
    Q_INIT_RESOURCE(app);
}

namespace belvedere::app {

namespace {

struct ColourName {
    Colour colour;
    const char* name;
};

constexpr std::array<ColourName, kNumColours> kColourNames{{
    {Colour::Window, "window"},
    {Colour::Sidebar, "sidebar"},
    {Colour::Surface, "surface"},
    {Colour::SurfaceHover, "surfaceHover"},
    {Colour::SurfacePressed, "surfacePressed"},
    {Colour::Border, "border"},
    {Colour::BorderStrong, "borderStrong"},
    {Colour::Text, "text"},
    {Colour::TextMuted, "textMuted"},
    {Colour::TextFaint, "textFaint"},
    {Colour::Accent, "accent"},
    {Colour::AccentHover, "accentHover"},
    {Colour::AccentText, "accentText"},
    {Colour::AccentSoft, "accentSoft"},
    {Colour::Positive, "positive"},
    {Colour::PositiveSoft, "positiveSoft"},
    {Colour::Warning, "warning"},
    {Colour::WarningSoft, "warningSoft"},
    {Colour::Danger, "danger"},
    {Colour::DangerSoft, "dangerSoft"},
    {Colour::Selection, "selection"},
    {Colour::CodeBackground, "codeBackground"},
    {Colour::CodeInline, "codeInline"},
    {Colour::LineHighlight, "lineHighlight"},
    {Colour::Keyword, "keyword"},
    {Colour::String, "string"},
    {Colour::Number, "number"},
    {Colour::Comment, "comment"},
    {Colour::Type, "type"},
    {Colour::Function, "function"},
    {Colour::Preprocessor, "preprocessor"},
    {Colour::MeterSystem, "meterSystem"},
    {Colour::MeterSources, "meterSources"},
    {Colour::MeterConversation, "meterConversation"},
    {Colour::MeterTools, "meterTools"},
    {Colour::MeterOther, "meterOther"},
    {Colour::Shadow, "shadow"},
}};

struct TextName {
    Text text;
    const char* name;
};

constexpr std::array<TextName, kNumTexts> kTextNames{{
    {Text::Title, "title"},
    {Text::Heading1, "heading1"},
    {Text::Heading2, "heading2"},
    {Text::Heading3, "heading3"},
    {Text::Body, "body"},
    {Text::BodyStrong, "bodyStrong"},
    {Text::Ui, "ui"},
    {Text::UiStrong, "uiStrong"},
    {Text::Small, "small"},
    {Text::SmallStrong, "smallStrong"},
    {Text::Caption, "caption"},
    {Text::Code, "code"},
    {Text::CodeSmall, "codeSmall"},
}};

struct SizeName {
    int Sizes::* field;
    const char* name;
};

constexpr std::array<SizeName, 14> kSizeNames{{
    {&Sizes::column, "column"},
    {&Sizes::gutter, "gutter"},
    {&Sizes::row_gap, "rowGap"},
    {&Sizes::block_gap, "blockGap"},
    {&Sizes::card_padding, "cardPadding"},
    {&Sizes::radius, "radius"},
    {&Sizes::radius_small, "radiusSmall"},
    {&Sizes::control, "control"},
    {&Sizes::icon, "icon"},
    {&Sizes::header, "header"},
    {&Sizes::strip, "strip"},
    {&Sizes::sidebar, "sidebar"},
    {&Sizes::source, "source"},
    {&Sizes::indent, "indent"},
}};

Result<QByteArray> readResource(const QString& path) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) {
        return fail(ErrorCode::Internal, "embedded file {} is missing from this build", utf8(path));
    }
    return file.readAll();
}

void addFonts() {
    for (const char* name :
         {"Inter-Regular.otf", "Inter-Medium.otf", "Inter-SemiBold.otf", "Inter-Italic.otf",
          "JetBrainsMono-Regular.ttf", "JetBrainsMono-Medium.ttf"}) {
        QFontDatabase::addApplicationFont(QStringLiteral(":/fonts/") + QLatin1String(name));
    }
}

QStringList toStrings(const QJsonValue& array) {
    QStringList strings;
    for (const auto value : array.toArray()) {
        strings += value.toString();
    }
    return strings;
}

Result<QFont> fontFrom(const QJsonObject& style, const QJsonObject& families, const char* name) {
    const bool is_code = style.value(QLatin1String("family")).toString() == QLatin1String("code");
    const double size = style.value(QLatin1String("size")).toDouble();
    const int weight = style.value(QLatin1String("weight")).toInt();
    if (size < 6 || size > 60 || weight < 100 || weight > 900) {
        return fail(ErrorCode::Corrupt, "theme: text.{}: size {} or weight {} is out of range",
                    name, size, weight);
    }
    QFont font;
    font.setFamilies(toStrings(families.value(QLatin1String(is_code ? "code" : "ui"))));
    font.setPointSizeF(size * 0.75);  // 96 units an inch: pixels of the design to points
    font.setWeight(static_cast<QFont::Weight>(weight));
    font.setStyleHint(is_code ? QFont::Monospace : QFont::SansSerif);
    font.setHintingPreference(QFont::PreferVerticalHinting);
    font.setPixelSize(qRound(size));
    if (is_code) {
        font.setFixedPitch(true);
        font.setStyleStrategy(QFont::PreferAntialias);
    }
    return font;
}

}  // namespace

Result<std::unique_ptr<Theme>> Theme::load() {
    initResources();
    addFonts();
    return fromJson(BV_TRY(readResource(QStringLiteral(":/theme/theme.json"))));
}

Result<std::unique_ptr<Theme>> Theme::fromJson(const QByteArray& json) {
    initResources();
    QJsonParseError parse_error;
    const QJsonObject root = QJsonDocument::fromJson(json, &parse_error).object();
    if (parse_error.error != QJsonParseError::NoError) {
        return fail(ErrorCode::Corrupt, "theme: {} at byte {}", utf8(parse_error.errorString()),
                    parse_error.offset);
    }
    std::unique_ptr<Theme> theme(new Theme);
    for (size_t dark = 0; dark < 2; ++dark) {
        const char* section = dark == 1 ? "dark" : "light";
        const QJsonObject colours = root.value(QLatin1String(section)).toObject();
        for (const auto& [colour, name] : kColourNames) {
            const QColor value(colours.value(QLatin1String(name)).toString());
            if (!value.isValid()) {
                return fail(ErrorCode::Corrupt, "theme: {}.{} is missing or no colour", section,
                            name);
            }
            theme->palettes_[dark][static_cast<size_t>(colour)] = value;
        }
    }
    const QJsonObject families = root.value(QLatin1String("fonts")).toObject();
    const QJsonObject texts = root.value(QLatin1String("text")).toObject();
    for (const auto& [text, name] : kTextNames) {
        const QJsonObject style = texts.value(QLatin1String(name)).toObject();
        const QFont font = BV_TRY(fontFrom(style, families, name));
        theme->fonts_[static_cast<size_t>(text)] = font;
        theme->line_heights_[static_cast<size_t>(text)] =
            qRound(font.pixelSize() * style.value(QLatin1String("line")).toDouble(1.4));
    }
    const QJsonObject sizes = root.value(QLatin1String("sizes")).toObject();
    for (const auto& [field, name] : kSizeNames) {
        const int value = sizes.value(QLatin1String(name)).toInt();
        if (value <= 0) {
            return fail(ErrorCode::Corrupt, "theme: sizes.{} is missing or not positive", name);
        }
        theme->sizes_.*field = value;
    }
    theme->style_template_ =
        QString::fromUtf8(BV_TRY(readResource(QStringLiteral(":/theme/style.qss"))));
    return theme;
}

void Theme::setScheme(Scheme scheme) {
    scheme_ = scheme;
    update();
}

void Theme::setSystemDark(bool is_dark) {
    system_is_dark_ = is_dark;
    update();
}

void Theme::update() {
    const bool is_dark = scheme_ == Scheme::Dark || (scheme_ == Scheme::System && system_is_dark_);
    if (is_dark == is_dark_) {
        return;
    }
    is_dark_ = is_dark;
    pixmaps_.clear();
    Q_EMIT changed();
}

QString Theme::styleSheet() const {
    QString sheet = style_template_;
    // Longest names first: "@accent" is the beginning of "@accentSoft".
    std::vector<ColourName> names(kColourNames.begin(), kColourNames.end());
    std::sort(names.begin(), names.end(), [](const ColourName& a, const ColourName& b) {
        return std::char_traits<char>::length(a.name) > std::char_traits<char>::length(b.name);
    });
    for (const auto& [name, text] : names) {
        sheet.replace(QLatin1Char('@') + QLatin1String(text), colour(name).name(QColor::HexArgb));
    }
    return sheet;
}

QPalette Theme::palette() const {
    QPalette palette;
    palette.setColor(QPalette::Window, colour(Colour::Window));
    palette.setColor(QPalette::Base, colour(Colour::Window));
    palette.setColor(QPalette::AlternateBase, colour(Colour::Surface));
    palette.setColor(QPalette::WindowText, colour(Colour::Text));
    palette.setColor(QPalette::Text, colour(Colour::Text));
    palette.setColor(QPalette::Button, colour(Colour::Surface));
    palette.setColor(QPalette::ButtonText, colour(Colour::Text));
    palette.setColor(QPalette::BrightText, colour(Colour::Danger));
    palette.setColor(QPalette::ToolTipBase, colour(Colour::Surface));
    palette.setColor(QPalette::ToolTipText, colour(Colour::Text));
    palette.setColor(QPalette::Highlight, colour(Colour::Selection));
    palette.setColor(QPalette::HighlightedText, colour(Colour::Text));
    palette.setColor(QPalette::Link, colour(Colour::Accent));
    palette.setColor(QPalette::LinkVisited, colour(Colour::Accent));
    palette.setColor(QPalette::PlaceholderText, colour(Colour::TextFaint));
    palette.setColor(QPalette::Mid, colour(Colour::BorderStrong));
    palette.setColor(QPalette::Dark, colour(Colour::BorderStrong));
    palette.setColor(QPalette::Light, colour(Colour::Surface));
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) {
        palette.setColor(QPalette::Disabled, role, colour(Colour::TextFaint));
    }
    return palette;
}

QPixmap Theme::pixmap(const QString& icon, Colour name, int size, qreal pixel_ratio) const {
    const QString key = QStringLiteral("%1/%2/%3/%4")
                            .arg(icon)
                            .arg(static_cast<int>(name))
                            .arg(size)
                            .arg(pixel_ratio);
    const auto found = pixmaps_.constFind(key);
    if (found != pixmaps_.constEnd()) {
        return *found;
    }
    const int side = qRound(size * pixel_ratio);
    QImage image(side, side, QImage::Format_ARGB32_Premultiplied);
    image.fill(Qt::transparent);
    QPainter painter(&image);
    QSvgRenderer renderer(QStringLiteral(":/icons/%1.svg").arg(icon));
    renderer.render(&painter, QRectF(0, 0, side, side));
    if (icon != QLatin1String("belvedere")) {  // the mark keeps its colours
        painter.setCompositionMode(QPainter::CompositionMode_SourceIn);
        painter.fillRect(image.rect(), colour(name));
    }
    painter.end();
    QPixmap pixmap = QPixmap::fromImage(image);
    pixmap.setDevicePixelRatio(pixel_ratio);
    pixmaps_.insert(key, pixmap);
    return pixmap;
}

QIcon Theme::icon(const QString& icon, Colour name) const {
    QIcon result;
    for (const qreal ratio : {1.0, 2.0}) {
        result.addPixmap(pixmap(icon, name, sizes_.icon, ratio));
        result.addPixmap(pixmap(icon, Colour::TextFaint, sizes_.icon, ratio), QIcon::Disabled);
    }
    return result;
}

}  // namespace belvedere::app
