// SPDX-License-Identifier: Apache-2.0
#include "tools/repository/lost_negations.h"

#include <fstream>
#include <iterator>

#include "tools/repository/source_text.h"

namespace belvedere::tools {
namespace {

bool isIgnoredBy(const GitRepository& rules, std::string_view path) {
    int is_ignored = 0;
    return git_ignore_path_is_ignored(&is_ignored, rules.get(), std::string(path).c_str()) == 0 &&
           is_ignored != 0;
}

GitRepository makeRules(const std::string& text) {
    GitRepository repository = makePlainRepository({});
    if (repository == nullptr || git_ignore_clear_internal_rules(repository.get()) != 0 ||
        git_ignore_add_rule(repository.get(), text.c_str()) != 0) {
        return nullptr;
    }
    return repository;
}

bool hasPlainNegation(std::string_view text) {
    for (const std::string_view line : splitLines(text)) {
        if (line.starts_with('!') && line.find_first_of("*?[") == std::string_view::npos) {
            return true;
        }
    }
    return false;
}

}  // namespace

std::string_view folderOf(std::string_view path) {
    if (path.ends_with('/')) {
        path.remove_suffix(1);
    }
    return path.substr(0, path.rfind('/') + 1);
}

const std::optional<LostNegations::RuleFile>& LostNegations::ruleFile(const std::string& folder) {
    const auto [found, is_new] = rule_files_.try_emplace(folder);
    if (!is_new) {
        return found->second;
    }
    std::ifstream file(work_folder_ / folder / ".gitignore", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (text.empty() || text.find('\0') != std::string::npos) {
        return found->second;
    }
    // The first rule matches every path, so that libgit2 does not go on to ask about the folders
    // above it.
    RuleFile rules{makeRules("!*\n" + text), makeRules("*\n" + text), hasPlainNegation(text)};
    if (rules.after_all_let_in != nullptr && rules.after_all_ignored != nullptr) {
        found->second = std::move(rules);
    }
    return found->second;
}

LostNegations::Verdict LostNegations::judge(std::string_view path, std::string_view folder) {
    while (true) {
        if (const auto& rules = ruleFile(std::string(folder))) {
            const std::string_view relative = path.substr(folder.size());
            if (!isIgnoredBy(rules->after_all_ignored, relative)) {
                return Verdict::LetIn;
            }
            if (isIgnoredBy(rules->after_all_let_in, relative)) {
                return Verdict::Ignored;
            }
        }
        if (folder.empty()) {
            return Verdict::Unknown;
        }
        folder = folderOf(folder);
    }
}

bool LostNegations::letsIn(std::string_view path) {
    bool may_let_in = false;
    std::string_view folder = path;
    do {
        folder = folderOf(folder);
        const auto& rules = ruleFile(std::string(folder));
        may_let_in = may_let_in || (rules && rules->has_plain_negation);
    } while (!folder.empty());
    return may_let_in && judge(path, folderOf(path)) == Verdict::LetIn;
}

}  // namespace belvedere::tools
