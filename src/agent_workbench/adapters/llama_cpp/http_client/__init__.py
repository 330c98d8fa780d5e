"""Client of one model endpoint over HTTP: requests, streamed answers, token counts, errors and retries."""
