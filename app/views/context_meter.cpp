// SPDX-License-Identifier: Apache-2.0
#include "app/views/context_meter.h"

#include <QCoreApplication>
#include <QFontMetricsF>
#include <QHelpEvent>
#include <QLocale>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>

#include "app/bridge/text.h"
#include "app/models/transcript_text.h"

namespace belvedere::app {

namespace {

constexpr int kMargin = 14;
constexpr int kGap = 12;
constexpr int kBarWidth = 150;
constexpr int kBarHeight = 8;

struct Category {
    const char* name;
    const char* title;
    Colour colour;
};

// The names of agent::ContextChanged::Category.
constexpr Category kCategories[] = {
    {"system", QT_TRANSLATE_NOOP("ContextMeter", "Instructions"), Colour::MeterSystem},
    {"tools", QT_TRANSLATE_NOOP("ContextMeter", "Tools"), Colour::MeterTools},
    {"sources", QT_TRANSLATE_NOOP("ContextMeter", "Sources"), Colour::MeterSources},
    {"conversation", QT_TRANSLATE_NOOP("ContextMeter", "Conversation"), Colour::MeterConversation},
};

QString tr(const char* text) {
    return QCoreApplication::translate("ContextMeter", text);
}

QString percent(double share) {
    return QLocale().toString(share * 100, 'f', share < 0.0995 && share > 0 ? 1 : 0) +
           QStringLiteral("\u00a0%");
}

}  // namespace

std::vector<MeterPart> meterParts(const agent::ContextChanged& context) {
    std::vector<MeterPart> parts;
    for (const Category& known : kCategories) {
        for (const auto& category : context.categories) {
            if (category.name == known.name && category.n_tokens > 0) {
                parts.push_back({tr(known.title), category.n_tokens, known.colour});
            }
        }
    }
    size_t n_named = 0;
    for (const MeterPart& part : parts) {
        n_named += part.n_tokens;
    }
    if (context.n_tokens > n_named) {
        parts.push_back({tr("Other"), context.n_tokens - n_named, Colour::MeterOther});
    }
    return parts;
}

QString coverageText(const agent::ContextChanged& context) {
    if (context.n_files_total == 0) {
        return tr("%1 of %2 tokens")
            .arg(shortCountText(context.n_tokens), shortCountText(context.window_tokens));
    }
    return tr("%1 of %2 files, %3 of %4 tokens")
        .arg(countText(context.n_files), countText(context.n_files_total),
             shortCountText(context.n_source_tokens),
             shortCountText(context.n_source_tokens_total));
}

QString rateText(const Activity& activity,
                 const std::optional<agent::UsageUpdated>& usage,
                 bool is_short) {
    switch (activity.phase) {
        case Activity::Phase::Reading: {
            const double share = activity.n_total == 0 ? 0
                                                       : static_cast<double>(activity.n_done) /
                                                             static_cast<double>(activity.n_total);
            return is_short ? tr("Reading %1").arg(percent(share))
                            : tr("Reading the context: %1 of %2 tokens, %3")
                                  .arg(countText(activity.n_done), countText(activity.n_total),
                                       percent(share));
        }
        case Activity::Phase::Answering:
            return tr("Answering");
        case Activity::Phase::Idle:
            break;
        default:
            return activityText(activity);
    }
    if (!usage) {
        return {};
    }
    if (is_short && usage->n_generated > 0 && usage->generation_seconds > 0) {
        const double rate = static_cast<double>(usage->n_generated) / usage->generation_seconds;
        return tr("%1 tokens/s").arg(QLocale().toString(rate, 'f', rate < 10 ? 1 : 0));
    }
    return usageText(*usage);
}

ContextMeter::ContextMeter(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    setObjectName(QStringLiteral("strip"));
    setAttribute(Qt::WA_StyledBackground);
    setFixedHeight(theme.sizes().strip);
    connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void ContextMeter::setTranscript(TranscriptModel* transcript) {
    if (transcript_ != nullptr) {
        transcript_->disconnect(this);
    }
    transcript_ = transcript;
    if (transcript != nullptr) {
        connect(transcript, &TranscriptModel::contextChanged, this, &ContextMeter::refresh);
        connect(transcript, &TranscriptModel::usageChanged, this, &ContextMeter::refresh);
        connect(transcript, &TranscriptModel::activityChanged, this, &ContextMeter::refresh);
    }
    refresh();
}

void ContextMeter::setIdleText(const QString& text) {
    idle_text_ = text;
    refresh();
}

void ContextMeter::refresh() {
    QString name = idle_text_;
    QString rate;
    if (transcript_ != nullptr) {
        if (transcript_->context() != nullptr) {
            const agent::ContextChanged& context = *transcript_->context();
            name = tr("Context: %1 of %2 tokens used. %3")
                       .arg(countText(context.n_tokens), countText(context.window_tokens),
                            coverageText(context));
        }
        rate = rateText(transcript_->activity(), transcript_->usage(), false);
    }
    setAccessibleName(name);
    setAccessibleDescription(rate);
    update();
}

QSize ContextMeter::sizeHint() const {
    return {600, theme_.sizes().strip};
}

QSize ContextMeter::minimumSizeHint() const {
    return {200, theme_.sizes().strip};
}

QRectF ContextMeter::barRect() const {
    return {kMargin, (height() - kBarHeight) / 2.0 + 0.5, kBarWidth, kBarHeight};
}

void ContextMeter::paintEvent(QPaintEvent* /*event*/) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillRect(rect(), theme_.colour(Colour::Sidebar));
    painter.fillRect(QRectF(0, 0, width(), 1), theme_.colour(Colour::Border));
    const QFont font = theme_.font(Text::Small);
    const QFontMetricsF metrics(font);
    painter.setFont(font);

    const bool has_context = transcript_ != nullptr && transcript_->context() != nullptr;
    qreal left = kMargin;
    QString coverage = idle_text_;
    if (has_context) {
        const agent::ContextChanged& context = *transcript_->context();
        const QRectF bar = barRect();
        QPainterPath outline;
        outline.addRoundedRect(bar, kBarHeight / 2.0, kBarHeight / 2.0);
        painter.save();
        painter.setClipPath(outline);
        painter.fillRect(bar, theme_.colour(Colour::SurfacePressed));
        qreal x = bar.left();
        for (const MeterPart& part : meterParts(context)) {
            const double share = static_cast<double>(part.n_tokens) /
                                 static_cast<double>(std::max<size_t>(context.window_tokens, 1));
            const qreal width = std::max(1.5, bar.width() * share);
            painter.fillRect(QRectF(x, bar.top(), width, bar.height()), theme_.colour(part.colour));
            x += width + 1;
        }
        painter.restore();
        left = bar.right() + kGap;
        const double used = static_cast<double>(context.n_tokens) /
                            static_cast<double>(std::max<size_t>(context.window_tokens, 1));
        const QString share = percent(used);
        painter.setPen(theme_.colour(Colour::TextMuted));
        painter.drawText(QRectF(left, 0, width() - left, height()), Qt::AlignVCenter, share);
        left += metrics.horizontalAdvance(share) + kGap;
        coverage = coverageText(context);
    }

    // The rate stands at the right; where both do not fit, it is the one that gets shorter first.
    const qreal room = width() - left - kMargin;
    const qreal coverage_width = metrics.horizontalAdvance(coverage);
    QString rate;
    if (transcript_ != nullptr) {
        for (const bool is_short : {false, true}) {
            rate = rateText(transcript_->activity(), transcript_->usage(), is_short);
            if (metrics.horizontalAdvance(rate) + kGap + coverage_width <= room) {
                break;
            }
        }
    }
    const qreal rate_width = std::min(room / 2, metrics.horizontalAdvance(rate));
    painter.setPen(theme_.colour(Colour::TextMuted));
    painter.drawText(QRectF(left, 0, room - rate_width - kGap, height()),
                     Qt::AlignVCenter | Qt::AlignLeft,
                     metrics.elidedText(coverage, Qt::ElideRight, room - rate_width - kGap));
    painter.drawText(QRectF(width() - kMargin - rate_width, 0, rate_width, height()),
                     Qt::AlignVCenter | Qt::AlignRight,
                     metrics.elidedText(rate, Qt::ElideRight, rate_width + 1));
}

QString ContextMeter::tooltip() const {
    if (transcript_ == nullptr || transcript_->context() == nullptr) {
        return {};
    }
    const agent::ContextChanged& context = *transcript_->context();
    QString rows;
    const auto row = [&](const QColor& colour, const QString& name, size_t n_tokens) {
        rows += QStringLiteral(
                    "<tr><td style='color:%1'>\u25a0&nbsp;</td><td>%2&nbsp;&nbsp;&nbsp;</td>"
                    "<td align='right'>%3</td></tr>")
                    .arg(colour.name(), name.toHtmlEscaped(), countText(n_tokens));
    };
    for (const MeterPart& part : meterParts(context)) {
        row(theme_.colour(part.colour), part.name, part.n_tokens);
    }
    if (context.window_tokens > context.n_tokens) {
        row(theme_.colour(Colour::BorderStrong), tr("Free"),
            context.window_tokens - context.n_tokens);
    }
    QString text =
        QStringLiteral("<b>%1</b><table>%2</table>")
            .arg(tr("Context window: %1 tokens").arg(countText(context.window_tokens)), rows);
    if (context.n_files_total > 0) {
        text +=
            tr("Sources: %1 of %2 files, %3 of %4 tokens.")
                .arg(countText(context.n_files), countText(context.n_files_total),
                     countText(context.n_source_tokens), countText(context.n_source_tokens_total));
    }
    const QString rate = rateText(transcript_->activity(), transcript_->usage(), false);
    if (!rate.isEmpty()) {
        text += QStringLiteral("<br>") + rate.toHtmlEscaped();
    }
    return text;
}

bool ContextMeter::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        QToolTip::showText(static_cast<QHelpEvent*>(event)->globalPos(), tooltip(), this);
        return true;
    }
    return QWidget::event(event);
}

}  // namespace belvedere::app
