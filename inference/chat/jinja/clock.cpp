// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/jinja/clock.h"

#include <array>

namespace belvedere::inference::jinja {
namespace {

constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};
constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};

struct Moment {
    int year;
    unsigned month;
    unsigned day;
    unsigned weekday;  ///< Sunday 0
    long day_of_year;  ///< January 1st: 1
    long hour;
    long minute;
    long second;
};

[[nodiscard]] Moment momentOf(std::chrono::sys_seconds time) {
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss clock(time - day);
    const auto new_year = std::chrono::sys_days(date.year() / std::chrono::January / 1);
    return {static_cast<int>(date.year()),     static_cast<unsigned>(date.month()),
            static_cast<unsigned>(date.day()), std::chrono::weekday(day).c_encoding(),
            (day - new_year).count() + 1,      clock.hours().count(),
            clock.minutes().count(),           clock.seconds().count()};
}

[[nodiscard]] bool appendDirective(std::string& out, const Moment& m, char directive) {
    const long hour12 = m.hour % 12 == 0 ? 12 : m.hour % 12;
    switch (directive) {
        case 'Y':
            out += fmt::format("{}", m.year);
            break;
        case 'y':
            out += fmt::format("{:02}", m.year % 100);
            break;
        case 'm':
            out += fmt::format("{:02}", m.month);
            break;
        case 'd':
            out += fmt::format("{:02}", m.day);
            break;
        case 'e':
            out += fmt::format("{:2}", m.day);
            break;
        case 'H':
            out += fmt::format("{:02}", m.hour);
            break;
        case 'I':
            out += fmt::format("{:02}", hour12);
            break;
        case 'M':
            out += fmt::format("{:02}", m.minute);
            break;
        case 'S':
            out += fmt::format("{:02}", m.second);
            break;
        case 'j':
            out += fmt::format("{:03}", m.day_of_year);
            break;
        case 'p':
            out += m.hour < 12 ? "AM" : "PM";
            break;
        case 'B':
            out += kMonths[m.month - 1];
            break;
        case 'b':
        case 'h':
            out += kMonths[m.month - 1].substr(0, 3);
            break;
        case 'A':
            out += kDays[m.weekday];
            break;
        case 'a':
            out += kDays[m.weekday].substr(0, 3);
            break;
        case 'w':
            out += fmt::format("{}", m.weekday);
            break;
        case 'u':
            out += fmt::format("{}", m.weekday == 0 ? 7 : m.weekday);
            break;
        case 'F':
            out += fmt::format("{}-{:02}-{:02}", m.year, m.month, m.day);
            break;
        case 'T':
            out += fmt::format("{:02}:{:02}:{:02}", m.hour, m.minute, m.second);
            break;
        case 'R':
            out += fmt::format("{:02}:{:02}", m.hour, m.minute);
            break;
        case 'D':
            out += fmt::format("{:02}/{:02}/{:02}", m.month, m.day, m.year % 100);
            break;
        case 'f':
            out += "000000";
            break;
        case 'z':
        case 'Z':
            break;  // a time without a zone
        case '%':
            out += '%';
            break;
        default:
            return false;
    }
    return true;
}

}  // namespace

Result<std::string> formatTime(std::chrono::sys_seconds time, std::string_view format) {
    const Moment moment = momentOf(time);
    std::string out;
    for (size_t i = 0; i < format.size(); ++i) {
        if (format[i] != '%') {
            out.push_back(format[i]);
            continue;
        }
        ++i;
        // A minus takes the padding away (a common extension): %-d.
        const bool is_bare = i < format.size() && format[i] == '-';
        i += is_bare ? 1 : 0;
        std::string part;
        if (i >= format.size() || !appendDirective(part, moment, format[i])) {
            return fail(ErrorCode::Unsupported, "strftime_now: directive in '{}' is not supported",
                        format);
        }
        if (is_bare) {
            const size_t first = part.find_first_not_of("0 ");
            part = first == std::string::npos ? "0" : part.substr(first);
        }
        out += part;
    }
    return out;
}

}  // namespace belvedere::inference::jinja
