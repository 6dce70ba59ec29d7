// SPDX-License-Identifier: Apache-2.0
#pragma once

// What screen readers are told of the two views that paint themselves: the transcript is a list of
// its rows, each with its links and buttons; the source is a text. GUI thread only.

namespace belvedere::app {

/// Once, before the first view is made; more often does no harm.
void installAccessibility();

}  // namespace belvedere::app
