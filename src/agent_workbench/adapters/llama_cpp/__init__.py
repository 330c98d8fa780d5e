"""The model, as llama.cpp serves it over HTTP or in this process."""
