"""Traps with a similar function far away, and with one line that decides the indentation of all."""

from tests.core.patch.traps import trap

FAR = "".join(f"int filler{number}(void);\n" for number in range(40))
MEANT = "int saveToSockets(info *rsi) {\n    changed();\n}\n"
HUNK = """\
@@ -60,9 +60,6 @@ int saveToSockets(info *rsi) {
         leave(ok);
     } else {
         /* Parent */
-        server.fork_time = now() - start;
-        server.fork_rate = memory() / server.fork_time;
-        sample(server.fork_time);
         if (child == -1) {
             log("cannot save: %s",
                 error());
"""


def like(*between: str) -> str:
    """Return a function like the one meant, with lines of its own in it."""
    return f"""\
int saveInBackground(info *rsi) {{
    if (fork() == 0) {{
        leave(ok);
    }} else {{
        /* Parent */
        server.fork_time = now() - start;
        server.fork_rate = memory() / server.fork_time;
        sample(server.fork_time);
        if (child == -1) {{
{"".join(f"            {line}{chr(10)}" for line in between)}            log("cannot save: %s",
                error());
        }}
    }}
}}

"""


COLLECTION = """\
Collection = Class({
  at: function(index) {
    return this[index]
  }
})
"""
TABBED = """\
@@ -1,5 +1,8 @@
 Collection = Class({
   at: function(index) {
 \treturn this[index]
+  },
+  each: function(fn) {
+\treturn fn(this)
   }
 })
"""

# One context line has other blanks before it: so do the new lines, and they are not meant so.
INDENT_TRAPS = [
    trap(
        "one context line is indented by a tab, and the new lines are",
        COLLECTION,
        TABBED,
        COLLECTION.replace("index]\n", "index]\n  },\n  each: function(fn) {\n    return fn(this)\n"),
    ),
]

FAR_TRAPS = [
    trap("far, and two lines between, counts right", like("closeInfo();", "status = 1;") + FAR, HUNK),
    trap("far, and one line between, counts right", like("closeInfo();") + FAR, HUNK),
    trap("far, and one line between, the heading stands behind", like("closeInfo();") + FAR + MEANT, HUNK),
    trap("near, and one line between, counts right", FAR + like("closeInfo();") + FAR, HUNK),
    trap("near, two lines between, the heading stands behind", FAR + like("closeInfo();", "status = 1;") + MEANT, HUNK),
]
