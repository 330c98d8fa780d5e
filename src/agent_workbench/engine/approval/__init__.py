"""Proposals and their decisions: policy, kept rules, and approval in whole or in part."""
