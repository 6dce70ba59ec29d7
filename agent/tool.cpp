// SPDX-License-Identifier: Apache-2.0
#include "agent/tool.h"

#include <utility>

#include "kernels/base/check.h"

namespace belvedere::agent {

void ToolRegistry::add(std::unique_ptr<Tool> tool) {
    BV_CHECK(tool != nullptr && find(tool->name()) == nullptr);
    tools_.push_back(std::move(tool));
}

Tool* ToolRegistry::find(std::string_view name) const {
    for (const std::unique_ptr<Tool>& tool : tools_) {
        if (tool->name() == name) {
            return tool.get();
        }
    }
    return nullptr;
}

}  // namespace belvedere::agent
