"""Consultations: gather what is to be judged, ask one endpoint after the other, record the answer."""
