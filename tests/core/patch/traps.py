"""Traps: diffs that are easily applied in the wrong place, with their files and the correct result, if any."""

from collections.abc import Mapping

from msgspec import Struct


class Trap(Struct, frozen=True):
    """A diff, the files it meets, and what it may make of them; `right` None: it must be refused."""

    name: str
    pre: Mapping[str, str]
    diff: str
    right: Mapping[str, str] | None


def trap(name: str, pre: str, hunks: str, right: str | None = None) -> Trap:
    """Return a trap in the one file x.py; `hunks` begins with its first @@."""
    diff = f"--- a/x.py\n+++ b/x.py\n{hunks}"
    return Trap(name, {"x.py": pre}, diff, None if right is None else {"x.py": right})


def function(name: str, value: str = "1") -> str:
    return (
        f"def {name}(items):\n    total = 0\n    for item in items:\n        total += {value}\n    return total\n\n\n"
    )


def lines(text: str) -> str:
    """Return words as lines of their own."""
    return "".join(f"{word}\n" for word in text.split())


TWICE = function("first") + function("second")
IN_BODY = "     total = 0\n     for item in items:\n-        total += 1\n+        total += 2\n     return total\n"
CHANGED_FIRST = function("first", "2") + function("second")
CHANGED_SECOND = function("first") + function("second", "2")

VERSIONS = "".join(
    f"class UserV{n}(Model):\n    name = Text()\n    age = Number()\n    mail = Text()\n\n\n" for n in (1, 2)
)
OF_VERSION = (
    " class UserV{0}(Model):\n     name = Text()\n-    age = Number()\n+    age = Number(0)\n     mail = Text()\n"
)
CASES = "match code:\n" + "".join(f"    case {n}:\n        log(code)\n        return None\n" for n in range(1, 30))
STUBS = "class Port(Protocol):\n" + "".join(f"    def {n}(self) -> int:\n        ...\n\n" for n in "abcd")
SETTINGS = "host = 'a'\nport = 80\ntimeout = 300\nretries = 3\nverbose = False\n"

REPEATED = [
    trap("a function that stands twice, no numbers", TWICE, "@@ @@\n" + IN_BODY),
    trap("a function that stands twice, the number lies", TWICE, "@@ -5,4 +5,4 @@\n" + IN_BODY),
    trap("a function that stands twice, the number is between them", TWICE, "@@ -6,4 +6,4 @@\n" + IN_BODY),
    trap("a function that stands twice, the number is true", TWICE, "@@ -9,4 +9,4 @@\n" + IN_BODY, CHANGED_SECOND),
    trap(
        "a function that stands twice, the heading tells", TWICE, "@@ @@ def second(items):\n" + IN_BODY, CHANGED_SECOND
    ),
    trap("number and heading contradict each other", TWICE, "@@ -2,4 +2,4 @@ def second(items):\n" + IN_BODY),
    trap("number of the first, counts wrong", TWICE, "@@ -2,9 +2,7 @@\n" + IN_BODY, CHANGED_FIRST),
    trap("all numbers 1", TWICE, "@@ -1,4 +1,4 @@\n" + IN_BODY),
    trap(
        "two equal hunks for two places, no numbers",
        TWICE,
        "@@ @@\n" + IN_BODY + "@@ @@\n" + IN_BODY,
        function("first", "2") + function("second", "2"),
    ),
    trap("two equal hunks for three places", TWICE + function("third"), "@@ @@\n" + IN_BODY + "@@ @@\n" + IN_BODY),
    trap(
        "an insertion between repeated blocks", CASES, "@@ @@\n         log(code)\n         return None\n+    # next\n"
    ),
    trap("only brackets for context", "{\n}\n\n" * 4, "@@ @@\n }\n \n+{ }\n {\n }\n"),
    trap("only blank lines for context", "a\n\nb\n\nc\n", "@@ -9 +9,2 @@\n \n+new\n"),
    trap("no context at all", "a\nb\nc\n", "@@ @@\n+new\n"),
    trap("no context, and a number", "a\nb\nc\n", "@@ -2,0 +3 @@\n+new\n", "a\nb\nnew\nc\n"),
    trap("an end of the file that stands elsewhere, too", lines("a b end c d end"), "@@ @@\n end\n+more\n"),
    trap("a removal of one of two equal blocks", lines("x a b y a b z"), "@@ @@\n-a\n-b\n"),
    trap(
        "a number that is true by accident: the file moved by one block",
        "".join(f"def f{n}():\n    a()\n    b()\n    c()\n    d()\n    e()\n\n" for n in "0123456"),
        "@@ -9,4 +9,5 @@ def f2():\n     a()\n     b()\n+    new()\n     c()\n     d()\n",
    ),
]

