"""Calls of the worker: claims, runs, outages, status and reports."""
