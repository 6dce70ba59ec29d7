// SPDX-License-Identifier: Apache-2.0
#include "app/models/transcript_text.h"

#include <QCoreApplication>
#include <QLocale>
#include <QStringList>

#include "app/bridge/text.h"

namespace belvedere::app {

namespace {

QString tr(const char* text) {
    return QCoreApplication::translate("Transcript", text);
}

QString planText(const agent::Plan& plan) {
    QStringList lines{tr("Plan")};
    for (const agent::PlanStep& step : plan.steps) {
        lines += QStringLiteral("%1: %2").arg(qstring(step.title), stepStatusText(step.status));
    }
    return lines.join(QLatin1Char('\n'));
}

QString contextText(const agent::ContextChanged& context) {
    QStringList lines{contextSummary(context)};
    for (const auto& piece : context.pieces) {
        lines += QStringLiteral("%1:%2-%3")
                     .arg(qstring(piece->path))
                     .arg(piece->first_line)
                     .arg(piece->last_line);
    }
    return lines.join(QLatin1Char('\n'));
}

}  // namespace

QString transcriptText(const TranscriptItem& item) {
    using Kind = TranscriptItem::Kind;
    switch (item.kind) {
        case Kind::User:
        case Kind::Notice:
        case Kind::Thinking:
            return item.text;
        case Kind::Context:
            return contextText(*item.context);
        case Kind::Answer:
            return qstring(item.markdown.source());
        case Kind::ToolCall:
            return QStringLiteral("%1 (%2)\n%3")
                .arg(item.title, callStateText(item.call_state), item.output)
                .trimmed();
        case Kind::Plan:
            return planText(item.plan);
        case Kind::Error:
            return QStringList{item.title, item.text, item.advice}.join(QLatin1Char('\n'));
        case Kind::End: {
            QStringList parts{turnEndText(item.end)};
            if (item.usage) {
                parts += usageText(*item.usage);
            }
            parts.removeAll({});
            return parts.join(QStringLiteral(" "));
        }
    }
    return {};
}

QString contextSummary(const agent::ContextChanged& context) {
    if (context.n_files == context.n_files_total &&
        context.n_source_tokens == context.n_source_tokens_total) {
        return tr("All %1 files, %2 tokens in context")
            .arg(countText(context.n_files), countText(context.n_source_tokens));
    }
    return tr("%1 of %2 files, %3 of %4 tokens in context")
        .arg(countText(context.n_files), countText(context.n_files_total),
             countText(context.n_source_tokens), countText(context.n_source_tokens_total));
}

QString callStateText(CallState state) {
    switch (state) {
        case CallState::Running:
            return tr("Running");
        case CallState::Waiting:
            return tr("Waiting for you");
        case CallState::Done:
            return tr("Done");
        case CallState::Failed:
            return tr("Failed");
        case CallState::Denied:
            return tr("Denied");
        case CallState::Stopped:
            return tr("Stopped");
    }
    return {};
}

QString turnEndText(agent::TurnEnd end) {
    switch (end) {
        case agent::TurnEnd::Cancelled:
            return tr("Stopped.");
        case agent::TurnEnd::Interrupted:
            return tr("Interrupted: the program ended before this answer was finished.");
        case agent::TurnEnd::RoundLimit:
            return tr(
                "Paused: the limit of steps in one turn is reached. Send a message to go on.");
        case agent::TurnEnd::Done:
        case agent::TurnEnd::Failed:
            return {};
    }
    return {};
}

QString usageText(const agent::UsageUpdated& usage) {
    const QLocale locale;
    QStringList parts;
    if (usage.generation_seconds > 0 && usage.n_generated > 0) {
        const double rate = static_cast<double>(usage.n_generated) / usage.generation_seconds;
        parts += tr("%1 tokens/s").arg(locale.toString(rate, 'f', rate < 10 ? 1 : 0));
        if (usage.n_accepted > 0) {
            parts += tr("%1 of %2 tokens drafted right")
                         .arg(countText(usage.n_accepted), countText(usage.n_generated));
        }
    }
    if (usage.first_token_seconds > 0) {
        parts += tr("first after %1 s")
                     .arg(locale.toString(usage.first_token_seconds, 'f',
                                          usage.first_token_seconds < 10 ? 1 : 0));
    }
    if (usage.n_prompt > 0) {
        parts += usage.n_cached > 0 ? tr("%1 of %2 prompt tokens from the cache")
                                          .arg(countText(usage.n_cached), countText(usage.n_prompt))
                                    : tr("%1 prompt tokens").arg(countText(usage.n_prompt));
    }
    return parts.join(QStringLiteral("  \u00b7  "));
}

QString activityText(const Activity& activity) {
    switch (activity.phase) {
        case Activity::Phase::Idle:
        case Activity::Phase::Answering:
            return {};
        case Activity::Phase::Starting:
            return tr("Preparing");
        case Activity::Phase::Reading:
            return tr("Reading: %1 of %2 tokens")
                .arg(countText(activity.n_done), countText(activity.n_total));
        case Activity::Phase::RunningTool:
            return tr("Running a tool");
        case Activity::Phase::Waiting:
            return tr("Waiting for your permission");
    }
    return {};
}

QString stepStatusText(agent::StepStatus status) {
    switch (status) {
        case agent::StepStatus::Pending:
            return tr("to do");
        case agent::StepStatus::InProgress:
            return tr("in progress");
        case agent::StepStatus::Done:
            return tr("done");
        case agent::StepStatus::Failed:
            return tr("failed");
        case agent::StepStatus::Skipped:
            return tr("skipped");
    }
    return {};
}

}  // namespace belvedere::app
