// SPDX-License-Identifier: Apache-2.0
#include "app/config.h"

#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace belvedere::app {
namespace {

using Json = nlohmann::json;

constexpr int kConfigVersion = 1;

/// One JSON object being read: takes keys out by name, collects what is wrong, and warns of what
/// nobody asked for.
class ObjectReader {
  public:
    struct Findings {
        std::vector<std::string> problems;
        std::vector<std::string> warnings;
    };

    ObjectReader(const Json& object, std::string path, Findings& findings)
        : path_(std::move(path)), findings_(findings) {
        if (object.is_object()) {
            rest_ = object;
        } else {
            problem("", "expected an object");
        }
    }

    ~ObjectReader() {
        for (const auto& [key, value] : rest_.items()) {
            findings_.warnings.push_back(where(key) + ": unknown key");
        }
    }

    ObjectReader(const ObjectReader&) = delete;
    ObjectReader& operator=(const ObjectReader&) = delete;

    void problem(const std::string& key, const std::string& what) {
        findings_.problems.push_back(where(key) + ": " + what);
    }

    std::optional<Json> take(const std::string& key) {
        const auto found = rest_.find(key);
        if (found == rest_.end()) {
            return std::nullopt;
        }
        Json value = *found;
        rest_.erase(found);
        return value;
    }

    /// A whole number in [low, high].
    template <class Integer>
    void integer(const std::string& key, Integer& out, uint64_t low, uint64_t high) {
        if (const std::optional<Json> value = take(key)) {
            if (!value->is_number_unsigned() || value->get<uint64_t>() < low ||
                value->get<uint64_t>() > high) {
                problem(key, fmt::format("expected a whole number from {} to {}, found {}", low,
                                         high, value->dump()));
                return;
            }
            out = static_cast<Integer>(value->get<uint64_t>());
        }
    }

    void number(const std::string& key, float& out, double low, double high) {
        if (const std::optional<Json> value = take(key)) {
            if (!value->is_number() || value->get<double>() < low || value->get<double>() > high) {
                problem(key, fmt::format("expected a number from {} to {}, found {}", low, high,
                                         value->dump()));
                return;
            }
            out = static_cast<float>(value->get<double>());
        }
    }

    void flag(const std::string& key, bool& out) {
        if (const std::optional<Json> value = take(key)) {
            if (!value->is_boolean()) {
                problem(key, "expected true or false, found " + value->dump());
                return;
            }
            out = value->get<bool>();
        }
    }

    void text(const std::string& key, std::string& out) {
        if (const std::optional<Json> value = take(key)) {
            if (!value->is_string()) {
                problem(key, "expected a string, found " + value->dump());
                return;
            }
            out = value->get<std::string>();
        }
    }

    /// A string that is one of `names`; gives its index.
    std::optional<size_t> choice(const std::string& key, const std::vector<std::string>& names) {
        std::string found;
        text(key, found);
        if (found.empty()) {
            return std::nullopt;
        }
        for (size_t i = 0; i < names.size(); ++i) {
            if (names[i] == found) {
                return i;
            }
        }
        problem(key,
                fmt::format("expected one of {}, found \"{}\"", fmt::join(names, ", "), found));
        return std::nullopt;
    }

    [[nodiscard]] std::string where(const std::string& key) const {
        return path_.empty() ? key : key.empty() ? path_ : path_ + "." + key;
    }

    [[nodiscard]] Findings& findings() { return findings_; }

