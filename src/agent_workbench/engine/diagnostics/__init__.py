"""Checks of the installation and of models: doctor, endpoints, programs, model test."""
