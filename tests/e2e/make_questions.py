#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes questions with known answers from the symbols of source folders: where is X defined, what is the value of constant Y,
what does function Z take; one in five about a name that is absent. The same seed and sources give the same questions.

    make_questions.py --output questions.json [--split FOLDER] [--count 180] [--context 8192] [--seed 7] NAME=FOLDER...

Sources for the end-to-end check: this project, and two packages of a named version, fetched with
    pip download --no-deps --no-binary :all: pybind11==2.13.6 requests==2.32.3
    make_questions.py --output q.json belvedere=. pybind11=pybind11-2.13.6/pybind11/include requests=requests-2.32.3/src

The output is one object:
    {"seed": 7, "groups": [{
        "name": "pybind11-3",
        "root": absolute folder of the source,
        "files": [paths relative to root, at most about --context tokens of the default model together],
        "questions": [{
            "id": "pybind11-3-12", "kind": "where" | "value" | "parameters" | "absent", "text": the question,
            "path": relative file, "line": the defining line from 1,      (null where absent)
            "answer": what a right answer says: "path:line", the value, the parameters; "" where absent}]}]}

--split FOLDER writes each group for `belvedere ask --repo FOLDER/NAME --json --questions FOLDER/NAME.jsonl`: a copy of its
files, and its questions as JSON lines with "id" and "text". All questions of a group then share one context.
"""
import argparse
import ast
import json
import pathlib
import random
import re
import shutil
import sys

RESERVED_TOKENS = 700  # system text, question, answer
BYTES_PER_TOKEN = 2.7  # the low end of the default tokenizer on source code
MAX_FILE_BYTES = 14_000
MAX_PER_GROUP = 12
ABSENT_SHARE = 5  # one in five
TEXTS = {
    "where": "Where is {} defined?",
    "value": "What is the value of {}?",
    "parameters": "What does the function {} take?",
}

CPP_TYPE = re.compile(r"^\s*(?:template\s*<.*>\s*)?(?:class|struct|enum class|enum)\s+(?:\[\[\w+\]\]\s*)?(?:PYBIND11_\w+\s+)?(\w+)[^;()]*\{")
CPP_CONSTANT = re.compile(r"^\s*(?:static |inline )*(?:constexpr|static const) [\w:<>, ]*?\b(\w+)\s*(?:=|\{)\s*(-?[\w.':+*/<>() ]+?|\"[^\"]*\")\s*\}?;")
CPP_MACRO = re.compile(r"^#define (\w+) +(-?[\w.]+|\"[^\"]*\")\s*$")
CPP_FUNCTION = re.compile(r"^(?:template\s*<[^;=]*>\s*)?(?:inline |static |constexpr |virtual )*(?!return\b|else\b|using\b)"
                          r"[\w:<>,*& ]+?[ *&](\w+)\(([^()]*)\)\s*(?:const)?\s*(?:noexcept)?\s*\{")

CPP_PROTOTYPE = re.compile(r"^(?! *(?:return|else|throw|delete|using)\b)[ \[\]\w:<>,*&]+[ *&](\w+)\([^;{}]*\)[^;{}()]*;", re.M)


def cpp_parameters(text):
    """The names; None where the rules here are too simple for the text."""
    names = []
    for part in filter(None, (p.strip() for p in re.sub(r"<[^<>]*>", "", text).split(","))):
        match = re.fullmatch(r"[\w:&* \[\]]*[ &*](\w+)(?:\s*=.*)?", part)
        if match is None:
            return None
        names.append(match.group(1))
    return names


def cpp_symbols(text):
    for number, line in enumerate(text.splitlines(), 1):
        if match := CPP_TYPE.match(line):
            yield "where", match.group(1), number, ""
        elif match := CPP_MACRO.match(line) or CPP_CONSTANT.match(line):
            yield "value", match.group(1), number, match.group(2)
            yield "where", match.group(1), number, ""
        elif match := CPP_FUNCTION.match(line):
            yield "where", match.group(1), number, ""
            names = cpp_parameters(match.group(2))
            if names:
                yield "parameters", match.group(1), number, ", ".join(names)


def python_symbols(text):
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield "where", node.name, node.lineno, ""
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield "where", node.name, node.lineno, ""
            arguments = node.args
            names = [a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
            names = [name for name in names if name not in ("self", "cls")]
            if names:
                yield "parameters", node.name, node.lineno, ", ".join(names)
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value = ast.get_source_segment(text, node.value)
            if isinstance(node.value, ast.Constant) and len(value) <= 60:
                yield "value", node.targets[0].id, node.lineno, value
            yield "where", node.targets[0].id, node.lineno, ""


def symbols(path, text):
    found = python_symbols(text) if path.suffix == ".py" else cpp_symbols(text)
    return [symbol for symbol in found if len(symbol[1]) >= 4 and not symbol[1].startswith("__")]


def read_sources(root):
    """(path, text) of the usable files in the order of their paths."""
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        hidden = any(part.startswith(".") or part in ("build", "tests", "data", "__pycache__") for part in relative.parts)
        if hidden or path.suffix not in (".py", ".h", ".hpp", ".cpp", ".cc") or not path.is_file():
            continue
        text = path.read_bytes().decode("utf-8", "ignore").replace("\r\n", "\n")
        if 200 <= len(text) <= MAX_FILE_BYTES:
            yield relative, text


def group_files(files, context_tokens, rng):
    """Files shuffled into groups that fit one context."""
    files = list(files)
    rng.shuffle(files)
    room = (context_tokens - RESERVED_TOKENS) * BYTES_PER_TOKEN
    groups, group, size = [], [], 0
    for path, text in files:
        if group and size + len(text) > room:
            groups.append(group)
            group, size = [], 0
        group.append((path, text))
        size += len(text) * 1.05 + 100
    return groups + [group] if group else groups


def present_questions(group):
    """Questions about names that only one place of the group defines."""
    places = {}
    for path, text in group:
        for kind, name, line, answer in symbols(path, text):
            places.setdefault((kind, name), []).append((path, line, answer))
    names = {}
    for kind, name in places:
        names.setdefault(name, set()).update((path, line) for path, line, _ in places[kind, name])
    declared = {match for path, text in group if path.suffix != ".py" for match in CPP_PROTOTYPE.findall(text)}
    questions = []
    for (kind, name), found in sorted(places.items()):
        if len(names[name]) == 1 and len(found) == 1 and name not in declared:
            path, line, answer = found[0]
            questions.append({"kind": kind, "name": name, "path": path.as_posix(), "line": line,
                              "answer": answer or f"{path.as_posix()}:{line}"})
    return questions


def parts_of(name):
    return re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|_+", name)


def absent_names(group, rng):
    """Names that look as if they belonged here: one part of a real name changed for a part of another."""
    text = "\n".join(text for _, text in group).lower()
    names = sorted({name for path, source in group for _, name, _, _ in symbols(path, source)})
    parts = sorted({p for name in names for p in parts_of(name) if len(p) >= 4 and p.isalpha()})
    while len(names) > 1 and len(parts) > 3:
        pieces = parts_of(rng.choice(names))
        places = [i for i, p in enumerate(pieces) if len(p) >= 4 and p.isalpha()]
        if not places:
            names = [name for name in names if any(len(p) >= 4 and p.isalpha() for p in parts_of(name))]
            continue
        at = rng.choice(places)
        new = rng.choice(parts)
        new = new.upper() if pieces[at].isupper() else new.capitalize() if pieces[at][0].isupper() else new.lower()
        name = "".join(pieces[:at] + [new] + pieces[at + 1 :])
        if name.lower() not in text:
            yield name


def make_group(name, root, group, rng):
    present = present_questions(group)
    # As many of each kind as there are; "where" is the most frequent by nature.
    by_kind = {kind: [q for q in present if q["kind"] == kind] for kind in TEXTS}
    for questions in by_kind.values():
        rng.shuffle(questions)
    n_absent = MAX_PER_GROUP // ABSENT_SHARE
    chosen, used = [], set()
    while any(by_kind.values()) and len(chosen) < MAX_PER_GROUP - n_absent:
        for questions in by_kind.values():
            if questions and len(chosen) < MAX_PER_GROUP - n_absent:
                question = questions.pop()
                if question["name"] not in used:
                    used.add(question["name"])
                    chosen.append(question)
    for absent, _ in zip(absent_names(group, rng), range(round(len(chosen) / (ABSENT_SHARE - 1)))):
        kind = rng.choice(sorted(TEXTS))
        chosen.append({"kind": "absent", "name": absent, "path": None, "line": None, "answer": "", "text": TEXTS[kind].format(absent)})
    rng.shuffle(chosen)
    for number, question in enumerate(chosen):
        question.setdefault("text", TEXTS.get(question["kind"], "").format(question["name"]))
        question["id"] = f"{name}-{number}"
        del question["name"]
    return {"name": name, "root": str(root), "files": sorted(path.as_posix() for path, _ in group), "questions": chosen}


def limit(groups, count):
    """Whole groups in turn from each source until there are enough questions."""
    chosen, total = [], 0
    queues = list(groups.values())
    while any(queues) and total < count:
        for queue in queues:
            if queue and total < count:
                group = queue.pop(0)
                if len(group["questions"]) >= 4:
                    chosen.append(group)
                    total += len(group["questions"])
    return chosen


def split(groups, folder):
    shutil.rmtree(folder, ignore_errors=True)
    for group in groups:
        for path in group["files"]:
            target = folder / group["name"] / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(pathlib.Path(group["root"]) / path, target)
        lines = [json.dumps({"id": q["id"], "text": q["text"]}) for q in group["questions"]]
        (folder / (group["name"] + ".jsonl")).write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--split", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=180)
    parser.add_argument("--context", type=int, default=8192, help="tokens of a group's context")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("sources", nargs="+", metavar="NAME=FOLDER")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    groups = {}
    for source in arguments.sources:
        name, _, folder = source.partition("=")
        root = pathlib.Path(folder).resolve()
        if not root.is_dir():
            sys.exit(f"make_questions: {source}: no such folder: give NAME=FOLDER")
        made = group_files(read_sources(root), arguments.context, rng)
        groups[name] = [make_group(f"{name}-{i}", root, group, rng) for i, group in enumerate(made)]
    chosen = limit(groups, arguments.count)
    arguments.output.write_text(json.dumps({"seed": arguments.seed, "groups": chosen}, indent=1) + "\n")
    if arguments.split:
        split(chosen, arguments.split)
    kinds = {}
    for group in chosen:
        for question in group["questions"]:
            kinds[question["kind"]] = kinds.get(question["kind"], 0) + 1
    print(f"{sum(kinds.values())} questions in {len(chosen)} groups: " + ", ".join(f"{n} {k}" for k, n in sorted(kinds.items())))


if __name__ == "__main__":
    main()
