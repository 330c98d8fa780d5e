"""Approval: its rules, the effect of a policy, and the decisions of a person."""
