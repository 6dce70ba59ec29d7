// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of the transcript in words: for screen readers, for copying, for captions. GUI thread only.

#include <QString>

#include "app/models/transcript_model.h"

namespace belvedere::app {

/// The whole row as plain text.
[[nodiscard]] QString transcriptText(const TranscriptItem& item);

/// "14 of 120 files, 7,932 of 310,441 tokens in context"
[[nodiscard]] QString contextSummary(const agent::ContextChanged& context);

/// "running", "done", ...
[[nodiscard]] QString callStateText(CallState state);

/// "Stopped", "Interrupted: ...", empty for a turn that ended as it should.
[[nodiscard]] QString turnEndText(agent::TurnEnd end);

/// "34 tokens/s, first after 1.2 s, 7,900 of 8,100 prompt tokens from the cache"
[[nodiscard]] QString usageText(const agent::UsageUpdated& usage);

/// "Reading the sources: 3,400 of 8,100 tokens"
[[nodiscard]] QString activityText(const Activity& activity);

[[nodiscard]] QString stepStatusText(agent::StepStatus status);

}  // namespace belvedere::app