ALMOST_EQUAL = [
    trap("the name that differs is mistyped into neither", VERSIONS, "@@ @@\n" + OF_VERSION.format("3")),
    trap("the name that differs is mistyped, the number lies", VERSIONS, "@@ -3,4 +3,4 @@\n" + OF_VERSION.format("3")),
    trap("the name that differs is lost", VERSIONS, "@@ @@\n" + OF_VERSION.split("\n", 1)[1]),
    trap(
        "the name that differs is there, the number is the other's",
        VERSIONS,
        "@@ -1,4 +1,4 @@\n" + OF_VERSION.format("2"),
        VERSIONS.replace("age = Number()", "age = Number(1)", 1).replace("Number()", "Number(0)").replace("(1)", "()"),
    ),
    trap(
        "an older text of what stands where the header points, and that text stands elsewhere",
        function("first", "item.size") + function("other"),
        "@@ -2,4 +2,4 @@ def first(items):\n" + IN_BODY,
    ),
    trap(
        "with a lost line it fits the wrong place exactly",
        lines("a b c d e f x a c d y"),
        "@@ -1,4 +1,4 @@\n a\n c\n-d\n+D\n",
        lines("a b c D e f x a c d y"),
    ),
    trap(
        "with a lost line it fits the wrong place exactly, no number",
        lines("alpha beta gamma delta one two alpha gamma delta"),
        "@@ @@\n alpha\n gamma\n-delta\n+DELTA\n",
        lines("alpha beta gamma delta one two alpha gamma DELTA"),
    ),
    trap(
        "two places that differ by trailing space alone, the header points at the other",
        "a\nb\nc\nx\ny\na \nb\nc\n",
        "@@ -6,3 +6,3 @@\n a\n-b\n+B\n c\n",
    ),
    trap(
        "two places that differ by tabs alone",
        "if a:\n\tgo()\n\tend()\nif b:\n    go()\n    end()\n",
        "@@ @@\n-  go()\n+  stay()\n   end()\n",
    ),
    trap(
        "two places that differ by line ends alone",
        "a\r\nb\r\nx\na\nb\ny\r\n",
        "@@ -1,2 +1,2 @@\n a\n-b\n+B\n",
    ),
    trap(
        "dedented, and two depths fit",
        "class A:\n    def f(self):\n        go()\n        end()\n    go()\n    end()\n",
        "@@ @@\n-go()\n+stay()\n end()\n",
    ),
    trap(
        "dedented, and it fits as it is elsewhere",
        "def f():\n    go()\n    end()\n\ngo()\nend()\n",
        "@@ -2,2 +2,2 @@\n-go()\n+stay()\n end()\n",
    ),
    trap(
        "new lines dedented less than old ones",
        "def f():\n    if a:\n        go()\n        end()\n",
        "@@ @@\n if a:\n-    go()\n+        stay()\n     end()\n",
        "def f():\n    if a:\n            stay()\n        end()\n",
    ),
]

