#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random small templates through our interpreter and through Python's Jinja2; prints every difference.

    compare_with_jinja2.py build/dev/bin/chat_render_tool [--count 20000] [--seed 1]

Needs Jinja2 3.1. Run by hand when the interpreter changes; exits 1 when something differs.
"""
import argparse
import json
import random
import subprocess
import sys

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    return env


VARIABLES = {
    "s": "Hello, Wörld", "e": "", "sp": "  a b\n c\t", "q": "it's \"q\" \\ \n", "n": 7, "z": 0, "neg": -13, "f": 2.5,
    "big": 1e16, "small": 1e-5, "t": True, "no": False, "nil": None, "l": [3, 1, 2], "el": [],
    "m": ["a", "B", "c", "A"], "mix": [1, "a", None, True, 1.0, [2], {"k": "v"}],
    "d": {"b": 1, "a": [1, 2], "C": None}, "ed": {}, "html": "<a&b>'\"", "num": " 42 ", "fl": "3.7e2", "bad": "4x",
    "long": "the quick brown fox the end", "uni": "ßΣΑΣ ǆ İı ﬁ 你好 😀", "x1": "\x1f\u00a0\u2028\u3000",
    "msgs": [{"role": "user", "content": "Hi", "n": 2}, {"role": "assistant", "content": None, "n": 1},
             {"role": "tool", "content": ["x", "y"], "n": 3}],
}
NAMES = list(VARIABLES) + ["missing"]
STRINGS = ["''", "'a'", "'b'", "' '", "'\\n'", "'an'", "'Hello'", "'l'", "'k'", "'role'", "'content'", "'0'", "'é'",
           "'%s'", "'%d|%s'", "'{}'", "'{}-{}'", "'{0}{1}'", "'%5.2f'", "'%-6s|'", "'{:>5}'", "'ab' 'cd'"]
NUMBERS = ["0", "1", "2", "-1", "3", "10", "1.5", "0.1", "-2", "100", "1e3", "7.0"]
CONSTANTS = ["true", "false", "none", "[]", "{}", "()", "[1, 2, 3]", "('a', 'b')", "{'k': 1, 'j': 'x'}", "(1,)",
             "['b', 'a']", "range(4)", "range(5, 0, -2)"]
BINARY = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or", "**"]
FILTERS = ["abs", "capitalize", "count", "default('x')", "d('x', true)", "dictsort", "first", "float", "int", "items|list",
           "join", "join(', ')", "last", "length", "list", "lower", "map('upper')|list", "map(attribute='role')|list",
           "max", "min", "reject('none')|list", "replace('a', 'b')", "replace('l', '', 1)", "reverse|list", "round",
           "round(1)", "round(1, 'floor')", "safe", "select|list", "selectattr('role', 'equalto', 'user')|list",
           "rejectattr('content')|list", "sort", "sort(reverse=true)", "sort(attribute='n')", "string", "sum",
           "sum(attribute='n')", "title", "tojson", "tojson(indent=2)", "tojson(ensure_ascii=true)",
           "tojson(sort_keys=true)", "tojson(separators=(',', ':'))", "trim", "trim('H')", "unique|list", "upper", "e",
           "indent", "indent(2, true)", "center(9)", "format(1, 2)", "format('x')", "map('string')|list",
           "map('default', 'q')|list", "select('string')|list", "dictsort(by='value')", "dictsort(reverse=true)"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "iterable",
         "sequence", "true", "false", "odd", "even", "divisibleby(3)", "eq(1)", "ne 1", "gt 1", "in [1, 2, 'a']", "lower",
         "upper", "equalto('a')", "le 2", "escaped", "not none", "not defined", "callable"]
METHODS = ["strip()", "strip('H')", "lstrip()", "rstrip()", "rstrip('d\\n')", "split()", "split('l')", "split(' ', 1)",
           "rsplit(' ', 1)", "rsplit('l', 1)", "splitlines()", "splitlines(true)", "startswith('H')", "endswith('d')",
           "startswith(('a', 'H'))", "replace('l', 'LL')", "replace('', '-')", "upper()", "lower()", "title()",
           "capitalize()", "find('l')", "rfind('l')", "count('l')", "join(['a', 'b'])", "join(m)", "format(1, 'z')",
           "isdigit()", "isspace()", "items()", "keys()", "values()", "get('a')", "get('zz', 5)", "items()|list",
           "keys()|list", "zfill(5)", "ljust(14)|e", "center(15, '*')", "partition('l')", "rpartition('l')",
           "removeprefix('He')", "removesuffix('d')", "append(1)", "pop()", "index(1)", "role", "content", "k", "b",
           "isalpha()", "isupper()", "islower()", "copy()", "update({})", "index('l')"]
SUFFIXES = ["[0]", "[-1]", "[1:]", "[:-1]", "[::-1]", "[1:3]", "['a']", "['role']", ".role", ".a", "[5]", "[::2]",
            "[-3:-1]", "['items']", "[-20:20:3]", "[none:2]", "[20:-20:-2]", ".0"]


class Generator:
    def __init__(self, rng):
        self.rng = rng

    def pick(self, options):
        return self.rng.choice(options)

    def atom(self):
        kind = self.rng.random()
        if kind < 0.6:
            return self.pick(NAMES)
        return self.pick(STRINGS) if kind < 0.75 else self.pick(NUMBERS) if kind < 0.88 else self.pick(CONSTANTS)

    def expression(self, depth):
        if depth <= 0:
            return self.atom()
        kind = self.rng.random()
        inner = self.expression(depth - 1)
        if kind < 0.24:
            return f"({inner})|{self.pick(FILTERS)}"
        if kind < 0.42:
            return f"({inner}).{self.pick(METHODS)}"
        if kind < 0.52:
            return f"({inner}){self.pick(SUFFIXES)}"
        if kind < 0.74:
            return f"({inner} {self.pick(BINARY)} {self.expression(depth - 1)})"
        if kind < 0.82:
            return f"({inner}) is {self.pick(TESTS)}"
        if kind < 0.86:
            return f"(not {inner})"
        if kind < 0.90:
            return f"({inner} if {self.expression(depth - 1)} else {self.expression(depth - 1)})"
        if kind < 0.93:
            return f"[{inner}, {self.expression(depth - 1)}]"
        if kind < 0.95:
            return f"-({inner})"
        if kind < 0.97:
            return f"{inner} {self.pick(BINARY)} {self.atom()} {self.pick(BINARY)} {self.atom()}"
        return f"{self.atom()} {self.pick(['<', '==', '!='])} {self.atom()} {self.pick(['<', '>='])} {self.atom()}"

    def gap(self):
        return self.pick(["", "", " ", "\n", "\n  ", "  \n", "x", "x\n", " y ", "\n\n", "\r\n", "\t\n"])

    def tag(self, body):
        return "{%" + self.pick(["", "", "-", "+", "-"]) + " " + body + " " + self.pick(["", "", "-", "-"]) + "%}"

    def show(self, body):
        return "{{" + self.pick(["", "-", " "]) + " " + body + " " + self.pick(["", "-"]) + "}}"

    def statement(self, depth):
        kind = self.rng.random()
        if depth <= 0 or kind < 0.3:
            return self.show(self.expression(self.rng.randint(0, 2)))
        body = self.gap() + self.statement(depth - 1) + self.gap()
        more = self.gap() + self.statement(depth - 1) + self.gap()
        if kind < 0.42:
            return self.tag(f"if {self.expression(1)}") + body + self.tag("else") + more + self.tag("endif")
        if kind < 0.62:
            target, source = self.pick([("v", "l"), ("v", "m"), ("k, v", "d.items()"), ("v", "msgs"), ("v", "el"),
                                        ("v", "s[:3]"), ("k, v", "d|dictsort"), ("v", "l if v > 1"), ("v", "range(3)")])
            loop = self.pick(["{{ loop.index }}", "{{ loop.last }}{{ loop.first }}", "{{ loop.length }}", "{{ v }}",
                              "{{ loop.previtem is defined }}", "{{ loop.cycle('a', 'b') }}", "{{ loop.revindex0 }}",
                              "{% if loop.index > 1 %}{% break %}{% endif %}",
                              "{% if loop.first %}{% continue %}{% endif %}"])
            otherwise = self.tag("else") + more if self.rng.random() < 0.3 else ""
            return self.tag(f"for {target} in {source}") + loop + body + otherwise + self.tag("endfor")
        if kind < 0.72:
            name = self.pick(["v", "s", "n", "w"])
            return self.tag(f"set {name} = {self.expression(1)}") + body + self.show(name)
        if kind < 0.78:
            return self.tag("set w" + self.pick(["", " | upper", " | trim"])) + body + self.tag("endset") + self.show("w")
        if kind < 0.84:
            return (self.tag("set ns = namespace(a=1, b='x')") + self.tag("for v in l")
                    + self.tag("set ns.a = " + self.pick(["ns.a + v", "ns.b ~ v", "loop.index"])) + body
                    + self.tag("endfor") + self.show("ns.a"))
        if kind < 0.91:
            call = self.pick(["f(1)", "f(1, 2)", "f(b=3, a=n)", "f()", "f(1, 2, 3)", "f(s) ~ f(l)", "f(1, zz=2)"])
            return self.tag("macro f(a, b=a)") + "{{ a }}" + body + "{{ b }}" + self.tag("endmacro") + self.show(call)
        if kind < 0.94:
            return (self.tag("macro g(a)") + "[{{ caller(a) }}]" + self.tag("endmacro") + self.tag("call(v) g(n)") + body
                    + "{{ v }}" + self.tag("endcall"))
        if kind < 0.96:
            return self.tag("with v = n, w = v") + body + "{{ v }}{{ w }}" + self.tag("endwith")
        if kind < 0.98:
            return self.tag("filter upper") + body + self.tag("endfilter")
        return self.pick(["{# c #}", "{#- c -#}", "{% raw %}{{ x }} {% endraw %}", "{%- raw -%} {{ {%- endraw -%}"]) + body

    def template(self):
        if self.rng.random() < 0.6:
            return "{{ " + self.expression(self.rng.randint(1, 3)) + " }}"
        return self.gap() + self.statement(self.rng.randint(1, 3)) + self.gap()


def expected(env, source):
    try:
        return {"text": env.from_string(source).render(**json.loads(json.dumps(VARIABLES)))}
    except Exception as error:  # every kind of Python error is an error of the template
        return {"error": f"{type(error).__name__}: {error}"}


# What deserves a test of its own; the answers are Jinja2's.
CASES = [
    "{%- if true %}\n  a\n  {% if n %}\n    b\n  {%- endif +%}\n{% endif %}\n\n",
    "a  {#- c -#}  b {# d #}\n{# e #}\nc", "  {{ n }}\n  {% if n %}x{% endif %}\n", "{% raw %}\n{{ n }}{% endraw %}\nz",
    "{{ '\\n\\t\\x41\\u00e9\\101\\q' }}", "{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }}",
    "{{ 1e16 }} {{ 1e15 }} {{ 0.0001 }} {{ 1e-05 }} {{ 1.0 }} {{ -0.0 }} {{ 100.25 }}", "{{ [1, 'a', none, true, 1.5, {'k': (1,)}] }}",
    "{{ q }} {{ [q] }}", "{{ d.items() }} {{ d.keys() }} {{ d.values() }}", "{{ missing }}|{{ missing.x is defined }}",
    "{{ missing.x }}", "{{ d.zz.y }}", "{{ missing + 1 }}", "{{ s + none }}", "{{ s + 1 }}", "{{ s ~ 1 ~ none ~ true }}",
    "{{ d.items }}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for a, b in l %}{% endfor %}",
    "{% for x in l if x > 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }} {% else %}none{% endfor %}",
    "{% for x in [] %}{% else %}empty{% endfor %}", "{% set x = 1 %}{% for i in l %}{% set x = x + i %}{% endfor %}{{ x }}",
    "{% set ns = namespace(x=1) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "{% if true %}{% set y = 2 %}{% endif %}{{ y }}", "{% set d.x = 1 %}", "{% set a, b = (1, 2) %}{{ a }}{{ b }}",
    "{% macro f(a, b=2) %}{{ a }}-{{ b }}-{{ varargs }}-{{ kwargs }}{% endmacro %}{{ f(1) }} {{ f(1, 3, 4, z=5) }} {{ f() }}",
    "{% macro f() %}{% if y is not defined %}{% set y = 3 %}{% endif %}{{ y }}{% endmacro %}{{ f() }}{{ y }}",
    "{{ f() }}{% macro f() %}1{% endmacro %}", "{% macro r(n) %}{{ n }}{% if n > 0 %}{{ r(n - 1) }}{% endif %}{% endmacro %}{{ r(3) }}",
    "{{ l.append(1) }}", "{{ l.append is defined }}", "{{ s.__class__ }}", "{{ range(200000) | length }}", "{{ range(3) }}",
    "{{ msgs | selectattr('role', 'equalto', 'user') | list | length }}", "{{ msgs | map(attribute='role') | join(', ') }}",
    "{{ d | dictsort }}", "{{ d | tojson }}", "{{ mix | tojson(indent=2) }}", "{{ uni | tojson(ensure_ascii=true) }}",
    "{{ uni | upper }} {{ uni | lower }} {{ uni | title }} {{ uni | capitalize }}", "{{ uni | length }} {{ uni[::-1] }} {{ uni[2] }}",
    "{{ s[-3:] }} {{ s[::2] }} {{ s[99:] }} {{ l[::-1] }} {{ l[-1] }} {{ l[9] is undefined }}", "{{ x1 | trim | length }}",
    "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' in s }} {{ 'a' not in d }} {{ 2 in l }}", "{{ 1 == true }} {{ 1 == 1.0 }} {{ 'a' == 1 }}",
    "{{ 'a' < 1 }}", "{{ none or 'x' }} {{ '' and 1 }} {{ not none }}", "{{ 'yes' if n > 5 else 'no' }} {{ 'yes' if n > 9 }}",
    "{{ '<b>' | safe + '<i>' }} {{ '<b>' | safe ~ '<i>' }} {{ html | e }}", "{% filter upper %}a{{ s }}{% endfilter %}",
    "{% set t | trim %}  x  {% endset %}[{{ t }}]", "{% macro g() %}<{{ caller(1) }}>{% endmacro %}{% call(v) g() %}{{ v }}{% endcall %}",
    "{{ '%s is %d, %5.2f|%-4s|%04d' % ('a', 3, 2.5, 'b', 7) }}", "{{ '{} {1}'.format(1, 2) }}", "{{ '{:>4}|{:<4}|{:^5}|{:03d}|{:.1f}'.format('a', 'b', 'c', 7, 2.55) }}",
    "{{ 'a,b,c'.split(',', 1) }} {{ ' a  b '.split() }} {{ 'a\\nb\\r\\nc'.splitlines() }} {{ 'abc'.split('') }}",
    "{{ 'x' * 3 }} {{ [1] * 2 }} {{ 'ab'.replace('', '-') }} {{ 'aaa'.replace('a', 'b', 2) }}", "{{ 3 | default('x') }} {{ '' | default('x', true) }}",
    "{{ '3.7' | int }} {{ 'x' | int(5) }} {{ '1_0' | int }} {{ 'inf' | float }} {{ 2.5 | round }} {{ 2.675 | round(2) }} {{ 3.2 | round(0, 'ceil') | int }}",
    "{{ raise_exception('no ' ~ n) }}", "{{ [3, 'a'] | sort }}", "{{ ['b', 'A', 'c'] | sort }} {{ ['b', 'B', 'a'] | unique | list }} {{ l | max }}",
    "{% for i in l %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% break %}{% endfor %}", "{% with a = n %}{{ a }}{% endwith %}{{ a }}",
    "{% for m in msgs %}{{ m.role }}{{ ',' if not loop.last }}{% endfor %}", "{{ msgs[0]['role'] }}{{ msgs[-1].content[1] }}{{ d['items'] is callable }}",
    "{{ {'a': 1}.a }} {{ {'a': 1, 'a': 2} }} {{ {1: 'x', true: 'y'} }}", "{{ 'a' 'b' }}{{ (1) }}{{ (1,) }}{{ () }}{{ 1, 2 }}",
    "{{ namespace(a=1).a }} {{ dict(a=1, b=2) }} {{ d | items | list }}", "{{ 'x\ny' | indent(2) }}|{{ 'x\n\ny' | indent(2, true, true) }}",
    "{{ -1 | abs }} {{ (-1) | abs }} {{ 2 + 3 * 4 - 1 }} {{ 'a' ~ 1 + 2 }} {{ 7 - 2 - 1 }} {{ 2 ** 3 ** 2 }}",
    "{{ n is divisibleby 7 }} {{ n is odd }} {{ l is sequence }} {{ d is mapping }} {{ s is iterable }} {{ nil is none }} {{ n is not number }}",
]


def write_cases(path, env, generator, count):
    cases = []
    SUFFIXES[:] = [suffix for suffix in SUFFIXES if ":" not in suffix]  # for constants Jinja2 has other rules
    for source in CASES + [generator.template() for _ in range(count)]:
        answer = expected(env, source)
        if " at 0x" in answer.get("text", ""):
            continue
        cases.append({"template": source, **({"text": answer["text"]} if "text" in answer else {"error": True})})
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"variables": ' + json.dumps(VARIABLES, ensure_ascii=False) + ',\n"cases": [\n')
        file.write(",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tool", nargs="?")
    parser.add_argument("--write", help="write a file of cases for the tests instead: CASES and --count random ones")
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    env = environment()
    generator = Generator(random.Random(options.seed))
    if options.write:
        write_cases(options.write, env, generator, options.count)
        return
    tool = subprocess.Popen([options.tool], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    n_texts = n_errors = n_unsupported = n_different = 0
    for _ in range(options.count):
        source = generator.template()
        tool.stdin.write(json.dumps({"template": source, "variables": VARIABLES}) + "\n")
        tool.stdin.flush()
        ours = json.loads(tool.stdout.readline())
        theirs = expected(env, source)
        if ours.get("unsupported"):
            n_unsupported += 1
        elif "text" in theirs and ours.get("text") == theirs["text"]:
            n_texts += 1
        elif "error" in theirs and "error" in ours:
            n_errors += 1
        elif " at 0x" in theirs.get("text", "") or "cannot be sliced" in ours.get("error", ""):
            n_unsupported += 1  # an address of Python's; a constant expression, which Jinja2 folds by other rules
        else:
            n_different += 1
            print(f"template {source!r}\n    jinja2 {theirs}\n    ours   {ours}")
    print(f"{n_texts} equal texts, {n_errors} errors on both sides, {n_unsupported} unsupported, {n_different} different")
    tool.stdin.close()
    sys.exit(1 if n_different else 0)


main()
