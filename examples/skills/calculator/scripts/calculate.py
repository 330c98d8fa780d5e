"""Exact calculator: expressions with decimals, fractions and percentages. Nothing else of Python is evaluated."""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_EVEN, Context, Decimal, DecimalException, localcontext

MAX_CHARS, MAX_POWER = 1_000, 1_000
Number = Decimal | int | str

_PERCENT = re.compile(r"(?<![\w.])(\d[\d_]*(?:\.\d+)?)%(?!\s*[\w(.])")
_OPERATORS: Mapping[type, Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: Mapping[str, Callable[..., Decimal]] = {
    "sqrt": lambda value: value.sqrt(),
    "abs": abs,
    "min": min,
    "max": max,
    "sum": lambda *values: sum(values, Decimal(0)),
}


class CalculationError(ValueError):
    """The expression cannot be calculated; the text says which part and why."""


def calculate(expression: str, digits: int = 28, **names: Number) -> Decimal:
    """Return the value of an expression with so many significant digits; `names` are the values of its variables."""
    if len(expression) > MAX_CHARS:
        raise CalculationError(f"the expression has more than {MAX_CHARS} characters")
    with localcontext(Context(prec=digits)):
        try:
            values = {name: _number(value) for name, value in names.items()}
            text = _PERCENT.sub(r"(\1/100)", expression.strip())
            return _plain(_Calculation(text, values).value(ast.parse(text, mode="eval").body))
        except SyntaxError:
            raise CalculationError(f"{expression!r} is no expression") from None
        except DecimalException as error:
            raise CalculationError(f"{expression!r}: {type(error).__name__}") from None
        except RecursionError:
            raise CalculationError("the expression is nested too deeply") from None


def rounded(value: Decimal, places: int = 2, how: str = ROUND_HALF_EVEN) -> Decimal:
    """Return a value rounded to so many decimal places."""
    return value.quantize(Decimal(1).scaleb(-places), rounding=how)


def _number(value: Number) -> Decimal:
    return calculate(value) if isinstance(value, str) else Decimal(value)


def _plain(value: Decimal) -> Decimal:
    """Return a value without zeros at its end, and without an exponent."""
    value = +value
    return value.quantize(Decimal(1)) if value == value.to_integral_value() else value.normalize()


class _Calculation:
    """Evaluation of the parts of one expression, whose text has the digits as they were written."""

    def __init__(self, text: str, names: Mapping[str, Decimal]) -> None:
        self._text = text
        self._names = names

    def value(self, node: ast.expr) -> Decimal:
        match node:
            case ast.Constant(value=int()) if not isinstance(node.value, bool):
                return Decimal(node.value)
            case ast.Constant(value=float()):
                return Decimal((ast.get_source_segment(self._text, node) or "").replace("_", ""))
            case ast.Name(id=name) if name in self._names:
                return self._names[name]
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -self.value(inner)
            case ast.UnaryOp(op=ast.UAdd(), operand=inner):
                return self.value(inner)
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                power = self.value(right)
                if abs(power) > MAX_POWER:
                    raise CalculationError(f"the power {power} is larger than {MAX_POWER}")
                return self.value(left) ** power
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](self.value(left), self.value(right))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS and arguments:
                return _FUNCTIONS[name](*map(self.value, arguments))
        raise CalculationError(f"{ast.unparse(node)[:80]!r} cannot be calculated")
