"""Models that llama.cpp or an OpenAI-compatible server serves: HTTP client, own servers, and routing between them."""
