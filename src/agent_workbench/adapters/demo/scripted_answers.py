"""Scripted answers of the demo's model. A real server is forced to give them, so everything around them is real.

The answers of a task are in the order of its requests, reflexions included. For a rejected diff there is another one.
"""

T1_READ = """\
Thought: The failing test is about quantities, so I start with the function that adds up the cart.
Action: read_file
{"path": "shop/cart.py"}"""

T1_WRONG = """\
Thought: The quantity is never used. I add it to the price of each line.
Action: write_diff
--- a/shop/cart.py
+++ b/shop/cart.py
@@ -14,4 +14,4 @@

 def total(lines: list[Line]) -> int:
     \"\"\"Return the price of all lines in cents.\"\"\"
-    return sum(line.cents for line in lines)
+    return sum(line.cents + line.quantity for line in lines)
"""

T1_REFLEXION = """\
Reflexion: I added the quantity to the price, but three pens at 120 cents cost 360, not 123. Each line's price has to \
be multiplied by its quantity; the test's 810 is 3 * 120 + 1 * 450."""

T1_RIGHT = """\
Thought: A line costs its price times its quantity.
Action: write_diff
--- a/shop/cart.py
+++ b/shop/cart.py
@@ -14,4 +14,4 @@

 def total(lines: list[Line]) -> int:
     \"\"\"Return the price of all lines in cents.\"\"\"
-    return sum(line.cents + line.quantity for line in lines)
+    return sum(line.cents * line.quantity for line in lines)
"""

T1_AT_ONCE = T1_RIGHT.replace("line.cents + line.quantity", "line.cents")

T1_FINISH = """\
Thought: All tests of the cart pass now.
Action: finish
{"summary": "A line of the cart now costs its price times its quantity; it used to be counted once."}"""

T1_SUMMARY = """\
Summary: The failing test wants each line of the cart to cost its price times its quantity.
total() in shop/cart.py adds up the lines; it is the only place that has to change.
Left to do: make total() multiply price and quantity, run the tests, finish."""

T2_SEARCH = """\
Thought: A discount belongs beside the total. I look at what stands there now.
Action: search_code
{"query": "total price of the cart"}"""

T2_NOTE = """\
Thought: Prices are whole cents, so the rounding has to be decided; I write it down.
Action: note
{"text": "Discounts round half up to whole cents."}"""

T2_DIFF = """\
Thought: I add the discount with its test; whole cents, rounded half up.
Action: write_diff
--- a/shop/cart.py
+++ b/shop/cart.py
@@ -15,3 +15,10 @@
 def total(lines: list[Line]) -> int:
     \"\"\"Return the price of all lines in cents.\"\"\"
     return sum(line.cents * line.quantity for line in lines)
+
+
+def discounted(cents: int, percent: int) -> int:
+    \"\"\"Return a price less so many percent, rounded half up to whole cents.\"\"\"
+    if not 0 <= percent <= 100:
+        raise ValueError(f"a discount is 0 to 100 percent, not {percent}")
+    return (cents * (100 - percent) + 50) // 100
--- /dev/null
+++ b/tests/test_discount.py
@@ -0,0 +1,16 @@
+import unittest
+
+from shop.cart import discounted
+
+
+class DiscountTest(unittest.TestCase):
+    def test_a_tenth_off(self):
+        self.assertEqual(discounted(810, 10), 729)
+
+    def test_half_a_cent_rounds_up(self):
+        self.assertEqual(discounted(101, 50), 51)
+
+    def test_only_percentages(self):
+        for percent in (-1, 101):
+            with self.assertRaisesRegex(ValueError, "0 to 100"):
+                discounted(100, percent)
"""

T2_OTHERWISE = T2_DIFF.replace(
    "I add the discount with its test; whole cents, rounded half up.",
    "I write it another way: what comes off is rounded, so that half a cent stays in the price.",
).replace("(cents * (100 - percent) + 50) // 100", "cents - (cents * percent + 49) // 100")

T2_FINISH = """\
Thought: The new tests and the old ones pass.
Action: finish
{"summary": "discounted() takes a percentage off a price in whole cents, rounded half up; with tests for both."}"""

T2_REFLEXION = """\
Reflexion: The task is checked by tests/test_discount.py as well. Without that file, or with only a part of it, \
those checks cannot pass; what was left out has to come back."""

T2_SUMMARY = """\
Summary: The cart is to get a discount in percent, beside total() in shop/cart.py; prices are whole cents.
Left to do: write discounted(cents, percent), rounded half up, with its tests in tests/test_discount.py, and finish."""

CHAT_SEARCH = """\
Thought: I look for the function that adds up the cart.
Action: grep
{"text": "def total", "glob": "**/*.py"}"""

CHAT_ANSWER = """\
Answer: `total()` in `shop/cart.py` adds up the prices of the lines.

It forgets the **quantity** of each line; task `T-1` of the plan is about that."""

SCRIPTS = {
    "chat:chat": (CHAT_SEARCH, CHAT_ANSWER),
    "T-1": (T1_READ, T1_WRONG, T1_REFLEXION, T1_RIGHT, T1_FINISH),
    "T-1:1": (T1_AT_ONCE,),
    "T-2:2": (T2_OTHERWISE,),
    "T-1:reflexion": (T1_REFLEXION,),
    "T-2:reflexion": (T2_REFLEXION,),
    "T-1:summary": (T1_SUMMARY,),
    "T-2:summary": (T2_SUMMARY,),
    "T-2": (T2_SEARCH, T2_NOTE, T2_DIFF, T2_FINISH),
}
