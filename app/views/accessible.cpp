// SPDX-License-Identifier: Apache-2.0
#include "app/views/accessible.h"

#include <QAccessible>

#include "app/views/accessible_code.h"
#include "app/views/accessible_transcript.h"

namespace belvedere::app {

namespace {

QAccessibleInterface* makeAccessible(const QString& /*class_name*/, QObject* object) {
    if (auto* transcript = qobject_cast<TranscriptView*>(object)) {
        return new AccessibleTranscript(transcript);  // Qt deletes it with the widget
    }
    if (auto* code = qobject_cast<CodeView*>(object)) {
        return new AccessibleCode(code);
    }
    return nullptr;
}

}  // namespace

void installAccessibility() {
    QAccessible::installFactory(makeAccessible);
}

}  // namespace belvedere::app
