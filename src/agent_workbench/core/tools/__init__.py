"""Tools that a model may call: specs, permissions, arguments, and the part of JSON Schema that describes them."""
