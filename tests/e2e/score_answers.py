#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scores answers to the questions of make_questions.py and prints the figures by kind and by source.

    score_answers.py questions.json answers.jsonl [--min-right 75] [--min-refused 90]

An answer is a JSON line {"question_id": ..., "answer": text, "citations": [...]}; a citation is {"path", "first", "last"} or
{"path", "first_line", "last_line"} or "path:first-last". The events that `belvedere ask --json` prints are read too: lines with
"type" and the question's "id", texts joined, citations as checked. Without "citations" those written [path:first-last] in the text count.
Right: a cited piece contains the defining line. Refused: the text contains "I could not find". "said": the text also has
the value, or every parameter. Exit 1 where a share is below its minimum or a question has no answer.
"""
import argparse
import json
import re
import sys

CITATION = re.compile(r"([^\[\]\s:]+):(\d+)-(\d+)")
REFUSAL = "I could not find"


def citations(answer):
    if "citations" not in answer:
        return [(path, int(first), int(last)) for path, first, last in CITATION.findall(answer["answer"])]
    found = []
    for citation in answer["citations"]:
        if isinstance(citation, str):
            found += [(path, int(first), int(last)) for path, first, last in CITATION.findall(citation)]
        else:
            first = citation.get("first", citation.get("first_line"))
            last = citation.get("last", citation.get("last_line"))
            found.append((citation["path"], int(first), int(last)))
    return found


def is_right(question, answer):
    if question["kind"] == "absent":
        return REFUSAL in answer["answer"]
    return any(path == question["path"] and first <= question["line"] <= last for path, first, last in citations(answer))


def is_said(question, answer):
    if question["kind"] == "parameters":
        return all(name in answer["answer"] for name in question["answer"].split(", "))
    return question["kind"] != "value" or question["answer"].strip("'\"") in answer["answer"]


def read_answers(lines):
    """By question; from answers, or from the events of `belvedere ask --json`."""
    answers = {}
    for line in map(json.loads, filter(str.strip, lines)):
        if "type" not in line:
            answers[line["question_id"]] = line
            continue
        if line["type"] in ("text", "citations", "turn_finished"):
            answer = answers.setdefault(line.get("id"), {"answer": "", "citations": []})
            answer["answer"] += line["text"] if line["type"] == "text" else ""
            answer["citations"] += line.get("citations", [])
    return answers


def percent(part, whole):
    return 100.0 * part / whole if whole else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("questions")
    parser.add_argument("answers")
    parser.add_argument("--min-right", type=float, default=75, help="percent of the questions about present names")
    parser.add_argument("--min-refused", type=float, default=90, help="percent of the questions about absent names")
    parser.add_argument("--show-wrong", action="store_true")
    arguments = parser.parse_args()
    with open(arguments.questions, encoding="utf-8") as file:
        groups = json.load(file)["groups"]
    with open(arguments.answers, encoding="utf-8") as file:
        answers = read_answers(file)
    table, missing = {}, []
    for group in groups:
        source = group["name"].rsplit("-", 1)[0]
        for question in group["questions"]:
            answer = answers.get(question["id"])
            if answer is None:
                missing.append(question["id"])
                continue
            right = is_right(question, answer)
            for key in (("kind", question["kind"]), ("source", source),
                        ("all", "absent" if question["kind"] == "absent" else "present")):
                row = table.setdefault(key, [0, 0, 0])
                row[0] += right
                row[1] += right and is_said(question, answer)
                row[2] += 1
            if arguments.show_wrong and not right:
                print(f"{question['id']}: {question['text']} wanted {question['answer']!r}, got {answer['answer']!r}")
    print(f"{'':18}{'right':>7}{'and said':>10}{'of':>6}{'right %':>9}")
    for (group, name), (right, said, total) in sorted(table.items()):
        print(f"{group + ' ' + name:18}{right:7}{said:10}{total:6}{percent(right, total):9.1f}")
    present = table.get(("all", "present"), [0, 0, 0])
    absent = table.get(("all", "absent"), [0, 0, 0])
    problems = []
    if missing:
        problems.append(f"{len(missing)} questions without an answer, the first {missing[0]}")
    if percent(present[0], present[2]) < arguments.min_right:
        problems.append(f"right {percent(present[0], present[2]):.1f} %, wanted {arguments.min_right}")
    if percent(absent[0], absent[2]) < arguments.min_refused:
        problems.append(f"absent names refused {percent(absent[0], absent[2]):.1f} %, wanted {arguments.min_refused}")
    for problem in problems:
        print(f"score_answers: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
