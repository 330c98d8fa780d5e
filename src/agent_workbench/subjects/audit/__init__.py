"""The audit: which tasks ended how, who decided what, and what it cost."""