STALE = [
    trap("an insertion that was made already", lines("a b new c d"), "@@ -1,4 +1,5 @@\n a\n b\n+new\n c\n d\n"),
    trap("an insertion that was made already, no numbers", lines("a b new c d"), "@@ @@\n a\n b\n+new\n c\n d\n"),
    trap("an insertion at the end that was made already", lines("a b new"), "@@ -1,2 +1,3 @@\n a\n b\n+new\n"),
    trap(
        "an insertion of two lines that was made already",
        lines("a b n1 n2 c d"),
        "@@ -1,4 +1,6 @@\n a\n b\n+n1\n+n2\n c\n d\n",
    ),
    trap("a replacement that was made already", lines("a B c"), "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"),
    trap("a removal that was made already", lines("a c d e"), "@@ -1,4 +1,3 @@\n a\n-b\n c\n d\n"),
    trap("one of two hunks was made already", lines("a B c d e f"), "@@ @@\n a\n-b\n+B\n c\n@@ @@\n d\n-e\n+E\n f\n"),
    trap(
        "the removed value was changed since",
        SETTINGS,
        "@@ -2,3 +2,3 @@\n port = 80\n-timeout = 30\n+timeout = 60\n retries = 3\n",
    ),
    trap(
        "the removed line was changed since, long context",
        SETTINGS,
        "@@ -1,5 +1,4 @@\n host = 'a'\n port = 80\n-timeout = 30\n retries = 3\n verbose = False\n",
    ),
    trap(
        "a line was added within what is to be removed",
        lines("a b keep c d"),
        "@@ -1,4 +1,2 @@\n a\n-b\n-c\n d\n",
    ),
    trap(
        "a line was added where the change is made",
        lines("a b fresh c d"),
        "@@ -1,4 +1,5 @@\n a\n b\n+new\n c\n d\n",
    ),
    trap("the line beside the insertion is lost", lines("a gone b"), "@@ -1,2 +1,3 @@\n a\n+new\n b\n"),
    trap(
        "the function was moved into a class",
        "class A:\n    def go(self):\n        a = 1\n        b = 2\n        return a\n",
        "@@ -1,4 +1,4 @@\n def go(self):\n     a = 1\n-    b = 2\n+    b = 3\n     return a\n",
        "class A:\n    def go(self):\n        a = 1\n        b = 3\n        return a\n",
    ),
    trap(
        "all but brackets was rewritten",
        "f() {\n  one();\n  two();\n}\n\ng() {\n  three();\n}\n",
        "@@ -6,3 +6,3 @@\n g() {\n-  four();\n+  five();\n }\n",
    ),
    trap("a new file that exists", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"),
]

DOTS = [
    trap(
        "dots that stand in the file",
        STUBS,
        "@@ -2,5 +2,5 @@\n     def a(self) -> int:\n         ...\n \n"
        "-    def b(self) -> int:\n+    def b(self) -> str:\n         ...\n",
        STUBS.replace("def b(self) -> int", "def b(self) -> str"),
    ),
    trap(
        "dots removed",
        STUBS,
        "@@ @@\n     def b(self) -> int:\n-        ...\n+        return 1\n",
        STUBS.replace("b(self) -> int:\n        ...", "b(self) -> int:\n        return 1"),
    ),
    trap(
        "behind the dots it fits twice",
        "def f():\n    a()\n    if b:\n        return 1\n    c()\n    if d:\n        return 1\n",
        "@@ @@\n def f():\n     a()\n ...\n-        return 1\n+        return 2\n",
    ),
    trap(
        "behind the dots it fits in this function and in the next",
        "def f():\n    a()\n    b()\n    return 1\n\ndef g():\n    c()\n    return 1\n",
        "@@ @@\n def f():\n     a()\n ...\n-    return 1\n+    return 2\n",
        "def f():\n    a()\n    b()\n    return 2\n\ndef g():\n    c()\n    return 1\n",
    ),
    trap(
        "before the dots it fits twice",
        "def f():\n    a()\n    b()\n\ndef g():\n    a()\n    c()\n    end()\n",
        "@@ @@\n-    a()\n+    A()\n ...\n     end()\n",
    ),
    trap("dots for everything that is removed", lines("a b c d"), "@@ @@\n a\n-...\n+new\n d\n"),
    trap(
        "dots in new lines mean themselves or nothing",
        "def f():\n    a()\n    b()\n",
        "@@ @@\n def f():\n-    a()\n+    ...\n     b()\n",
        "def f():\n    ...\n    b()\n",
    ),
]

AROUND = [
    Trap(
        "prose that looks like an added line, counts wrong",
        {"x.py": lines("a b c")},
        "--- a/x.py\n+++ b/x.py\n@@ -1,9 +1,9 @@\n a\n-b\n+B\n c\n\n+1 from me\n",
        {"x.py": lines("a B c")},
    ),
    Trap(
        "prose that looks like an added line, counts right",
        {"x.py": lines("a b c")},
        "--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n\n+1 from me\n",
        {"x.py": lines("a B c")},
    ),
    Trap(
        "a mail's signature, and a line that it could remove",
        {"x.sql": "a\nb\nc\n- \nd\n"},
        "--- a/x.sql\n+++ b/x.sql\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n-- \n2.39.5\n",
        {"x.sql": "a\nB\nc\n- \nd\n"},
    ),
    Trap(
        "a fence that ends a file in fences",
        {"x.md": "text\n```\ncode\n```\n"},
        "```diff\n--- a/x.md\n+++ b/x.md\n@@ -2,3 +2,3 @@\n ```\n-code\n+Code\n```\n```\n",
        {"x.md": "text\n```\nCode\n```\n"},
    ),
    Trap(
        "a new line that is a fence, at the end",
        {"x.md": "text\n```\ncode\n"},
        "```diff\n--- a/x.md\n+++ b/x.md\n@@ -2,2 +2,3 @@\n ```\n code\n+```\n```\n",
        {"x.md": "text\n```\ncode\n```\n"},
    ),
    Trap(
        "two diffs in two fences, the first taken back",
        {"x.py": lines("a b c")},
        "First try:\n```diff\n--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n```\nNo, better:\n"
        "```diff\n--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n a\n-b\n+Better\n c\n```\n",
        None,
    ),
    Trap(
        "counts that are too small do not cut the change short",
        {"x.py": lines("a b c d e")},
        "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n c\n-d\n+D\n e\n",
        {"x.py": lines("a B c D e")},
    ),
    Trap(
        "a path that could have a prefix and exists both ways",
        {"x.py": lines("a b c"), "a/x.py": lines("a b c")},
        "--- a/x.py\n+++ a/x.py\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
        {"x.py": lines("a b c"), "a/x.py": lines("a B c")},
    ),
    Trap(
        "removed and added lines that look like names of files",
        {"x.sql": "-- a/y.py\nb\nc\n"},
        "--- a/x.sql\n+++ b/x.sql\n@@ -1,9 +1,9 @@\n--- a/y.py\n+++ b/y.py\n b\n c\n",
        {"x.sql": "++ b/y.py\nb\nc\n"},
    ),
    Trap(
        "a second section that goes on from what the first made",
        {"x.py": lines("a b c d")},
        "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n"
        "--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n A\n-b\n+B\n c\n",
        {"x.py": lines("A B c d")},
    ),
    Trap(
        "a second section that takes the first back",
        {"x.py": lines("a b c d")},
        "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-a\n+AA\n b\n",
        None,
    ),
    Trap(
        "hunks that overlap",
        {"x.py": lines("a b c d e")},
        "--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n@@ -2,3 +2,3 @@\n b\n-c\n+C\n d\n",
        {"x.py": lines("a B C d e")},
    ),
    Trap(
        "hunks in the wrong order that fit in theirs, too",
        {"x.py": lines("x a y a z")},
        "--- a/x.py\n+++ b/x.py\n@@ -4 +4 @@\n-a\n+second\n@@ -2 +2 @@\n-a\n+first\n",
        {"x.py": lines("x first y second z")},
    ),
    Trap(
        "a removed file that holds more than the diff says",
        {"x.py": lines("a b c")},
        "--- a/x.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n",
        None,
    ),
    Trap(
        "one of two files does not fit",
        {"x.py": lines("a b"), "y.py": lines("c d")},
        "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n--- a/y.py\n+++ b/y.py\n@@ -1,2 +1,2 @@\n-e\n+E\n d\n",
        None,
    ),
]

UNMARKED = [
    trap(
        "context without its space that begins with a minus",
        "- one\n- two\n- three\n",
        "@@ -1,3 +1,3 @@\n- one\n-- two\n+- 2\n- three\n",
        "- one\n- 2\n- three\n",
    ),
    trap(
        "an added line without its plus",
        lines("alpha beta gamma"),
        "@@ -1,3 +1,4 @@\n alpha\n-beta\n+Beta\nfresh\n gamma\n",
    ),
    trap(
        "context without its space, at two depths",
        "if a:\n    go()\n     go()\nend\n",
        "@@ @@\n    go()\n+    stay()\n",
    ),
]

BLOCKS = "f() {\n  a\n}\n\ng() {\n  b\n}\n\nh() {\n  c\n}\n"
RELEASES = "1\n2\n3\n4\n5\n6\n7\n\nReleased\n\nitem\n\n\nVersion\n"

# What was lost decides the place, and the header or the heading speaks of where the hunk began before it was lost.
LOST = [
    trap(
        "a line may be lost at the top", lines("title ===== text more"), "@@ -1,3 +1,5 @@\n+top\n+line\n =====\n text\n"
    ),
    trap(
        "a line may be lost at the top, blank context",
        "Title\n=====\n\ntext\nmore\n",
        "@@ -1,3 +1,5 @@\n+top\n+\n =====\n \n",
    ),
    trap(
        "a line may be lost at the end", lines("a b c print return"), "@@ -2,4 +2,5 @@\n b\n c\n-print\n+Print\n+own\n"
    ),
    trap(
        "a heading above lost context: the bracket is the last one",
        BLOCKS,
        "@@ -9,3 +9,6 @@ g() {\n }\n+\n+i() {\n+}\n",
        BLOCKS + "\ni() {\n}\n",
    ),
    trap(
        "a heading above lost context: the blank line is not the next one",
        RELEASES,
        "@@ -9,6 +9,8 @@ Released\n \n+x\n+\n \n",
        RELEASES.replace("item\n\n", "item\n\nx\n\n"),
    ),
]

PUT = "def put(self):\n    a()\n\n"
RUN = "def {0}(self):\n    value = load()\n    check(1)\n    return value\n\n"
IN_RUN = " def run0(self):\n     value = load()\n+    more()\n     check(1)\n     return value\n \n"

# A context line that reads otherwise may be mistyped, or it may be another function.
OTHERWISE = [
    trap("another name, the number is elsewhere", PUT + RUN.format("run2") + PUT, "@@ -40,5 +40,6 @@\n" + IN_RUN),
    trap("another name, the number is near", PUT + RUN.format("run2") + PUT, "@@ -9,5 +9,6 @@\n" + IN_RUN),
    trap("another name, no number", PUT + RUN.format("run2") + PUT, "@@ @@\n" + IN_RUN),
    trap(
        "another number in the line, the header is true",
        "a\nb\ncase 2:\n    log()\n    break\n\n",
        "@@ -2,4 +2,5 @@\n b\n case 1:\n+    new()\n     log()\n     break\n",
    ),
    trap(
        "a line is lost where something is replaced: before, among or behind the new lines",
        "one\ntwo\nthree\n\n{\n  a: 0,\n},\n",
        "@@ -1,7 +1,9 @@\n one\n two\n three\n-\n+!\n+    more()\n+\n   a: 0,\n },\n",
    ),
]

TRAPS = [*REPEATED, *ALMOST_EQUAL, *STALE, *DOTS, *AROUND, *UNMARKED, *LOST, *OTHERWISE]