  private:
    Json rest_ = Json::object();
    std::string path_;
    Findings& findings_;
};

void readModel(ObjectReader& root, Config& config) {
    const std::optional<Json> section = root.take("model");
    if (!section) {
        return;
    }
    ObjectReader model(*section, "model", root.findings());
    std::string path;
    model.text("path", path);
    config.model = path;
    const std::optional<Json> adapters = model.take("adapters");
    if (adapters && !adapters->is_array()) {
        model.problem("adapters", "expected a list");
        return;
    }
    for (size_t i = 0; adapters && i < adapters->size(); ++i) {
        ObjectReader entry((*adapters)[i], fmt::format("model.adapters[{}]", i), root.findings());
        inference::AdapterFile adapter;
        entry.text("path", adapter.path);
        entry.number("scale", adapter.scale, -100.0, 100.0);
        if (adapter.path.empty()) {
            entry.problem("path", "missing");
        }
        config.adapters.push_back(std::move(adapter));
    }
}

void readCacheType(ObjectReader& engine, const std::string& key, kernels::CacheType& type) {
    std::vector<std::string> names;
    for (const kernels::CacheTypeInfo& info : kernels::kCacheTypes) {
        names.emplace_back(info.name);
    }
    if (const std::optional<size_t> chosen = engine.choice(key, names)) {
        type = kernels::kCacheTypes[*chosen].type;
    }
}

void readMegabytes(ObjectReader& object, const char* key, size_t& n_bytes, uint64_t least) {
    uint64_t megabytes = n_bytes >> 20;
    object.integer(key, megabytes, least, uint64_t{1} << 24);
    n_bytes = megabytes << 20;
}

void readEngine(ObjectReader& root, Config& config) {
    const std::optional<Json> section = root.take("engine");
    if (!section) {
        return;
    }
    ObjectReader engine(*section, "engine", root.findings());
    engine.integer("threads", config.engine.n_threads, 0, 1024);
    engine.integer("context_tokens", config.engine.context_tokens, 0, uint64_t{1} << 30);
    readMegabytes(engine, "cache_budget_mb", config.engine.cache_budget_bytes, 16);
    readMegabytes(engine, "expert_budget_mb", config.engine.expert_budget_bytes, 0);
    readCacheType(engine, "cache_type", config.engine.cache_type);
    readCacheType(engine, "index_cache_type", config.engine.index_cache_type);
    engine.flag("speculative", config.engine.drafts);
    if (const std::optional<size_t> attention = engine.choice("attention", {"msa", "dense"})) {
        config.engine.attention =
            *attention == 0 ? inference::Attention::Msa : inference::Attention::Dense;
    }
}

void readPermissions(ObjectReader& agent, Config& config) {
    const std::optional<Json> rules = agent.take("permissions");
    if (rules && !rules->is_array()) {
        agent.problem("permissions", "expected a list");
        return;
    }
    const agent::Verdict verdicts[] = {agent::Verdict::Allow, agent::Verdict::Ask,
                                       agent::Verdict::Deny};
    for (size_t i = 0; rules && i < rules->size(); ++i) {
        ObjectReader entry((*rules)[i], fmt::format("agent.permissions[{}]", i), agent.findings());
        agent::PermissionRule rule;
        const std::optional<size_t> verdict = entry.choice("verdict", {"allow", "ask", "deny"});
        entry.text("tool", rule.tool);
        entry.text("pattern", rule.pattern);
        if (!verdict || rule.tool.empty()) {
            entry.problem("", "a rule needs verdict (allow, ask, deny) and tool (a name or \"*\")");
            continue;
        }
        rule.verdict = verdicts[*verdict];
        config.agent.permissions.rules.push_back(std::move(rule));
    }
}

void readAgent(ObjectReader& root, Config& config) {
    const std::optional<Json> section = root.take("agent");
    if (!section) {
        return;
    }
    ObjectReader agent(*section, "agent", root.findings());
    agent::GenerationOptions& generation = config.agent.generation;
    agent.integer("max_rounds", config.agent.max_rounds, 1, 1000);
    agent.integer("source_budget_tokens", config.agent.source_budget_tokens, 256,
                  uint64_t{1} << 24);
    agent.integer("answer_reserve_tokens", config.agent.answer_reserve_tokens, 16,
                  uint64_t{1} << 20);
    agent.integer("max_tokens", generation.max_tokens, 1, uint64_t{1} << 20);
    agent.integer("seed", generation.seed, 0, std::numeric_limits<uint64_t>::max());
    agent.integer("top_k", generation.top_k, 0, 1'000'000);
    agent.number("temperature", generation.temperature, 0.0, 10.0);
    agent.number("top_p", generation.top_p, 0.0, 1.0);
    agent.number("min_p", generation.min_p, 0.0, 1.0);
    agent.number("repetition_penalty", generation.repetition_penalty, 0.1, 10.0);
    readPermissions(agent, config);
}

void readRest(ObjectReader& root, Config& config) {
    if (const std::optional<Json> section = root.take("tools")) {
        ObjectReader tools(*section, "tools", root.findings());
        tools.flag("screen", config.tools.screen);
    }
    if (const std::optional<Json> section = root.take("repository")) {
        ObjectReader repository(*section, "repository", root.findings());
        uint64_t max_file_kb = config.repository.max_file_bytes >> 10;
        repository.integer("max_file_kb", max_file_kb, 1, uint64_t{1} << 20);
        config.repository.max_file_bytes = max_file_kb << 10;
        repository.integer("max_files", config.repository.max_files, 1, 100'000'000);
    }
    const Appearance appearances[] = {Appearance::System, Appearance::Light, Appearance::Dark};
    if (const std::optional<size_t> appearance =
            root.choice("appearance", {"system", "light", "dark"})) {
        config.appearance = appearances[*appearance];
    }
    uint64_t version = kConfigVersion;
    root.integer("version", version, kConfigVersion, kConfigVersion);
}

}  // namespace

Result<Config> parseConfig(std::string_view text, const std::string& name) {
    const Json json =
        Json::parse(text, nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
    if (json.is_discarded()) {
        return fail(ErrorCode::InvalidArgument, "{}: not valid JSON: correct it or move it away",
                    name);
    }
    Config config;
    ObjectReader::Findings findings;
    {
        ObjectReader root(json, "", findings);
        readModel(root, config);
        readEngine(root, config);
        readAgent(root, config);
        readRest(root, config);
    }
    if (!findings.problems.empty()) {
        return fail(ErrorCode::InvalidArgument, "{}: {}", name, fmt::join(findings.problems, "; "));
    }
    for (const std::string& warning : findings.warnings) {
        config.warnings.push_back(name + ": " + warning);
    }
    return config;
}

Result<Config> readConfig(const std::filesystem::path& file) {
    std::error_code error;
    if (!std::filesystem::exists(file, error)) {
        return Config{};
    }
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) {
        return fail(ErrorCode::Io, "{}: cannot be read", file.string());
    }
    return parseConfig(text.str(), file.string());
}

}  // namespace belvedere::app
