"""Everything that can be asked of the workbench: sessions, plans, records, searches, models."""
